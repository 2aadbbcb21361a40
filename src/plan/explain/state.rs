//! EXPLAIN PLAN_ADVICE, our own section: what each operator keeps for as long as the job runs. It is what memory and checkpoints
//! are made of, so a user who sees "all rows" at a join knows where to look.

use std::fmt::Write;

use super::operator::{columns, describe};
use crate::plan::graph::{
    JobGraph, JoinKind, JoinSpec, JoinUniqueness, OperatorSpec, TopNSpec, TopNStrategy,
};

/// Writes a line per operator that keeps something.
pub(crate) fn state_text(graph: &JobGraph) -> String {
    let mut out = String::new();
    for node in &graph.nodes {
        let inputs: Vec<_> = node.inputs.iter().map(|edge| graph.nodes[edge.node].schema.as_ref()).collect();
        let Some(kept) = kept(&node.spec, &inputs) else { continue };
        let name = describe(&node.spec, &inputs, &node.schema).name;
        let _ = writeln!(out, "{name} ({}): {kept}", node.uid);
    }
    if out.is_empty() { "No operator keeps rows.\n".to_owned() } else { out }
}

/// Says what an operator keeps; None if it keeps nothing.
fn kept(spec: &OperatorSpec, inputs: &[&datafusion::common::DFSchema]) -> Option<String> {
    let key = |keys: &[usize]| {
        if keys.is_empty() { "once".to_owned() } else { format!("per [{}]", columns(keys, inputs[0])) }
    };
    Some(match spec {
        OperatorSpec::GroupAggregate(aggregate) => {
            let mut kept = format!("{} the aggregates' values", key(&aggregate.keys));
            if aggregate.calls.iter().any(|call| call.is_distinct) {
                kept.push_str(", each distinct argument with its count");
            }
            if aggregate.input_retracts && aggregate.calls.iter().any(keeps_values) {
                kept.push_str(", all values of an aggregate whose result a deleted row may change back");
            }
            kept
        }
        OperatorSpec::Join(join) => joined(join),
        OperatorSpec::MultiJoin { .. } => "all rows of all inputs".to_owned(),
        OperatorSpec::TopN(top) => ranked(top, &key(&top.partition)),
        OperatorSpec::Deduplicate { keys, .. } => format!("{} one row", key(keys)),
        OperatorSpec::Limit { .. } => "how many rows have passed, and over changing rows the rows".to_owned(),
        OperatorSpec::ChangelogNormalize(normalize) => format!("{} the last row", key(&normalize.keys)),
        OperatorSpec::SetOperation { .. } => "every distinct row with its counts".to_owned(),
        OperatorSpec::SinkUpsertMaterialize { keys } => format!("{} all rows that claim it", key(keys)),
        OperatorSpec::Source { .. } => "how far it has been read".to_owned(),
        OperatorSpec::Values { .. }
        | OperatorSpec::Calc { .. }
        | OperatorSpec::Union
        | OperatorSpec::Expand { .. }
        | OperatorSpec::DropUpdateBefore
        | OperatorSpec::Unnest { .. }
        | OperatorSpec::Sink(_)
        | OperatorSpec::Collect => return None,
    })
}

/// Returns whether an aggregate needs all its values once rows are taken back.
fn keeps_values(call: &crate::plan::graph::AggregateCall) -> bool {
    use crate::function::AggregateFunction as F;
    !matches!(
        call.function,
        F::Count
            | F::Sum
            | F::Average
            | F::VariancePopulation
            | F::VarianceSample
            | F::DeviationPopulation
            | F::DeviationSample
    )
}

fn joined(join: &JoinSpec) -> String {
    let side = |name: &str, uniqueness: &JoinUniqueness| match uniqueness {
        JoinUniqueness::JoinKey => format!("one {name} row per join key"),
        JoinUniqueness::Key(_) => format!("all {name} rows by their key"),
        JoinUniqueness::None => format!("all {name} rows, equal ones once with their count"),
    };
    let partners = if join.kind == JoinKind::Inner { "" } else { ", and how many partners rows have" };
    let [left, right] = &join.sides;
    format!("{}; {}{partners}", side("left", &left.uniqueness), side("right", &right.uniqueness))
}

fn ranked(top: &TopNSpec, key: &str) -> String {
    match top.strategy {
        TopNStrategy::AppendFast | TopNStrategy::UpdateFast(_) => {
            format!("{key} the first {} rows", top.last)
        }
        TopNStrategy::Retract => format!("{key} all rows in order"),
    }
}
