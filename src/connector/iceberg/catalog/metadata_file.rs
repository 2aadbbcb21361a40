//! Metadata files: read with errors that name them, written as JSON or gzip of it.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use iceberg::spec::TableMetadata;

use super::unsupported_metadata::{Reason, reason, width_reason};
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, Result};

/// The property that says how metadata files are compressed.
const COMPRESSION: &str = "write.metadata.compression-codec";

/// The property by which a table's metadata lies elsewhere.
pub(super) const METADATA_PATH: &str = "write.metadata.path";

/// The newest format version that is read.
const FORMAT_VERSION_MAX: u64 = 3;

/// Returns the folder of a table's metadata, its manifests among it.
pub(in crate::connector::iceberg) fn metadata_folder(metadata: &TableMetadata) -> String {
    match metadata.properties().get(METADATA_PATH) {
        Some(folder) => folder.trim_end_matches('/').to_owned(),
        None => format!("{}/metadata", metadata.location().trim_end_matches('/')),
    }
}

/// How a metadata file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    /// Not at all.
    Plain,
    /// By gzip.
    Gzip,
}

impl Codec {
    /// Returns the codec that a table's properties name.
    ///
    /// # Errors
    /// There is no such codec.
    pub(super) fn of(metadata: &TableMetadata) -> Result<Codec> {
        match metadata.properties().get(COMPRESSION).map(|name| name.to_ascii_lowercase()).as_deref() {
            None | Some("none" | "uncompressed" | "") => Ok(Codec::Plain),
            Some("gzip") => Ok(Codec::Gzip),
            Some(other) => Err(Error::validation(format!(
                "property '{COMPRESSION}' is '{other}', which is no codec for metadata files"
            ))
            .hint("Set it to 'none' or 'gzip'.")),
        }
    }

    /// Returns how names of such files end.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Codec::Plain => ".metadata.json",
            Codec::Gzip => ".gz.metadata.json",
        }
    }

    /// Returns a metadata file's content.
    ///
    /// # Errors
    /// The metadata cannot be written as JSON.
    pub(super) fn encode(self, metadata: &TableMetadata) -> Result<Bytes> {
        let failed = |error: std::io::Error| {
            Error::internal("table metadata could not be written as JSON").caused_by(error)
        };
        let json = serde_json::to_vec(metadata).map_err(|error| failed(error.into()))?;
        match self {
            Codec::Plain => Ok(Bytes::from(json)),
            Codec::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&json).map_err(failed)?;
                Ok(Bytes::from(encoder.finish().map_err(failed)?))
            }
        }
    }
}

/// Reads a metadata file; whether it is compressed is seen by its first bytes.
///
/// # Errors
/// It is not there, cannot be read, or is not metadata that we know; then it is of kind `Unsupported` if it is in order for others.
pub(super) async fn read_metadata(files: &FileStore, location: &str) -> Result<TableMetadata> {
    let bytes = files.read(location).await?;
    let json = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut json = Vec::new();
        let read = GzDecoder::new(&bytes[..]).read_to_end(&mut json);
        read.map_err(|error| damaged(location, "its gzip stream is damaged").caused_by(error))?;
        Bytes::from(json)
    } else {
        bytes
    };
    let metadata: TableMetadata =
        serde_json::from_slice(&json).map_err(|error| unusable(location, &json, error))?;
    match width_reason(&metadata) {
        Some(reason) => Err(damaged(location, &reason)),
        None => Ok(metadata),
    }
}

/// Makes the error for a metadata file that must be another.
fn damaged(location: &str, reason: &str) -> Error {
    Error::data(format!("metadata file '{location}' cannot be used: {reason}"))
        .hint("Put an intact copy of the file in its place.")
}

/// Makes the error for JSON that is no metadata to the crate.
fn unusable(location: &str, json: &[u8], error: serde_json::Error) -> Error {
    if json.is_empty() {
        return damaged(location, "it is empty");
    }
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(json) else {
        return damaged(location, &error.to_string()).caused_by(error);
    };
    let version = value.get("format-version").and_then(serde_json::Value::as_u64);
    if let Some(version) = version.filter(|version| *version > FORMAT_VERSION_MAX) {
        return Error::unsupported(format!(
            "metadata file '{location}' has format version {version}; versions up to {FORMAT_VERSION_MAX} are supported"
        ))
        .hint("Use the table with an engine that knows that version, or let one copy its rows into a table of version 2.");
    }
    match reason(&value) {
        Some(Reason::Unsupported(reason)) => Error::unsupported(format!(
            "metadata file '{location}' cannot be used: {reason}"
        ))
        .hint("Use the table with an engine that knows it, or let one copy its rows into a table without it.")
        .caused_by(error),
        // The crate's text would be a whole schema.
        Some(Reason::Damaged(reason)) => damaged(location, &reason),
        None => damaged(location, &error.to_string()).caused_by(error),
    }
}
