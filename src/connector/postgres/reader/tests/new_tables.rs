//! Tables that are read from their beginning by jobs that are not at theirs.

use tokio::time::timeout;

use super::reading_job::{ANEW, NOT_TO_COME, ReadingJob, Start, create, read, wait_streaming};
use crate::connector::postgres::testing::TestDatabase;
use crate::options::JobResume;

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_comes_later_is_read_when_transactions_that_had_begun_before_have_ended() {
    TestDatabase::with(async |database| {
        let options = [("scan.newly-added-table.enabled", "true")];
        create(database, "t1", 1).await;
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        assert_eq!(job.rows(1).await, read([1]));
        let position = job.position.clone();
        job.end(database).await;

        create(database, "t2", 2).await;
        let open = database.connect().await;
        open.batch_execute("BEGIN; INSERT INTO t2 VALUES (3, 3)").await.unwrap();
        let mut job =
            ReadingJob::start(database, Start { options: &options, position: Some(&position), ..ANEW });
        // What the open transaction has written is not published, as its table was not when that was done.
        database.wait_for("SELECT count(*) FROM pg_publication_tables WHERE tablename = 't2'", "1").await;
        let early = timeout(NOT_TO_COME, job.rows(1)).await;
        assert!(early.is_err(), "{early:?}");
        open.batch_execute("COMMIT").await.unwrap();
        assert_eq!(job.rows(3).await, read([1, 2, 3]));
        // Servers before these went on to take the table for one that is not published.
        let version = database.version().await;
        let mended = [(14, 18), (15, 13), (16, 9), (17, 5)];
        if mended.iter().any(|(major, minor)| version / 10_000 == *major && version % 10_000 < *minor) {
            return;
        }
        database.run("INSERT INTO t2 VALUES (4, 4)").await;
        assert_eq!(job.rows(4).await, read([1, 2, 3, 4]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_comes_later_is_read_to_its_end_whatever_comes_between() {
    TestDatabase::with(async |database| {
        let options = [
            ("scan.newly-added-table.enabled", "true"),
            ("scan.startup.mode", "latest-offset"),
            ("scan.incremental.snapshot.chunk.size", "2"),
        ];
        create(database, "t1", 1).await;
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        // In the stream, so that there is something to go on from.
        wait_streaming(database).await;
        database.run("INSERT INTO t1 VALUES (2, 2)").await;
        assert_eq!(job.rows(1).await, read([2]));
        let position = job.position.clone();
        job.end(database).await;

        create(database, "t2", 9).await;
        let start = |position| Start { options: &options, position: Some(position), ..ANEW };
        let mut job = ReadingJob::start(database, start(&position));
        let position = job.boundary().await;
        let mut rows = job.rows.clone();
        assert!(rows.len() < 9, "the first boundary is in the midst of the table: {rows:?}");
        job.end(database).await;

        let mut job = ReadingJob::start(database, start(&position));
        rows.extend(job.rows(9 - rows.len()).await);
        rows.sort();
        assert_eq!(rows, read(1..=9));
        database.run("UPDATE t2 SET n = 0 WHERE id = 9").await;
        job.rows.clear();
        assert_eq!(job.rows(1).await, ["+U 9 0"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_replaced_by_what_tables_hold_in_every_mode() {
    for mode in ["initial", "latest-offset", "committed-offset"] {
        TestDatabase::with(async |database| {
            create(database, "t", 3).await;
            let options = [("scan.startup.mode", mode)];
            let start = Start { options: &options, resume: JobResume::Resnapshot, ..ANEW };
            let mut job = ReadingJob::start(database, start);
            assert_eq!(job.rows(3).await, read(1..=3), "{mode}");
            database.run("INSERT INTO t VALUES (4, 4)").await;
            assert_eq!(job.rows(4).await, read(1..=4), "{mode}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_declared_otherwise_is_not_said_to_have_another_name() {
    TestDatabase::with(async |database| {
        create(database, "t1", 1).await;
        create(database, "t2", 1).await;
        let mut job = ReadingJob::start(database, ANEW);
        job.rows(2).await;
        let position = job.position.clone();
        job.end(database).await;
        let options = [("table-name", "t2")];
        let start = Start { options: &options, position: Some(&position), ..ANEW };
        let mut job = ReadingJob::start(database, start);
        job.said("any more, as that is declared now").await;
        let told = job.told();
        assert!(
            told.contains("Table public.t1 is not matched by") && !told.contains("is public.t1 now"),
            "{told}"
        );
    })
    .await;
}
