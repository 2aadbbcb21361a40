//! The checkpoints of one job: writes them, merges their segments, removes what no retained one needs.
//!
//! It removes only what it has written itself: files of its own names that no manifest mentions. Where a manifest cannot be read,
//! nobody knows what it mentions, so files from before stay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;

use super::checkpoint_data::{CheckpointData, OperatorChanges};
use super::compaction::{merge_segments, merge_start};
use super::disk::{Disk, cannot};
use super::evolution::goes_on;
use super::job_folder::{JobFolder, checkpoint_folders, entries};
use super::manifest::{METADATA, METADATA_DRAFT, Manifest, OperatorState, SHARED, SegmentEntry, TableState};
use super::restore::Restore;
use super::segment::Segment;
use super::segment_writer::SegmentWriter;
use crate::connector::CheckpointId;
use crate::error::{Error, Result};
use crate::state::StateTable;

/// Writes the checkpoints of a job into its folder.
#[derive(Debug)]
pub(crate) struct CheckpointStore {
    folder: JobFolder,
    shared: PathBuf,
    retained: usize,
    /// How many bytes of deltas are left beside a base however small it is.
    delta_bytes_min: u64,
    disk: Disk,
    next: CheckpointId,
    /// Tables as the newest checkpoint has them.
    operators: Vec<OperatorState>,
    /// The segments that the next checkpoint builds on, oldest first.
    segments: Vec<SegmentEntry>,
    /// Changes of checkpoints that have failed.
    unwritten: Vec<(CheckpointId, Vec<OperatorChanges>)>,
    /// Checkpoints that are retained, oldest first.
    completed: Vec<Manifest>,
    /// The files in `shared` that may be removed when nothing needs them.
    files: BTreeSet<String>,
}

/// A checkpoint or savepoint that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointSummary {
    /// Its number.
    pub(crate) number: CheckpointId,
    /// Its folder, which a later job can start from.
    pub(crate) path: PathBuf,
    /// The bytes that were written for it.
    pub(crate) bytes: u64,
    /// The bytes of all files that it needs.
    pub(crate) bytes_total: u64,
}

impl CheckpointStore {
    /// Opens the folder of a job, which may hold earlier checkpoints, and removes what a crash has left behind. `retained` (at least
    /// 1) is how many checkpoints are kept.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn open(folder: JobFolder, retained: usize) -> Result<CheckpointStore> {
        CheckpointStore::open_on(Disk::default(), folder, retained)
    }

    /// Opens it on a disk that may die.
    pub(super) fn open_on(disk: Disk, folder: JobFolder, retained: usize) -> Result<CheckpointStore> {
        let mut store = CheckpointStore {
            shared: folder.path().join(SHARED),
            folder,
            retained: retained.max(1),
            delta_bytes_min: 0,
            disk,
            next: 1,
            operators: Vec::new(),
            segments: Vec::new(),
            unwritten: Vec::new(),
            completed: Vec::new(),
            files: BTreeSet::new(),
        };
        store.take_stock()?;
        Ok(store)
    }

    /// Leaves so many bytes of deltas beside a base however small it is; without this, none.
    pub(crate) fn with_delta_bytes_min(self, delta_bytes_min: u64) -> CheckpointStore {
        CheckpointStore { delta_bytes_min, ..self }
    }

    /// Looks what is there, and removes what is not part of a checkpoint.
    fn take_stock(&mut self) -> Result<()> {
        let mut is_all_readable = true;
        for (number, folder) in checkpoint_folders(self.folder.path())? {
            self.next = self.next.max(number + 1);
            if !folder.join(METADATA).exists() {
                self.remove_checkpoint(number)?;
                continue;
            }
            match Manifest::read(&folder) {
                Ok(manifest) => self.completed.push(manifest),
                Err(error) => {
                    tracing::warn!("{error}");
                    is_all_readable = false;
                }
            }
        }
        if is_all_readable {
            let names = entries(&self.shared)?.into_iter().map(|(name, _)| name);
            self.files = names.filter(|name| is_segment_file(name)).collect();
            self.remove_unneeded()?;
        }
        Ok(())
    }

    /// Returns the number of the next checkpoint, to be asked for before sinks prepare. Numbers grow, also over restores.
    pub(crate) fn next_number(&mut self) -> CheckpointId {
        self.next += 1;
        self.next - 1
    }

    /// Goes on from a restored checkpoint: further ones build on its segments. Segments of another folder are linked or copied into
    /// the job's own, so that the job never depends on them. To be called for every restore, also of the job's own checkpoint
    /// after a failure.
    ///
    /// # Errors
    /// The segments cannot be copied.
    pub(crate) fn continue_from(&mut self, restore: &Restore) -> Result<()> {
        let manifest = restore.manifest();
        self.start_anew();
        self.next = self.next.max(manifest.number + 1);
        let folder = manifest.segment_folder(restore.path());
        // With an unreadable manifest in the job's folder, its own files count as strange too, and are there.
        if folder.canonicalize().ok() != self.shared.canonicalize().ok() {
            self.take_over(&folder, &manifest.segments)?;
        }
        self.operators.clone_from(&manifest.operators);
        self.segments.clone_from(&manifest.segments);
        self.remove_unneeded()
    }

    /// Links or copies segments from another folder.
    fn take_over(&mut self, from: &Path, segments: &[SegmentEntry]) -> Result<()> {
        self.disk.create_folder(&self.shared)?;
        for segment in segments {
            let to = self.shared.join(&segment.file);
            if Segment::check_bytes(&self.shared, segment).is_err() {
                self.disk.remove_file(&to)?;
                self.disk.link_or_copy(&from.join(&segment.file), &to)?;
            }
            self.files.insert(segment.file.clone());
        }
        self.disk.sync_folder(&self.shared)
    }

    /// Starts again without state, after a failure before the first checkpoint: changes that were written are forgotten.
    pub(crate) fn start_anew(&mut self) {
        self.operators.clear();
        self.segments.clear();
        self.unwritten.clear();
    }

    /// Returns whether a checkpoint is of a run that the lock on the job's name keeps from running now. One that lies elsewhere may be
    /// of a job of the same name that another process runs.
    pub(crate) fn has_locked(&self, restore: &Restore) -> bool {
        let manifest = restore.manifest();
        let Some(locked) = self.folder.path().parent() else { return false };
        let is_locked = |run: &Path| match (run.canonicalize(), locked.canonicalize()) {
            (Ok(run), Ok(locked)) => run.parent() == Some(locked.as_path()),
            _ => false,
        };
        manifest.job_name == self.folder.name()
            && match manifest.is_savepoint {
                // It may lie anywhere; the checkpoints of its run say where that ran.
                true => is_locked(&locked.join(format!("{:032x}", manifest.job_id))),
                false => restore.path().parent().is_some_and(is_locked),
            }
    }

    /// Returns the folder of the newest complete checkpoint of this job: where to start again after a failure.
    pub(crate) fn latest(&self) -> Option<PathBuf> {
        self.completed.last().map(|manifest| self.checkpoint_folder(manifest.number))
    }

    /// Returns the folder of the job, with its name and its lock.
    #[cfg(test)]
    pub(super) fn folder(&self) -> &JobFolder {
        &self.folder
    }

    /// Writes a checkpoint; when this returns it is durable, and those that are no longer retained are removed. After an error the
    /// changes are kept and written with the next checkpoint, so the job may go on; committables are the caller's to keep.
    ///
    /// # Errors
    /// The folder cannot be written, or changes do not fit the tables that they are said to belong to.
    pub(crate) fn write_checkpoint(&mut self, data: CheckpointData) -> Result<CheckpointSummary> {
        let number = data.number;
        for operator in &data.operators {
            operator.check()?;
        }
        self.describe_tables(number, &data.operators);
        self.unwritten.push((number, data.operators));
        self.check_segments()?;
        let mut bytes = self.write_segments()?;
        let manifest = Manifest {
            product_version: env!("CARGO_PKG_VERSION").to_owned(),
            job_name: self.folder.name().to_owned(),
            job_id: self.folder.id(),
            number,
            time_ms: data.time_ms,
            is_savepoint: false,
            operators: self.operators.clone(),
            segments: self.segments.clone(),
            sources: data.sources,
            committables: data.committables,
            extra: data.extra,
        };
        let path = self.checkpoint_folder(number);
        bytes += self.write_manifest(&path, &manifest).inspect_err(|_| {
            // It may have its name already. What counts as failed must not be found by the next run.
            for name in [METADATA, METADATA_DRAFT] {
                let _ = self.disk.remove_file(&path.join(name));
            }
        })?;
        let summary = summary(&manifest, path, bytes);
        self.completed.push(manifest);
        // The checkpoint stands; what cannot be removed now goes at the next start.
        if let Err(error) = self.subsume() {
            tracing::warn!("cannot remove old checkpoints of job '{}': {error}", self.folder.name());
        }
        Ok(summary)
    }

    /// Merges segments if that has become worth it; returns whether it did. Best called after a checkpoint's sinks have committed;
    /// what was merged is used by the next checkpoint.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn compact(&mut self) -> Result<bool> {
        let Some(start) = merge_start(&self.segments, self.delta_bytes_min) else { return Ok(false) };
        let merged = &self.segments[start..];
        let file = segment_file(merged[0].first, merged[merged.len() - 1].last);
        self.files.insert(file.clone());
        let entry = self.merge(merged, &self.operators, (&self.shared, file), start == 0)?;
        self.disk.sync_folder(&self.shared)?;
        self.segments.truncate(start);
        self.segments.push(entry);
        self.remove_unneeded()?;
        Ok(true)
    }

    /// Writes the newest checkpoint once more as a savepoint into a new folder in `folder`. It needs no other file and may be moved;
    /// so it holds nothing that sinks have prepared, and comes after they have committed.
    ///
    /// # Errors
    /// There is no checkpoint yet, or the folder cannot be written.
    pub(crate) fn write_savepoint(&self, folder: &Path) -> Result<CheckpointSummary> {
        let newest = self.completed.last().ok_or_else(|| Error::internal("there is no checkpoint yet"))?;
        let random = format!("{:012x}", rand::random::<u64>() >> 16);
        let path = folder.join(format!("savepoint-{:06x}-{random}", self.folder.id() >> 104));
        let file = segment_file(newest.segments.first().map_or(0, |segment| segment.first), newest.number);
        self.save(newest, &path, &file).inspect_err(|_| {
            // Without its manifest it is no savepoint.
            for name in [METADATA_DRAFT, &file] {
                let _ = self.disk.remove_file(&path.join(name));
            }
            let _ = self.disk.remove_empty_folder(&path);
        })
    }

    fn save(&self, newest: &Manifest, path: &Path, file: &str) -> Result<CheckpointSummary> {
        self.disk.create_folder(path)?;
        let mut manifest = Manifest { is_savepoint: true, committables: BTreeMap::new(), ..newest.clone() };
        if !newest.segments.is_empty() {
            let target = (path, file.to_owned());
            let entry = self.merge(&newest.segments, &newest.operators, target, true)?;
            manifest.segments = vec![entry];
        }
        let bytes = self.write_manifest(path, &manifest)?;
        let written = manifest.segments.iter().map(|segment| segment.bytes).sum::<u64>() + bytes;
        Ok(summary(&manifest, path.to_owned(), written))
    }

    /// Removes all checkpoints of the job and gives the lock back; other files stay.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(crate) fn discard(mut self) -> Result<()> {
        self.start_anew();
        while let Some(oldest) = self.completed.first() {
            self.remove_checkpoint(oldest.number)?;
            self.completed.remove(0);
        }
        self.remove_unneeded()?;
        self.disk.remove_empty_folder(&self.shared)?;
        self.disk.remove_empty_folder(self.folder.path())
    }

    fn checkpoint_folder(&self, number: CheckpointId) -> PathBuf {
        self.folder.path().join(format!("chk-{number}"))
    }

    /// Notes the tables of a checkpoint, and since when each one exists.
    fn describe_tables(&mut self, number: CheckpointId, operators: &[OperatorChanges]) {
        let known = std::mem::take(&mut self.operators);
        let since = |uid: &str, table: &StateTable| {
            let operator = known.iter().find(|operator| operator.uid == uid);
            let stored = operator.and_then(|of| of.tables.iter().find(|stored| stored.name == table.name));
            stored.filter(|stored| goes_on(stored, table)).map_or(number, |stored| stored.since)
        };
        let tables = |operator: &OperatorChanges| {
            let tables = operator.tables.iter().map(|table| TableState {
                name: table.name.to_owned(),
                schema: SchemaRef::clone(&table.schema),
                key_count: table.key_count,
                since: since(&operator.uid, table),
                derived_from: table.derived_from.clone(),
            });
            tables.collect()
        };
        self.operators = operators
            .iter()
            .map(|operator| OperatorState {
                uid: operator.uid.clone(),
                kind: operator.kind.clone(),
                tables: tables(operator),
            })
            .collect();
    }

    /// Writes what has not been written, one segment for each checkpoint that has changes; returns how many bytes.
    fn write_segments(&mut self) -> Result<u64> {
        let mut bytes = 0;
        while let Some((number, operators)) = self.unwritten.first() {
            if operators.iter().any(OperatorChanges::has_rows) {
                self.disk.create_folder(&self.shared)?;
                let file = segment_file(*number, *number);
                self.files.insert(file.clone());
                let mut writer = SegmentWriter::create(&self.disk, &self.shared.join(&file), *number)?;
                for operator in operators {
                    writer.write_operator(operator)?;
                }
                let (length, crc) = writer.finish()?;
                self.disk.sync_folder(&self.shared)?;
                bytes += length;
                let (first, is_base) = (*number, self.segments.is_empty());
                self.segments.push(SegmentEntry { file, bytes: length, crc, first, last: first, is_base });
            }
            self.unwritten.remove(0);
        }
        Ok(bytes)
    }

    /// Checks that the files are there on which the checkpoint builds: somebody may have removed the folder meanwhile.
    fn check_segments(&self) -> Result<()> {
        for segment in &self.segments {
            let path = self.shared.join(&segment.file);
            let length = std::fs::metadata(&path).map_err(|error| cannot("read", &path, error))?.len();
            if length != segment.bytes {
                return Err(Error::data(format!(
                    "checkpoint file '{}' has {length} bytes instead of {}: somebody has changed it",
                    path.display(),
                    segment.bytes
                )));
            }
        }
        Ok(())
    }

    /// Writes a manifest; with its name the checkpoint exists. Returns its length.
    fn write_manifest(&self, folder: &Path, manifest: &Manifest) -> Result<u64> {
        let text = manifest.to_text()?;
        self.disk.create_folder(folder)?;
        let draft = folder.join(METADATA_DRAFT);
        let mut file = self.disk.create_file(&draft)?;
        file.write(text.as_bytes())?;
        file.sync()?;
        self.disk.rename(&draft, &folder.join(METADATA))?;
        Ok(text.len() as u64)
    }

    /// Merges segments of the job into a new file.
    fn merge(
        &self,
        merged: &[SegmentEntry],
        operators: &[OperatorState],
        target: (&Path, String),
        is_base: bool,
    ) -> Result<SegmentEntry> {
        let open = |entry| Segment::open(&self.shared, entry);
        let segments = merged.iter().map(open).collect::<Result<Vec<_>>>()?;
        merge_segments(&self.disk, &segments, operators, target, is_base)
    }

    /// Removes checkpoints that are no longer retained, and then what only they needed.
    fn subsume(&mut self) -> Result<()> {
        while self.completed.len() > self.retained {
            self.remove_checkpoint(self.completed[0].number)?;
            self.completed.remove(0);
        }
        self.remove_unneeded()
    }

    /// Removes a checkpoint's folder. The manifest goes first: without it the rest is a left-over.
    fn remove_checkpoint(&self, number: CheckpointId) -> Result<()> {
        let folder = self.checkpoint_folder(number);
        self.disk.remove_file(&folder.join(METADATA))?;
        self.disk.remove_file(&folder.join(METADATA_DRAFT))?;
        self.disk.remove_empty_folder(&folder)
    }

    /// Removes segments that neither a retained checkpoint nor the next one needs.
    fn remove_unneeded(&mut self) -> Result<()> {
        let completed = self.completed.iter().flat_map(|manifest| &manifest.segments);
        let needed: BTreeSet<&str> =
            completed.chain(&self.segments).map(|segment| segment.file.as_str()).collect();
        let unneeded: Vec<String> =
            self.files.iter().filter(|file| !needed.contains(file.as_str())).cloned().collect();
        for file in unneeded {
            self.disk.remove_file(&self.shared.join(&file))?;
            self.files.remove(&file);
        }
        Ok(())
    }
}

fn summary(manifest: &Manifest, path: PathBuf, bytes: u64) -> CheckpointSummary {
    let bytes_total = manifest.segments.iter().map(|segment| segment.bytes).sum();
    CheckpointSummary { number: manifest.number, path, bytes, bytes_total }
}

/// Returns a name for a segment, which no other has: a file is never written twice.
fn segment_file(first: CheckpointId, last: CheckpointId) -> String {
    format!("rows-{first}-{last}-{:08x}.seg", rand::random::<u32>())
}

/// Returns whether a name is one that `segment_file` gives.
fn is_segment_file(name: &str) -> bool {
    let parts: Option<Vec<&str>> = name
        .strip_prefix("rows-")
        .and_then(|name| name.strip_suffix(".seg"))
        .map(|name| name.split('-').collect());
    let is_number = |text: &str| text.parse::<CheckpointId>().is_ok();
    let is_random = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(parts.as_deref(), Some([first, last, random]) if is_number(first) && is_number(last) && is_random(random))
}
