//! A job's graph as EXPLAIN's trees: from the sinks down, with an Exchange wherever rows change the worker.

use std::collections::HashMap;
use std::fmt::{self, Write};

use super::cost::cost_text;
use super::operator::{columns, describe};
use crate::changelog::{ChangelogMode, RowKind};
use crate::plan::graph::{Distribution, GraphNode, JobGraph, NodeId, OperatorSpec};

/// What is written behind the attributes of each operator.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GraphDetails {
    /// `changelogMode=[…]`.
    pub(crate) changelog_mode: bool,
    /// Rows and costs.
    pub(crate) cost: bool,
    /// What several operators read is written once and referred to.
    pub(crate) reuse: bool,
}

/// Writes the trees of a graph.
pub(crate) fn graph_text(graph: &JobGraph, details: GraphDetails) -> String {
    let mut writer = GraphWriter { graph, details, out: String::new(), reused: HashMap::new() };
    for (number, root) in graph.roots().into_iter().enumerate() {
        if number > 0 {
            writer.out.push('\n');
        }
        // What a query's rows end in is no operator of Flink's.
        let root = match (&graph.nodes[root].spec, graph.nodes[root].inputs.first()) {
            (OperatorSpec::Collect, Some(edge)) => edge.node,
            _ => root,
        };
        writer.node(root, "", "");
    }
    writer.out
}

/// Writes a graph.
struct GraphWriter<'a> {
    graph: &'a JobGraph,
    details: GraphDetails,
    out: String,
    /// The numbers of nodes that are read more than once and have been written.
    reused: HashMap<NodeId, usize>,
}

impl GraphWriter<'_> {
    /// Writes a node and what is below it.
    fn node(&mut self, id: NodeId, first: &str, rest: &str) {
        if let Some(number) = self.reused.get(&id) {
            let _ = writeln!(self.out, "{first}Reused(reference_id=[{number}])");
            return;
        }
        let node = &self.graph.nodes[id];
        let mut reuse = String::new();
        if self.details.reuse && self.graph.readers(id) > 1 {
            let number = self.reused.len() + 1;
            self.reused.insert(id, number);
            reuse = format!("(reuse_id=[{number}])");
        }
        let inputs: Vec<_> =
            node.inputs.iter().map(|edge| self.graph.nodes[edge.node].schema.as_ref()).collect();
        let text = describe(&node.spec, &inputs, &node.schema);
        let mut attributes = text.attributes;
        attributes.extend(self.mode(node.mode));
        let attributes =
            if attributes.is_empty() { String::new() } else { format!("({})", attributes.join(", ")) };
        let cost = self.cost(id, false);
        let _ = writeln!(self.out, "{first}{}{attributes}{cost}{reuse}", text.name);
        for (number, edge) in node.inputs.iter().enumerate() {
            let is_last = number + 1 == node.inputs.len();
            let (mark, line) = if is_last { ("+- ", "   ") } else { (":- ", ":  ") };
            let (mut mark, mut line) = (format!("{rest}{mark}"), format!("{rest}{line}"));
            if edge.distribution != Distribution::Forward {
                self.exchange(&edge.distribution, edge.node, node, &mark);
                mark = format!("{line}+- ");
                line.push_str("   ");
            }
            self.node(edge.node, &mark, &line);
        }
    }

    /// Writes an exchange.
    fn exchange(&mut self, distribution: &Distribution, input: NodeId, reader: &GraphNode, first: &str) {
        let input_node = &self.graph.nodes[input];
        let distribution = match distribution {
            Distribution::Forward => "forward".to_owned(),
            Distribution::Singleton => "single".to_owned(),
            Distribution::Hash(keys) => format!("hash[{}]", columns(keys, &input_node.schema)),
        };
        let mode = exchanged(input_node.mode, reader);
        let attributes = std::iter::once(format!("distribution=[{distribution}]")).chain(self.mode(mode));
        let attributes = attributes.collect::<Vec<_>>().join(", ");
        let cost = self.cost(input, true);
        let _ = writeln!(self.out, "{first}Exchange({attributes}){cost}");
    }

    /// Writes the kinds of a node, if they are asked for.
    fn mode(&self, mode: ChangelogMode) -> Option<String> {
        let text = if mode == ChangelogMode::of(&[]) { "[NONE]".to_owned() } else { mode.to_string() };
        self.details.changelog_mode.then(|| format!("changelogMode={text}"))
    }

    /// Writes the cost of a node, or of an exchange above it, if it is asked for.
    fn cost(&self, id: NodeId, is_exchange: bool) -> String {
        if self.details.cost { cost_text(self.graph, id, is_exchange) } else { String::new() }
    }
}

/// Returns the kinds that cross an exchange: upserts hold insertions too for whoever does not ask which is which.
fn exchanged(mode: ChangelogMode, reader: &GraphNode) -> ChangelogMode {
    let is_upsert = mode.contains(RowKind::UpdateAfter) && !mode.contains(RowKind::Insert);
    let completes = matches!(reader.spec, OperatorSpec::ChangelogNormalize(_));
    if is_upsert && !completes { mode.union(ChangelogMode::INSERT_ONLY) } else { mode }
}

/// Prints the graph as EXPLAIN CHANGELOG_MODE does, what is shared once.
impl fmt::Display for JobGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&graph_text(self, GraphDetails { changelog_mode: true, reuse: true, cost: false }))
    }
}
