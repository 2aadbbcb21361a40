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
