//! Tests of the sink that appends, from its options to what is in the table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use iceberg::spec::{DataContentType, FormatVersion, PrimitiveType, Transform};
use iceberg::{TableRequirement, TableUpdate};
use object_store::{ObjectStoreExt, PutPayload};

use super::iceberg_sink::IcebergSink;
use super::testing::{Making, Warehouse, id_and_name, optional};
use crate::changelog::{ChangelogBatch, ChangelogMode, RowKind};
use crate::connector::iceberg::storage::testing::{Fault, Operation};
use crate::connector::testing::{completed_checkpoint, writer_context};
use crate::connector::{Committable, DynamicTableSink, WriterContext};
use crate::error::{Error, ErrorKind, FlinkClass, Result};

fn rows(of: &[(i64, &str)]) -> ChangelogBatch {
    let ids = Int64Array::from_iter_values(of.iter().map(|(id, _)| *id));
    let names: StringArray = of.iter().map(|(_, name)| Some(*name)).collect();
    let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("name", Arc::new(names))];
    ChangelogBatch::inserts(RecordBatch::try_from_iter(columns).unwrap())
}

fn context(sink_id: &str) -> WriterContext {
    WriterContext { sink_id: sink_id.into(), ..writer_context(false) }
}

async fn prepare(
    sink: &IcebergSink,
    ctx: WriterContext,
    checkpoint: u64,
    of: &[(i64, &str)],
) -> Result<Vec<Committable>> {
    let mut writer = sink.open_writer(ctx).await?;
    if !of.is_empty() {
        writer.write(rows(of)).await?;
    }
    writer.prepare_commit(checkpoint).await
}

async fn commit(sink: &IcebergSink, ctx: WriterContext, checkpoint: u64, of: &[Committable]) -> Result<()> {
    let mut committer = sink.open_committer(ctx).await?;
    committer.commit(&completed_checkpoint(checkpoint), of).await
}

/// Writes rows as one job does that ends well.
async fn insert(sink: &IcebergSink, overwrite: bool, of: &[(i64, &str)]) -> Result<()> {
    let ctx = WriterContext {
        overwrite,
        sink_id: uuid::Uuid::new_v4().to_string().into(),
        ..writer_context(false)
    };
    let prepared = prepare(sink, ctx.clone(), 1, of).await?;
    commit(sink, ctx, 1, &prepared).await
}

async fn plain() -> Warehouse {
    Warehouse::new(id_and_name(), Making::default()).await
}

fn refusal<T>(result: Result<T>) -> Error {
    result.err().expect("refused")
}

#[tokio::test]
async fn a_checkpoint_is_one_snapshot_of_all_writers_and_a_repeated_commit_is_none() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let ctx = context("1f/sink~1");
    let mut prepared = prepare(&sink, ctx.clone(), 3, &[(1, "a")]).await.unwrap();
    prepared.extend(prepare(&sink, ctx.clone(), 3, &[(2, "b")]).await.unwrap());
    assert_eq!(warehouse.rows().await, [""; 0]);
    for _ in 0..2 {
        commit(&sink, ctx.clone(), 3, &[prepared.clone(), prepared.clone()].concat()).await.unwrap();
    }
    assert_eq!(warehouse.rows().await, ["1,a", "2,b"]);
    let table = warehouse.other().await;
    assert_eq!(table.metadata().snapshots().len(), 1);
    let summary = &table.metadata().current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["flink.job-id"], "1f");
    assert_eq!(summary["flink.operator-id"], "sink~1");
    assert_eq!(summary["flink.max-committed-checkpoint-id"], "3");
    assert_eq!(summary["added-records"], "2");
    assert!(table.metadata().properties().keys().any(|key| key.starts_with("lakehead.committed.")));
    sink.open_committer(ctx).await.unwrap().forget_commits().await.unwrap();
    let table = warehouse.other().await;
    assert!(!table.metadata().properties().keys().any(|key| key.starts_with("lakehead.committed.")));
}

#[tokio::test]
async fn the_newest_commit_of_a_sink_is_told_by_the_table() {
    let warehouse = plain().await;
    let newest = async || warehouse.sink(&[], &[], false).await.newest_commit("a");
    assert_eq!(newest().await, None);
    let sink = warehouse.sink(&[], &[], false).await;
    for (run, number) in [("a", 3), ("a", 5), ("b", 9)] {
        let prepared = prepare(&sink, context(run), number, &[(1, "a")]).await.unwrap();
        commit(&sink, context(run), number, &prepared).await.unwrap();
    }
    assert_eq!(newest().await, Some(5));
    // The snapshots tell it, too.
    sink.open_committer(context("a")).await.unwrap().forget_commits().await.unwrap();
    assert_eq!(newest().await, Some(5));
}

#[tokio::test]
async fn a_checkpoint_without_rows_is_no_snapshot() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let prepared = prepare(&sink, context("a"), 1, &[]).await.unwrap();
    assert_eq!(prepared, []);
    commit(&sink, context("a"), 1, &prepared).await.unwrap();
    assert!(warehouse.other().await.metadata().current_snapshot().is_none());
}

#[tokio::test]
async fn what_has_landed_in_part_is_completed() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let mut prepared = prepare(&sink, context("a"), 1, &[(1, "a")]).await.unwrap();
    prepared.extend(prepare(&sink, context("a"), 1, &[(2, "b")]).await.unwrap());
    commit(&sink, context("a"), 1, &prepared[..1]).await.unwrap();
    commit(&sink, context("a"), 1, &prepared).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a", "2,b"]);
}

#[tokio::test]
async fn a_checkpoint_of_an_earlier_run_is_committed_once_and_its_mark_goes_with_the_next() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let prepared = prepare(&sink, context("old"), 5, &[(1, "a")]).await.unwrap();
    for _ in 0..2 {
        let mut committer = sink.open_committer(context("new")).await.unwrap();
        committer.commit_after_recovery(&completed_checkpoint(5), &prepared).await.unwrap();
    }
    assert_eq!(warehouse.rows().await, ["1,a"]);
    let marks = |table: &crate::connector::iceberg::table::IcebergTable| {
        let mut keys: Vec<String> = table.metadata().properties().keys().cloned().collect();
        keys.retain(|key| key.starts_with("lakehead.committed."));
        keys
    };
    assert_eq!(marks(&warehouse.other().await), ["lakehead.committed.old"]);
    let mut committer = sink.open_committer(context("new")).await.unwrap();
    committer.commit_after_recovery(&completed_checkpoint(5), &prepared).await.unwrap();
    let next = prepare(&sink, context("new"), 6, &[(2, "b")]).await.unwrap();
    committer.commit(&completed_checkpoint(6), &next).await.unwrap();
    assert_eq!(marks(&warehouse.other().await), ["lakehead.committed.new"]);
}

#[tokio::test]
async fn what_is_in_the_table_has_landed_whatever_has_expired() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let first = prepare(&sink, context("old"), 5, &[(1, "a")]).await.unwrap();
    let recover = async |run: &str| {
        let mut committer = sink.open_committer(context(run)).await.unwrap();
        committer.commit_after_recovery(&completed_checkpoint(5), &first).await.unwrap();
        committer
    };
    let mut committer = recover("new").await;
    let next = prepare(&sink, context("new"), 6, &[(2, "b")]).await.unwrap();
    committer.commit(&completed_checkpoint(6), &next).await.unwrap();
    // Another engine lets the first snapshot go, and with it the only mark.
    let table = warehouse.other().await;
    let head = table.metadata().current_snapshot().unwrap();
    let expired = vec![head.parent_snapshot_id().unwrap()];
    warehouse.alter(vec![TableUpdate::RemoveSnapshots { snapshot_ids: expired }]).await;
    recover("again").await;
    assert_eq!(warehouse.rows().await, ["1,a", "2,b"]);
    assert_eq!(warehouse.files().await.len(), 2);
}

#[tokio::test]
async fn files_that_are_gone_before_they_were_committed_are_named() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let prepared = prepare(&sink, context("a"), 1, &[(1, "a")]).await.unwrap();
    for file in warehouse.parquet_files() {
        std::fs::remove_file(file).unwrap();
    }
    let mut committer = sink.open_committer(context("a")).await.unwrap();
    let error = refusal(committer.commit_after_recovery(&completed_checkpoint(1), &prepared).await);
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.message().ends_with(".parquet' is gone before it was committed"), "{error}");
}

#[tokio::test]
async fn what_a_killed_job_has_left_goes_and_nothing_else() {
    let warehouse = Warehouse::new(
        id_and_name(),
        Making { partition: &[(2, "name", Transform::Identity)], ..Making::default() },
    )
    .await;
    let sink = warehouse.sink(&[], &[], false).await;
    let committed = prepare(&sink, context("job-1"), 1, &[(1, "a")]).await.unwrap();
    commit(&sink, context("job-1"), 1, &committed).await.unwrap();
    let kept = prepare(&sink, context("job-1"), 2, &[(2, "b")]).await.unwrap();
    prepare(&sink, context("job-1"), 3, &[(3, "c"), (4, "d")]).await.unwrap();
    prepare(&sink, context("job-2"), 1, &[(5, "e")]).await.unwrap();
    assert_eq!(warehouse.parquet_files().len(), 5);
    let mut committer = sink.open_committer(context("job-1")).await.unwrap();
    for _ in 0..2 {
        committer.discard_unfinished("job-1", &kept).await.unwrap();
        assert_eq!(warehouse.parquet_files().len(), 3);
    }
    committer.commit(&completed_checkpoint(2), &kept).await.unwrap();
    committer.discard_unfinished("job-1", &[]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a", "2,b"]);
    assert_eq!(warehouse.parquet_files().len(), 3, "what another sink has prepared is there");
}

#[tokio::test]
async fn what_a_killed_job_has_begun_to_write_goes() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let table = warehouse.other().await;
    let data = format!("{}/data", table.metadata().location());
    let (store, folder) = table.files().resolve(&data).unwrap();
    for run in ["job-1", "job-2"] {
        let names = super::file_names::FileNames::new(run, 0);
        for below in ["p=1", "p=2"] {
            let path = folder.clone().join(below).join(names.next_data_file());
            let mut upload = store.put_multipart(&path).await.unwrap();
            upload.put_part(PutPayload::from_static(b"rows")).await.unwrap();
            // Killed, it has no time to remove its file.
            std::mem::forget(upload);
        }
    }
    let data = std::path::PathBuf::from(format!("/{folder}"));
    let left = || {
        let folders = std::fs::read_dir(&data).unwrap().map(|folder| folder.unwrap().path());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum::<usize>()
    };
    assert_eq!(left(), 4);
    let mut committer = sink.open_committer(context("job-1")).await.unwrap();
    committer.discard_unfinished("job-1", &[]).await.unwrap();
    assert_eq!(left(), 2, "what another sink writes is there");
}

#[tokio::test]
async fn two_jobs_that_write_one_table_lose_nothing() {
    let properties = [("commit.retry.min-wait-ms", "1"), ("commit.retry.num-retries", "100")];
    let making = Making { properties: &properties, ..Making::default() };
    let warehouse = Arc::new(Warehouse::new(id_and_name(), making).await);
    let job = |number: i64| {
        let warehouse = Arc::clone(&warehouse);
        async move {
            let sink = warehouse.sink(&[], &[], false).await;
            let id = format!("job-{number}");
            for checkpoint in 1..=5 {
                let row = (number * 10 + checkpoint, "x");
                let prepared = prepare(&sink, context(&id), checkpoint as u64, &[row]).await.unwrap();
                commit(&sink, context(&id), checkpoint as u64, &prepared).await.unwrap();
            }
        }
    };
    tokio::join!(job(1), job(2), job(3));
    let mut expected: Vec<String> =
        (1..=3).flat_map(|job| (1..=5).map(move |n| format!("{},x", job * 10 + n))).collect();
    expected.sort();
    assert_eq!(warehouse.rows().await, expected);
    assert_eq!(warehouse.other().await.metadata().snapshots().len(), 15);
}

#[tokio::test]
async fn of_a_batch_insert_the_last_row_of_a_key_stays_and_of_a_stream_every_row() {
    let twice = [(1, "first"), (2, "second"), (2, "second again"), (1, "last")];
    let warehouse = plain().await;
    insert(&warehouse.sink(&["id"], &[], true).await, false, &twice).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,last", "2,second again"]);
    let files = warehouse.files().await;
    assert_eq!(files[1].content_type(), DataContentType::PositionDeletes);
    assert_eq!((files.len(), files[1].record_count()), (2, 2));
    insert(&warehouse.sink(&["id"], &[], true).await, false, &[(1, "changed")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,changed", "1,last", "2,second again"]);
    let warehouse = plain().await;
    insert(&warehouse.sink(&["id"], &[], false).await, false, &twice).await.unwrap();
    assert_eq!(warehouse.rows().await.len(), 4);
}

#[tokio::test]
async fn a_key_that_comes_twice_is_refused_where_there_are_no_position_deletes() {
    for version in [FormatVersion::V1, FormatVersion::V3] {
        let making = Making { version: Some(version), ..Making::default() };
        let warehouse = Warehouse::new(id_and_name(), making).await;
        let sink = warehouse.sink(&["id"], &[], true).await;
        insert(&sink, false, &[(1, "a"), (2, "b")]).await.unwrap();
        let error = refusal(insert(&sink, false, &[(1, "a"), (1, "b")]).await);
        assert!(error.hint_text().is_some(), "{error}");
        assert_eq!(warehouse.rows().await, ["1,a", "2,b"], "{version}");
    }
}

#[tokio::test]
async fn an_overwrite_replaces_the_partitions_that_it_touches() {
    let making = Making { partition: &[(2, "name", Transform::Identity)], ..Making::default() };
    let warehouse = Warehouse::new(id_and_name(), making).await;
    let sink = warehouse.sink(&[], &[], true).await;
    insert(&sink, false, &[(1, "x"), (2, "x"), (3, "y")]).await.unwrap();
    insert(&sink, true, &[(4, "x")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["3,y", "4,x"]);
    insert(&sink, true, &[]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["3,y", "4,x"]);
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], true).await;
    insert(&sink, false, &[(1, "x"), (2, "x")]).await.unwrap();
    insert(&sink, true, &[(3, "y")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["3,y"]);
    insert(&sink, true, &[]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["3,y"]);
    let sink = warehouse.sink(&[], &[("overwrite-enabled", "true")], true).await;
    insert(&sink, false, &[(4, "z")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["4,z"]);
}

#[tokio::test]
async fn a_batch_insert_changes_metadata_once_and_says_so_as_flink_does() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], true).await;
    let ctx = context("a");
    let prepared = prepare(&sink, ctx.clone(), 1, &[(1, "a")]).await.unwrap();
    let mut committer = sink.open_committer(ctx).await.unwrap();
    committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
    committer.commit(&completed_checkpoint(1), &prepared).await.unwrap();
    committer.forget_commits().await.unwrap();
    let table = warehouse.other().await;
    assert_eq!(table.metadata().metadata_log().len(), 1);
    let summary = &table.metadata().current_snapshot().unwrap().summary().additional_properties;
    assert_eq!(summary["flink.max-committed-checkpoint-id"], i64::MAX.to_string());
}

#[tokio::test]
async fn a_branch_is_written_without_touching_the_main_one() {
    let warehouse = plain().await;
    insert(&warehouse.sink(&[], &[], true).await, false, &[(1, "a")]).await.unwrap();
    insert(&warehouse.sink(&[], &[("branch", "b1")], true).await, false, &[(2, "b")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a"]);
    assert_eq!(warehouse.rows_of("b1").await, ["1,a", "2,b"]);
}

#[tokio::test]
async fn another_sessions_alter_is_followed_or_fails_the_job_by_name() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let mut fields = id_and_name();
    fields.push(optional(3, "new", PrimitiveType::Int));
    warehouse.set_schema(fields).await;
    insert(&sink, false, &[(1, "a")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a,NULL"]);
    let prepared = prepare(&sink, context("a"), 1, &[(2, "b")]).await.unwrap();
    warehouse.set_schema(id_and_name()[..1].to_vec()).await;
    let error = refusal(commit(&sink, context("a"), 1, &prepared).await);
    assert_eq!(error.message(), "column 'name' of Iceberg table 'db.t' was dropped while a job writes it");
    let mut committer = sink.open_committer(context("a")).await.unwrap();
    committer.commit_after_recovery(&completed_checkpoint(1), &prepared).await.unwrap();
    assert_eq!(warehouse.files().await.len(), 2, "rows that were written before are not lost");
}

#[tokio::test]
async fn a_table_that_was_dropped_and_made_anew_is_another_one() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    let prepared = prepare(&sink, context("a"), 1, &[(1, "a")]).await.unwrap();
    let mut committer = sink.open_committer(context("a")).await.unwrap();
    let uuid = TableRequirement::UuidMatch { uuid: warehouse.table.metadata().uuid() };
    let assign = TableUpdate::AssignUuid { uuid: uuid::Uuid::new_v4() };
    let other = warehouse.other().await;
    other.catalog().commit_table(other.ident(), vec![uuid], vec![assign]).await.unwrap();
    assert!(committer.commit(&completed_checkpoint(1), &prepared).await.is_err());
    let error = refusal(sink.open_writer(context("a")).await);
    assert!(error.message().contains("was replaced while it was written"), "{error}");
}

#[tokio::test]
async fn a_checkpoint_knows_its_table_also_where_it_has_prepared_nothing() {
    let warehouse = plain().await;
    let place = async || {
        let committer = warehouse.sink(&[], &[], false).await.open_committer(context("a")).await.unwrap();
        let place = committer.place().unwrap();
        (committer, place)
    };
    let (committer, before) = place().await;
    committer.check_place(&before, 7).unwrap();
    warehouse.alter(vec![TableUpdate::AssignUuid { uuid: uuid::Uuid::new_v4() }]).await;
    let (committer, after) = place().await;
    committer.check_place(&after, 7).unwrap();
    let error = refusal(committer.check_place(&before, 7));
    assert_eq!(error.message(), "Iceberg table 'db.t' is another one than checkpoint 7 was written for");
    assert!(error.hint_text().unwrap().contains("dropped and created anew"));
}

#[tokio::test]
async fn a_store_that_fails_leaves_nothing_visible_and_the_rows_can_be_written_again() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&[], &[], false).await;
    for (operation, fault) in [
        (Operation::Put, Fault::NoSpace),
        (Operation::Put, Fault::PermissionDenied),
        (Operation::Put, Fault::Unreachable),
    ] {
        warehouse.faults.fail_when(operation, ".parquet", fault);
        let error = refusal(prepare(&sink, context("a"), 1, &[(1, "a")]).await);
        assert!(error.message().contains(".parquet"), "{error}");
        assert_eq!(warehouse.rows().await, [""; 0]);
    }
    assert_eq!(warehouse.parquet_files(), [""; 0].map(std::path::PathBuf::from));
    insert(&sink, false, &[(1, "a")]).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a"]);
}

#[tokio::test]
async fn deletes_that_cannot_be_written_leave_no_rows_behind() {
    let warehouse = plain().await;
    let sink = warehouse.sink(&["id"], &[], true).await;
    warehouse.faults.fail_when(Operation::Put, "-deletes.parquet", Fault::NoSpace);
    refusal(insert(&sink, false, &[(1, "a"), (1, "b")]).await);
    assert!(warehouse.parquet_files().is_empty());
}

#[tokio::test]
async fn upserts_are_refused_in_flinks_words_where_they_cannot_be() {
    let on = [("upsert-enabled", "true")];
    let error = refusal(plain().await.try_sink(&[], &on, true).await);
    assert_eq!(error.flink_class(), FlinkClass::ILLEGAL_STATE);
    assert_eq!(
        error.message(),
        "Equality field columns shouldn't be empty when configuring to use UPSERT data stream."
    );
    let making = Making { version: Some(FormatVersion::V1), ..Making::default() };
    let error = refusal(Warehouse::new(id_and_name(), making).await.try_sink(&["id"], &on, true).await);
    assert_eq!(error.message(), "Cannot write delete files in a v1 table");
    assert_eq!(error.flink_class(), FlinkClass::ILLEGAL_ARGUMENT);
    let making = Making {
        partition: &[(2, "name", Transform::Identity)],
        properties: &[("write.upsert.enabled", "true")],
        ..Making::default()
    };
    let error = refusal(Warehouse::new(id_and_name(), making).await.try_sink(&["id"], &[], true).await);
    assert_eq!(
        error.message(),
        "In UPSERT mode, source column 'name' of partition field '1000: name: identity(2)', should be included in equality fields: '[]'"
    );
    assert_eq!(
        error.hint_text().unwrap(),
        "The primary key is (id). Without 'write.upsert.enabled', changes find the rows of their key in whatever partition they are; or let the key have 'name'."
    );
    let sink = plain().await.sink(&["id"], &on, true).await;
    let ctx = WriterContext { overwrite: true, ..writer_context(false) };
    let error = refusal(sink.open_writer(ctx).await);
    assert_eq!(
        error.message(),
        "OVERWRITE mode shouldn't be enable when configuring to use UPSERT data stream."
    );
    let warehouse = plain().await;
    let ctx = WriterContext { overwrite: true, ..writer_context(false) };
    let error = refusal(warehouse.sink(&[], &[], false).await.open_writer(ctx).await);
    assert_eq!(error.message(), "Unbounded data stream doesn't support overwrite operation.");
}

#[tokio::test]
async fn other_formats_and_values_that_do_not_parse_are_refused_before_anything_is_written() {
    let warehouse = plain().await;
    for (option, value, message) in [
        ("write-format", "orc", "Iceberg data files cannot be written as 'orc', only as 'parquet'"),
        (
            "target-file-size-bytes",
            "0",
            "'0' is no value of the table property 'write.target-file-size-bytes'",
        ),
        ("compression-codec", "brotli", "Parquet files cannot be written with codec 'brotli'"),
        ("target-file-size-bytes", "x", "For input string: \"x\""),
    ] {
        assert_eq!(refusal(warehouse.try_sink(&[], &[(option, value)], false).await).message(), message);
    }
}

#[tokio::test]
async fn rows_are_distributed_by_what_tells_their_partition() {
    let by_name = [(2, "name", Transform::Identity), (1, "id_bucket", Transform::Bucket(4))];
    let making = Making { partition: &by_name, ..Making::default() };
    let warehouse = Warehouse::new(id_and_name(), making).await;
    let sink = warehouse.sink(&[], &[], false).await;
    assert_eq!(sink.distribution(&[], ChangelogMode::INSERT_ONLY), [1]);
    let sink = warehouse.sink(&["id", "name"], &[], false).await;
    assert_eq!(sink.distribution(&[0, 1], ChangelogMode::UPSERT), [1]);
    let sink = warehouse.sink(&["id"], &[], false).await;
    assert_eq!(sink.distribution(&[0], ChangelogMode::UPSERT), [0], "a key may move to another partition");
    let sink = warehouse.sink(&[], &[("distribution-mode", "none")], false).await;
    assert_eq!(sink.distribution(&[], ChangelogMode::INSERT_ONLY), [0; 0]);
    assert!(!sink.has_single_writer() && sink.commits_with_checkpoints());
    assert!(warehouse.sink(&[], &[("write-parallelism", "1")], false).await.has_single_writer());
    let sink = warehouse.sink(&[], &[("distribution-mode", "range")], false).await;
    let printed = Arc::new(crate::connector::testing::Printed::default());
    let ctx = WriterContext { output: Arc::clone(&printed) as _, ..writer_context(false) };
    sink.open_writer(ctx).await.unwrap();
    assert!(printed.text().contains("distributed by hash"), "{}", printed.text());
}

#[tokio::test]
async fn without_a_key_every_row_of_a_changelog_is_written_if_that_is_asked_for() {
    let warehouse = plain().await;
    let append = [("lakehead.iceberg.changelog-without-key", "append")];
    let sink = warehouse.sink(&[], &append, false).await;
    assert_eq!(sink.changelog_mode(ChangelogMode::ALL), ChangelogMode::ALL);
    let ctx = WriterContext { mode: ChangelogMode::ALL, ..writer_context(false) };
    let mut writer = sink.open_writer(ctx.clone()).await.unwrap();
    let batch = rows(&[(1, "a"), (1, "a"), (2, "a")]);
    let kinds = [RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter];
    writer.write(ChangelogBatch::with_kinds(batch.rows().clone(), kinds)).await.unwrap();
    let prepared = writer.prepare_commit(1).await.unwrap();
    commit(&sink, ctx, 1, &prepared).await.unwrap();
    assert_eq!(warehouse.rows().await, ["1,a", "1,a", "2,a"]);
}

#[tokio::test]
async fn tables_of_every_format_version_are_appended_to() {
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let making = Making { version: Some(version), ..Making::default() };
        let warehouse = Warehouse::new(id_and_name(), making).await;
        let sink = warehouse.sink(&[], &[], false).await;
        insert(&sink, false, &[(1, "a")]).await.unwrap();
        insert(&sink, false, &[(2, "b")]).await.unwrap();
        assert_eq!(warehouse.rows().await, ["1,a", "2,b"], "{version}");
    }
}
