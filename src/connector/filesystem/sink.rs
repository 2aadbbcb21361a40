//! The writing side. Rows go to files that readers do not see, `.part-….inprogress`; a commit gives them their names.
//!
//! Every checkpoint ends all files. The hidden name of a file ends in a hash of its sink's id, so that a job that goes on after a
//! crash can tell its own unfinished files from those of others; see `FileCommitter::discard_unfinished`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use async_trait::async_trait;
use tokio::task::spawn_blocking;
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::commit::{FileCommitter, PendingFile, sync_folders};
use super::listing::unreadable;
use super::{FileTable, RollingPolicy, path};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::{
    CheckpointId, Committable, Committer, DynamicTableSink, SinkWriter, WriterContext, durable_step,
};
use crate::error::{Error, Result};
use crate::format::{EncodingFormat, RecordEncoder, ScalarWriter, TextStyle, TimestampStandard};
use crate::schema::Column;

/// How many encoded bytes are collected before they are written.
const BUFFER_BYTES: usize = 1 << 20;

/// A table of files to write.
#[derive(Debug)]
pub(super) struct FilesystemSink {
    table: Arc<FileTable>,
    physical: Vec<Column>,
    format: Arc<dyn EncodingFormat>,
}

impl FilesystemSink {
    pub(super) fn new(
        table: FileTable,
        physical: Vec<Column>,
        format: Box<dyn EncodingFormat>,
    ) -> FilesystemSink {
        FilesystemSink { table: Arc::new(table), physical, format: Arc::from(format) }
    }
}

#[async_trait]
impl DynamicTableSink for FilesystemSink {
    fn summary(&self) -> String {
        "Filesystem".to_owned()
    }

    fn changelog_mode(&self, _requested: ChangelogMode) -> ChangelogMode {
        self.format.changelog_mode()
    }

    fn supports_overwrite(&self) -> bool {
        true
    }

    fn commits_with_checkpoints(&self) -> bool {
        true
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let root = self.table.root.clone();
        if root.is_file() {
            return Err(Error::validation(format!(
                "path '{}' is a file; a table is written into a folder",
                root.display()
            )));
        }
        let partition = |key: &Column| self.physical.iter().position(|column| column.name == key.name);
        Ok(Box::new(FileWriter {
            prefix: format!("part-{}-{}", Uuid::new_v4(), ctx.writer),
            ending: hidden_ending(&ctx.sink_id),
            next_number: 0,
            partition_columns: self.table.partition_keys.iter().filter_map(partition).collect(),
            table: Arc::clone(&self.table),
            format: Arc::clone(&self.format),
            open: HashMap::new(),
            closed: Vec::new(),
        }))
    }

    async fn open_committer(&self, ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(FileCommitter::new(Arc::clone(&self.table), ctx.overwrite)))
    }
}

/// Writes the files of one writer, one at a time in each partition.
struct FileWriter {
    table: Arc<FileTable>,
    format: Arc<dyn EncodingFormat>,
    prefix: String,
    /// What hidden names end in.
    ending: String,
    next_number: u64,
    /// Positions of the partition keys among the columns.
    partition_columns: Vec<usize>,
    open: HashMap<String, OpenPart>,
    closed: Vec<PendingFile>,
}

struct OpenPart {
    pending: PendingFile,
    file: File,
    encoder: Box<dyn RecordEncoder>,
    buffer: Vec<u8>,
    written: u64,
    created: Instant,
    last_rows: Instant,
}

impl FileWriter {
    async fn write_partition(&mut self, folder: &str, rows: &ChangelogBatch) -> Result<()> {
        let rolling = self.table.rolling;
        let now = Instant::now();
        let mut part = match self.open.remove(folder) {
            Some(part) if part.is_over(rolling, now) => {
                self.closed.push(part.close().await?);
                self.create(folder).await?
            }
            Some(part) => part,
            None => self.create(folder).await?,
        };
        part.encoder.encode(rows, &mut part.buffer)?;
        part.last_rows = now;
        if part.written + part.buffer.len() as u64 >= rolling.size {
            self.closed.push(part.close().await?);
        } else {
            if part.buffer.len() >= BUFFER_BYTES {
                part = part.flush().await?;
            }
            self.open.insert(folder.to_owned(), part);
        }
        Ok(())
    }

    async fn create(&mut self, folder: &str) -> Result<OpenPart> {
        let name = format!("{}-{}.{}", self.prefix, self.next_number, self.format.file_extension());
        self.next_number += 1;
        let directory = self.table.root.join(folder);
        let pending = PendingFile {
            hidden: directory.join(format!(".{name}{}", self.ending)),
            visible: directory.join(&name),
        };
        let path = pending.hidden.clone();
        let file = blocking(move || {
            fs::create_dir_all(&directory).map_err(|error| unwritable(&directory, error))?;
            durable_step("create", &path);
            File::create_new(&path).map_err(|error| unwritable(&path, error))
        })
        .await?;
        let now = Instant::now();
        Ok(OpenPart {
            pending,
            file,
            encoder: self.format.encoder(),
            buffer: Vec::new(),
            written: 0,
            created: now,
            last_rows: now,
        })
    }

    /// Returns the rows of each partition folder, in their order.
    fn split(&self, batch: &ChangelogBatch) -> Result<Vec<(String, ChangelogBatch)>> {
        let rows = batch.rows();
        let folders = self.folders(rows)?;
        let kept: Vec<usize> =
            (0..rows.num_columns()).filter(|at| !self.partition_columns.contains(at)).collect();
        let content = batch.with_rows(rows.project(&kept)?);
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut parts: Vec<(String, Vec<u32>)> = Vec::new();
        for (row, folder) in folders.iter().enumerate() {
            let number = *numbers.entry(folder).or_insert_with(|| {
                parts.push((folder.clone(), Vec::new()));
                parts.len() - 1
            });
            parts[number].1.push(row as u32);
        }
        let take = |(folder, rows): (String, Vec<u32>)| Ok((folder, content.take(&UInt32Array::from(rows))?));
        parts.into_iter().map(take).collect()
    }

    /// Returns the folder of each row, relative to the table's.
    fn folders(&self, rows: &RecordBatch) -> Result<Vec<String>> {
        let style = TextStyle { timestamps: TimestampStandard::Sql, is_plain_decimal: true };
        let keys = self.table.partition_keys.iter().zip(&self.partition_columns);
        let keys: Vec<(&Column, &ArrayRef, ScalarWriter)> = keys
            .map(|(key, at)| {
                let array = rows.column(*at);
                Ok((key, array, ScalarWriter::require(&key.data_type, array)?))
            })
            .collect::<Result<_>>()?;
        let mut text = Vec::new();
        let folder = |row: usize| {
            let mut folder = String::new();
            for (number, (key, array, writer)) in keys.iter().enumerate() {
                text.clear();
                if !array.is_null(row) {
                    writer.write(row, style, &mut text);
                }
                if number > 0 {
                    folder.push('/');
                }
                let value = String::from_utf8_lossy(&text);
                path::push_partition(
                    &key.name,
                    if value.is_empty() { &self.table.default_partition } else { &value },
                    &mut folder,
                );
            }
            folder
        };
        Ok((0..rows.num_rows()).map(folder).collect())
    }
}

#[async_trait]
impl SinkWriter for FileWriter {
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        if batch.row_count() == 0 {
            return Ok(());
        }
        if self.partition_columns.is_empty() {
            return self.write_partition("", &batch).await;
        }
        for (folder, rows) in self.split(&batch)? {
            self.write_partition(&folder, &rows).await?;
        }
        Ok(())
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        let folders: Vec<String> = self.open.keys().cloned().collect();
        for folder in folders {
            if let Some(part) = self.open.remove(&folder) {
                self.closed.push(part.close().await?);
            }
        }
        let mut prepared = std::mem::take(&mut self.closed);
        prepared.sort_unstable();
        // The checkpoint will rely on these names, so they must be as durable as it is.
        let folders = prepared.iter().filter_map(|file| file.hidden.parent()).map(Path::to_owned).collect();
        let root = self.table.root.clone();
        blocking(move || sync_folders(&root, &folders)).await?;
        prepared.iter().map(|file| file.to_committable(&self.table.root)).collect()
    }
}

impl Drop for FileWriter {
    /// Removes what was not prepared: nobody else knows of these files.
    fn drop(&mut self) {
        let open = self.open.values().map(|part| &part.pending);
        for pending in open.chain(&self.closed) {
            let _ = fs::remove_file(&pending.hidden);
        }
    }
}

impl OpenPart {
    /// Returns whether the next rows are to begin a new file.
    fn is_over(&self, rolling: RollingPolicy, now: Instant) -> bool {
        now.duration_since(self.created) >= rolling.rollover_interval
            || now.duration_since(self.last_rows) >= rolling.inactivity_interval
    }

    /// Writes the buffer on a blocking thread.
    async fn flush(mut self) -> Result<OpenPart> {
        blocking(move || {
            durable_step("write", &self.pending.hidden);
            self.file.write_all(&self.buffer).map_err(|error| unwritable(&self.pending.hidden, error))?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
            Ok(self)
        })
        .await
    }

    /// Writes the rest and makes the file durable.
    async fn close(self) -> Result<PendingFile> {
        let part = self.flush().await?;
        blocking(move || {
            durable_step("sync", &part.pending.hidden);
            part.file.sync_all().map_err(|error| unwritable(&part.pending.hidden, error))?;
            Ok(part.pending)
        })
        .await
    }
}

/// Returns what the hidden names of a sink's files end in.
pub(super) fn hidden_ending(sink_id: &str) -> String {
    format!(".{:016x}.inprogress", xxh3_64(sink_id.as_bytes()))
}

/// Runs file work on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::internal("writing a file panicked").caused_by(error)),
    }
}

/// The error of a place that cannot be written.
pub(super) fn unwritable(path: &Path, error: std::io::Error) -> Error {
    let cause = unreadable(path, error);
    let message = format!(
        "'{}' cannot be written: {}",
        path.display(),
        std::error::Error::source(&cause).map_or_else(String::new, ToString::to_string)
    );
    Error::new(cause.kind(), message).class(cause.flink_class()).caused_by(cause)
}

/// Returns a path relative to the table's folder, for what a checkpoint keeps.
pub(super) fn relative(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Filesystem;
    use super::*;
    use crate::changelog::RowKind;
    use crate::connector::TableFactory;
    use crate::connector::testing::{self, block_on, completed_checkpoint, writer_context};
    use crate::schema::TypeRoot;
    use arrow::array::{Int32Array, StringArray};

    fn table(root: &Path, partition_keys: &[&str], more: &[(&str, &str)]) -> testing::Table {
        let columns = vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("k", TypeRoot::STRING.nullable()),
        ];
        let entries = [&[("path", root.to_str().unwrap()), ("format", "csv")], more].concat();
        let mut table = testing::Table::new("filesystem", columns, &entries);
        table.partition_keys = partition_keys.iter().map(|key| (*key).to_owned()).collect();
        table
    }

    fn batch(table: &testing::Table, rows: &[(i32, Option<&str>)]) -> ChangelogBatch {
        let ids = Int32Array::from_iter_values(rows.iter().map(|(id, _)| *id));
        let keys: StringArray = rows.iter().map(|(_, key)| *key).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(keys)];
        ChangelogBatch::inserts(RecordBatch::try_new(table.schema.physical_arrow(), columns).unwrap())
    }

    /// Returns `folder: content` of every visible file.
    fn content(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(&folder).unwrap() {
                let path = item.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !super::super::listing::is_hidden(&path) {
                    let folder = relative(root, &folder).display().to_string();
                    found
                        .push(format!("{folder}: {}", fs::read_to_string(&path).unwrap().replace('\n', ";")));
                }
            }
        }
        found.sort();
        found
    }

    /// Writes rows as one job does, and commits twice, as after a crash.
    fn insert(table: &testing::Table, overwrite: bool, rows: &[(i32, Option<&str>)]) {
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let mut writer = sink.open_writer(writer_context(overwrite)).await.unwrap();
            if !rows.is_empty() {
                writer.write(batch(table, rows)).await.unwrap();
            }
            let prepared = writer.prepare_commit(1).await.unwrap();
            drop(writer);
            for _ in 0..2 {
                let mut committer = sink.open_committer(writer_context(overwrite)).await.unwrap();
                committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
            }
        });
    }

    #[test]
    fn rows_are_visible_once_committed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new");
        let table = table(&root, &[], &[]);
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
            writer.write(batch(&table, &[(1, Some("a")), (2, None)])).await.unwrap();
            let prepared = writer.prepare_commit(1).await.unwrap();
            writer.write(batch(&table, &[(3, Some("lost"))])).await.unwrap();
            drop(writer);
            assert_eq!(content(&root), Vec::<String>::new());
            assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
            sink.open_committer(writer_context(false))
                .await
                .unwrap()
                .commit(&completed_checkpoint(1), &prepared)
                .await
                .unwrap();
        });
        assert_eq!(content(&root), [": 1,a;2,;"]);
    }

    #[test]
    fn partitions_are_folders_and_overwriting_replaces_only_those_written() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &["k"], &[("sink.partition-commit.policy.kind", "success-file")]);
        insert(&table, false, &[(1, Some("a")), (2, Some("b/c")), (3, Some("a")), (4, None)]);
        let default = "k=__DEFAULT_PARTITION__: 4;";
        assert_eq!(content(folder.path()), ["k=__DEFAULT_PARTITION__: 4;", "k=a: 1;3;", "k=b%2Fc: 2;"]);
        assert!(folder.path().join("k=a/_SUCCESS").exists());
        insert(&table, true, &[(5, Some("a"))]);
        assert_eq!(content(folder.path()), [default, "k=a: 5;", "k=b%2Fc: 2;"]);
        insert(&table, true, &[]);
        assert_eq!(content(folder.path()).len(), 3);
    }

    #[test]
    fn overwriting_an_unpartitioned_table_replaces_all_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[], &[]);
        insert(&table, false, &[(1, None)]);
        insert(&table, false, &[(2, None)]);
        assert_eq!(content(folder.path()), [": 1,;", ": 2,;"]);
        insert(&table, true, &[(3, None)]);
        assert_eq!(content(folder.path()), [": 3,;"]);
        insert(&table, true, &[]);
        assert_eq!(content(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn files_roll_at_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[], &[("sink.rolling-policy.file-size", "5 b")]);
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
            for id in 0..3 {
                writer.write(batch(&table, &[(id, Some("x"))])).await.unwrap();
                writer.write(batch(&table, &[(id, Some("y"))])).await.unwrap();
            }
            assert_eq!(writer.prepare_commit(1).await.unwrap().len(), 3);
        });
    }

    #[test]
    fn files_roll_after_their_time_and_with_every_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let count = |more: &[(&str, &str)]| {
            let table = table(folder.path(), &[], more);
            let sink = Filesystem.create_sink(&table.context()).unwrap();
            block_on(async {
                let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
                let mut counts = Vec::new();
                for checkpoint in 1..3 {
                    for id in 0..2 {
                        writer.write(batch(&table, &[(id, None)])).await.unwrap();
                    }
                    counts.push(writer.prepare_commit(checkpoint).await.unwrap().len());
                }
                counts.push(writer.prepare_commit(3).await.unwrap().len());
                counts
            })
        };
        assert_eq!(count(&[]), [1, 1, 0]);
        assert_eq!(count(&[("sink.rolling-policy.rollover-interval", "0 s")]), [2, 2, 0]);
        assert_eq!(count(&[("sink.rolling-policy.inactivity-interval", "0 s")]), [2, 2, 0]);
    }

    /// Returns the hidden files of a folder.
    fn hidden(root: &Path) -> usize {
        let items = fs::read_dir(root).unwrap().map(|item| item.unwrap().path());
        items.filter(|path| super::super::listing::is_hidden(path)).count()
    }

    #[test]
    fn a_job_that_goes_on_removes_its_own_unfinished_files_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[], &[]);
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let other = WriterContext { sink_id: Arc::from("job-2"), ..writer_context(false) };
            let mut other = sink.open_writer(other).await.unwrap();
            other.write(batch(&table, &[(7, None)])).await.unwrap();
            let others = other.prepare_commit(1).await.unwrap();
            let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
            writer.write(batch(&table, &[(1, None)])).await.unwrap();
            let prepared = writer.prepare_commit(1).await.unwrap();
            writer.write(batch(&table, &[(2, None)])).await.unwrap();
            let lost = writer.prepare_commit(2).await.unwrap();
            writer.write(batch(&table, &[(3, None)])).await.unwrap();
            // A crash: nothing is tidied up.
            std::mem::forget(writer);
            assert_eq!((lost.len(), hidden(folder.path())), (1, 4));
            let mut committer = sink.open_committer(writer_context(false)).await.unwrap();
            committer.discard_unfinished("job-1", &prepared).await.unwrap();
            assert_eq!(hidden(folder.path()), 2);
            committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
            assert_eq!(content(folder.path()), [": 1,;"]);
            committer.commit(&completed_checkpoint(1), &others).await.unwrap();
            assert_eq!((content(folder.path()).len(), hidden(folder.path())), (2, 0));
        });
    }

    #[test]
    fn a_file_that_is_in_neither_place_fails_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &[], &[]);
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
            writer.write(batch(&table, &[(1, None)])).await.unwrap();
            let prepared = writer.prepare_commit(1).await.unwrap();
            let mut committer = sink.open_committer(writer_context(false)).await.unwrap();
            committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
            for item in fs::read_dir(folder.path()).unwrap() {
                fs::remove_file(item.unwrap().path()).unwrap();
            }
            let error = committer.commit(&completed_checkpoint(1), &prepared).await.unwrap_err();
            assert!(error.message().contains("is gone before it was committed"), "{error:?}");
            // After a recovery it counts as one that was committed and has been taken away by its readers, with its folder or without.
            committer.commit_after_recovery(&completed_checkpoint(1), &prepared).await.unwrap();
            fs::remove_dir(folder.path()).unwrap();
            committer.commit_after_recovery(&completed_checkpoint(1), &prepared).await.unwrap();
        });
    }

    #[test]
    fn writers_of_one_sink_write_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let table = table(folder.path(), &["k"], &[]);
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        block_on(async {
            let mut prepared = Vec::new();
            for number in 0..3 {
                let ctx = WriterContext { writer: number, writer_count: 3, ..writer_context(false) };
                let mut writer = sink.open_writer(ctx).await.unwrap();
                writer.write(batch(&table, &[(number as i32, Some("a"))])).await.unwrap();
                prepared.extend(writer.prepare_commit(1).await.unwrap());
            }
            let mut committer = sink.open_committer(writer_context(false)).await.unwrap();
            committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
        });
        assert_eq!(content(folder.path()), ["k=a: 0;", "k=a: 1;", "k=a: 2;"]);
    }

    #[test]
    fn a_format_of_changes_takes_every_kind() {
        let folder = tempfile::tempdir().unwrap();
        let columns = vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("k", TypeRoot::STRING.nullable()),
        ];
        let path = folder.path().to_str().unwrap();
        let entries = [("path", path), ("format", "debezium-json")];
        let mut table = testing::Table::new("filesystem", columns, &entries);
        table.partition_keys = vec!["k".to_owned()];
        let sink = Filesystem.create_sink(&table.context()).unwrap();
        assert_eq!(sink.changelog_mode(ChangelogMode::ALL), ChangelogMode::ALL);
        assert!(sink.commits_with_checkpoints());
        let rows = batch(&table, &[(1, Some("a")), (2, Some("b")), (3, Some("a"))]).rows().clone();
        let kinds = [RowKind::UpdateBefore, RowKind::Insert, RowKind::UpdateAfter];
        block_on(async {
            let mut writer = sink.open_writer(writer_context(false)).await.unwrap();
            writer.write(ChangelogBatch::with_kinds(rows, kinds)).await.unwrap();
            let prepared = writer.prepare_commit(1).await.unwrap();
            let mut committer = sink.open_committer(writer_context(false)).await.unwrap();
            committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
        });
        assert_eq!(
            content(folder.path()),
            [
                "k=a: {\"before\":{\"id\":1},\"after\":null,\"op\":\"d\"};{\"before\":null,\"after\":{\"id\":3},\"op\":\"c\"};",
                "k=b: {\"before\":null,\"after\":{\"id\":2},\"op\":\"c\"};"
            ]
        );
    }
}
