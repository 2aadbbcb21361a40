//! Tests of upserts as a job makes them: what the table then shows, also where others write to it, checkpoints fail and jobs crash.

use std::sync::Arc;

use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, Type};

use super::testing::{Job, Layout, OtherEngine, Row, Warehouse, ident, row, sink, sink_by};
use crate::changelog::RowKind::{Delete, Insert, UpdateAfter, UpdateBefore};
use crate::changelog::{ChangelogMode, RowKind};
use crate::connector::DynamicTableSink;

const JOB: &str = "0000/sink";

async fn keyed(warehouse: &Warehouse) -> Job {
    Job::start(warehouse, true, 1, JOB, None).await.unwrap()
}

fn inserts(rows: &[Row]) -> Vec<(RowKind, Row)> {
    rows.iter().map(|row| (Insert, row.clone())).collect()
}

async fn snapshots(warehouse: &Warehouse) -> usize {
    warehouse.table().await.metadata().snapshots().count()
}

#[tokio::test]
async fn a_row_replaces_that_of_its_key_and_a_delete_takes_it_away() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0), row(2, "b", 0), row(3, "c", 0)])).await.unwrap();
    assert!(warehouse.rows().await.is_empty());
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "a", 0), row(2, "b", 0), row(3, "c", 0)]);
    job.write(&[(UpdateAfter, row(1, "x", 0)), (UpdateAfter, row(1, "y", 0)), (Delete, (2, None, 0))])
        .await
        .unwrap();
    job.write(&[(Insert, row(4, "d", 0)), (Delete, row(5, "e", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "y", 0), row(3, "c", 0), row(4, "d", 0)]);
    job.write(&[(Insert, row(2, "again", 0)), (Delete, row(4, "d", 0)), (UpdateAfter, row(1, "z", 0))])
        .await
        .unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "z", 0), row(2, "again", 0), row(3, "c", 0)]);
    assert_eq!(snapshots(&warehouse).await, 3);
}

#[tokio::test]
async fn a_job_that_reads_anew_replaces_all_that_the_table_holds_in_one_commit() {
    for is_keyed in [true, false] {
        let warehouse = Warehouse::new(&Layout::default()).await;
        let mut job = Job::start(&warehouse, is_keyed, 1, JOB, None).await.unwrap();
        job.write(&inserts(&[row(1, "a", 0), row(2, "b", 0), row(3, "c", 0)])).await.unwrap();
        job.checkpoint().await.unwrap();
        let mut anew = Job::start_anew(&warehouse, is_keyed, "0001/sink").await.unwrap();
        anew.write(&inserts(&[row(1, "new", 0), row(4, "d", 0)])).await.unwrap();
        anew.write(&[(Delete, row(4, "d", 0)), (Insert, row(5, "e", 0))]).await.unwrap();
        anew.prepare().await.unwrap();
        anew.save();
        // What others add in between goes, too.
        OtherEngine(&warehouse).append(&[row(9, "other", 0)]).await;
        anew.commit().await.unwrap();
        assert_eq!(warehouse.rows().await, [row(1, "new", 0), row(5, "e", 0)]);
        let number = snapshots(&warehouse).await;
        anew.write(&[(UpdateBefore, row(1, "new", 0)), (UpdateAfter, row(1, "newer", 0))]).await.unwrap();
        anew.checkpoint().await.unwrap();
        assert_eq!(warehouse.rows().await, [row(1, "newer", 0), row(5, "e", 0)]);
        assert_eq!(snapshots(&warehouse).await, number + 1);
        // Gone on from a checkpoint, nothing is replaced again.
        let saved = std::mem::take(&mut anew.saved);
        let mut resumed = Job::start(&warehouse, is_keyed, 1, "0001/sink", Some(saved)).await.unwrap();
        resumed.write(&[(Delete, row(5, "e", 0))]).await.unwrap();
        resumed.checkpoint().await.unwrap();
        assert_eq!(warehouse.rows().await, [row(1, "newer", 0)]);
    }
}

#[tokio::test]
async fn a_job_that_reads_anew_and_finds_nothing_empties_the_table() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    let mut anew = Job::start_anew(&warehouse, true, "0001/sink").await.unwrap();
    anew.checkpoint().await.unwrap();
    assert!(warehouse.rows().await.is_empty());
    anew.write(&inserts(&[row(1, "b", 0)])).await.unwrap();
    anew.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "b", 0)]);
}

#[tokio::test]
async fn a_checkpoint_without_rows_commits_nothing() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.checkpoint().await.unwrap();
    job.write(&[(Insert, row(1, "a", 0)), (Delete, row(1, "a", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(Delete, row(7, "nobody", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(snapshots(&warehouse).await, 0);
}

#[tokio::test]
async fn rows_without_a_key_are_found_also_after_their_types_have_changed() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = Job::start(&warehouse, false, 2, JOB, None).await.unwrap();
    let rows: Vec<Row> = (0..20).map(|id| row(id, "a", id)).collect();
    for half in rows.chunks(10) {
        job.write(&inserts(half)).await.unwrap();
        job.checkpoint().await.unwrap();
    }
    let field = |id, name, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
    let wider = [
        field(1, "id", PrimitiveType::Int),
        field(2, "v", PrimitiveType::String),
        field(3, "p", PrimitiveType::Long),
    ];
    set_schema(&warehouse, Schema::builder().with_fields(wider).build().unwrap()).await;
    for (before, after) in [("a", "b"), ("b", "c"), ("c", "d")] {
        job = Job::start(&warehouse, false, 2, JOB, Some(job.saved)).await.unwrap();
        // Some at a time, so that a writer may have nothing to do.
        for id in [1, 11, 12] {
            job.write(&[(UpdateBefore, row(id, before, id)), (UpdateAfter, row(id, after, id))])
                .await
                .unwrap();
            job.checkpoint().await.unwrap();
        }
    }
    let mut expected = rows;
    [1, 11, 12].into_iter().for_each(|id| expected[id].1 = Some("d".to_owned()));
    assert_eq!(warehouse.rows().await, expected);
}

#[tokio::test]
async fn keys_are_read_anew_where_rows_come_to_writers_in_another_way() {
    let warehouse = Warehouse::new(&Layout { is_partitioned: true, ..Layout::default() }).await;
    let ways: [&[(&str, &str)]; 2] = [&[], &[("distribution-mode", "none")]];
    let mut saved = None;
    for (round, way) in ways.iter().cycle().take(4).enumerate() {
        let sink = sink_by(&warehouse.table().await, &["id", "p"], way).unwrap();
        assert_eq!(sink.distribution(&[0, 2], ChangelogMode::UPSERT).len(), 1 + round % 2);
        let mut job = Job::start_sink(sink, ChangelogMode::UPSERT, vec![0, 2], 2, JOB, saved).await.unwrap();
        let rows: Vec<Row> = (0..30).map(|id| row(id, &format!("v{round}"), id % 3)).collect();
        for part in [&rows[..1], &rows] {
            job.write(&inserts(part)).await.unwrap();
            job.checkpoint().await.unwrap();
        }
        assert_eq!(warehouse.rows().await, rows, "round {round}");
        saved = Some(job.saved);
    }
}

async fn set_schema(warehouse: &Warehouse, schema: Schema) {
    let updates = vec![TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
    warehouse.catalog.commit_table(&ident(), Vec::new(), updates).await.unwrap();
}

/// Returns a figure of the current snapshot's summary.
async fn figure(warehouse: &Warehouse, key: &str) -> Option<u64> {
    let table = warehouse.table().await;
    let summary = table.metadata().current_snapshot()?.summary();
    summary.additional_properties.get(key)?.parse().ok()
}

/// Makes data files unreadable, as long as the guard lives.
struct HiddenData<'a>(&'a Warehouse);

impl<'a> HiddenData<'a> {
    fn of(warehouse: &'a Warehouse) -> HiddenData<'a> {
        std::fs::rename(warehouse.folder().join("db/t/data"), warehouse.folder().join("db/t/hidden"))
            .unwrap();
        HiddenData(warehouse)
    }
}

impl Drop for HiddenData<'_> {
    fn drop(&mut self) {
        let (data, hidden) = (self.0.folder().join("db/t/data"), self.0.folder().join("db/t/hidden"));
        // What was written meanwhile goes beside the files that were hidden.
        for entry in std::fs::read_dir(&data).into_iter().flatten() {
            let entry = entry.unwrap();
            std::fs::rename(entry.path(), hidden.join(entry.file_name())).unwrap();
        }
        let _ = std::fs::remove_dir(&data);
        std::fs::rename(hidden, data).unwrap();
    }
}

#[tokio::test]
async fn a_key_may_move_to_another_partition() {
    let warehouse = Warehouse::new(&Layout { is_partitioned: true, ..Layout::default() }).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 1), row(2, "b", 1), row(3, "c", 2)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(UpdateBefore, row(1, "a", 1)), (UpdateAfter, row(1, "a", 2)), (Delete, (3, None, 0))])
        .await
        .unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "a", 2), row(2, "b", 1)]);
    assert_eq!(figure(&warehouse, "added-position-deletes").await, Some(2));
}

#[tokio::test]
async fn null_in_a_key_is_refused() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    let ids: arrow::array::ArrayRef =
        std::sync::Arc::new(arrow::array::Int32Array::from(vec![Some(1), None]));
    let rows = super::testing::batch_of([row(1, "a", 0), row(2, "b", 0)].iter());
    let mut columns = rows.columns().to_vec();
    columns[0] = ids;
    let rows = arrow::array::RecordBatch::try_new(rows.schema(), columns).unwrap();
    let batch = crate::changelog::ChangelogBatch::inserts(rows);
    let error = job.writers[0].write(batch).await.unwrap_err();
    assert_eq!(error.message(), "column 'id' is part of the table's key and is NULL in a row");
}

#[tokio::test]
async fn all_rows_that_others_have_added_for_a_key_are_replaced() {
    let warehouse = Warehouse::new(&Layout { is_partitioned: true, ..Layout::default() }).await;
    let other = OtherEngine(&warehouse);
    other.append(&[row(1, "a", 1), row(1, "b", 2), row(2, "c", 1), row(3, "d", 1)]).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "x", 3)])).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "x", 3), row(2, "c", 1), row(3, "d", 1)]);
    other.append(&[row(1, "e", 1), row(1, "e", 1), row(2, "f", 1)]).await;
    job.write(&[(Delete, row(1, "", 0)), (UpdateAfter, row(3, "y", 1))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(2, "c", 1), row(2, "f", 1), row(3, "y", 1)]);
    assert_eq!(figure(&warehouse, "added-position-deletes").await, Some(4));
}

#[tokio::test]
async fn rows_that_come_between_the_lookup_and_the_commit_are_replaced_once() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let other = OtherEngine(&warehouse);
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0), row(2, "b", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(UpdateAfter, row(1, "x", 0)), (Delete, row(3, "", 0))]).await.unwrap();
    job.prepare().await.unwrap();
    job.save();
    other.append(&[row(1, "late", 0), row(2, "late", 0), row(3, "late", 0)]).await;
    job.commit().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "x", 0), row(2, "b", 0), row(2, "late", 0)]);
    assert_eq!(figure(&warehouse, "lakehead.resolved-deletes").await, Some(2));
    // The index knows what the committer has deleted: nothing is deleted twice.
    job.write(&inserts(&[row(1, "y", 0), row(2, "y", 0), row(3, "y", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "y", 0), row(2, "y", 0), row(3, "y", 0)]);
    assert_eq!(figure(&warehouse, "added-position-deletes").await, Some(3));
}

#[tokio::test]
async fn rows_that_are_moved_between_the_lookup_and_the_commit_are_replaced_where_they_are() {
    for keeps_sequence_number in [false, true] {
        let warehouse = Warehouse::new(&Layout::default()).await;
        let other = OtherEngine(&warehouse);
        let mut job = keyed(&warehouse).await;
        for value in ["a", "b"] {
            let rows: Vec<Row> = (0..50).map(|id| row(id, value, 0)).collect();
            job.write(&inserts(&rows)).await.unwrap();
            job.checkpoint().await.unwrap();
        }
        job.write(&[(UpdateAfter, row(7, "x", 0)), (Delete, row(9, "", 0))]).await.unwrap();
        job.prepare().await.unwrap();
        job.save();
        other.rewrite(keeps_sequence_number).await;
        job.commit().await.unwrap();
        let rows = warehouse.rows().await;
        assert_eq!(rows.len(), 49);
        assert!(rows.contains(&row(7, "x", 0)) && !rows.iter().any(|row| row.0 == 9));
        // Deletes of files that have gone are left out.
        assert_eq!(figure(&warehouse, "total-position-deletes").await, Some(2));
        job.write(&inserts(&[row(7, "y", 0), row(8, "y", 0), row(9, "y", 0)])).await.unwrap();
        job.checkpoint().await.unwrap();
        assert_eq!(figure(&warehouse, "added-position-deletes").await, Some(2));
        assert_eq!(warehouse.rows().await.len(), 50);
    }
}

#[tokio::test]
async fn a_restored_job_reads_no_data_file_that_it_knows() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = Job::start(&warehouse, true, 2, JOB, None).await.unwrap();
    let rows: Vec<Row> = (0..40).map(|id| row(id, "a", 0)).collect();
    for checkpoint in 0..3 {
        let rows = inserts(&rows[checkpoint * 10..checkpoint * 10 + 10]);
        job.write(&rows).await.unwrap();
        job.checkpoint().await.unwrap();
    }
    job.write(&inserts(&rows[..5])).await.unwrap();
    job.prepare().await.unwrap();
    job.save();
    // The job crashes before it has committed.
    let saved = job.saved.clone();
    drop(job);
    for (sink_id, writers) in [(JOB, 2), ("1111/sink", 2), ("2222/sink", 3), ("3333/sink", 1)] {
        let mut job = Job::start(&warehouse, true, writers, sink_id, Some(saved.clone())).await.unwrap();
        let hidden = HiddenData::of(&warehouse);
        job.write(&[
            (UpdateAfter, row(3, sink_id, 0)),
            (Delete, row(12, "", 0)),
            (UpdateAfter, row(12, "a", 0)),
        ])
        .await
        .unwrap();
        job.prepare().await.unwrap();
        drop(hidden);
        drop(job);
    }
    assert_eq!(warehouse.rows().await, rows[..30]);
}

#[tokio::test]
async fn what_a_checkpoint_holds_is_committed_with_the_next_if_it_cannot_be_written() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0), row(2, "a", 0)])).await.unwrap();
    job.prepare().await.unwrap();
    OtherEngine(&warehouse).append(&[row(1, "other", 0), row(2, "other", 0)]).await;
    job.write(&[(UpdateAfter, row(1, "b", 0)), (Delete, row(2, "a", 0)), (Insert, row(3, "b", 0))])
        .await
        .unwrap();
    job.prepare().await.unwrap();
    job.write(&inserts(&[row(3, "c", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "b", 0), row(3, "c", 0)]);
}

#[tokio::test]
async fn a_commit_is_repeated_after_a_crash_and_lands_once() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0), row(2, "a", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(UpdateAfter, row(1, "b", 0)), (Delete, row(2, "a", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    let saved = job.saved.clone();
    for _ in 0..2 {
        drop(job);
        job = Job::start(&warehouse, true, 1, JOB, Some(saved.clone())).await.unwrap();
        assert_eq!(warehouse.rows().await, [row(1, "b", 0)]);
    }
    assert_eq!(snapshots(&warehouse).await, 2);
    job.write(&inserts(&[row(1, "c", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "c", 0)]);
}

#[tokio::test]
async fn a_commit_that_came_to_nothing_does_not_delete_what_others_have_added_since() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&[(Delete, row(7, "nobody", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    OtherEngine(&warehouse).append(&[row(7, "other", 0)]).await;
    let mut job = Job::start(&warehouse, true, 1, JOB, Some(job.saved)).await.unwrap();
    assert_eq!(warehouse.rows().await, [row(7, "other", 0)]);
    job.write(&[(Delete, row(7, "other", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert!(warehouse.rows().await.is_empty());
}

#[tokio::test]
async fn what_was_committed_after_the_checkpoint_of_a_copy_is_replaced() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    let mut copy = None;
    for (id, value) in [(1, "a"), (2, "b"), (3, "c")] {
        job.write(&inserts(&[row(1, value, 0), row(id, value, 0)])).await.unwrap();
        job.checkpoint().await.unwrap();
        copy.get_or_insert(job.saved.clone());
    }
    drop(job);
    let mut job = Job::start(&warehouse, true, 1, "1111/sink", copy).await.unwrap();
    for (id, value) in [(2, "b"), (3, "c")] {
        job.write(&inserts(&[row(1, value, 0), row(id, value, 0)])).await.unwrap();
        job.checkpoint().await.unwrap();
    }
    assert_eq!(warehouse.rows().await, [row(1, "c", 0), row(2, "b", 0), row(3, "c", 0)]);
}

#[tokio::test]
async fn two_jobs_write_the_keys_of_one_table() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut jobs = Vec::new();
    for number in 0..2 {
        jobs.push(Job::start(&warehouse, true, 2, &format!("{number}/sink"), None).await.unwrap());
    }
    for round in 0..6 {
        let names = [format!("first{round}"), format!("second{round}")];
        for (job, name) in jobs.iter_mut().zip(&names) {
            let rows: Vec<Row> = (0..20).map(|id| row(id * (round + 1) % 23, name, 0)).collect();
            job.write(&inserts(&rows)).await.unwrap();
            job.prepare().await.unwrap();
            job.save();
        }
        // They commit in turn, each behind what the other has committed since.
        let first = round as usize % 2;
        jobs[first].commit().await.unwrap();
        jobs[1 - first].commit().await.unwrap();
        let rows = warehouse.rows().await;
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "a key is there twice: {rows:?}");
        let last = rows.iter().filter(|row| row.1.as_deref() == Some(names[1 - first].as_str())).count();
        let keys: std::collections::BTreeSet<i32> = (0..20).map(|id| id * (round + 1) % 23).collect();
        assert_eq!(last, keys.len());
    }
}

#[tokio::test]
async fn keys_are_read_anew_where_the_table_was_set_back() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    for value in ["a", "b", "c"] {
        job.write(&inserts(&[row(1, value, 0), row(2, value, 0)])).await.unwrap();
        job.checkpoint().await.unwrap();
    }
    let table = warehouse.table().await;
    let first = table.metadata().snapshots().min_by_key(|snapshot| snapshot.sequence_number()).unwrap();
    OtherEngine(&warehouse).roll_back(first.snapshot_id()).await;
    assert_eq!(warehouse.rows().await, [row(1, "a", 0), row(2, "a", 0)]);
    job.write(&inserts(&[row(1, "d", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "d", 0), row(2, "a", 0)]);
    // Also if it happens between the lookup and the commit.
    job.write(&inserts(&[row(1, "e", 0), row(2, "e", 0)])).await.unwrap();
    job.prepare().await.unwrap();
    job.save();
    OtherEngine(&warehouse).roll_back(first.snapshot_id()).await;
    job.commit().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "e", 0), row(2, "e", 0)]);
}

#[tokio::test]
async fn keys_are_read_anew_where_the_table_was_set_back_to_what_the_last_commit_had_looked_at() {
    for is_restarted in [false, true] {
        let warehouse = Warehouse::new(&Layout::default()).await;
        let mut job = keyed(&warehouse).await;
        for value in ["a", "b"] {
            job.write(&inserts(&[row(1, value, 0)])).await.unwrap();
            job.checkpoint().await.unwrap();
        }
        let table = warehouse.table().await;
        let last = table.metadata().current_snapshot().unwrap();
        OtherEngine(&warehouse).roll_back(last.parent_snapshot_id().unwrap()).await;
        if is_restarted {
            job = Job::start(&warehouse, true, 1, JOB, Some(job.saved)).await.unwrap();
        }
        for value in ["c", "d"] {
            job.write(&inserts(&[row(1, value, 0)])).await.unwrap();
            job.checkpoint().await.unwrap();
            assert_eq!(warehouse.rows().await, [row(1, value, 0)]);
        }
    }
}

#[tokio::test]
async fn rows_are_written_in_the_order_of_the_table() {
    let warehouse = Warehouse::new(&Layout { is_sorted: true, ..Layout::default() }).await;
    let mut job = keyed(&warehouse).await;
    let rows: Vec<Row> = (0..30).map(|id| row(id, &format!("{:02}", id * 7 % 30), 0)).collect();
    job.write(&inserts(&rows)).await.unwrap();
    job.checkpoint().await.unwrap();
    let table = warehouse.table().await;
    let files = crate::connector::iceberg::scan::live_files(&table, None).await.unwrap();
    assert_eq!(files[0].data.file.sort_order_id(), Some(1));
    job.write(&[(Delete, row(11, "", 0)), (UpdateAfter, row(12, "99", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    let mut expected = rows;
    expected[12].1 = Some("99".to_owned());
    expected.remove(11);
    assert_eq!(warehouse.rows().await, expected);
}

#[tokio::test]
async fn a_table_without_key_mirrors_the_query() {
    let warehouse = Warehouse::new(&Layout { is_partitioned: true, ..Layout::default() }).await;
    let mut job = Job::start(&warehouse, false, 2, JOB, None).await.unwrap();
    job.write(&inserts(&[row(1, "a", 1), row(1, "a", 1), row(1, "a", 1), (2, None, 2)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(Delete, row(1, "a", 1)), (UpdateBefore, (2, None, 2)), (UpdateAfter, row(2, "b", 2))])
        .await
        .unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "a", 1), row(1, "a", 1), row(2, "b", 2)]);
    // Of rows that are moved before the commit one is taken, wherever it is.
    job.write(&[(Delete, row(1, "a", 1)), (Insert, row(3, "c", 1)), (Delete, row(3, "c", 1))]).await.unwrap();
    job.prepare().await.unwrap();
    job.save();
    OtherEngine(&warehouse).rewrite(true).await;
    job.commit().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(1, "a", 1), row(2, "b", 2)]);
    let saved = job.saved.clone();
    drop(job);
    let mut job = Job::start(&warehouse, false, 3, JOB, Some(saved)).await.unwrap();
    job.write(&[(Delete, row(1, "a", 1)), (Delete, row(2, "b", 2))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert!(warehouse.rows().await.is_empty());
}

/// A row of which others have deleted one of two is known as one row, also by a job that is started again.
#[tokio::test]
async fn each_of_two_jobs_takes_another_of_equal_rows_away() {
    let (equal, count) = (row(1, "a", 0), 5);
    for in_one_file in [true, false] {
        let warehouse = Warehouse::new(&Layout::default()).await;
        let mut first = Job::start(&warehouse, false, 1, "0001/sink", None).await.unwrap();
        for number in 0..count {
            first.write(&inserts(&[equal.clone(), row(number, "other", 0)])).await.unwrap();
            if !in_one_file {
                first.checkpoint().await.unwrap();
            }
        }
        first.checkpoint().await.unwrap();
        let mut second = Job::start(&warehouse, false, 1, "0002/sink", None).await.unwrap();
        // Both look the rows up before one of them lands.
        for job in [&mut first, &mut second] {
            job.write(&[(Delete, equal.clone()), (Delete, equal.clone())]).await.unwrap();
            job.prepare().await.unwrap();
            job.save();
        }
        first.commit().await.unwrap();
        second.commit().await.unwrap();
        let equal_rows = || async { warehouse.rows().await.iter().filter(|row| **row == equal).count() };
        assert_eq!(equal_rows().await, 1);
        // Both know which one is left.
        first.write(&inserts(std::slice::from_ref(&equal))).await.unwrap();
        first.checkpoint().await.unwrap();
        for (job, left) in [(&mut second, 1), (&mut first, 0)] {
            job.write(&[(Delete, equal.clone())]).await.unwrap();
            job.checkpoint().await.unwrap();
            assert_eq!(equal_rows().await, left);
        }
        assert_eq!(warehouse.rows().await.len(), count as usize, "no other row has gone");
    }
}

async fn one_of_two_equal_rows_deleted(in_one_file: bool, is_last: bool) {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = Job::start(&warehouse, false, 1, JOB, None).await.unwrap();
    job.write(&inserts(&[row(1, "a", 0), row(2, "b", 0)])).await.unwrap();
    if !in_one_file {
        job.checkpoint().await.unwrap();
    }
    job.write(&inserts(&[row(1, "a", 0), row(3, "c", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    OtherEngine(&warehouse).delete_one(&row(1, "a", 0), is_last).await;
    job.write(&inserts(&[row(4, "d", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    let mut job = Job::start(&warehouse, false, 1, JOB, Some(job.saved)).await.unwrap();
    job.write(&[(Delete, row(1, "a", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(2, "b", 0), row(3, "c", 0), row(4, "d", 0)]);
}

#[tokio::test]
async fn a_restarted_job_does_not_take_a_row_that_others_have_deleted_for_one_that_is_there() {
    for (in_one_file, is_last) in [(true, true), (true, false), (false, true), (false, false)] {
        one_of_two_equal_rows_deleted(in_one_file, is_last).await;
    }
}

#[tokio::test]
async fn a_row_that_is_taken_back_in_a_failed_checkpoint_is_not_read_again() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = Job::start(&warehouse, false, 1, JOB, None).await.unwrap();
    job.write(&inserts(&[row(1, "a", 0), row(1, "a", 0), row(2, "b", 0), row(3, "c", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&[(Delete, row(1, "a", 0))]).await.unwrap();
    job.prepare().await.unwrap();
    // The file is read anew, and what was prepared is not in it yet.
    OtherEngine(&warehouse).delete(|row| row.0 == 2).await;
    job.write(&[(Delete, row(1, "a", 0))]).await.unwrap();
    job.checkpoint().await.unwrap();
    assert_eq!(warehouse.rows().await, [row(3, "c", 0)]);
}

#[tokio::test]
async fn changes_are_refused_where_the_format_has_no_deletes() {
    for (version, text) in [
        (FormatVersion::V1, "Cannot write delete files in a v1 table"),
        (FormatVersion::V3, "updates and deletes in table 'db.t' of format version 3 are not supported yet"),
    ] {
        let warehouse = Warehouse::new(&Layout { version: Some(version), ..Layout::default() }).await;
        for is_keyed in [true, false] {
            let error = Job::start(&warehouse, is_keyed, 1, JOB, None).await.err().unwrap();
            assert_eq!(error.message(), text);
            assert!(error.hint_text().is_some());
        }
    }
}

#[tokio::test]
async fn what_the_planner_is_told_of_a_table() {
    let warehouse = Warehouse::new(&Layout { is_partitioned: true, ..Layout::default() }).await;
    let table = warehouse.table().await;
    let (all, inserts) = (ChangelogMode::ALL, ChangelogMode::INSERT_ONLY);
    let keyed = sink(&table, true, &[]).unwrap();
    assert_eq!(keyed.changelog_mode(all), ChangelogMode::UPSERT);
    assert_eq!(keyed.changelog_mode(inserts), inserts);
    assert_eq!(keyed.distribution(&[0], ChangelogMode::UPSERT), [0]);
    let tables = keyed.state_tables(ChangelogMode::UPSERT);
    assert_eq!(tables.iter().map(|table| table.name).collect::<Vec<_>>(), ["positions", "snapshots"]);
    assert!(keyed.state_tables(inserts).is_empty(), "what only comes is appended");
    let mirror = sink(&table, false, &[]).unwrap();
    assert_eq!(mirror.changelog_mode(all), all);
    assert_eq!(mirror.distribution(&[], all), [0, 1, 2]);
    assert_eq!(mirror.state_tables(all).len(), 2);
    let append = sink(&table, false, &[("lakehead.iceberg.changelog-without-key", "append")]).unwrap();
    assert_eq!(append.changelog_mode(all), all);
    assert!(append.state_tables(all).is_empty());
}

#[tokio::test]
async fn a_table_that_is_dropped_or_replaced_under_a_job_is_told() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    job.write(&inserts(&[row(2, "a", 0)])).await.unwrap();
    std::fs::remove_dir_all(warehouse.folder().join("db/t")).unwrap();
    let error = job.prepare().await.unwrap_err();
    assert!(error.message().contains("was dropped or renamed while it was written"), "{error}");
    assert_eq!(job.saved.len(0), 1, "the checkpoint before is there");
}

#[tokio::test]
async fn a_column_that_is_added_is_null_and_one_that_is_dropped_ends_the_job() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    job.write(&inserts(&[row(1, "a", 0), row(2, "a", 0)])).await.unwrap();
    job.checkpoint().await.unwrap();
    let alter = async |fields: Vec<NestedField>| {
        let schema = Schema::builder().with_fields(fields.into_iter().map(Arc::new)).build().unwrap();
        set_schema(&warehouse, schema).await;
    };
    let field = |id, name, of| NestedField::optional(id, name, Type::Primitive(of));
    // A key that became wider, a column under another name, and a new one.
    let mut fields = vec![
        field(1, "id", PrimitiveType::Long),
        field(2, "w", PrimitiveType::String),
        field(3, "p", PrimitiveType::Int),
        field(4, "new", PrimitiveType::Int),
    ];
    alter(fields.clone()).await;
    job.write(&[(UpdateAfter, row(1, "b", 0)), (Delete, row(2, "a", 0)), (Insert, row(3, "b", 0))])
        .await
        .unwrap();
    job.checkpoint().await.unwrap();
    let table = warehouse.table().await;
    let files = crate::connector::iceberg::scan::live_files(&table, None).await.unwrap();
    let rows: u64 = files.iter().map(|file| file.data.file.record_count()).sum();
    assert_eq!((rows, figure(&warehouse, "added-position-deletes").await), (4, Some(2)));
    fields.remove(2);
    alter(fields).await;
    job.write(&inserts(&[row(4, "c", 0)])).await.unwrap();
    let error = job.prepare().await.unwrap_err();
    assert_eq!(error.message(), "column 'p' of Iceberg table 'db.t' was dropped while a job writes it");
}

#[tokio::test]
async fn an_index_counts_its_bytes() {
    let warehouse = Warehouse::new(&Layout::default()).await;
    let mut job = keyed(&warehouse).await;
    let few = job.state_bytes();
    let rows: Vec<Row> = (0..20_000).map(|id| row(id, "a", 0)).collect();
    job.write(&inserts(&rows)).await.unwrap();
    job.checkpoint().await.unwrap();
    let bytes_per_key = (job.state_bytes() - few) / rows.len();
    assert!((20..100).contains(&bytes_per_key), "{bytes_per_key} bytes a key");
}
