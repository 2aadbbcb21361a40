//! Keeps one row of each key: the first to arrive, of which only the key is remembered, or the last.
//!
//! The last row is what `ChangelogNormalize` keeps, so that operator does it; here it only has another name.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;

use super::{ChangelogNormalize, EpochEnd, Operator, Output};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::state::{KeyIndex, RowTable, SlotTracker, StateChanges, StateTable, hash_rows};

/// The first or last row of each key.
pub(crate) enum Deduplicate {
    /// Lets a key's first row through.
    First(Box<FirstRows>),
    /// Replaces a key's row by the next.
    Last(Box<ChangelogNormalize>),
}

/// The keys of which a row has come.
pub(crate) struct FirstRows {
    keys: Vec<usize>,
    index: KeyIndex,
    table: RowTable,
    tracker: SlotTracker,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

impl Deduplicate {
    /// Makes the operator over an input's columns.
    ///
    /// # Errors
    /// A column cannot be a key or be stored.
    pub(crate) fn new(keys: &[usize], keeps_last: bool, input: &SchemaRef) -> Result<Deduplicate> {
        if keeps_last {
            return Ok(Deduplicate::Last(Box::new(ChangelogNormalize::over_keys(keys, input)?)));
        }
        let key_schema: SchemaRef = Arc::new(input.project(keys)?);
        let key_types: Vec<_> = key_schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let positions: Vec<usize> = (0..keys.len()).collect();
        Ok(Deduplicate::First(Box::new(FirstRows {
            keys: keys.to_vec(),
            index: KeyIndex::new(&key_types)?,
            table: RowTable::new("keys", &key_schema, &positions, false),
            tracker: SlotTracker::default(),
            hashes: Vec::new(),
            slots: Vec::new(),
        })))
    }
}

impl FirstRows {
    fn process(&mut self, batch: &ChangelogBatch, output: &mut Output) -> Result<()> {
        if batch.kind_bytes().is_some_and(|kinds| kinds.iter().any(|kind| kind & 1 == 1)) {
            return Err(Error::internal("a first row that has been passed on cannot be taken back"));
        }
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(batch.rows().column(*key))).collect();
        hash_rows(&keys, batch.row_count(), &mut self.hashes)?;
        // Slots of keys that only ever come are given in ascending order.
        let mut next = self.index.slot_count() as u32;
        self.index.intern(&keys, &self.hashes, &mut self.slots)?;
        let mut first = Vec::new();
        for (row, slot) in self.slots.iter().enumerate() {
            if *slot == next {
                next += 1;
                self.tracker.change(*slot);
                first.push(row as u32);
            }
        }
        let rows = ChangelogBatch::inserts(batch.rows().clone());
        output.push(if first.len() == rows.row_count() {
            rows
        } else {
            rows.take(&UInt32Array::from(first))?
        });
        Ok(())
    }

    fn take_changes(&mut self) -> Result<StateChanges> {
        let slots = self.tracker.take_changed(|_| true).upserts;
        let keys = self.index.columns(&slots)?;
        Ok(StateChanges {
            upsert_groups: self.table.groups(&keys, slots.len())?,
            upserts: self.table.keys(keys, Vec::new(), slots.len())?,
            deletes: RecordBatch::new_empty(self.table.state_table().schema),
            delete_groups: Vec::new(),
        })
    }

    fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        let (keys, _) = self.table.columns(rows)?;
        hash_rows(&keys, rows.num_rows(), &mut self.hashes)?;
        self.index.intern(&keys, &self.hashes, &mut self.slots)?;
        self.slots.iter().for_each(|slot| self.tracker.load(*slot));
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.index.bytes()
            + self.tracker.bytes()
            + self.hashes.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<u32>()
    }
}

impl Operator for Deduplicate {
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        match self {
            Deduplicate::First(rows) => rows.process(&batch, output),
            Deduplicate::Last(rows) => rows.process(input, batch, output),
        }
    }

    fn end_epoch(&mut self, epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        match self {
            Deduplicate::First(_) => Ok(()),
            Deduplicate::Last(rows) => rows.end_epoch(epoch, output),
        }
    }

    fn state_tables(&self) -> Vec<StateTable> {
        match self {
            Deduplicate::First(rows) => vec![rows.table.state_table()],
            Deduplicate::Last(rows) => rows.state_tables(),
        }
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        match self {
            Deduplicate::First(rows) => Ok(vec![rows.take_changes()?]),
            Deduplicate::Last(rows) => rows.take_changes(),
        }
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        match self {
            Deduplicate::First(first) => first.load(rows),
            Deduplicate::Last(last) => last.load(table, rows),
        }
    }

    fn state_bytes(&self) -> usize {
        match self {
            Deduplicate::First(rows) => rows.bytes(),
            Deduplicate::Last(rows) => rows.state_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Harness, Random, TestInput, check, check_rules, fold, schema};
    use super::*;
    use arrow::datatypes::DataType::{Int32, Utf8};

    fn columns() -> SchemaRef {
        schema(&[("k", Utf8), ("v", Int32)])
    }

    fn input() -> [TestInput; 1] {
        [TestInput::new(&columns(), &[0])]
    }

    fn first() -> Deduplicate {
        Deduplicate::new(&[0], false, &columns()).unwrap()
    }

    fn last() -> Deduplicate {
        Deduplicate::new(&[0], true, &columns()).unwrap()
    }

    #[test]
    fn the_first_row_of_a_key_is_let_through_and_no_other() {
        let lines = ["+I a 1", "+I a 2", "+I NULL 3", "+I '' 4", "+I NULL 5"];
        check(first, &input(), &lines, &["+I a 1", "+I NULL 3", "+I '' 4"]);
        assert_eq!(Harness::new(first, &input()).epoch(&lines), ["+I a 1", "+I NULL 3", "+I '' 4"]);
    }

    #[test]
    fn the_last_row_of_a_key_replaces_the_one_before() {
        check(
            last,
            &input(),
            &["+I a 1", "+I b 2", "+I a 3", "+I a 3", "-D a 3", "+I a 4"],
            &["+I a 1", "+I b 2", "-U a 1", "+U a 3", "-D a 3", "+I a 4"],
        );
    }

    #[test]
    fn a_restart_forgets_no_key() {
        let mut random = Random::new(5);
        for _ in 0..20 {
            let lines = random.inserts(&columns(), 60);
            let expected = Harness::new(first, &input()).per_record(&lines);
            let mut restarted = Harness::new(first, &input());
            let mut emitted = Vec::new();
            for part in random.split(&lines) {
                emitted.extend(restarted.epoch(part));
                restarted.restart(1 + random.below(3));
            }
            assert_eq!(fold(&emitted), fold(&expected));
            assert_eq!(restarted.saved(0).len(), expected.len());
        }
    }

    #[test]
    fn the_last_rows_add_up_to_the_last_row_of_each_key() {
        let mut random = Random::new(3);
        for _ in 0..20 {
            let lines = random.changelog(&columns(), &[0], 150);
            let sum = check_rules(last, &input(), &lines, &mut random);
            assert_eq!(sum, fold(&lines));
        }
    }
}
