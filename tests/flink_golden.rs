//! What Flink's SQL client printed, compared with what we print: block by block, one block per statement.
//!
//! `golden/flink/NAME.sql` went into the real client and `NAME.out` came out; `script_*` ran with `-f`, the others on standard
//! input. Of an `[ERROR]` the line and the first line of its reason count. Job ids, times and the product's name are masked.
//! Where we differ on purpose, `EXCEPTIONS` says how and quotes the line of the README that tells the user why.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::Lakehead;

/// A block where we differ on purpose.
struct Exception {
    /// The golden.
    file: &'static str,
    /// The number of the block in it, from 0.
    block: usize,
    /// What we print instead: no block, one or several.
    ours: &'static [&'static str],
    /// Words of the line in the README's table "differs from Flink".
    because: &'static str,
}

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
            "[ERROR] Could not execute SQL statement. Reason:\njava.lang.UnsupportedOperationException: catalog 'x' cannot be created: type 'iceberg' is not supported yet",
        ],
        because: "Catalog types",
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

/// Cuts a transcript into blocks, one per prompt, without what follows the last statement.
fn blocks(transcript: &str, prompt: &str) -> Vec<String> {
    let text = format!("\n{transcript}");
    let marker = format!("\n{prompt}");
    let mut blocks: Vec<String> = text.split(marker.as_str()).skip(1).map(str::to_owned).collect();
    if let Some(last) = blocks.last_mut()
        && let Some(end) = last.find("\nShutting down the session...")
    {
        last.truncate(end);
    }
    blocks.into_iter().map(|block| masked(block.trim_end())).filter(|block| !block.is_empty()).collect()
}

/// Masks what differs from run to run.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.replace("Flink SQL CLI", "SQL CLI").replace("Lakehead SQL CLI", "SQL CLI");
        let line = match line.rfind('(') {
            Some(at) if line.ends_with(" seconds)") => format!("{}(<time> seconds)", &line[..at]),
            _ => line,
        };
        out.push_str(&line);
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Puts `<job-id>` for 32 hex digits.
fn without_job_ids(line: String) -> String {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let is_id = |word: &&str| word.len() == 32 && word.chars().all(is_digit);
    match line.split(|c| !is_digit(c)).find(is_id) {
        Some(id) => line.replace(id, "<job-id>"),
        None => line,
    }
}

/// Returns what of a block is compared.
fn compared(block: &str, file: &str) -> String {
    let block: String = block.lines().map(|line| without_job_ids(line.to_owned()) + "\n").collect();
    let mut lines = block.lines();
    if block.starts_with("[ERROR]") {
        return format!("{}\n{}", lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    }
    if file == "help" {
        // The commands and their order are Flink's, what is said of them is ours.
        let commands = lines.filter_map(|line| line.split_once("\t\t").map(|(command, _)| command));
        return commands.collect::<Vec<_>>().join("\n");
    }
    // Our notes and warnings stand beside Flink's answer.
    lines
        .filter(|line| !line.starts_with("[WARNING]") && !line.starts_with("note:"))
        // What the connector `print` writes stands in a log of Flink's.
        .filter(|line| !line.starts_with("+I["))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Takes the echoed statement off the front of a block.
fn without_echo(block: &str, statement_lines: &[String]) -> String {
    let mut rest: Vec<&str> = block.lines().collect();
    let echoed = rest.iter().zip(statement_lines).take_while(|(a, b)| a.trim_end() == b.trim_end()).count();
    rest.drain(..echoed);
    rest.join("\n")
}

/// Cuts our transcript into blocks and takes the echoed statements off.
fn our_blocks(transcript: &str, script: &str) -> Vec<String> {
    let echo = |piece: &lakehead::sql::Piece| -> Vec<String> {
        let prompts = std::iter::once("").chain(std::iter::repeat("> "));
        prompts.zip(piece.text.lines()).map(|(prompt, line)| format!("{prompt}{line}")).collect()
    };
    let echoes: Vec<Vec<String>> = lakehead::sql::split(script).iter().map(echo).collect();
    blocks(transcript, "Lakehead SQL> ")
        .iter()
        .zip(&echoes)
        .map(|(block, echo)| without_echo(block, echo))
        .collect()
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
    let mut wanted: Vec<String> = Vec::new();
    let expected = blocks(&expected, "Flink SQL> ");
    let block_count = expected.len();
    for (at, block) in expected.into_iter().enumerate() {
        match EXCEPTIONS.iter().find(|exception| exception.file == name && exception.block == at) {
            Some(exception) => wanted.extend(exception.ours.iter().map(|ours| (*ours).to_owned())),
            None => wanted.push(block),
        }
    }
    // What Flink dropped at the end has no block of its own.
    let beyond =
        EXCEPTIONS.iter().filter(|exception| exception.file == name && exception.block >= block_count);
    wanted.extend(beyond.flat_map(|exception| exception.ours).map(|ours| (*ours).to_owned()));
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
