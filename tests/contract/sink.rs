//! The contract of sinks: nothing is visible before its commit, and everything is visible once after it, whatever is repeated.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use lakehead::changelog::ChangelogBatch;
use lakehead::connector::{Committable, DynamicTableSink};

use super::{Table, completed, iceberg_table, writer_context};

/// A sink under test, on a table of its own.
struct Subject {
    table: Table,
    /// Returns the visible rows, sorted, each as `id,name`.
    visible: Box<dyn Fn() -> BoxFuture<'static, Vec<String>>>,
    /// Returns how many places hold rows that nobody sees.
    hidden: Box<dyn Fn() -> BoxFuture<'static, usize>>,
    /// How many such places a writer makes before it prepares a few rows.
    unfinished: usize,
    /// What keeps the table's place alive.
    _place: tempfile::TempDir,
}

impl Subject {
    fn batch(&self, ids: &[i64]) -> ChangelogBatch {
        let names: StringArray = ids.iter().map(|id| Some(format!("n{id}"))).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids.to_vec())), Arc::new(names)];
        ChangelogBatch::inserts(RecordBatch::try_new(self.table.schema.physical_arrow(), columns).unwrap())
    }

    /// Writes with a writer that crashes after it has prepared.
    async fn prepare(&self, checkpoint: u64, ids: &[i64]) -> Vec<Committable> {
        let sink = self.table.sink();
        let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
        writer.write(self.batch(ids)).await.unwrap();
        writer.prepare_commit(checkpoint).await.unwrap()
    }

    /// Commits with a new committer, as after a restart.
    async fn commit(&self, checkpoint: u64, committables: &[Committable]) {
        let sink: Arc<dyn DynamicTableSink> = self.table.sink();
        let mut committer = sink.open_committer(writer_context(0, 1)).await.unwrap();
        committer.commit(&completed(checkpoint), committables).await.unwrap();
    }

    async fn expect(&self, ids: &[i64], rule: &str) {
        let mut rows: Vec<String> = ids.iter().map(|id| format!("{id},n{id}")).collect();
        rows.sort();
        assert_eq!((self.visible)().await, rows, "{rule}");
    }
}

/// Puts a two-phase sink through every step at which a job can crash.
async fn check(make: impl AsyncFn() -> Subject) {
    let subject = make().await;
    let prepared = subject.prepare(1, &[1, 2]).await;
    subject.expect(&[], "what is prepared is not visible").await;
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2], "a commit makes it visible").await;
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2], "a commit that had landed may be repeated by another committer").await;

    let later = subject.prepare(2, &[3]).await;
    subject.commit(2, &later).await;
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2, 3], "an earlier commit may be repeated after a later one").await;

    check_crash_of_a_writer(&make().await).await;
    check_crash_within_a_commit(&make().await).await;
    check_commits_out_of_order(&make().await).await;
    check_what_a_crash_leaves_behind(&make().await).await;
    check_several_writers(&make().await).await;
    check_one_writer_over_several_checkpoints(&make().await).await;
}

async fn check_crash_of_a_writer(subject: &Subject) {
    let sink = subject.table.sink();
    let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
    writer.write(subject.batch(&[1])).await.unwrap();
    drop(writer);
    subject.expect(&[], "what a crashed writer has not prepared is lost").await;
    let replayed = subject.prepare(1, &[1]).await;
    subject.commit(1, &replayed).await;
    subject.expect(&[1], "rows that are read again after the crash are there once").await;
}

/// Some of a commit has landed when the process dies, or all of it and nobody hears so.
async fn check_crash_within_a_commit(subject: &Subject) {
    let mut prepared = subject.prepare(1, &[1]).await;
    prepared.extend(subject.prepare(1, &[2]).await);
    subject.commit(1, &prepared[..1]).await;
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2], "a commit that had landed in part is completed").await;
    let mut committer = subject.table.sink().open_committer(writer_context(0, 1)).await.unwrap();
    for _ in 0..3 {
        committer.commit(&completed(1), &prepared).await.unwrap();
    }
    subject.expect(&[1, 2], "a committer that was told of a failure may repeat what had landed").await;
}

/// What is committed comes in another order than it was prepared in, and more than once.
async fn check_commits_out_of_order(subject: &Subject) {
    let first = subject.prepare(1, &[1, 2]).await;
    let second = subject.prepare(2, &[3]).await;
    let third = subject.prepare(3, &[4]).await;
    subject.commit(3, &third).await;
    subject.expect(&[4], "each checkpoint commits its own rows").await;
    let mut both = [second.clone(), first.clone(), second, first].concat();
    both.reverse();
    subject.commit(2, &both).await;
    subject.expect(&[1, 2, 3, 4], "what is named twice is visible once").await;
}

/// A process that is killed tidies nothing up; the next one does, and leaves alone what is still to be committed.
async fn check_what_a_crash_leaves_behind(subject: &Subject) {
    let sink = subject.table.sink();
    let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
    writer.write(subject.batch(&[1])).await.unwrap();
    let prepared = writer.prepare_commit(1).await.unwrap();
    writer.write(subject.batch(&[2])).await.unwrap();
    std::mem::forget(writer);
    let left = 1 + subject.unfinished;
    assert_eq!((subject.hidden)().await, left, "one part is prepared, one is not finished");
    let mut committer = sink.open_committer(writer_context(0, 1)).await.unwrap();
    committer.discard_unfinished("job-2", &[]).await.unwrap();
    assert_eq!((subject.hidden)().await, left, "what other sinks have left is theirs");
    for _ in 0..2 {
        committer.discard_unfinished("job-1", &prepared).await.unwrap();
        assert_eq!((subject.hidden)().await, 1, "what was not prepared goes");
    }
    committer.commit(&completed(1), &prepared).await.unwrap();
    committer.discard_unfinished("job-1", &prepared).await.unwrap();
    assert_eq!((subject.hidden)().await, 0);
    subject.expect(&[1], "what was prepared is committed after all").await;
}

async fn check_several_writers(subject: &Subject) {
    let sink = subject.table.sink();
    let mut prepared = Vec::new();
    for number in 0..3 {
        let mut writer = sink.open_writer(writer_context(number, 3)).await.unwrap();
        writer.write(subject.batch(&[number as i64 * 10, number as i64 * 10 + 1])).await.unwrap();
        prepared.extend(writer.prepare_commit(1).await.unwrap());
    }
    prepared.reverse();
    subject.commit(1, &prepared).await;
    subject.commit(1, &prepared).await;
    subject.expect(&[0, 1, 10, 11, 20, 21], "what several writers have prepared commits in any order").await;
}

async fn check_one_writer_over_several_checkpoints(subject: &Subject) {
    let sink = subject.table.sink();
    let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
    writer.write(subject.batch(&[1])).await.unwrap();
    let first = writer.prepare_commit(1).await.unwrap();
    writer.write(subject.batch(&[2])).await.unwrap();
    let nothing_in_between = writer.prepare_commit(2).await.unwrap();
    subject.commit(1, &first).await;
    subject.expect(&[1], "a checkpoint commits what it covers and no more").await;
    subject.commit(2, &nothing_in_between).await;
    let empty = writer.prepare_commit(3).await.unwrap();
    subject.commit(3, &empty).await;
    subject.expect(&[1, 2], "a checkpoint without rows changes nothing").await;
    drop(writer);
    subject.expect(&[1, 2], "a writer that goes takes nothing with it").await;
}

/// Returns the files of a folder, hidden or visible.
fn files(folder: &Path, are_hidden: bool) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_hidden = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(['.', '_']);
    paths.filter(|path| is_hidden(path) == are_hidden).collect()
}

/// Reads the lines of the visible files of a folder.
fn visible_lines(folder: &Path) -> Vec<String> {
    let text = |path: PathBuf| fs::read_to_string(path).unwrap();
    let text: String = files(folder, false).into_iter().map(text).collect();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn files_are_written_exactly_once() {
    check(async || {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        let table = Table::new("filesystem", &[("path", path.to_str().unwrap()), ("format", "csv")]);
        let hidden = path.clone();
        Subject {
            table,
            visible: Box::new(move || ready(visible_lines(&path)).boxed()),
            hidden: Box::new(move || ready(files(&hidden, true).len()).boxed()),
            unfinished: 1,
            _place: place,
        }
    })
    .await;
}

#[tokio::test]
async fn iceberg_tables_are_appended_to_exactly_once() {
    check(async || {
        let place = tempfile::tempdir().unwrap();
        let warehouse = format!("file:{}", place.path().display());
        let entries = [("catalog-name", "lake"), ("catalog-type", "hadoop"), ("warehouse", &warehouse)];
        let mut table = Table::new("iceberg", &entries);
        table.load().await;
        let folder = place.path().join("default_database/t");
        let hidden = folder.clone();
        Subject {
            table,
            visible: Box::new(move || iceberg_table::rows(folder.clone()).boxed()),
            hidden: Box::new(move || iceberg_table::unseen_files(hidden.clone()).boxed()),
            unfinished: 0,
            _place: place,
        }
    })
    .await;
}
