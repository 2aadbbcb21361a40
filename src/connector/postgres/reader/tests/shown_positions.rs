//! What DESCRIBE JOB shows of positions.

use super::reading_job::{ANEW, ReadingJob, Start, create, read};
use crate::connector::postgres::testing::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shown_as_checkpointed_before_all_is_copied() {
    TestDatabase::with(async |database| {
        create(database, "t", 9).await;
        let options = [("scan.incremental.snapshot.chunk.size", "2")];
        let mut job = ReadingJob::start(database, Start { options: &options, ..ANEW });
        while job.rows.is_empty() {
            job.boundary().await;
        }
        assert!(job.rows.len() < 9, "{:?}", job.rows);
        assert_eq!(job.checkpoint("checkpointed lsn").await, None);
        assert_eq!(job.rows(9).await, read(1..=9));
        database.run("INSERT INTO t VALUES (10, 10)").await;
        assert_eq!(job.rows(10).await.len(), 10);
        assert!(job.checkpoint("checkpointed lsn").await.is_some());
    })
    .await;
}
