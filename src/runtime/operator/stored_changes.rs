//! Changes of stored rows on their way out: numbers and kinds, which become columns all at once.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;

/// Rows to emit, in order.
#[derive(Debug, Default)]
pub(super) struct StoredChanges {
    numbers: Vec<u32>,
    kinds: Vec<u8>,
}

impl StoredChanges {
    /// Adds a row by its number in a store.
    #[inline]
    pub(super) fn push(&mut self, kind: RowKind, number: u32) {
        self.numbers.push(number);
        self.kinds.push(kind as u8);
    }

    /// Returns the numbers, in order.
    pub(super) fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Makes a batch of the rows' columns.
    ///
    /// # Errors
    /// The columns are not those of the schema.
    pub(super) fn into_batch(self, schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<ChangelogBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.numbers.len()));
        let rows = RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)?;
        Ok(ChangelogBatch::with_kind_bytes(rows, Some(Buffer::from_vec(self.kinds))))
    }
}
