//! `$history`: which snapshot was the current one since when.

use std::collections::HashSet;

use iceberg::spec::TableMetadata;

use super::super::snapshot_history::ancestors;
use super::cell::Cell;
use super::schema::{INSTANT, optional, required};
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        required("made_current_at", INSTANT),
        required("snapshot_id", TypeRoot::BigInt),
        optional("parent_id", TypeRoot::BigInt),
        required("is_current_ancestor", TypeRoot::Boolean),
    ]
}

/// Returns the rows. A snapshot that was rolled back is no ancestor of the current one.
pub(super) fn rows(metadata: &TableMetadata) -> Vec<Vec<Cell>> {
    let ancestors: HashSet<i64> =
        ancestors(metadata, metadata.current_snapshot()).map(|snapshot| snapshot.snapshot_id()).collect();
    metadata
        .history()
        .iter()
        .map(|entry| {
            let snapshot = metadata.snapshot_by_id(entry.snapshot_id);
            let parent = snapshot.and_then(|snapshot| snapshot.parent_snapshot_id());
            vec![
                Cell::instant(entry.timestamp_ms),
                Cell::Long(entry.snapshot_id),
                Cell::optional(parent, Cell::Long),
                Cell::Boolean(ancestors.contains(&entry.snapshot_id)),
            ]
        })
        .collect()
}
