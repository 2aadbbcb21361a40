//! A batch on its way into a join, with its keys looked up.

use arrow::array::{BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::not_distinct;

use super::ABSENT;
use super::side_state::{Arrivals, SideState};
use crate::changelog::ChangelogBatch;
use crate::error::Result;

/// A batch with its keys.
pub(super) struct Incoming {
    /// The side that it comes from.
    pub(super) input: usize,
    pub(super) batch: ChangelogBatch,
    /// The slot of each row's key; `ABSENT` where the key is NULL and therefore has no partner.
    pub(super) slots: Vec<u32>,
    pub(super) arrivals: Arrivals,
}

/// What a row has done to its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Applied {
    /// Whether it is the first row of its key, or was the last.
    pub(super) is_turn: bool,
    /// The number of a row that has been added, else `ABSENT`.
    pub(super) number: u32,
}

impl Incoming {
    /// Returns the columns.
    pub(super) fn rows(&self) -> &RecordBatch {
        self.batch.rows()
    }

    /// Returns the kind byte of a row.
    #[inline]
    pub(super) fn kind(&self, row: usize) -> u8 {
        self.batch.kind_bytes().map_or(0, |kinds| kinds[row])
    }

    /// Returns whether a row is added, not taken back.
    #[inline]
    pub(super) fn is_added(&self, row: usize) -> bool {
        self.kind(row) & 1 == 0
    }

    /// Adds a row to its side or takes it back.
    #[inline]
    pub(super) fn apply(&self, sides: &mut [SideState], row: usize) -> Applied {
        let slot = self.slots[row];
        if slot == ABSENT {
            return Applied { is_turn: false, number: ABSENT };
        }
        let side = &mut sides[self.input];
        let was_empty = side.is_empty(slot);
        let number = if self.is_added(row) {
            side.add(slot, &self.arrivals, row)
        } else {
            side.remove(slot, &self.arrivals, row);
            ABSENT
        };
        Applied { is_turn: was_empty != side.is_empty(slot), number }
    }
}

/// Leaves out a row that is taken back where the next one is the same row again: an update of columns that the join does not see.
///
/// # Errors
/// Columns cannot be compared.
pub(super) fn without_unchanged_updates(batch: ChangelogBatch) -> Result<ChangelogBatch> {
    let Some(kinds) = batch.kind_bytes().filter(|kinds| kinds.len() > 1) else { return Ok(batch) };
    let rows = kinds.len();
    let goes_and_comes = |row: usize| kinds[row] & 1 == 1 && kinds[row + 1] & 1 == 0;
    let mut unchanged = BooleanBuffer::collect_bool(rows - 1, goes_and_comes);
    let columns = batch.rows().columns().iter().filter(|column| !column.data_type().is_null());
    for column in columns {
        if unchanged.count_set_bits() == 0 || column.data_type().is_nested() {
            return Ok(batch);
        }
        let equal: BooleanArray = not_distinct(&column.slice(0, rows - 1), &column.slice(1, rows - 1))?;
        unchanged = &unchanged & equal.values();
    }
    if unchanged.count_set_bits() == 0 {
        return Ok(batch);
    }
    let is_left_out =
        |row: usize| (row < rows - 1 && unchanged.value(row)) || (row > 0 && unchanged.value(row - 1));
    let kept: UInt32Array = (0..rows as u32).filter(|row| !is_left_out(*row as usize)).collect();
    batch.take(&kept)
}
