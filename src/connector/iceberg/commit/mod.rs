//! The one way in which a snapshot comes to be: what it adds and removes becomes manifests, a manifest list and a summary, and is
//! committed again and again while others commit in between.

mod commit_loop;
mod manifest_merge;
mod manifest_store;
mod marker;
mod removal_filter;
mod retry_policy;
mod row_deletes;
mod snapshot_change;
mod snapshot_producer;
mod snapshot_summary;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod retry_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(super) use commit_loop::{MetadataChange, SnapshotPlan, commit_snapshot, commit_updates, reload_same};
pub(super) use marker::{
    COMMITTED_PREFIX, CommitMarker, RESOLVED_DELETES, committed_checkpoint, committed_key, forget,
    is_committed, lineage_of, newest_commit,
};
pub(super) use row_deletes::check_row_deletes;
pub(super) use snapshot_change::{FileRemoval, SnapshotChange};
