//! The options of a table or catalog: what a factory takes out of `WITH (…)`, and what it left over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ConfigOption, OptionDef, OptionValue};
use crate::error::{Error, Result};

/// The entries of `WITH (…)` with hints merged in. Reading an option marks it as known; what nobody read is an error.
#[derive(Debug)]
pub struct TableOptions {
    identifier: String,
    entries: BTreeMap<String, String>,
    read: Mutex<BTreeSet<String>>,
    supported: Mutex<BTreeSet<String>>,
}

/// Locks a set of keys; a panic elsewhere has left it whole.
fn locked(keys: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TableOptions {
    /// Creates the options of the connector or format named `identifier`; references such as `${env:X}` must be resolved.
    pub fn new(identifier: impl Into<String>, entries: BTreeMap<String, String>) -> TableOptions {
        TableOptions {
            identifier: identifier.into(),
            entries,
            read: Mutex::default(),
            supported: Mutex::default(),
        }
    }

    /// Returns the value of an option, or its default.
    ///
    /// # Errors
    /// The value does not parse, or a required option is missing.
    pub fn get_optional<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<Option<T>> {
        self.declare_key(option.key());
        let given = std::iter::once(&option.key()).chain(option.old_keys()).find_map(|key| {
            let value = self.entries.get(*key)?;
            locked(&self.read).insert((*key).to_owned());
            Some(value.as_str())
        });
        given.or(option.default_text()).map(|text| option.parse(text)).transpose()
    }

    /// Returns the value of an option that has a default or is required.
    ///
    /// # Errors
    /// The value does not parse, or the option is missing and has no default.
    pub fn get<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<T> {
        self.get_optional(option)?.ok_or_else(|| missing_options(&[option.key()]))
    }

    /// Returns a raw entry and marks it as read.
    pub fn raw(&self, key: &str) -> Option<&str> {
        let value = self.entries.get(key)?;
        locked(&self.read).insert(key.to_owned());
        Some(value)
    }

    /// Returns all entries whose key starts with `prefix`, the prefix cut off, and marks them as read.
    pub fn with_prefix(&self, prefix: &str) -> BTreeMap<String, String> {
        let matching =
            self.entries.iter().filter_map(|(key, value)| Some((key, key.strip_prefix(prefix)?, value)));
        matching
            .map(|(key, rest, value)| {
                locked(&self.read).insert(key.clone());
                (rest.to_owned(), value.clone())
            })
            .collect()
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Marks options as supported without reading them, so that errors list them.
    pub fn declare(&self, options: &[&'static dyn OptionDef]) {
        locked(&self.supported).extend(options.iter().map(|option| option.key().to_owned()));
    }

    /// Marks a key that depends on the table, such as `fields.a.kind`, as supported.
    pub fn declare_key(&self, key: &str) {
        if !locked(&self.supported).contains(key) {
            locked(&self.supported).insert(key.to_owned());
        }
    }

    /// Fails if a required option of the list is missing; all missing ones are named.
    ///
    /// # Errors
    /// At least one is missing.
    pub fn require(&self, options: &[&'static dyn OptionDef]) -> Result<()> {
        let has = |option: &&&'static dyn OptionDef| {
            std::iter::once(&option.key()).chain(option.old_keys()).any(|key| self.entries.contains_key(*key))
        };
        let missing: Vec<&str> = options
            .iter()
            .filter(|option| option.is_required() && !has(option))
            .map(|option| option.key())
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(missing_options(&missing)) }
    }

    /// Fails if an entry was not read.
    ///
    /// # Errors
    /// Names each entry that nobody read, all that are supported, and the nearest spelling.
    pub fn reject_unknown(&self) -> Result<()> {
        let read = locked(&self.read);
        let unknown: Vec<&str> =
            self.entries.keys().filter(|key| !read.contains(*key)).map(String::as_str).collect();
        let Some(first) = unknown.first() else { return Ok(()) };
        let supported = locked(&self.supported);
        let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
        let error = Error::validation(format!(
            "Unsupported options found for '{}'.\n\nUnsupported options:\n\n{}\n\nSupported options:\n\n{}",
            self.identifier,
            unknown.join("\n"),
            supported.join("\n")
        ));
        Err(match nearest(first, supported.iter().copied()) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        })
    }
}

/// Builds Flink's error for options that must be given.
fn missing_options(keys: &[&str]) -> Error {
    Error::validation(format!(
        "One or more required options are missing.\n\nMissing required options are:\n\n{}",
        keys.join("\n")
    ))
}

/// Returns the candidate with the smallest edit distance, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    closest(word, candidates, |candidate| 1 + candidate.len().min(word.len()) / 4)
}

/// Returns the candidate that is at most so many single-character edits away.
pub fn nearest_within<'a>(
    edits: usize,
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    closest(word, candidates, |_| edits)
}

/// Returns the candidate with the smallest edit distance among those that are at most so many edits away.
fn closest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
    edits_max: impl Fn(&str) -> usize,
) -> Option<&'a str> {
    candidates
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= edits_max(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the number of single-character edits between two words, case ignored.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substitution = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substitution.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// Replaces `${env:NAME}` and `${file:/path}` in a value; the rest stays as written. A file's last line break is not part of it.
///
/// # Errors
/// The variable is not set, the file cannot be read, or a `${` has no end. The error never shows what was read.
pub fn resolve_references(key: &str, value: &str) -> Result<String> {
    let mut resolved = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        resolved.push_str(&rest[..start]);
        let body = &rest[start + 2..];
        let Some((kind, _)) = body.split_once(':').filter(|(kind, _)| matches!(*kind, "env" | "file")) else {
            resolved.push_str("${");
            rest = body;
            continue;
        };
        let Some(end) = body.find('}') else {
            return Err(Error::validation(format!(
                "the value of option '{key}' has '${{{kind}:' without a closing '}}'"
            )));
        };
        let name = &body[kind.len() + 1..end];
        resolved.push_str(&if kind == "env" { read_variable(key, name)? } else { read_file(key, name)? });
        rest = &body[end + 1..];
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// Reads an environment variable for an option.
fn read_variable(key: &str, name: &str) -> Result<String> {
    std::env::var(name).map_err(|_| {
        Error::validation(format!("environment variable '{name}' is not set; option '{key}' refers to it"))
            .hint(format!(
                "Set it before starting lakehead, or write the value instead of '${{env:{name}}}'."
            ))
    })
}

/// Reads a file for an option.
fn read_file(key: &str, path: &str) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::validation(format!("file '{path}' cannot be read; option '{key}' refers to it"))
            .caused_by(error)
    })?;
    Ok(text
        .strip_suffix('\n')
        .map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text))
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: ConfigOption<u64> = ConfigOption::optional("number-of-rows", "Rows.");
    const HOST: ConfigOption<String> = ConfigOption::required("hostname", "Host.");

    fn options(entries: &[(&str, &str)]) -> TableOptions {
        TableOptions::new(
            "x",
            entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        )
    }

    #[test]
    fn what_nobody_read_is_an_error_with_the_nearest_name() {
        let options = options(&[("hostnme", "a"), ("number-of-rows", "3")]);
        assert_eq!(options.get_optional(&ROWS).unwrap(), Some(3));
        assert!(
            options.get(&HOST).unwrap_err().message().contains("Missing required options are:\n\nhostname")
        );
        let error = options.reject_unknown().unwrap_err();
        assert!(error.message().starts_with("Unsupported options found for 'x'."));
        assert_eq!(error.hint_text(), Some("Did you mean 'hostname'?"));
    }

    #[test]
    fn references_are_read_and_other_dollars_stay() {
        assert_eq!(resolve_references("k", "a${b}$").unwrap(), "a${b}$");
        assert!(resolve_references("k", "${env:LAKEHEAD_NO_SUCH_VARIABLE}").is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cret\n").unwrap();
        assert_eq!(
            resolve_references("k", &format!("<${{file:{}}}>", file.path().display())).unwrap(),
            "<s3cret>"
        );
    }
}
