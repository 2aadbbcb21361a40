//! The one match over all operators that a graph may name.

use super::{Calc, ExpandOperator, GroupAggregateOperator, JoinOperator, Limit, Operator, Union};
use crate::error::{Error, Result};
use crate::plan::{GraphNode, OperatorSpec};

/// Builds the operator of a node whose inputs are given. Sources, constant rows and sinks are no operators: the worker is.
///
/// # Errors
/// An expression cannot be compiled, or the operator does not exist yet.
pub(crate) fn build(node: &GraphNode, inputs: &[&GraphNode]) -> Result<Box<dyn Operator>> {
    Ok(match &node.spec {
        OperatorSpec::Calc { condition, projection } => {
            Box::new(Calc::new(&inputs[0].schema, condition.as_ref(), projection.as_deref(), &node.schema)?)
        }
        OperatorSpec::Union => Box::new(Union::new(node.arrow_schema())),
        OperatorSpec::Expand { sets, groups, ids } => {
            Box::new(ExpandOperator::new(sets, groups, ids, node.arrow_schema())?)
        }
        OperatorSpec::GroupAggregate(spec) => {
            let inputs = [inputs[0].arrow_schema().clone()];
            Box::new(GroupAggregateOperator::new(spec, &inputs, node.arrow_schema())?)
        }
        OperatorSpec::Join(spec) => {
            let (left, right) = (inputs[0], inputs[1]);
            let schemas = [left.arrow_schema().clone(), right.arrow_schema().clone()];
            Box::new(JoinOperator::new(spec, &schemas, [left.mode, right.mode], node.arrow_schema())?)
        }
        OperatorSpec::Limit { skip, fetch } => Box::new(Limit::new(*skip, *fetch)),
        spec => {
            return Err(Error::unsupported(format!(
                "the operator {} in streaming mode is not supported yet",
                operator_name(spec)
            ))
            .hint("SET 'execution.runtime-mode' = 'batch' answers the query over bounded tables."));
        }
    })
}

/// Returns what EXPLAIN calls an operator.
pub(crate) fn operator_name(spec: &OperatorSpec) -> &'static str {
    match spec {
        OperatorSpec::Source { .. } => "TableSourceScan",
        OperatorSpec::Values { .. } => "Values",
        OperatorSpec::Calc { .. } => "Calc",
        OperatorSpec::Union => "Union",
        OperatorSpec::Expand { .. } => "Expand",
        OperatorSpec::GroupAggregate(_) => "GroupAggregate",
        OperatorSpec::Join(_) => "Join",
        OperatorSpec::MultiJoin { .. } => "MultiJoin",
        OperatorSpec::TopN(_) => "Rank",
        OperatorSpec::Deduplicate { .. } => "Deduplicate",
        OperatorSpec::Limit { .. } => "Limit",
        OperatorSpec::ChangelogNormalize { .. } => "ChangelogNormalize",
        OperatorSpec::DropUpdateBefore => "DropUpdateBefore",
        OperatorSpec::SetOperation { .. } => "SetOperation",
        OperatorSpec::Unnest { .. } => "Correlate",
        OperatorSpec::SinkUpsertMaterialize { .. } => "SinkUpsertMaterializer",
        OperatorSpec::Sink(_) => "Sink",
        OperatorSpec::Collect => "Collect",
    }
}
