//! Bounded queries: DataFusion's physical plan, and its rows as a stream.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::NullEquality;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::extension::UnnestPlanner;
use super::optimise::optimise_batch;
use super::provider::SourceTable;
use super::scan_progress::ScanProgress;
use crate::connector::Boundedness;
use crate::error::{Error, Result};

/// Rows per batch.
const BATCH_ROWS: usize = 8192;

/// Inputs below this many bytes are not worth several partitions, and one keeps the order of the rows.
const PARALLEL_BYTES_MIN: u64 = 16 << 20;

/// How many batches wait to be asked for, beside the one that is made meanwhile.
const BATCHES_AHEAD: usize = 1;

/// A bounded query, ready to run.
pub(crate) struct BatchQuery {
    physical: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
}

impl BatchQuery {
    /// Plans a query.
    ///
    /// # Errors
    /// A table is unbounded, or DataFusion cannot plan it.
    pub(crate) async fn plan(plan: LogicalPlan) -> Result<BatchQuery> {
        let sources = source_tables(&plan)?;
        if let Some(unbounded) =
            sources.iter().find(|table| table.source.boundedness() == Boundedness::Unbounded)
        {
            return Err(Error::validation(format!(
                "Querying an unbounded table '{}' in batch mode is not allowed. The table source is unbounded.",
                unbounded.name
            ))
            .hint(match unbounded.source.bounding_option() {
                Some((key, value)) => format!(
                    "SET 'execution.runtime-mode' = 'streaming'; or read what the table holds now, with /*+ OPTIONS('{key}' = '{value}') */ behind its name."
                ),
                None => "SET 'execution.runtime-mode' = 'streaming', or make the table bounded.".to_owned(),
            }));
        }
        let plan = optimise_batch(plan)?;
        let bytes: u64 = sources.iter().filter_map(|table| table.source.estimated_bytes()).sum();
        let partitions = if bytes >= PARALLEL_BYTES_MIN && reorders(&plan)? {
            std::thread::available_parallelism().map_or(1, usize::from)
        } else {
            1
        };
        let mut config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(BATCH_ROWS);
        // Sorts below a UNION that are merged above it fail DataFusion's check of orders where two columns are one.
        config.options_mut().optimizer.repartition_sorts = partitions > 1;
        // The check wants equal nullability, but DataFusion's own IS TRUE is nullable in one kind of plan and not in the other.
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        // It leaves out groups whose value is NULL.
        config.options_mut().optimizer.enable_topk_aggregation = false;
        // DataFusion's filters for the other side of a join leave out NULL, also where NULL joins NULL.
        config.options_mut().optimizer.enable_join_dynamic_filter_pushdown = !joins_nulls(&plan)?;
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_physical_optimizer_rules(physical_rules(&plan)?)
            .build();
        let physical = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(UnnestPlanner)])
            .create_physical_plan(&plan, &state)
            .await?;
        Ok(BatchQuery { physical: with_pauses(physical)?, task: state.task_ctx() })
    }

    /// Returns how far the query is, once it runs.
    pub(crate) fn progress(&self) -> ScanProgress {
        ScanProgress::of(&self.physical)
    }

    /// Starts the query. Dropping the stream cancels it. In a runtime of several threads it is a task of its own, so that nobody who
    /// waits for its rows waits for an operator that computes for long.
    pub(crate) fn execute(self) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let stream = spawn_buffered(execute_stream(self.physical, self.task)?, BATCHES_AHEAD);
        Ok(stream.map(|batch| batch.map_err(Error::from)).boxed())
    }
}

/// Returns the rules that choose how a plan is executed. What is aggregated of rows that were counted off is not taken from statistics:
/// DataFusion takes an estimate of no more rows than an OFFSET passes over for the knowledge that none is left.
fn physical_rules(plan: &LogicalPlan) -> Result<Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>> {
    let counts_off = |node: &LogicalPlan| match node {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Sort(sort) => sort.fetch.is_some(),
        _ => false,
    };
    let aggregates_rest = plan.exists(|node| match node {
        LogicalPlan::Aggregate(_) => node.exists(|below| Ok(counts_off(below))),
        _ => Ok(false),
    })?;
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !aggregates_rest || rule.name() != "aggregate_statistics");
    Ok(rules)
}

/// Lets joins pause now and then. DataFusion's operators do so when they ask for rows of a source, and a join may make billions of
/// rows out of one batch: until then its task could not be cancelled.
fn with_pauses(physical: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let paused = physical.transform_up(|node| {
        let any = node.as_any();
        let is_join = any.is::<HashJoinExec>()
            || any.is::<SortMergeJoinExec>()
            || any.is::<NestedLoopJoinExec>()
            || any.is::<CrossJoinExec>();
        Ok(match is_join {
            true => Transformed::yes(Arc::new(CooperativeExec::new(node)) as _),
            false => Transformed::no(node),
        })
    });
    Ok(paused.data()?)
}

/// Returns the sources below a plan.
pub(super) fn source_tables(plan: &LogicalPlan) -> Result<Vec<SourceTable>> {
    let mut tables = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = source_table(scan)
        {
            tables.push(table);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// Returns the source of a scan.
pub(super) fn source_table(scan: &TableScan) -> Option<SourceTable> {
    let provider = source_as_provider(&scan.source).ok()?;
    provider.as_any().downcast_ref::<SourceTable>().cloned()
}

/// Returns whether NULL joins NULL anywhere.
fn joins_nulls(plan: &LogicalPlan) -> Result<bool> {
    Ok(plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull))
    })?)
}

/// Returns whether the plan loses the order of its input anyway, so that several partitions change nothing a user sees.
fn reorders(plan: &LogicalPlan) -> Result<bool> {
    Ok(plan.exists(|node| {
        Ok(matches!(
            node,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_)
        ))
    })?)
}
