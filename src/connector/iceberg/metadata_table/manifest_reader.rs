//! The manifests of one snapshot or of all, for one query.

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::spec::{ManifestFile, SnapshotRef, TableMetadata};

use super::super::scan::{ManifestedFile, manifested_files, snapshot_manifests};
use super::super::table::IcebergTable;
use super::snapshots;
use crate::error::Result;

/// Reads the manifests of a table.
pub(super) struct ManifestReader<'a> {
    /// The table.
    pub(super) table: &'a IcebergTable,
    /// Its name, for messages.
    pub(super) name: &'a str,
}

impl ManifestReader<'_> {
    /// Returns the table's metadata.
    pub(super) fn metadata(&self) -> &TableMetadata {
        self.table.metadata()
    }

    /// Returns the manifests of a snapshot.
    pub(super) async fn manifests(&self, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>> {
        snapshot_manifests(self.table, snapshot).await
    }

    /// Returns the manifests of all snapshots, each once.
    pub(super) async fn all_manifests(&self) -> Result<Vec<ManifestFile>> {
        let mut seen = HashSet::new();
        let mut manifests = Vec::new();
        for snapshot in snapshots::in_order(self.metadata()) {
            let of_snapshot = self.manifests(snapshot).await?;
            manifests.extend(
                of_snapshot.into_iter().filter(|manifest| seen.insert(manifest.manifest_path.clone())),
            );
        }
        Ok(manifests)
    }

    /// Returns what manifests list, entries of removed files included.
    pub(super) async fn files(&self, manifests: &[ManifestFile]) -> Result<Vec<Arc<Vec<ManifestedFile>>>> {
        manifested_files(self.table, manifests).await
    }
}
