//! Tables are read wholly, whatever their keys are.

use super::super::testing::{chunks_of, read_all};
use super::super::{SnapshotReader, TableSnapshot};
use crate::connector::postgres::settings::ChunkSettings;
use crate::connector::postgres::testing::TestDatabase;
use crate::error::Result;

/// Checks that a table is read wholly; returns in how many chunks.
async fn reads_all(database: &TestDatabase, table: &str, chunk_rows: u64) -> usize {
    let mut reader = database.reader(table, chunk_rows).await;
    let (rows, chunks) = read_all(&mut reader).await;
    assert_eq!(rows, database.rows(table).await, "{table}");
    assert!(reader.states()[0].is_complete());
    let progress = reader.progress();
    assert_eq!((progress.chunks_done, progress.tables_done), (progress.chunks_total, 1), "{table}");
    assert!(reader.next().await.unwrap().is_none(), "the end stays the end");
    chunks
}

/// Makes a table with a key of a type and some values, reads it in chunks of two rows, and returns the number of chunks.
async fn reads_keys(key_type: &str, values: &str) -> usize {
    let mut chunks = 0;
    TestDatabase::with(async |database| {
        database.run(&format!("CREATE TABLE t (k {key_type} PRIMARY KEY, v text)")).await;
        database
            .run(&format!(
                "INSERT INTO t SELECT k, 'v' FROM unnest(ARRAY[{values}]::{key_type}[]) AS k; ANALYZE t"
            ))
            .await;
        chunks = reads_all(database, "t", 2).await;
        let mut reader = database.reader("t", 2).await;
        read_all(&mut reader).await;
        let kept = serde_json::to_string(reader.states()).unwrap();
        assert_eq!(serde_json::from_str::<Vec<TableSnapshot>>(&kept).unwrap(), reader.states(), "{kept}");
    })
    .await;
    chunks
}

#[tokio::test(flavor = "multi_thread")]
async fn integers_are_cut_evenly_up_to_the_limits_of_their_types() {
    for (key_type, first, last) in [
        ("smallint", i64::from(i16::MIN), i64::from(i16::MAX)),
        ("integer", i64::from(i32::MIN), i64::from(i32::MAX)),
        ("bigint", i64::MIN, i64::MAX),
    ] {
        reads_keys(key_type, &format!("'{first}', '{last}', -1, 0, 1, '{}', '{}'", first + 1, last - 1))
            .await;
    }
    reads_keys("integer", "-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_keys_are_cut_by_counting_rows() {
    reads_keys("numeric", "'-1e40', -2.5, -2.45, 0, 0.001, 1, '1e40', 'NaN', 'Infinity', '-Infinity'").await;
    reads_keys("numeric(10, 2)", "-1.5, 'NaN', 1.5, 7, 8, 9").await;
    reads_keys(
        "uuid",
        "gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid()",
    )
    .await;
    reads_keys(
        "date",
        "'-infinity', '4713-01-01 BC', '0001-01-01', '2024-02-29', '5874897-12-31', 'infinity'",
    )
    .await;
    let moments = "'-infinity', '4713-01-01 BC', '2024-02-29 23:59:59.9', '2024-02-29 23:59:59.95', '294276-12-31 23:59:59.999999', 'infinity'";
    reads_keys("timestamp", moments).await;
    reads_keys("timestamptz", moments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_nobody_has_counted_are_cut_too() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id bigint PRIMARY KEY, v text)").await;
        database.run("INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g").await;
        let chunks = reads_all(database, "t", 100).await;
        assert!((20..=150).contains(&chunks), "{chunks}");
        database.run("CREATE TABLE sparse (id bigint PRIMARY KEY, v text)").await;
        database.run("INSERT INTO sparse SELECT g::bigint << 40, 'x' FROM generate_series(1, 5000) g").await;
        let chunks = reads_all(database, "sparse", 100).await;
        assert!((49..=51).contains(&chunks), "{chunks}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_composite_keys_and_none_at_all_are_read_by_pages() {
    TestDatabase::with(async |database| {
        database
            .run(
                "CREATE TABLE texts (k text COLLATE \"en-x-icu\" PRIMARY KEY, v int); INSERT INTO texts VALUES ('a', 1), ('B', 2), ('c', 3), ('É', 4), ('é', 5), ('e', 6); \
                 CREATE TABLE composite (a int, b int, v text, PRIMARY KEY (a, b)); INSERT INTO composite SELECT g, -g, 'v' FROM generate_series(1, 1000) g; \
                 CREATE TABLE keyless (a int, v text); INSERT INTO keyless SELECT g % 10, 'v' FROM generate_series(1, 1000) g; ALTER TABLE keyless REPLICA IDENTITY FULL; \
                 CREATE TABLE \"Odd \"\"näme\" (\"Kéy \"\"\" int PRIMARY KEY); INSERT INTO \"Odd \"\"näme\" SELECT generate_series(1, 1000); \
                 ANALYZE \"Odd \"\"näme\"",
            )
            .await;
        for table in ["texts", "composite", "keyless"] {
            assert_eq!(reads_all(database, table, 2).await, 1, "{table}: one chunk is the whole table");
        }
        assert!(reads_all(database, "Odd \"näme", 100).await >= 9);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_many_pages_is_one_chunk_that_several_connections_read() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (k text PRIMARY KEY, v text)").await;
        database
            .run("INSERT INTO t SELECT 'k' || g, repeat('x', 1900) FROM generate_series(1, 20000) g")
            .await;
        let mut reader = database.reader("t", 10).await;
        let (rows, chunks) = read_all(&mut reader).await;
        assert_eq!(rows, database.rows("t").await);
        assert_eq!(chunks, 1);
        assert!(matches!(reader.states(), [TableSnapshot::Whole(_)]));
        assert!(reader.progress().chunks_done >= 3, "{:?}", reader.progress());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_tables_end_with_an_empty_batch() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE keyed (id int PRIMARY KEY, v text); CREATE TABLE keyless (v text)").await;
        database.run("CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id)").await;
        database.run("CREATE TABLE parted_text (k text PRIMARY KEY) PARTITION BY LIST (k)").await;
        for table in ["keyed", "keyless", "parted", "parted_text"] {
            assert_eq!(reads_all(database, table, 10).await, 1, "{table}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partitioned_table_is_read_as_one_or_by_its_leaves() {
    TestDatabase::with(async |database| {
        for (table, key) in [("keyed", "id"), ("composite", "id, region")] {
            database
                .run(&format!(
                    "CREATE TABLE {table} (id int NOT NULL, region text NOT NULL, PRIMARY KEY ({key})) PARTITION BY RANGE (id); \
                     CREATE TABLE {table}_low PARTITION OF {table} FOR VALUES FROM (MINVALUE) TO (100); \
                     CREATE TABLE {table}_high (region text NOT NULL, gone int, id int NOT NULL); ALTER TABLE {table}_high DROP COLUMN gone; \
                     ALTER TABLE {table} ATTACH PARTITION {table}_high FOR VALUES FROM (100) TO (MAXVALUE); \
                     INSERT INTO {table} SELECT g, 'r' || g FROM generate_series(-100, 3000) g; ANALYZE {table}"
                ))
                .await;
        }
        assert!(reads_all(database, "keyed", 500).await >= 6);
        assert!(reads_all(database, "keyed_low", 50).await >= 4);
        assert_eq!(reads_all(database, "composite", 500).await, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_inherit_are_tables_of_their_own() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child () INHERITS (parent)")
            .await;
        database.run("INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2)").await;
        let (rows, _) = read_all(&mut database.reader("parent", 10).await).await;
        assert_eq!(rows, ["1"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_column_than_the_key_must_be_told_by_the_log_and_never_be_null() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (k text PRIMARY KEY, n int NOT NULL, o int)").await;
        database
            .run("INSERT INTO t SELECT 'k' || g, g % 100, g FROM generate_series(1, 1000) g; ANALYZE t")
            .await;
        let reader = async |column: &str| -> Result<SnapshotReader> {
            let settings = ChunkSettings { key_column: Some(column.to_owned()), ..chunks_of(100) };
            database.try_reader(&[("t", TableSnapshot::Pending)], &settings).await
        };
        let error = async |column: &str| reader(column).await.map(drop).unwrap_err();
        assert!(error("x").await.message().ends_with("it has no such column"));
        assert!(error("k").await.message().contains("its type is none"));
        assert!(
            error("n")
                .await
                .hint_text()
                .unwrap()
                .contains("ALTER TABLE \"public\".\"t\" REPLICA IDENTITY FULL")
        );
        database.run("ALTER TABLE t REPLICA IDENTITY FULL").await;
        let mut nullable = reader("o").await.unwrap();
        assert!(nullable.next().await.unwrap_err().message().ends_with("it may be NULL"));
        let mut reader = reader("n").await.unwrap();
        let (rows, chunks) = read_all(&mut reader).await;
        assert_eq!(rows, database.rows("t").await);
        assert!(chunks >= 9, "{chunks}");
    })
    .await;
}
