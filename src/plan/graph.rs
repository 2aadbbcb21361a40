//! The graph of a job, as data: nothing here runs. EXPLAIN prints it, the runtime builds operators from it, tests build it by
//! hand.
//!
//! Nodes stand in an order in which inputs come before those who read them. Columns are positions in the output of the input
//! node; only calcs and join conditions hold expressions, over names that are unique within the graph.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::Expr;

use super::provider::SourceTable;
use crate::changelog::ChangelogMode;
use crate::connector::DynamicTableSink;
pub(crate) use crate::function::AggregateFunction;
use crate::options::AggregatePhaseStrategy;
use crate::schema::DataType;

/// A job: what is read, computed and written.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobGraph {
    /// The nodes; inputs come before those who read them.
    pub(crate) nodes: Vec<GraphNode>,
}

/// The most inputs that one join on a shared key has.
pub(crate) const MULTI_JOIN_INPUTS_MAX: usize = 16;

/// The position of a node in its graph.
pub(crate) type NodeId = usize;

/// One operator with its inputs and what is known of its output.
#[derive(Debug, Clone)]
pub(crate) struct GraphNode {
    /// What it does.
    pub(crate) spec: OperatorSpec,
    /// Where its rows come from, in the operator's order (left before right).
    pub(crate) inputs: Vec<InputEdge>,
    /// The output's columns. For a sink, those of its input.
    pub(crate) schema: DFSchemaRef,
    /// Which kinds its output may have.
    pub(crate) mode: ChangelogMode,
    /// Sets of columns that no two rows of the output share; the empty set says that there is at most one row.
    pub(crate) unique_keys: Vec<Vec<usize>>,
    /// What its state is found by in a checkpoint: equal for an equal place in an equal query, whatever the column numbers.
    pub(crate) uid: String,
}

/// How rows come from another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputEdge {
    /// Where from.
    pub(crate) node: NodeId,
    /// Which worker gets which row.
    pub(crate) distribution: Distribution,
}

/// Which worker gets a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// The one that has it.
    Forward,
    /// The one that owns the key group of these columns, hashed in this order.
    Hash(Vec<usize>),
    /// The first one gets all.
    Singleton,
}

/// What a node does.
#[derive(Debug, Clone)]
pub(crate) enum OperatorSpec {
    /// Reads columns of a table.
    Source {
        /// The table.
        table: Box<SourceTable>,
        /// Positions in the table's read schema; physical columns before metadata.
        columns: Vec<usize>,
    },
    /// Constant rows.
    Values {
        /// One list of constant expressions per row.
        rows: Vec<Vec<Expr>>,
    },
    /// Keeps rows and computes columns.
    Calc {
        /// What rows must fulfil.
        condition: Option<Expr>,
        /// The output columns; None passes all on.
        projection: Option<Vec<Expr>>,
    },
    /// All rows of all inputs, whose columns have the same types in the same order.
    Union,
    /// One row per grouping set for each row: the groups that are not in the set become NULL, and the set's number comes last.
    Expand {
        /// For each set, which of the columns in `groups` it keeps (positions in the input).
        sets: Vec<Vec<usize>>,
        /// The columns that are groups in any set.
        groups: Vec<usize>,
        /// The value of the last output column for each set: GROUPING_ID as DataFusion's `__grouping_id` has it.
        ids: Vec<ExpandId>,
    },
    /// Groups rows. The output is the keys, in order, then one column per call. Without keys there is one group.
    GroupAggregate(GroupAggregateSpec),
    /// Joins two inputs. The output is the left columns, then the right ones; only the left ones for semi and anti joins.
    Join(JoinSpec),
    /// Joins several inputs on one key that all of them have; NULL never matches. The output is all columns in order.
    MultiJoin {
        /// The key's columns in each input.
        keys: Vec<Vec<usize>>,
        /// For each input, whether it is an outer part: its rows are added where there are any (LEFT), the others must be there.
        is_optional: Vec<bool>,
    },
    /// The first rows of each partition in an order, kept up to date.
    TopN(TopNSpec),
    /// The first or last row to arrive of each key.
    Deduplicate {
        /// The key.
        keys: Vec<usize>,
        /// Whether the last row is kept instead of the first.
        keeps_last: bool,
    },
    /// Lets `fetch` rows through, in the order of arrival, after `skip`. Over rows that change it keeps that many of them alive.
    Limit {
        /// How many are left out.
        skip: usize,
        /// How many are kept.
        fetch: Option<usize>,
    },
    /// Makes a changelog of upserts (`+U`, `-D` by key) complete: adds `-U`, whole deleted rows, and `+I` for new keys.
    ChangelogNormalize(ChangelogNormalizeSpec),
    /// Leaves out `-U`.
    DropUpdateBefore,
    /// INTERSECT or EXCEPT over two inputs of the same types.
    SetOperation {
        /// INTERSECT, or else EXCEPT.
        is_intersect: bool,
        /// ALL: rows count as often as they are there.
        is_all: bool,
    },
    /// One row per element of an array, map or multiset in a column; the element's columns come behind the input's.
    Unnest {
        /// The collection.
        column: usize,
        /// Whether rows whose collection is empty or NULL stay, with NULLs (LEFT JOIN).
        is_outer: bool,
        /// Whether the last column is the element's number, from 1.
        with_ordinality: bool,
    },
    /// Keeps, per key of the sink, the rows that claim it, and passes on the last one.
    SinkUpsertMaterialize {
        /// The sink's key.
        keys: Vec<usize>,
    },
    /// Writes rows.
    Sink(SinkSpec),
    /// Hands rows to whoever asked the query.
    Collect,
}

/// What completes a changelog of upserts.
#[derive(Debug, Clone)]
pub(crate) struct ChangelogNormalizeSpec {
    /// The key.
    pub(crate) keys: Vec<usize>,
    /// What rows must fulfil, over the input's columns: a row that does not is kept no more than a deleted one.
    pub(crate) condition: Option<Expr>,
    /// Whether `-U` is wanted.
    pub(crate) emits_update_before: bool,
}

/// The numbers that GROUPING and GROUPING_ID are computed from.
pub(crate) type ExpandId = u64;

/// GROUP BY with its aggregates.
#[derive(Debug, Clone)]
pub(crate) struct GroupAggregateSpec {
    /// The groups, as positions in the input.
    pub(crate) keys: Vec<usize>,
    /// The aggregates.
    pub(crate) calls: Vec<AggregateCall>,
    /// Whether the input takes rows back; without it MIN and MAX need no more than the value itself.
    pub(crate) input_retracts: bool,
    /// Whether `-U` is wanted.
    pub(crate) emits_update_before: bool,
    /// Whether rows may be aggregated before they are handed to the worker that owns their group.
    pub(crate) phase_strategy: AggregatePhaseStrategy,
}

/// One aggregate call.
#[derive(Debug, Clone)]
pub(crate) struct AggregateCall {
    /// The function.
    pub(crate) function: AggregateFunction,
    /// The arguments, as positions in the input; none for COUNT(*).
    pub(crate) arguments: Vec<usize>,
    /// The type of the first argument, after Flink's casts; None for COUNT(*).
    pub(crate) argument_type: Option<DataType>,
    /// A BOOLEAN column without NULLs that says which rows count.
    pub(crate) filter: Option<usize>,
    /// Whether equal arguments count once.
    pub(crate) is_distinct: bool,
    /// The result.
    pub(crate) result_type: DataType,
}

/// A join of two inputs.
#[derive(Debug, Clone)]
pub(crate) struct JoinSpec {
    /// Which rows there are.
    pub(crate) kind: JoinKind,
    /// Equal columns: left position, right position. Empty for a join without equalities, which runs on one worker.
    pub(crate) keys: Vec<JoinKey>,
    /// What else a pair must fulfil, over `pair_schema`.
    pub(crate) residual: Option<Expr>,
    /// The columns of a pair: left, then right.
    pub(crate) pair_schema: DFSchemaRef,
    /// NOT IN: a NULL on either side makes the answer unknown. Only for anti joins with exactly one key.
    pub(crate) is_null_aware: bool,
    /// What is known of each side: left, right.
    pub(crate) sides: [JoinSide; 2],
}

/// Which rows a join has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
    /// Left rows that have a partner.
    Semi,
    /// Left rows that have none.
    Anti,
}

/// A pair of columns that must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JoinKey {
    /// The column of the left input.
    pub(crate) left: usize,
    /// The column of the right input.
    pub(crate) right: usize,
    /// Whether NULL equals NULL (IS NOT DISTINCT FROM).
    pub(crate) is_null_safe: bool,
}

/// How rows of one side of a join are told apart; Flink's three kinds of join state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinSide {
    /// What is unique.
    pub(crate) uniqueness: JoinUniqueness,
    /// Whether its rows are only ever added.
    pub(crate) is_insert_only: bool,
}

impl JoinSide {
    /// Describes a side by the unique keys of its input and the columns that are joined. Whether rows are only added is found
    /// later.
    pub(crate) fn of(unique_keys: &[Vec<usize>], joined: &[usize]) -> JoinSide {
        let uniqueness = if holds_key(unique_keys, joined) {
            JoinUniqueness::JoinKey
        } else {
            unique_keys.first().map_or(JoinUniqueness::None, |key| JoinUniqueness::Key(key.clone()))
        };
        JoinSide { uniqueness, is_insert_only: false }
    }
}

/// What is unique within one side of a join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JoinUniqueness {
    /// The join key holds a unique key: at most one row per join key.
    JoinKey,
    /// These columns are a unique key.
    Key(Vec<usize>),
    /// Nothing: equal rows are counted.
    None,
}

/// Top-N.
#[derive(Debug, Clone)]
pub(crate) struct TopNSpec {
    /// The partition's columns; none for one partition.
    pub(crate) partition: Vec<usize>,
    /// The order; rows that compare equal keep their order of arrival.
    pub(crate) order: Vec<SortKey>,
    /// The first rank that is kept, from 1.
    pub(crate) first: u64,
    /// The last rank that is kept.
    pub(crate) last: u64,
    /// Whether the rank (BIGINT) is the last output column.
    pub(crate) with_rank: bool,
    /// How the rows change.
    pub(crate) strategy: TopNStrategy,
    /// Whether `-U` is wanted.
    pub(crate) emits_update_before: bool,
}

/// One column of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortKey {
    /// The column.
    pub(crate) column: usize,
    /// From small to large.
    pub(crate) is_ascending: bool,
    /// Whether NULLs come first.
    pub(crate) nulls_first: bool,
}

/// Which changes a Top-N must be ready for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopNStrategy {
    /// Rows are only added: the best are enough.
    AppendFast,
    /// Rows are replaced by key and only ever move forward in the order: the best are enough.
    UpdateFast(Vec<usize>),
    /// Anything: all rows are kept.
    Retract,
}

/// A table that is written.
#[derive(Debug, Clone)]
pub(crate) struct SinkSpec {
    /// The table's name in full.
    pub(crate) name: String,
    /// The sink.
    pub(crate) sink: Arc<dyn DynamicTableSink>,
    /// The key of the table, as positions in its columns; none for a table without key.
    pub(crate) keys: Vec<usize>,
    /// Whether the rows replace what is there.
    pub(crate) overwrite: bool,
}

impl JobGraph {
    /// Adds a node and returns where it stands.
    pub(crate) fn add(&mut self, node: GraphNode) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns the nodes that nobody reads: sinks, and what is shown.
    pub(crate) fn roots(&self) -> Vec<NodeId> {
        (0..self.nodes.len()).filter(|id| self.readers(*id) == 0).collect()
    }

    /// Returns how many inputs a node feeds.
    pub(crate) fn readers(&self, id: NodeId) -> usize {
        self.nodes.iter().flat_map(|node| &node.inputs).filter(|edge| edge.node == id).count()
    }
}

impl GraphNode {
    /// Returns the output's columns as Arrow has them.
    pub(crate) fn arrow_schema(&self) -> &SchemaRef {
        self.schema.inner()
    }
}

/// Returns whether some unique key lies within these columns.
pub(super) fn holds_key(unique_keys: &[Vec<usize>], columns: &[usize]) -> bool {
    unique_keys.iter().any(|key| key.iter().all(|column| columns.contains(column)))
}
