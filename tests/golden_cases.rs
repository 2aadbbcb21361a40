//! Our own golden cases: every `.q` file below `golden/` is a script with its answers, in the form of Flink's client tests:
//! a statement, what it prints, and `!ok` or `!error`. `BLESS=1 cargo test golden_cases` writes the answers anew.
//!
//! Each file runs in one session in batch mode; `#` starts a comment line between two cases.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run::{Lakehead, masked};

/// What stands before the first case.
const SETTINGS: &str =
    "SET 'execution.runtime-mode' = 'batch'; SET 'sql-client.display.print-time-cost' = 'false'; ";

/// A statement with the comments above it, as lines.
struct Case {
    comments: Vec<String>,
    statement: Vec<String>,
}

/// Reads the cases of a file; answers are skipped.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let (mut comments, mut statement) = (Vec::new(), Vec::new());
    let mut in_answer = false;
    for line in text.lines() {
        if in_answer {
            in_answer = !matches!(line, "!ok" | "!error");
        } else if statement.is_empty() && line.starts_with('#') {
            comments.push(line.to_owned());
        } else if !statement.is_empty() || !line.trim().is_empty() {
            statement.push(line.to_owned());
            if line.ends_with(';') {
                in_answer = text.contains("\n!");
                cases.push(Case {
                    comments: std::mem::take(&mut comments),
                    statement: std::mem::take(&mut statement),
                });
            }
        }
    }
    assert!(statement.is_empty(), "a statement without an end: {statement:?}");
    cases
}

/// Runs the cases of a file and writes them with their answers.
fn answered(cases: &[Case]) -> String {
    let statements: Vec<String> = cases.iter().map(|case| case.statement.join("\n")).collect();
    // One line before each statement keeps the places in errors independent of the cases before.
    let script = format!("{SETTINGS}\n{}\n", statements.join("\n"));
    let finished = Lakehead::with(&["--echo"]).input(script).run();
    let printed = masked(&finished.stdout, None);
    let mut answers = printed.split("Lakehead SQL> ").skip(1 + SETTINGS.matches(';').count());
    let mut out = String::new();
    for case in cases {
        let answer = answers.next().unwrap_or_else(|| panic!("{:?} did not run:\n{printed}", case.statement));
        let answer: Vec<&str> = answer.lines().skip(case.statement.len()).collect();
        let answer = without_lines(answer.join("\n").trim_matches('\n'));
        for comment in &case.comments {
            writeln!(out, "{comment}").unwrap();
        }
        let tag = if answer.starts_with("[ERROR]") { "!error" } else { "!ok" };
        writeln!(out, "{}\n{answer}\n{tag}\n", case.statement.join("\n")).unwrap();
    }
    assert!(answers.next().is_none(), "more answers than cases:\n{printed}");
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Leaves out the lines that show a place in the script: they move with every case that is added.
fn without_lines(answer: &str) -> String {
    let is_place = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        rest.starts_with("--> <stdin>")
            || (rest.starts_with("| ") && !line.starts_with('|'))
            || line.trim() == "|"
    };
    let lines: Vec<&str> = if answer.starts_with("[ERROR]") {
        answer.lines().filter(|line| !is_place(line)).collect()
    } else {
        answer.lines().collect()
    };
    lines.join("\n")
}

/// Finds the `.q` files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "q") {
            found.push(path);
        }
    }
}

#[test]
fn golden_cases_have_the_answers_that_are_checked_in() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), &mut paths);
    assert!(!paths.is_empty());
    for path in paths {
        let expected = fs::read_to_string(&path).unwrap();
        let actual = answered(&cases(&expected));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, actual).unwrap();
        } else {
            assert!(expected == actual, "{} is old:\n{actual}", path.display());
        }
    }
}
