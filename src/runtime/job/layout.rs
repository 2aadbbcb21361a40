//! How a graph runs on a number of workers: where each node's rows go, and in which phase of an epoch a node ends its part.
//!
//! An edge that moves rows between workers ends a phase: what lies behind it can only say its last word once all workers have
//! said theirs. With one worker nothing moves, and an epoch has a single phase.

use std::collections::BTreeSet;

use crate::changelog::ChangelogMode;
use crate::plan::{Distribution, JobGraph, NodeId, OperatorSpec};
use crate::state::owner;

/// How a graph runs.
#[derive(Debug)]
pub(super) struct Layout {
    /// How many workers there are.
    pub(super) workers: usize,
    /// How many phases an epoch has; all but the last end with an exchange.
    pub(super) phase_count: usize,
    /// The nodes, as in the graph.
    pub(super) nodes: Vec<NodeLayout>,
}

/// Where a node stands.
#[derive(Debug)]
pub(super) struct NodeLayout {
    /// The phase at whose end the node's epoch ends.
    pub(super) phase: usize,
    /// Which kinds its rows may have.
    pub(super) mode: ChangelogMode,
    /// Whether only the first worker ever has rows of it.
    pub(super) is_singleton: bool,
    /// Who reads its rows.
    pub(super) readers: Vec<Route>,
    /// Of a source: the nodes that must take its rows back when its table is cleared, the first ones on all ways that keep any.
    pub(super) keepers: Vec<NodeId>,
}

/// A way of rows to an input of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The reading node.
    pub(super) node: NodeId,
    /// Its input.
    pub(super) input: usize,
    /// To which workers.
    pub(super) way: Way,
}

/// To which worker a row goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// The one that has it.
    Stay,
    /// The first.
    First,
    /// The owner of the key group of these columns.
    Owner(Vec<usize>),
}

/// Which worker has which of a node's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// The first has all.
    First,
    /// The owner of a key, or whichever decoded them.
    Scattered,
}

impl Layout {
    /// Lays a graph out.
    pub(super) fn new(graph: &JobGraph, workers: usize) -> Layout {
        let mut nodes: Vec<NodeLayout> = Vec::with_capacity(graph.nodes.len());
        let mut placements: Vec<Placement> = Vec::with_capacity(graph.nodes.len());
        for (at, node) in graph.nodes.iter().enumerate() {
            let mut phase = 0;
            let mut placement = None;
            for (input, edge) in node.inputs.iter().enumerate() {
                let from = placements[edge.node];
                let way = way(&edge.distribution, from, workers);
                let is_exchange = way != Way::Stay;
                phase = phase.max(nodes[edge.node].phase + usize::from(is_exchange));
                let arrives = match way {
                    Way::Stay => from,
                    Way::First => Placement::First,
                    Way::Owner(_) => Placement::Scattered,
                };
                let is_first = arrives == Placement::First && placement != Some(Placement::Scattered);
                placement = Some(if is_first { Placement::First } else { Placement::Scattered });
                nodes[edge.node].readers.push(Route { node: at, input, way });
            }
            let placement = placement.unwrap_or(match &node.spec {
                OperatorSpec::Source { .. } | OperatorSpec::Values { .. } if workers > 1 => {
                    Placement::Scattered
                }
                _ => Placement::First,
            });
            placements.push(placement);
            nodes.push(NodeLayout {
                phase,
                mode: node.mode,
                is_singleton: placement == Placement::First,
                readers: Vec::new(),
                keepers: Vec::new(),
            });
        }
        for (at, node) in graph.nodes.iter().enumerate() {
            if matches!(node.spec, OperatorSpec::Source { .. }) {
                nodes[at].keepers = keepers(graph, &nodes, at);
            }
        }
        let phase_count = nodes.iter().map(|node| node.phase + 1).max().unwrap_or(1);
        Layout { workers, phase_count, nodes }
    }

    /// Returns whether rows may change workers on their way from a node to another.
    pub(super) fn has_exchange(&self, from: NodeId, to: NodeId) -> bool {
        self.nodes[from].readers.iter().any(|route| route.node == to && route.way != Way::Stay)
    }

    /// Returns whether a worker, or its writer, has the rows of a node's state that belong to a key group. Where all rows of a node
    /// are on the first worker, so is its state, whatever the key group.
    pub(super) fn owns(&self, node: NodeId, worker: usize, group: u8) -> bool {
        if self.nodes[node].is_singleton { worker == 0 } else { owner(group, self.workers) == worker }
    }

    /// Returns how many workers have rows of a node.
    pub(super) fn worker_count(&self, node: NodeId) -> usize {
        if self.nodes[node].is_singleton { 1 } else { self.workers }
    }
}

/// Returns the first nodes behind another that do more with a row than to pass it on.
fn keepers(graph: &JobGraph, nodes: &[NodeLayout], from: NodeId) -> Vec<NodeId> {
    let mut found = BTreeSet::new();
    let mut ways = vec![from];
    while let Some(node) = ways.pop() {
        for route in &nodes[node].readers {
            match graph.nodes[route.node].spec {
                OperatorSpec::Calc { .. } | OperatorSpec::DropUpdateBefore => ways.push(route.node),
                _ => {
                    found.insert(route.node);
                }
            }
        }
    }
    found.into_iter().collect()
}

/// Returns how rows come to a reader.
fn way(distribution: &Distribution, from: Placement, workers: usize) -> Way {
    if workers == 1 {
        return Way::Stay;
    }
    match distribution {
        Distribution::Singleton if from == Placement::First => Way::Stay,
        Distribution::Singleton => Way::First,
        Distribution::Hash(columns) if columns.is_empty() && from == Placement::First => Way::Stay,
        Distribution::Hash(columns) if columns.is_empty() => Way::First,
        Distribution::Hash(columns) => Way::Owner(columns.clone()),
        Distribution::Forward => Way::Stay,
    }
}
