//! What jobs leave behind that fail or are cancelled: no file that no snapshot names, and of a statement set all tables or none.

use std::path::PathBuf;

use super::recovery_tests::{Place, Recovering, block_on};
use crate::runtime::StopMode;

const TABLES: &str = "
SET 'table.dml-sync' = 'true';
CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file:{root}/warehouse');
CREATE DATABASE lake.db;
CREATE TABLE lake.db.a (id INT);
CREATE TABLE lake.db.b (id INT);
";

/// Lets every commit to a table fail, after its data was written.
const NO_COMMITS: &str = "ALTER TABLE lake.db.b SET ('commit.retry.num-retries' = 'many');";

async fn session(place: &Place, mode: &str) -> Recovering {
    let mut session = place.session("unfinished");
    session.run(TABLES).await.unwrap();
    session.run(&format!("SET 'execution.runtime-mode' = '{mode}';")).await.unwrap();
    session
}

fn data_files(place: &Place, table: &str) -> Vec<PathBuf> {
    place.files_below(&format!("warehouse/db/{table}"), "parquet")
}

fn snapshots(place: &Place, table: &str) -> usize {
    let lists = place.files_below(&format!("warehouse/db/{table}/metadata"), "avro");
    lists.iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("snap-")).count()
}

#[test]
fn an_insert_whose_commit_fails_leaves_no_file() {
    for mode in ["batch", "streaming"] {
        let place = Place::new();
        block_on(async {
            let mut session = session(&place, mode).await;
            session.run(NO_COMMITS).await.unwrap();
            let error = session.run("INSERT INTO lake.db.b VALUES (1), (2);").await.unwrap_err();
            assert!(error.message().contains("commit.retry.num-retries"), "{error}");
            assert!(data_files(&place, "b").is_empty(), "{mode}: {:?}", data_files(&place, "b"));
        });
    }
}

#[test]
fn of_a_statement_set_whose_second_sink_fails_nothing_is_committed() {
    let place = Place::new();
    block_on(async {
        let mut session = session(&place, "batch").await;
        place.write("in/bad.csv", "1\nno number\n");
        session
            .run("CREATE TABLE bad (id INT) WITH ('connector' = 'filesystem', 'path' = '{root}/in', 'format' = 'csv');")
            .await
            .unwrap();
        let set = "EXECUTE STATEMENT SET BEGIN
            INSERT INTO lake.db.a VALUES (1); INSERT INTO lake.db.b SELECT id FROM bad; END;";
        session.run(set).await.unwrap_err();
        assert_eq!((snapshots(&place, "a"), snapshots(&place, "b")), (0, 0));
        assert!(data_files(&place, "a").is_empty() && data_files(&place, "b").is_empty());
    });
}

#[test]
fn of_a_statement_set_nothing_is_committed_after_a_commit_that_has_failed() {
    let place = Place::new();
    block_on(async {
        let mut session = session(&place, "batch").await;
        session.run(NO_COMMITS).await.unwrap();
        let set = "EXECUTE STATEMENT SET BEGIN
            INSERT INTO lake.db.b VALUES (1); INSERT INTO lake.db.a VALUES (1); END;";
        session.run(set).await.unwrap_err();
        assert_eq!((snapshots(&place, "a"), snapshots(&place, "b")), (0, 0));
        assert!(data_files(&place, "a").is_empty() && data_files(&place, "b").is_empty());
    });
}

#[test]
fn a_cancelled_streaming_job_leaves_no_file_that_no_snapshot_names() {
    let place = Place::new();
    block_on(async {
        let mut session = session(&place, "streaming").await;
        session
            .run(
                "SET 'table.dml-sync' = 'false';
                 ALTER TABLE lake.db.a SET ('write.target-file-size-bytes' = '1');
                 CREATE TABLE numbers (id INT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000');
                 INSERT INTO lake.db.a SELECT id FROM (VALUES (1), (2)) AS t (id);",
            )
            .await
            .unwrap();
        session.session.finish_jobs().await.unwrap();
        let committed = data_files(&place, "a");
        assert_eq!(committed.len(), 1);
        let job = session.start("INSERT INTO lake.db.a SELECT id FROM numbers;").await;
        while data_files(&place, "a").len() < 3 {
            tokio::task::yield_now().await;
        }
        job.stop(StopMode::Cancel).await.unwrap();
        assert_eq!(data_files(&place, "a"), committed);
    });
}

#[test]
fn the_keys_of_a_batch_insert_count_against_the_budget_of_state() {
    let place = Place::new();
    block_on(async {
        let mut session = session(&place, "batch").await;
        session
            .run(
                "CREATE TABLE lake.db.k (id BIGINT, PRIMARY KEY (id) NOT ENFORCED);
                 CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen',
                   'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '200000', 'number-of-rows' = '200000');
                 SET 'lakehead.state.memory-budget' = '1 mb';",
            )
            .await
            .unwrap();
        let error = session.run("INSERT INTO lake.db.k SELECT id FROM numbers;").await.unwrap_err();
        assert!(error.message().starts_with("the keys that a sink has to remember take"), "{error}");
        assert!(data_files(&place, "k").is_empty());
    });
}
