//! Paths: from the texts that options hold, and from and to partition values.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, FlinkClass, Result};

/// Characters that stand as `%XX` in the folder names of partitions, as in Hive.
const ESCAPED: &[u8] = b"\"#%'*/:=?\\{}[]^\x7f";

/// Turns the option `path` into a local path: plain, relative to the working folder, or a `file:` URI.
///
/// # Errors
/// Another scheme, or an empty path.
pub(super) fn local_path(text: &str) -> Result<PathBuf> {
    let path = match text.split_once(':') {
        Some(("file", rest)) => unescape(rest.strip_prefix("//").unwrap_or(rest)),
        Some((scheme, rest)) if rest.starts_with("//") => {
            return Err(Error::unsupported(format!(
                "Could not find a file system implementation for scheme '{scheme}'."
            ))
            .hint("Only local files can be read and written: '/folder', 'folder' or 'file:///folder'."));
        }
        _ => text.to_owned(),
    };
    if path.is_empty() {
        return Err(Error::validation("Can not create a Path from an empty string")
            .class(FlinkClass::ILLEGAL_ARGUMENT));
    }
    Ok(PathBuf::from(path))
}

/// Returns the values that the folders between `root` and a file give the partition keys; None where a key has no folder.
pub(super) fn partition_values<'k>(
    root: &Path,
    file: &Path,
    keys: impl Iterator<Item = &'k str>,
) -> Vec<Option<String>> {
    let folders: Vec<(String, String)> = file
        .parent()
        .and_then(|folder| folder.strip_prefix(root).ok())
        .into_iter()
        .flat_map(Path::components)
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str()?.split_once('='),
            _ => None,
        })
        .map(|(key, value)| (unescape(key), unescape(value)))
        .collect();
    let value = |key: &str| folders.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    keys.map(value).collect()
}

/// Appends `key=value` as a folder name.
pub(super) fn push_partition(key: &str, value: &str, out: &mut String) {
    escape(key, out);
    out.push('=');
    escape(value, out);
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte.is_ascii() && (byte < 0x20 || ESCAPED.contains(&byte)) => {
                out.push_str(&format!("%{byte:02X}"));
            }
            _ => out.push(character),
        }
    }
}

fn unescape(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_be_plain_or_file_uris() {
        assert_eq!(local_path("file:///tmp/a%20b").unwrap(), PathBuf::from("/tmp/a b"));
        assert_eq!(local_path("file:/tmp/a").unwrap(), PathBuf::from("/tmp/a"));
        assert_eq!(local_path("data/a%20b").unwrap(), PathBuf::from("data/a%20b"));
        let error = local_path("s3://bucket/x").unwrap_err();
        assert_eq!(error.message(), "Could not find a file system implementation for scheme 's3'.");
        assert!(local_path("").is_err());
    }

    #[test]
    fn partition_values_survive_folder_names() {
        let mut name = String::new();
        push_partition("k", "a/b=c:d%é ", &mut name);
        assert_eq!(name, "k=a%2Fb%3Dc%3Ad%25é ");
        let file = Path::new("/t").join(&name).join("x=1").join("part");
        let values = partition_values(Path::new("/t"), &file, ["x", "k", "z"].into_iter());
        assert_eq!(values, [Some("1".to_owned()), Some("a/b=c:d%é ".to_owned()), None]);
    }
}
