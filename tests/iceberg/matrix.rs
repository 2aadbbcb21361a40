//! Tables that we write, read by other engines: each must find the same rows, or say that it cannot read such a table. What they said
//! is a table of the README.
//!
//! `LAKEHEAD_ENGINES` names the engines that are there, as `scripts/test.sh` sets them up; the README's columns of the others are left
//! as they are. `BLESS=1` writes the README anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::run::Lakehead;

/// The engines in the order of the README, as `iceberg_readers.py` knows them.
const ENGINES: [(&str, &str); 5] = [
    ("pyiceberg", "PyIceberg"),
    ("duckdb", "DuckDB"),
    ("chdb", "ClickHouse"),
    ("spark", "Spark"),
    ("flink", "Flink"),
];

/// The variable with the engines that are there.
const PRESENT: &str = "LAKEHEAD_ENGINES";

/// A table, how it comes to be, and its rows in the form that `scripts/iceberg_rows.py` tells.
struct Written {
    name: &'static str,
    what: &'static str,
    statements: &'static str,
    rows: &'static [&'static str],
}

/// Rows that say how columns are partitioned, NULL and values before 1970 among them.
const PARTITIONED_ROWS: &str = "
INSERT INTO {t} VALUES
  (1, 'apple', 12.34, DATE '2024-02-29', TIMESTAMP '2024-02-29 23:59:59.123456', CAST(TIMESTAMP '2024-02-29 23:59:59' AS TIMESTAMP_LTZ(6))),
  (-7, 'äpfel und birnen', -0.05, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:00:00', CAST(TIMESTAMP '1969-12-31 22:00:00' AS TIMESTAMP_LTZ(6))),
  (2147483648, CAST(NULL AS STRING), CAST(NULL AS DECIMAL(9, 2)), CAST(NULL AS DATE), CAST(NULL AS TIMESTAMP(6)), CAST(NULL AS TIMESTAMP_LTZ(6)));
";

const PARTITIONED: &[&str] = &[
    "-7\täpfel und birnen\t-0.05\t1969-12-31\t1969-12-31T23:00:00.000000\t1969-12-31T22:00:00.000000Z",
    "1\tapple\t12.34\t2024-02-29\t2024-02-29T23:59:59.123456\t2024-02-29T23:59:59.000000Z",
    "2147483648\t\\N\t\\N\t\\N\t\\N\t\\N",
];

/// Makes a table partitioned by a clause.
macro_rules! partitioned {
    ($name:literal, $clause:literal) => {
        Written {
            name: $name,
            what: concat!("partitioned by `", $clause, "`"),
            statements: concat!(
                "CREATE TABLE {t} (id BIGINT, s STRING, d DECIMAL(9, 2), day_ DATE, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(6)) PARTITIONED BY (",
                $clause,
                ");"
            ),
            rows: PARTITIONED,
        }
    };
}

/// Changes come in two jobs, so that the second one must find the rows of the first.
const UPDATED: &str = "
CREATE TABLE {t} (id BIGINT, v STRING, p STRING, PRIMARY KEY (id) NOT ENFORCED) {partitions};
CREATE TEMPORARY TABLE {t}_1 (id BIGINT, v STRING, p STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D',
  'rows' = '[[\"+I\",1,\"a\",\"x\"],[\"+I\",2,\"b\",\"x\"],[\"+I\",3,\"c\",\"y\"],[\"+I\",4,\"d\",\"y\"],[\"+I\",5,\"e\",\"z\"]]');
CREATE TEMPORARY TABLE {t}_2 (id BIGINT, v STRING, p STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'values', 'changelog-mode' = 'I,UB,UA,D',
  'rows' = '[[\"-U\",1,\"a\",\"x\"],[\"+U\",1,\"a2\",\"x\"],[\"-D\",2,\"b\",\"x\"],[\"-U\",3,\"c\",\"y\"],[\"+U\",3,\"c2\",\"z\"],[\"-D\",4,\"d\",\"y\"],[\"+I\",4,\"d2\",\"y\"]]');
SET 'execution.runtime-mode' = 'streaming';
INSERT INTO {t} SELECT * FROM {t}_1;
INSERT INTO {t} SELECT * FROM {t}_2;
SET 'execution.runtime-mode' = 'batch';
";

const UPDATED_ROWS: &[&str] = &["1\ta2\tx", "3\tc2\tz", "4\td2\ty", "5\te\tz"];

const TABLES: &[Written] = &[
    Written {
        name: "appended",
        what: "appended to twice",
        statements: "CREATE TABLE {t} (id INT, v STRING); INSERT INTO {t} VALUES (1, 'a'), (2, 'b'); INSERT INTO {t} VALUES (3, 'c');",
        rows: &["1\ta", "2\tb", "3\tc"],
    },
    Written {
        name: "appended_v3",
        what: "the same in format 3",
        statements: "CREATE TABLE {t} (id INT, v STRING) WITH ('format-version' = '3'); INSERT INTO {t} VALUES (1, 'a'), (2, 'b'); INSERT INTO {t} VALUES (3, 'c');",
        rows: &["1\ta", "2\tb", "3\tc"],
    },
    partitioned!("by_identity", "s, day_"),
    partitioned!("by_bucket_long", "bucket(4, id)"),
    partitioned!("by_bucket_string", "bucket(4, s)"),
    partitioned!("by_bucket_decimal", "bucket(4, d)"),
    partitioned!("by_bucket_ts", "bucket(4, ts)"),
    partitioned!("by_truncate_long", "truncate(10, id)"),
    partitioned!("by_truncate_string", "truncate(3, s)"),
    partitioned!("by_truncate_decimal", "truncate(100, d)"),
    partitioned!("by_years", "years(day_)"),
    partitioned!("by_months", "months(ts)"),
    partitioned!("by_days", "days(ltz)"),
    partitioned!("by_hours", "hours(ts)"),
    Written { name: "updated", what: "updated and deleted from", statements: UPDATED, rows: UPDATED_ROWS },
    Written {
        name: "updated_partitioned",
        what: "the same with partitions, between which keys move",
        statements: UPDATED,
        rows: UPDATED_ROWS,
    },
    Written {
        name: "mirrored",
        what: "a table without key that mirrors an aggregate",
        statements: "CREATE TABLE {t} (k STRING, n BIGINT);
CREATE TEMPORARY TABLE {t}_in (k STRING) WITH ('connector' = 'values', 'rows' = '[[\"a\"],[\"b\"],[\"a\"]]', 'rows-per-frame' = '1');
SET 'execution.runtime-mode' = 'streaming';
INSERT INTO {t} SELECT k, COUNT(*) FROM {t}_in GROUP BY k;
SET 'execution.runtime-mode' = 'batch';",
        rows: &["a\t2", "b\t1"],
    },
    Written {
        name: "overwritten",
        what: "with a partition overwritten",
        statements: "CREATE TABLE {t} (id INT, p STRING) PARTITIONED BY (p); INSERT INTO {t} VALUES (1, 'x'), (2, 'y'); INSERT OVERWRITE {t} VALUES (3, 'y');",
        rows: &["1\tx", "3\ty"],
    },
    Written {
        name: "evolved",
        what: "with columns added, renamed, widened and dropped between inserts",
        statements: "CREATE TABLE {t} (id INT, v INT, gone STRING, price DECIMAL(10, 2)); INSERT INTO {t} VALUES (1, 10, 'g', 1.50);
ALTER TABLE {t} MODIFY v BIGINT; ALTER TABLE {t} RENAME v TO w; ALTER TABLE {t} DROP gone; ALTER TABLE {t} MODIFY price DECIMAL(12, 2);
ALTER TABLE {t} ADD note STRING; INSERT INTO {t} VALUES (2, 20000000000, 1234567890.25, 'n');",
        rows: &["1\t10\t1.50\t\\N", "2\t20000000000\t1234567890.25\tn"],
    },
    Written {
        name: "types",
        what: "with every type",
        statements: "CREATE TABLE {t} (b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, c DECIMAL(20, 3), s STRING, x BINARY(2), y BYTES, dt DATE, ts TIMESTAMP(6), ltz TIMESTAMP_LTZ(6));
INSERT INTO {t} VALUES
 (TRUE, -1, 9223372036854775807, CAST(1.5 AS FLOAT), 0.1e0, 12345678901234567.125, 'ü ', x'00ff', x'', DATE '0001-01-01', TIMESTAMP '1960-01-02 03:04:05.678901', CAST(TIMESTAMP '2038-01-19 03:14:08' AS TIMESTAMP_LTZ(6))),
 (CAST(NULL AS BOOLEAN), CAST(NULL AS INT), CAST(NULL AS BIGINT), CAST(NULL AS FLOAT), CAST(NULL AS DOUBLE), CAST(NULL AS DECIMAL(20, 3)), CAST(NULL AS STRING), CAST(NULL AS BINARY(2)), CAST(NULL AS BYTES), CAST(NULL AS DATE), CAST(NULL AS TIMESTAMP(6)), CAST(NULL AS TIMESTAMP_LTZ(6)));",
        rows: &[
            "\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N",
            "true\t-1\t9223372036854775807\t1.5\t0.1\t12345678901234567.125\tü \t00ff\t\t0001-01-01\t1960-01-02T03:04:05.678901\t2038-01-19T03:14:08.000000Z",
        ],
    },
    Written {
        name: "nested",
        what: "with arrays, maps and rows",
        statements: "CREATE TABLE {t} (id INT, a ARRAY<INT>, m MAP<STRING, BIGINT>, r ROW<x INT, y ROW<z STRING>>);
INSERT INTO {t} VALUES (1, ARRAY[1, 2], MAP['k', CAST(7 AS BIGINT)], ROW(3, ROW('deep')));",
        rows: &["1\t[1,2]\t[[\"k\",7]]\t{\"x\":3,\"y\":{\"z\":\"deep\"}}"],
    },
];

/// Writes all tables below a folder.
fn write(root: &Path) {
    let mut script = format!(
        "CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{}');
CREATE DATABASE lake.db;
SET 'execution.runtime-mode' = 'batch';
SET 'table.dml-sync' = 'true';
SET 'table.local-time-zone' = 'UTC';\n",
        root.display()
    );
    for table in TABLES {
        let is_partitioned = table.name == "by_identity" || table.name.starts_with("by_");
        let more = if is_partitioned { PARTITIONED_ROWS } else { "" };
        let partitions = if table.name == "updated_partitioned" { "PARTITIONED BY (p)" } else { "" };
        let statements = format!("{}{more}\n", table.statements);
        let statements = statements.replace("{partitions}", partitions);
        // The temporary tables that feed it are beside it.
        script.push_str(&statements.replace("{t}", &format!("lake.db.{}", table.name)));
    }
    Lakehead::with(&["--stop-on-error"]).input(script).run().ok();
}

/// Lets an engine read all tables; returns its rows, or its refusal, by table.
fn read(engine: &str, root: &Path) -> BTreeMap<&'static str, String> {
    let out = root.join("answers");
    fs::create_dir_all(&out).unwrap();
    let mut command = Command::new("python3");
    command.arg(project().join("scripts/iceberg_readers.py")).args(["--engines", engine, "--out"]).arg(&out);
    command.args(TABLES.iter().map(|table| root.join("db").join(table.name)));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{engine}: {}", String::from_utf8_lossy(&ran.stderr));
    let answer = |table: &Written| {
        let path = out.join(format!("{}.{engine}.tsv", table.name));
        (
            table.name,
            fs::read_to_string(&path).unwrap_or_else(|_| panic!("{engine} says nothing of {}", table.name)),
        )
    };
    TABLES.iter().map(answer).collect()
}

/// Returns what a cell of the README says; panics where an engine found other rows.
fn cell(engine: &str, table: &Written, answer: &str) -> String {
    if let Some(refusal) = answer.strip_prefix("REFUSED ") {
        let said =
            refusal.split_once(": ").map_or(refusal, |(_, said)| said).lines().next().unwrap_or_default();
        return format!("refuses: {}", said.trim().replace('|', "/"));
    }
    let found: Vec<&str> = answer.lines().collect();
    assert_eq!(found, table.rows, "{engine} reads other rows of {}", table.name);
    "equal".to_owned()
}

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

const START: &str = "<!-- generated: iceberg readers -->\n";
const END: &str = "<!-- end -->";

/// Returns the README's present cells by table and engine.
fn present_cells(readme: &str) -> BTreeMap<(String, String), String> {
    let from = readme.find(START).expect("the README has a table of Iceberg readers") + START.len();
    let to = from + readme[from..].find(END).unwrap();
    let mut lines = readme[from..to].lines();
    let split = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches([' ', '|']).to_owned()).collect()
    };
    let header = lines.next().map(split).unwrap_or_default();
    let mut cells = BTreeMap::new();
    for row in lines.skip(1).map(split) {
        for (engine, cell) in header.iter().zip(&row).skip(1) {
            cells.insert((row[0].clone(), engine.clone()), cell.clone());
        }
    }
    cells
}

#[test]
fn other_engines_read_the_rows_that_we_wrote() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let path = project().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut cells = present_cells(&readme);
    let present = std::env::var(PRESENT).unwrap_or_default();
    for (engine, title) in ENGINES {
        if !present.split(',').any(|name| name == engine) {
            continue;
        }
        let answers = read(engine, folder.path());
        for table in TABLES {
            let cell = cell(engine, table, &answers[table.name]);
            cells.insert((table.what.to_owned(), title.to_owned()), cell);
        }
    }
    let mut text = String::from("| a table that is … |");
    ENGINES.iter().for_each(|(_, title)| text.push_str(&format!(" {title} |")));
    text.push_str("\n|---|---|---|---|---|---|\n");
    for table in TABLES {
        text.push_str(&format!("| {} |", table.what));
        for (_, title) in ENGINES {
            let cell =
                cells.get(&(table.what.to_owned(), title.to_owned())).map_or("not tried", String::as_str);
            text.push_str(&format!(" {cell} |"));
        }
        text.push('\n');
    }
    let from = readme.find(START).unwrap() + START.len();
    let to = from + readme[from..].find(END).unwrap();
    let expected = format!("{}{text}{}", &readme[..from], &readme[to..]);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        readme == expected,
        "the README's table of Iceberg readers is old: run BLESS=1 cargo test matrix"
    );
}
