//! `$refs`: branches and tags, by name.

use iceberg::spec::{SnapshotRetention, TableMetadata};

use super::super::snapshot_refs::snapshot_refs;
use super::cell::Cell;
use super::schema::{optional, required};
use crate::error::Result;
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
pub(super) fn columns() -> Vec<Column> {
    vec![
        required("name", TypeRoot::STRING),
        required("type", TypeRoot::STRING),
        required("snapshot_id", TypeRoot::BigInt),
        optional("max_reference_age_in_ms", TypeRoot::BigInt),
        optional("min_snapshots_to_keep", TypeRoot::Int),
        optional("max_snapshot_age_in_ms", TypeRoot::BigInt),
    ]
}

/// Returns the rows.
///
/// # Errors
/// The references cannot be listed.
pub(super) fn rows(metadata: &TableMetadata) -> Result<Vec<Vec<Cell>>> {
    let row = |(name, reference): (String, iceberg::spec::SnapshotReference)| {
        let (kind, reference_age, to_keep, snapshot_age) = match reference.retention {
            SnapshotRetention::Branch { min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms } => {
                ("BRANCH", max_ref_age_ms, min_snapshots_to_keep, max_snapshot_age_ms)
            }
            SnapshotRetention::Tag { max_ref_age_ms } => ("TAG", max_ref_age_ms, None, None),
        };
        vec![
            Cell::text(name),
            Cell::text(kind),
            Cell::Long(reference.snapshot_id),
            Cell::optional(reference_age, Cell::Long),
            Cell::optional(to_keep, Cell::Int),
            Cell::optional(snapshot_age, Cell::Long),
        ]
    };
    Ok(snapshot_refs(metadata)?.into_iter().map(row).collect())
}
