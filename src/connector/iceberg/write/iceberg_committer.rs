//! Makes what all writers have prepared for a checkpoint one snapshot.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{DataContentType, Struct, TableMetadata};

use super::file_schema::{FileSchema, WrittenColumns};
use super::orphan_files::remove_orphans;
use super::prepared_files::{PreparedFiles, Replaced};
use super::write_options::WriteOptions;
use super::write_settings::WriteSettings;
use crate::connector::iceberg::commit::{
    CommitMarker, FileRemoval, SnapshotChange, TableFile, commit_snapshot, forget, is_committed, lineage_of,
};
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::{Committable, Committer, CompletedCheckpoint};
use crate::error::{Error, ErrorKind, Result};

/// The properties in which lineages note what they have committed.
const COMMITTED_PREFIX: &str = "lakehead.committed.";

/// What Flink's batch jobs write where those of streams have the number of a checkpoint.
const FLINK_CHECKPOINT: &str = "flink.max-committed-checkpoint-id";

/// How many files are looked for at a time.
const LOOKED_FOR_AT_A_TIME: usize = 16;

/// Commits appends and overwrites.
pub(super) struct IcebergCommitter {
    table: IcebergTable,
    columns: WrittenColumns,
    options: WriteOptions,
    sink_id: String,
    lineage: String,
    /// Earlier runs that this one goes on from: what their properties say is not needed once this one has committed.
    earlier: BTreeSet<String>,
}

/// The files of one lineage and checkpoint.
struct Group {
    prepared: Vec<(PreparedFiles, Vec<TableFile>)>,
    marker: CommitMarker,
}

/// Whether a commit comes for the first time or after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occasion {
    Checkpoint,
    Recovery,
}

impl IcebergCommitter {
    /// Opens the committer of a sink.
    pub(super) fn new(
        table: IcebergTable,
        columns: WrittenColumns,
        options: WriteOptions,
        sink_id: &str,
    ) -> IcebergCommitter {
        let lineage = lineage_of(sink_id);
        let sink_id = sink_id.to_owned();
        IcebergCommitter { table, columns, options, sink_id, lineage, earlier: BTreeSet::new() }
    }

    async fn commit_all(
        &mut self,
        checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
        occasion: Occasion,
    ) -> Result<()> {
        for group in self.groups(checkpoint, committables)? {
            if occasion == Occasion::Recovery {
                self.expect_files(&group).await?;
            }
            let mut plan = |table: &IcebergTable| self.plan(&group, table, occasion);
            self.table = commit_snapshot(&self.table, &mut plan).await?;
            if group.marker.lineage == self.lineage {
                self.earlier.clear();
            } else {
                self.earlier.insert(group.marker.lineage);
            }
        }
        Ok(())
    }

    /// Returns the files of each lineage, each committable once.
    fn groups(&self, checkpoint: &CompletedCheckpoint, committables: &[Committable]) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut ids = BTreeSet::new();
        for committable in committables {
            let prepared = PreparedFiles::from_committable(committable)?;
            if !ids.insert(prepared.id.clone()) {
                continue;
            }
            let of = |group: &&mut Group| {
                group.marker.lineage == prepared.lineage && group.marker.checkpoint == prepared.checkpoint
            };
            let group = match groups.iter_mut().find(of) {
                Some(group) => group,
                None => {
                    groups.push(Group { prepared: Vec::new(), marker: self.marker(checkpoint, &prepared) });
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            let files = prepared.files()?;
            group.prepared.push((prepared, files));
        }
        Ok(groups)
    }

    fn marker(&self, checkpoint: &CompletedCheckpoint, prepared: &PreparedFiles) -> CommitMarker {
        let (job_id, operator_id) = self.sink_id.split_once('/').unwrap_or((&self.sink_id, ""));
        let positions = Some(&checkpoint.positions).filter(|positions| !positions.is_empty());
        CommitMarker {
            lineage: prepared.lineage.clone(),
            checkpoint: prepared.checkpoint,
            commit_ids: Vec::new(),
            job_id: job_id.to_owned(),
            operator_id: operator_id.to_owned(),
            source_position: positions.and_then(|positions| serde_json::to_string(positions).ok()),
        }
    }

    /// Plans the snapshot of a group; None if all of it has landed.
    fn plan(
        &self,
        group: &Group,
        table: &IcebergTable,
        occasion: Occasion,
    ) -> Result<Option<SnapshotChange>> {
        let metadata = table.metadata();
        let pending = self.pending(group, table)?;
        if pending.is_empty() {
            return Ok(None);
        }
        if occasion == Occasion::Checkpoint {
            // Rows that are written already fit the table as it was; who goes on writing must fit it as it is.
            FileSchema::new(&self.columns, metadata.current_schema(), &table.ident().to_string())?;
        }
        let files = pending.iter().flat_map(|(_, files)| files).cloned();
        let (data, deletes): (Vec<_>, Vec<_>) =
            files.partition(|file| file.file.content_type() == DataContentType::Data);
        // What has landed already has replaced what there was.
        let has_landed = pending.len() < group.prepared.len();
        let removal = if has_landed { FileRemoval::Nothing } else { removal(&pending, metadata) };
        let branch = self.options.branch.clone();
        let mut change = SnapshotChange { data, deletes, removal, branch, ..SnapshotChange::default() };
        let commit_ids = pending.iter().map(|(prepared, _)| prepared.id.clone()).collect();
        CommitMarker { commit_ids, ..group.marker.clone() }.mark(metadata, &mut change)?;
        if self.options.is_batch {
            // Nobody goes on with such a job, so its snapshot tells enough.
            change.properties.retain(|key, _| !key.starts_with(COMMITTED_PREFIX));
            change.summary.insert(FLINK_CHECKPOINT.to_owned(), i64::MAX.to_string());
        } else if group.marker.lineage == self.lineage {
            let earlier = self.earlier.iter().map(|lineage| format!("{COMMITTED_PREFIX}{lineage}"));
            change.removed_properties.extend(earlier.filter(|key| metadata.properties().contains_key(key)));
        }
        Ok(Some(change))
    }

    /// Returns what of a group has not landed.
    fn pending<'a>(
        &self,
        group: &'a Group,
        table: &IcebergTable,
    ) -> Result<Vec<&'a (PreparedFiles, Vec<TableFile>)>> {
        let metadata = table.metadata();
        if let Some((prepared, _)) = group.prepared.iter().find(|(of, _)| of.table != metadata.uuid()) {
            return Err(Error::new(
                ErrorKind::State,
                format!(
                    "Iceberg table '{}' is another one than checkpoint {} was written for",
                    table.ident(),
                    prepared.checkpoint
                ),
            )
            .hint("It was dropped and created anew. Start the job again without its checkpoints."));
        }
        let is_pending = |(prepared, _): &&(PreparedFiles, Vec<TableFile>)| {
            !is_committed(metadata, &prepared.lineage, prepared.checkpoint, &prepared.id)
        };
        Ok(group.prepared.iter().filter(is_pending).collect())
    }

    /// Sees that files which are still to be committed are there.
    async fn expect_files(&self, group: &Group) -> Result<()> {
        let table = self.table.reload().await?;
        let pending = self.pending(group, &table)?;
        let paths = pending.iter().flat_map(|(prepared, _)| prepared.paths());
        let paths: Vec<String> = paths.map(str::to_owned).collect();
        let look = paths.into_iter().map(|path| {
            let files = table.files().clone();
            async move {
                if files.exists(&path).await? {
                    return Ok(());
                }
                Err(Error::new(ErrorKind::State, format!("file '{path}' is gone before it was committed"))
                    .hint("It holds rows of a checkpoint: files that are in no snapshot may only be removed if no job is to go on from one."))
            }
        });
        stream::iter(look).buffer_unordered(LOOKED_FOR_AT_A_TIME).try_collect().await
    }
}

/// Returns what leaves the table when prepared files come.
fn removal(pending: &[&(PreparedFiles, Vec<TableFile>)], metadata: &TableMetadata) -> FileRemoval {
    if pending.iter().any(|(prepared, _)| prepared.replaced == Replaced::Everything) {
        return FileRemoval::Everything;
    }
    let mut partitions: Vec<(i32, Struct)> = Vec::new();
    let touching = pending.iter().filter(|(prepared, _)| prepared.replaced == Replaced::TouchedPartitions);
    for written in touching.flat_map(|(_, files)| files) {
        let spec = metadata.partition_spec_by_id(written.spec_id);
        if spec.is_none_or(|spec| spec.is_unpartitioned()) {
            return FileRemoval::Everything;
        }
        let partition = (written.spec_id, written.file.partition().clone());
        if !partitions.contains(&partition) {
            partitions.push(partition);
        }
    }
    if partitions.is_empty() { FileRemoval::Nothing } else { FileRemoval::Partitions(partitions) }
}

#[async_trait]
impl Committer for IcebergCommitter {
    async fn commit(&mut self, checkpoint: &CompletedCheckpoint, committables: &[Committable]) -> Result<()> {
        self.commit_all(checkpoint, committables, Occasion::Checkpoint).await
    }

    async fn commit_after_recovery(
        &mut self,
        checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
    ) -> Result<()> {
        self.commit_all(checkpoint, committables, Occasion::Recovery).await
    }

    async fn discard_unfinished(&mut self, sink_id: &str, kept: &[Committable]) -> Result<()> {
        let lineage = lineage_of(sink_id);
        if lineage != self.lineage {
            self.earlier.insert(lineage);
        }
        let kept = kept.iter().map(PreparedFiles::from_committable).collect::<Result<Vec<_>>>()?;
        let kept: Vec<&str> = kept.iter().flat_map(PreparedFiles::paths).collect();
        let table = self.table.reload().await?;
        let metadata = table.metadata();
        let settings = WriteSettings::new(&self.options.properties(metadata), metadata)?;
        remove_orphans(&table, &settings.data_folder, sink_id, &kept).await
    }

    async fn forget_commits(&mut self) -> Result<()> {
        if !self.options.is_batch {
            self.table = forget(&self.table, &self.lineage).await?;
        }
        Ok(())
    }
}
