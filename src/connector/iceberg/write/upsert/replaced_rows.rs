//! What a commit takes away, so that it can be found anew where others have moved it: part of the committable.
//!
//! Of a table with a key these are the keys without a new row. The other keys that the commit touches stand in its own data files,
//! and are read from there in the rare case that they are needed. Without a key these are the rows that go, by their hash, each with
//! the place where it was.

use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, FixedSizeBinaryArray, Int64Array, RecordBatch, UInt32Array};
use arrow::buffer::Buffer;
use arrow::datatypes::{Field, Int64Type, Schema, UInt32Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::known_snapshot::KnownSnapshot;
use super::row_identity::RowIdentity;
use crate::error::{Error, ErrorKind, Result};

/// The level of compression: the lowest, as every checkpoint pays for it and few need it.
const LEVEL: i32 = 1;

/// Limit: what is read again may not be larger than this.
const BYTES_MAX: u64 = 1 << 32;

/// Where the rows were looked up that a commit replaces, and which those are.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::write) struct Lookup {
    /// The snapshot that was looked at.
    pub(super) base: KnownSnapshot,
    /// What is replaced.
    pub(super) replaced: ReplacedRows,
}

/// The form in which a committable keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::connector::iceberg::write) struct LookupRecord {
    snapshot: Option<i64>,
    sequence_number: i64,
    is_keyed: bool,
    /// In Base64.
    replaced: String,
}

impl Lookup {
    /// Writes it down.
    ///
    /// # Errors
    /// Columns cannot be written.
    pub(in crate::connector::iceberg::write) fn to_record(&self) -> Result<LookupRecord> {
        Ok(LookupRecord {
            snapshot: self.base.id,
            sequence_number: self.base.sequence_number,
            is_keyed: matches!(self.replaced, ReplacedRows::Keys(_)),
            replaced: STANDARD.encode(self.replaced.to_bytes()?),
        })
    }

    /// Reads it again.
    ///
    /// # Errors
    /// It is damaged.
    pub(in crate::connector::iceberg::write) fn from_record(record: &LookupRecord) -> Result<Lookup> {
        let bytes = STANDARD.decode(&record.replaced).map_err(|error| damaged().caused_by(error))?;
        Ok(Lookup {
            base: KnownSnapshot { id: record.snapshot, sequence_number: record.sequence_number },
            replaced: ReplacedRows::from_bytes(&bytes, record.is_keyed)?,
        })
    }
}

/// What a commit takes away.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ReplacedRows {
    /// Keys that are gone: the columns of the key.
    Keys(RecordBatch),
    /// Rows that are gone.
    Rows(Vec<ReplacedRow>),
}

/// A row that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplacedRow {
    /// Its hash.
    pub(super) hash: i128,
    /// The hash of its file's path.
    pub(super) file: i64,
    /// Its place in the file.
    pub(super) row: u32,
}

impl ReplacedRows {
    /// Lists keys, given as columns of an index.
    ///
    /// # Errors
    /// The columns are not those of the identity.
    pub(super) fn of_keys(identity: &RowIdentity, columns: Vec<ArrayRef>) -> Result<ReplacedRows> {
        let fields = identity.names().zip(identity.key_types());
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        Ok(ReplacedRows::Keys(RecordBatch::try_new(Arc::new(schema), columns)?))
    }

    /// Returns where rows without a key were that are gone: the hashes of their files' paths and their places there.
    pub(super) fn places(&self) -> impl Iterator<Item = (i64, u32)> {
        let rows = match self {
            ReplacedRows::Keys(_) => &[][..],
            ReplacedRows::Rows(rows) => rows,
        };
        rows.iter().map(|row| (row.file, row.row))
    }

    /// Returns the bytes that a checkpoint keeps.
    ///
    /// # Errors
    /// Columns cannot be written.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>> {
        let batch = match self {
            ReplacedRows::Keys(keys) => keys.clone(),
            ReplacedRows::Rows(rows) => rows_to_batch(rows)?,
        };
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(&batch)?;
        let plain = writer.into_inner()?;
        zstd::bulk::compress(&plain, LEVEL)
            .map_err(|error| Error::internal("keys cannot be compressed").caused_by(error))
    }

    /// Reads what `to_bytes` has written.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub(super) fn from_bytes(bytes: &[u8], is_keyed: bool) -> Result<ReplacedRows> {
        let plain = decompressed(bytes, BYTES_MAX)?;
        let mut reader = StreamReader::try_new(plain.as_slice(), None)?;
        let batch = reader.next().ok_or_else(damaged)??;
        if is_keyed {
            return Ok(ReplacedRows::Keys(batch));
        }
        Ok(ReplacedRows::Rows(rows_from_batch(&batch).ok_or_else(damaged)?))
    }

    /// Returns the rows that were in files other than these, given by the hashes of their paths.
    pub(super) fn rows_outside(&self, files: &HashSet<i64>) -> Vec<ReplacedRow> {
        match self {
            ReplacedRows::Keys(_) => Vec::new(),
            ReplacedRows::Rows(rows) => {
                rows.iter().filter(|row| !files.contains(&row.file)).copied().collect()
            }
        }
    }
}

/// Decompresses bytes; more than allowed are never in memory.
fn decompressed(bytes: &[u8], bytes_max: u64) -> Result<Vec<u8>> {
    let read = || {
        let mut plain = Vec::new();
        zstd::stream::Decoder::new(bytes)?.take(bytes_max + 1).read_to_end(&mut plain)?;
        Ok::<_, std::io::Error>(plain)
    };
    let plain = read().map_err(|error| damaged().caused_by(error))?;
    if plain.len() as u64 > bytes_max { Err(damaged()) } else { Ok(plain) }
}

fn rows_to_batch(rows: &[ReplacedRow]) -> Result<RecordBatch> {
    let hashes: Vec<u8> = rows.iter().flat_map(|row| row.hash.to_le_bytes()).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("row_hash", Arc::new(FixedSizeBinaryArray::try_new(16, Buffer::from_vec(hashes), None)?)),
        ("file", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.file)))),
        ("row", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.row)))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn rows_from_batch(batch: &RecordBatch) -> Option<Vec<ReplacedRow>> {
    let [hashes, files, rows] = batch.columns() else { return None };
    let hashes = hashes.as_fixed_size_binary_opt()?;
    let files = files.as_primitive_opt::<Int64Type>()?;
    let rows = rows.as_primitive_opt::<UInt32Type>()?;
    let row = |at: usize| {
        let hash = i128::from_le_bytes(hashes.value(at).try_into().ok()?);
        Some(ReplacedRow { hash, file: files.value(at), row: rows.value(at) })
    };
    (0..batch.num_rows()).map(row).collect()
}

fn damaged() -> Error {
    Error::new(ErrorKind::State, "the keys that a checkpoint deletes cannot be read")
        .hint("The checkpoint is damaged: start the job from another one, or without.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    #[test]
    fn keys_and_rows_come_back_as_they_were() {
        let keys = StringArray::from(vec!["a", "b", ""]);
        let keys = RecordBatch::try_from_iter([("k", Arc::new(keys) as ArrayRef)]).unwrap();
        let row = |number: i64| ReplacedRow { hash: i128::from(-number), file: -number, row: number as u32 };
        let rows: Vec<ReplacedRow> = (0..1_000).map(row).collect();
        for replaced in [ReplacedRows::Keys(keys), ReplacedRows::Rows(rows)] {
            let is_keyed = matches!(replaced, ReplacedRows::Keys(_));
            let mut bytes = replaced.to_bytes().unwrap();
            let read = ReplacedRows::from_bytes(&bytes, is_keyed).unwrap();
            // A batch that was read does not say that its columns have no NULL.
            assert_eq!(format!("{read:?}").len(), format!("{replaced:?}").len());
            assert_eq!(read, replaced);
            bytes.truncate(bytes.len() / 2);
            assert!(ReplacedRows::from_bytes(&bytes, is_keyed).is_err());
        }
    }

    #[test]
    fn no_more_is_decompressed_than_may_be() {
        let bytes = zstd::bulk::compress(&[0; 1_000], LEVEL).unwrap();
        assert_eq!(decompressed(&bytes, 1_000).unwrap().len(), 1_000);
        assert_eq!(decompressed(&bytes, 999).unwrap_err().message(), damaged().message());
    }

    #[test]
    fn rows_are_outside_of_files_that_are_gone() {
        let rows = ReplacedRows::Rows(vec![
            ReplacedRow { hash: 1, file: 10, row: 0 },
            ReplacedRow { hash: 2, file: 11, row: 0 },
        ]);
        assert_eq!(rows.rows_outside(&HashSet::from([10]))[0].hash, 2);
    }
}
