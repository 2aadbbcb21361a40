//! The data files that a range of snapshots has appended. What was deleted from them since is no matter: the range is about what came.

use std::collections::{BTreeSet, HashSet};

use iceberg::spec::{ManifestContentType, ManifestFile, ManifestStatus};

use super::deletes::FileDeletes;
use super::live_files::{LiveFile, PlannedFiles, snapshot_to_read};
use super::prune::Pruning;
use crate::connector::iceberg::manifest::ManifestReader;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// Finds the data files that the given snapshots have added and that may hold wanted rows.
///
/// # Errors
/// A snapshot is gone, or metadata is missing or damaged.
pub(super) async fn plan_appended_files(
    table: &IcebergTable,
    snapshots: &BTreeSet<i64>,
    pruning: Option<&Pruning>,
) -> Result<PlannedFiles> {
    let reader = ManifestReader::new(table, None);
    let mut seen = HashSet::new();
    let mut manifests: Vec<ManifestFile> = Vec::new();
    for id in snapshots {
        let Some(snapshot) = snapshot_to_read(table, Some(*id))? else { continue };
        let list = reader.list(&snapshot).await?;
        // A manifest that a later snapshot of the range has rewritten is in that one's list only.
        let added = list.iter().filter(|manifest| {
            manifest.content == ManifestContentType::Data
                && manifest.has_added_files()
                && snapshots.contains(&manifest.added_snapshot_id)
                && pruning.is_none_or(|pruning| pruning.may_match_manifest(manifest))
        });
        manifests.extend(added.filter(|manifest| seen.insert(manifest.manifest_path.clone())).cloned());
    }
    let read = reader.files(&manifests).await?;
    let mut planned = PlannedFiles::default();
    let mut paths = HashSet::new();
    let added = read
        .iter()
        .flat_map(|listed| listed.iter())
        .filter(|listed| listed.status == ManifestStatus::Added && snapshots.contains(&listed.snapshot_id));
    for listed in added.filter(|listed| paths.insert(listed.file.file.file_path())) {
        planned.files_total += 1;
        if pruning.is_some_and(|pruning| !pruning.may_match_file(&listed.file)) {
            continue;
        }
        planned.files.push(LiveFile {
            data: std::sync::Arc::clone(&listed.file),
            data_sequence_number: listed.data_sequence_number,
            file_sequence_number: listed.file_sequence_number,
            snapshot_id: listed.snapshot_id,
            deletes: FileDeletes::default(),
        });
    }
    Ok(planned)
}
