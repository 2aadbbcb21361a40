//! Manifests and what they list, for whoever shows metadata: nothing is ruled out, and files that have left are there, too.

use std::sync::Arc;

use iceberg::spec::{ManifestFile, SnapshotRef};

use super::live_files::read_manifests;
use super::manifests::{ManifestedFile, manifest_list};
use super::read_error::ReadContext;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// Returns the manifests of a snapshot.
///
/// # Errors
/// The manifest list is missing or damaged.
pub(in crate::connector::iceberg) async fn snapshot_manifests(
    table: &IcebergTable,
    snapshot: &SnapshotRef,
) -> Result<Vec<ManifestFile>> {
    let context = ReadContext::new(table, Some(snapshot.snapshot_id()));
    let list = manifest_list(table.files(), &context, snapshot, table.metadata().format_version()).await?;
    Ok(list.consume_entries().into_iter().collect())
}

/// Returns what each manifest lists.
///
/// # Errors
/// A manifest is missing or damaged.
pub(in crate::connector::iceberg) async fn manifested_files(
    table: &IcebergTable,
    manifests: &[ManifestFile],
) -> Result<Vec<Arc<Vec<ManifestedFile>>>> {
    let context = ReadContext::new(table, None);
    read_manifests(table, &context, &manifests.iter().collect::<Vec<_>>()).await
}
