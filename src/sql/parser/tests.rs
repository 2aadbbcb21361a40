//! Statements of every family, and the texts of their errors.

use super::super::*;
use super::*;

fn accept(texts: &[&str]) {
    for text in texts {
        parse_statement(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

/// Checks the first line of the errors, as Flink 2.3 prints it.
fn refuse(cases: &[(&str, &str)]) {
    for (text, message) in cases {
        match parse_statement(text) {
            Ok(statement) => panic!("{text}: {statement:?}"),
            Err(error) => assert_eq!(error.message(), *message, "{text}"),
        }
    }
}

#[test]
fn catalogs_and_databases() {
    accept(&[
        "CREATE CATALOG IF NOT EXISTS c COMMENT 'x' WITH ('type' = 'iceberg', 'a' = 'b');",
        "CREATE CATALOG c",
        "DROP CATALOG IF EXISTS c;",
        "ALTER CATALOG c SET ('a' = 'b')",
        "ALTER CATALOG c RESET ('a')",
        "ALTER CATALOG c COMMENT 'x'",
        "USE CATALOG c;",
        "CREATE DATABASE IF NOT EXISTS c.d COMMENT 'x' WITH ('a' = 'b')",
        "DROP DATABASE IF EXISTS d CASCADE",
        "ALTER DATABASE d SET ('a' = 'b')",
        "USE c.d;",
        "use `d`",
    ]);
}

#[test]
fn tables() {
    accept(&[
        "CREATE TABLE t (
           id BIGINT NOT NULL COMMENT 'the key', price DECIMAL(10, 2), name VARCHAR(10) NULL, value STRING,
           `$rowtime` TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL COMMENT 'm', part INT METADATA VIRTUAL,
           total AS price * 2 COMMENT 'c', proc AS PROCTIME(), r ROW<a INT, b ROW<c STRING>>,
           WATERMARK FOR r.a AS r.a - INTERVAL '5' SECOND,
           CONSTRAINT pk PRIMARY KEY (id, name) NOT ENFORCED
         ) COMMENT 'x' DISTRIBUTED BY HASH (id) INTO 4 BUCKETS PARTITIONED BY (name, bucket(16, id), days(ts))
         WITH ('connector' = 'datagen')",
        "CREATE TEMPORARY TABLE IF NOT EXISTS a.b.c WITH ('a' = 'b') LIKE d (EXCLUDING CONSTRAINTS OVERWRITING OPTIONS)",
        "CREATE TABLE t (watermark STRING, primary INT, key INT PRIMARY KEY NOT ENFORCED) WITH ()",
        "CREATE TABLE t AS SELECT 1 AS a",
        "CREATE TABLE t (b, a) WITH ('k' = 'v') AS SELECT a, b FROM s",
        "CREATE OR REPLACE TABLE t DISTRIBUTED INTO 2 BUCKETS AS SELECT 1",
        "REPLACE TABLE t AS SELECT 1",
        "CREATE TABLE t (a INT) LIKE `claims.members`",
        "DROP TABLE IF EXISTS t",
        "DROP TEMPORARY TABLE t",
    ]);
    let statement = parse_statement("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED)").unwrap();
    let Statement::CreateTable(table) = statement else { panic!("no table") };
    assert_eq!(table.elements.len(), 2);
}

#[test]
fn alter_table() {
    accept(&[
        "ALTER TABLE IF EXISTS t RENAME TO u",
        "ALTER TABLE t RENAME a TO b",
        "ALTER TABLE t RENAME COLUMN a.b TO c",
        "ALTER TABLE t SET ('a' = 'b')",
        "ALTER TABLE t RESET ('a', 'b')",
        "ALTER TABLE t ADD (extra INT COMMENT 'new' AFTER price, PRIMARY KEY (extra) NOT ENFORCED)",
        "ALTER TABLE t ADD COLUMN x INT FIRST",
        "ALTER TABLE t ADD WATERMARK FOR ts AS ts",
        "ALTER TABLE t ADD DISTRIBUTION BY (a) INTO 3 BUCKETS",
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (a = '1') WITH ('k' = 'v') PARTITION (a = '2')",
        "ALTER TABLE t MODIFY note VARCHAR(10)",
        "ALTER TABLE t MODIFY DISTRIBUTION INTO 3 BUCKETS",
        "ALTER TABLE t DROP total",
        "ALTER TABLE t DROP COLUMN (a, b.c)",
        "ALTER TABLE t DROP PRIMARY KEY",
        "ALTER TABLE t DROP CONSTRAINT pk",
        "ALTER TABLE t DROP WATERMARK",
        "ALTER TABLE t DROP DISTRIBUTION",
        "ALTER TABLE t DROP IF EXISTS PARTITION (a = 1), PARTITION (a = 2)",
        "ALTER TABLE t ADD PARTITION FIELD bucket(16, id) AS shard",
        "ALTER TABLE t DROP PARTITION FIELD days(ts)",
        "ALTER TABLE t REPLACE PARTITION FIELD days(ts) WITH hours(ts)",
        "ALTER TABLE t WRITE ORDERED BY a DESC NULLS LAST, bucket(4, b)",
        "ALTER TABLE t WRITE UNORDERED",
        "ALTER TABLE t CREATE OR REPLACE BRANCH b AS OF VERSION 12 RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS",
        "ALTER TABLE t REPLACE TAG b AS OF VERSION 12",
        "ALTER TABLE t DROP BRANCH IF EXISTS b",
    ]);
}

#[test]
fn views_functions_and_procedures() {
    accept(&[
        "CREATE TEMPORARY VIEW IF NOT EXISTS v (a, b) COMMENT 'x' AS SELECT 1, 2",
        "DROP TEMPORARY VIEW IF EXISTS v",
        "ALTER VIEW v RENAME TO w",
        "ALTER VIEW v AS SELECT 2",
        "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'a.B' LANGUAGE JAVA USING JAR 'x', ARTIFACT 'y' WITH ('a' = 'b')",
        "ALTER FUNCTION IF EXISTS f AS 'a.B'",
        "DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f",
        "CALL sys.compact(`table` => 'a.b', 1)",
        "CALL c.d.p()",
        "LOAD MODULE m WITH ('a' = 'b')",
        "UNLOAD MODULE m",
        "USE MODULES a, b",
        "ADD JAR '/a.jar'",
        "REMOVE JAR '/a.jar'",
        "STOP JOB 'x' WITH SAVEPOINT WITH DRAIN",
    ]);
    let Statement::CreateView(view) = parse_statement("CREATE VIEW v AS -- c\n SELECT  'é' ; ").unwrap()
    else {
        panic!("no view")
    };
    assert_eq!(view.query_text, "SELECT  'é'");
    let text = "CREATE VIEW v AS SELECT * FROM t /*+ OPTIONS('a'='b') */ ;";
    let Statement::CreateView(view) = parse_statement(text).unwrap() else { panic!("no view") };
    assert!(view.query_text.ends_with("*/"), "{}", view.query_text);
}

#[test]
fn show_and_describe() {
    accept(&[
        "SHOW CATALOGS LIKE 'd%'",
        "SHOW DATABASES FROM c NOT ILIKE 'x%'",
        "SHOW CURRENT DATABASE",
        "SHOW TABLES IN a.b LIKE 'x'",
        "SHOW USER FUNCTIONS",
        "SHOW FULL MODULES",
        "SHOW COLUMNS FROM t LIKE '%t%'",
        "SHOW PARTITIONS t PARTITION (a = 1)",
        "SHOW CREATE TABLE a.b.c",
        "SHOW CREATE CATALOG c",
        "SHOW JARS;",
        "SHOW JOBS",
        "DESCRIBE t",
        "DESC EXTENDED a.b",
        "DESCRIBE catalog",
        "DESCRIBE CATALOG EXTENDED c",
        "DESCRIBE DATABASE d",
        "DESCRIBE FUNCTION EXTENDED `upper`",
        "DESCRIBE JOB '0'",
        "ANALYZE TABLE t PARTITION (a = 1, b) COMPUTE STATISTICS FOR COLUMNS x, y",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS",
    ]);
}

#[test]
fn changes_and_statement_sets() {
    accept(&[
        "INSERT INTO a.b SELECT 1",
        "EXECUTE INSERT OVERWRITE t PARTITION (p = 'x', q = 1) (a, b) VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO t /*+ OPTIONS('k' = 'v') */ (SELECT 1) UNION ALL (SELECT 2)",
        "INSERT INTO t SELECT * FROM s ON CONFLICT DO DEDUPLICATE",
        "BEGIN STATEMENT SET;",
        "END;",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE WHEN x THEN 1 END FROM t; INSERT INTO b SELECT 1; END;",
        "EXPLAIN SELECT 1",
        "EXPLAIN PLAN FOR INSERT INTO a SELECT 1",
        "EXPLAIN ESTIMATED_COST, CHANGELOG_MODE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;",
        "EXPLAIN CREATE TABLE t AS SELECT 1",
        "COMPILE AND EXECUTE PLAN 'f' IF NOT EXISTS FOR INSERT INTO a SELECT 1",
        "EXECUTE PLAN 'f'",
        "EXECUTE SELECT 1",
        "UPDATE t SET a = 1, value = b + 1 WHERE c",
        "DELETE FROM t",
        "TRUNCATE TABLE t",
    ]);
    let Statement::Insert(insert) =
        parse_statement("INSERT INTO t /*+ OPTIONS('k' = 'v') */ SELECT 1").unwrap()
    else {
        panic!("no insert")
    };
    assert_eq!(insert.hints[0].name, "OPTIONS");
    assert_eq!(&"INSERT INTO t /*+ OPTIONS('k' = 'v') */ SELECT 1"[insert.source.span.start..], "SELECT 1");
}

#[test]
fn what_is_never_executed_is_kept_as_text() {
    let text = "CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' MINUTE AS SELECT  'a  b' FROM t;";
    let Statement::MaterializedTable(table) = parse_statement(text).unwrap() else { panic!("no table") };
    assert_eq!(table.keywords, "CREATE MATERIALIZED TABLE");
    assert_eq!(table.rest, "FRESHNESS = INTERVAL '1' MINUTE AS SELECT 'a  b' FROM t");
    accept(&[
        "ALTER MATERIALIZED TABLE m SUSPEND",
        "DROP MATERIALIZED TABLE IF EXISTS m",
        "CREATE TEMPORARY MODEL IF NOT EXISTS m INPUT (a INT) WITH ('a' = 'b')",
        "DROP MODEL m",
        "CREATE TABLE model (model INT)",
    ]);
}

#[test]
fn errors_have_flinks_words() {
    refuse(&[
        ("SELEC 1;", "Non-query expression encountered in illegal context"),
        ("foo bar;", "Non-query expression encountered in illegal context"),
        ("SHOW SOMETHING;", "Incorrect syntax near the keyword 'SHOW' at line 1, column 1."),
        ("SHOW CREATE DATABASE d1;", "Encountered \"DATABASE\" at line 1, column 13."),
        ("DROP x;", "Encountered \"x\" at line 1, column 6."),
        ("GRANT ALL ON t TO u;", "Incorrect syntax near the keyword 'GRANT' at line 1, column 1."),
        (
            "CREATE TABLE x (id INT) WITH (connector = 'datagen');",
            "Encountered \"connector\" at line 1, column 31.",
        ),
        (
            "CREATE TABLE x (id INT) WITH ('connector' = 'datagen',);",
            "Encountered \")\" at line 1, column 55.",
        ),
        (
            "CREATE TABLE bad (a INTERVAL DAY TO SECOND(3));",
            "Incorrect syntax near the keyword 'INTERVAL' at line 1, column 21.",
        ),
        ("CREATE TABLE a.b.c.d (x INT);", "Object identifier must consist of 1 to 3 parts."),
        ("CREATE TABLE x (a NUMBER)", "Unknown identifier 'NUMBER'"),
        ("CREATE TABLE x (a INT UNIQUE)", "UNIQUE constraint is not supported yet"),
        ("EXPLAIN PLAN_ADVICE, PLAN_ADVICE SELECT 1", "Duplicate EXPLAIN DETAIL is not allowed."),
        ("SELECT 1; SELECT 2", "only single statement supported"),
        ("SHOW TABLES 'é'", "Encountered \"\\'\\u00e9\\'\" at line 1, column 13."),
        (";;", "Encountered \";\" at line 1, column 1."),
        ("SELECT 'abc", "unfinished string literal"),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", "unfinished statement set"),
        ("STOP JOB 'x' WITH DRAIN", "WITH DRAIN could only be used after WITH SAVEPOINT."),
    ]);
    let error = parse_statement("CREATE TABLE x (id INT, PRIMARY KEY (id))").unwrap_err();
    assert!(error.message().starts_with("Flink doesn't support ENFORCED mode for PRIMARY KEY constraint."));
    assert_eq!(error.flink_class(), FlinkClass::PARSER_VALIDATE);
    assert_eq!(parse_statement("SELEC 1").unwrap_err().hint_text(), Some("Did you mean SELECT?"));
    assert_eq!(parse_statement("SELEC 1").unwrap_err().flink_class(), FlinkClass::CALCITE);
}

#[test]
fn errors_have_places_and_say_what_was_expected() {
    let text = "CREATE TABLE é (\n  a INT,\n  b INTO)";
    let error = parse_statement(text).unwrap_err();
    assert_eq!(error.message(), "Unknown identifier 'INTO'");
    let span = error.span().unwrap();
    assert_eq!(&text[span.start..span.end], "INTO");
    let error = parse_statement("DROP TABLE IF EXISTS 1").unwrap_err();
    assert_eq!(error.hint_text(), Some("Expected a name."));
    let error = parse_statement("ALTER VIEW v x").unwrap_err();
    assert!(error.hint_text().unwrap().contains("RENAME or AS"), "{:?}", error.hint_text());
}

/// Runs on a stack as large as the one that statements are executed on.
fn with_large_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(64 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn deep_nesting_is_an_error_and_long_chains_are_none() {
    with_large_stack(|| {
        for text in [
            format!("SELECT {}1{}", "(".repeat(20_000), ")".repeat(20_000)),
            format!("SELECT * FROM {}t{}", "(".repeat(20_000), ")".repeat(20_000)),
            format!("SELECT {}1", "- ".repeat(20_000)),
            format!("SELECT {}TRUE", "NOT ".repeat(20_000)),
            format!("SELECT {}1{}", "f(".repeat(20_000), ")".repeat(20_000)),
            format!("SELECT {}1{}", "ARRAY[".repeat(20_000), "]".repeat(20_000)),
            format!("SELECT {}1", "CASE WHEN ".repeat(20_000)),
            format!("{}SELECT 1{}", "(".repeat(20_000), ")".repeat(20_000)),
            format!("CREATE TABLE t (a {}INT{})", "ARRAY<".repeat(20_000), ">".repeat(20_000)),
            format!("SELECT {}1", "a BETWEEN ".repeat(20_000)),
            format!("SELECT CAST(1 AS {}INT)", "ROW<a ".repeat(20_000)),
            format!("SELECT 1 FROM t GROUP BY {}a", "GROUPING SETS (".repeat(20_000)),
        ] {
            let error = parse_statement(&text).unwrap_err();
            assert!(error.message().contains("nested too deeply"), "{}: {error}", &text[..40]);
        }
        accept(&[
            &format!("SELECT 1{}", " + 1".repeat(50_000)),
            &format!("SELECT * FROM t WHERE a = 1{}", " AND a = 1".repeat(10_000)),
            &format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(1_000)),
            &format!("SELECT a{}", "[1]".repeat(20_000)),
            &format!("SELECT * FROM t{}", " JOIN t ON TRUE".repeat(10_000)),
            &format!("SELECT {}1{}", "(".repeat(150), ")".repeat(150)),
        ]);
    });
}

#[test]
fn a_long_statement_takes_linear_time() {
    with_large_stack(|| {
        let text =
            format!("INSERT INTO t VALUES (1, 'é')\n{}", ", (2, 'a text of some length')".repeat(100_000));
        accept(&[&text]);
    });
}
