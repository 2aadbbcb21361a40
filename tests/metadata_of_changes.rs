//! Metadata that tells of the change that brought a row: who looks for rows by their values finds them all the same, and who shows
//! changes shows that of each.

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use crate::support::session::Conversation;

/// Changes of `id`, `n`, each with the millisecond at which it was read: 1 is updated, 2 deleted, 3 gets a negative number.
const EVENTS: &str = r#"
{"before":null,"after":{"id":1,"n":10},"op":"c","ts_ms":1000}
{"before":null,"after":{"id":2,"n":20},"op":"c","ts_ms":1000}
{"before":null,"after":{"id":3,"n":30},"op":"c","ts_ms":1000}
{"before":{"id":1,"n":10},"after":{"id":1,"n":11},"op":"u","ts_ms":2000}
{"before":{"id":2,"n":20},"after":null,"op":"d","ts_ms":3000}
{"before":{"id":3,"n":30},"after":{"id":3,"n":-1},"op":"u","ts_ms":4000}
"#;

struct Changes {
    session: Conversation,
    folder: TempDir,
}

impl Changes {
    /// Makes table `t` of the changes, with a key or without, and a catalog `ice`.
    fn new(key: &str) -> Changes {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("events.json"), EVENTS.trim_start()).unwrap();
        let mut session = Conversation::new();
        let place = folder.path().display();
        session.expect(&[
            ("SET 'table.local-time-zone' = 'UTC'", "ok"),
            (
                &format!("CREATE TABLE t (id BIGINT, n INT, ts TIMESTAMP_LTZ(3) METADATA FROM 'ingestion-timestamp'{key}) WITH ('connector' = 'filesystem', 'path' = '{place}/events.json', 'format' = 'debezium-json')"),
                "ok",
            ),
            (&format!("CREATE CATALOG ice WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{place}/lake')"), "ok"),
            ("CREATE DATABASE ice.db", "ok"),
        ]);
        Changes { session, folder }
    }

    /// Returns what a streaming query comes to in the end: rows with seconds in the place of times, in order.
    fn folded(&mut self, query: &str) -> Vec<String> {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for line in self.session.answer(query).lines() {
            let (kind, row) = line.split_once('|').unwrap_or_else(|| panic!("{query}: {line}"));
            *counts.entry(seconds(row)).or_default() += if kind.starts_with('-') { -1 } else { 1 };
        }
        counts.retain(|_, count| *count != 0);
        assert!(counts.values().all(|count| *count == 1), "{query}: {counts:?}");
        counts.into_keys().collect()
    }

    /// Writes a query into a table of the lake and returns what is there then.
    fn written(&mut self, columns: &str, query: &str) -> Vec<String> {
        let table = format!("CREATE TABLE ice.db.written ({columns}) WITH ('format-version' = '2')");
        self.session.expect(&[
            (&table, "ok"),
            (&format!("INSERT INTO ice.db.written {query}"), "job"),
            ("SET 'execution.runtime-mode' = 'batch'", "ok"),
        ]);
        let rows = self.session.answer("SELECT * FROM ice.db.written ORDER BY id, n");
        self.session.expect(&[("DROP TABLE ice.db.written", "ok"), ("RESET 'execution.runtime-mode'", "ok")]);
        rows.lines().map(seconds).collect()
    }
}

fn seconds(row: &str) -> String {
    row.replace("1970-01-01 00:00:0", "").replace(".000000", "").replace(".000", "")
}

const KEY: &str = ", PRIMARY KEY (id) NOT ENFORCED";

#[test]
fn what_looks_for_rows_by_their_values_finds_them() {
    let mut changes = Changes::new(KEY);
    for (query, expected) in [
        ("SELECT COUNT(*), MAX(ts), MIN(ts) FROM t", &["2|4|2"][..]),
        ("SELECT ts, COUNT(*) FROM t GROUP BY ts", &["2|1", "4|1"]),
        ("SELECT DISTINCT ts FROM t", &["2", "4"]),
        ("SELECT COUNT(DISTINCT ts) FROM t", &["2"]),
        ("SELECT a.id, b.ts FROM t AS a JOIN t AS b ON a.n = b.n", &["1|2", "3|4"]),
        ("SELECT id, ts FROM t WHERE id NOT IN (SELECT id FROM t WHERE n < 0)", &["1|2"]),
        ("SELECT id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY ts DESC) AS r FROM t) WHERE r = 1", &["3"]),
        ("SELECT COUNT(*) FROM t WHERE ts > TIMESTAMP '1970-01-01 00:00:01.5'", &["2"]),
        ("SELECT SUM(n + 1) FROM t WHERE ts > TIMESTAMP '1970-01-01 00:00:01.5' AND n > 0", &["12"]),
        (
            "SELECT SUM(n) FROM (SELECT n, ts FROM t WHERE ts > TIMESTAMP '1970-01-01 00:00:01.5') GROUP BY ts",
            &["-1", "11"],
        ),
        (
            "SELECT COUNT(*), MAX(ts) FROM (SELECT id, n, ts FROM t UNION ALL SELECT id, n, ts FROM t) WHERE n > 0",
            &["2|2"],
        ),
        ("SELECT ts FROM t INTERSECT SELECT ts FROM t WHERE n > 0", &["2"]),
    ] {
        assert_eq!(changes.folded(query), expected, "{query}");
    }
}

#[test]
fn tables_follow_whatever_their_key_is() {
    let mut changes = Changes::new(KEY);
    let columns = "id BIGINT, n INT, ts TIMESTAMP_LTZ(6)";
    let (all, some) = ("SELECT id, n, ts FROM t", "SELECT id, n, ts FROM t WHERE n > 0");
    let wider = format!("{columns}, PRIMARY KEY (id, n) NOT ENFORCED");
    let with_time = format!("{columns}, PRIMARY KEY (id, ts) NOT ENFORCED");
    let same = format!("{columns}, PRIMARY KEY (id) NOT ENFORCED");
    for columns in [&wider, &with_time, &same, columns] {
        assert_eq!(changes.written(columns, all), ["1|11|2", "3|-1|4"], "{columns}");
        assert_eq!(changes.written(columns, some), ["1|11|2"], "{columns}");
    }
    drop(changes.folder);
}

#[test]
fn a_filter_on_it_chooses_among_changes() {
    // Of 1 and 3 only the first version is an event of the first second, and what becomes of them is not chosen.
    let mut changes = Changes::new(KEY);
    let first = "SELECT id, n, ts FROM t WHERE ts < TIMESTAMP '1970-01-01 00:00:01.5'";
    let columns = "id BIGINT, n INT, ts TIMESTAMP_LTZ(6), PRIMARY KEY (id, n) NOT ENFORCED";
    assert_eq!(changes.written(columns, first), ["1|10|1", "2|20|1", "3|30|1"]);
    assert_eq!(changes.folded(&format!("SELECT COUNT(*) FROM ({first})")), ["3"]);
}

#[test]
fn a_query_that_shows_changes_shows_that_of_each() {
    let mut changes = Changes::new(KEY);
    let shown = seconds(&changes.session.answer("SELECT id, ts FROM t"));
    assert_eq!(shown.trim_end(), "+I|1|1\n+I|2|1\n+I|3|1\n-U|1|2\n+U|1|2\n-D|2|3\n-U|3|4\n+U|3|4");
}

#[test]
fn without_a_key_nothing_finds_the_rows() {
    let mut changes = Changes::new("");
    let refused = changes.session.answer("SELECT MAX(ts) FROM t");
    assert_eq!(
        refused,
        "TableException: The metadata column(s): 'ts' in cdc source may cause wrong result or error on downstream operators, please consider removing these columns or use a non-cdc source that only has insert messages."
    );
    assert_eq!(changes.folded("SELECT COUNT(*), MAX(n) FROM t"), ["2|11"]);
}
