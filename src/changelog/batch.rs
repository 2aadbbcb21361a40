//! Arrow columns with a kind per row. Batches that only insert carry no kinds at all, which is by far the commonest case.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;

use super::RowKind;

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

    /// Returns the same kinds over other columns of the same length.
    ///
    /// # Panics
    /// If the length differs.
    #[must_use]
    pub fn with_rows(&self, rows: RecordBatch) -> ChangelogBatch {
        assert_eq!(rows.num_rows(), self.rows.num_rows(), "one kind per row");
        ChangelogBatch { rows, kinds: self.kinds.clone() }
    }

    /// Returns a part of the rows without copying.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> ChangelogBatch {
        let kinds = self.kinds.as_ref().map(|kinds| kinds.slice_with_length(offset, length));
        ChangelogBatch { rows: self.rows.slice(offset, length), kinds }
    }

    /// Takes the batch apart.
    pub fn into_parts(self) -> (RecordBatch, Option<Buffer>) {
        (self.rows, self.kinds)
    }
}
