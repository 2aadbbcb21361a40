//! Which files a table has, and how a file is opened: those whose name starts with `.` or `_` are no data, and the ending tells
//! whether a file is compressed.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FileTable;
use crate::error::{Error, FlinkClass, Result};

// Limit: folders deeper than this are taken for a loop of links.
const DEPTH_MAX: usize = 100;

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileEntry {
    /// The path as text, which errors and positions name.
    pub(super) path: Arc<str>,
    /// The size as stored.
    pub(super) size: u64,
}

/// Lists the table's files in the order of their paths.
///
/// # Errors
/// The path does not exist or a folder cannot be read.
pub(super) fn list(table: &FileTable) -> Result<Vec<FileEntry>> {
    let root = &table.root;
    let metadata = fs::metadata(root).map_err(|error| missing(root, error))?;
    let mut entries = Vec::new();
    if metadata.is_dir() {
        collect(table, root, 0, &mut entries)?;
    } else {
        // A single file is read whatever its name.
        entries.push(entry(root, metadata.len())?);
    }
    entries.sort_unstable();
    Ok(entries)
}

fn collect(table: &FileTable, folder: &Path, depth: usize, entries: &mut Vec<FileEntry>) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::validation(format!("folder '{}' is nested too deeply", folder.display()))
            .hint("Is there a link that points to a folder above itself?"));
    }
    for item in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = item.map_err(|error| unreadable(folder, error))?.path();
        if is_hidden(&path) {
            continue;
        }
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            // A file that a writer has just renamed, or a link to nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(&path, error)),
        };
        if metadata.is_dir() {
            collect(table, &path, depth + 1, entries)?;
        } else if metadata.is_file() && is_wanted(table, &path)? {
            entries.push(entry(&path, metadata.len())?);
        }
    }
    Ok(())
}

fn is_wanted(table: &FileTable, path: &Path) -> Result<bool> {
    let Some(pattern) = &table.pattern else { return Ok(true) };
    let absolute = std::path::absolute(path)?;
    Ok(absolute.to_str().is_some_and(|path| pattern.is_match(path)))
}

fn entry(path: &Path, size: u64) -> Result<FileEntry> {
    let text = path
        .to_str()
        .ok_or_else(|| Error::validation(format!("the path '{}' is not UTF-8", path.display())))?;
    Ok(FileEntry { path: Arc::from(text), size })
}

/// Returns whether a file or folder is none of the table's data.
pub(super) fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| matches!(name.as_encoded_bytes().first(), Some(b'.' | b'_')))
}

/// Returns whether a file's size is not that of its content.
pub(super) fn is_compressed(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    matches!(ending.as_deref(), Some("gz" | "gzip" | "deflate" | "zst" | "zstd"))
}

/// Opens a file at an offset of its uncompressed content.
///
/// # Errors
/// It cannot be read, or is compressed in a way that is not known.
pub(super) fn open(path: &str, offset: u64) -> Result<Box<dyn Read + Send>> {
    let file = PathBuf::from(path);
    let mut input = File::open(&file).map_err(|error| unreadable(&file, error))?;
    let ending = file.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let mut content: Box<dyn Read + Send> = match ending.as_deref() {
        Some("gz" | "gzip") => {
            Box::new(flate2::read::MultiGzDecoder::new(BufReader::with_capacity(1 << 18, input)))
        }
        Some("deflate") => Box::new(flate2::read::ZlibDecoder::new(BufReader::with_capacity(1 << 18, input))),
        Some("zst" | "zstd") => {
            Box::new(zstd::stream::read::Decoder::new(input).map_err(|error| unreadable(&file, error))?)
        }
        Some(ending @ ("bz2" | "xz" | "lz4" | "snappy")) => {
            return Err(Error::unsupported(format!(
                "file '{path}': files ending in .{ending} cannot be read"
            ))
            .hint("Files may be plain or end in .gz, .deflate or .zst."));
        }
        _ => {
            input.seek(SeekFrom::Start(offset)).map_err(|error| unreadable(&file, error))?;
            return Ok(Box::new(input));
        }
    };
    io::copy(&mut content.by_ref().take(offset), &mut io::sink())
        .map_err(|error| unreadable(&file, error))?;
    Ok(content)
}

/// Counts the line breaks before an offset; None if the file can no longer be read.
pub(super) fn count_lines(path: &str, offset: u64) -> Option<u64> {
    let mut content = open(path, 0).ok()?.take(offset);
    let mut buffer = vec![0; 1 << 16];
    let mut lines = 0;
    loop {
        match content.read(&mut buffer).ok()? {
            0 => return Some(lines),
            count => lines += memchr::memchr_iter(b'\n', &buffer[..count]).count() as u64,
        }
    }
}

/// The error of a table whose path does not exist.
fn missing(path: &Path, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotFound {
        return unreadable(path, error);
    }
    let parent = path.ancestors().skip(1).find(|folder| folder.exists() && !folder.as_os_str().is_empty());
    let hint = match parent {
        Some(parent) => {
            format!("Option 'path' leads below '{}', which exists; the rest does not.", parent.display())
        }
        None => "Option 'path' is relative to the folder in which lakehead was started.".to_owned(),
    };
    Error::not_found(format!("File {} does not exist", path.display()))
        .class(FlinkClass::FILE_NOT_FOUND)
        .hint(hint)
        .caused_by(error)
}

/// The error of a file or folder that is there but cannot be read.
pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    let text = format!("file '{}' cannot be read: {error}", path.display());
    let converted = Error::from(error);
    Error::new(converted.kind(), text).class(converted.flink_class()).caused_by(converted)
}
