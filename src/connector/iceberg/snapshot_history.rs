//! Where a branch has come from: its newest snapshot, and those before it.

use iceberg::spec::{SnapshotRef, TableMetadata};

/// Returns the newest snapshot of a branch, or that from which a branch will begin that does not exist yet. None: `main`.
pub(super) fn head<'a>(metadata: &'a TableMetadata, branch: Option<&str>) -> Option<&'a SnapshotRef> {
    branch.and_then(|branch| metadata.snapshot_for_ref(branch)).or(metadata.current_snapshot())
}

/// Returns a snapshot and those before it, newest first, as far as they have not expired.
pub(super) fn ancestors<'a>(
    metadata: &'a TableMetadata,
    head: Option<&'a SnapshotRef>,
) -> impl Iterator<Item = &'a SnapshotRef> {
    let parent = |snapshot: &&'a SnapshotRef| metadata.snapshot_by_id(snapshot.parent_snapshot_id()?);
    // Damaged metadata may name a snapshot as its own ancestor.
    std::iter::successors(head, parent).take(metadata.snapshots().len())
}
