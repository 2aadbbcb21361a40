//! Rows under keys that differ by when they came: equal rows are kept as often as they are there, each in its place.
//!
//! A row has a number, which says where it lies and is given again, and a sequence number, which says when it came, is never given
//! again under its key, and is what a checkpoint tells equal rows apart by.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::row::Rows;

use super::row_store::RowStore;
use super::row_table::RowTable;
use super::{PagedVec, SlotTracker, StateChanges, StateTable};
use crate::error::Result;

/// Rows in their order of arrival.
#[derive(Debug)]
pub(crate) struct SequencedRows {
    store: RowStore,
    table: RowTable,
    /// By number, as the next one.
    sequences: PagedVec<i64>,
    is_live: PagedVec<bool>,
    tracker: SlotTracker,
    next_sequence: i64,
}

impl SequencedRows {
    /// Makes the state for rows of an input under keys, which are also what the input is distributed by.
    ///
    /// # Errors
    /// A column's type cannot be stored.
    pub(crate) fn new(name: &'static str, input: &SchemaRef, keys: &[usize]) -> Result<SequencedRows> {
        Ok(SequencedRows {
            store: RowStore::new(input.fields().iter().map(|field| field.data_type()))?,
            table: RowTable::new(name, input, keys, true),
            sequences: PagedVec::default(),
            is_live: PagedVec::default(),
            tracker: SlotTracker::default(),
            next_sequence: 0,
        })
    }

    /// Encodes rows in the form in which they are stored and compared.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Rows> {
        self.store.encode(columns, row_count)
    }

    /// Adds a row that comes after all others.
    pub(crate) fn insert(&mut self, row: &[u8]) -> u32 {
        let number = self.put(row, self.next_sequence);
        self.next_sequence += 1;
        self.tracker.change(number);
        number
    }

    /// Adds a row that takes the place of another, which is removed by itself.
    pub(crate) fn insert_in_place_of(&mut self, other: u32, row: &[u8]) -> u32 {
        let number = self.put(row, self.sequence(other));
        self.tracker.change(number);
        number
    }

    /// Removes a row. Its number may stay in use until the next checkpoint has said that it has gone.
    pub(crate) fn remove(&mut self, number: u32) {
        self.is_live[number as usize] = false;
        if self.tracker.release(number) {
            self.store.remove(number);
        }
    }

    /// Returns a row.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        self.store.get(number)
    }

    /// Returns when a row came.
    #[inline]
    pub(crate) fn sequence(&self, number: u32) -> i64 {
        self.sequences[number as usize]
    }

    /// Returns rows as columns.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn columns(&self, numbers: &[u32]) -> Result<Vec<ArrayRef>> {
        self.store.columns(numbers)
    }

    /// Describes the table.
    pub(crate) fn state_table(&self) -> StateTable {
        self.table.state_table()
    }

    /// Takes what has changed since the last call.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn take_changes(&mut self) -> Result<StateChanges> {
        let changed = self.tracker.take_changed(|number| self.is_live[number as usize]);
        let columns = self.columns(&changed.upserts)?;
        let upsert_groups = self.table.groups(&self.table.key_columns(&columns), changed.upserts.len())?;
        let upserts =
            self.table.rows(&columns, self.sequences_of(&changed.upserts), changed.upserts.len())?;
        let keys = self.deleted_keys(&changed.deletes)?;
        let delete_groups = self.table.groups(&keys, changed.deletes.len())?;
        let deletes = self.table.keys(keys, self.sequences_of(&changed.deletes), changed.deletes.len())?;
        changed.deletes.iter().for_each(|number| self.store.remove(*number));
        Ok(StateChanges { upserts, upsert_groups, deletes, delete_groups })
    }

    /// Puts saved rows back and returns their columns and numbers.
    ///
    /// # Errors
    /// The rows do not fit.
    pub(crate) fn load(&mut self, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, Vec<u32>)> {
        let (columns, sequences) = self.table.columns(rows)?;
        let encoded = self.store.encode(&columns, rows.num_rows())?;
        let mut numbers = Vec::with_capacity(rows.num_rows());
        for (row, sequence) in encoded.iter().zip(sequences) {
            let number = self.put(row.data(), *sequence);
            self.tracker.load(number);
            self.next_sequence = self.next_sequence.max(sequence + 1);
            numbers.push(number);
        }
        Ok((columns, numbers))
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.store.bytes() + self.tracker.bytes() + self.sequences.bytes() + self.is_live.bytes()
    }

    fn put(&mut self, row: &[u8], sequence: i64) -> u32 {
        let number = self.store.insert(row);
        let at = number as usize;
        self.sequences.grow(at + 1, 0);
        self.is_live.grow(at + 1, false);
        self.sequences[at] = sequence;
        self.is_live[at] = true;
        number
    }

    fn sequences_of(&self, numbers: &[u32]) -> Vec<i64> {
        numbers.iter().map(|number| self.sequence(*number)).collect()
    }

    fn deleted_keys(&self, numbers: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(self.table.key_columns(&self.columns(numbers)?))
    }
}
