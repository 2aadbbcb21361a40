//! The snapshot that an index stands for, and what has become of the table since.

use iceberg::spec::{SnapshotRef, TableMetadata};

use crate::connector::iceberg::snapshot_history::ancestors;

/// A snapshot that an index stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownSnapshot {
    /// Its id; None for a table without snapshots.
    pub(super) id: Option<i64>,
    /// Its sequence number.
    pub(super) sequence_number: i64,
}

/// What has come after a snapshot.
#[derive(Debug)]
pub(super) enum Newer<'a> {
    /// These, newest first.
    Snapshots(Vec<&'a SnapshotRef>),
    /// More than is known: some have expired.
    Expired,
    /// It is not in the table's history any more.
    Rewound,
}

impl KnownSnapshot {
    /// Returns the snapshot at a head; that of a table without snapshots if there is none.
    pub(super) fn of(head: Option<&SnapshotRef>) -> KnownSnapshot {
        KnownSnapshot {
            id: head.map(|head| head.snapshot_id()),
            sequence_number: head.map_or(0, |head| head.sequence_number()),
        }
    }

    /// Tells what has come after it up to a head.
    pub(super) fn newer<'a>(self, metadata: &'a TableMetadata, head: Option<&'a SnapshotRef>) -> Newer<'a> {
        let mut newer = Vec::new();
        for snapshot in ancestors(metadata, head) {
            if Some(snapshot.snapshot_id()) == self.id {
                return Newer::Snapshots(newer);
            }
            if snapshot.sequence_number() <= self.sequence_number {
                return Newer::Rewound;
            }
            newer.push(snapshot);
        }
        let oldest = newer.last();
        match oldest.is_some_and(|oldest| oldest.parent_snapshot_id().is_some()) {
            true => Newer::Expired,
            false if self.id.is_none() => Newer::Snapshots(newer),
            false => Newer::Rewound,
        }
    }
}
