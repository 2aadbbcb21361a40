//! Statement to plan. Names are resolved against the catalogs and everything gets its Flink type; no data is read.
//!
//! A query goes through `bind` (typed logical plan) and then either through `batch` (DataFusion's physical plan) or through
//! `stream` (a job graph that the runtime executes).

mod batch;
mod bind;
mod expand;
mod explain;
mod extension;
mod graph;
mod insert;
mod membership;
mod optimise;
mod provider;
mod scan_progress;
mod stream;
mod tables;

pub(crate) use explain::state_meaning;
pub(crate) use graph::{
    AggregateCall, AggregateFunction, ChangelogNormalizeSpec, Distribution, ExpandId, GraphNode,
    GroupAggregateSpec, JobGraph, JoinKind, JoinSide, JoinSpec, JoinUniqueness, MULTI_JOIN_INPUTS_MAX,
    NodeId, OperatorSpec, SinkSpec, TopNSpec, TopNStrategy,
};
#[cfg(test)]
pub(crate) use graph::{InputEdge, JoinKey, SortKey};
pub(crate) use insert::BoundInsert;
pub(crate) use provider::SourceTable;
pub(crate) use scan_progress::ScanProgress;
pub(crate) use tables::BoundTable;

use std::sync::Arc;

use chrono::Utc;
use datafusion::logical_expr::LogicalPlan;

use batch::BatchQuery;
use bind::{Binder, BoundQuery, OutputColumn, Scope, ScopeColumn};
use explain::ExplainedPlan;
use stream::QueryConsumer;
use tables::TableSet;

use crate::catalog::{CatalogManager, CatalogObject};
use crate::connector::{Boundedness, DynamicTableSink};
use crate::error::{Error, FlinkClass, Result};
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
    config: Arc<SessionConfig>,
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
        Ok(PlannedQuery {
            query: binder.bind_query(&query.body)?,
            config: Arc::clone(&self.config),
            is_streaming: self.is_streaming,
        })
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
            return Err(bound
                .sink
                .streaming_overwrite_error()
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
                let table = BoundTable::new(identifier, table.clone(), Arc::clone(&self.config));
                table.load().await.map_err(|error| error.at(name.span))
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

    /// Explains INSERTs that run as one job.
    pub(crate) async fn explain(
        &self,
        inserts: &[PlannedInsert],
        details: &[sql::ExplainDetail],
    ) -> Result<String> {
        let names: Vec<String> =
            inserts.iter().map(|planned| planned.insert.table.identifier.to_string()).collect();
        let plans: Vec<ExplainedPlan<'_>> = inserts
            .iter()
            .zip(&names)
            .map(|(planned, name)| ExplainedPlan { plan: &planned.insert.plan, sink: Some(name) })
            .collect();
        if self.is_streaming {
            explain::streaming_sections(&plans, &insert_graph(inserts)?, details)
        } else {
            explain::batch_sections(&plans, details).await
        }
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

    /// Returns the tables of which it reads the rows of now, by their names in full.
    ///
    /// # Errors
    /// The plan cannot be walked.
    pub(crate) fn snapshots(&self) -> Result<Vec<String>> {
        snapshots_of(&self.query.plan)
    }

    /// Makes the query ready to be answered in batch.
    pub(crate) async fn prepare_batch(self) -> Result<BatchQuery> {
        BatchQuery::plan(self.query.plan).await
    }

    /// Plans the streaming job that shows the query's rows: the graph ends in a node that hands them out.
    ///
    /// # Errors
    /// The query holds what is not built yet.
    pub(crate) fn job_graph(&self) -> Result<JobGraph> {
        stream::query_graph(&self.query.plan, QueryConsumer::User, &self.config)
    }

    /// Explains the query.
    pub(crate) async fn explain(&self, details: &[sql::ExplainDetail]) -> Result<String> {
        let plans = [ExplainedPlan { plan: &self.query.plan, sink: None }];
        if self.is_streaming {
            let graph = stream::query_graph(&self.query.plan, QueryConsumer::Explain, &self.config)?;
            explain::streaming_sections(&plans, &graph, details)
        } else {
            explain::batch_sections(&plans, details).await
        }
    }
}

/// An INSERT, bound.
pub(crate) struct PlannedInsert {
    pub(crate) insert: BoundInsert,
    is_streaming: bool,
}

impl PlannedInsert {
    /// Returns whether its rows are changes.
    pub(crate) fn is_streaming(&self) -> bool {
        self.is_streaming
    }

    /// Returns the tables of which its query reads the rows of now, by their names in full.
    ///
    /// # Errors
    /// The plan cannot be walked.
    pub(crate) fn snapshots(&self) -> Result<Vec<String>> {
        snapshots_of(&self.insert.plan)
    }

    /// Makes the rows ready to run in batch, and returns the sink and whether they replace what it holds.
    pub(crate) async fn prepare_batch(self) -> Result<(BatchQuery, Arc<dyn DynamicTableSink>, bool)> {
        let BoundInsert { sink, plan, overwrite, .. } = self.insert;
        Ok((BatchQuery::plan(plan).await?, sink, overwrite))
    }
}

fn snapshots_of(plan: &LogicalPlan) -> Result<Vec<String>> {
    let tables = batch::source_tables(plan)?.into_iter();
    let bounded = tables.filter(|table| table.source.boundedness() == Boundedness::Bounded);
    Ok(bounded.map(|table| table.name).collect())
}

/// Plans the streaming job that several INSERTs are: one graph, in which sources are shared.
///
/// # Errors
/// A query holds what is not built yet, or a sink does not take what its query makes.
pub(crate) fn insert_graph(inserts: &[PlannedInsert]) -> Result<JobGraph> {
    let inserts: Vec<&BoundInsert> = inserts.iter().map(|planned| &planned.insert).collect();
    stream::insert_graph(&inserts)
}
