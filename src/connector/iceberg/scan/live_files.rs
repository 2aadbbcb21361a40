//! The data files of a snapshot, each with the deletes that apply to it: what scans, the sink's index and metadata tables start from.

use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{ManifestContentType, ManifestFile, ManifestStatus, SnapshotRef};

use super::delete_index::{DeleteIndex, FileDeletes};
use super::manifests::{ManifestedFile, manifest_files, manifest_list};
use super::read_error::ReadContext;
use crate::connector::iceberg::commit::TableFile;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// How many manifests are read at the same time.
const CONCURRENT_READS: usize = 16;

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
    Ok(plan_files(table, &snapshot).await?)
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
            None => Err(Error::not_found(format!("Cannot find snapshot with ID {id}"))),
        },
    }
}

async fn plan_files(table: &IcebergTable, snapshot: &SnapshotRef) -> Result<Vec<LiveFile>> {
    let metadata = table.metadata();
    let context = ReadContext::new(table, Some(snapshot.snapshot_id()));
    let list = manifest_list(table.files(), &context, snapshot, metadata.format_version()).await?;
    let (data, deletes): (Vec<&ManifestFile>, Vec<&ManifestFile>) = list
        .entries()
        .iter()
        .filter(|manifest| manifest.has_added_files() || manifest.has_existing_files())
        .partition(|manifest| manifest.content == ManifestContentType::Data);
    let deletes = read_manifests(table, &context, &deletes).await?;
    let data = read_manifests(table, &context, &data).await?;
    let is_unpartitioned =
        |spec_id| metadata.partition_spec_by_id(spec_id).is_some_and(|spec| spec.is_unpartitioned());
    let index = DeleteIndex::build(alive(&deletes), is_unpartitioned);
    Ok(alive(&data)
        .map(|listed| LiveFile {
            data: Arc::clone(&listed.file),
            data_sequence_number: listed.data_sequence_number,
            file_sequence_number: listed.file_sequence_number,
            snapshot_id: listed.snapshot_id,
            deletes: index.deletes_of(listed),
        })
        .collect())
}

fn alive(manifests: &[Arc<Vec<ManifestedFile>>]) -> impl Iterator<Item = &ManifestedFile> {
    manifests
        .iter()
        .flat_map(|listed| listed.iter())
        .filter(|listed| listed.status != ManifestStatus::Deleted)
}

/// Reads manifests, several at a time, in their order.
async fn read_manifests(
    table: &IcebergTable,
    context: &ReadContext,
    manifests: &[&ManifestFile],
) -> Result<Vec<Arc<Vec<ManifestedFile>>>> {
    let tasks: Vec<_> = manifests
        .iter()
        .map(|manifest| (table.files().clone(), context.clone(), ManifestFile::clone(manifest)))
        .collect();
    stream::iter(tasks)
        .map(|(files, context, manifest)| async move {
            // Parsing takes longer than reading: a task each, so that all cores take part.
            let task = SpawnedTask::spawn(async move { manifest_files(&files, &context, &manifest).await });
            task.join_unwind().await.map_err(|error| Error::internal("a reader stopped").caused_by(error))?
        })
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await
}
