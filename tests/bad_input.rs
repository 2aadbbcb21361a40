//! Bad input of every kind, given to the real binary: each gets a message with its place and a way out, exit code 1, and neither
//! a panic nor a wait.

use std::fmt::Write as _;

use crate::support::run::{Finished, Lakehead};

const BATCH: &str = "SET 'execution.runtime-mode' = 'batch';\n";

const TABLE: &str = "CREATE TABLE t (a INT, s STRING, d DECIMAL(5, 2)) WITH ('connector' = 'datagen', 'number-of-rows' = '3');\n";

/// Runs a script in batch mode over a small table.
fn script(sql: &str) -> Finished {
    let lakehead = Lakehead::new();
    let path = lakehead.file("s.sql", format!("{BATCH}{TABLE}{sql}"));
    lakehead.and(&["-f", &path]).run()
}

/// Checks that a script fails as an error of the user, at a line and with words that help.
#[track_caller]
fn fails(sql: &str, line: usize, words: &[&str]) {
    let finished = script(sql);
    let out = &finished.stdout;
    assert_eq!(finished.code, 1, "{out}\n{}", finished.stderr);
    assert!(out.contains(&format!("s.sql:{}:", line + 2)), "no place:\n{out}");
    assert!(!out.contains("This is a bug"), "{out}");
    for word in words {
        assert!(out.contains(word), "no '{word}' in:\n{out}");
    }
}

#[test]
fn unfinished_and_unknown_text_is_shown_with_its_place() {
    fails("\nFROBNICATE x;", 2, &["^^^^^^^^^^", "HELP lists the commands"]);
    fails("SELECT 'abc", 1, &["unfinished string literal", "single quote"]);
    fails("SELECT 1;\n/* abc", 2, &["unfinished comment", "*/"]);
}

#[test]
fn an_error_without_a_place_of_its_own_points_to_its_statement() {
    fails("CREATE TABLE x (a INT) WITH ('connector' = 'datagn');\n-- why\nSELECT * FROM x;", 3, &["datagen"]);
    fails(
        "CREATE TABLE x (a INT) WITH ('connector' = 'datagen', 'number-of-row' = '3');\nSELECT * FROM x;",
        2,
        &["Unsupported options found for 'datagen'", "Did you mean 'number-of-rows'?"],
    );
    fails(
        "CREATE TABLE x (a INT) WITH ('connector' = 'datagen', 'number-of-rows' = 'abc');\nSELECT * FROM x;",
        2,
        &["option 'number-of-rows'", "whole number"],
    );
}

#[test]
fn an_option_is_given_once() {
    fails(
        "CREATE TABLE x (a INT)\nWITH ('connector' = 'print', 'connector' = 'datagen');",
        2,
        &["The option 'connector' is given twice.", "^^^^^^^^^^^"],
    );
}

#[test]
fn sums_and_conditions_may_be_long() {
    let sum = |term: &str, count: usize| vec![term; count].join(" + ");
    let finished = script(&format!("SELECT {};", sum("1", 50_000))).ok();
    assert!(finished.stdout.contains("|  50000 |"));
    script(&format!("SELECT ({}) IS NULL FROM t;", sum("d", 300))).ok();
    fails(&format!("SELECT {};", sum("1.5", 50_000)), 1, &["2000 operators in a row", "subquery"]);
    fails(&format!("SELECT {};", sum("1 + 1.5 + 1e0", 16_667)), 1, &["2000 operators in a row", "subquery"]);
    script(&format!("SELECT {};", vec!["1 = 1"; 10_000].join(" AND "))).ok();
    script(&format!("{};", vec!["SELECT 1"; 1000].join(" UNION ALL "))).ok();
}

/// Writes a text around another so many times.
fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn deep_nesting_is_refused_before_it_overflows() {
    let too_deep = ["nested too deeply", "hint: Split"];
    for (open, inner, close, depth) in [
        ("(", "1", ")", 20_000),
        ("(SELECT ", "1", ")", 1000),
        ("CASE WHEN TRUE THEN ", "1", " END", 1000),
        ("UPPER(", "'a'", ")", 1000),
        ("NOT ", "TRUE", "", 10_000),
        ("ARRAY[", "1", "]", 2000),
    ] {
        fails(&format!("SELECT {};", nested(open, inner, close, depth)), 1, &too_deep);
    }
    let derived = nested("(SELECT * FROM ", "(VALUES 1) AS v (a)", ") ", 1000);
    fails(&format!("SELECT * FROM {derived};"), 1, &too_deep);
    script(&format!("SELECT {} IS NULL FROM t;", nested("UPPER(", "s", ")", 200))).ok();
}

#[test]
fn what_doubles_with_every_level_is_refused() {
    for (open, close) in [("CASE WHEN a > 0 THEN ", " END"), ("COALESCE(", ", 2)"), ("NULLIF(", ", 2)")] {
        let sql = format!("SELECT {} FROM t;", nested(open, "a", close, 100));
        fails(&sql, 1, &["nested too deeply: more than 12 levels", "subquery"]);
    }
    fails(
        &format!("SELECT {};", nested("(SELECT ", "1", ")", 100)),
        1,
        &["subqueries are nested too deeply", "WITH"],
    );
    let between = nested("(", "TRUE", " BETWEEN FALSE AND TRUE)", 100);
    fails(&format!("SELECT {between};"), 1, &["too large", "subquery"]);
}

#[test]
fn a_ladder_of_cases_is_no_nesting() {
    let ladder = nested("CASE WHEN a > 0 THEN 1 ELSE ", "1", " END", 150);
    let finished = script(&format!("SELECT {ladder} FROM t;")).ok();
    assert_eq!(finished.stdout.matches("|      1 |").count(), 3, "{}", finished.stdout);
}

#[test]
fn wide_and_long_statements_run() {
    let numbers: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    script(&format!("SELECT a IN ({}) FROM t;", numbers.join(", "))).ok();
    let columns: Vec<String> = (0..2000).map(|number| format!("c{number} INT")).collect();
    let with = "WITH ('connector' = 'datagen', 'number-of-rows' = '1')";
    script(&format!("CREATE TABLE w ({}) {with};\nSELECT c0, c1999 FROM w;", columns.join(", "))).ok();
    let mut chain = "WITH c0 AS (SELECT 1 AS a)".to_owned();
    for number in 1..300 {
        write!(chain, ", c{number} AS (SELECT a FROM c{})", number - 1).unwrap();
    }
    script(&format!("{chain} SELECT a FROM c299;")).ok();
    let long = "x".repeat(10_000_000);
    assert!(script(&format!("SELECT '{long}' = 'a';")).ok().stdout.contains("FALSE"));
    fails(&format!("SELEC '{long}';"), 1, &["Did you mean SELECT?"]);
}

#[test]
fn views_do_not_turn_in_circles() {
    let views = "CREATE VIEW v AS SELECT a FROM t;\nCREATE VIEW w AS SELECT * FROM v;\n";
    fails(&format!("{views}ALTER VIEW v AS SELECT * FROM v;"), 3, &["would read from itself"]);
    fails(
        &format!("{views}ALTER VIEW v AS SELECT * FROM w;\nSELECT * FROM v;"),
        4,
        &["v' refers to itself: ", "w -> ", "Drop one of these views"],
    );
    fails("CREATE TABLE x (a INT) LIKE x;", 1, &["Source table", "not found"]);
}

#[test]
fn a_tower_of_views_is_no_circle() {
    let mut sql = "CREATE VIEW v0 AS SELECT 1 AS a;\n".to_owned();
    for number in 1..100 {
        writeln!(sql, "CREATE VIEW v{number} AS SELECT a FROM v{};", number - 1).unwrap();
    }
    let finished = script(&sql);
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("views are nested too deeply: more than 64"), "{}", finished.stdout);
    assert!(!finished.stdout.contains("refers to itself"));
}

#[test]
fn a_view_says_what_it_misses() {
    let view = "CREATE VIEW v AS SELECT a FROM t;\n";
    let hint = "View 'default_catalog.default_database.v' needs it";
    fails(&format!("{view}DROP TABLE t;\nSELECT * FROM v;"), 3, &["Object 't' not found", hint]);
    fails(&format!("{view}ALTER TABLE t DROP a;\nSELECT * FROM v;"), 3, &["Column 'a' not found", hint]);
}

#[test]
fn a_wrong_line_is_named_by_file_line_and_field() {
    for (format, bad) in [("csv", "1,a\nx,b\n"), ("json", "{\"n\": 1}\n{\"n\": \"x\"}\n")] {
        let lakehead = Lakehead::new();
        let data = lakehead.file("data.txt", bad);
        let table = |options: &str| {
            format!(
                "{BATCH}CREATE TABLE f (n INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{data}', 'format' = '{format}'{options});\nSELECT n FROM f;"
            )
        };
        let strict = lakehead.file("strict.sql", table(""));
        let lenient =
            lakehead.file("lenient.sql", table(&format!(", '{format}.ignore-parse-errors' = 'true'")));
        let lakehead = lakehead.and(&["-f", &strict]);
        let failed = lakehead.run();
        assert_eq!(failed.code, 1, "{}", failed.stdout);
        for word in ["data.txt", "line 2", "'n'", "strict.sql:3:1"] {
            assert!(failed.stdout.contains(word), "no '{word}' in:\n{}", failed.stdout);
        }
        Lakehead::with(&["-f", &lenient]).run().ok();
        drop(lakehead);
    }
}

#[test]
fn a_home_that_cannot_be_written_is_no_obstacle() {
    for home in ["/proc", "/dev/null", "/does/not/exist"] {
        let finished = Lakehead::with(&["-c", "SELECT 1"]).variable("HOME", home).run().ok();
        assert_eq!(finished.stderr, "");
    }
}

#[test]
fn secrets_are_printed_nowhere() {
    const SECRET: &str = "s3cr3tvalue";
    let statements = [
        "SET 'my.password' = 's3cr3tvalue';",
        "SET;",
        "SET ALL;",
        "SET 'sql-client.verbose' = 'true';",
        "SET 'my.secret' 's3cr3tvalue';",
        "CREATE TABLE x (a INT) WITH ('connector' = 'print', 'password' 's3cr3tvalue');",
        "CREATE TABLE x (a INT) WITH ('password' = 's3cr3tvalue' 'more');",
        "CREATE TABLE x (a INT) WITH ('connector' = 'datagen', 'password' = 's3cr3tvalue');",
        "SHOW CREATE TABLE x;",
        "EXPLAIN SELECT * FROM x;",
        "SELECT * FROM x;",
        "SELECT * FROM t /*+ OPTIONS('password' = 's3cr3tvalue') */;",
        "CREATE CATALOG c WITH ('type' = 'nope', 'password' = 's3cr3tvalue');",
        "CREATE CATALOG c WITH ('type' = 'generic_in_memory', 'password' = 's3cr3tvalue');",
        "SHOW CREATE CATALOG c;",
        "DESCRIBE CATALOG EXTENDED c;",
        "CALL c.p(password => 's3cr3tvalue');",
        "SET 'my.password' = 's3cr3tvalue",
    ];
    let input = format!("{TABLE}{}", statements.join("\n"));
    for arguments in [&[][..], &["--echo"], &["--log", "trace"]] {
        let finished = Lakehead::with(arguments).input(input.clone()).run();
        assert_eq!(finished.code, 1);
        assert!(!finished.stdout.contains(SECRET), "{arguments:?}:\n{}", finished.stdout);
        assert!(!finished.stderr.contains(SECRET), "{arguments:?}:\n{}", finished.stderr);
    }
}
