//! Queries that the planner beneath would answer wrongly, or not at all, if it were left alone: each in batch and as a stream, unless it
//! is of one kind by nature.

use lakehead::error::Result;

use crate::support::session::changelog;

/// Runs a script and returns the rows that its last query comes to, sorted.
fn rows(mode: &str, script: &str) -> Result<Vec<String>> {
    let mut rows: Vec<String> = Vec::new();
    for change in changelog(&format!("SET 'execution.runtime-mode' = '{mode}'; {script}"))? {
        let (kind, row) = change.split_once(' ').unwrap();
        if kind.starts_with('+') {
            rows.push(row.to_owned());
        } else {
            let at = rows.iter().position(|other| other == row);
            rows.remove(at.unwrap_or_else(|| panic!("{row} is taken back, and is not there")));
        }
    }
    rows.sort();
    Ok(rows)
}

#[track_caller]
fn expect(script: &str, expected: &[&str]) {
    for mode in ["batch", "streaming"] {
        assert_eq!(rows(mode, script).unwrap(), expected, "{mode}: {script}");
    }
}

#[track_caller]
fn expect_in_batch(script: &str, expected: &[&str]) {
    assert_eq!(rows("batch", script).unwrap(), expected, "{script}");
}

/// Makes a table of rows in JSON.
fn table(name: &str, columns: &str, rows: &str) -> String {
    format!("CREATE TABLE {name} ({columns}) WITH ('connector' = 'values', 'rows' = '{rows}'); ")
}

#[test]
fn a_group_stays_that_stands_behind_a_computed_one() {
    let tables = table("a", "x INT, y INT", "[[5, 10], [5, 20]]");
    let sums = "(SELECT y, SUM(x) AS c FROM a GROUP BY y) AS q";
    expect(
        &format!("{tables} SELECT q.c + 1 AS e, COUNT(*) FROM {sums} GROUP BY q.c + 1, q.y"),
        &["6 1", "6 1"],
    );
    expect(
        &format!("{tables} SELECT e FROM (SELECT DISTINCT q.c + 1 AS e, q.y FROM {sums}) AS d"),
        &["6", "6"],
    );
    expect(&format!("{tables} SELECT DISTINCT q.c + 1, q.c FROM {sums}"), &["6 5"]);
}

#[test]
fn nulls_are_among_the_first_of_groups() {
    let tables = table("t", "id INT, x INT, s STRING", r#"[[1,3,"b"],[2,null,null],[3,1,"a"],[4,2,"a"]]"#);
    let query = |query: &str| format!("{tables} {query}");
    expect(&query("SELECT DISTINCT x FROM t ORDER BY x LIMIT 2"), &["1", "NULL"]);
    expect(&query("SELECT id, MIN(x) AS m FROM t GROUP BY id ORDER BY m LIMIT 2"), &["2 NULL", "3 1"]);
    expect(
        &query("SELECT s, MAX(x) AS m FROM t GROUP BY s ORDER BY m DESC LIMIT 10"),
        &["NULL NULL", "a 2", "b 3"],
    );
    expect(&query("SELECT COUNT(*) FROM (SELECT DISTINCT x FROM t ORDER BY x LIMIT 10)"), &["4"]);
}

#[test]
fn the_smallest_and_the_largest_float_of_a_group_may_be_infinite_or_no_number() {
    for float in ["DOUBLE", "FLOAT"] {
        let rows = r#"[[1,"Infinity"],[2,"-Infinity"],[3,"NaN"],[3,-1.0],[4,-1.0],[4,"NaN"],[5,null]]"#;
        let query =
            table("t", &format!("id INT, d {float}"), rows) + "SELECT id, MIN(d), MAX(d) FROM t GROUP BY id";
        let expected =
            ["1 Infinity Infinity", "2 -Infinity -Infinity", "3 -1.0 NaN", "4 -1.0 NaN", "5 NULL NULL"];
        expect(&query, &expected);
    }
}

#[test]
fn an_aggregation_without_groups_has_a_row_where_a_correlated_query_finds_none() {
    let tables = table("a", "x INT, y INT", "[[1, 1]]") + &table("b", "k INT, z INT", "[[1, 1], [2, 2]]");
    let query = |query: &str| format!("{tables} {query}");
    let of = "FROM a WHERE a.y = b.z";
    expect_in_batch(&query(&format!("SELECT k, (SELECT COUNT(*) + 10 {of}) FROM b")), &["1 11", "2 10"]);
    expect(&query(&format!("SELECT k FROM b WHERE EXISTS (SELECT COUNT(*) {of})")), &["1", "2"]);
    expect(&query(&format!("SELECT k FROM b WHERE NOT EXISTS (SELECT MAX(x) {of})")), &[]);
    for refused in [
        format!("SELECT k, (SELECT COUNT(*) {of} HAVING COUNT(*) = 0) FROM b"),
        format!("SELECT k, (SELECT MAX(c) FROM (SELECT COUNT(*) AS c {of}) AS s) FROM b"),
        format!("SELECT k FROM b WHERE EXISTS (SELECT COUNT(*) {of} HAVING COUNT(*) = 0)"),
        format!("SELECT k FROM b WHERE 0 IN (SELECT COUNT(*) {of})"),
        format!("SELECT k FROM b WHERE k NOT IN (SELECT MAX(x) {of})"),
    ] {
        for mode in ["batch", "streaming"] {
            let error = rows(mode, &query(&refused)).unwrap_err();
            assert!(
                error.message().contains("a correlated subquery whose aggregation"),
                "{refused}: {error}"
            );
            assert!(error.hint_text().unwrap().contains("(SELECT COUNT(*)"), "{error:?}");
        }
    }
    // What does not depend on the query around it has its row in any case.
    expect(&query("SELECT k FROM b WHERE EXISTS (SELECT MAX(x) FROM a HAVING COUNT(*) = 1)"), &["1", "2"]);
    expect(&query("SELECT k FROM b WHERE k IN (SELECT COUNT(*) FROM a)"), &["1"]);
}

#[test]
fn updates_of_a_side_that_is_only_counted_go_through_a_join() {
    let updated = "CREATE TABLE u (x INT) WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D',
        'rows' = '[[\"+I\", 1], [\"-U\", 1], [\"+U\", 2]]'); SET 'table.exec.mini-batch.enabled' = 'true';
        SET 'table.exec.mini-batch.allow-latency' = '1 s'; SET 'table.exec.mini-batch.size' = '3'; ";
    let tables = table("t", "id INT", "[[1]]") + updated;
    let folded = |query: &str| rows("streaming", &format!("{tables} {query}")).unwrap();
    assert_eq!(folded("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u)"), ["1"]);
    assert_eq!(folded("SELECT t.id FROM t, u"), ["1"]);
    assert_eq!(folded("SELECT COUNT(*) FROM (SELECT * FROM u LIMIT 3)"), ["1"]);
}

#[test]
fn a_key_may_be_computed_of_a_view_that_renames_and_filters() {
    let tables = table("a", "x INT, y INT", "[[1, 1], [2, 0]]") + &table("f", "k INT, b BIGINT", "[[1, 1]]");
    let view = "CREATE VIEW av AS SELECT x, y FROM a WHERE y > 0; ";
    let query = |query: &str| format!("{tables} {view} {query}");
    expect(&query("SELECT f.k, av.y FROM f JOIN av ON f.b = av.x"), &["1 1"]);
    expect(&query("SELECT f.k, av.y FROM f LEFT JOIN av ON f.b = av.x + 1"), &["1 NULL"]);
    expect(&query("SELECT f.k FROM f WHERE EXISTS (SELECT 1 FROM av WHERE ABS(av.x) = ABS(f.b))"), &["1"]);
    expect(
        &query(
            "SELECT f.k FROM f JOIN (SELECT MIN(x) AS m FROM a HAVING MIN(x) IS NOT NULL) AS r ON f.b = r.m",
        ),
        &["1"],
    );
}
