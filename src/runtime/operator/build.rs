//! The one match over all operators that a graph may name.

use super::{
    Calc, ChangelogNormalize, Deduplicate, DropUpdateBefore, Limit, Operator, SetOperation,
    SinkUpsertMaterialize, TopN, Union, Unnest,
};
use crate::changelog::ChangelogMode;
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
        OperatorSpec::TopN(spec) => Box::new(TopN::new(spec, inputs[0].arrow_schema(), node.arrow_schema())?),
        OperatorSpec::Deduplicate { keys, keeps_last } => {
            Box::new(Deduplicate::new(keys, *keeps_last, inputs[0].arrow_schema())?)
        }
        OperatorSpec::Limit { skip, fetch } => {
            let input = inputs[0];
            let is_insert_only = input.mode.is_subset_of(ChangelogMode::INSERT_ONLY);
            Box::new(Limit::new(*skip, *fetch, is_insert_only, input.arrow_schema())?)
        }
        OperatorSpec::ChangelogNormalize(spec) => Box::new(ChangelogNormalize::new(spec, &inputs[0].schema)?),
        OperatorSpec::DropUpdateBefore => Box::new(DropUpdateBefore),
        OperatorSpec::SetOperation { is_intersect, is_all } => {
            Box::new(SetOperation::new(*is_intersect, *is_all, node.arrow_schema())?)
        }
        OperatorSpec::Unnest { column, is_outer, with_ordinality } => Box::new(Unnest::new(
            *column,
            *is_outer,
            *with_ordinality,
            inputs[0].arrow_schema(),
            node.arrow_schema(),
        )),
        OperatorSpec::SinkUpsertMaterialize { keys } => {
            Box::new(SinkUpsertMaterialize::new(keys, inputs[0].arrow_schema())?)
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
