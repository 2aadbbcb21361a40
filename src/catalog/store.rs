//! Where catalog definitions are kept: in memory, or as one YAML file per catalog, which outlives the session.
//!
//! A file holds the options as a flat map, as Flink writes it; a comment is kept beside them under a key of our own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, ErrorKind, FlinkClass, Result};

/// How a catalog was made: what CREATE CATALOG said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogDescriptor {
    /// WITH, as written.
    pub options: BTreeMap<String, String>,
    /// COMMENT.
    pub comment: Option<String>,
}

/// Keeps catalog definitions by name.
pub trait CatalogStore: Send + Sync + fmt::Debug {
    /// Returns the names, sorted.
    ///
    /// # Errors
    /// The store cannot be read.
    fn names(&self) -> Result<Vec<String>>;

    /// Returns a definition, or None.
    ///
    /// # Errors
    /// The store cannot be read, or what it holds is no definition.
    fn get(&self, name: &str) -> Result<Option<CatalogDescriptor>>;

    /// Stores or replaces a definition.
    ///
    /// # Errors
    /// The store cannot be written.
    fn put(&self, name: &str, descriptor: &CatalogDescriptor) -> Result<()>;

    /// Removes a definition; one that is not there is no error.
    ///
    /// # Errors
    /// The store cannot be written.
    fn remove(&self, name: &str) -> Result<()>;
}

/// Definitions that vanish with the session.
#[derive(Debug, Default)]
pub struct MemoryCatalogStore(Mutex<BTreeMap<String, CatalogDescriptor>>);

impl MemoryCatalogStore {
    fn with<T>(&self, run: impl FnOnce(&mut BTreeMap<String, CatalogDescriptor>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CatalogStore for MemoryCatalogStore {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.with(|catalogs| catalogs.keys().cloned().collect()))
    }

    fn get(&self, name: &str) -> Result<Option<CatalogDescriptor>> {
        Ok(self.with(|catalogs| catalogs.get(name).cloned()))
    }

    fn put(&self, name: &str, descriptor: &CatalogDescriptor) -> Result<()> {
        self.with(|catalogs| catalogs.insert(name.to_owned(), descriptor.clone()));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.with(|catalogs| catalogs.remove(name));
        Ok(())
    }
}

/// The key that holds the comment in a file.
const COMMENT_KEY: &str = "lakehead.catalog.comment";
const EXTENSION: &str = ".yaml";

/// Definitions in a directory.
#[derive(Debug)]
pub struct FileCatalogStore {
    directory: PathBuf,
}

impl FileCatalogStore {
    /// Opens a store; the directory is made when something is stored. `file:` in front of the path is allowed.
    pub fn new(path: &str) -> FileCatalogStore {
        let path = path.strip_prefix("file://").or_else(|| path.strip_prefix("file:")).unwrap_or(path);
        FileCatalogStore { directory: PathBuf::from(path) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{}{EXTENSION}", encode_name(name)))
    }

    /// Writes the file under another name first, so that a crash leaves the old one or the new one, never half of one.
    fn write(&self, path: &Path, text: &str) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.directory)?;
        let temporary = path.with_extension(format!("tmp-{}", uuid::Uuid::new_v4().simple()));
        let written = (|| {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            {
                // The options may hold passwords.
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            }
            let mut file = options.open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)?;
            sync_directory(&self.directory)
        })();
        if written.is_err() {
            // The first failure is what the user must see; a leftover file is only untidy.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn failed(&self, action: &str, path: &Path, cause: std::io::Error) -> Error {
        Error::new(
            ErrorKind::Rejected,
            format!("Failed to {action} file catalog store path {}", path.display()),
        )
        .class(FlinkClass::CATALOG)
        .hint("Check 'table.catalog-store.file.path' and the rights of the directory.")
        .caused_by(cause)
    }
}

impl CatalogStore for FileCatalogStore {
    fn names(&self) -> Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("list", &self.directory, error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.failed("list", &self.directory, error))?;
            let file_name = entry.file_name();
            if let Some(name) = file_name.to_str().and_then(|name| name.strip_suffix(EXTENSION)) {
                names.push(decode_name(name));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn get(&self, name: &str) -> Result<Option<CatalogDescriptor>> {
        let path = self.path(name);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("read", &path, error)),
        };
        parse_descriptor(&text).map(Some).map_err(|error| {
            Error::validation(format!(
                "the definition of catalog '{name}' in {} is not a map of texts",
                path.display()
            ))
            .class(FlinkClass::CATALOG)
            .caused_by(error)
        })
    }

    fn put(&self, name: &str, descriptor: &CatalogDescriptor) -> Result<()> {
        let path = self.path(name);
        let mut entries: BTreeMap<&str, &str> =
            descriptor.options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        if let Some(comment) = &descriptor.comment {
            entries.insert(COMMENT_KEY, comment);
        }
        let text = serde_yaml_ng::to_string(&entries).map_err(|error| {
            Error::internal("a catalog definition cannot be written as YAML").caused_by(error)
        })?;
        self.write(&path, &text).map_err(|error| self.failed("write", &path, error))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        match std::fs::remove_file(&path).and_then(|()| sync_directory(&self.directory)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.failed("remove", &path, error))
            }
            _ => Ok(()),
        }
    }
}

/// Makes a rename or removal in a directory durable, where the system can.
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { std::fs::File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Parses a file: a flat map whose values are texts, numbers or booleans.
fn parse_descriptor(text: &str) -> Result<CatalogDescriptor, Box<dyn std::error::Error + Send + Sync>> {
    use serde_yaml_ng::Value;
    let values: BTreeMap<String, Value> = serde_yaml_ng::from_str(text)?;
    let mut options = BTreeMap::new();
    for (key, value) in values {
        let value = match value {
            Value::String(text) => text,
            Value::Bool(value) => value.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null => String::new(),
            _ => return Err(format!("the value of '{key}' is not a text").into()),
        };
        options.insert(key, value);
    }
    let comment = options.remove(COMMENT_KEY);
    Ok(CatalogDescriptor { options, comment })
}

/// Writes a catalog's name as a file name: letters, digits, `_`, `-` and dots behind the first character stay, every other byte
/// becomes `%XX`.
fn encode_name(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (index, byte) in name.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && index > 0) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Reads a file name back. What is no valid `%XX` was written by someone else and stays as it is.
fn decode_name(encoded: &str) -> String {
    let bytes = encoded.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| encoded.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| encoded.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_outlive_the_store_and_names_may_hold_anything() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalogs");
        let store = FileCatalogStore::new(path.to_str().unwrap());
        assert!(store.names().unwrap().is_empty());
        let descriptor = CatalogDescriptor {
            options: BTreeMap::from([
                ("type".to_owned(), "generic_in_memory".to_owned()),
                ("n".to_owned(), "1".to_owned()),
            ]),
            comment: Some("it's: a 'comment'\n".to_owned()),
        };
        for name in ["plain", "../up", "a/b.c", "über %41", "."] {
            store.put(name, &descriptor).unwrap();
        }
        let store = FileCatalogStore::new(&format!("file://{}", path.display()));
        assert_eq!(store.names().unwrap(), [".", "../up", "a/b.c", "plain", "über %41"]);
        assert_eq!(store.get("../up").unwrap(), Some(descriptor));
        store.remove("../up").unwrap();
        store.remove("../up").unwrap();
        assert_eq!(store.get("../up").unwrap(), None);
        let outside: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert_eq!(outside.len(), 1);
    }

    #[test]
    fn a_file_that_is_no_definition_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("c.yaml"), "- a\n- b\n").unwrap();
        let store = FileCatalogStore::new(directory.path().to_str().unwrap());
        let error = store.get("c").unwrap_err();
        assert!(error.message().starts_with("the definition of catalog 'c' in "), "{}", error.message());
    }
}
