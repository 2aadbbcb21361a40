//! A logical plan becomes a stream graph. What only inserts is lowered; what updates waits for the changelog engine and is
//! refused by name.

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, SkipType};

use super::batch::source_table;
use super::optimise::optimise_streaming;
use super::provider::SourceTable;
use crate::error::{Error, FlinkClass, Result};

/// A node with its inputs.
#[derive(Debug, Clone)]
pub(crate) enum StreamNode {
    /// Reads columns of a table.
    Source {
        /// The table.
        table: Box<SourceTable>,
        /// Positions in the table's read schema; physical columns before metadata.
        columns: Vec<usize>,
    },
    /// Constant rows.
    Values {
        /// One list of constant expressions per row.
        rows: Vec<Vec<Expr>>,
        /// The columns.
        schema: DFSchemaRef,
    },
    /// Keeps rows and computes columns.
    Calc {
        /// Where rows come from.
        input: Box<StreamNode>,
        /// The input's columns.
        input_schema: DFSchemaRef,
        /// What rows must fulfil.
        condition: Option<Expr>,
        /// The output columns; None passes all on.
        projection: Option<Vec<Expr>>,
        /// The output's columns.
        schema: DFSchemaRef,
    },
    /// All rows of all inputs.
    Union {
        /// The inputs, of equal types.
        inputs: Vec<StreamNode>,
    },
    /// The first rows to arrive.
    Limit {
        /// Where rows come from.
        input: Box<StreamNode>,
        /// How many are left out.
        skip: usize,
        /// How many are kept.
        fetch: Option<usize>,
    },
}

/// Plans a streaming query.
///
/// # Errors
/// The plan holds an operator that is not built yet.
pub(crate) fn lower(plan: LogicalPlan) -> Result<StreamNode> {
    refuse_updates(&plan)?;
    node(&optimise_streaming(plan)?)
}

/// Refuses operators that are not built yet, before any rule has changed what the user wrote.
fn refuse_updates(plan: &LogicalPlan) -> Result<()> {
    let what = match plan {
        LogicalPlan::Aggregate(_) => Some("GROUP BY and aggregates"),
        LogicalPlan::Distinct(_) => Some("DISTINCT and UNION without ALL"),
        LogicalPlan::Join(_) => Some("a join"),
        LogicalPlan::Sort(_) => Some("ORDER BY"),
        LogicalPlan::Window(_) => Some("a window function"),
        LogicalPlan::Subquery(_) => Some("a subquery in an expression"),
        _ => None,
    };
    let holds_subquery = plan.expressions().iter().any(|expr| {
        use datafusion::common::tree_node::TreeNode;
        expr.exists(|expr| {
            Ok(matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_)))
        })
        .unwrap_or(false)
    });
    match what.or(holds_subquery.then_some("a subquery in an expression")) {
        Some(what) => Err(not_supported(what)),
        None => plan.inputs().into_iter().try_for_each(refuse_updates),
    }
}

/// Makes the error for an operator that is not built yet.
fn not_supported(what: &str) -> Error {
    Error::unsupported(format!("{what} in streaming mode is not supported yet"))
        .class(FlinkClass::TABLE)
        .hint("SET 'execution.runtime-mode' = 'batch' answers the query over bounded tables.")
}

/// Lowers a node with its inputs.
fn node(plan: &LogicalPlan) -> Result<StreamNode> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let table =
                source_table(scan).ok_or_else(|| Error::internal("a scan of something that is no source"))?;
            let all = || (0..scan.source.schema().fields().len()).collect();
            let columns = scan.projection.clone().unwrap_or_else(all);
            let source = StreamNode::Source { table: Box::new(table), columns };
            let condition = scan.filters.iter().cloned().reduce(datafusion::logical_expr::Expr::and);
            Ok(match condition {
                None => source,
                Some(condition) => {
                    calc(source, &scan.projected_schema, Some(condition), None, &scan.projected_schema)
                }
            })
        }
        LogicalPlan::Projection(projection) => Ok(calc(
            node(&projection.input)?,
            projection.input.schema(),
            None,
            Some(projection.expr.clone()),
            &projection.schema,
        )),
        LogicalPlan::Filter(filter) => Ok(calc(
            node(&filter.input)?,
            filter.input.schema(),
            Some(filter.predicate.clone()),
            None,
            filter.input.schema(),
        )),
        LogicalPlan::SubqueryAlias(alias) => node(&alias.input),
        LogicalPlan::Union(union) => Ok(StreamNode::Union {
            inputs: union.inputs.iter().map(|input| node(input)).collect::<Result<_>>()?,
        }),
        LogicalPlan::Values(values) => {
            Ok(StreamNode::Values { rows: values.values.clone(), schema: DFSchemaRef::clone(&values.schema) })
        }
        LogicalPlan::EmptyRelation(empty) => Ok(StreamNode::Values {
            rows: if empty.produce_one_row { vec![Vec::new()] } else { Vec::new() },
            schema: DFSchemaRef::clone(&empty.schema),
        }),
        LogicalPlan::Limit(limit) => {
            let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                (limit.get_skip_type()?, limit.get_fetch_type()?)
            else {
                return Err(not_supported("a computed LIMIT"));
            };
            Ok(StreamNode::Limit { input: Box::new(node(&limit.input)?), skip, fetch })
        }
        other => Err(not_supported(&format!("the operator {}", other.display()))),
    }
}

/// Makes a calc.
fn calc(
    input: StreamNode,
    input_schema: &DFSchemaRef,
    condition: Option<datafusion::logical_expr::Expr>,
    projection: Option<Vec<datafusion::logical_expr::Expr>>,
    schema: &DFSchemaRef,
) -> StreamNode {
    StreamNode::Calc {
        input: Box::new(input),
        input_schema: DFSchemaRef::clone(input_schema),
        condition,
        projection,
        schema: DFSchemaRef::clone(schema),
    }
}
