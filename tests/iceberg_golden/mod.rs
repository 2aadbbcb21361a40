//! What Flink's SQL client printed on Iceberg catalogs, compared with what we print: block by block, one block per statement.
//!
//! `golden/flink/iceberg/NAME.sql` went into the real client and `NAME.out` came out, each with an empty warehouse (`NAME_2` goes on
//! with that of `NAME_1`). Masked are the warehouse and what Flink makes up anew each time. Where we differ on purpose, `EXCEPTIONS`
//! says how and quotes the line of the README that tells the user why; `SHOW CREATE TABLE` is compared without the lines that we
//! leave out or add.

mod exceptions;

use std::fs;
use std::path::{Path, PathBuf};

use chrono::DateTime;
use regex::Regex;
use tempfile::TempDir;

use self::exceptions::EXCEPTIONS;
use crate::support::run::Lakehead;
use crate::support::transcript::{blocks, compared, our_blocks, wanted_blocks};

/// The files that are compared, in order.
const COMPARED: &[&str] = &[
    "catalog",
    "ddl",
    "alter",
    "errors",
    "write",
    "overwrite",
    "metadata",
    "time_travel_1",
    "time_travel_2",
    "stream_read",
    "nan",
    "drop",
    "connector",
];

/// Words of the README's line on `SHOW CREATE TABLE`.
const DEFINITIONS: &str = "`SHOW CREATE TABLE` of an Iceberg table";

/// What our tables have and Flink's do not.
const OUR_PROPERTIES: &[&str] =
    &["'write.metadata.delete-after-commit.enabled'", "'write.metadata.previous-versions-max'"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink/iceberg")
}

/// Brings a block into a form in which equal answers are equal texts.
fn shape(block: &str, statement: &str) -> String {
    let mut lines: Vec<String> = block.lines().map(str::to_owned).collect();
    // Ids have more or fewer digits.
    if ["<warehouse>", "CREATE TABLE `", "<id>"].iter().any(|part| block.contains(part)) {
        lines = lines.into_iter().filter(|line| !is_left_out(line)).map(|line| narrowed(&line)).collect();
    }
    // Without ORDER BY rows come in the order of files.
    if statement.starts_with("SELECT") && !statement.contains("ORDER BY") && !block.starts_with("[ERROR]") {
        lines.sort();
    }
    lines.join("\n").replace(",\n)", "\n)")
}

fn is_left_out(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("'src-catalog' =")
        || OUR_PROPERTIES.iter().any(|property| line.starts_with(property))
        || line == "'format-version' = '3',"
}

/// Takes the widths out of a line, and the name that Flink rolls for a key.
fn narrowed(line: &str) -> String {
    let mut narrow = String::with_capacity(line.len());
    for character in line.chars() {
        let repeats = matches!(character, ' ' | '-') && narrow.ends_with(character);
        if !repeats {
            narrow.push(character);
        }
    }
    match narrow.split_once("CONSTRAINT `") {
        Some((front, rest)) => {
            let (_, behind) = rest.split_once('`').unwrap();
            format!("{front}CONSTRAINT `PK`{behind}")
        }
        None => narrow,
    }
}

/// Puts the snapshots of table `db.t` in the place of `<snapshot-N>`, `<time-N>` and `<millis-N>`.
fn filled(script: String, warehouse: &Path) -> String {
    if !Regex::new("<(snapshot|time|millis)-[0-9]>").unwrap().is_match(&script) {
        return script;
    }
    let metadata = warehouse.join("db/t/metadata");
    let version = fs::read_to_string(metadata.join("version-hint.text")).unwrap();
    let json = fs::read_to_string(metadata.join(format!("v{}.metadata.json", version.trim()))).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut snapshots = json["snapshots"].as_array().unwrap().clone();
    snapshots.sort_by_key(|snapshot| snapshot["sequence-number"].as_i64());
    snapshots.iter().zip(1..).fold(script, |script, (snapshot, number)| {
        let millis = snapshot["timestamp-ms"].as_i64().unwrap();
        let time = DateTime::from_timestamp_millis(millis).unwrap().format("%Y-%m-%d %H:%M:%S%.3f");
        script
            .replace(&format!("<snapshot-{number}>"), &snapshot["snapshot-id"].to_string())
            .replace(&format!("<millis-{number}>"), &millis.to_string())
            .replace(&format!("<time-{number}>"), &time.to_string())
    })
}

/// Masks ids of snapshots and times of commits, in cells as wide as they are.
fn masked(text: &str) -> String {
    let patterns = [
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
        (r"\b[0-9]{17,19}\b", "<id>"),
        (r"\b20[2-9][0-9]-[0-9]{2}-[0-9]{2} [0-9:]{8}\.[0-9]{3,6}\b", "<time>"),
    ];
    patterns.iter().fold(text.to_owned(), |text, (pattern, name)| {
        let found = Regex::new(&format!(r"(\| +)?({pattern})")).unwrap();
        let masked = found.replace_all(&text, |found: &regex::Captures<'_>| match found.get(1) {
            // What checkpoint a batch job has.
            _ if &found[2] == "9223372036854775807" => found[0].to_owned(),
            Some(_) => format!("|{name:>width$}", width = found[0].chars().count() - 1),
            None => (*name).to_owned(),
        });
        masked.into_owned()
    })
}

/// Compares as much of an error as Flink says; behind it come our place and hint.
fn like_flinks(ours: &str, wanted: &str) -> String {
    if !wanted.starts_with("[ERROR]") {
        return ours.to_owned();
    }
    ours.lines().take(wanted.lines().count()).map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Runs a file in a warehouse and returns what was different.
fn check(name: &str, warehouse: &Path) -> Vec<String> {
    let place = warehouse.display().to_string();
    let script = fs::read_to_string(folder().join(format!("{name}.sql"))).unwrap();
    let script = filled(script.replace("<warehouse>", &place), warehouse);
    let output = Lakehead::with(&["--echo", "--flink-exit-code"]).input(script.clone()).run();
    if output.code != 0 {
        return vec![format!("{name}: exit code {}\n{}", output.code, output.stderr)];
    }
    let ours = our_blocks(&output.stdout, &script);
    let expected = fs::read_to_string(folder().join(format!("{name}.out"))).unwrap();
    let wanted = wanted_blocks(blocks(&expected, "Flink SQL> "), EXCEPTIONS, name);
    let statements = lakehead::sql::split(&script);
    let mut wrong = Vec::new();
    for (at, ((wanted, ours), statement)) in wanted.iter().zip(&ours).zip(&statements).enumerate() {
        let ours = masked(&ours.replace(&place, "<warehouse>"));
        let shown = shape(&without_notes(&like_flinks(&ours, wanted)), &statement.text);
        let wanted = shape(wanted, &statement.text);
        if compared_whole(&wanted) != compared_whole(&shown) {
            wrong.push(format!(
                "{name}, block {at}: {}\n--- Flink\n{wanted}\n--- ours\n{ours}",
                statement.text
            ));
        }
    }
    if wanted.len() != ours.len() {
        wrong.push(format!("{name}: {} blocks expected, {} printed", wanted.len(), ours.len()));
    }
    wrong
}

fn compared_whole(block: &str) -> String {
    if block.starts_with("[ERROR]") { block.to_owned() } else { compared(block, "iceberg") }
}

/// Our notes and warnings stand beside Flink's answer.
fn without_notes(block: &str) -> String {
    let is_ours = |line: &&str| !line.starts_with("[WARNING]") && !line.starts_with("note:");
    block.lines().filter(is_ours).collect::<Vec<_>>().join("\n")
}

#[test]
fn iceberg_catalogs_answer_as_flinks_do() {
    let mut warehouse = TempDir::new().unwrap();
    let mut wrong = Vec::new();
    for name in COMPARED {
        if !name.ends_with("_2") {
            warehouse = TempDir::new().unwrap();
            fs::remove_dir(warehouse.path()).unwrap();
        }
        wrong.extend(check(name, warehouse.path()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_golden_of_iceberg_is_forgotten() {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let mut known = COMPARED.to_vec();
    known.sort_unstable();
    assert_eq!(names, known);
}

#[test]
fn every_difference_on_iceberg_is_told_in_the_readme() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let reasons = EXCEPTIONS.iter().map(|exception| exception.because).chain([DEFINITIONS]);
    for reason in reasons {
        assert!(readme.contains(reason), "the README does not say: {reason}");
    }
}
