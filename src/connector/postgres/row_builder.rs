//! Rows of a declared table under construction: physical columns, metadata, kinds.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;

use super::row_shape::{Changes, Metadata, RowShape};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;
use crate::format::{ColumnBuilder, ColumnValues};

/// Where rows come from, for metadata.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowOrigin<'a> {
    /// When they were committed: microseconds since 1970.
    pub(super) commit_time: i64,
    pub(super) database: &'a str,
    pub(super) schema: &'a str,
    pub(super) table: &'a str,
}

/// Rows that grow.
#[derive(Debug)]
pub(super) struct RowBuilder {
    /// The physical columns. Whoever appends a row pushes one value to each and then ends the row.
    pub(super) columns: Vec<ColumnBuilder>,
    metadata: Vec<(Metadata, ColumnBuilder)>,
    /// One kind per row.
    kinds: Vec<u8>,
    is_append_only: bool,
    schema: SchemaRef,
}

impl RowBuilder {
    pub(super) fn new(shape: &RowShape) -> RowBuilder {
        let metadata = shape.metadata.iter().map(|key| (*key, ColumnBuilder::new(&key.data_type())));
        RowBuilder {
            columns: shape.physical.iter().map(|column| ColumnBuilder::new(&column.data_type)).collect(),
            metadata: metadata.collect(),
            kinds: Vec::new(),
            is_append_only: shape.changes == Changes::AppendOnly,
            schema: shape.arrow_schema(),
        }
    }

    pub(super) fn row_count(&self) -> usize {
        self.kinds.len()
    }

    /// Ends rows of one kind and origin whose values have been pushed.
    #[inline]
    pub(super) fn end_rows(&mut self, count: usize, kind: RowKind, origin: RowOrigin<'_>) {
        let seen = if self.is_append_only { RowKind::Insert } else { kind };
        self.kinds.resize(self.kinds.len() + count, seen as u8);
        for (metadata, column) in &mut self.metadata {
            let text = match metadata {
                Metadata::CommitTime => {
                    if let ColumnValues::Int64(values) = column.values() {
                        values.resize(values.len() + count, origin.commit_time.div_euclid(1_000));
                    }
                    column.mark_valid_rows(count);
                    continue;
                }
                Metadata::DatabaseName => origin.database,
                Metadata::SchemaName => origin.schema,
                Metadata::TableName => origin.table,
                Metadata::RowKind => kind.short_string(),
            };
            (0..count).for_each(|_| column.push_bytes(text.as_bytes()));
        }
    }

    /// Returns the rows and starts anew; `amend` may change physical columns.
    pub(super) fn finish(
        &mut self,
        amend: impl FnOnce(&mut [ArrayRef]) -> Result<()>,
    ) -> Result<ChangelogBatch> {
        let kinds = std::mem::take(&mut self.kinds);
        let mut arrays = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<_>>>()?;
        amend(&mut arrays)?;
        for (_, column) in &mut self.metadata {
            arrays.push(column.finish()?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let rows = RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), arrays, &options)?;
        Ok(ChangelogBatch::with_kind_bytes(rows, Some(Buffer::from_vec(kinds))))
    }
}
