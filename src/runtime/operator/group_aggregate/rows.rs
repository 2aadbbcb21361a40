//! The rows of a part of a batch as accumulators see them: which count, in which group, and whether they are taken back.
//!
//! The loops are here, once, so that each accumulator's step is compiled into a loop of its own; the commonest one, over inserts
//! without NULLs and FILTER, looks at nothing but slots and values.

use std::ops::Range;

use arrow::buffer::{BooleanBuffer, NullBuffer};

/// Rows with their groups.
#[derive(Clone)]
pub(super) struct Rows<'a> {
    /// The group of each row of the batch.
    pub(super) slots: &'a [u32],
    /// The kind of each row of the batch; None where all are inserts.
    pub(super) kinds: Option<&'a [u8]>,
    /// Which rows count.
    pub(super) selection: Selection<'a>,
}

/// Which rows of a batch count.
#[derive(Clone)]
pub(super) enum Selection<'a> {
    /// A range.
    All(Range<usize>),
    /// Those of a range whose bit is set.
    Masked(Range<usize>, &'a BooleanBuffer),
    /// These.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// Calls `visit(row, slot, is_retraction)` for each row that counts and is not NULL.
    #[inline]
    pub(super) fn for_each(&self, nulls: Option<&NullBuffer>, mut visit: impl FnMut(usize, usize, bool)) {
        let mut visit_row = |row: usize| {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                let is_retraction = self.kinds.is_some_and(|kinds| kinds[row] & 1 != 0);
                visit(row, self.slots[row] as usize, is_retraction);
            }
        };
        match &self.selection {
            Selection::All(range) => range.clone().for_each(visit_row),
            Selection::Masked(range, mask) => {
                range.clone().filter(|row| mask.value(*row)).for_each(visit_row);
            }
            Selection::Listed(rows) => rows.iter().for_each(|row| visit_row(*row as usize)),
        }
    }

    /// Calls `visit(slot, value, is_retraction)` for each row that counts and is not NULL.
    #[inline]
    pub(super) fn for_each_value<T: Copy>(
        &self,
        values: &[T],
        nulls: Option<&NullBuffer>,
        mut visit: impl FnMut(usize, T, bool),
    ) {
        let (Selection::All(range), None) = (&self.selection, nulls) else {
            self.for_each(nulls, |row, slot, is_retraction| visit(slot, values[row], is_retraction));
            return;
        };
        let rows = self.slots[range.clone()].iter().zip(&values[range.clone()]);
        match self.kinds {
            None => rows.for_each(|(slot, value)| visit(*slot as usize, *value, false)),
            Some(kinds) => {
                for ((slot, value), kind) in rows.zip(&kinds[range.clone()]) {
                    visit(*slot as usize, *value, kind & 1 != 0);
                }
            }
        }
    }
}
