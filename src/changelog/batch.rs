//! Arrow columns with a kind per row. Batches that only insert carry no kinds at all, which is by far the commonest case.

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::DataType;

use super::RowKind;
use crate::error::Result;

/// Rows and their kinds.
#[derive(Debug, Clone)]
pub struct ChangelogBatch {
    /// The columns.
    rows: RecordBatch,
    /// One kind byte per row; None where every row is `+I`.
    kinds: Option<Buffer>,
}

impl ChangelogBatch {
    /// Creates a batch of inserted rows.
    pub fn inserts(rows: RecordBatch) -> ChangelogBatch {
        ChangelogBatch { rows, kinds: None }
    }

    /// Creates a batch with one kind per row.
    ///
    /// # Panics
    /// If there are more or fewer kinds than rows: the caller lost count, and so would every consumer.
    pub fn with_kinds(rows: RecordBatch, kinds: impl IntoIterator<Item = RowKind>) -> ChangelogBatch {
        let bytes: Vec<u8> = kinds.into_iter().map(|kind| kind as u8).collect();
        assert_eq!(bytes.len(), rows.num_rows(), "one kind per row");
        let kinds = bytes.iter().any(|byte| *byte != 0).then(|| Buffer::from_vec(bytes));
        ChangelogBatch { rows, kinds }
    }

    /// Creates a batch whose kinds are bytes already: those of `RowKind`.
    ///
    /// # Panics
    /// If there are more or fewer kinds than rows.
    pub fn with_kind_bytes(rows: RecordBatch, kinds: Option<Buffer>) -> ChangelogBatch {
        assert!(kinds.as_ref().is_none_or(|kinds| kinds.len() == rows.num_rows()), "one kind per row");
        let kinds = kinds.filter(|kinds| kinds.iter().any(|byte| *byte != 0));
        ChangelogBatch { rows, kinds }
    }

    /// Returns the columns.
    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// Returns the kind bytes, or None where every row is an insert.
    pub fn kind_bytes(&self) -> Option<&[u8]> {
        self.kinds.as_deref()
    }

    /// Returns the kind of a row.
    pub fn kind(&self, row: usize) -> RowKind {
        self.kinds.as_ref().map_or(RowKind::Insert, |kinds| RowKind::from_byte(kinds[row]))
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.num_rows()
    }

    /// Returns about how many bytes the rows take: those of a slice by its length, whatever it was cut from.
    pub fn byte_size(&self) -> usize {
        let column = |column: &ArrayRef| match column.data_type() {
            // Their texts are not in what a slice counts.
            DataType::Utf8View | DataType::BinaryView => column.get_buffer_memory_size(),
            _ => {
                let sliced = column.to_data().get_slice_memory_size();
                sliced.unwrap_or_else(|_| column.get_buffer_memory_size())
            }
        };
        let kinds = self.kinds.as_ref().map_or(0, Buffer::len);
        self.rows.columns().iter().map(column).sum::<usize>() + kinds
    }

    /// Returns the same kinds over other columns of the same length.
    ///
    /// # Panics
    /// If the length differs.
    #[must_use]
    pub fn with_rows(&self, rows: RecordBatch) -> ChangelogBatch {
        assert_eq!(rows.num_rows(), self.rows.num_rows(), "one kind per row");
        ChangelogBatch { rows, kinds: self.kinds.clone() }
    }

    /// Returns chosen columns of all rows.
    ///
    /// # Errors
    /// There is no such column.
    pub fn project(&self, columns: &[usize]) -> Result<ChangelogBatch> {
        Ok(ChangelogBatch { rows: self.rows.project(columns)?, kinds: self.kinds.clone() })
    }

    /// Returns a part of the rows without copying.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> ChangelogBatch {
        let kinds = self.kinds.as_ref().map(|kinds| kinds.slice_with_length(offset, length));
        ChangelogBatch { rows: self.rows.slice(offset, length), kinds }
    }

    /// Returns chosen rows, in the order of the choice.
    ///
    /// # Errors
    /// A position is out of bounds.
    pub fn take(&self, rows: &UInt32Array) -> Result<ChangelogBatch> {
        let kinds = self
            .kinds
            .as_ref()
            .map(|kinds| rows.values().iter().map(|row| kinds[*row as usize]).collect::<Vec<u8>>());
        let rows = match self.rows.num_columns() {
            // Arrow would not know how many rows there are.
            0 => {
                let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
                RecordBatch::try_new_with_options(self.rows.schema(), Vec::new(), &options)?
            }
            _ => take_record_batch(&self.rows, rows)?,
        };
        Ok(ChangelogBatch::with_kind_bytes(rows, kinds.map(Buffer::from_vec)))
    }

    /// Puts batches of equal columns behind each other; None if there are none.
    ///
    /// # Errors
    /// The columns differ.
    pub fn concat(batches: &[ChangelogBatch]) -> Result<Option<ChangelogBatch>> {
        let Some(first) = batches.first() else { return Ok(None) };
        if batches.len() == 1 {
            return Ok(Some(first.clone()));
        }
        let rows = concat_batches(&first.rows.schema(), batches.iter().map(|batch| &batch.rows))?;
        let kinds = batches.iter().any(|batch| batch.kinds.is_some()).then(|| {
            let mut kinds: Vec<u8> = Vec::with_capacity(rows.num_rows());
            for batch in batches {
                match &batch.kinds {
                    Some(bytes) => kinds.extend_from_slice(bytes),
                    None => kinds.resize(kinds.len() + batch.row_count(), 0),
                }
            }
            Buffer::from_vec(kinds)
        });
        Ok(Some(ChangelogBatch { rows, kinds }))
    }

    /// Takes the batch apart.
    pub fn into_parts(self) -> (RecordBatch, Option<Buffer>) {
        (self.rows, self.kinds)
    }
}
