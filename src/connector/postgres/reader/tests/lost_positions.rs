//! Jobs that are to go on although what comes next is lost.

use super::super::position::{ReaderPosition, StreamPosition};
use super::reading_job::{ANEW, ReadingJob, Start, create, read, wait_streaming};
use crate::connector::SourcePosition;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::testing::TestDatabase;
use crate::connector::postgres::wal_stream::PgWalStream;
use crate::error::ErrorKind;
use crate::options::JobResume;

/// Runs a job to a position behind what its table holds.
async fn ended(database: &TestDatabase, options: &[(&str, &str)]) -> SourcePosition {
    let mut job = ReadingJob::start(database, Start { options, ..ANEW });
    wait_streaming(database).await;
    database.run("INSERT INTO t VALUES (100, 100)").await;
    while !job.rows.contains(&"+I 100 100".to_owned()) {
        job.boundary().await;
    }
    let position = job.position.clone();
    job.end(database).await;
    position
}

/// Checks that a job goes on from now.
async fn check_skips(database: &TestDatabase, options: &[(&str, &str)], position: &SourcePosition) {
    database.run("INSERT INTO t VALUES (101, 101)").await;
    let start = Start { options, resume: JobResume::Skip, position: Some(position), ..ANEW };
    let mut job = ReadingJob::start(database, start);
    job.said("is lost stays missing").await;
    wait_streaming(database).await;
    database.run("INSERT INTO t VALUES (102, 102)").await;
    assert_eq!(job.rows(1).await, read([102]));
    job.end(database).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_goes_on_without_its_slot_makes_one_even_where_one_had_to_be_there() {
    TestDatabase::with(async |database| {
        let options = [("scan.startup.mode", "committed-offset")];
        let name = &database.name;
        create(database, "t", 1).await;
        database.run("CREATE PUBLICATION dbz_publication FOR TABLE t").await;
        database.run(&format!("SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")).await;
        let position = ended(database, &options).await;
        database.run(&format!("SELECT pg_drop_replication_slot('{name}')")).await;
        check_skips(database, &options, &position).await;
    })
    .await;
}

/// Makes another position of one.
type Change = fn(&mut StreamPosition);

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_on_with_another_server_if_it_is_told_to() {
    TestDatabase::with(async |database| {
        create(database, "t", 1).await;
        let changes: [(Change, &str); 3] = [
            (|stream| stream.system = "7".to_owned(), "is another server"),
            (|stream| stream.lsn = Lsn(u64::MAX / 2), "has lost transactions"),
            (|stream| stream.timeline = 99, "timeline 99, which is not a part of it"),
        ];
        for (change, said) in changes {
            let mut position = ReaderPosition::parse(&ended(database, &[]).await).unwrap();
            change(position.stream.as_mut().unwrap());
            let position = position.write().unwrap();
            let mut job = ReadingJob::start(database, Start { position: Some(&position), ..ANEW });
            let error = job.failure().await;
            assert_eq!(error.kind(), ErrorKind::Rejected);
            assert!(error.message().contains(said), "{error}");
            assert!(error.hint_text().unwrap().contains("'skip'"));
            job.end(database).await;
            check_skips(database, &[], &position).await;
            database.run("DELETE FROM t WHERE id >= 100").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_not_given_up_before_its_slot_is_dropped() {
    TestDatabase::with(async |database| {
        create(database, "t", 1).await;
        let options = [("connect.max-retries", "0")];
        let position = ended(database, &options).await;
        // Ahead of the job, and in use.
        let advance =
            format!("SELECT pg_replication_slot_advance('{}', pg_current_wal_insert_lsn())", database.name);
        database.run("INSERT INTO t VALUES (99, 99)").await;
        database.run(&advance).await;
        let other =
            PgWalStream::start(&database.server, &database.name, "dbz_publication", Lsn(0)).await.unwrap();
        let start = Start { options: &options, resume: JobResume::Skip, position: Some(&position), ..ANEW };
        let mut job = ReadingJob::start(database, start);
        job.said("is active for PID").await;
        drop(other);
        job.said("is lost stays missing").await;
        wait_streaming(database).await;
        database.run("INSERT INTO t VALUES (102, 102)").await;
        job.rows(1).await;
        assert!(job.rows.contains(&"+I 102 102".to_owned()), "{:?}", job.rows);
    })
    .await;
}
