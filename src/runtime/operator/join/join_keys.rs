//! The keys of all inputs of a join: one index, in which a row finds its own chain and those of its partners with one search.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use super::ABSENT;
use super::incoming::{Incoming, without_unchanged_updates};
use super::side_state::SideState;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::state::{KeyIndex, hash_rows};

/// The keys.
#[derive(Debug)]
pub(super) struct JoinKeys {
    index: KeyIndex,
    /// The key's columns in each input.
    columns: Vec<Vec<usize>>,
    is_null_safe: Vec<bool>,
    /// Whether NULL is a key of its own, which all others have to do with: then one worker has all rows.
    is_null_aware: bool,
    /// The slot of the key NULL, if `is_null_aware` and there is one.
    null_slot: u32,
}

impl JoinKeys {
    /// Makes an index of keys, which are in these columns of each input.
    ///
    /// # Errors
    /// A type cannot be compared, or two inputs have different ones.
    pub(super) fn new(
        inputs: &[SchemaRef],
        columns: Vec<Vec<usize>>,
        is_null_safe: Vec<bool>,
        is_null_aware: bool,
    ) -> Result<JoinKeys> {
        let types = |input: usize| {
            let types = columns[input].iter().map(|at| inputs[input].field(*at).data_type().clone());
            types.collect::<Vec<_>>()
        };
        let first = types(0);
        if let Some(other) = (1..inputs.len()).map(types).find(|other| *other != first) {
            return Err(Error::internal(format!("a join compares keys of types {first:?} and {other:?}")));
        }
        let index = KeyIndex::new(&first)?;
        Ok(JoinKeys { index, columns, is_null_safe, is_null_aware, null_slot: ABSENT })
    }

    /// Looks the keys of a batch up and writes the rows that it adds. Rows whose key has no partner because of a NULL are left
    /// out unless `keeps_null_keys`. None if nothing is left.
    ///
    /// # Errors
    /// The columns have other types, or the index is full.
    pub(super) fn receive(
        &mut self,
        sides: &mut [SideState],
        input: usize,
        batch: ChangelogBatch,
        keeps_null_keys: bool,
    ) -> Result<Option<Incoming>> {
        let mut batch = without_unchanged_updates(batch)?;
        let mut valid = self.valid_keys(&self.key_columns(input, batch.rows().columns()));
        if let Some(rows) = valid.take_if(|_| !keeps_null_keys) {
            let rows: UInt32Array = rows.valid_indices().map(|row| row as u32).collect();
            batch = batch.take(&rows)?;
        }
        let row_count = batch.row_count();
        if row_count == 0 {
            return Ok(None);
        }
        let (slots, hashes) = self.intern(input, batch.rows().columns(), row_count, valid.as_ref())?;
        for side in sides.iter_mut() {
            side.ensure_slots(self.index.slot_count());
        }
        let kinds = batch.kind_bytes();
        let is_added = |row: usize| slots[row] != ABSENT && kinds.is_none_or(|kinds| kinds[row] & 1 == 0);
        let arrivals = sides[input].arrive(batch.rows().columns(), row_count, &hashes, is_added)?;
        Ok(Some(Incoming { input, batch, slots, arrivals }))
    }

    /// Removes the keys of a batch that no side has rows of any more.
    pub(super) fn remove_empty(&mut self, sides: &[SideState], incoming: &Incoming) {
        if incoming.batch.kind_bytes().is_none() {
            return;
        }
        let mut empty = incoming.slots.clone();
        empty.retain(|slot| *slot != ABSENT && sides.iter().all(|side| side.is_empty(*slot)));
        empty.sort_unstable();
        empty.dedup();
        for slot in empty {
            self.index.remove(slot);
            if slot == self.null_slot {
                self.null_slot = ABSENT;
            }
        }
    }

    /// Puts saved rows of a side back.
    ///
    /// # Errors
    /// The columns have other types, or the index is full.
    pub(super) fn load(&mut self, sides: &mut [SideState], table: usize, rows: &RecordBatch) -> Result<()> {
        let columns = sides[table].saved_columns(rows);
        let (slots, hashes) = self.intern(table, columns, rows.num_rows(), None)?;
        sides[table].load(rows, &hashes, &slots)
    }

    /// Makes chains of what was loaded.
    pub(super) fn finish_load(&self, sides: &mut [SideState]) {
        for side in sides {
            side.ensure_slots(self.index.slot_count());
            side.finish_load();
        }
    }

    /// Returns the slot of the key NULL of a null-aware join, or `ABSENT`.
    pub(super) fn null_slot(&self) -> u32 {
        self.null_slot
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.index.bytes()
    }

    fn key_columns(&self, input: usize, columns: &[ArrayRef]) -> Vec<ArrayRef> {
        self.columns[input].iter().map(|at| Arc::clone(&columns[*at])).collect()
    }

    /// Returns which rows have no NULL that matches nothing; None if all are such.
    fn valid_keys(&self, keys: &[ArrayRef]) -> Option<NullBuffer> {
        let strict = keys.iter().zip(&self.is_null_safe).filter(|(_, is_null_safe)| !**is_null_safe);
        let nulls = strict.fold(None, |nulls: Option<NullBuffer>, (key, _)| {
            NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref())
        });
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// Finds the slots of keys, adding new ones, and their hashes. Rows that are not valid get the slot `ABSENT`.
    fn intern(
        &mut self,
        input: usize,
        columns: &[ArrayRef],
        row_count: usize,
        valid: Option<&NullBuffer>,
    ) -> Result<(Vec<u32>, Vec<u64>)> {
        let keys = self.key_columns(input, columns);
        let (mut hashes, mut slots) = (Vec::new(), Vec::new());
        hash_rows(&keys, row_count, &mut hashes)?;
        let Some(valid) = valid else {
            self.index.intern(&keys, &hashes, &mut slots)?;
            if self.is_null_aware {
                self.note_null(&keys[0], &slots);
                // The key group is that of rows without a key, as the one worker has them.
                hash_rows(&[], row_count, &mut hashes)?;
            }
            return Ok((slots, hashes));
        };
        let rows: UInt32Array = valid.valid_indices().map(|row| row as u32).collect();
        let keys = keys.iter().map(|key| take(key, &rows, None)).collect::<Result<Vec<ArrayRef>, _>>()?;
        let valid_hashes: Vec<u64> = rows.values().iter().map(|row| hashes[*row as usize]).collect();
        let mut found = Vec::new();
        self.index.intern(&keys, &valid_hashes, &mut found)?;
        slots.resize(row_count, ABSENT);
        for (row, slot) in rows.values().iter().zip(found) {
            slots[*row as usize] = slot;
        }
        Ok((slots, hashes))
    }

    fn note_null(&mut self, key: &ArrayRef, slots: &[u32]) {
        let nulls = key.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(row) = nulls.and_then(|nulls| (0..nulls.len()).find(|row| nulls.is_null(*row))) {
            self.null_slot = slots[row];
        }
    }
}
