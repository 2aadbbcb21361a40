//! What Flink's SQL client printed on Iceberg catalogs, compared with what we print: block by block, one block per statement.
//!
//! `golden/flink/iceberg/NAME.sql` went into the real client and `NAME.out` came out, each with an empty warehouse (`NAME_2` goes on
//! with that of `NAME_1`). Masked are the warehouse and what Flink makes up anew each time. Where we differ on purpose, `EXCEPTIONS`
//! says how and quotes the line of the README that tells the user why; `SHOW CREATE TABLE` is compared without the lines that we
//! leave out or add.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::support::run::Lakehead;
use crate::support::transcript::{Exception, blocks, compared, our_blocks, wanted_blocks};

/// The files that are compared.
const COMPARED: &[&str] = &["catalog", "ddl", "alter", "errors", "drop", "connector"];

/// Blocks that wait for what is not built yet.
const PENDING: &[(&str, usize)] = &[];

const EXCEPTIONS: &[Exception] = &[];

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
    if block.contains("<warehouse>") || block.contains("CREATE TABLE `") {
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

/// Compares as much of an error as Flink says; behind it come our place and hint.
fn like_flinks(ours: &str, wanted: &str) -> String {
    if !wanted.starts_with("[ERROR]") {
        return ours.to_owned();
    }
    ours.lines().take(wanted.lines().count()).collect::<Vec<_>>().join("\n")
}

/// Runs a file in a warehouse and returns what was different.
fn check(name: &str, warehouse: &Path) -> Vec<String> {
    let place = warehouse.display().to_string();
    let script = fs::read_to_string(folder().join(format!("{name}.sql"))).unwrap();
    let script = script.replace("<warehouse>", &place);
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
        if PENDING.contains(&(name, at)) {
            continue;
        }
        let ours = ours.replace(&place, "<warehouse>");
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
fn every_difference_on_iceberg_is_told_in_the_readme() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let reasons = EXCEPTIONS.iter().map(|exception| exception.because).chain([DEFINITIONS]);
    for reason in reasons {
        assert!(readme.contains(reason), "the README does not say: {reason}");
    }
}
