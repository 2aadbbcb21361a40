//! Reading Iceberg tables beyond what Flink's client was asked: earlier versions, limits, partitions, streaming mode.

use tempfile::TempDir;

use crate::support::session::Conversation;

/// A session with a table `t` of two snapshots in a catalog of its own; the second came with a column.
struct Lake {
    session: Conversation,
    folder: TempDir,
}

impl Lake {
    fn new() -> Lake {
        let folder = TempDir::new().unwrap();
        let mut session = Conversation::new();
        let place = folder.path().display();
        session.expect(&[
            (&format!("CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{place}')"), "ok"),
            ("CREATE DATABASE ice.db", "ok"),
            ("SET 'execution.runtime-mode' = 'batch'", "ok"),
            ("SET 'table.local-time-zone' = 'UTC'", "ok"),
            ("CREATE TABLE ice.db.t (id BIGINT)", "ok"),
            ("INSERT INTO ice.db.t VALUES (1), (2)", "job"),
            ("ALTER TABLE ice.db.t ADD v STRING", "ok"),
            ("INSERT INTO ice.db.t VALUES (3, 'c')", "job"),
        ]);
        Lake { session, folder }
    }

    /// Returns the statement that declares `x` of a table of the catalog with other columns.
    fn declaration(&self, columns: &str, table: &str) -> String {
        let warehouse = self.folder.path().display();
        format!(
            "CREATE TABLE x ({columns}) WITH ('connector' = 'iceberg', 'catalog-name' = 'ice', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{warehouse}', 'catalog-database' = 'db', 'catalog-table' = '{table}')"
        )
    }

    /// Returns the snapshots of `t`, oldest first.
    fn snapshots(&mut self) -> Vec<String> {
        let ids = self.session.answer("SELECT snapshot_id FROM ice.db.`t$snapshots` ORDER BY committed_at");
        ids.lines().map(str::to_owned).collect()
    }

    /// Returns a time just after a snapshot, as a literal of the session's zone.
    fn time_of(&mut self, snapshot: &str) -> String {
        let time = self.session.answer(&format!(
            "SELECT CAST(committed_at AS STRING) FROM ice.db.`t$snapshots` WHERE snapshot_id = {snapshot}"
        ));
        format!("TIMESTAMP '{}'", time.trim())
    }
}

#[test]
fn a_table_is_read_as_of_a_time_with_todays_columns() {
    let mut lake = Lake::new();
    let snapshots = lake.snapshots();
    let first = lake.time_of(&snapshots[0]);
    let session = &mut lake.session;
    let select = format!("SELECT id, v FROM ice.db.t FOR SYSTEM_TIME AS OF {first} AS old ORDER BY old.id");
    session.expect(&[
        (&select, "1|NULL\n2|NULL"),
        ("SELECT COUNT(*) FROM ice.db.t FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP", "3"),
        (
            "SELECT id FROM ice.db.t FOR SYSTEM_TIME AS OF TIMESTAMP '1999-12-31 23:59:59'",
            "IllegalArgumentException: Cannot find a snapshot older than 1999-12-31T23:59:59+00:00",
        ),
        ("SET 'table.local-time-zone' = 'Asia/Tokyo'", "ok"),
        (
            "SELECT id FROM ice.db.t FOR SYSTEM_TIME AS OF TIMESTAMP '2000-01-01 00:00:00'",
            "IllegalArgumentException: Cannot find a snapshot older than 1999-12-31T15:00:00+00:00",
        ),
    ]);
}

#[test]
fn a_view_keeps_the_time_that_it_was_made_with() {
    let mut lake = Lake::new();
    let snapshots = lake.snapshots();
    let first = lake.time_of(&snapshots[0]);
    let view = format!("CREATE VIEW old AS SELECT t.id FROM ice.db.t FOR SYSTEM_TIME AS OF {first}");
    let joined = format!(
        "SELECT n.id FROM ice.db.t AS n LEFT JOIN ice.db.t FOR SYSTEM_TIME AS OF {first} AS o ON n.id = o.id WHERE o.id IS NULL"
    );
    lake.session.expect(&[
        (&view, "ok"),
        ("SELECT COUNT(*) FROM old", "2"),
        (&joined, "3"),
        (
            "SELECT * FROM old FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'",
            "UnsupportedOperationException: 'default_catalog.default_database.old' is no table: FOR SYSTEM_TIME AS OF cannot be applied to it",
        ),
    ]);
}

#[test]
fn times_are_refused_where_they_mean_nothing() {
    let mut lake = Lake::new();
    lake.session.expect(&[
        ("CREATE TABLE g (id INT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')", "ok"),
        (
            "SELECT * FROM g FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'",
            "UnsupportedOperationException: table 'default_catalog.default_database.g' cannot be read as of a time: connector 'datagen' knows only what it holds now",
        ),
        (
            "SELECT * FROM ice.db.t /*+ OPTIONS('as-of-timestamp' = '1') */ FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'",
            "ValidationException: the time of table 'ice.db.t' is said twice: by FOR SYSTEM_TIME AS OF and by option 'as-of-timestamp'",
        ),
        (
            "SELECT * FROM ice.db.t AS a JOIN ice.db.t FOR SYSTEM_TIME AS OF a.ts AS b ON a.id = b.id",
            "TableException: a temporal join (FOR SYSTEM_TIME AS OF a column) is not supported yet",
        ),
        (
            "WITH w AS (SELECT 1 AS x) SELECT * FROM w FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01 00:00:00'",
            "UnsupportedOperationException: 'w' is no table: FOR SYSTEM_TIME AS OF cannot be applied to it",
        ),
    ]);
}

#[test]
fn in_streaming_mode_a_read_ends_by_itself_with_what_was_there() {
    let mut lake = Lake::new();
    let snapshots = lake.snapshots();
    let first = snapshots[0].as_str();
    let at_first = format!("SELECT id FROM ice.db.t /*+ OPTIONS('snapshot-id' = '{first}') */");
    let range = format!("SELECT id, v FROM ice.db.t /*+ OPTIONS('start-snapshot-id' = '{first}') */");
    lake.session.expect(&[
        ("SET 'execution.runtime-mode' = 'streaming'", "ok"),
        ("SELECT v, id FROM ice.db.t", "+I|NULL|1\n+I|NULL|2\n+I|c|3"),
        ("SELECT COUNT(*) FROM ice.db.t WHERE id > 1", "+I|1\n-U|1\n+U|2"),
        (&at_first, "+I|1\n+I|2"),
        (&range, "+I|3|c"),
        ("SELECT id FROM ice.db.t FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP WHERE v = 'c'", "+I|3"),
        ("CREATE TABLE ice.db.copy (id BIGINT, v STRING)", "ok"),
        ("INSERT INTO ice.db.copy SELECT id, v FROM ice.db.t", "job"),
        ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ("SELECT COUNT(*), SUM(id) FROM ice.db.copy", "3|6"),
    ]);
}

#[test]
fn a_column_may_reach_from_the_least_to_the_greatest_number() {
    let mut lake = Lake::new();
    lake.session.expect(&[
        ("CREATE TABLE ice.db.wide (id BIGINT, n INT)", "ok"),
        ("INSERT INTO ice.db.wide VALUES (-9223372036854775808, 1), (9223372036854775807, 2), (5, 3)", "job"),
        ("SELECT n FROM ice.db.wide WHERE id = 5", "3"),
        ("SELECT n FROM ice.db.wide WHERE id < 0 AND n < 3", "1"),
        ("SELECT MIN(id), MAX(id) FROM ice.db.wide", "-9223372036854775808|9223372036854775807"),
        ("SELECT a.n FROM ice.db.wide AS a JOIN ice.db.wide AS b ON a.id = b.id WHERE b.n = 2", "2"),
    ]);
}

#[test]
fn counts_and_bounds_are_answered_without_the_data_files() {
    let mut lake = Lake::new();
    let data = lake.folder.path().join("db/t/data");
    std::fs::remove_dir_all(data).unwrap();
    lake.session.expect(&[
        ("SELECT COUNT(*), MIN(id), MAX(id), COUNT(id) FROM ice.db.t", "3|1|3|3"),
        ("SELECT MAX(id) - MIN(id), COUNT(id) AS c FROM ice.db.t", "2|3"),
        ("SELECT COUNT(*), MIN(id) FROM ice.db.t LIMIT 1000", "3|1"),
    ]);
    let refused = lake.session.rows("SELECT MAX(id + 0) FROM ice.db.t").unwrap_err();
    assert!(refused.starts_with("data file ") && refused.ends_with(" is missing"), "{refused}");
}

#[test]
fn rows_that_a_limit_leaves_are_counted() {
    let mut lake = Lake::new();
    let count = |query: &str| format!("SELECT COUNT(*) FROM ({query}) AS q");
    for (query, expected) in [
        ("SELECT id FROM ice.db.t LIMIT 10", "3"),
        ("SELECT id FROM ice.db.t LIMIT 2 OFFSET 2", "1"),
        ("SELECT id FROM ice.db.t WHERE id <> 9 LIMIT 2 OFFSET 1", "2"),
        ("SELECT id FROM ice.db.t WHERE id <> 9 OFFSET 1", "2"),
        ("SELECT id FROM ice.db.t WHERE id <> 9 ORDER BY v LIMIT 1 OFFSET 2", "1"),
        ("SELECT a FROM (VALUES (1), (2), (3), (4)) AS v (a) WHERE a <> 7 LIMIT 2 OFFSET 1", "2"),
    ] {
        lake.session.expect(&[(&count(query), expected)]);
    }
}

#[test]
fn a_table_that_is_declared_coarser_has_times_that_are_rounded_down() {
    let mut lake = Lake::new();
    let declaration = lake.declaration("id INT, ts TIMESTAMP(3)", "u");
    lake.session.expect(&[
        ("CREATE TABLE ice.db.u (id INT, ts TIMESTAMP(6))", "ok"),
        (
            "INSERT INTO ice.db.u VALUES (1, TIMESTAMP '1969-12-31 23:59:59.999500'), (2, TIMESTAMP '1969-12-31 23:59:58.000001'), (3, TIMESTAMP '1970-01-01 00:00:00.000999')",
            "job",
        ),
        (
            &declaration,
            "ok",
        ),
        (
            "SELECT id, ts FROM x ORDER BY id",
            "1|1969-12-31 23:59:59.999\n2|1969-12-31 23:59:58.000\n3|1970-01-01 00:00:00.000",
        ),
        ("SELECT COUNT(*) FROM x WHERE ts < TIMESTAMP '1970-01-01 00:00:00'", "2"),
        ("SELECT MIN(ts), MAX(ts) FROM x", "1969-12-31 23:59:58.000|1970-01-01 00:00:00.000"),
    ]);
}

#[test]
fn a_value_that_a_declaration_has_no_room_for_is_named() {
    let mut lake = Lake::new();
    let declaration = lake.declaration("i SMALLINT", "n");
    lake.session.expect(&[
        ("CREATE TABLE ice.db.n (i INT)", "ok"),
        ("INSERT INTO ice.db.n VALUES (1), (99999)", "job"),
        (&declaration, "ok"),
        ("SELECT i FROM x", "IOException: a value of column 'i' is too large for SMALLINT"),
        ("SELECT i FROM x WHERE i < 5", "IOException: a value of column 'i' is too large for SMALLINT"),
    ]);
}

#[test]
fn the_least_numbers_are_found_in_partitions_that_have_overflown() {
    let mut lake = Lake::new();
    for (column, least) in [("INT", i64::from(i32::MIN)), ("BIGINT", i64::MIN)] {
        let (first, second) = (least + 3, least + 9);
        lake.session.expect(&[
            (&format!("CREATE TABLE ice.db.p{column} (i {column}) PARTITIONED BY (truncate(10, i))"), "ok"),
            (&format!("INSERT INTO ice.db.p{column} VALUES ({first}), ({second}), (-5), (5)"), "job"),
            (&format!("SELECT i FROM ice.db.p{column} WHERE i = {first}"), &first.to_string()),
            (&format!("SELECT i FROM ice.db.p{column} WHERE i < {}", least + 8), &first.to_string()),
            (&format!("SELECT COUNT(*) FROM ice.db.p{column} WHERE i <= -5"), "3"),
            (&format!("SELECT COUNT(*) FROM ice.db.p{column} WHERE i > {first}"), "3"),
            (&format!("SELECT i FROM ice.db.p{column} WHERE i > 0"), "5"),
        ]);
    }
    let first = i64::from(i32::MIN) + 3;
    lake.session.expect(&[
        ("ALTER TABLE ice.db.pINT MODIFY i BIGINT", "ok"),
        (&format!("SELECT i FROM ice.db.pINT WHERE i = {first}"), &first.to_string()),
        ("SELECT COUNT(*) FROM ice.db.pINT WHERE i < 0", "3"),
    ]);
}

#[test]
fn limits_and_typing_errors_of_options_are_seen() {
    let mut lake = Lake::new();
    lake.session.expect(&[
        ("SELECT COUNT(*) FROM ice.db.t /*+ OPTIONS('limit' = '2') */", "2"),
        ("SET 'connector.iceberg.limit' = '1'", "ok"),
        ("SELECT COUNT(*) FROM ice.db.t", "1"),
        ("RESET 'connector.iceberg.limit'", "ok"),
        (
            "SELECT id FROM ice.db.t /*+ OPTIONS('snapshot_id' = '1') */",
            "ValidationException: table 'ice.db.t' has no option 'snapshot_id'",
        ),
        (
            "SELECT id FROM ice.db.t /*+ OPTIONS('streaming' = 'true') */",
            "ValidationException: Querying an unbounded table 'ice.db.t' in batch mode is not allowed. The table source is unbounded.",
        ),
    ]);
}

#[test]
fn partitions_are_listed_by_their_values() {
    let mut lake = Lake::new();
    lake.session.expect(&[
        ("CREATE TABLE ice.db.p (id INT, d DATE, s STRING) PARTITIONED BY (d, s)", "ok"),
        ("SHOW PARTITIONS ice.db.p", "empty"),
        (
            "INSERT INTO ice.db.p VALUES (1, DATE '2026-01-02', 'b'), (2, DATE '2026-01-01', 'z'), (3, DATE '2026-01-02', 'a'), (4, NULL, 'a')",
            "job",
        ),
        (
            "SHOW PARTITIONS ice.db.p",
            "d=null/s=a\nd=2026-01-01/s=z\nd=2026-01-02/s=a\nd=2026-01-02/s=b",
        ),
        ("SHOW PARTITIONS ice.db.p PARTITION (d = DATE '2026-01-02')", "d=2026-01-02/s=a\nd=2026-01-02/s=b"),
        ("SHOW PARTITIONS ice.db.p PARTITION (d = '2026-01-02', s = 'a')", "d=2026-01-02/s=a"),
        ("SHOW PARTITIONS ice.db.p PARTITION (d = NULL)", "d=null/s=a"),
        (
            "SHOW PARTITIONS ice.db.p PARTITION (id = 1)",
            "ValidationException: table 'ice.db.p' has no partition key 'id'",
        ),
        (
            "SHOW PARTITIONS ice.db.t",
            "TableNotPartitionedException: Table db.t in catalog ice is not partitioned.",
        ),
    ]);
}

#[test]
fn metadata_tables_join_like_any_table_and_are_not_listed() {
    let mut lake = Lake::new();
    lake.session.expect(&[
        ("SHOW TABLES FROM ice.db", "t"),
        (
            "SELECT s.operation, COUNT(f.file_path) FROM ice.db.`t$snapshots` AS s JOIN ice.db.`t$entries` AS e ON e.snapshot_id = s.snapshot_id JOIN ice.db.`T$FILES` AS f ON f.file_path = e.data_file.file_path GROUP BY s.operation",
            "SqlValidatorException: Object 'T$FILES' not found",
        ),
        (
            "SELECT s.operation, COUNT(f.file_path) FROM ice.db.`t$snapshots` AS s JOIN ice.db.`t$entries` AS e ON e.snapshot_id = s.snapshot_id JOIN ice.db.`t$FILES` AS f ON f.file_path = e.data_file.file_path GROUP BY s.operation",
            "append|2",
        ),
        ("SELECT readable_metrics.id.upper_bound, record_count FROM ice.db.`t$files` ORDER BY 1", "2|2\n3|1"),
        ("ALTER TABLE ice.db.`t$files` SET ('a' = 'b')", "UnsupportedOperationException: 't$files' is a metadata table: it can only be read"),
    ]);
}
