//! What Flink's SQL client printed, compared with what we print: block by block, one block per statement.
//!
//! `golden/flink/NAME.sql` went into the real client and `NAME.out` came out; `script_*` ran with `-f`, the others on standard
//! input. Of an `[ERROR]` the line and the first line of its reason count. Job ids, times and the product's name are masked.
//! Where we differ on purpose, `EXCEPTIONS` says how and quotes the line of the README that tells the user why.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::Lakehead;
use crate::support::transcript::{Exception, blocks, compared, our_blocks, wanted_blocks};

const DONE: &str = "[INFO] Execute statement succeeded.";

const EXCEPTIONS: &[Exception] = &[
    Exception {
        file: "splitting",
        block: 3,
        ours: &[
            "+-----+\n|   x |\n+-----+\n| a;b |\n+-----+\n1 row in set",
            "+------+\n|    y |\n+------+\n| it's |\n+------+\n1 row in set",
        ],
        because: "Several statements on one line",
    },
    Exception { file: "splitting", block: 6, ours: &[], because: "`;;` is nothing" },
    Exception {
        file: "splitting",
        block: 13,
        ours: &[
            "+-------------------------+\n| no_semicolon_at_the_end |\n+-------------------------+\n|                       6 |\n+-------------------------+\n1 row in set",
        ],
        because: "A last statement without `;`",
    },
    Exception { file: "jars", block: 1, ours: &[DONE], because: "`ADD JAR`" },
    Exception { file: "jars", block: 2, ours: &[DONE], because: "`ADD JAR`" },
    Exception { file: "jars", block: 3, ours: &[DONE], because: "`ADD JAR`" },
    Exception {
        file: "jars",
        block: 4,
        ours: &[
            "+-------------------+\n|              jars |\n+-------------------+\n| hdfs://nope/a.jar |\n+-------------------+\n1 row in set",
        ],
        because: "`ADD JAR`",
    },
    Exception {
        file: "catalogs",
        block: 13,
        ours: &[
            "+-----------+------------+\n| info name | info value |\n+-----------+------------+\n|      name |         d1 |\n|   catalog |          c |\n|   comment |      first |\n|  option:k |          v |\n+-----------+------------+\n4 rows in set",
        ],
        because: "`DESCRIBE DATABASE`",
    },
    Exception {
        file: "catalogs",
        block: 28,
        ours: &[
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.IllegalArgumentException: Cannot create catalog x, catalog-type is missing: it is hadoop or jdbc (hive, which Flink takes here, rest and nessie are not supported yet)",
        ],
        because: "Iceberg catalogs without `catalog-type`",
    },
    Exception {
        file: "tableau_batch",
        block: 11,
        ours: &[
            "+-----------+----------+\n|         a |        b |\n+-----------+----------+\n| two\nlines | tab\there |\n+-----------+----------+\n1 row in set (<time> seconds)",
        ],
        because: "Tabs in statements",
    },
    Exception {
        file: "tableau_streaming",
        block: 9,
        ours: &[
            "+----+-------------+--------------------------------+--------------------------------+\n| op |           k |                              v |                             v0 |\n+----+-------------+--------------------------------+--------------------------------+\n| +I |           1 |                             l1 |                         <NULL> |\n| +I |           2 |                             l2 |                         <NULL> |\n| -D |           1 |                             l1 |                         <NULL> |\n| +I |           1 |                             l1 |                             r1 |\n| +I |           1 |                             l1 |                             r2 |\n+----+-------------+--------------------------------+--------------------------------+\nReceived a total of 5 rows (<time> seconds)",
        ],
        because: "Rows of several tables",
    },
    Exception {
        file: "script_result_mode",
        block: 0,
        ours: &[
            "+----+-------------+\n| op |      EXPR$0 |\n+----+-------------+\n| +I |           1 |\n+----+-------------+\nReceived a total of 1 row (<time> seconds)",
            "+----------------------+\n| current catalog name |\n+----------------------+\n|      default_catalog |\n+----------------------+\n1 row in set",
        ],
        because: "Result mode in scripts",
    },
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink")
}

fn check(name: &str) -> Result<(), String> {
    let script = folder().join(format!("{name}.sql"));
    let expected = fs::read_to_string(folder().join(format!("{name}.out"))).unwrap();
    let lakehead = Lakehead::with(&["--echo", "--flink-exit-code"]);
    let output = if name.starts_with("script_") {
        lakehead.and(&["-f", script.to_str().unwrap()]).run()
    } else {
        lakehead.input(fs::read(&script).unwrap()).run()
    };
    if output.code != 0 {
        return Err(format!("{name}: exit code {}\n{}", output.code, output.stderr));
    }
    let ours = our_blocks(&output.stdout, &fs::read_to_string(&script).unwrap());
    let wanted = wanted_blocks(blocks(&expected, "Flink SQL> "), EXCEPTIONS, name);
    for (at, (wanted, ours)) in wanted.iter().zip(&ours).enumerate() {
        let (wanted, ours) = (compared(wanted, name), compared(ours, name));
        if wanted != ours {
            return Err(format!("{name}, block {at}:\n--- Flink\n{wanted}\n--- ours\n{ours}"));
        }
    }
    if wanted.len() != ours.len() {
        return Err(format!(
            "{name}: {} blocks expected, {} printed\n{}",
            wanted.len(),
            ours.len(),
            output.stdout
        ));
    }
    Ok(())
}

#[test]
fn the_client_answers_as_flinks_does() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 14, "goldens are missing: {names:?}");
    let wrong: Vec<String> = names.iter().filter_map(|name| check(name).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_difference_is_told_in_the_readme() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    for exception in EXCEPTIONS {
        assert!(readme.contains(exception.because), "the README does not say: {}", exception.because);
    }
}
