//! What a new snapshot does to a table.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::connector::iceberg::manifest::{PartitionKey, TableFile};

/// Which files leave the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::connector::iceberg) enum FileRemoval {
    /// None.
    #[default]
    Nothing,
    /// All.
    Everything,
    /// All files of these partitions.
    Partitions(HashSet<PartitionKey>),
    /// Files by path; that one is gone already is a conflict.
    #[cfg_attr(not(test), expect(dead_code, reason = "compaction and maintenance remove files by path"))]
    Paths(BTreeSet<String>),
}

/// What a new snapshot does.
#[derive(Debug, Clone, Default)]
pub(in crate::connector::iceberg) struct SnapshotChange {
    /// Data files that come.
    pub(in crate::connector::iceberg) data: Vec<TableFile>,
    /// Files of position deletes that come.
    pub(in crate::connector::iceberg) deletes: Vec<TableFile>,
    /// Files that go.
    pub(in crate::connector::iceberg) removal: FileRemoval,
    /// What the snapshot's summary says beside the counts.
    pub(in crate::connector::iceberg) summary: BTreeMap<String, String>,
    /// Properties of the table that are set with it.
    pub(in crate::connector::iceberg) properties: BTreeMap<String, String>,
    /// Properties of the table that are removed with it.
    pub(in crate::connector::iceberg) removed_properties: Vec<String>,
    /// If rows only move to other files (compaction): the sequence number that the new data files carry, which is that of the
    /// snapshot they were read from, so that deletes committed since still meet their rows.
    pub(in crate::connector::iceberg) rewritten_at: Option<i64>,
    /// The branch; `main` if None. One that does not exist begins at the current snapshot.
    pub(in crate::connector::iceberg) branch: Option<String>,
}
