//! INTERSECT and EXCEPT: how often each distinct row is there on the left and on the right, and how often it follows that it is in
//! the result. NULLs are equal.
//!
//! Flink computes ALL from an aggregate over both inputs whose row it repeats: a change of the counts takes back every copy and adds
//! the new ones. Over one input row that is what comes out; over more only the copies that have come or gone.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef};

use super::stored_changes::StoredChanges;
use super::{EpochEnd, Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;
use crate::state::{KeyIndex, SlotTracker, StateChanges, StateTable, hash_rows, key_group, stable_names};

/// INTERSECT or EXCEPT.
pub(crate) struct SetOperation {
    is_intersect: bool,
    is_all: bool,
    index: KeyIndex,
    /// How often each row is there on the left and on the right.
    counts: Vec<[i64; 2]>,
    tracker: SlotTracker,
    /// The counts at the epoch's start of the rows that it has touched, in the order of the first touch.
    before: Vec<[i64; 2]>,
    epoch_rows: usize,
    schema: SchemaRef,
    state_schema: SchemaRef,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

impl SetOperation {
    /// Makes the operator; both inputs have the types of the output.
    ///
    /// # Errors
    /// A column cannot be compared.
    pub(crate) fn new(is_intersect: bool, is_all: bool, output: &SchemaRef) -> Result<SetOperation> {
        let types: Vec<ArrowType> = output.fields().iter().map(|field| field.data_type().clone()).collect();
        let names = output.fields().iter().map(|field| field.name().as_str());
        let names = stable_names(names.chain(["left", "right"]));
        let counted = [ArrowType::Int64, ArrowType::Int64];
        let fields = names.into_iter().zip(types.iter().chain(&counted));
        let fields: Vec<Field> = fields.map(|(name, of)| Field::new(name, of.clone(), true)).collect();
        Ok(SetOperation {
            is_intersect,
            is_all,
            index: KeyIndex::new(&types)?,
            counts: Vec::new(),
            tracker: SlotTracker::default(),
            before: Vec::new(),
            epoch_rows: 0,
            schema: Arc::clone(output),
            state_schema: Arc::new(Schema::new(fields)),
            hashes: Vec::new(),
            slots: Vec::new(),
        })
    }

    fn find_rows(&mut self, columns: &[ArrayRef], count: usize) -> Result<()> {
        hash_rows(columns, count, &mut self.hashes)?;
        self.index.intern(columns, &self.hashes, &mut self.slots)?;
        self.counts.resize(self.index.slot_count(), [0, 0]);
        Ok(())
    }

    /// Returns how often a row is in the result.
    fn copies(&self, [left, right]: [i64; 2]) -> i64 {
        match (self.is_intersect, self.is_all) {
            (true, true) => left.min(right),
            (true, false) => i64::from(left > 0 && right > 0),
            (false, true) => (left - right).max(0),
            (false, false) => i64::from(left > 0 && right == 0),
        }
    }

    /// Adds what a change of counts means for the result.
    fn compare(&self, slot: u32, before: [i64; 2], now: [i64; 2], changes: &mut StoredChanges) {
        let (had, has) = (self.copies(before), self.copies(now));
        let mut repeat = |kind, count: i64| (0..count).for_each(|_| changes.push(kind, slot));
        if self.is_all && self.epoch_rows == 1 && before != now {
            repeat(if now == [0, 0] { RowKind::Delete } else { RowKind::UpdateBefore }, had);
            repeat(if before == [0, 0] { RowKind::Insert } else { RowKind::UpdateAfter }, has);
        } else {
            repeat(RowKind::Delete, had - has);
            repeat(RowKind::Insert, has - had);
        }
    }

    fn state_rows(&self, slots: &[u32]) -> Result<RecordBatch> {
        let mut columns = self.index.columns(slots)?;
        for side in 0..2 {
            let counts = slots.iter().map(|slot| self.counts[*slot as usize][side]);
            columns.push(Arc::new(Int64Array::from_iter_values(counts)));
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.state_schema), columns)?)
    }
}

impl Operator for SetOperation {
    fn process(&mut self, input: usize, batch: ChangelogBatch, _output: &mut Output) -> Result<()> {
        self.epoch_rows += batch.row_count();
        self.find_rows(batch.rows().columns(), batch.row_count())?;
        for (row, slot) in self.slots.iter().enumerate() {
            if self.tracker.touch(*slot) {
                self.before.push(self.counts[*slot as usize]);
            }
            let count = &mut self.counts[*slot as usize][input];
            // A retraction of what is not there is passed over.
            *count = if batch.kind(row).is_retraction() { (*count - 1).max(0) } else { *count + 1 };
        }
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        let touched = self.tracker.take_touched();
        let mut changes = StoredChanges::default();
        for (slot, before) in touched.iter().zip(std::mem::take(&mut self.before)) {
            self.compare(*slot, before, self.counts[*slot as usize], &mut changes);
        }
        let columns = self.index.columns(changes.numbers())?;
        output.push(changes.into_batch(&self.schema, columns)?);
        for slot in touched {
            if self.counts[slot as usize] == [0, 0] && self.tracker.release(slot) {
                self.index.remove(slot);
            }
        }
        self.epoch_rows = 0;
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        let key_count = self.schema.fields().len();
        vec![StateTable {
            name: "rows",
            schema: Arc::clone(&self.state_schema),
            key_count,
            derived_from: None,
        }]
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        let changed = self.tracker.take_changed(|slot| self.counts[slot as usize] != [0, 0]);
        let groups = |slots: &[u32]| slots.iter().map(|slot| key_group(self.index.hash(*slot))).collect();
        let keys: Vec<usize> = (0..self.schema.fields().len()).collect();
        let changes = StateChanges {
            upserts: self.state_rows(&changed.upserts)?,
            upsert_groups: groups(&changed.upserts),
            deletes: self.state_rows(&changed.deletes)?.project(&keys)?,
            delete_groups: groups(&changed.deletes),
        };
        changed.deletes.iter().for_each(|slot| self.index.remove(*slot));
        Ok(vec![changes])
    }

    fn load(&mut self, _table: usize, rows: &RecordBatch) -> Result<()> {
        let width = self.schema.fields().len();
        self.find_rows(&rows.columns()[..width], rows.num_rows())?;
        let side = |side: usize| rows.column(width + side).as_primitive::<Int64Type>().values();
        let (left, right) = (side(0), side(1));
        for (row, slot) in self.slots.iter().enumerate() {
            self.counts[*slot as usize] = [left[row], right[row]];
            self.tracker.load(*slot);
        }
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        self.index.bytes()
            + self.tracker.bytes()
            + (self.counts.capacity() + self.before.capacity()) * size_of::<[i64; 2]>()
            + self.hashes.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Harness, Multiset, Random, TestInput, check, check_rules, fold, parse, schema,
    };
    use super::*;
    use arrow::datatypes::DataType::{Float64, Int32, Utf8};

    fn make(is_intersect: bool, is_all: bool, columns: &SchemaRef) -> SetOperation {
        SetOperation::new(is_intersect, is_all, columns).unwrap()
    }

    fn inputs(columns: &SchemaRef) -> [TestInput; 2] {
        let all: Vec<usize> = (0..columns.fields().len()).collect();
        [TestInput::new(columns, &all), TestInput::new(columns, &all)]
    }

    const LINES: [&str; 9] = [
        "0: +I 1",
        "1: +I 1",
        "0: +I 1",
        "1: +I 1",
        "1: -D 1",
        "0: -U 1",
        "0: +U NULL",
        "1: +I NULL",
        "1: -D 1",
    ];

    fn check_lines(is_intersect: bool, is_all: bool, expected: &[&str]) {
        let columns = schema(&[("x", Int32)]);
        check(|| make(is_intersect, is_all, &columns), &inputs(&columns), &LINES, expected);
    }

    #[test]
    fn distinct_rows_come_and_go() {
        check_lines(true, false, &["+I 1", "+I NULL", "-D 1"]);
        check_lines(false, false, &["+I 1", "-D 1", "+I NULL", "-D NULL", "+I 1"]);
    }

    #[test]
    fn all_takes_every_copy_back_and_adds_the_new_ones() {
        check_lines(
            true,
            true,
            &[
                "+U 1", "-U 1", "+U 1", "-U 1", "+U 1", "+U 1", "-U 1", "-U 1", "+U 1", "-U 1", "+U 1",
                "+U NULL", "-U 1",
            ],
        );
        check_lines(
            false,
            true,
            &["+I 1", "-U 1", "+U 1", "-U 1", "+U 1", "-U 1", "+I NULL", "-U NULL", "+U 1"],
        );
    }

    #[test]
    fn over_many_rows_only_the_copies_that_have_come_or_gone_are_named() {
        let columns = schema(&[("x", Int32)]);
        let mut operator = Harness::new(|| make(true, true, &columns), &inputs(&columns));
        assert_eq!(operator.epoch(&["0: +I 1", "0: +I 1", "1: +I 1", "0: +I 2"]), ["+I 1"]);
        assert_eq!(operator.epoch(&["1: +I 1", "0: +I 1"]), ["+I 1"]);
        assert_eq!(operator.epoch(&["1: -D 1", "1: -D 1"]), ["-D 1", "-D 1"]);
    }

    fn model(is_intersect: bool, is_all: bool, lines: &[String]) -> Multiset {
        let side = |side: usize| fold(&lines.iter().filter(|line| parse(line).0 == side).collect::<Vec<_>>());
        let (left, right) = (side(0), side(1));
        let mut result = Multiset::new();
        for (row, count) in left {
            let other = right.get(&row).copied().unwrap_or(0);
            let (count, other) = if is_all { (count, other) } else { (1, other.min(1)) };
            let copies = if is_intersect { count.min(other) } else { count - other };
            if copies > 0 {
                result.insert(row, copies);
            }
        }
        result
    }

    #[test]
    fn results_are_those_of_sets_and_bags() {
        let mut random = Random::new(21);
        for columns in [schema(&[("x", Int32)]), schema(&[("x", Float64), ("y", Utf8)])] {
            for (is_intersect, is_all) in [(true, true), (true, false), (false, true), (false, false)] {
                for _ in 0..10 {
                    let sides = [random.changelog(&columns, &[], 150), random.changelog(&columns, &[], 150)];
                    let lines = random.merge(&sides);
                    let sum = check_rules(
                        || make(is_intersect, is_all, &columns),
                        &inputs(&columns),
                        &lines,
                        &mut random,
                    );
                    assert_eq!(sum, model(is_intersect, is_all, &lines));
                }
            }
        }
    }
}
