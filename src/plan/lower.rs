//! A logical plan becomes a stream graph. What only inserts is lowered; what updates waits for the changelog engine and is
//! refused by name.

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, SkipType};

use super::batch::source_table;
use super::graph::{Distribution, GraphNode, InputEdge, JobGraph, NodeId, OperatorSpec};
use super::optimise::optimise_streaming;
use crate::changelog::ChangelogMode;
use crate::error::{Error, FlinkClass, Result};

/// Plans a streaming query.
///
/// # Errors
/// The plan holds an operator that is not built yet.
pub(crate) fn lower(plan: LogicalPlan, graph: &mut JobGraph, sink: OperatorSpec) -> Result<()> {
    refuse_updates(&plan)?;
    let schema = DFSchemaRef::clone(plan.schema());
    let input = node(graph, &optimise_streaming(plan)?)?;
    add(graph, sink, &[input], &schema);
    Ok(())
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
fn node(graph: &mut JobGraph, plan: &LogicalPlan) -> Result<NodeId> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let table =
                source_table(scan).ok_or_else(|| Error::internal("a scan of something that is no source"))?;
            let all = || (0..scan.source.schema().fields().len()).collect();
            let columns = scan.projection.clone().unwrap_or_else(all);
            let schema = &scan.projected_schema;
            let spec = OperatorSpec::Source { table: Box::new(table), columns };
            let source = add(graph, spec, &[], schema);
            let condition = scan.filters.iter().cloned().reduce(Expr::and);
            Ok(match condition {
                None => source,
                Some(condition) => {
                    let spec = OperatorSpec::Calc { condition: Some(condition), projection: None };
                    add(graph, spec, &[source], schema)
                }
            })
        }
        LogicalPlan::Projection(projection) => {
            let input = node(graph, &projection.input)?;
            let spec = OperatorSpec::Calc { condition: None, projection: Some(projection.expr.clone()) };
            Ok(add(graph, spec, &[input], &projection.schema))
        }
        LogicalPlan::Filter(filter) => {
            let input = node(graph, &filter.input)?;
            let spec = OperatorSpec::Calc { condition: Some(filter.predicate.clone()), projection: None };
            Ok(add(graph, spec, &[input], filter.input.schema()))
        }
        LogicalPlan::SubqueryAlias(alias) => node(graph, &alias.input),
        LogicalPlan::Union(union) => {
            let inputs =
                union.inputs.iter().map(|input| node(graph, input)).collect::<Result<Vec<NodeId>>>()?;
            Ok(add(graph, OperatorSpec::Union, &inputs, &union.schema))
        }
        LogicalPlan::Values(values) => {
            let spec = OperatorSpec::Values { rows: values.values.clone() };
            Ok(add(graph, spec, &[], &values.schema))
        }
        LogicalPlan::EmptyRelation(empty) => {
            let rows = if empty.produce_one_row { vec![Vec::new()] } else { Vec::new() };
            Ok(add(graph, OperatorSpec::Values { rows }, &[], &empty.schema))
        }
        LogicalPlan::Limit(limit) => {
            let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                (limit.get_skip_type()?, limit.get_fetch_type()?)
            else {
                return Err(not_supported("a computed LIMIT"));
            };
            let input = node(graph, &limit.input)?;
            Ok(add(graph, OperatorSpec::Limit { skip, fetch }, &[input], limit.input.schema()))
        }
        other => Err(not_supported(&format!("the operator {}", other.display()))),
    }
}

/// Adds a node over inputs.
fn add(graph: &mut JobGraph, spec: OperatorSpec, inputs: &[NodeId], schema: &DFSchemaRef) -> NodeId {
    let distribution = match &spec {
        OperatorSpec::Limit { .. } => Distribution::Singleton,
        _ => Distribution::Forward,
    };
    let mode = match &spec {
        OperatorSpec::Source { table, .. } => table.source.changelog_mode(),
        _ => inputs.iter().fold(ChangelogMode::INSERT_ONLY, |mode, input| mode.union(graph.nodes[*input].mode)),
    };
    let edge = |node: &NodeId| InputEdge { node: *node, distribution: distribution.clone() };
    graph.add(GraphNode {
        uid: graph.nodes.len().to_string(),
        spec,
        inputs: inputs.iter().map(edge).collect(),
        schema: DFSchemaRef::clone(schema),
        mode,
        unique_keys: Vec::new(),
    })
}
