//! The data files of a snapshot, each with the deletes that apply to it: what scans, the sink's index and metadata tables start from.

use std::collections::HashSet;
use std::sync::Arc;

use iceberg::spec::{ManifestContentType, ManifestFile, ManifestStatus, SnapshotRef};

use super::deletes::{DeleteIndex, FileDeletes};
use super::prune::Pruning;
use crate::connector::iceberg::manifest::{ManifestReader, ManifestedFile, ReadContext, TableFile};
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// A data file of a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct LiveFile {
    /// The file.
    pub(in crate::connector::iceberg) data: Arc<TableFile>,
    /// The sequence number of its rows: deletes that are older do not apply to them.
    pub(in crate::connector::iceberg) data_sequence_number: i64,
    /// The sequence number of the snapshot that added the file.
    pub(in crate::connector::iceberg) file_sequence_number: i64,
    /// The snapshot that added the file.
    pub(in crate::connector::iceberg) snapshot_id: i64,
    /// What was deleted from it.
    pub(in crate::connector::iceberg) deletes: FileDeletes,
}

/// Returns the data files of a snapshot, or of the current one; none if the table has no snapshot.
///
/// # Errors
/// There is no such snapshot, or its metadata is missing or damaged.
pub(in crate::connector::iceberg) async fn live_files(
    table: &IcebergTable,
    snapshot_id: Option<i64>,
) -> Result<Vec<LiveFile>> {
    let Some(snapshot) = snapshot_to_read(table, snapshot_id)? else { return Ok(Vec::new()) };
    Ok(plan_files(table, &snapshot, None).await?.files)
}

/// Returns a snapshot by its id, or the current one.
///
/// # Errors
/// There is no such snapshot.
pub(in crate::connector::iceberg) fn snapshot_to_read(
    table: &IcebergTable,
    snapshot_id: Option<i64>,
) -> Result<Option<SnapshotRef>> {
    let metadata = table.metadata();
    match snapshot_id {
        None => Ok(metadata.current_snapshot().cloned()),
        Some(id) => match metadata.snapshot_by_id(id) {
            Some(snapshot) => Ok(Some(Arc::clone(snapshot))),
            None => Err(Error::not_found(format!("Cannot find snapshot with ID {id}")).hint(format!(
                "Snapshots expire: SELECT snapshot_id, committed_at FROM {} lists those that the table has.",
                table.snapshots_name()
            ))),
        },
    }
}

/// The files of a scan, and how many were ruled out.
#[derive(Debug, Default)]
pub(super) struct PlannedFiles {
    /// What is read.
    pub(super) files: Vec<LiveFile>,
    /// How many data files the snapshot has, as far as manifests say so that were not read.
    pub(super) files_total: usize,
    /// How many row groups they have; None if manifests were not read.
    pub(super) row_groups_total: Option<usize>,
}

/// How many delete files apply to a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeleteCounts {
    pub(super) positions: usize,
    pub(super) vectors: usize,
    pub(super) equality: usize,
}

impl PlannedFiles {
    /// Counts the delete files that apply, each once.
    pub(super) fn delete_counts(&self) -> DeleteCounts {
        let (mut positions, mut equality) = (HashSet::new(), HashSet::new());
        for live in &self.files {
            positions.extend(live.deletes.positions.iter().map(|delete| delete.file.file.file_path()));
            for group in &live.deletes.equality {
                let newer =
                    group.files.iter().filter(|delete| delete.sequence_number > live.data_sequence_number);
                equality.extend(newer.map(|delete| delete.file.file.file_path()));
            }
        }
        let vectors = self.files.iter().filter(|live| live.deletes.vector.is_some()).count();
        DeleteCounts { positions: positions.len(), vectors, equality: equality.len() }
    }
}

/// Finds the data files of a snapshot that may hold wanted rows. Manifests that cannot list any are not read.
///
/// # Errors
/// Metadata is missing or damaged.
pub(super) async fn plan_files(
    table: &IcebergTable,
    snapshot: &SnapshotRef,
    pruning: Option<&Pruning>,
) -> Result<PlannedFiles> {
    let metadata = table.metadata();
    let reader = ManifestReader::new(table, Some(snapshot.snapshot_id()));
    let list = reader.list(snapshot).await?;
    let listed = list.iter().filter(|manifest| manifest.has_added_files() || manifest.has_existing_files());
    let (wanted, skipped): (Vec<&ManifestFile>, Vec<&ManifestFile>) =
        listed.partition(|manifest| pruning.is_none_or(|pruning| pruning.may_match_manifest(manifest)));
    let (data, deletes): (Vec<&ManifestFile>, Vec<&ManifestFile>) =
        wanted.into_iter().partition(|manifest| manifest.content == ManifestContentType::Data);
    let deletes = reader.files(deletes).await?;
    let data = reader.files(data).await?;
    let is_unpartitioned =
        |spec_id| metadata.partition_spec_by_id(spec_id).is_some_and(|spec| spec.is_unpartitioned());
    let applying = alive(&deletes)
        .filter(|listed| pruning.is_none_or(|pruning| pruning.may_match_partition(&listed.file)));
    let index = DeleteIndex::build(
        applying,
        is_unpartitioned,
        &ReadContext::new(table, Some(snapshot.snapshot_id())),
    )?;
    let mut planned = PlannedFiles {
        files: Vec::new(),
        files_total: skipped.iter().copied().map(count_data_files).sum(),
        row_groups_total: skipped.is_empty().then_some(0),
    };
    for listed in alive(&data) {
        planned.files_total += 1;
        planned.row_groups_total = planned.row_groups_total.map(|total| total + row_groups(&listed.file));
        if pruning.is_some_and(|pruning| !pruning.may_match_file(&listed.file)) {
            continue;
        }
        planned.files.push(LiveFile {
            data: Arc::clone(&listed.file),
            data_sequence_number: listed.data_sequence_number,
            file_sequence_number: listed.file_sequence_number,
            snapshot_id: listed.snapshot_id,
            deletes: index.deletes_of(listed),
        });
    }
    Ok(planned)
}

/// Returns how many row groups a file has, as far as its manifest says.
pub(super) fn row_groups(file: &TableFile) -> usize {
    file.file.split_offsets().map_or(1, |offsets| offsets.len().max(1))
}

fn count_data_files(manifest: &ManifestFile) -> usize {
    if manifest.content != ManifestContentType::Data {
        return 0;
    }
    (manifest.added_files_count.unwrap_or(0) + manifest.existing_files_count.unwrap_or(0)) as usize
}

fn alive(manifests: &[Arc<Vec<ManifestedFile>>]) -> impl Iterator<Item = &ManifestedFile> {
    manifests
        .iter()
        .flat_map(|listed| listed.iter())
        .filter(|listed| listed.status != ManifestStatus::Deleted)
}
