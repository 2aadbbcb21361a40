//! The history file: one line per entry, `<milliseconds>:<text>` with line breaks escaped, as Flink's client writes it.
//!
//! A file that cannot be read or written is a warning; the shell goes on without it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::Result;

// Limit: as many entries as the editor keeps; older ones stay in the file until it is twice as long.
pub(crate) const ENTRIES_MAX: usize = 10_000;

/// A history file that is appended to.
#[derive(Debug)]
pub(crate) struct HistoryFile {
    path: PathBuf,
    file: File,
}

impl HistoryFile {
    /// Opens a history file, creating it if need be, and returns it with its last entries, oldest first.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(crate) fn open(path: &Path) -> Result<(HistoryFile, Vec<String>)> {
        let file = private(OpenOptions::new().read(true).append(true).create(true)).open(path)?;
        let mut entries = read_entries(&file)?;
        let mut history = HistoryFile { path: path.to_owned(), file };
        if entries.len() > 2 * ENTRIES_MAX {
            entries.drain(..entries.len() - ENTRIES_MAX);
            history.rewrite(&entries)?;
        }
        let first = entries.len().saturating_sub(ENTRIES_MAX);
        Ok((history, entries.split_off(first)))
    }

    /// Appends an entry, which may have several lines.
    ///
    /// # Errors
    /// The file cannot be written any more.
    pub(crate) fn append(&mut self, entry: &str) -> Result<()> {
        Ok(self.file.write_all(line_of(entry).as_bytes())?)
    }

    /// Replaces the file by one that holds the given entries. The old one stays if that fails half-way.
    fn rewrite(&mut self, entries: &[String]) -> Result<()> {
        let text: String = entries.iter().map(|entry| line_of(entry)).collect();
        let draft = self.path.with_extension("tmp");
        let mut file = private(OpenOptions::new().write(true).create(true).truncate(true)).open(&draft)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&draft, &self.path)?;
        self.file = OpenOptions::new().append(true).open(&self.path)?;
        Ok(())
    }
}

/// Lets only the owner read a file that is created: statements may hold passwords.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Reads all entries. Bytes that are not UTF-8 are replaced, and lines of other programs are taken as they are.
fn read_entries(file: &File) -> Result<Vec<String>> {
    let lines = BufReader::new(file).split(b'\n');
    let entries = lines.map(|line| Ok(entry_of(&String::from_utf8_lossy(&line?))));
    entries
        .filter(|entry| entry.as_ref().is_ok_and(|entry: &String| !entry.is_empty()) || entry.is_err())
        .collect()
}

/// Returns the line of an entry.
fn line_of(entry: &str) -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    let escaped = entry.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    format!("{millis}:{escaped}\n")
}

/// Returns the entry of a line.
fn entry_of(line: &str) -> String {
    let text = match line.split_once(':') {
        Some((millis, text)) if !millis.is_empty() && millis.bytes().all(|byte| byte.is_ascii_digit()) => {
            text
        }
        _ => line,
    };
    let mut entry = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => entry.push('\n'),
                Some('r') => entry.push('\r'),
                Some(other) => entry.push(other),
                None => entry.push('\\'),
            },
            other => entry.push(other),
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_several_lines_come_back_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        let (mut history, entries) = HistoryFile::open(&path).unwrap();
        assert!(entries.is_empty());
        history.append("SELECT 1;").unwrap();
        history.append("SELECT\n  '\\n';").unwrap();
        let (_, entries) = HistoryFile::open(&path).unwrap();
        assert_eq!(entries, ["SELECT 1;", "SELECT\n  '\\n';"]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        HistoryFile::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(HistoryFile::open(dir.path()).is_err());
    }

    #[test]
    fn a_file_that_grew_too_long_is_cut_and_lines_of_others_are_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history");
        let lines: String = (0..=2 * ENTRIES_MAX).map(|n| format!("SELECT {n};\n")).collect();
        std::fs::write(&path, lines).unwrap();
        let (_, entries) = HistoryFile::open(&path).unwrap();
        assert_eq!(entries.len(), ENTRIES_MAX);
        assert_eq!(entries.last().map(String::as_str), Some("SELECT 20000;"));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), ENTRIES_MAX);
    }
}
