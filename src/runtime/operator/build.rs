//! The one match over all operators that a graph may name.

use arrow::datatypes::SchemaRef;

use super::{
    Calc, ChangelogNormalize, Deduplicate, DropUpdateBefore, ExpandOperator, GroupAggregateOperator,
    JoinOperator, Limit, MultiJoinOperator, Operator, SetOperation, SinkUpsertMaterialize, TopN, Union,
    Unnest,
};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::plan::{GraphNode, OperatorSpec};

/// Builds the operator of a node whose inputs are given. Sources, constant rows and sinks are no operators: the worker is.
///
/// # Errors
/// An expression cannot be compiled, or the operator does not exist yet.
pub(crate) fn build(node: &GraphNode, inputs: &[&GraphNode]) -> Result<Box<dyn Operator>> {
    let output = node.arrow_schema();
    let schema = |input: usize| SchemaRef::clone(inputs[input].arrow_schema());
    Ok(match &node.spec {
        OperatorSpec::Calc { condition, projection } => {
            Box::new(Calc::new(&inputs[0].schema, condition.as_ref(), projection.as_deref(), &node.schema)?)
        }
        OperatorSpec::Union => Box::new(Union::new(output)),
        OperatorSpec::Expand { sets, groups, ids } => {
            Box::new(ExpandOperator::new(sets, groups, ids, output)?)
        }
        OperatorSpec::GroupAggregate(spec) => {
            Box::new(GroupAggregateOperator::new(spec, &[schema(0)], output)?)
        }
        OperatorSpec::Join(spec) => Box::new(JoinOperator::new(spec, inputs, output)?),
        OperatorSpec::MultiJoin { keys, is_optional } => {
            Box::new(MultiJoinOperator::new(keys, is_optional, inputs, output)?)
        }
        OperatorSpec::TopN(spec) => Box::new(TopN::new(spec, &schema(0), output)?),
        OperatorSpec::Deduplicate { keys, keeps_last } => {
            Box::new(Deduplicate::new(keys, *keeps_last, &schema(0))?)
        }
        OperatorSpec::Limit { skip, fetch } => {
            let is_insert_only = inputs[0].mode.is_subset_of(ChangelogMode::INSERT_ONLY);
            Box::new(Limit::new(*skip, *fetch, is_insert_only, &schema(0))?)
        }
        OperatorSpec::ChangelogNormalize(spec) => Box::new(ChangelogNormalize::new(spec, &inputs[0].schema)?),
        OperatorSpec::DropUpdateBefore => Box::new(DropUpdateBefore),
        OperatorSpec::SetOperation { is_intersect, is_all } => {
            Box::new(SetOperation::new(*is_intersect, *is_all, output)?)
        }
        OperatorSpec::Unnest { column, is_outer, with_ordinality } => {
            Box::new(Unnest::new(*column, *is_outer, *with_ordinality, &schema(0), output))
        }
        OperatorSpec::SinkUpsertMaterialize { keys } => {
            Box::new(SinkUpsertMaterialize::new(keys, &schema(0))?)
        }
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
