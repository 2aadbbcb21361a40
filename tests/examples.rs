//! Everything in `sql/` runs and prints what is checked in, and the README shows just that. `BLESS=1 cargo test examples` writes
//! both anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::support::run::{Finished, Lakehead, masked};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One run at a time: the quickstart's job has a name and a folder that it does not share.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs a script as if it had never been run.
fn run_anew(arguments: &[&str]) -> Finished {
    let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    // It is not there before the first run.
    let _ = fs::remove_dir_all(root().join("target/quickstart"));
    Lakehead::with(arguments).folder(root()).run()
}

fn is_blessing() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Compares a text with a file, or writes the file.
fn check(path: &Path, text: &str) {
    if is_blessing() {
        fs::write(path, text).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(expected == text, "{} is old:\n{text}", path.display());
}

/// Needs a server and never ends: `scripts/demo.sh` runs it, and `postgres::demo` that.
const DEMONSTRATED: &str = "postgres_to_iceberg.sql";

fn scripts() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("sql")).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|e| e == "sql") && !path.ends_with(DEMONSTRATED))
        .collect();
    scripts.sort();
    scripts
}

#[test]
fn scripts_print_what_is_checked_in() {
    let scripts = scripts();
    assert!(!scripts.is_empty());
    for script in scripts {
        let name = script.file_stem().unwrap().to_str().unwrap();
        let finished = run_anew(&["-f", script.to_str().unwrap()]).ok();
        check(&root().join(format!("tests/golden/examples/{name}.out")), &masked(&finished.stdout, None));
    }
}

#[test]
fn the_readme_shows_real_transcripts() {
    let quickstart = run_anew(&["--echo", "-f", "sql/quickstart.sql"]).ok();
    let error = Lakehead::with(&["--echo", "-f", "tests/golden/examples/an_error.sql"]).folder(root()).run();
    assert_eq!(error.code, 1);
    check_readme(&[
        ("sql/quickstart.sql", &masked(&quickstart.stdout, None)),
        ("an error", &masked(&error.stdout, None)),
    ]);
}

/// Compares transcripts, whose times are masked, with those of the README, or writes them into it.
pub(crate) fn check_readme(transcripts: &[(&str, &str)]) {
    // Tests that bless it do so one after the other.
    static README: Mutex<()> = Mutex::new(());
    let _one = README.lock().unwrap_or_else(PoisonError::into_inner);
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut expected = readme.clone();
    for (name, transcript) in transcripts {
        let start = format!("<!-- transcript: {name} -->\n```\n");
        let from = expected.find(&start).unwrap_or_else(|| panic!("the README has no transcript of {name}"))
            + start.len();
        let to = from + expected[from..].find("```\n<!-- end -->").unwrap();
        let text = transcript.replace("<time>", "0.01");
        expected = format!("{}{}\n{}", &expected[..from], text.trim_end(), &expected[to..]);
    }
    if is_blessing() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    assert!(readme == expected, "the README's transcripts are old: run BLESS=1 cargo test readme");
}
