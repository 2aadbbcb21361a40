//! Merges what several segments say of a table: for each key what the newest says.
//!
//! It goes by key group, so that no more is in memory than one group of the table, and the blocks that it lies in.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{SortOptions, take};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::row::Rows;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::segment::{BlockEntry, Segment};
use crate::connector::CheckpointId;
use crate::error::Result;
use crate::state::RowCodec;

/// Which table is merged, and as which columns its rows come out.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergedTable<'a> {
    /// The uid of the operator.
    pub(super) operator: &'a str,
    /// The name.
    pub(super) name: &'a str,
    /// The columns; those that an older segment does not have are NULL.
    pub(super) schema: &'a SchemaRef,
    /// How many of them are the primary key.
    pub(super) key_count: usize,
    /// The first checkpoint that counts.
    pub(super) since: CheckpointId,
}

/// Returns the columns of the primary key.
pub(super) fn key_schema(schema: &SchemaRef, key_count: usize) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().take(key_count).cloned().collect::<Vec<_>>()))
}

/// Merges a table, group by group.
pub(super) struct TableMerge<'a> {
    /// Newest first.
    cursors: Vec<Cursor<'a>>,
    key_count: usize,
    keys: RowCodec,
    keeps_deletes: bool,
}

/// The rows of a group.
#[derive(Debug, Default)]
pub(super) struct MergedGroup {
    /// Rows, each key once.
    pub(super) upserts: Vec<RecordBatch>,
    /// Keys that have gone, if they are kept.
    pub(super) deletes: Vec<RecordBatch>,
}

/// A segment's place in the merge.
struct Cursor<'a> {
    segment: &'a Segment,
    file: File,
    upserts: BlockCursor<'a>,
    deletes: BlockCursor<'a>,
}

/// A place among blocks, which only moves on.
struct BlockCursor<'a> {
    blocks: &'a [BlockEntry],
    schema: SchemaRef,
    /// The rows of the first of `blocks`, if they have been read.
    rows: Option<RecordBatch>,
}

impl<'a> TableMerge<'a> {
    /// Begins to merge; `segments` are oldest first. Deleted keys are kept where older segments may have them.
    ///
    /// # Errors
    /// A file cannot be opened, or a key has a type that cannot be compared.
    pub(super) fn new(
        segments: &'a [Segment],
        table: MergedTable<'_>,
        keeps_deletes: bool,
    ) -> Result<TableMerge<'a>> {
        let key_schema = key_schema(table.schema, table.key_count);
        let keys =
            key_schema.fields().iter().map(|field| (field.data_type().clone(), SortOptions::default()));
        let keys = RowCodec::new(keys)?;
        let mut cursors = Vec::new();
        for segment in segments.iter().rev().filter(|segment| segment.entry().last >= table.since) {
            let Some(blocks) = segment.table(table.operator, table.name) else { continue };
            cursors.push(Cursor {
                segment,
                file: segment.file()?,
                upserts: BlockCursor::new(&blocks.upserts, table.schema),
                deletes: BlockCursor::new(&blocks.deletes, &key_schema),
            });
        }
        Ok(TableMerge { cursors, key_count: table.key_count, keys, keeps_deletes })
    }

    /// Returns the rows of a group, which must be above that of the last call.
    ///
    /// # Errors
    /// A block is damaged.
    pub(super) fn group(&mut self, group: u8) -> Result<MergedGroup> {
        let mut parts = Vec::new();
        for cursor in &mut self.cursors {
            let upserts = cursor.upserts.rows_of(group, cursor.segment, &mut cursor.file)?;
            let deletes = cursor.deletes.rows_of(group, cursor.segment, &mut cursor.file)?;
            if !upserts.is_empty() || !deletes.is_empty() {
                parts.push(MergedGroup { upserts, deletes });
            }
        }
        let mut merged = match parts.len() {
            0 => MergedGroup::default(),
            1 => parts.swap_remove(0),
            _ => self.merge(parts)?,
        };
        if !self.keeps_deletes {
            merged.deletes.clear();
        }
        Ok(merged)
    }

    /// Keeps of each key what the first part says.
    fn merge(&self, parts: Vec<MergedGroup>) -> Result<MergedGroup> {
        let mut merged = MergedGroup::default();
        let mut seen = SeenKeys::default();
        let oldest = parts.len() - 1;
        for (age, part) in parts.into_iter().enumerate() {
            // In the oldest part a key stands once among the upserts, and nothing comes after its deletes.
            for rows in part.upserts {
                let new = seen.unseen(self.key_rows(&rows)?, age < oldest || self.keeps_deletes);
                merged.upserts.extend(take_rows(rows, new)?);
            }
            if age < oldest || self.keeps_deletes {
                for keys in part.deletes {
                    let new = seen.unseen(self.key_rows(&keys)?, true);
                    merged.deletes.extend(take_rows(keys, new)?);
                }
            }
        }
        Ok(merged)
    }

    /// Returns the keys of rows, comparable by bytes.
    fn key_rows(&self, rows: &RecordBatch) -> Result<Rows> {
        self.keys.encode(&rows.columns()[..self.key_count], rows.num_rows())
    }
}

/// The keys that newer segments have.
#[derive(Default)]
struct SeenKeys {
    batches: Vec<Rows>,
    /// Places in `batches`: batch and row.
    places: HashTable<(u32, u32)>,
}

impl SeenKeys {
    /// Returns the rows whose keys have not been seen, in order; `remembers` them for later calls.
    fn unseen(&mut self, keys: Rows, remembers: bool) -> Vec<u32> {
        let batch = self.batches.len() as u32;
        let count = keys.num_rows();
        self.batches.push(keys);
        let SeenKeys { batches, places } = self;
        let bytes = |place: &(u32, u32)| batches[place.0 as usize].row(place.1 as usize);
        let mut new = Vec::with_capacity(count);
        if remembers {
            places.reserve(count, |place| xxh3_64(bytes(place).as_ref()));
        }
        for row in 0..count as u32 {
            let key = bytes(&(batch, row));
            let hash = xxh3_64(key.as_ref());
            if places.find(hash, |place| bytes(place) == key).is_some() {
                continue;
            }
            if remembers {
                places.insert_unique(hash, (batch, row), |place| xxh3_64(bytes(place).as_ref()));
            }
            new.push(row);
        }
        new
    }
}

/// Returns the chosen rows, which are in order.
fn take_rows(batch: RecordBatch, rows: Vec<u32>) -> Result<Option<RecordBatch>> {
    if rows.is_empty() {
        return Ok(None);
    }
    if rows.len() == batch.num_rows() {
        return Ok(Some(batch));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let rows = UInt32Array::from(rows);
    let columns: Vec<ArrayRef> =
        batch.columns().iter().map(|column| take(column, &rows, None)).collect::<Result<_, _>>()?;
    Ok(Some(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?))
}

impl<'a> BlockCursor<'a> {
    fn new(blocks: &'a [BlockEntry], schema: &SchemaRef) -> BlockCursor<'a> {
        BlockCursor { blocks, schema: SchemaRef::clone(schema), rows: None }
    }

    /// Returns the rows of a group, one batch per block that has some.
    fn rows_of(&mut self, group: u8, segment: &Segment, file: &mut File) -> Result<Vec<RecordBatch>> {
        let mut found = Vec::new();
        while let [block, rest @ ..] = self.blocks {
            let mut start = 0;
            for (of, count) in &block.groups {
                if *of == group {
                    if self.rows.is_none() {
                        self.rows = Some(conform(&segment.read_block(file, block)?, &self.schema)?);
                    }
                    let rows = self.rows.as_ref();
                    found.extend(rows.map(|rows| rows.slice(start, *count as usize)));
                }
                start += *count as usize;
            }
            // The block may hold rows of later groups, or the next one rows of this group.
            if block.groups.last().is_some_and(|(last, _)| *last > group) {
                break;
            }
            self.blocks = rest;
            self.rows = None;
        }
        Ok(found)
    }
}

/// Gives rows the columns of a schema: by name, NULL where there is none.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) => Arc::clone(column),
            None => new_null_array(field.data_type(), batch.num_rows()),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?)
}
