//! The contract of sinks: nothing is visible before its commit, and everything is visible once after it, whatever is repeated.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use lakehead::changelog::ChangelogBatch;
use lakehead::connector::{Committable, DynamicTableSink};

use super::{Table, writer_context};

/// A sink under test, on a table of its own.
struct Subject {
    table: Table,
    /// Returns the visible rows, sorted, each as `id,name`.
    visible: Box<dyn Fn() -> Vec<String>>,
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
        committer.commit(checkpoint, committables).await.unwrap();
    }

    fn expect(&self, ids: &[i64], rule: &str) {
        let mut rows: Vec<String> = ids.iter().map(|id| format!("{id},n{id}")).collect();
        rows.sort();
        assert_eq!((self.visible)(), rows, "{rule}");
    }
}

/// Puts a two-phase sink through every step at which a job can crash.
async fn check(make: impl Fn() -> Subject) {
    let subject = make();
    let prepared = subject.prepare(1, &[1, 2]).await;
    subject.expect(&[], "what is prepared is not visible");
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2], "a commit makes it visible");
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2], "a commit that had landed may be repeated by another committer");

    let later = subject.prepare(2, &[3]).await;
    subject.commit(2, &later).await;
    subject.commit(1, &prepared).await;
    subject.expect(&[1, 2, 3], "an earlier commit may be repeated after a later one");

    check_crash_of_a_writer(&make()).await;
    check_several_writers(&make()).await;
    check_one_writer_over_several_checkpoints(&make()).await;
}

async fn check_crash_of_a_writer(subject: &Subject) {
    let sink = subject.table.sink();
    let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
    writer.write(subject.batch(&[1])).await.unwrap();
    drop(writer);
    subject.expect(&[], "what a crashed writer has not prepared is lost");
    let replayed = subject.prepare(1, &[1]).await;
    subject.commit(1, &replayed).await;
    subject.expect(&[1], "rows that are read again after the crash are there once");
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
    subject.expect(&[0, 1, 10, 11, 20, 21], "what several writers have prepared commits in any order");
}

async fn check_one_writer_over_several_checkpoints(subject: &Subject) {
    let sink = subject.table.sink();
    let mut writer = sink.open_writer(writer_context(0, 1)).await.unwrap();
    writer.write(subject.batch(&[1])).await.unwrap();
    let first = writer.prepare_commit(1).await.unwrap();
    writer.write(subject.batch(&[2])).await.unwrap();
    let nothing_in_between = writer.prepare_commit(2).await.unwrap();
    subject.commit(1, &first).await;
    subject.expect(&[1], "a checkpoint commits what it covers and no more");
    subject.commit(2, &nothing_in_between).await;
    let empty = writer.prepare_commit(3).await.unwrap();
    subject.commit(3, &empty).await;
    subject.expect(&[1, 2], "a checkpoint without rows changes nothing");
    drop(writer);
    subject.expect(&[1, 2], "a writer that goes takes nothing with it");
}

/// Reads the lines of all visible files below a folder.
fn visible_lines(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    for entry in entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with(['.', '_'])) {
        if entry.path().is_dir() {
            lines.extend(visible_lines(&entry.path()));
        } else {
            lines.extend(fs::read_to_string(entry.path()).unwrap().lines().map(str::to_owned));
        }
    }
    lines.sort();
    lines
}

#[tokio::test]
async fn files_are_written_exactly_once() {
    check(|| {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("t");
        let table = Table::new("filesystem", &[("path", path.to_str().unwrap()), ("format", "csv")]);
        Subject { table, visible: Box::new(move || visible_lines(&path)), _place: place }
    })
    .await;
}
