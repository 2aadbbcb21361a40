//! Rows in columns that grow, found by number; the numbers of freed rows are given again.
//!
//! Every column is a vector of its values' bits, whatever they mean, so that a gather is one loop over a slice and a freed row
//! costs nothing but its number. What has no fixed width lies in an arena, whose dead space is taken back when it is more than
//! what is in use.

mod byte_arena;
mod null_bits;
mod stored_column;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;

use self::stored_column::{ColumnView, StoredColumn};
use crate::error::Result;

/// Rows by number.
#[derive(Debug)]
pub(super) struct RowStore {
    columns: Vec<StoredColumn>,
}

/// The columns of a batch, in the form in which they are written to a store and compared with it.
pub(super) struct RowsView {
    columns: Vec<ColumnView>,
}

impl RowStore {
    /// Makes an empty store of columns of these types.
    ///
    /// # Errors
    /// A type cannot be kept.
    pub(super) fn new<'a>(types: impl IntoIterator<Item = &'a ArrowType>) -> Result<RowStore> {
        let columns = types.into_iter().map(StoredColumn::new).collect::<Result<_>>()?;
        Ok(RowStore { columns })
    }

    /// Returns a batch's columns in the store's form.
    ///
    /// # Errors
    /// The columns have other types.
    pub(super) fn view(&self, columns: &[ArrayRef]) -> Result<RowsView> {
        let columns = self.columns.iter().zip(columns).map(|(stored, column)| stored.view(column));
        Ok(RowsView { columns: columns.collect::<Result<_>>()? })
    }

    /// Writes rows of a batch under the given numbers.
    pub(super) fn write(&mut self, numbers: &[u32], view: &RowsView, rows: &[u32]) {
        let Some(len) = numbers.iter().max().map(|largest| *largest as usize + 1) else { return };
        for (column, view) in self.columns.iter_mut().zip(&view.columns) {
            column.write(len, numbers, view, rows);
        }
    }

    /// Frees what a row holds beside its number.
    pub(super) fn clear(&mut self, number: u32) {
        for column in &mut self.columns {
            column.clear(number as usize);
        }
    }

    /// Returns whether a row equals a batch's row in the given columns; NULL equals NULL, floats compare by bits.
    #[inline]
    pub(super) fn equals(&self, number: u32, view: &RowsView, row: u32, columns: &[usize]) -> bool {
        columns.iter().all(|at| self.columns[*at].equals(number as usize, &view.columns[*at], row as usize))
    }

    /// Returns a column of the given rows; a number that is not there (`ABSENT`) is NULL.
    ///
    /// # Errors
    /// A column cannot be built: a text of more than 2 GiB.
    pub(super) fn gather(&self, column: usize, numbers: &[u32]) -> Result<ArrayRef> {
        self.columns[column].gather(numbers)
    }

    /// Keeps these rows, which get the numbers from 0 on in this order.
    pub(super) fn keep(&mut self, numbers: &[u32]) {
        self.columns.iter_mut().for_each(|column| column.keep(numbers));
    }

    /// Returns how many columns there are.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(StoredColumn::bytes).sum()
    }
}
