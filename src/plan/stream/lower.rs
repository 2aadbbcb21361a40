//! From DataFusion's logical plan to our operators. What is not built is refused by name, never left out.

use std::sync::Arc;

use datafusion::logical_expr::{
    Distinct, Expr, FetchType, LogicalPlan, Projection, SkipType, TableScan, UserDefinedLogicalNode,
};

use super::calc::{ColumnMaker, calc};
use super::node::PlanNode;
use super::rank::{endless_rank, endless_sort};
use crate::changelog::RowKind;
use crate::error::{Error, FlinkClass, Result};
use crate::options::AggregatePhaseStrategy;
use crate::plan::batch::source_table;
use crate::plan::extension::{SetOperation, Unnest};
use crate::plan::graph::OperatorSpec;

/// Lowers one plan; numbers the columns that it adds.
pub(super) struct Lowering {
    /// Makes columns of expressions.
    pub(super) columns: ColumnMaker,
    /// How many phases aggregations have.
    pub(super) phase_strategy: AggregatePhaseStrategy,
}

/// Makes the error for something that is not built yet.
pub(super) fn not_supported(what: &str) -> Error {
    Error::unsupported(format!("{what} in streaming mode is not supported yet"))
        .class(FlinkClass::TABLE)
        .hint("SET 'execution.runtime-mode' = 'batch' answers the query over bounded tables.")
}

impl Lowering {
    /// Starts lowering a plan.
    pub(super) fn new(phase_strategy: AggregatePhaseStrategy) -> Lowering {
        Lowering { columns: ColumnMaker::new(), phase_strategy }
    }

    /// Lowers a plan with its inputs.
    pub(super) fn node(&mut self, plan: &LogicalPlan) -> Result<PlanNode> {
        match plan {
            LogicalPlan::TableScan(scan) => source(scan),
            LogicalPlan::Projection(projection) => {
                let input = self.node(&projection.input)?;
                calc(input, None, Some(projection.expr.clone()), &projection.schema)
            }
            LogicalPlan::Filter(filter) => {
                if let Some(ranked) = self.ranked(filter)? {
                    return Ok(ranked);
                }
                let input = self.node(&filter.input)?;
                let schema = Arc::clone(&input.schema);
                calc(input, Some(filter.predicate.clone()), None, &schema)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.node(&alias.input)?;
                Ok(PlanNode { schema: Arc::clone(&alias.schema), ..input })
            }
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| self.node(input)).collect::<Result<_>>()?;
                Ok(PlanNode::new(OperatorSpec::Union, inputs, Arc::clone(&union.schema)))
            }
            LogicalPlan::Values(values) => {
                let spec = OperatorSpec::Values { rows: values.values.clone() };
                Ok(PlanNode::new(spec, Vec::new(), Arc::clone(&values.schema)))
            }
            LogicalPlan::EmptyRelation(empty) => {
                let rows = if empty.produce_one_row { vec![Vec::new()] } else { Vec::new() };
                Ok(PlanNode::new(OperatorSpec::Values { rows }, Vec::new(), Arc::clone(&empty.schema)))
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Limit(limit) => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                    (limit.get_skip_type()?, limit.get_fetch_type()?)
                else {
                    return Err(not_supported("a computed LIMIT"));
                };
                self.limit(&limit.input, skip, fetch)
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_some() => {
                self.sort_limit(sort, 0, sort.fetch.unwrap_or_default())
            }
            // An order that no LIMIT cuts means nothing to whoever reads the rows, and Flink refuses it for whoever sees them.
            LogicalPlan::Sort(_) => Err(endless_sort()),
            LogicalPlan::Window(_) => Err(endless_rank()),
            LogicalPlan::Extension(extension) => self.extension(extension.node.as_ref()),
            other => Err(not_supported(&format!("the operator {}", other.display()))),
        }
    }

    /// Lowers what DataFusion has no node for.
    fn extension(&mut self, node: &dyn UserDefinedLogicalNode) -> Result<PlanNode> {
        if let Some(operation) = node.as_any().downcast_ref::<SetOperation>() {
            let inputs = vec![self.node(&operation.left)?, self.node(&operation.right)?];
            let spec =
                OperatorSpec::SetOperation { is_intersect: operation.is_intersect, is_all: operation.is_all };
            return Ok(PlanNode::new(spec, inputs, Arc::clone(node.schema())));
        }
        if let Some(unnest) = node.as_any().downcast_ref::<Unnest>() {
            let spec = OperatorSpec::Unnest {
                column: unnest.position()?,
                is_outer: unnest.is_outer,
                with_ordinality: unnest.with_ordinality,
            };
            let input = self.node(&unnest.input)?;
            return Ok(PlanNode::new(spec, vec![input], Arc::clone(node.schema())));
        }
        Err(not_supported(&format!("the operator {}", node.name())))
    }

    /// Lowers LIMIT: over ORDER BY it is a Top-N, also where a projection stands between them.
    fn limit(&mut self, input: &LogicalPlan, skip: usize, fetch: Option<usize>) -> Result<PlanNode> {
        match (input, fetch) {
            (LogicalPlan::Sort(sort), Some(fetch)) => self.sort_limit(sort, skip, fetch),
            (LogicalPlan::Projection(Projection { expr, input, schema, .. }), Some(_)) if sorts(input) => {
                let input = self.limit(input, skip, fetch)?;
                calc(input, None, Some(expr.clone()), schema)
            }
            (LogicalPlan::SubqueryAlias(alias), Some(_)) if sorts(&alias.input) => {
                let input = self.limit(&alias.input, skip, fetch)?;
                Ok(PlanNode { schema: Arc::clone(&alias.schema), ..input })
            }
            _ => {
                let input = self.node(input)?;
                let schema = Arc::clone(&input.schema);
                Ok(PlanNode::new(OperatorSpec::Limit { skip, fetch }, vec![input], schema))
            }
        }
    }
}

/// Returns whether the rows of a plan are sorted by it.
fn sorts(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => sorts(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => sorts(&alias.input),
        _ => false,
    }
}

/// Lowers a scan.
fn source(scan: &TableScan) -> Result<PlanNode> {
    let table = source_table(scan).ok_or_else(|| Error::internal("a scan of something that is no source"))?;
    let mode = table.source.changelog_mode();
    let is_upsert = mode.contains(RowKind::UpdateAfter) && !mode.contains(RowKind::UpdateBefore);
    if is_upsert && table.key_columns().is_none() {
        return Err(Error::validation(format!(
            "Table '{}' produces a changelog stream that contains UPDATE_AFTER but no UPDATE_BEFORE. This requires defining a primary key constraint on the table.",
            table.name
        ))
        .class(FlinkClass::TABLE)
        .hint("Add PRIMARY KEY (…) NOT ENFORCED to the table."));
    }
    let all = || (0..scan.source.schema().fields().len()).collect();
    let columns = scan.projection.clone().unwrap_or_else(all);
    let spec = OperatorSpec::Source { table: Box::new(table), columns };
    let source = PlanNode::new(spec, Vec::new(), Arc::clone(&scan.projected_schema));
    let condition = scan.filters.iter().cloned().reduce(Expr::and);
    calc(source, condition, None, &scan.projected_schema)
}
