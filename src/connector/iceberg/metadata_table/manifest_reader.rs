//! Manifests and their entries, read for one query. Errors name the file and the snapshot that it belongs to.

use std::collections::HashSet;

use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestEntryRef, ManifestFile, SnapshotRef};
use iceberg::table::Table;

use super::super::error::from_iceberg;
use super::snapshots;
use crate::error::{Error, Result};

/// How many manifests are read at the same time.
const MANIFESTS_AHEAD: usize = 8;

/// Reads the manifests of a table.
pub(super) struct ManifestReader<'a> {
    /// The table.
    pub(super) table: &'a Table,
    /// Its name, for messages.
    pub(super) name: &'a str,
}

/// A manifest with its entries.
pub(super) struct ReadManifest {
    /// The manifest.
    pub(super) manifest: ManifestFile,
    /// What it holds, entries of removed files included.
    pub(super) entries: Vec<ManifestEntryRef>,
}

impl ManifestReader<'_> {
    /// Returns the manifests of a snapshot.
    pub(super) async fn manifests(&self, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>> {
        let list = self.table.manifest_list_reader(snapshot).load().await.map_err(|error| {
            self.unreadable("manifest list", snapshot.manifest_list(), snapshot.snapshot_id(), error)
        })?;
        Ok(list.consume_entries().into_iter().collect())
    }

    /// Returns the manifests of all snapshots, each once.
    pub(super) async fn all_manifests(&self) -> Result<Vec<ManifestFile>> {
        let mut seen = HashSet::new();
        let mut manifests = Vec::new();
        for snapshot in snapshots::in_order(self.table.metadata()) {
            let of_snapshot = self.manifests(snapshot).await?;
            manifests.extend(
                of_snapshot.into_iter().filter(|manifest| seen.insert(manifest.manifest_path.clone())),
            );
        }
        Ok(manifests)
    }

    /// Reads manifests, in order.
    pub(super) async fn entries(&self, manifests: Vec<ManifestFile>) -> Result<Vec<ReadManifest>> {
        stream::iter(manifests)
            .map(|manifest| async move {
                let read = manifest.load_manifest(self.table.file_io()).await.map_err(|error| {
                    self.unreadable("manifest", &manifest.manifest_path, manifest.added_snapshot_id, error)
                })?;
                let (entries, _) = read.into_parts();
                Ok(ReadManifest { manifest, entries })
            })
            .buffered(MANIFESTS_AHEAD)
            .try_collect()
            .await
    }

    fn unreadable(&self, what: &str, path: &str, snapshot: i64, error: iceberg::Error) -> Error {
        let cause = from_iceberg(error);
        let message =
            format!("{what} '{path}' of table '{}', snapshot {snapshot}, cannot be read", self.name);
        Error::new(cause.kind(), message).caused_by(cause)
    }
}
