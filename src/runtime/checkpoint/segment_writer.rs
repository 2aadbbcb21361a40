//! Writes a segment, block by block: at no time is more than a block of rows copied.

use std::path::Path;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{concat_batches, interleave};
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::StreamWriter;

use super::checkpoint_data::OperatorChanges;
use super::disk::{Disk, DiskFile};
use super::merge::key_schema;
use super::segment::{BlockEntry, TableBlocks, footer, header};
use crate::connector::CheckpointId;
use crate::error::{Error, Result};
use crate::state::GROUP_COUNT;

/// The most rows of a block.
const BLOCK_ROWS: usize = 1 << 16;
/// About how many bytes of rows are in a block: few enough that they are still in a core's cache when they are packed.
const BLOCK_BYTES: usize = 512 << 10;
/// About how many bytes a block has beside its rows.
const FRAME_BYTES: usize = 16 << 10;
/// State is written often and read seldom.
const ZSTD_LEVEL: i32 = -3;

/// Columns of rows, and the key group of each row.
type Part<'a> = (&'a [ArrayRef], &'a [u8]);

/// Where a row is: which part, which row of it.
type Place = (usize, usize);

/// Writes a segment.
pub(super) struct SegmentWriter {
    file: DiskFile,
    bytes: u64,
    crc: crc32fast::Hasher,
    tables: Vec<TableBlocks>,
    packer: zstd::bulk::Compressor<'static>,
    /// The bytes of a block before and after they are packed, whose memory the next block uses again.
    raw: Vec<u8>,
    packed: Vec<u8>,
}

/// What rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsOf {
    /// Rows as they are now.
    Upserts,
    /// Keys that have gone.
    Deletes,
}

impl SegmentWriter {
    /// Creates the file.
    pub(super) fn create(disk: &Disk, path: &Path, checkpoint: CheckpointId) -> Result<SegmentWriter> {
        let file = disk.create_file(path)?;
        let crc = crc32fast::Hasher::new();
        let packer = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
        let (raw, packed) = (Vec::new(), Vec::new());
        let mut writer = SegmentWriter { file, bytes: 0, crc, tables: Vec::new(), packer, raw, packed };
        writer.append(&header(checkpoint))?;
        Ok(writer)
    }

    /// Writes the changes of an operator, those of all workers together.
    pub(super) fn write_operator(&mut self, operator: &OperatorChanges) -> Result<()> {
        for (number, table) in operator.tables.iter().enumerate() {
            self.begin_table(&operator.uid, table.name);
            let changes = || operator.workers.iter().map(move |tables| &tables[number]);
            let upserts: Vec<Part<'_>> = changes()
                .filter(|changes| changes.upserts.num_rows() > 0)
                .map(|changes| (changes.upserts.columns(), changes.upsert_groups.as_slice()))
                .collect();
            self.write_unsorted(RowsOf::Upserts, &table.schema, &upserts)?;
            let deletes: Vec<Part<'_>> = changes()
                .filter(|changes| changes.deletes.num_rows() > 0)
                .map(|changes| (changes.deletes.columns(), changes.delete_groups.as_slice()))
                .collect();
            self.write_unsorted(RowsOf::Deletes, &key_schema(&table.schema, table.key_count), &deletes)?;
        }
        Ok(())
    }

    /// Begins a table: what is written next belongs to it.
    pub(super) fn begin_table(&mut self, operator: &str, table: &str) {
        self.tables.push(TableBlocks {
            operator: operator.to_owned(),
            table: table.to_owned(),
            ..TableBlocks::default()
        });
    }

    /// Writes rows with their key groups, which come in any order in several parts, sorted by group.
    fn write_unsorted(&mut self, rows_of: RowsOf, schema: &SchemaRef, parts: &[Part<'_>]) -> Result<()> {
        let (rows, mut counts) = sort_by_group(parts)?;
        let mut group = 0;
        for chunk in rows.chunks(rows_per_block(parts, rows.len())) {
            let mut groups = Vec::new();
            let mut missing = chunk.len() as u32;
            while missing > 0 {
                let taken = missing.min(counts[group]);
                if taken > 0 {
                    groups.push((group as u8, taken));
                    counts[group] -= taken;
                    missing -= taken;
                }
                group += usize::from(counts[group] == 0);
            }
            self.write_block(rows_of, &gather(schema, parts, chunk)?, groups)?;
        }
        Ok(())
    }

    /// Writes rows that are sorted by group.
    fn write_block(&mut self, rows_of: RowsOf, rows: &RecordBatch, groups: Vec<(u8, u32)>) -> Result<()> {
        let (mut raw, mut packed) = (std::mem::take(&mut self.raw), std::mem::take(&mut self.packed));
        raw.clear();
        raw.reserve(bytes_of(rows.columns()) + FRAME_BYTES);
        let mut writer = StreamWriter::try_new(&mut raw, rows.schema_ref())?;
        writer.write(rows)?;
        writer.finish()?;
        drop(writer);
        packed.clear();
        packed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        self.packer.compress_to_buffer(&raw, &mut packed)?;
        let block = BlockEntry {
            offset: self.bytes,
            bytes: packed.len() as u64,
            raw_bytes: raw.len() as u64,
            crc: crc32fast::hash(&packed),
            groups,
        };
        self.append(&packed)?;
        let table = self.tables.last_mut().ok_or_else(|| Error::internal("rows without a table"))?;
        match rows_of {
            RowsOf::Upserts => table.upserts.push(block),
            RowsOf::Deletes => table.deletes.push(block),
        }
        (self.raw, self.packed) = (raw, packed);
        Ok(())
    }

    /// Finishes the file, which lasts from now on; returns its length and CRC.
    pub(super) fn finish(mut self) -> Result<(u64, u32)> {
        self.tables.retain(|table| !table.upserts.is_empty() || !table.deletes.is_empty());
        let footer = footer(&self.tables)?;
        self.append(&footer)?;
        self.file.sync()?;
        Ok((self.bytes, self.crc.finalize()))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
        self.file.write(bytes)
    }
}

/// Collects rows that come group by group into blocks.
pub(super) struct BlockBuilder {
    rows_of: RowsOf,
    schema: SchemaRef,
    pending: Vec<RecordBatch>,
    groups: Vec<(u8, u32)>,
    rows: usize,
    bytes: usize,
}

impl BlockBuilder {
    /// Creates one for rows of a table.
    pub(super) fn new(rows_of: RowsOf, schema: &SchemaRef) -> BlockBuilder {
        let schema = SchemaRef::clone(schema);
        BlockBuilder { rows_of, schema, pending: Vec::new(), groups: Vec::new(), rows: 0, bytes: 0 }
    }

    /// Adds rows of a group, which is not below that of the rows before.
    pub(super) fn push(&mut self, rows: RecordBatch, group: u8, writer: &mut SegmentWriter) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.rows += rows.num_rows();
        self.bytes += bytes_of(rows.columns());
        match self.groups.last_mut() {
            Some((last, count)) if *last == group => *count += rows.num_rows() as u32,
            _ => self.groups.push((group, rows.num_rows() as u32)),
        }
        self.pending.push(rows);
        if self.rows >= BLOCK_ROWS || self.bytes >= BLOCK_BYTES {
            self.flush(writer)?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn flush(&mut self, writer: &mut SegmentWriter) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = concat_batches(&self.schema, &self.pending)?;
        self.pending.clear();
        (self.rows, self.bytes) = (0, 0);
        writer.write_block(self.rows_of, &rows, std::mem::take(&mut self.groups))
    }
}

/// Returns the places of all rows in the order of their groups, and how many rows each group has.
fn sort_by_group(parts: &[Part<'_>]) -> Result<(Vec<Place>, [u32; GROUP_COUNT])> {
    let mut counts = [0_u32; GROUP_COUNT];
    for group in parts.iter().flat_map(|(_, groups)| *groups) {
        let count = counts.get_mut(usize::from(*group));
        *count.ok_or_else(|| Error::internal(format!("there is no key group {group}")))? += 1;
    }
    let mut next = [0_usize; GROUP_COUNT];
    let mut total = 0;
    for (next, count) in next.iter_mut().zip(counts) {
        *next = total;
        total += count as usize;
    }
    let mut rows = vec![(0, 0); total];
    for (part, (_, groups)) in parts.iter().enumerate() {
        for (row, group) in groups.iter().enumerate() {
            let next = &mut next[usize::from(*group)];
            rows[*next] = (part, row);
            *next += 1;
        }
    }
    Ok((rows, counts))
}

/// Copies rows together.
fn gather(schema: &SchemaRef, parts: &[Part<'_>], rows: &[Place]) -> Result<RecordBatch> {
    let columns = (0..schema.fields().len())
        .map(|column| {
            let parts: Vec<&dyn Array> = parts.iter().map(|(columns, _)| columns[column].as_ref()).collect();
            // Some columns are for rare rows.
            if parts.iter().all(|part| part.null_count() == part.len()) {
                return Ok(new_null_array(schema.field(column).data_type(), rows.len()));
            }
            Ok(interleave(&parts, rows)?)
        })
        .collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?)
}

fn rows_per_block(parts: &[Part<'_>], rows: usize) -> usize {
    let bytes: usize = parts.iter().map(|(columns, _)| bytes_of(columns)).sum();
    (BLOCK_BYTES / (bytes / rows.max(1)).max(1)).clamp(1, BLOCK_ROWS)
}

/// Returns the bytes of values, without those of the same buffers that other rows use.
pub(super) fn bytes_of(columns: &[ArrayRef]) -> usize {
    columns.iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}
