//! The one way in which a snapshot comes to be: what it adds and removes becomes manifests, a manifest list and a summary, and is
//! committed again and again while others commit in between.

mod snapshot_change;

pub(super) use snapshot_change::{FileRemoval, SnapshotChange, TableFile};
