//! One row per key, with what it was when the epoch began: the state of operators that keep the last row.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use arrow::row::Rows;

use super::row_store::RowStore;
use super::row_table::RowTable;
use super::{ABSENT, KeyIndex, SlotTracker, StateChanges, StateTable, hash_rows};
use crate::error::Result;

/// The last row of each key.
#[derive(Debug)]
pub(crate) struct KeyedRows {
    index: KeyIndex,
    store: RowStore,
    table: RowTable,
    /// The number of the row in each slot, or `ABSENT`.
    current: Vec<u32>,
    tracker: SlotTracker,
    /// The row at the epoch's start of each slot that the epoch has touched, in the order of the first touch.
    before: Vec<u32>,
    /// Rows that have been replaced in the epoch.
    retired: Vec<u32>,
    hashes: Vec<u64>,
}

/// How a key's row has changed in an epoch; `ABSENT` where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowChange {
    /// The row when the epoch began.
    pub(crate) before: u32,
    /// The row now.
    pub(crate) now: u32,
}

impl KeyedRows {
    /// Makes the state for rows of an input under keys, which are also what the input is distributed by.
    ///
    /// # Errors
    /// A column's type cannot be a key, or cannot be stored.
    pub(crate) fn new(name: &'static str, input: &SchemaRef, keys: &[usize]) -> Result<KeyedRows> {
        let key_types: Vec<ArrowType> =
            keys.iter().map(|column| input.field(*column).data_type().clone()).collect();
        Ok(KeyedRows {
            index: KeyIndex::new(&key_types)?,
            store: RowStore::new(input.fields().iter().map(|field| field.data_type()))?,
            table: RowTable::new(name, input, keys, false),
            current: Vec::new(),
            tracker: SlotTracker::default(),
            before: Vec::new(),
            retired: Vec::new(),
            hashes: Vec::new(),
        })
    }

    /// Finds the slot of every row's key, adding new ones. Each must be given to `upsert` or `delete`.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn slots(&mut self, columns: &[ArrayRef], count: usize, slots: &mut Vec<u32>) -> Result<()> {
        let keys = self.table.key_columns(columns);
        hash_rows(&keys, count, &mut self.hashes)?;
        self.index.intern(&keys, &self.hashes, slots)?;
        self.current.resize(self.index.slot_count(), ABSENT);
        Ok(())
    }

    /// Encodes rows in the form in which they are stored.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Rows> {
        self.store.encode(columns, row_count)
    }

    /// Sets the row of a key.
    pub(crate) fn upsert(&mut self, slot: u32, row: &[u8]) {
        self.touch(slot);
        self.retire(slot);
        self.current[slot as usize] = self.store.insert(row);
    }

    /// Takes the row of a key away, if there is one.
    pub(crate) fn delete(&mut self, slot: u32) {
        self.touch(slot);
        self.retire(slot);
        self.current[slot as usize] = ABSENT;
    }

    /// Takes the rows of all keys away.
    pub(crate) fn delete_all(&mut self) {
        for slot in 0..self.current.len() {
            if self.current[slot] != ABSENT {
                self.delete(slot as u32);
            }
        }
    }

    /// Notes what has become of a key in this epoch, before it changes.
    fn touch(&mut self, slot: u32) {
        if self.tracker.touch(slot) {
            self.before.push(self.current[slot as usize]);
        }
    }

    fn retire(&mut self, slot: u32) {
        let number = self.current[slot as usize];
        if number != ABSENT {
            self.retired.push(number);
        }
    }

    /// Calls back for the keys whose row is not what it was when the epoch began, then forgets the earlier rows.
    ///
    /// # Errors
    /// Those of the callback.
    pub(crate) fn end_epoch(
        &mut self,
        changes: impl FnOnce(&RowStore, &[RowChange]) -> Result<()>,
    ) -> Result<()> {
        let touched = self.tracker.take_touched();
        let mut changed = Vec::new();
        for (slot, before) in touched.iter().zip(self.before.drain(..)) {
            let change = RowChange { before, now: self.current[*slot as usize] };
            let is_same = match (change.before, change.now) {
                (ABSENT, ABSENT) => true,
                (ABSENT, _) | (_, ABSENT) => false,
                (before, now) => self.store.get(before) == self.store.get(now),
            };
            if !is_same {
                changed.push(change);
            }
        }
        changes(&self.store, &changed)?;
        self.retired.drain(..).for_each(|number| self.store.remove(number));
        for slot in touched {
            if self.current[slot as usize] == ABSENT && self.tracker.release(slot) {
                self.index.remove(slot);
            }
        }
        Ok(())
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
        let changed = self.tracker.take_changed(|slot| self.current[slot as usize] != ABSENT);
        let numbers: Vec<u32> = changed.upserts.iter().map(|slot| self.current[*slot as usize]).collect();
        let columns = self.store.columns(&numbers)?;
        let upsert_groups = self.table.groups(&self.table.key_columns(&columns), numbers.len())?;
        let upserts = self.table.rows(&columns, Vec::new(), numbers.len())?;
        let keys = self.index.columns(&changed.deletes)?;
        let delete_groups = self.table.groups(&keys, changed.deletes.len())?;
        let deletes = self.table.keys(keys, Vec::new(), changed.deletes.len())?;
        changed.deletes.iter().for_each(|slot| self.index.remove(*slot));
        Ok(StateChanges { upserts, upsert_groups, deletes, delete_groups })
    }

    /// Puts saved rows back.
    ///
    /// # Errors
    /// The rows do not fit.
    pub(crate) fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        let (columns, _) = self.table.columns(rows)?;
        let encoded = self.store.encode(&columns, rows.num_rows())?;
        let mut slots = Vec::new();
        self.slots(&columns, rows.num_rows(), &mut slots)?;
        for (row, slot) in encoded.iter().zip(slots) {
            self.current[slot as usize] = self.store.insert(row.data());
            self.tracker.load(slot);
        }
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        let numbers = self.current.capacity() + self.before.capacity() + self.retired.capacity();
        self.index.bytes()
            + self.store.bytes()
            + self.tracker.bytes()
            + numbers * size_of::<u32>()
            + self.hashes.capacity() * size_of::<u64>()
    }
}
