//! EXPLAIN JSON_EXECUTION_PLAN: the nodes of a job in the form that Flink's plan visualisers read.

use serde_json::{Value, json};

use super::operator::describe;
use crate::plan::graph::{Distribution, JobGraph, OperatorSpec};

/// Writes a graph as JSON.
pub(crate) fn json_text(graph: &JobGraph) -> String {
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for (id, node) in graph.nodes.iter().enumerate() {
        if matches!(node.spec, OperatorSpec::Collect) {
            continue;
        }
        let inputs: Vec<_> = node.inputs.iter().map(|edge| graph.nodes[edge.node].schema.as_ref()).collect();
        let text = describe(&node.spec, &inputs, &node.schema);
        let number = id + 1;
        let (kind, role, contents) = match &node.spec {
            OperatorSpec::Source { table, .. } => {
                let name = format!("Source: {}", table.name);
                (name.clone(), "Data Source", name)
            }
            OperatorSpec::Sink(sink) => {
                let name = format!("Sink: {}", sink.name);
                (name.clone(), "Data Sink", name)
            }
            _ => (
                format!("{}[{number}]", text.name),
                "Operator",
                format!("[{number}]:{}({})", text.name, text.attributes.join(", ")),
            ),
        };
        let mut entry = json!({
            "id": number,
            "type": kind,
            "pact": role,
            "contents": contents,
        });
        if !node.inputs.is_empty() {
            entry["predecessors"] = node
                .inputs
                .iter()
                .map(|edge| {
                    let strategy = match edge.distribution {
                        Distribution::Forward => "FORWARD",
                        Distribution::Hash(_) => "HASH",
                        Distribution::Singleton => "GLOBAL",
                    };
                    json!({ "id": edge.node + 1, "ship_strategy": strategy, "side": "second" })
                })
                .collect::<Value>();
        }
        nodes.push(entry);
    }
    format!("{:#}", json!({ "nodes": nodes }))
}
