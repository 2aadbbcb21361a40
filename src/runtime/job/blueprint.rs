//! A job's graph made ready to be started, again and again: who has which part of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::exchange::Exchange;
use super::layout::Layout;
use super::outbox::{Outbox, Recipient};
use super::settings::JobSettings;
use super::stage::{SourceDecoder, Stage, constant_rows};
use super::worker::Worker;
use super::writer_task::WriterMessage;
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::{Projection, TableRead};
use crate::error::{Error, Result};
use crate::plan::{GraphNode, JobGraph, NodeId, OperatorSpec, SinkSpec, SourceTable, state_meaning};
use crate::runtime::checkpoint::{Claims, OperatorChanges, OperatorClaim};
use crate::runtime::operator::{self, LocalGroupAggregate, operator_name};
use crate::state::{StateChanges, StateTable};

/// A graph with its layout.
#[derive(Debug)]
pub(super) struct Blueprint {
    graph: JobGraph,
    layout: Arc<Layout>,
    uids: Arc<Vec<String>>,
    is_per_record: bool,
    /// The tables of the operators and sinks that keep state.
    state_tables: BTreeMap<NodeId, Vec<StateTable>>,
}

/// Returns what a sink is known by to its connector.
pub(super) fn sink_id(job: u128, uid: &str) -> String {
    format!("{job:032x}/{uid}")
}

/// A sink of the graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sink<'a> {
    /// Its node.
    pub(super) node: NodeId,
    /// What it writes.
    pub(super) spec: &'a SinkSpec,
    /// How many writers it has.
    pub(super) writer_count: usize,
    /// The kinds of the rows that it gets.
    pub(super) mode: ChangelogMode,
}

/// Where the rows of sinks go, by node and worker.
pub(super) type Writers = BTreeMap<NodeId, Vec<mpsc::Sender<WriterMessage>>>;

impl Blueprint {
    /// Lays a graph out, and builds every operator once to see that it can be.
    ///
    /// # Errors
    /// An operator does not exist yet or an expression cannot be compiled.
    pub(super) fn new(graph: JobGraph, settings: &JobSettings) -> Result<Blueprint> {
        if settings.workers == 0 || (settings.is_per_record && settings.workers != 1) {
            return Err(Error::internal("a job that takes rows one by one has exactly one worker"));
        }
        let layout = Arc::new(Layout::new(&graph, settings.workers));
        let uids = Arc::new(graph.nodes.iter().map(|node| node.uid.clone()).collect());
        let mut state_tables = BTreeMap::new();
        for (node, spec) in graph.nodes.iter().enumerate() {
            let tables = match &spec.spec {
                OperatorSpec::Sink(sink) => sink.sink.state_tables(input_mode(&graph, spec)),
                _ if is_operator(&spec.spec) => operator::build(spec, &inputs(&graph, spec))?.state_tables(),
                _ => Vec::new(),
            };
            if !tables.is_empty() {
                state_tables.insert(node, tables);
            }
        }
        Ok(Blueprint { graph, layout, uids, is_per_record: settings.is_per_record, state_tables })
    }

    /// Returns the uids of the nodes.
    pub(super) fn uids(&self) -> &Arc<Vec<String>> {
        &self.uids
    }

    /// Returns the name of a node's operator.
    pub(super) fn name(&self, node: NodeId) -> String {
        match &self.graph.nodes[node].spec {
            OperatorSpec::Source { table, .. } => format!("Source: {}", table.name),
            OperatorSpec::Sink(sink) => format!("Sink: {}", sink.name),
            spec => operator_name(spec).to_owned(),
        }
    }

    /// Returns what a node's state is: the operator and, where its columns do not tell them apart, what it computes. A state of
    /// COUNT means nothing to MAX.
    pub(super) fn state_kind(&self, node: NodeId) -> String {
        let name = self.name(node);
        let node = &self.graph.nodes[node];
        let inputs: Vec<_> = inputs(&self.graph, node).iter().map(|input| input.schema.as_ref()).collect();
        match state_meaning(&node.spec, &inputs) {
            Some(meaning) => format!("{name}({meaning})"),
            None => name,
        }
    }

    /// Returns how many nodes there are.
    pub(super) fn node_count(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Returns how many workers there are.
    pub(super) fn workers(&self) -> usize {
        self.layout.workers
    }

    /// Evaluates the constant rows of all nodes that have any.
    ///
    /// # Errors
    /// A value is out of an expression's domain.
    pub(super) fn values(&self) -> Result<Vec<(NodeId, ChangelogBatch)>> {
        let mut values = Vec::new();
        for (at, node) in self.graph.nodes.iter().enumerate() {
            if let OperatorSpec::Values { rows } = &node.spec {
                values.push((at, constant_rows(rows, node)?));
            }
        }
        Ok(values)
    }

    /// Returns the sources, each with what is read of it.
    pub(super) fn sources(&self) -> impl Iterator<Item = (NodeId, &SourceTable, Projection)> {
        self.graph.nodes.iter().enumerate().filter_map(|(at, node)| match &node.spec {
            OperatorSpec::Source { table, columns } => Some((at, table.as_ref(), table.projection(columns))),
            _ => None,
        })
    }

    /// Returns what each reader reads: its tables' nodes and the tables. Tables of one group have one reader.
    pub(super) fn readers(&self) -> Vec<(Vec<NodeId>, Vec<TableRead<'_>>)> {
        let mut readers: Vec<(Vec<NodeId>, Vec<TableRead<'_>>)> = Vec::new();
        let mut by_group = BTreeMap::new();
        for (node, table, projection) in self.sources() {
            let read = TableRead {
                name: &table.name,
                source: table.source.as_ref(),
                projection,
                wants_update_before: self.wants_update_before(node),
            };
            let next = readers.len();
            let at = table.source.group().map_or(next, |group| *by_group.entry(group).or_insert(next));
            if at == next {
                readers.push((Vec::new(), Vec::new()));
            }
            readers[at].0.push(node);
            readers[at].1.push(read);
        }
        readers
    }

    /// Returns the sinks.
    pub(super) fn sinks(&self) -> impl Iterator<Item = Sink<'_>> {
        self.graph.nodes.iter().enumerate().filter_map(|(at, node)| match &node.spec {
            OperatorSpec::Sink(spec) => {
                let mode = input_mode(&self.graph, node);
                Some(Sink { node: at, spec, writer_count: self.layout.worker_count(at), mode })
            }
            _ => None,
        })
    }

    /// Returns the tables of a node that keeps state.
    pub(super) fn state_tables(&self, node: NodeId) -> &[StateTable] {
        self.state_tables.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Returns how the graph runs.
    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Puts together what the workers say has changed in each operator that keeps state, also where nothing has.
    pub(super) fn operator_changes(
        &self,
        changes: impl IntoIterator<Item = (NodeId, Vec<StateChanges>)>,
    ) -> Vec<OperatorChanges> {
        let operator = |(node, tables): (&NodeId, &Vec<StateTable>)| {
            let (uid, kind) = (self.uids[*node].clone(), self.state_kind(*node));
            (*node, OperatorChanges { uid, kind, tables: tables.clone(), workers: Vec::new() })
        };
        let mut operators: BTreeMap<NodeId, OperatorChanges> =
            self.state_tables.iter().map(operator).collect();
        for (node, changes) in changes {
            if let Some(operator) = operators.get_mut(&node) {
                operator.workers.push(changes);
            }
        }
        operators.into_values().collect()
    }

    /// Returns what is to be found in a checkpoint.
    pub(super) fn claims(&self) -> Claims {
        let operators = self.state_tables.iter().map(|(node, tables)| OperatorClaim {
            uid: self.uids[*node].clone(),
            kind: self.state_kind(*node),
            tables: tables.clone(),
        });
        Claims {
            operators: operators.collect(),
            sources: self
                .graph
                .nodes
                .iter()
                .filter(|node| is_source(&node.spec))
                .map(|node| node.uid.clone())
                .collect(),
            sinks: self.sinks().map(|sink| self.uids[sink.node].clone()).collect(),
            keepers: self.keepers(),
        }
    }

    /// Returns who must know every row of a source, whose table may be emptied: the uids of both.
    fn keepers(&self) -> Vec<(String, String)> {
        let clearable = self.sources().filter(|(_, table, _)| table.source.may_be_cleared());
        let keepers = |(source, ..): (NodeId, &SourceTable, Projection)| {
            let keepers = self.layout.nodes[source].keepers.iter();
            keepers.map(move |keeper| (self.uids[*keeper].clone(), self.uids[source].clone()))
        };
        clearable.flat_map(keepers).collect()
    }

    /// Builds all workers.
    ///
    /// # Errors
    /// An operator or a decoder cannot be built.
    pub(super) fn workers_for(
        &self,
        writers: &Writers,
        reader: Option<&mpsc::Sender<Result<ChangelogBatch>>>,
        exchange: &Arc<Exchange>,
    ) -> Result<Vec<Worker>> {
        let worker = |number| {
            let stages = self.stages(number, writers, reader, exchange)?;
            let local_aggregates = self.local_aggregates()?;
            let (layout, exchange) = (Arc::clone(&self.layout), Arc::clone(exchange));
            let uids = Arc::clone(&self.uids);
            Ok(Worker::new(number, layout, exchange, stages, local_aggregates, uids, self.is_per_record))
        };
        (0..self.layout.workers).map(worker).collect()
    }

    /// Makes what groups rows before they are handed to other workers, by node.
    fn local_aggregates(&self) -> Result<Vec<Option<LocalGroupAggregate>>> {
        let local = |(at, node): (NodeId, &GraphNode)| match (&node.spec, node.inputs.as_slice()) {
            (OperatorSpec::GroupAggregate(spec), [edge]) if self.layout.has_exchange(edge.node, at) => {
                let input = self.graph.nodes[edge.node].arrow_schema();
                LocalGroupAggregate::new(spec, input, node.arrow_schema())
            }
            _ => Ok(None),
        };
        self.graph.nodes.iter().enumerate().map(local).collect()
    }

    /// Returns whether anyone takes the `-U` of a node.
    fn wants_update_before(&self, source: NodeId) -> bool {
        let is_consumer = |node: &&GraphNode| node.inputs.iter().any(|edge| edge.node == source);
        let mut consumers = self.graph.nodes.iter().filter(is_consumer);
        !consumers.all(|node| matches!(node.spec, OperatorSpec::DropUpdateBefore))
    }

    /// Makes what the nodes are on a worker.
    fn stages(
        &self,
        worker: usize,
        writers: &Writers,
        reader: Option<&mpsc::Sender<Result<ChangelogBatch>>>,
        exchange: &Exchange,
    ) -> Result<Vec<Stage>> {
        let stage = |(at, node): (NodeId, &GraphNode)| {
            if worker > 0 && self.layout.nodes[at].is_singleton {
                return Ok(Stage::Absent);
            }
            Ok(match &node.spec {
                OperatorSpec::Source { table, columns } => {
                    let wants_update_before = self.wants_update_before(at);
                    Stage::Source(SourceDecoder::new(
                        table,
                        columns,
                        node.arrow_schema(),
                        wants_update_before,
                    )?)
                }
                OperatorSpec::Values { .. } => Stage::Values,
                OperatorSpec::Sink(_) => {
                    let writer = writers.get(&at).and_then(|writers| writers.get(worker));
                    let writer = writer.ok_or_else(|| Error::internal("a sink has no writer"))?;
                    Stage::Sink(Outbox::new(Recipient::Writer(writer.clone()), exchange.watch_abort()))
                }
                OperatorSpec::Collect => {
                    let reader = reader.ok_or_else(|| Error::internal("nobody reads the rows of a query"))?;
                    Stage::Sink(Outbox::new(Recipient::Reader(reader.clone()), exchange.watch_abort()))
                }
                _ => Stage::Operator(operator::build(node, &inputs(&self.graph, node))?),
            })
        };
        self.graph.nodes.iter().enumerate().map(stage).collect()
    }
}

/// Returns the kinds of the rows that a sink gets.
fn input_mode(graph: &JobGraph, node: &GraphNode) -> ChangelogMode {
    inputs(graph, node).iter().fold(ChangelogMode::of(&[]), |mode, input| mode.union(input.mode))
}

/// Returns whether rows come into the graph here.
fn is_source(spec: &OperatorSpec) -> bool {
    matches!(spec, OperatorSpec::Source { .. } | OperatorSpec::Values { .. })
}

/// Returns whether a node is one that `operator::build` builds.
fn is_operator(spec: &OperatorSpec) -> bool {
    !is_source(spec) && !matches!(spec, OperatorSpec::Sink(_) | OperatorSpec::Collect)
}

/// Returns the nodes that a node reads.
fn inputs<'a>(graph: &'a JobGraph, node: &GraphNode) -> Vec<&'a GraphNode> {
    node.inputs.iter().map(|edge| &graph.nodes[edge.node]).collect()
}
