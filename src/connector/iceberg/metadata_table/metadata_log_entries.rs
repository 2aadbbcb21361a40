//! `$metadata_log_entries`: the metadata files that the table had, and the one that it has.

use iceberg::table::Table;

use super::cell::Cell;
use super::schema::{INSTANT, optional, required};
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        required("timestamp", INSTANT),
        required("file", TypeRoot::STRING),
        optional("latest_snapshot_id", TypeRoot::BigInt),
        optional("latest_schema_id", TypeRoot::Int),
        optional("latest_sequence_number", TypeRoot::BigInt),
    ]
}

/// Returns the rows.
pub(super) fn rows(table: &Table) -> Vec<Vec<Cell>> {
    let metadata = table.metadata();
    let earlier =
        metadata.metadata_log().iter().map(|entry| (entry.timestamp_ms, entry.metadata_file.as_str()));
    let current = table.metadata_location().map(|location| (metadata.last_updated_ms(), location));
    earlier
        .chain(current)
        .map(|(time, file)| {
            let snapshot = metadata.history().iter().rev().find(|entry| entry.timestamp_ms <= time);
            let loaded = snapshot.and_then(|entry| metadata.snapshot_by_id(entry.snapshot_id));
            vec![
                Cell::instant(time),
                Cell::text(file),
                Cell::optional(snapshot, |entry| Cell::Long(entry.snapshot_id)),
                Cell::optional(loaded.and_then(|snapshot| snapshot.schema_id()), Cell::Int),
                Cell::optional(loaded, |snapshot| Cell::Long(snapshot.sequence_number())),
            ]
        })
        .collect()
}
