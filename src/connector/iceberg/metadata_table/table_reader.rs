//! The manifests of one snapshot or of all, for one query.

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::spec::{ManifestFile, SnapshotRef, TableMetadata};

use super::super::manifest::{ManifestReader, ManifestedFile};
use super::super::table::IcebergTable;
use super::{MetadataTableType, snapshots};
use crate::error::Result;

/// Reads what metadata tables show of a table.
pub(super) struct TableReader<'a> {
    table: &'a IcebergTable,
    /// Its name, for messages.
    pub(super) name: &'a str,
    reader: ManifestReader,
}

impl<'a> TableReader<'a> {
    /// Reads a table under the name that the query has for it.
    pub(super) fn new(table: &'a IcebergTable, name: &'a str) -> TableReader<'a> {
        TableReader { table, name, reader: ManifestReader::new(table, None) }
    }
}

impl TableReader<'_> {
    /// Returns the table's metadata.
    pub(super) fn metadata(&self) -> &TableMetadata {
        self.table.metadata()
    }

    /// Returns the manifests of a snapshot.
    pub(super) async fn manifests(&self, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>> {
        self.reader.list(snapshot).await
    }

    /// Returns the manifests that a metadata table is about: those of a snapshot or, each once, of all.
    pub(super) async fn manifests_of(
        &self,
        kind: MetadataTableType,
        snapshot: Option<i64>,
    ) -> Result<Vec<ManifestFile>> {
        if kind.is_of_all_snapshots() {
            return self.all_manifests().await;
        }
        match snapshot.and_then(|id| self.metadata().snapshot_by_id(id)) {
            Some(snapshot) => self.manifests(snapshot).await,
            None => Ok(Vec::new()),
        }
    }

    async fn all_manifests(&self) -> Result<Vec<ManifestFile>> {
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
        self.reader.files(manifests).await
    }
}
