//! What a job hands over at a checkpoint.
//!
//! State is what has changed since the last call, not the whole: `CheckpointStore` knows what came before.

use std::collections::BTreeMap;

use crate::connector::{CheckpointId, Committable, SourcePosition};
use crate::runtime::state::{StateChanges, StateTable};

/// A cut through a job: state, positions of sources and what sinks have prepared.
#[derive(Debug, Default)]
pub(crate) struct CheckpointData {
    /// The number that `CheckpointStore::next_number` gave.
    pub(crate) number: CheckpointId,
    /// When the cut was made, in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// What has changed in each operator that keeps state. All of them, also where nothing has changed.
    pub(crate) operators: Vec<OperatorChanges>,
    /// How far each source had read at the cut, by the uid of its node.
    pub(crate) sources: BTreeMap<String, SourcePosition>,
    /// What each sink's writers have prepared, by the uid of its node.
    pub(crate) committables: BTreeMap<String, Vec<Committable>>,
    /// Whatever else the job wants to find again.
    pub(crate) extra: BTreeMap<String, String>,
}

/// What has changed in the state of an operator.
#[derive(Debug)]
pub(crate) struct OperatorChanges {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is, for errors: the name in EXPLAIN.
    pub(crate) kind: String,
    /// Its tables, as `Operator::state_tables` describes them.
    pub(crate) tables: Vec<StateTable>,
    /// What `Operator::take_changes` of each worker returned: per worker one entry per table.
    pub(crate) workers: Vec<Vec<StateChanges>>,
}
