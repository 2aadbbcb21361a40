//! Statement to plan. Names are resolved against the catalogs and everything gets its Flink type; no data is read.
//!
//! A query goes through `bind` (typed logical plan) and then either through `batch` (DataFusion's physical plan) or through
//! `lower` (a stream graph that the runtime executes).

mod batch;
mod bind;
mod expand;
mod explain;
mod graph;
mod insert;
mod lower;
mod membership;
mod optimise;
mod provider;
mod tables;

pub(crate) use graph::{
    AggregateCall, AggregateFunction, ChangelogNormalizeSpec, Distribution, GraphNode, GroupAggregateSpec,
    InputEdge, JobGraph, JoinKey, JoinKind, JoinSide, JoinSpec, JoinUniqueness, NodeId, OperatorSpec,
    SinkSpec, SortKey, TopNSpec, TopNStrategy,
};
pub(crate) use insert::BoundInsert;
pub(crate) use lower::StreamNode;
pub(crate) use tables::BoundTable;

use std::sync::Arc;

use chrono::Utc;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;
use futures::stream::BoxStream;

use bind::{Binder, BoundQuery, OutputColumn, Scope, ScopeColumn};
use explain::{ExplainedPlan, Section};
use tables::TableSet;

use crate::catalog::{CatalogManager, CatalogObject};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::DynamicTableSink;
use crate::error::{Error, ErrorKind, FlinkClass, Result};
use crate::function::EvalContext;
use crate::options::{RUNTIME_MODE, RuntimeMode, SessionConfig, time_zone};
use crate::schema::{Column, DataType};
use crate::sql;

/// An expression over a table's columns, bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundExpressionText {
    /// Flink's expanded text: every identifier in back-ticks.
    pub text: String,
    /// The type.
    pub data_type: DataType,
}

/// A view's query, bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundViewQuery {
    /// The query with every name in full and in back-ticks, `FROM` on a line of its own.
    pub expanded_query: String,
    /// Names and types of the columns.
    pub columns: Vec<(String, DataType)>,
}

/// Binds the expression of a computed column or a watermark.
///
/// # Errors
/// It names an unknown column or function, or its types do not fit.
pub fn bind_column_expression(
    expression: &sql::Expression,
    columns: &[Column],
    config: &SessionConfig,
) -> Result<BoundExpressionText> {
    let tables = TableSet::default();
    let context = Arc::new(eval_context(config, "", true)?);
    let scope = Scope {
        columns: columns
            .iter()
            .map(|column| ScopeColumn {
                relation: Vec::new(),
                name: column.name.clone(),
                column: datafusion::common::Column::new_unqualified(&column.name),
                data_type: column.data_type.clone(),
                merged: false,
            })
            .collect(),
    };
    let mut binder = Binder::new(&tables, context, false, Arc::clone(&expression.positions));
    let bound = binder.bind_expr(&expression.body, &scope)?;
    let text = binder.take_expansion().apply(expression.positions.text(), expression.span)?;
    Ok(BoundExpressionText { text, data_type: bound.data_type })
}

/// Binds the query of a view.
///
/// # Errors
/// It names an unknown table, column or function, or its types do not fit.
pub async fn bind_view(
    query: &sql::Query,
    catalogs: &CatalogManager,
    config: &SessionConfig,
) -> Result<BoundViewQuery> {
    let tables = TableSet::load(&[&query.body], catalogs, &Arc::new(config.clone())).await?;
    let context = Arc::new(eval_context(config, catalogs.current_database(), false)?);
    let mut binder = Binder::new(&tables, context, false, Arc::clone(&query.positions));
    let bound = binder.bind_query(&query.body)?;
    let expanded_query = binder.take_expansion().apply(query.positions.text(), query.span)?;
    let columns = bound.columns.into_iter().map(|column| (column.name, column.data_type)).collect();
    Ok(BoundViewQuery { expanded_query, columns })
}

/// Returns the session's mode.
pub(crate) fn is_streaming(config: &SessionConfig) -> Result<bool> {
    Ok(config.get(&RUNTIME_MODE)? != RuntimeMode::Batch)
}

/// Returns what expressions know of the session. In batch the clock stands still.
fn eval_context(config: &SessionConfig, database: &str, is_streaming: bool) -> Result<EvalContext> {
    let query_start = (!is_streaming).then(Utc::now);
    Ok(EvalContext { zone: time_zone(config)?, query_start, database: database.to_owned() })
}

/// What statements are planned against.
pub(crate) struct Planner<'a> {
    catalogs: &'a CatalogManager,
    config: Arc<SessionConfig>,
    context: Arc<EvalContext>,
    is_streaming: bool,
}

/// A query, bound.
pub(crate) struct PlannedQuery {
    query: BoundQuery,
    is_streaming: bool,
}

impl<'a> Planner<'a> {
    /// Creates a planner for one statement.
    pub(crate) fn new(catalogs: &'a CatalogManager, config: &SessionConfig) -> Result<Planner<'a>> {
        let is_streaming = is_streaming(config)?;
        let context = eval_context(config, catalogs.current_database(), is_streaming)?;
        Ok(Planner { catalogs, config: Arc::new(config.clone()), context: Arc::new(context), is_streaming })
    }

    /// Plans a query.
    pub(crate) async fn query(&self, query: &sql::Query) -> Result<PlannedQuery> {
        let tables = TableSet::load(&[&query.body], self.catalogs, &self.config).await?;
        let mut binder = self.binder(&tables, &query.positions);
        Ok(PlannedQuery { query: binder.bind_query(&query.body)?, is_streaming: self.is_streaming })
    }

    /// Plans an INSERT.
    pub(crate) async fn insert(&self, insert: &sql::Insert) -> Result<PlannedInsert> {
        let table = self
            .target(&insert.target)
            .await?
            .with_hints(&insert.hints)
            .map_err(|error| error.at(insert.target.span))?;
        self.insert_into(insert, table).await
    }

    /// Plans an INSERT into a table that may not be in a catalog yet (CREATE TABLE AS).
    pub(crate) async fn insert_into(&self, insert: &sql::Insert, table: BoundTable) -> Result<PlannedInsert> {
        let tables = TableSet::load(&[&insert.source.body], self.catalogs, &self.config).await?;
        let mut binder = self.binder(&tables, &insert.source.positions);
        let query = binder.bind_query(&insert.source.body)?;
        let bound = insert::bind_insert(&mut binder, insert, table, query)?;
        if insert.overwrite && self.is_streaming {
            return Err(Error::validation("Streaming mode not support overwrite.")
                .class(FlinkClass::TABLE)
                .at(insert.target.span)
                .hint("SET 'execution.runtime-mode' = 'batch'."));
        }
        Ok(PlannedInsert { insert: bound, is_streaming: self.is_streaming })
    }

    /// Returns the table that a statement writes.
    pub(crate) async fn target(&self, name: &sql::ObjectName) -> Result<BoundTable> {
        let identifier = self.catalogs.resolve(&name.parts).map_err(|error| error.at(name.span))?;
        let found = self.catalogs.object(&identifier).await?;
        match found.as_ref().map(|found| found.object.as_ref()) {
            Some(CatalogObject::Table(table)) => {
                Ok(BoundTable::new(identifier, table.clone(), Arc::clone(&self.config)))
            }
            Some(CatalogObject::View(_)) => {
                Err(Error::validation(format!("Sink '{identifier}' does not exists"))
                    .class(FlinkClass::TABLE)
                    .at(name.span)
                    .hint("It is a view, and views cannot be written."))
            }
            None => Err(Error::not_found(format!(
                "Cannot find table '{}' in any of the catalogs [{}], nor as a temporary table.",
                identifier.quoted(),
                self.catalogs.catalog_names()?.join(", ")
            ))
            .at(name.span)),
        }
    }

    /// Makes a table of a definition that is in no catalog.
    pub(crate) fn table(
        &self,
        identifier: crate::catalog::ObjectIdentifier,
        table: crate::catalog::CatalogTable,
    ) -> BoundTable {
        BoundTable::new(identifier, table, Arc::clone(&self.config))
    }

    /// Makes a binder.
    fn binder<'t>(&self, tables: &'t TableSet, positions: &Arc<sql::Positions>) -> Binder<'t> {
        Binder::new(tables, Arc::clone(&self.context), self.is_streaming, Arc::clone(positions))
    }
}

impl PlannedQuery {
    /// Returns names and types of the result.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &DataType)> {
        self.query.columns.iter().map(|OutputColumn { name, data_type, .. }| (name.as_str(), data_type))
    }

    /// Returns whether its rows are changes.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// Makes the query ready to run.
    pub(crate) async fn prepare(self) -> Result<Prepared> {
        prepare(self.query.plan, self.is_streaming).await
    }

    /// Explains the query.
    pub(crate) fn explain(&self, details: &[sql::ExplainDetail]) -> Result<String> {
        explain_plan(&self.query.plan, None, self.is_streaming, details)
    }
}

/// An INSERT, bound.
pub(crate) struct PlannedInsert {
    pub(crate) insert: BoundInsert,
    is_streaming: bool,
}

impl PlannedInsert {
    /// Makes the rows ready to run, and returns the sink and whether they replace what it holds.
    pub(crate) async fn prepare(self) -> Result<(Prepared, Arc<dyn DynamicTableSink>, bool)> {
        let BoundInsert { sink, plan, overwrite, .. } = self.insert;
        Ok((prepare(plan, self.is_streaming).await?, sink, overwrite))
    }

    /// Explains the insert.
    pub(crate) fn explain(&self, details: &[sql::ExplainDetail]) -> Result<String> {
        let sink = self.insert.table.identifier.to_string();
        explain_plan(&self.insert.plan, Some(&sink), self.is_streaming, details)
    }
}

/// A plan that can be started.
pub(crate) enum Prepared {
    /// Answered once.
    Batch(batch::BatchQuery),
    /// Runs as a stream of changes.
    Stream(StreamNode),
}

impl Prepared {
    /// Starts the plan; `run` runs stream graphs. Dropping the stream stops it.
    pub(crate) fn start(
        self,
        run: fn(&StreamNode) -> Result<BoxStream<'static, Result<ChangelogBatch>>>,
    ) -> Result<BoxStream<'static, Result<ChangelogBatch>>> {
        match self {
            Prepared::Batch(query) => {
                Ok(query.execute()?.map(|rows| rows.map(ChangelogBatch::inserts)).boxed())
            }
            Prepared::Stream(graph) => run(&graph),
        }
    }
}

/// Makes a plan ready to run.
async fn prepare(plan: LogicalPlan, is_streaming: bool) -> Result<Prepared> {
    if is_streaming {
        Ok(Prepared::Stream(lower::lower(plan)?))
    } else {
        Ok(Prepared::Batch(batch::BatchQuery::plan(plan).await?))
    }
}

/// Prints the three sections of EXPLAIN.
fn explain_plan(
    plan: &LogicalPlan,
    sink: Option<&str>,
    is_streaming: bool,
    details: &[sql::ExplainDetail],
) -> Result<String> {
    let changelog_mode =
        details.contains(&sql::ExplainDetail::ChangelogMode).then(|| ChangelogMode::INSERT_ONLY.to_string());
    let optimised = if is_streaming {
        optimise::optimise_streaming(plan.clone())?
    } else {
        optimise::optimise_batch(plan.clone())?
    };
    let logical = explain::tree(&ExplainedPlan { plan, sink, changelog_mode: None }, Section::Logical);
    let physical =
        explain::tree(&ExplainedPlan { plan: &optimised, sink, changelog_mode }, Section::Physical);
    let execution =
        explain::tree(&ExplainedPlan { plan: &optimised, sink, changelog_mode: None }, Section::Physical);
    let with_advice = details.contains(&sql::ExplainDetail::PlanAdvice);
    let header = if with_advice {
        "== Optimized Physical Plan With Advice =="
    } else {
        "== Optimized Physical Plan =="
    };
    let advice = if with_advice { "\nNo available advice...\n" } else { "" };
    let unsupported = details.iter().find(|detail| {
        matches!(detail, sql::ExplainDetail::EstimatedCost | sql::ExplainDetail::JsonExecutionPlan)
    });
    if unsupported.is_some() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "EXPLAIN ESTIMATED_COST and JSON_EXECUTION_PLAN are not supported yet",
        )
        .class(FlinkClass::TABLE)
        .hint("EXPLAIN, EXPLAIN CHANGELOG_MODE and EXPLAIN PLAN_ADVICE are."));
    }
    Ok(format!(
        "== Abstract Syntax Tree ==\n{logical}\n{header}\n{physical}{advice}\n== Optimized Execution Plan ==\n{execution}"
    ))
}
