//! The manifest of a checkpoint, the file `_metadata`: what it consists of.
//!
//! It is JSON that a person can read, with a last line that holds the CRC of everything before.

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;

use crate::connector::{CheckpointId, Committable, SourcePosition};

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// The version of Lakehead that wrote it.
    pub(crate) product_version: String,
    /// The job's name.
    pub(crate) job_name: String,
    /// The job's number.
    pub(crate) job_id: u128,
    /// The checkpoint's number within the job.
    pub(crate) number: CheckpointId,
    /// When the cut was made, in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// Whether this is a savepoint, whose segments lie beside the manifest.
    pub(crate) is_savepoint: bool,
    /// The state of each operator.
    pub(crate) operators: Vec<OperatorState>,
    /// Where the rows of state are, oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
    /// How far each source had read, by uid.
    pub(crate) sources: BTreeMap<String, SourcePosition>,
    /// What each sink has prepared, by uid.
    pub(crate) committables: BTreeMap<String, Vec<Committable>>,
    /// What else the job keeps.
    pub(crate) extra: BTreeMap<String, String>,
}

/// The tables of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperatorState {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is.
    pub(crate) kind: String,
    /// Its tables.
    pub(crate) tables: Vec<TableState>,
}

/// A table of state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableState {
    /// The name.
    pub(crate) name: String,
    /// The columns, those of the primary key first.
    pub(crate) schema: SchemaRef,
    /// How many columns the primary key has.
    pub(crate) key_count: usize,
    /// The first checkpoint that counts: what older segments hold under this name belonged to a table that was given up.
    pub(crate) since: CheckpointId,
}

/// A segment file that a checkpoint uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentEntry {
    /// The file's name, in the folder of segments.
    pub(crate) file: String,
    /// Its length.
    pub(crate) bytes: u64,
    /// The CRC of the whole file.
    pub(crate) crc: u32,
    /// The first checkpoint whose changes it holds.
    pub(crate) first: CheckpointId,
    /// The last one.
    pub(crate) last: CheckpointId,
    /// Whether nothing comes before it, so that it holds rows only.
    pub(crate) is_base: bool,
}
