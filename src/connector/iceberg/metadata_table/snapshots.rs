//! `$snapshots`: every snapshot that has not expired, in the order in which they came.

use iceberg::spec::{SnapshotRef, TableMetadata};

use super::cell::Cell;
use super::schema::{INSTANT, map_of, optional, required};
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        required("committed_at", INSTANT),
        required("snapshot_id", TypeRoot::BigInt),
        optional("parent_id", TypeRoot::BigInt),
        optional("operation", TypeRoot::STRING),
        optional("manifest_list", TypeRoot::STRING),
        optional("summary", map_of(TypeRoot::STRING, TypeRoot::STRING)),
    ]
}

/// Returns the rows.
pub(super) fn rows(metadata: &TableMetadata) -> Vec<Vec<Cell>> {
    in_order(metadata)
        .into_iter()
        .map(|snapshot| {
            let summary = snapshot.summary();
            let mut properties: Vec<(&String, &String)> = summary.additional_properties.iter().collect();
            properties.sort_unstable();
            let entry = |(key, value): (&String, &String)| (Cell::text(key), Cell::text(value));
            vec![
                Cell::instant(snapshot.timestamp_ms()),
                Cell::Long(snapshot.snapshot_id()),
                Cell::optional(snapshot.parent_snapshot_id(), Cell::Long),
                Cell::text(summary.operation.as_str()),
                Cell::text(snapshot.manifest_list()),
                Cell::Map(properties.into_iter().map(entry).collect()),
            ]
        })
        .collect()
}

/// Returns the snapshots in the order in which they came, which the crate does not keep.
pub(super) fn in_order(metadata: &TableMetadata) -> Vec<&SnapshotRef> {
    let mut snapshots: Vec<&SnapshotRef> = metadata.snapshots().collect();
    snapshots.sort_by_key(|snapshot| {
        (snapshot.sequence_number(), snapshot.timestamp_ms(), snapshot.snapshot_id())
    });
    snapshots
}
