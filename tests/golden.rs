//! Golden cases of our own: `golden/*.q`, in the format of the tests of Flink's client.
//!
//! A case is a statement, what it prints, and a line `!ok`, `!info` or `!error` that says of which kind that is; lines of `#`
//! between cases are comments. The cases of a file share a session. `BLESS=1` writes what is printed into the files, so a new
//! case needs no more than its statement and `!ok`. `${env:DATA}` is `golden/data`, `${env:HOME}` a new folder per file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use lakehead::sql::split;

use crate::support::run::{Lakehead, masked};

const PROMPT: &str = "Lakehead SQL> ";

/// A statement and what it prints.
#[derive(Debug, PartialEq)]
struct Case {
    /// Comments and empty lines in front of it.
    before: String,
    statement: String,
    output: String,
}

/// Reads the cases of a file, and the comments behind the last one.
fn cases(text: &str) -> (Vec<Case>, String) {
    let mut cases = Vec::new();
    let (mut before, mut statement, mut output) = (String::new(), String::new(), String::new());
    for line in text.lines() {
        let is_complete = split(&statement).last().is_some_and(|piece| piece.complete);
        if statement.is_empty() && (line.is_empty() || line.starts_with('#')) {
            before += &format!("{line}\n");
        } else if !is_complete {
            statement += &format!("{line}\n");
        } else if matches!(line, "!ok" | "!info" | "!error") {
            cases.push(Case {
                before: std::mem::take(&mut before),
                statement: std::mem::take(&mut statement),
                output: std::mem::take(&mut output),
            });
        } else {
            output += &format!("{line}\n");
        }
    }
    assert!(statement.is_empty(), "no '!ok' line after {statement}");
    (cases, before)
}

/// Says of which kind an output is.
fn tag(output: &str) -> &'static str {
    match output {
        output if output.contains("[ERROR]") => "!error",
        output if output.starts_with("[INFO]") => "!info",
        _ => "!ok",
    }
}

/// Writes the cases with what the binary printed for them.
fn answered(text: &str) -> String {
    let (cases, after) = cases(text);
    let script: String = cases.iter().map(|case| case.statement.as_str()).collect();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/data");
    let lakehead =
        Lakehead::with(&["--echo"]).variable("DATA", data.to_str().unwrap()).input(script.as_str());
    let finished = lakehead.run();
    let stdout = finished.stdout.replace(data.to_str().unwrap(), "<data>");
    let stdout = format!("\n{}", masked(&stdout, Some(lakehead.home())));
    let marker = format!("\n{PROMPT}");
    let mut blocks = stdout.split(&marker).skip(1);
    let mut answered = String::new();
    for case in &cases {
        let block = blocks.next().unwrap_or_else(|| panic!("nothing printed for {}", case.statement));
        let echoed = case.statement.lines().count();
        let output: Vec<&str> = block.lines().skip(echoed).collect();
        let output = output.join("\n");
        let output = output.trim_end();
        let newline = if output.is_empty() { "" } else { "\n" };
        let (before, statement, tag) = (&case.before, &case.statement, tag(output));
        writeln!(answered, "{before}{statement}{output}{newline}{tag}").unwrap();
    }
    assert_eq!(blocks.count(), 0, "a case holds more than one statement:\n{stdout}");
    answered + &after
}

/// Says where two texts part.
fn difference(path: &Path, expected: &str, actual: &str) -> Option<String> {
    let at = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    let at = at.or((expected != actual).then(|| expected.lines().count().min(actual.lines().count())))?;
    let part = |text: &str| text.lines().skip(at.saturating_sub(3)).take(12).collect::<Vec<_>>().join("\n");
    Some(format!(
        "{}:{}\n--- expected\n{}\n--- printed\n{}",
        path.display(),
        at + 1,
        part(expected),
        part(actual)
    ))
}

#[test]
fn statements_print_what_the_goldens_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "q"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let is_blessing = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for path in paths {
        let expected = fs::read_to_string(&path).unwrap();
        let actual = answered(&expected);
        if is_blessing {
            fs::write(&path, &actual).unwrap();
        } else {
            wrong.extend(difference(&path, &expected, &actual));
        }
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 writes what is printed)", wrong.join("\n\n"));
}

#[test]
fn a_case_ends_at_its_tag() {
    let (read, after) = cases("# why\nSELECT\n 1;\n+---+\n!ok\n\nSELECT ';';\n[ERROR]\n!error\n# end\n");
    let texts: Vec<(&str, &str, &str)> = read
        .iter()
        .map(|case| (case.before.as_str(), case.statement.as_str(), case.output.as_str()))
        .collect();
    assert_eq!(texts, [("# why\n", "SELECT\n 1;\n", "+---+\n"), ("\n", "SELECT ';';\n", "[ERROR]\n")]);
    assert_eq!(after, "# end\n");
}
