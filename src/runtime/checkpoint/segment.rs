//! A segment: rows of state in columns, and keys that have gone, of every operator and table, sorted by key group.
//!
//! ```text
//! header   magic, state format, checkpoint, CRC of these
//! blocks   Arrow IPC of some rows of one table, zstd
//! index    JSON: per operator and table the blocks of rows and of deleted keys; per block its place, length, CRC and key groups
//! trailer  length and CRC of the index, magic
//! ```
//! Every byte is under a checksum, or is one. A segment never changes once it is written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use serde_json::{Value, json};

use super::manifest::{STATE_FORMAT, SegmentEntry, cannot_read, damaged, too_new};
use crate::connector::CheckpointId;
use crate::error::{Error, Result};

/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"lakehead";
/// The last bytes.
const END: &[u8; 8] = b"segment.";
/// The length of magic, state format, checkpoint and CRC.
pub(super) const HEADER_BYTES: usize = 8 + 4 + 8 + 4;
/// The length of the index' length and CRC, and the magic.
const TRAILER_BYTES: usize = 4 + 4 + 8;
/// How much is read at a time to check a file.
const CHECK_BYTES: usize = 1 << 20;

/// Where rows are in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockEntry {
    /// Where it begins.
    pub(super) offset: u64,
    /// Its length in the file.
    pub(super) bytes: u64,
    /// Its length when it is unpacked.
    pub(super) raw_bytes: u64,
    /// The CRC of its bytes in the file.
    pub(super) crc: u32,
    /// How many rows of which key groups, in the order of rows.
    pub(super) groups: Vec<(u8, u32)>,
}

/// The blocks of a table, by growing key group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TableBlocks {
    /// The uid of the operator.
    pub(super) operator: String,
    /// The name of the table.
    pub(super) table: String,
    /// Rows as they are.
    pub(super) upserts: Vec<BlockEntry>,
    /// Keys that have gone. A key that is in `upserts` too has come back.
    pub(super) deletes: Vec<BlockEntry>,
}

/// Returns the header of a file.
pub(super) fn header(checkpoint: CheckpointId) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(STATE_FORMAT.to_le_bytes());
    header.extend(checkpoint.to_le_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    header
}

/// Returns index and trailer of a file.
pub(super) fn footer(tables: &[TableBlocks]) -> Result<Vec<u8>> {
    let tables: Vec<Value> = tables
        .iter()
        .map(|table| {
            json!({
                "operator": table.operator,
                "table": table.table,
                "upserts": table.upserts.iter().map(block_to_json).collect::<Vec<_>>(),
                "deletes": table.deletes.iter().map(block_to_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut footer = Value::Array(tables).to_string().into_bytes();
    let length = u32::try_from(footer.len())
        .map_err(|_| Error::internal("the index of a segment is longer than 4 GiB"))?;
    let crc = crc32fast::hash(&footer);
    footer.extend(length.to_le_bytes());
    footer.extend(crc.to_le_bytes());
    footer.extend(END);
    Ok(footer)
}

/// Five numbers and the groups: short, since there may be many blocks.
fn block_to_json(block: &BlockEntry) -> Value {
    json!([block.offset, block.bytes, block.raw_bytes, block.crc, block.groups])
}

fn block_from_json(json: &Value) -> Option<BlockEntry> {
    let group = |pair: &Value| {
        let group = u8::try_from(pair[0].as_u64()?).ok()?;
        Some((group, u32::try_from(pair[1].as_u64()?).ok()?))
    };
    Some(BlockEntry {
        offset: json[0].as_u64()?,
        bytes: json[1].as_u64()?,
        raw_bytes: json[2].as_u64()?,
        crc: u32::try_from(json[3].as_u64()?).ok()?,
        groups: json[4].as_array()?.iter().map(group).collect::<Option<_>>()?,
    })
}

fn table_from_json(json: &Value) -> Option<TableBlocks> {
    let blocks = |name: &str| json[name].as_array()?.iter().map(block_from_json).collect::<Option<Vec<_>>>();
    Some(TableBlocks {
        operator: json["operator"].as_str()?.to_owned(),
        table: json["table"].as_str()?.to_owned(),
        upserts: blocks("upserts")?,
        deletes: blocks("deletes")?,
    })
}

/// A segment that can be read.
#[derive(Debug)]
pub(super) struct Segment {
    path: PathBuf,
    entry: SegmentEntry,
    tables: Vec<TableBlocks>,
}

impl Segment {
    /// Opens a segment of `folder` by its header and index.
    ///
    /// # Errors
    /// The file is missing, damaged, or of a newer version.
    pub(super) fn open(folder: &Path, entry: &SegmentEntry) -> Result<Segment> {
        let path = folder.join(&entry.file);
        let mut segment = Segment { path, entry: entry.clone(), tables: Vec::new() };
        let mut file = segment.file()?;
        segment.check_length(&file)?;
        segment.check_header(&mut file)?;
        segment.tables = segment.read_index(&mut file)?;
        Ok(segment)
    }

    /// Reads the whole file to compare its CRC with the one in the manifest.
    ///
    /// # Errors
    /// A byte has changed.
    pub(super) fn check_bytes(folder: &Path, entry: &SegmentEntry) -> Result<()> {
        let segment = Segment { path: folder.join(&entry.file), entry: entry.clone(), tables: Vec::new() };
        let mut file = segment.file()?;
        segment.check_length(&file)?;
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = vec![0; CHECK_BYTES];
        loop {
            match file.read(&mut buffer).map_err(|error| cannot_read(&segment.path, error))? {
                0 => break,
                length => crc.update(&buffer[..length]),
            }
        }
        let crc = crc.finalize();
        if crc == entry.crc {
            return Ok(());
        }
        Err(damaged(&segment.path, format!("its checksum is {crc:08x}, not {:08x}", entry.crc)))
    }

    /// Returns what the manifest says of the file.
    pub(super) fn entry(&self) -> &SegmentEntry {
        &self.entry
    }

    /// Returns the blocks of a table, if the segment has any.
    pub(super) fn table(&self, operator: &str, table: &str) -> Option<&TableBlocks> {
        self.tables.iter().find(|blocks| blocks.operator == operator && blocks.table == table)
    }

    /// Opens the file, for `read_block`: each reader has its own.
    pub(super) fn file(&self) -> Result<File> {
        File::open(&self.path).map_err(|error| cannot_read(&self.path, error))
    }

    /// Reads the rows of a block.
    ///
    /// # Errors
    /// The block is damaged.
    pub(super) fn read_block(&self, file: &mut File, block: &BlockEntry) -> Result<RecordBatch> {
        let wrong = |what: &str| damaged(&self.path, format!("{what} in the block at byte {}", block.offset));
        let packed = self.read_at(file, block.offset, block.bytes as usize)?;
        if crc32fast::hash(&packed) != block.crc {
            return Err(wrong("wrong checksum"));
        }
        let raw = zstd::bulk::decompress(&packed, block.raw_bytes as usize)
            .map_err(|error| wrong(&error.to_string()))?;
        let mut raw = Buffer::from_vec(raw);
        let batch = StreamDecoder::new()
            .decode(&mut raw)
            .map_err(|error| wrong(&error.to_string()))?
            .ok_or_else(|| wrong("no rows"))?;
        let rows: u64 = block.groups.iter().map(|(_, rows)| u64::from(*rows)).sum();
        if rows != batch.num_rows() as u64 {
            return Err(wrong("wrong number of rows"));
        }
        Ok(batch)
    }

    fn check_length(&self, file: &File) -> Result<()> {
        let length = file.metadata().map_err(|error| cannot_read(&self.path, error))?.len();
        if length == self.entry.bytes {
            return Ok(());
        }
        Err(damaged(&self.path, format!("it has {length} bytes, {} were written", self.entry.bytes)))
    }

    fn check_header(&self, file: &mut File) -> Result<()> {
        let bytes = self.read_at(file, 0, HEADER_BYTES)?;
        let (covered, crc) = bytes.split_at(HEADER_BYTES - 4);
        if covered[..8] != *MAGIC {
            return Err(damaged(&self.path, "it does not begin like a segment"));
        }
        let format = little_endian(&covered[8..12]) as u32;
        if u64::from(crc32fast::hash(covered)) != little_endian(crc) {
            return Err(damaged(&self.path, "wrong checksum of the header"));
        }
        if format > STATE_FORMAT {
            return Err(too_new(&self.path, format));
        }
        if little_endian(&covered[12..20]) != self.entry.last {
            return Err(damaged(&self.path, "it belongs to another checkpoint"));
        }
        Ok(())
    }

    fn read_index(&self, file: &mut File) -> Result<Vec<TableBlocks>> {
        let wrong = || damaged(&self.path, "its index is broken");
        let index_end = self.entry.bytes.checked_sub(TRAILER_BYTES as u64).ok_or_else(wrong)?;
        let trailer = self.read_at(file, index_end, TRAILER_BYTES)?;
        if trailer[8..] != *END {
            return Err(damaged(&self.path, "it does not end like a segment"));
        }
        let length = little_endian(&trailer[..4]);
        let start = index_end.checked_sub(length).ok_or_else(wrong)?;
        let index = self.read_at(file, start, length as usize)?;
        if u64::from(crc32fast::hash(&index)) != little_endian(&trailer[4..8]) {
            return Err(wrong());
        }
        let index: Value = serde_json::from_slice(&index).map_err(|error| wrong().caused_by(error))?;
        let tables = index.as_array().ok_or_else(wrong)?;
        tables.iter().map(table_from_json).collect::<Option<_>>().ok_or_else(wrong)
    }

    fn read_at(&self, file: &mut File, offset: u64, length: usize) -> Result<Vec<u8>> {
        // A length comes from an index whose checksum is right, or is bounded by the file's.
        let mut bytes = vec![0; length];
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| damaged(&self.path, error))?;
        Ok(bytes)
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
