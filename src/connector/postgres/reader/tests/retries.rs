//! What is tried again, and from where.

use super::reading_job::{ANEW, ReadingJob, Start, create, read, wait_streaming};
use crate::connector::postgres::testing::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_has_met_its_server_goes_on_trying_though_nothing_has_come() {
    TestDatabase::with(async |database| {
        create(database, "t", 1).await;
        // A job that has never met its server would give up at once.
        let options = [("scan.startup.mode", "latest-offset"), ("connect.max-retries", "0")];
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        wait_streaming(database).await;
        job.quiet().await;
        database
            .run(&format!(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}'",
                database.name
            ))
            .await;
        job.said("It is tried again until it works").await;
        wait_streaming(database).await;
        database.run("INSERT INTO t VALUES (2, 2)").await;
        assert_eq!(job.rows(1).await, read([2]));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_tried_again_begins_with_a_slot_of_its_own() {
    TestDatabase::with(async |database| {
        create(database, "t", 3).await;
        let role = database.role("REPLICATION", "x").await;
        let user = &role.settings().user;
        database.run(&format!("GRANT SELECT ON t TO {user}; CREATE PUBLICATION dbz_publication FOR TABLE t")).await;
        let options = [("username", user.as_str()), ("password", "x"), ("connect.max-retries", "5")];
        // The slot waits for this, so that it is known when it is about to be made.
        let open = database.connect().await;
        open.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
        let mut job = ReadingJob::start(database, Start { options: &options, is_insert: false, ..ANEW });
        let making = format!("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%' AND usename = '{user}'");
        database.wait_for(&making, "1").await;
        // No session for the snapshot is let in.
        database.run(&format!("ALTER ROLE {user} CONNECTION LIMIT 1")).await;
        open.batch_execute("COMMIT").await.unwrap();
        database.wait_for(&format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{user}'"), "0").await;
        database.run(&format!("ALTER ROLE {user} CONNECTION LIMIT -1")).await;
        assert_eq!(job.rows(3).await, read(1..=3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    TestDatabase::with(async |database| {
        create(database, "t", 1).await;
        // Connections are made, and how large the table is does not come.
        database.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").await;
        let options = [("connect.max-retries", "0")];
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        let error = job.failure().await;
        assert!(error.message().ends_with(": looking at its tables: no answer in 2 s"), "{error}");
        database.run("ROLLBACK").await;
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        assert_eq!(job.rows(1).await, read([1]));
    })
    .await;
}
