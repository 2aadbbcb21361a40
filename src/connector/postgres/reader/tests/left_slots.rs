//! What becomes of the slots of jobs that fail.

use super::reading_job::{ANEW, ReadingJob, wait_streaming};
use crate::connector::postgres::testing::TestDatabase;

/// Makes a table with a value that cannot be read as it is declared.
async fn create(database: &TestDatabase, value: &str) {
    database
        .run(&format!("CREATE TABLE t (id bigint PRIMARY KEY, n text); INSERT INTO t VALUES (1, '{value}')"))
        .await;
}

/// Returns how many slots of the job there are.
async fn slots(database: &TestDatabase) -> String {
    let query = format!("SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{}'", database.name);
    database.value(&query).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_no_checkpoint_can_name_goes_with_the_job_that_made_it_and_failed() {
    TestDatabase::with(async |database| {
        create(database, "x").await;
        let mut job = ReadingJob::start(database, ANEW);
        job.failure().await;
        assert_eq!(slots(database).await, "0", "{}", job.told());
        assert!(job.told().contains("is dropped again"), "{}", job.told());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_stays_behind_a_failed_job_is_named_unless_there_is_a_checkpoint() {
    TestDatabase::with(async |database| {
        for has_checkpoint in [false, true] {
            create(database, "1").await;
            let mut job = ReadingJob::start(database, ANEW);
            job.rows(1).await;
            if has_checkpoint {
                job.checkpoint("slot").await;
            }
            wait_streaming(database).await;
            database.run("INSERT INTO t VALUES (2, 'x')").await;
            job.failure().await;
            assert_eq!(slots(database).await, "1");
            let statement = format!("SELECT pg_drop_replication_slot('{}');", database.name);
            assert_eq!(job.told().contains(&statement), !has_checkpoint, "{}", job.told());
            job.end(database).await;
            database.run(&format!("DROP TABLE t; {statement}")).await;
        }
    })
    .await;
}
