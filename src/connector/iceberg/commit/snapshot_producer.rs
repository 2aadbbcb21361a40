//! Makes a snapshot: the manifests, their list, the summary, and what the catalog is asked to change.
//!
//! The order is: entries that go are marked in copies of their manifests, files that come stand in new manifests of their own, small
//! manifests are merged. A manifest is copied only if one of its entries goes, and one that only tells what earlier snapshots have
//! removed is left out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::future::try_join_all;
use iceberg::spec::{
    DataContentType, FormatVersion, MAIN_BRANCH, ManifestContentType, ManifestFile, ManifestStatus,
    Operation, Snapshot, SnapshotRef, Summary, TableMetadata,
};
use iceberg::{TableRequirement, TableUpdate};
use uuid::Uuid;

use super::SnapshotChange;
use super::commit_loop::Attempt;
use super::manifest_merge::ManifestMerge;
use super::manifest_store::{ManifestStore, SnapshotManifest, with_context};
use super::removal_filter::RemovalFilter;
use super::row_deletes::check_row_deletes;
use super::snapshot_summary::SummaryCounts;
use crate::connector::iceberg::dropped_partition_fields::{build_metadata, metadata_builder};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::manifest::{RewrittenManifest, TableFile};
use crate::connector::iceberg::snapshot_history::head;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// How many manifests are read at a time.
const READS: usize = 8;

/// Makes one snapshot for a table as it is.
pub(super) struct SnapshotProducer<'a> {
    table: &'a IcebergTable,
    snapshot_id: i64,
    store: ManifestStore<'a>,
    counts: SummaryCounts,
    replaced: usize,
}

impl<'a> SnapshotProducer<'a> {
    /// `written` takes the path of each file before it is written.
    pub(super) fn new(table: &'a IcebergTable, written: &'a mut Vec<String>) -> SnapshotProducer<'a> {
        let snapshot_id = new_snapshot_id(table.metadata());
        let store = ManifestStore::new(table, snapshot_id, written);
        SnapshotProducer { table, snapshot_id, store, counts: SummaryCounts::default(), replaced: 0 }
    }

    /// Writes the manifests and their list. None if nothing changes.
    pub(super) async fn produce(mut self, change: SnapshotChange) -> Result<Option<Attempt>> {
        self.check(&change)?;
        let metadata = self.table.metadata();
        let branch = change.branch.as_deref().unwrap_or(MAIN_BRANCH);
        let parent = head(metadata, Some(branch));
        let before = match parent {
            Some(parent) => self.store.list(parent).await?,
            None => Vec::new(),
        };
        let mut filter = RemovalFilter::new(change.removal.clone(), change.rewritten_at);
        let (rewritten, kept) = self.remove(before, &mut filter).await?;
        if let Some(path) = filter.missing() {
            return Err(self.gone(path, parent));
        }
        let added = self.add(&change).await?;
        let mut updates = property_updates(metadata, &change);
        if added.is_empty() && rewritten.is_empty() {
            let uuid = TableRequirement::UuidMatch { uuid: metadata.uuid() };
            let attempt = Attempt { requirements: vec![uuid], updates, snapshot_id: None };
            return Ok((!attempt.updates.is_empty()).then_some(attempt));
        }

        let (merged, kept) = self.merge(kept).await?;
        self.counts.set_manifests(added.len() + rewritten.len() + merged.len(), kept.len(), self.replaced);
        let manifests = added.into_iter().chain(rewritten).chain(merged).chain(kept).collect();
        let (list, row_range) =
            self.store.write_list(parent.map(|parent| parent.snapshot_id()), manifests).await?;
        let snapshot = self.snapshot(&change, parent, list, row_range);
        let requirements = vec![
            TableRequirement::UuidMatch { uuid: metadata.uuid() },
            TableRequirement::RefSnapshotIdMatch {
                r#ref: branch.to_owned(),
                snapshot_id: metadata.snapshot_for_ref(branch).map(|snapshot| snapshot.snapshot_id()),
            },
        ];
        // The builder keeps the branch's retention, which nobody else can read.
        let builder = metadata_builder(metadata, None)
            .and_then(|builder| builder.set_branch_snapshot(snapshot, branch));
        let built = builder.and_then(build_metadata).map_err(|error| {
            let table = self.table.ident();
            let context = format!("no snapshot can be added to branch '{branch}' of table '{table}'");
            with_context(&context, from_iceberg(error))
        })?;
        updates.extend(built.changes);
        Ok(Some(Attempt { requirements, updates, snapshot_id: Some(self.snapshot_id) }))
    }

    /// Refuses what the table's format cannot hold.
    fn check(&self, change: &SnapshotChange) -> Result<()> {
        let name = self.table.ident();
        let misplaced = |files: &[TableFile], content: DataContentType| {
            files
                .iter()
                .find(|file| file.file.content_type() != content)
                .map(|file| file.file.file_path().to_owned())
        };
        let wrong = misplaced(&change.data, DataContentType::Data)
            .or_else(|| misplaced(&change.deletes, DataContentType::PositionDeletes));
        if let Some(path) = wrong {
            return Err(Error::internal(format!(
                "'{path}' is in the wrong list of files for table '{name}'"
            )));
        }
        let mut paths = BTreeSet::new();
        let twice =
            change.data.iter().chain(&change.deletes).find(|file| !paths.insert(file.file.file_path()));
        if let Some(file) = twice {
            let path = file.file.file_path();
            return Err(Error::internal(format!("'{path}' would be added to table '{name}' twice")));
        }
        if change.deletes.is_empty() {
            return Ok(());
        }
        check_row_deletes(self.table.metadata(), name)
    }

    /// Takes entries away. Returns the copies of manifests that had some, and those that stay as they are.
    async fn remove(
        &mut self,
        before: Vec<ManifestFile>,
        filter: &mut RemovalFilter,
    ) -> Result<(Vec<SnapshotManifest>, Vec<ManifestFile>)> {
        let (mut copies, mut kept) = (Vec::new(), Vec::new());
        let (data, deletes): (Vec<ManifestFile>, Vec<ManifestFile>) =
            before.into_iter().partition(|manifest| manifest.content == ManifestContentType::Data);
        for manifests in [data, deletes] {
            let mut unread: Vec<ManifestFile> = Vec::new();
            for manifest in manifests {
                if !manifest.has_added_files() && !manifest.has_existing_files() {
                    self.replaced += 1;
                } else if filter.may_take_from(&manifest) {
                    unread.push(manifest);
                } else {
                    filter.note_live(&manifest);
                    kept.push(manifest);
                }
            }
            for some in unread.chunks(READS) {
                // What was looked for may be found by now.
                let (wanted, rest): (Vec<_>, Vec<_>) =
                    some.iter().partition(|manifest| filter.may_take_from(manifest));
                for manifest in rest {
                    filter.note_live(manifest);
                    kept.push(manifest.clone());
                }
                let loaded = try_join_all(wanted.iter().map(|manifest| self.store.read(manifest))).await?;
                for (manifest, loaded) in wanted.into_iter().zip(loaded) {
                    match self.remove_from(manifest, loaded, filter).await? {
                        Some(copy) => copies.push(copy),
                        None => kept.push(manifest.clone()),
                    }
                }
            }
        }
        Ok((copies, kept))
    }

    /// Copies a manifest without the entries that go. None if all stay.
    async fn remove_from(
        &mut self,
        manifest: &ManifestFile,
        loaded: RewrittenManifest,
        filter: &mut RemovalFilter,
    ) -> Result<Option<SnapshotManifest>> {
        let spec_id = manifest.partition_spec_id;
        let RewrittenManifest { schema, entries } = loaded;
        let goes: Vec<bool> =
            entries.iter().map(|entry| entry.is_alive() && filter.takes(spec_id, entry)).collect();
        if !goes.contains(&true) {
            return Ok(None);
        }
        let mut copy = self.store.create_with(schema, spec_id, manifest.content)?;
        for (entry, goes) in entries.into_iter().zip(goes) {
            if goes {
                self.counts.remove(spec_id, &entry.data_file);
                copy.remove(entry)?;
            } else if entry.status != ManifestStatus::Deleted {
                copy.keep(entry)?;
            }
        }
        self.replaced += 1;
        copy.finish().await.map(Some)
    }

    /// Writes the manifests of the files that come: one for each kind and partition spec.
    async fn add(&mut self, change: &SnapshotChange) -> Result<Vec<SnapshotManifest>> {
        let mut manifests = Vec::new();
        let kinds = [
            (&change.data, ManifestContentType::Data, change.rewritten_at),
            (&change.deletes, ManifestContentType::Deletes, None),
        ];
        for (files, content, sequence_number) in kinds {
            let mut by_spec: BTreeMap<i32, Vec<&TableFile>> = BTreeMap::new();
            for file in files {
                by_spec.entry(file.spec_id).or_default().push(file);
            }
            for (spec_id, files) in by_spec {
                let mut manifest = self.store.create(spec_id, content)?;
                for file in files {
                    self.counts.add(spec_id, &file.file);
                    manifest.add(file, sequence_number)?;
                }
                manifests.push(manifest.finish().await?);
            }
        }
        Ok(manifests)
    }

    /// Merges small manifests. Returns the merged ones, and those that stay.
    async fn merge(
        &mut self,
        kept: Vec<ManifestFile>,
    ) -> Result<(Vec<SnapshotManifest>, Vec<SnapshotManifest>)> {
        let chosen = ManifestMerge::of(self.table.metadata())?.choose(&kept.iter().collect::<Vec<_>>());
        let mut merged = Vec::new();
        for group in &chosen {
            merged.push(self.merge_group(&kept, group).await?);
            self.replaced += group.len();
        }
        let goes: BTreeSet<usize> = chosen.into_iter().flatten().collect();
        let stays = kept.into_iter().enumerate().filter(|(at, _)| !goes.contains(at));
        Ok((merged, stays.map(|(_, manifest)| SnapshotManifest::kept(manifest)).collect()))
    }

    async fn merge_group(&mut self, kept: &[ManifestFile], group: &[usize]) -> Result<SnapshotManifest> {
        let mut merged = None;
        for some in group.chunks(READS) {
            let loaded = try_join_all(some.iter().map(|at| self.store.read(&kept[*at]))).await?;
            for (at, RewrittenManifest { schema, entries }) in some.iter().zip(loaded) {
                // The newest comes first: its schema knows the columns of all.
                let manifest = match &mut merged {
                    Some(manifest) => manifest,
                    None => {
                        let (spec_id, content) = (kept[*at].partition_spec_id, kept[*at].content);
                        merged.insert(self.store.create_with(schema, spec_id, content)?)
                    }
                };
                for entry in entries.into_iter().filter(iceberg::spec::ManifestEntry::is_alive) {
                    manifest.keep(entry)?;
                }
            }
        }
        match merged {
            Some(merged) => merged.finish().await,
            None => Err(Error::internal("no manifests were to be merged")),
        }
    }

    fn snapshot(
        &self,
        change: &SnapshotChange,
        parent: Option<&SnapshotRef>,
        list: String,
        (first_row_id, rows): (u64, u64),
    ) -> Snapshot {
        let metadata = self.table.metadata();
        let additional_properties =
            self.counts.build(parent.map(|parent| parent.summary()), change.summary.clone());
        let not_before = metadata.last_updated_ms().max(parent.map_or(0, |parent| parent.timestamp_ms()));
        let builder = Snapshot::builder()
            .with_snapshot_id(self.snapshot_id)
            .with_parent_snapshot_id(parent.map(|parent| parent.snapshot_id()))
            .with_sequence_number(metadata.next_sequence_number())
            .with_timestamp_ms(chrono::Utc::now().timestamp_millis().max(not_before))
            .with_manifest_list(list)
            .with_summary(Summary { operation: self.operation(change), additional_properties })
            .with_schema_id(metadata.current_schema_id());
        match metadata.format_version() {
            FormatVersion::V3 => builder.with_row_range(first_row_id, rows).build(),
            _ => builder.build(),
        }
    }

    fn operation(&self, change: &SnapshotChange) -> Operation {
        let takes = ["deleted-data-files", "removed-delete-files", "added-delete-files"];
        if change.rewritten_at.is_some() {
            Operation::Replace
        } else if !takes.iter().any(|key| self.counts.has(key)) {
            Operation::Append
        } else if change.data.is_empty() {
            Operation::Delete
        } else {
            Operation::Overwrite
        }
    }

    fn gone(&self, path: &str, parent: Option<&SnapshotRef>) -> Error {
        let snapshot = parent.map_or("none".to_owned(), |parent| parent.snapshot_id().to_string());
        let table = self.table.ident();
        Error::unavailable(format!(
            "file '{path}' is no more in table '{table}' (snapshot {snapshot}), and cannot be removed"
        ))
        .hint("Another writer has removed it. A job that goes on looks at the table anew.")
    }
}

/// Returns an id that no snapshot has.
fn new_snapshot_id(metadata: &TableMetadata) -> i64 {
    loop {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        let id = ((high ^ low) >> 1) as i64;
        if metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}

/// Returns what changes of the properties: what is so already is left out.
fn property_updates(metadata: &TableMetadata, change: &SnapshotChange) -> Vec<TableUpdate> {
    let now = metadata.properties();
    let removals: Vec<String> =
        change.removed_properties.iter().filter(|key| now.contains_key(*key)).cloned().collect();
    let properties = change.properties.iter().filter(|(key, value)| now.get(*key) != Some(*value));
    let properties: HashMap<String, String> =
        properties.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut updates = Vec::new();
    if !removals.is_empty() {
        updates.push(TableUpdate::RemoveProperties { removals });
    }
    if !properties.is_empty() {
        updates.push(TableUpdate::SetProperties { updates: properties });
    }
    updates
}
