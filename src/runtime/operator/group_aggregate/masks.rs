//! Which rows of a batch count for which FILTER. Calls with the same FILTER share a mask; where every row counts there is none.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use super::rows::Selection;
use crate::error::{Error, Result};

/// Which rows of a batch count for which FILTER.
pub(super) struct Masks {
    row_count: usize,
    /// For each FILTER, and first for none.
    masks: Vec<(Option<usize>, Option<BooleanBuffer>)>,
}

impl Masks {
    /// Makes the mask of calls without FILTER: all rows but strays, which take back what is in no group.
    pub(super) fn new(row_count: usize, strays: &[usize]) -> Masks {
        let base = (!strays.is_empty()).then(|| {
            let mut is_known = vec![true; row_count];
            strays.iter().for_each(|row| is_known[*row] = false);
            BooleanBuffer::from(is_known)
        });
        Masks { row_count, masks: vec![(None, base)] }
    }

    /// Makes the mask of a FILTER.
    ///
    /// # Errors
    /// The column is not BOOLEAN.
    pub(super) fn add(&mut self, filter: Option<usize>, columns: &[ArrayRef]) -> Result<()> {
        let Some(column) = filter else { return Ok(()) };
        if self.masks.iter().any(|(known, _)| *known == filter) {
            return Ok(());
        }
        let column = columns[column]
            .as_boolean_opt()
            .ok_or_else(|| Error::internal("a FILTER is a column of BOOLEAN"))?;
        let mut mask = column.values().clone();
        for also in column.nulls().map(NullBuffer::inner).into_iter().chain(&self.masks[0].1) {
            mask = &mask & also;
        }
        self.masks.push((filter, Some(mask)));
        Ok(())
    }

    /// Returns the rows of a range that count.
    pub(super) fn select(&self, filter: Option<usize>, range: Range<usize>) -> Selection<'_> {
        match self.masks.iter().find(|(known, _)| *known == filter) {
            Some((_, Some(mask))) => Selection::Masked(range, mask),
            _ => Selection::All(range),
        }
    }

    /// Returns the rows that count.
    pub(super) fn select_all(&self, filter: Option<usize>) -> Selection<'_> {
        self.select(filter, 0..self.row_count)
    }
}
