//! Where Flink's answers surprise: streaming queries with the rows and kinds that Flink 2.3 gives, by the kind of surprise.

use crate::support::session::{changelog, with_session};

/// Makes a table of changes: lines of a kind and values as JSON.
fn changes(columns: &str, lines: &str) -> String {
    let rows: Vec<String> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (kind, values) = line.split_once(' ').unwrap();
            format!("[\"{kind}\", {values}]")
        })
        .collect();
    format!(
        "CREATE TABLE t ({columns}) WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D', 'rows' = '[{}]');\n",
        rows.join(", ").replace('\'', "''")
    )
}

fn expect(script: &str, expected: &[&str]) {
    assert_eq!(changelog(script).unwrap(), expected, "{script}");
}

/// What a statement is refused with.
fn refusal(script: &str) -> String {
    changelog(script).unwrap_err().message().to_owned()
}

#[test]
fn point_40_sums_of_integers_wrap_and_averages_are_cut() {
    let table = changes("a TINYINT, b INT", "+I 100, 1\n+I 100, 2\n+I 1, 4\n-D 100, 1");
    expect(
        &format!("{table} SELECT SUM(a), AVG(b) FROM t;"),
        &["+I 100 1", "-U 100 1", "+U -56 1", "-U -56 1", "+U -55 2", "-U -55 2", "+U 101 3"],
    );
}

#[test]
fn point_41_sums_and_averages_of_decimals_have_their_own_scale() {
    let table = changes("d DECIMAL(4, 2)", "+I 1.10\n+I 2.25\n-D 1.10");
    expect(
        &format!("{table} SELECT SUM(d), AVG(d) FROM t;"),
        &["+I 1.10 1.100000", "-U 1.10 1.100000", "+U 3.35 1.675000", "-U 3.35 1.675000", "+U 2.25 2.250000"],
    );
}

#[test]
fn point_42_deviations_of_integers_are_integers() {
    let table = changes("a INT", "+I 1\n+I 2\n+I 4");
    expect(
        &format!("{table} SELECT VAR_SAMP(a), STDDEV_POP(a) FROM t;"),
        &["+I NULL 0", "-U NULL 0", "+U 0 0", "-U 0 0", "+U 2 1"],
    );
}

#[test]
fn point_43_an_aggregate_over_nothing_has_no_row_and_loses_its_last_one() {
    let table = changes("a INT", "+I 1\n-D 1\n+I 7");
    expect(&format!("{table} SELECT COUNT(*), SUM(a) FROM t WHERE a > 100;"), &[]);
    expect(&format!("{table} SELECT COUNT(*), SUM(a) FROM t;"), &["+I 1 1", "-D 1 1", "+I 1 7"]);
}

#[test]
fn point_44_texts_are_listed_in_the_order_of_their_arrival() {
    let table = changes("a STRING", "+I \"x\"\n+I \"y\"\n+I \"x\"\n-D \"x\"\n+I null");
    expect(
        &format!("{table} SELECT LISTAGG(a), LISTAGG(DISTINCT a) FROM t;"),
        &["+I x x", "-U x x", "+U x,y x,y", "-U x,y x,y", "+U x,y,x x,y", "-U x,y,x x,y", "+U y,x x,y"],
    );
}

#[test]
fn point_45_nulls_are_smallest() {
    let table = changes("a INT", "+I 2\n+I null\n+I 1");
    expect(&format!("{table} SELECT a FROM t ORDER BY a LIMIT 1;"), &["+I 2", "-D 2", "+I NULL"]);
    expect(&format!("{table} SELECT a FROM t ORDER BY a DESC LIMIT 1;"), &["+I 2"]);
}

#[test]
fn point_46_nothing_is_outside_of_a_list_that_holds_null() {
    let query = |list: &str| {
        format!(
            "SELECT a FROM (VALUES (1), (2), (CAST(NULL AS INT))) AS l (a) WHERE a NOT IN (SELECT b FROM (VALUES {list}) AS r (b))"
        )
    };
    let fold = |rows: Vec<String>| {
        let mut left: Vec<String> = Vec::new();
        for row in rows {
            let (kind, row) = row.split_once(' ').unwrap();
            match left.iter().position(|other| kind.starts_with('-') && other == row) {
                Some(at) => drop(left.remove(at)),
                None => left.push(row.to_owned()),
            }
        }
        left
    };
    assert_eq!(fold(changelog(&query("(1), (CAST(NULL AS INT))")).unwrap()), Vec::<String>::new());
    assert_eq!(fold(changelog(&query("(1)")).unwrap()), ["2"]);
}

#[test]
fn point_56_rows_that_claim_one_key_need_a_word_only_where_it_is_asked_for() {
    let tables = "CREATE TABLE s (k INT, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UA,D');
        SET 'table.dml-sync' = 'true';";
    let insert = "INSERT INTO s SELECT CAST(n AS INT), k FROM (SELECT k, COUNT(*) AS n FROM (VALUES (1), (2)) AS t (k) GROUP BY k)";
    let insert = insert.replace(", k FROM", ", CAST(k AS BIGINT) FROM");
    let explained =
        |settings: &str| with_session(&format!("{tables} {settings} {insert}"), |_| async { Ok(()) });
    explained("").unwrap();
    let error = explained("SET 'table.exec.sink.require-on-conflict' = 'true';").unwrap_err();
    assert!(error.message().contains("ON CONFLICT"), "{error}");
}

#[test]
fn point_57_a_sink_that_only_appends_refuses_updates_and_names_the_operator() {
    let message = refusal(
        "CREATE TABLE f (k INT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/never-written', 'format' = 'csv');
         INSERT INTO f SELECT k, COUNT(*) FROM (VALUES (1)) AS t (k) GROUP BY k",
    );
    assert_eq!(
        message,
        "Table sink 'default_catalog.default_database.f' doesn't support consuming update changes which is produced by node GroupAggregate(groupBy=[k], select=[k, COUNT(*) AS EXPR$1])"
    );
}

#[test]
fn point_58_kinds_are_those_of_each_operator() {
    let table = changes("k INT, v INT", "+I 1, 1\n-U 1, 1\n+U 1, 5");
    // A filter may leave one half of an update.
    expect(&format!("{table} SELECT v FROM t WHERE v < 3;"), &["+I 1", "-U 1"]);
    expect(&format!("{table} SELECT v FROM t WHERE v > 3;"), &["+U 5"]);
    // An aggregate of an aggregate takes both halves by themselves.
    expect(
        "SELECT MAX(n) FROM (SELECT k, COUNT(*) AS n FROM (VALUES (1), (1)) AS t (k) GROUP BY k)",
        &["+I 1", "-D 1", "+I 2"],
    );
    // An outer join takes its padded row back.
    let join = "SELECT l.a, r.b FROM (VALUES (1)) AS l (a) LEFT JOIN (VALUES (1)) AS r (b) ON l.a = r.b";
    expect(join, &["+I 1 NULL", "-D 1 NULL", "+I 1 1"]);
    // A Top-N moves rows with their rank, and without it lets them come and go.
    let ranked = |columns: &str| {
        format!(
            "SELECT {columns} FROM (SELECT v, ROW_NUMBER() OVER (ORDER BY v) AS n FROM (VALUES (2), (1)) AS t (v)) WHERE n <= 1"
        )
    };
    expect(&ranked("v, n"), &["+I 2 1", "-U 2 1", "+U 1 1"]);
    let two = "SELECT v, n FROM (SELECT v, ROW_NUMBER() OVER (ORDER BY v) AS n FROM (VALUES (2), (1)) AS t (v)) WHERE n <= 2";
    expect(two, &["+I 2 1", "-U 2 1", "+U 1 1", "+I 2 2"]);
}

#[test]
fn point_59_what_stays_the_same_is_not_said_again() {
    let table = changes("k INT, v INT", "+I 1, 1\n+I 1, 0\n-U 1, 1\n+U 1, 1");
    expect(&format!("{table} SELECT k, MIN(v) FROM t GROUP BY k;"), &["+I 1 1", "-U 1 1", "+U 1 0"]);
    let table = changes("k INT, v INT", "+I 1, 1\n-U 1, 1\n+U 1, 1");
    expect(&format!("{table} SELECT DISTINCT k, v FROM t;"), &["+I 1 1", "-D 1 1", "+I 1 1"]);
}

#[test]
fn point_60_texts_compare_by_their_bytes() {
    let table = changes("a STRING", "+I \"b\"\n+I \"B\"\n+I \"ä\"\n+I \"b \"");
    expect(
        &format!("{table} SELECT MIN(a), COUNT(DISTINCT a) FROM t;"),
        &["+I b 1", "-U b 1", "+U B 2", "-U B 2", "+U B 3", "-U B 3", "+U B 4"],
    );
    expect(&format!("{table} SELECT a FROM t WHERE a = 'b';"), &["+I b"]);
}

#[test]
fn point_61_a_remainder_has_the_sign_of_what_is_divided() {
    let table = changes("a INT", "+I -7\n+I 7");
    expect(&format!("{table} SELECT MOD(a, 3), a % -3, a / 2 FROM t;"), &["+I -1 -1 -3", "+I 1 1 3"]);
}

/// A table with NaN and both zeros, which come of text, so that nothing is folded.
fn doubles() -> String {
    "CREATE VIEW d (i, x) AS SELECT i, CAST(s AS DOUBLE) FROM (VALUES (1, 'NaN'), (2, '0.0'), (3, '-0.0'), (4, '1.5'), (5, 'NaN')) AS t (i, s);\n"
        .to_owned()
}

#[test]
fn point_65_nan_compares_with_nothing_and_zeros_are_equal() {
    let d = doubles();
    expect(&format!("{d} SELECT i FROM d WHERE x > 0 OR x <= 0;"), &["+I 2", "+I 3", "+I 4"]);
    expect(&format!("{d} SELECT i FROM d WHERE x <> 1.5;"), &["+I 1", "+I 2", "+I 3", "+I 5"]);
    expect(&format!("{d} SELECT i FROM d WHERE x = 0;"), &["+I 2", "+I 3"]);
}

#[test]
fn point_66_nan_is_the_largest_in_an_order() {
    let d = doubles();
    let query = format!("{d} SELECT i, x FROM d ORDER BY x DESC, i LIMIT 2;");
    let last: Vec<String> = changelog(&query).unwrap();
    assert_eq!(last[last.len() - 2..], ["-D 4 1.5", "+I 5 NaN"]);
}

#[test]
fn point_67_groups_are_by_bits_with_one_nan() {
    let query = format!("{} SELECT COUNT(DISTINCT x) FROM d;", doubles());
    assert_eq!(changelog(&query).unwrap().last().unwrap(), "+U 4");
}

#[test]
fn point_68_nan_is_the_largest_value() {
    // Flink differs: what it keeps depends on which came first.
    let query = format!("{} SELECT MAX(x), MIN(x) FROM d;", doubles());
    let answer = changelog(&query).unwrap();
    assert_eq!(answer.first().unwrap(), "+I NaN NaN");
    assert_eq!(answer.last().unwrap(), "+U NaN -0.0");
}

#[test]
fn point_69_join_keys_are_equal_by_bits() {
    let query =
        format!("{} SELECT l.i, r.i FROM d AS l JOIN d AS r ON l.x = r.x WHERE l.i < r.i;", doubles());
    assert_eq!(changelog(&query).unwrap(), ["+I 1 5"]);
}

#[test]
fn point_70_a_top_n_takes_nan_for_the_largest() {
    // Flink differs: to it NaN is equal to everything, so what is kept depends on the order of arrival.
    let query = format!(
        "{} SELECT i FROM (SELECT i, ROW_NUMBER() OVER (ORDER BY x DESC) AS n FROM d) WHERE n <= 2;",
        doubles()
    );
    let answer = changelog(&query).unwrap();
    assert_eq!(answer.last().unwrap(), "+I 5");
}

#[test]
fn maps_are_keys_of_groups_joins_and_distinct_values() {
    let table = changes(
        "id INT, m MAP<STRING, INT>",
        "+I 1, {\"a\": 1}\n+I 2, {\"a\": 1}\n+I 3, null\n-D 1, {\"a\": 1}",
    );
    let grouped = format!("{table}SELECT m, COUNT(*) FROM t GROUP BY m;");
    expect(&grouped, &["+I {a=1} 1", "-U {a=1} 1", "+U {a=1} 2", "+I NULL 1", "-U {a=1} 2", "+U {a=1} 1"]);
    expect(&format!("{table}SELECT DISTINCT m, ARRAY[m] FROM t WHERE id < 3;"), &["+I {a=1} [{a=1}]"]);
    let joined = format!("{table}SELECT a.id, b.id FROM t AS a JOIN t AS b ON a.m = b.m AND a.id < b.id;");
    expect(&joined, &["+I 1 2", "-D 1 2"]);
    let nested = format!(
        "{table}SELECT a.id, b.r FROM t AS a JOIN (SELECT id, ROW(id, ARRAY[m]) AS r FROM t) AS b ON a.id = b.id WHERE a.id > 1;"
    );
    expect(&nested, &["+I 2 (2, [{a=1}])", "+I 3 (3, [NULL])"]);
    let aggregated =
        format!("{table}SELECT COUNT(DISTINCT m), LAST_VALUE(m), COLLECT(m) FROM t WHERE id <> 3;");
    expect(
        &aggregated,
        &[
            "+I 1 {a=1} {{a=1}=1}",
            "-U 1 {a=1} {{a=1}=1}",
            "+U 1 {a=1} {{a=1}=2}",
            "-U 1 {a=1} {{a=1}=2}",
            "+U 1 {a=1} {{a=1}=1}",
        ],
    );
}

#[test]
fn maps_as_keys_in_batch_mode_are_refused_by_name() {
    let table = changes("id INT, m MAP<STRING, INT>", "+I 1, {\"a\": 1}")
        .replace("'changelog-mode' = 'I,UB,UA,D', ", "");
    let table = table.replace("[\"+I\", ", "[");
    for query in [
        "SELECT m, COUNT(*) FROM t GROUP BY m",
        "SELECT COLLECT(m) FROM t",
        "SELECT m FROM t EXCEPT SELECT m FROM t",
    ] {
        let message = refusal(&format!("SET 'execution.runtime-mode' = 'batch';\n{table}{query};"));
        assert!(message.contains("MAP in batch mode is not supported yet"), "{query}: {message}");
    }
}
