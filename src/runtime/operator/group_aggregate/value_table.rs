//! A shared table over the values of a column: counted, or only noted where no row is ever taken back.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType as ArrowType;

use super::rows::Rows;
use super::seen_values::SeenValues;
use super::tables::Saved;
use super::value_counts::ValueCounts;
use crate::error::{Error, Result};

/// The values of groups.
#[derive(Debug)]
pub(super) enum ValueTable {
    /// How often each is there.
    Counted(Box<ValueCounts>),
    /// Which have been there.
    Seen(SeenValues),
}

impl ValueTable {
    /// Makes the values of no groups.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn new(data_type: &ArrowType, keeps_nulls: bool, is_counted: bool) -> Result<ValueTable> {
        Ok(if is_counted {
            ValueTable::Counted(Box::new(ValueCounts::new(data_type, keeps_nulls)?))
        } else {
            ValueTable::Seen(SeenValues::new(data_type, keeps_nulls)?)
        })
    }

    /// Returns whether values are counted.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self, ValueTable::Counted(_))
    }

    /// Returns the counts.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn counts(&self) -> Result<&ValueCounts> {
        match self {
            ValueTable::Counted(counts) => Ok(counts),
            ValueTable::Seen(_) => Err(Error::internal("the values of a column are not counted")),
        }
    }

    /// Follows the smallest or the largest value of each group; only where values are counted.
    pub(super) fn track_extreme(&mut self, is_max: bool) {
        if let ValueTable::Counted(counts) = self {
            counts.track_extreme(is_max);
        }
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        match self {
            ValueTable::Counted(counts) => counts.grow(slot_count),
            ValueTable::Seen(seen) => seen.grow(slot_count),
        }
    }

    /// Looks up all rows of a batch.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn begin_batch(&mut self, column: &ArrayRef, rows: &Rows<'_>) -> Result<()> {
        match self {
            ValueTable::Counted(counts) => counts.begin_batch(column, rows),
            ValueTable::Seen(seen) => seen.begin_batch(column),
        }
    }

    /// Adds and takes back rows; of one batch they come in order.
    pub(super) fn apply(&mut self, rows: &Rows<'_>) {
        match self {
            ValueTable::Counted(counts) => counts.apply(rows),
            ValueTable::Seen(seen) => seen.apply(rows),
        }
    }

    /// Returns the rows of the last `apply` that made a value come or go: those that count for DISTINCT.
    pub(super) fn transitions(&self) -> &[u32] {
        match self {
            ValueTable::Counted(counts) => counts.transitions(),
            ValueTable::Seen(seen) => seen.transitions(),
        }
    }

    /// Forgets all values of a group; a group whose rows are never taken back does not die.
    pub(super) fn clear(&mut self, slot: u32) {
        if let ValueTable::Counted(counts) = self {
            counts.clear(slot);
        }
    }

    /// Ends a batch, or a round of `clear`.
    pub(super) fn sweep(&mut self) {
        if let ValueTable::Counted(counts) = self {
            counts.sweep();
        }
    }

    /// Takes what a checkpoint has to write, and what it has to delete.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self) -> Result<(Saved, Saved)> {
        match self {
            ValueTable::Counted(counts) => counts.take_changes(),
            ValueTable::Seen(seen) => seen.take_changes(),
        }
    }

    /// Puts saved values back.
    ///
    /// # Errors
    /// The columns are others.
    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        match self {
            ValueTable::Counted(counts) => counts.load(slots, columns),
            ValueTable::Seen(seen) => seen.load(slots, columns),
        }
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        match self {
            ValueTable::Counted(counts) => counts.bytes(),
            ValueTable::Seen(seen) => seen.bytes(),
        }
    }
}
