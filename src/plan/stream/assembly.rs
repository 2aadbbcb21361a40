//! From trees to one graph: sources that several readers share, which worker gets which row, and the names by which state is found
//! again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, TableReference};
use datafusion::logical_expr::Expr;
use xxhash_rust::xxh3::xxh3_64;

use super::keys::same_value;
use super::node::PlanNode;
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::function::cast_target;
use crate::plan::graph::{Distribution, GraphNode, InputEdge, JobGraph, JoinKind, NodeId, OperatorSpec};
use crate::plan::provider::SourceTable;

/// A scan that all readers of one table share.
struct SharedSource {
    table: Box<SourceTable>,
    /// What any of them reads, in the table's order.
    columns: Vec<usize>,
    /// Where it stands, once it is there.
    node: Option<NodeId>,
}

/// Builds a graph.
pub(super) struct Assembly {
    graph: JobGraph,
    sources: Vec<SharedSource>,
    uids: HashSet<String>,
    /// What is computed between the sink and the node that is being placed.
    computed: Vec<String>,
}

/// A node of the graph and how its rows are spread.
struct Placed {
    node: NodeId,
    distribution: Distribution,
}

impl Assembly {
    /// Makes the graph of several plans.
    ///
    /// # Errors
    /// A plan is inconsistent.
    pub(super) fn graph(roots: Vec<PlanNode>) -> Result<JobGraph> {
        let mut assembly = Assembly {
            graph: JobGraph::default(),
            sources: Vec::new(),
            uids: HashSet::new(),
            computed: Vec::new(),
        };
        roots.iter().for_each(|root| assembly.collect_sources(root));
        for root in roots {
            let path = match &root.spec {
                OperatorSpec::Sink(sink) => sink.name.clone(),
                _ => "collect".to_owned(),
            };
            assembly.place(root, &path)?;
        }
        Ok(assembly.graph)
    }

    /// Notes what is read of each table.
    fn collect_sources(&mut self, node: &PlanNode) {
        if let OperatorSpec::Source { table, columns } = &node.spec {
            let shared = match self.shared_source(table) {
                Some(at) => &mut self.sources[at],
                None => {
                    self.sources.push(SharedSource { table: table.clone(), columns: Vec::new(), node: None });
                    let last = self.sources.len() - 1;
                    &mut self.sources[last]
                }
            };
            let all: BTreeSet<usize> = shared.columns.iter().chain(columns).copied().collect();
            shared.columns = all.into_iter().collect();
        }
        node.inputs.iter().for_each(|input| self.collect_sources(input));
    }

    /// Finds the scan of the same table with the same options.
    fn shared_source(&self, table: &SourceTable) -> Option<usize> {
        self.sources
            .iter()
            .position(|shared| shared.table.name == table.name && shared.table.definition == table.definition)
    }

    /// Puts a node and what is below it into the graph. `path` leads from the sink to the node's consumer.
    fn place(&mut self, node: PlanNode, path: &str) -> Result<Placed> {
        if let OperatorSpec::Source { table, columns } = &node.spec {
            return self.place_source(&node, table, columns);
        }
        let mut place = step(&node.spec, path);
        match &node.spec {
            OperatorSpec::Values { rows } => {
                // The rows have no name but themselves: a job with others must not take them for read.
                let all = format!("{}{}", texts(rows.iter().flatten()), self.computed.concat());
                place = format!("{place}({:016x})", xxh3_64(all.as_bytes()));
            }
            OperatorSpec::Calc { condition, projection } => {
                self.computed.push(texts(condition.iter().chain(projection.iter().flatten())));
            }
            _ => {}
        }
        let is_calc = matches!(node.spec, OperatorSpec::Calc { .. });
        let input_count = node.inputs.len();
        let mut inputs = Vec::with_capacity(input_count);
        let mut spread = Vec::with_capacity(input_count);
        for (number, input) in node.inputs.into_iter().enumerate() {
            let below = self.place(input, &input_path(&node.spec, &place, number, input_count))?;
            let mode = self.graph.nodes[below.node].mode;
            let wanted =
                wanted_distribution(&node.spec, number, below_columns(&self.graph, below.node), mode);
            let distribution =
                if wanted == below.distribution { Distribution::Forward } else { wanted.clone() };
            spread.push(if wanted == Distribution::Forward { below.distribution } else { wanted });
            inputs.push(InputEdge { node: below.node, distribution });
        }
        if is_calc {
            self.computed.pop();
        }
        let distribution = output_distribution(&node.spec, &spread, &self.graph, &inputs);
        let uid = self.unique(place);
        let node = self.graph.add(GraphNode {
            spec: node.spec,
            inputs,
            schema: node.schema,
            mode: node.mode,
            unique_keys: node.unique_keys,
            uid,
        });
        Ok(Placed { node, distribution })
    }

    /// Puts a scan into the graph, or finds it there, and picks the columns of this reader.
    fn place_source(&mut self, node: &PlanNode, table: &SourceTable, columns: &[usize]) -> Result<Placed> {
        let at = self.shared_source(table).ok_or_else(|| Error::internal("a source was not collected"))?;
        let is_alone = self.sources[at].columns == columns;
        let source = match self.sources[at].node {
            Some(source) => source,
            None => {
                let shared = self.sources[at].columns.clone();
                let schema = if is_alone { Arc::clone(&node.schema) } else { shared_schema(table, &shared)? };
                let spec = OperatorSpec::Source { table: self.sources[at].table.clone(), columns: shared };
                let source = PlanNode::new(spec, Vec::new(), schema);
                let uid = self.unique(format!("Source/{}", table.name));
                let source = self.graph.add(GraphNode {
                    spec: source.spec,
                    inputs: Vec::new(),
                    schema: source.schema,
                    mode: source.mode,
                    unique_keys: source.unique_keys,
                    uid,
                });
                self.sources[at].node = Some(source);
                source
            }
        };
        // Two readers of the same columns know them by the names that each has given the table.
        let is_as_read = is_alone && self.graph.nodes[source].schema.columns() == node.schema.columns();
        let node = if is_as_read {
            source
        } else {
            self.pick(source, node, columns, &format!("Source/{}", table.name))?
        };
        Ok(Placed { node, distribution: Distribution::Forward })
    }

    /// Picks one reader's columns from a shared scan.
    fn pick(&mut self, source: NodeId, reader: &PlanNode, columns: &[usize], place: &str) -> Result<NodeId> {
        let shared = &self.graph.nodes[source];
        let OperatorSpec::Source { columns: all, .. } = &shared.spec else {
            return Err(Error::internal("a shared source is none"));
        };
        let names = shared.schema.columns();
        let projection = columns
            .iter()
            .map(|column| {
                all.iter().position(|other| other == column).map(|at| Expr::Column(names[at].clone()))
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::internal("a shared source lacks a reader's column"))?;
        let uid = self.unique(format!("{place}/Calc"));
        Ok(self.graph.add(GraphNode {
            spec: OperatorSpec::Calc { condition: None, projection: Some(projection) },
            inputs: vec![InputEdge { node: source, distribution: Distribution::Forward }],
            schema: Arc::clone(&reader.schema),
            mode: reader.mode,
            unique_keys: reader.unique_keys.clone(),
            uid,
        }))
    }

    /// Makes a name that no other node has.
    fn unique(&mut self, place: String) -> String {
        if self.uids.insert(place.clone()) {
            return place;
        }
        let numbered = (2..).map(|number| format!("{place}#{number}")).find(|name| !self.uids.contains(name));
        let name = numbered.unwrap_or(place);
        self.uids.insert(name.clone());
        name
    }
}

/// Returns the columns of a shared scan.
fn shared_schema(table: &SourceTable, columns: &[usize]) -> Result<DFSchemaRef> {
    let fields = columns
        .iter()
        .map(|column| (None::<TableReference>, Arc::clone(&table.read_schema().fields()[*column])))
        .collect();
    Ok(DFSchema::new_with_metadata(fields, HashMap::new())?.into())
}

/// Returns how many columns a node has.
fn below_columns(graph: &JobGraph, node: NodeId) -> usize {
    graph.nodes[node].schema.fields().len()
}

/// Returns what expressions compute, a line each.
fn texts<'a>(expressions: impl Iterator<Item = &'a Expr>) -> String {
    expressions.map(|expression| format!("{expression}\n")).collect()
}

/// Returns the name of an operator's place. Only those with state are steps on the way: a calc may come and go.
fn step(spec: &OperatorSpec, path: &str) -> String {
    let kind = match spec {
        OperatorSpec::Sink(_) | OperatorSpec::Collect => return path.to_owned(),
        OperatorSpec::Values { .. } => "Values",
        OperatorSpec::GroupAggregate(_) => "GroupAggregate",
        OperatorSpec::Join(_) => "Join",
        OperatorSpec::MultiJoin { .. } => "MultiJoin",
        OperatorSpec::TopN(_) => "TopN",
        OperatorSpec::Deduplicate { .. } => "Deduplicate",
        OperatorSpec::Limit { .. } => "Limit",
        OperatorSpec::ChangelogNormalize(_) => "ChangelogNormalize",
        OperatorSpec::SetOperation { .. } => "SetOperation",
        OperatorSpec::SinkUpsertMaterialize { .. } => "SinkUpsertMaterialize",
        OperatorSpec::Source { .. } => "Source",
        OperatorSpec::Calc { .. } => "Calc",
        OperatorSpec::Union => "Union",
        OperatorSpec::Expand { .. } => "Expand",
        OperatorSpec::Unnest { .. } => "Unnest",
        OperatorSpec::DropUpdateBefore => "DropUpdateBefore",
    };
    format!("{path}/{kind}")
}

/// Returns the path that leads to an input.
fn input_path(spec: &OperatorSpec, place: &str, input: usize, input_count: usize) -> String {
    match spec {
        OperatorSpec::Join(_) | OperatorSpec::SetOperation { .. } => {
            format!("{place}.{}", if input == 0 { "left" } else { "right" })
        }
        OperatorSpec::Union | OperatorSpec::MultiJoin { .. } if input_count > 1 => format!("{place}.{input}"),
        OperatorSpec::Calc { .. }
        | OperatorSpec::Union
        | OperatorSpec::Expand { .. }
        | OperatorSpec::Unnest { .. }
        | OperatorSpec::DropUpdateBefore => {
            place.rsplit_once('/').map_or_else(|| place.to_owned(), |(path, _)| path.to_owned())
        }
        _ => place.to_owned(),
    }
}

/// Returns which worker must get which row of an input.
fn wanted_distribution(
    spec: &OperatorSpec,
    input: usize,
    column_count: usize,
    mode: ChangelogMode,
) -> Distribution {
    let hash = |columns: Vec<usize>| {
        if columns.is_empty() { Distribution::Singleton } else { Distribution::Hash(columns) }
    };
    match spec {
        OperatorSpec::GroupAggregate(aggregate) => hash(aggregate.keys.clone()),
        // One NULL on the right decides about every row on the left.
        OperatorSpec::Join(join) if join.is_null_aware => Distribution::Singleton,
        OperatorSpec::Join(join) => {
            hash(join.keys.iter().map(|key| if input == 0 { key.left } else { key.right }).collect())
        }
        OperatorSpec::MultiJoin { keys, .. } => hash(keys[input].clone()),
        OperatorSpec::TopN(top) => hash(top.partition.clone()),
        OperatorSpec::Deduplicate { keys, .. } | OperatorSpec::SinkUpsertMaterialize { keys } => {
            hash(keys.clone())
        }
        OperatorSpec::ChangelogNormalize(normalize) => hash(normalize.keys.clone()),
        OperatorSpec::SetOperation { .. } => hash((0..column_count).collect()),
        OperatorSpec::Limit { .. } | OperatorSpec::Collect => Distribution::Singleton,
        OperatorSpec::Sink(sink) if sink.sink.has_single_writer() => Distribution::Singleton,
        OperatorSpec::Sink(sink) => {
            let columns = sink.sink.distribution(&sink.keys, mode);
            if columns.is_empty() && mode == ChangelogMode::INSERT_ONLY {
                return Distribution::Forward;
            }
            hash(columns)
        }
        OperatorSpec::Source { .. }
        | OperatorSpec::Values { .. }
        | OperatorSpec::Calc { .. }
        | OperatorSpec::Union
        | OperatorSpec::Expand { .. }
        | OperatorSpec::Unnest { .. }
        | OperatorSpec::DropUpdateBefore => Distribution::Forward,
    }
}

/// Returns how an operator's rows are spread, given how its inputs' rows are; Forward means in no known way.
fn output_distribution(
    spec: &OperatorSpec,
    inputs: &[Distribution],
    graph: &JobGraph,
    edges: &[InputEdge],
) -> Distribution {
    let first = inputs.first().cloned().unwrap_or(Distribution::Forward);
    if first == Distribution::Singleton && inputs.iter().all(|input| *input == Distribution::Singleton) {
        return first;
    }
    let Distribution::Hash(columns) = &first else { return Distribution::Forward };
    match spec {
        OperatorSpec::Calc { projection: Some(projection), .. } => {
            let input = &graph.nodes[edges[0].node].schema;
            let place = |column: &usize| {
                // A cast passes the value on in another type, whose hash is another.
                projection.iter().position(|expr| {
                    let is_cast = match expr {
                        Expr::Cast(_) => true,
                        Expr::ScalarFunction(call) => cast_target(call).is_some(),
                        _ => false,
                    };
                    !is_cast && same_value(expr, input) == Some(*column)
                })
            };
            columns.iter().map(place).collect::<Option<_>>().map_or(Distribution::Forward, Distribution::Hash)
        }
        OperatorSpec::GroupAggregate(aggregate) => Distribution::Hash((0..aggregate.keys.len()).collect()),
        OperatorSpec::Join(join) if !matches!(join.kind, JoinKind::Right | JoinKind::Full) => first,
        OperatorSpec::MultiJoin { is_optional, .. } if !is_optional[0] => first,
        OperatorSpec::Union if inputs.iter().all(|input| *input == first) => first,
        OperatorSpec::Calc { .. }
        | OperatorSpec::TopN(_)
        | OperatorSpec::Deduplicate { .. }
        | OperatorSpec::ChangelogNormalize(_)
        | OperatorSpec::SetOperation { .. }
        | OperatorSpec::SinkUpsertMaterialize { .. }
        | OperatorSpec::DropUpdateBefore
        | OperatorSpec::Unnest { .. } => first,
        _ => Distribution::Forward,
    }
}
