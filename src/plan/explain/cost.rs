//! EXPLAIN ESTIMATED_COST: how many rows an operator is expected to yield, and what it takes to get there. Where a source cannot
//! tell how much it holds, Flink's assumption of 1.0E8 rows stands.

use crate::plan::graph::{JobGraph, NodeId, OperatorSpec};

/// Rows of a source that does not know.
const ROWS_UNKNOWN: f64 = 1.0e8;

/// Bytes of a value whose type has no fixed width.
const BYTES_VARIABLE: f64 = 12.0;

/// The part of the rows that a filter is taken to let through.
const FILTER_SELECTIVITY: f64 = 0.5;

/// What a plan takes, from its sources up to some operator.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cost {
    rows: f64,
    cpu: f64,
    io: f64,
    network: f64,
    memory: f64,
}

/// Writes rows and cost of a node, or of the exchange above it if `is_exchange` is set.
pub(super) fn cost_text(graph: &JobGraph, id: NodeId, is_exchange: bool) -> String {
    let rows = row_count(graph, id);
    let mut cost = cumulative(graph, id);
    if is_exchange {
        cost = crossed(graph, id, cost);
    }
    format!(
        ": rowcount = {}, cumulative cost = {{{} rows, {} cpu, {} io, {} network, {} memory}}",
        number(rows),
        number(cost.rows),
        number(cost.cpu),
        number(cost.io),
        number(cost.network),
        number(cost.memory)
    )
}

/// Returns how many rows a node is expected to yield.
fn row_count(graph: &JobGraph, id: NodeId) -> f64 {
    let node = &graph.nodes[id];
    let inputs = || node.inputs.iter().map(|edge| row_count(graph, edge.node));
    let input = || inputs().next().unwrap_or(0.0);
    match &node.spec {
        OperatorSpec::Source { table, .. } => {
            table.source.estimated_bytes().map_or(ROWS_UNKNOWN, |bytes| bytes as f64 / row_bytes(graph, id))
        }
        OperatorSpec::Values { rows } => rows.len() as f64,
        OperatorSpec::Calc { condition: Some(_), .. } => input() * FILTER_SELECTIVITY,
        OperatorSpec::Union => inputs().sum(),
        OperatorSpec::Expand { sets, .. } => input() * sets.len() as f64,
        OperatorSpec::GroupAggregate(aggregate) if aggregate.keys.is_empty() => 1.0,
        OperatorSpec::Join(_) | OperatorSpec::MultiJoin { .. } => inputs().fold(0.0, f64::max),
        OperatorSpec::TopN(top) if top.partition.is_empty() => input().min((top.last + 1 - top.first) as f64),
        OperatorSpec::Limit { fetch: Some(fetch), .. } => input().min(*fetch as f64),
        _ => input(),
    }
}

/// Returns what a node takes with all that is below it.
fn cumulative(graph: &JobGraph, id: NodeId) -> Cost {
    let node = &graph.nodes[id];
    let mut cost = Cost { rows: row_count(graph, id), ..Cost::default() };
    for edge in &node.inputs {
        let mut below = cumulative(graph, edge.node);
        if edge.distribution != crate::plan::graph::Distribution::Forward {
            below = crossed(graph, edge.node, below);
        }
        cost.rows += below.rows;
        cost.cpu += below.cpu + row_count(graph, edge.node);
        cost.io += below.io;
        cost.network += below.network;
        cost.memory += below.memory;
        if keeps_rows(&node.spec) {
            cost.memory += row_count(graph, edge.node) * row_bytes(graph, edge.node);
        }
    }
    if matches!(node.spec, OperatorSpec::Source { .. }) {
        cost.cpu += cost.rows;
        cost.io += cost.rows * row_bytes(graph, id);
    }
    cost
}

/// Adds an exchange of a node's rows.
fn crossed(graph: &JobGraph, id: NodeId, cost: Cost) -> Cost {
    let rows = row_count(graph, id);
    Cost {
        rows: cost.rows + rows,
        cpu: cost.cpu + rows,
        network: cost.network + rows * row_bytes(graph, id),
        ..cost
    }
}

/// Returns about how many bytes a row of a node has.
fn row_bytes(graph: &JobGraph, id: NodeId) -> f64 {
    let fields = graph.nodes[id].schema.fields();
    let width = |field: &arrow::datatypes::FieldRef| {
        field.data_type().primitive_width().map_or(BYTES_VARIABLE, |width| width as f64)
    };
    fields.iter().map(width).sum::<f64>().max(1.0)
}

/// Returns whether an operator may keep every row of its inputs.
fn keeps_rows(spec: &OperatorSpec) -> bool {
    matches!(
        spec,
        OperatorSpec::GroupAggregate(_)
            | OperatorSpec::Join(_)
            | OperatorSpec::MultiJoin { .. }
            | OperatorSpec::TopN(_)
            | OperatorSpec::Deduplicate { .. }
            | OperatorSpec::ChangelogNormalize(_)
            | OperatorSpec::SetOperation { .. }
            | OperatorSpec::SinkUpsertMaterialize { .. }
    )
}

/// Writes a number as Java does: `1.0E8`, `42.0`.
fn number(value: f64) -> String {
    if value.abs() < 1.0e7 {
        return format!("{value:.1}");
    }
    let exponent = value.abs().log10().floor();
    let mantissa = format!("{:.3}", value / 10_f64.powf(exponent));
    let mantissa = mantissa.trim_end_matches('0');
    let point = if mantissa.ends_with('.') { "0" } else { "" };
    format!("{mantissa}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_java() {
        let texts: Vec<String> = [0.0, 42.0, 1.0e8, 1.69e10, 4.0e8].into_iter().map(number).collect();
        assert_eq!(texts, ["0.0", "42.0", "1.0E8", "1.69E10", "4.0E8"]);
    }
}
