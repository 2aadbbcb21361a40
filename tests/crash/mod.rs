//! Processes that die while they run a job: at random moments, and at every step that makes something last. Whoever starts the
//! job again gets the result of one that never was interrupted.

mod durable_steps;
mod iceberg_upserts;
mod random_kills;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What a job has written: of tables of changes what they come to, of others the lines, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Written {
    changes: Vec<BTreeMap<String, i64>>,
    lines: Vec<String>,
}

impl Written {
    /// Reads what is visible of the tables `changes` and `lines` below `out`.
    fn read(root: &Path, changes: &[&str], lines: &str) -> Written {
        let fold = |table: &&str| fold(&visible_lines(&root.join("out").join(table)));
        Written {
            changes: changes.iter().map(fold).collect(),
            lines: visible_lines(&root.join("out").join(lines)),
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.changes.iter().all(BTreeMap::is_empty)
    }

    /// Fails if there is something that an unbroken job does not write, or more often.
    fn assert_part_of(&self, whole: &Written) {
        assert!(self.lines.windows(2).all(|pair| pair[0] < pair[1]), "a line is there twice");
        let stranger = self.lines.iter().find(|line| whole.lines.binary_search(line).is_err());
        assert_eq!(stranger, None);
    }
}

/// Reads the lines of all visible files of a table, sorted. A line that is cut or a file in progress would be seen here.
fn visible_lines(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for path in files(folder).into_iter().filter(|path| !is_hidden(path)) {
        let name = path.display();
        assert!(!path.to_string_lossy().contains("inprogress"), "{name} is visible");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{name} ends within a line");
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.sort();
    lines
}

/// Returns what changes come to.
fn fold(lines: &[String]) -> BTreeMap<String, i64> {
    let mut rows: BTreeMap<String, i64> = BTreeMap::new();
    for line in lines {
        let change: Value = serde_json::from_str(line).unwrap();
        let (side, sign) = if change["op"] == "d" { ("before", -1) } else { ("after", 1) };
        *rows.entry(change[side].to_string()).or_default() += sign;
    }
    rows.retain(|_, count| *count != 0);
    rows
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

/// Returns whether a job has left a checkpoint below `checkpoints`.
fn has_checkpoint(root: &Path) -> bool {
    files(&root.join("checkpoints")).iter().any(|path| path.ends_with("_metadata"))
}
