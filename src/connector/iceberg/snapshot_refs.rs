//! Branches and tags. The crate keeps them to itself but for a look-up by name, so they are read from the metadata's JSON form.

use std::collections::BTreeMap;

use iceberg::spec::{SnapshotReference, TableMetadata};
use serde_json::Value;

use crate::error::{Error, Result};

/// Returns all branches and tags by name.
///
/// # Errors
/// The metadata has no JSON form, which the crate rules out for metadata that it has read.
pub(super) fn snapshot_refs(metadata: &TableMetadata) -> Result<BTreeMap<String, SnapshotReference>> {
    let unreadable =
        |error| Error::internal("the references of a table's metadata cannot be listed").caused_by(error);
    let mut json = serde_json::to_value(metadata).map_err(unreadable)?;
    match json.get_mut("refs").map(Value::take) {
        Some(refs) => serde_json::from_value(refs).map_err(unreadable),
        None => Ok(BTreeMap::new()),
    }
}
