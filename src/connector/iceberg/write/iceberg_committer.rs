//! Makes what all writers have prepared for a checkpoint one snapshot.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{DataContentType, TableMetadata};
use tracing::warn;

use super::file_names::FileNames;
use super::file_schema::{FileSchema, WrittenColumns};
use super::orphan_files::remove_orphans;
use super::position_delete_writer::{DeletedRows, PositionDeleteWriter};
use super::prepared_files::{PreparedFiles, Replaced};
use super::upsert::{DeleteResolver, PreparedUpsert, RowIdentity};
use super::write_options::WriteOptions;
use super::write_settings::WriteSettings;
use crate::connector::iceberg::commit::{
    CommitMarker, FileRemoval, RESOLVED_DELETES, SnapshotChange, SnapshotPlan, commit_snapshot,
    committed_key, forget, is_committed, lineage_of,
};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::scan::live_files;
use crate::connector::iceberg::snapshot_history::head;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::{CheckpointId, Committable, Committer, CompletedCheckpoint};
use crate::error::{Error, ErrorKind, Result};

/// Stands for the number of a writer in the names of what the committer writes itself.
const COMMITTER: usize = 99_999;

/// How many files are looked for at a time.
const LOOKED_FOR_AT_A_TIME: usize = 16;

/// Commits appends and overwrites.
pub(super) struct IcebergCommitter {
    table: IcebergTable,
    columns: WrittenColumns,
    options: WriteOptions,
    sink_id: String,
    lineage: String,
    /// What tells rows apart, if rows are replaced.
    identity: Option<Arc<RowIdentity>>,
    names: Arc<FileNames>,
    /// Earlier runs that this one goes on from: what their properties say is not needed once this one has committed.
    earlier: BTreeSet<String>,
}

/// The files of one lineage and checkpoint.
struct Group {
    prepared: Vec<Member>,
    marker: CommitMarker,
    /// The ids of those that have landed and of which no mark in the table tells any more.
    landed: BTreeSet<String>,
}

/// A committable.
struct Member {
    prepared: PreparedFiles,
    data: Vec<TableFile>,
    deletes: Vec<TableFile>,
    /// If rows are replaced: the same files, and what they replace.
    upsert: Option<PreparedUpsert>,
}

impl Member {
    fn new(prepared: PreparedFiles) -> Result<Member> {
        let is_data = |file: &TableFile| file.file.content_type() == DataContentType::Data;
        let (data, deletes): (Vec<_>, Vec<_>) = prepared.files()?.into_iter().partition(is_data);
        let Some(lookup) = prepared.lookup()? else {
            return Ok(Member { prepared, data, deletes, upsert: None });
        };
        let upsert = Some(PreparedUpsert { lookup, data: data.clone(), deletes });
        Ok(Member { prepared, data, deletes: Vec::new(), upsert })
    }

    /// Returns whether it changes nothing in the table for which it was prepared.
    fn is_nothing(&self) -> bool {
        self.prepared.replaced != Replaced::Everything && self.prepared.paths().next().is_none()
    }
}

/// The commit of a group.
struct GroupPlan<'a> {
    committer: &'a IcebergCommitter,
    group: &'a Group,
    /// The groups that are committed after it.
    later: &'a [Group],
    occasion: Occasion,
    resolver: Option<DeleteResolver<'a>>,
    /// What was deleted beyond what was prepared, as the last attempt has it.
    resolved: ResolvedDeletes,
}

/// Deletes beyond what was prepared.
#[derive(Default)]
struct ResolvedDeletes {
    rows: Vec<DeletedRows>,
    files: Vec<TableFile>,
    /// How many attempts with these files may land.
    open_attempts: usize,
}

impl ResolvedDeletes {
    /// Removes the files if no attempt with them can land any more.
    async fn discard(self, table: &IcebergTable) {
        if self.open_attempts == 0 {
            discard_files(table, &self.files).await;
        }
    }
}

/// Removes files that no snapshot will ever name. What stays behind is garbage, and no reason to fail.
pub(super) async fn discard_files(table: &IcebergTable, files: &[TableFile]) {
    let paths = files.iter().map(|file| file.file.file_path().to_owned());
    if let Err(error) = table.files().delete_all(paths.collect::<Vec<_>>()).await {
        warn!(table = %table.ident(), %error, "files that were written and are not committed stay");
    }
}

/// Returns the error of a table that has taken the place of the one that a checkpoint was written for.
fn another_table(table: &IcebergTable, checkpoint: CheckpointId) -> Error {
    let message = format!(
        "Iceberg table '{}' is another one than checkpoint {checkpoint} was written for",
        table.ident()
    );
    Error::new(ErrorKind::State, message)
        .hint("It was dropped and created anew. Start the job again without its checkpoints.")
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
        identity: Option<Arc<RowIdentity>>,
        sink_id: &str,
    ) -> IcebergCommitter {
        let lineage = lineage_of(sink_id);
        let names = Arc::new(FileNames::new(sink_id, COMMITTER));
        let sink_id = sink_id.to_owned();
        let earlier = BTreeSet::new();
        IcebergCommitter { table, columns, options, sink_id, lineage, identity, names, earlier }
    }

    async fn commit_all(
        &mut self,
        checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
        occasion: Occasion,
    ) -> Result<()> {
        let mut groups = self.groups(checkpoint, committables)?;
        for at in 0..groups.len() {
            if occasion == Occasion::Recovery {
                self.look_back(&mut groups[at]).await?;
            }
            let group = &groups[at];
            let mut plan = GroupPlan {
                committer: self,
                group,
                later: &groups[at + 1..],
                occasion,
                resolver: None,
                resolved: ResolvedDeletes::default(),
            };
            let committed = commit_snapshot(&self.table, &mut plan).await;
            let resolved = std::mem::take(&mut plan.resolved);
            match committed {
                Ok(table) => self.table = table,
                Err(error) => {
                    resolved.discard(&self.table).await;
                    return Err(error);
                }
            }
            if group.marker.lineage == self.lineage {
                self.earlier.clear();
            } else {
                self.earlier.insert(group.marker.lineage.clone());
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
                    let marker = self.marker(checkpoint, &prepared);
                    groups.push(Group { prepared: Vec::new(), marker, landed: BTreeSet::new() });
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            group.prepared.push(Member::new(prepared)?);
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
            // Nobody goes on with a batch job, so its snapshot tells enough.
            keeps_property: !self.options.is_batch,
            flink_checkpoint: match self.options.is_batch {
                true => i64::MAX,
                false => prepared.checkpoint as i64,
            },
        }
    }

    /// Returns what of a group has not landed.
    fn pending<'a>(&self, group: &'a Group, table: &IcebergTable) -> Result<Vec<&'a Member>> {
        let metadata = table.metadata();
        let foreign = group.prepared.iter().find(|member| member.prepared.table != metadata.uuid());
        if let Some(foreign) = foreign {
            return Err(another_table(table, foreign.prepared.checkpoint));
        }
        let is_pending = |member: &&Member| {
            let prepared = &member.prepared;
            !group.landed.contains(&prepared.id)
                && !is_committed(metadata, &prepared.lineage, prepared.checkpoint, &prepared.id)
        };
        Ok(group.prepared.iter().filter(is_pending).collect())
    }

    /// Finds what of a group has landed a long time ago, and sees that the files of the rest are there.
    async fn look_back(&self, group: &mut Group) -> Result<()> {
        let table = self.table.reload().await?;
        let pending = self.pending(group, &table)?.len();
        if pending == 0 {
            return Ok(());
        }
        // A commit that comes to nothing leaves no mark. Had it not been made, it would come to nothing all the same, as what others
        // have added since comes after it.
        if pending == group.prepared.len() && group.prepared.iter().all(Member::is_nothing) {
            group.landed = group.prepared.iter().map(|member| member.prepared.id.clone()).collect();
            return Ok(());
        }
        // The marks go: snapshots expire, and a run that goes on from this one takes its property away. Files that are in the table
        // can only have come with the commit, and would be there twice.
        let live = self.live_paths(&table).await?;
        let is_live = |member: &&Member| member.prepared.paths().any(|path| live.contains(path));
        let landed = group.prepared.iter().filter(is_live).map(|member| member.prepared.id.clone());
        group.landed = landed.collect();
        self.expect_files(&self.pending(group, &table)?, &table).await
    }

    /// Returns where the data files are that the table has now, and the files of position deletes.
    async fn live_paths(&self, table: &IcebergTable) -> Result<HashSet<String>> {
        let head = head(table.metadata(), self.options.branch.as_deref());
        let Some(head) = head else { return Ok(HashSet::new()) };
        let mut paths = HashSet::new();
        for live in live_files(table, Some(head.snapshot_id())).await? {
            let deletes = live.deletes.positions.iter().map(|delete| delete.file.file.file_path().to_owned());
            paths.extend(deletes);
            paths.insert(live.data.file.file_path().to_owned());
        }
        Ok(paths)
    }

    /// Sees that files which are still to be committed are there.
    async fn expect_files(&self, pending: &[&Member], table: &IcebergTable) -> Result<()> {
        let paths = pending.iter().flat_map(|member| member.prepared.paths());
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

#[async_trait]
impl SnapshotPlan for GroupPlan<'_> {
    /// Plans the snapshot of a group; None if all of it has landed.
    async fn plan(&mut self, table: &IcebergTable) -> Result<Option<SnapshotChange>> {
        let (committer, metadata) = (self.committer, table.metadata());
        let pending = committer.pending(self.group, table)?;
        if pending.is_empty() {
            return Ok(None);
        }
        if self.occasion == Occasion::Checkpoint {
            // Rows that are written already fit the table as it was; who goes on writing must fit it as it is.
            FileSchema::new(&committer.columns, metadata.current_schema(), &table.ident().to_string())?;
        }
        // What has landed already has replaced what there was.
        let has_landed = pending.len() < self.group.prepared.len();
        let removal = if has_landed { FileRemoval::Nothing } else { removal(&pending, metadata) };
        let branch = committer.options.branch.clone();
        let mut change = SnapshotChange { removal, branch, ..SnapshotChange::default() };
        change.data.extend(pending.iter().flat_map(|member| &member.data).cloned());
        change.deletes.extend(pending.iter().flat_map(|member| &member.deletes).cloned());
        self.resolve(&pending, table, &mut change).await?;
        if change.data.is_empty() && change.deletes.is_empty() && change.removal == FileRemoval::Nothing {
            return Ok(None);
        }
        let commit_ids = pending.iter().map(|member| member.prepared.id.clone()).collect();
        CommitMarker { commit_ids, ..self.group.marker.clone() }.mark(metadata, &mut change)?;
        if !committer.options.is_batch && self.group.marker.lineage == committer.lineage {
            let earlier = committer.earlier.iter().map(|lineage| committed_key(lineage));
            change.removed_properties.extend(earlier.filter(|key| metadata.properties().contains_key(key)));
        }
        Ok(Some(change))
    }

    fn beaten(&mut self) {
        self.resolved.open_attempts = self.resolved.open_attempts.saturating_sub(1);
    }
}

impl<'a> GroupPlan<'a> {
    /// Adds the deletes of upserts, as they have to be in the table as it is now.
    async fn resolve(
        &mut self,
        pending: &[&'a Member],
        table: &IcebergTable,
        change: &mut SnapshotChange,
    ) -> Result<()> {
        let upserts: Vec<&PreparedUpsert> =
            pending.iter().filter_map(|member| member.upsert.as_ref()).collect();
        if change.removal == FileRemoval::Everything {
            // Whatever the rows would replace goes as it is; what was prepared concerns only files that come.
            change.deletes.extend(upserts.iter().flat_map(|upsert| &upsert.deletes).cloned());
            return Ok(());
        }
        if upserts.is_empty() {
            return Ok(());
        }
        let committer = self.committer;
        let resolver = match &mut self.resolver {
            Some(resolver) => resolver,
            None => {
                let identity = committer.identity.as_deref();
                let identity = identity
                    .ok_or_else(|| Error::internal("rows are replaced and nothing tells them apart"))?;
                let later = self.later.iter().flat_map(|group| &group.prepared);
                let later = later.filter_map(|member| member.upsert.as_ref());
                let branch = committer.options.branch.as_deref();
                self.resolver.insert(DeleteResolver::new(identity, upserts, later, branch))
            }
        };
        let resolution = resolver.resolve(table).await?;
        change.deletes.extend(resolution.deletes);
        if self.resolved.rows != resolution.more {
            // Those of an earlier attempt that may land after all stay.
            std::mem::take(&mut self.resolved).discard(table).await;
        }
        if resolution.more.is_empty() {
            return Ok(());
        }
        let count: usize = resolution.more.iter().map(|deleted| deleted.positions.len()).sum();
        change.summary.insert(RESOLVED_DELETES.to_owned(), count.to_string());
        if self.resolved.rows.is_empty() {
            let properties = committer.options.properties(table.metadata());
            let settings = Arc::new(WriteSettings::new(&properties, table.metadata())?);
            let writer = PositionDeleteWriter::new(table, settings, Arc::clone(&committer.names))?;
            writer.write(resolution.more.clone(), &mut self.resolved.files).await?;
            self.resolved.rows = resolution.more;
        }
        self.resolved.open_attempts += 1;
        change.deletes.extend(self.resolved.files.iter().cloned());
        Ok(())
    }
}

/// Returns what leaves the table when prepared files come.
fn removal(pending: &[&Member], metadata: &TableMetadata) -> FileRemoval {
    if pending.iter().any(|member| member.prepared.replaced == Replaced::Everything) {
        return FileRemoval::Everything;
    }
    let mut partitions = HashSet::new();
    let touching = pending.iter().filter(|member| member.prepared.replaced == Replaced::TouchedPartitions);
    for written in touching.flat_map(|member| member.data.iter().chain(&member.deletes)) {
        let spec = metadata.partition_spec_by_id(written.spec_id);
        if spec.is_none_or(|spec| spec.is_unpartitioned()) {
            return FileRemoval::Everything;
        }
        partitions.insert(written.partition_key());
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

    fn place(&self) -> Option<String> {
        Some(self.table.metadata().uuid().to_string())
    }

    fn check_place(&self, place: &str, checkpoint: CheckpointId) -> Result<()> {
        if self.place().as_deref() == Some(place) {
            return Ok(());
        }
        Err(another_table(&self.table, checkpoint))
    }

    async fn forget_commits(&mut self) -> Result<()> {
        if !self.options.is_batch {
            self.table = forget(&self.table, &self.lineage).await?;
        }
        Ok(())
    }
}
