//! A batch on its way into a join: without rows that can change nothing, and with its keys looked up.

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::take;
use std::sync::Arc;

use super::super::super::state::{ABSENT, KeyIndex, hash_rows};
use super::side_state::Arrivals;
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
    for column in batch.rows().columns() {
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

/// Returns which rows have a NULL in a column whose NULLs match nothing; None if no row has.
pub(super) fn rows_without_key(keys: &[ArrayRef], is_null_safe: &[bool]) -> Option<NullBuffer> {
    let strict = keys.iter().zip(is_null_safe).filter(|(_, is_null_safe)| !**is_null_safe);
    let nulls = strict.fold(None, |nulls: Option<NullBuffer>, (key, _)| {
        NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref())
    });
    nulls.filter(|nulls| nulls.null_count() > 0)
}

/// Finds the slots of keys, adding those that are new; rows that `nulls` names get `ABSENT`. Returns slots and hashes.
///
/// # Errors
/// The columns have other types than the index, or it is full.
pub(super) fn intern_keys(
    index: &mut KeyIndex,
    keys: &[ArrayRef],
    row_count: usize,
    nulls: Option<&NullBuffer>,
) -> Result<(Vec<u32>, Vec<u64>)> {
    let (mut hashes, mut slots) = (Vec::new(), Vec::new());
    hash_rows(keys, row_count, &mut hashes)?;
    let Some(nulls) = nulls else {
        index.intern(keys, &hashes, &mut slots)?;
        return Ok((slots, hashes));
    };
    let rows: UInt32Array = nulls.valid_indices().map(|row| row as u32).collect();
    let keys = keys.iter().map(|key| take(key, &rows, None)).collect::<Result<Vec<ArrayRef>, _>>()?;
    let valid: Vec<u64> = rows.values().iter().map(|row| hashes[*row as usize]).collect();
    let mut found = Vec::new();
    index.intern(&keys, &valid, &mut found)?;
    slots.resize(row_count, ABSENT);
    for (row, slot) in rows.values().iter().zip(found) {
        slots[*row as usize] = slot;
    }
    Ok((slots, hashes))
}

/// Returns the key columns of a batch.
pub(super) fn key_columns(columns: &[ArrayRef], keys: &[usize]) -> Vec<ArrayRef> {
    keys.iter().map(|at| Arc::clone(&columns[*at])).collect()
}
