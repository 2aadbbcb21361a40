//! How often each group has each value of a column: what DISTINCT, COLLECT, and MIN and MAX over rows that are taken back need.
//! Calls over the same column with the same FILTER share one.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, MapArray, StructArray, UInt32Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::entries::Entries;
use super::extreme_tracker::ExtremeTracker;
use super::rows::Rows;
use super::tables::Saved;
use super::value_store::ValueStore;
use crate::error::{Error, Result};
use crate::state::ABSENT;

/// The counted values of groups.
#[derive(Debug)]
pub(super) struct ValueCounts {
    /// Whether NULL is a value.
    keeps_nulls: bool,
    entries: Entries,
    extremes: Vec<(bool, ExtremeTracker)>,
    batch: Batch,
}

/// The batch at hand.
#[derive(Debug, Default)]
struct Batch {
    /// Rows that count, and the entry of each.
    rows: Vec<u32>,
    entries: Vec<u32>,
    /// How many of them are done.
    done: usize,
    /// Rows of the last step by which a value came or went.
    transitions: Vec<u32>,
    /// The entries of these.
    changed: Vec<u32>,
}

impl ValueCounts {
    /// Makes the counts of no groups.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn new(data_type: &ArrowType, keeps_nulls: bool) -> Result<ValueCounts> {
        Ok(ValueCounts {
            keeps_nulls,
            entries: Entries::new(ValueStore::new(data_type)?)?,
            extremes: Vec::new(),
            batch: Batch::default(),
        })
    }

    /// Follows the smallest or the largest value of each group.
    pub(super) fn track_extreme(&mut self, is_max: bool) {
        if !self.extremes.iter().any(|(tracked, _)| *tracked == is_max) {
            self.extremes.push((is_max, ExtremeTracker::new(is_max)));
        }
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        self.entries.grow(slot_count);
        self.extremes.iter_mut().for_each(|(_, extreme)| extreme.grow(slot_count));
    }

    /// Finds the entries of all rows of a batch.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn begin_batch(&mut self, column: &ArrayRef, rows: &Rows<'_>) -> Result<()> {
        let nulls = column.logical_nulls().filter(|_| !self.keeps_nulls);
        let Batch { rows: selected, done, .. } = &mut self.batch;
        selected.clear();
        *done = 0;
        rows.for_each(nulls.as_ref(), |row, _, _| selected.push(row as u32));
        let slots: Vec<u32> = selected.iter().map(|row| rows.slots[*row as usize]).collect();
        let values = if selected.len() == column.len() {
            self.entries.values.encode(column, &slots)?
        } else {
            let column = take(column, &UInt32Array::from(selected.clone()), None)?;
            self.entries.values.encode(&column, &slots)?
        };
        self.batch.entries = self.entries.intern(&values)?;
        Ok(())
    }

    /// Counts rows; of one batch they come in order. Afterwards `transitions` has those by which a value came or went.
    pub(super) fn apply(&mut self, rows: &Rows<'_>) {
        let Batch { rows: selected, entries: found, done, transitions, changed } = &mut self.batch;
        transitions.clear();
        changed.clear();
        let entries = &mut self.entries;
        rows.for_each(None, |row, slot, is_retraction| {
            while selected.get(*done).is_some_and(|selected| (*selected as usize) < row) {
                *done += 1;
            }
            // A row that is not selected is NULL.
            if selected.get(*done) != Some(&(row as u32)) {
                return;
            }
            let entry = found[*done];
            let has_changed = if is_retraction {
                entries.subtract(entry, slot as u32)
            } else {
                entries.add(entry, slot as u32)
            };
            if has_changed {
                transitions.push(row as u32);
                changed.push(entry);
            }
        });
        for (_, extreme) in &mut self.extremes {
            extreme.settle(changed, entries);
        }
    }

    /// Returns the rows of the last `apply` that made a value come or go: those that count for DISTINCT.
    pub(super) fn transitions(&self) -> &[u32] {
        &self.batch.transitions
    }

    /// Forgets all values of a group.
    pub(super) fn clear(&mut self, slot: u32) {
        for (_, extreme) in &mut self.extremes {
            extreme.clear(slot, &mut self.entries);
        }
        self.entries.clear(slot);
    }

    /// Ends a batch, or a round of `clear`.
    pub(super) fn sweep(&mut self) {
        self.entries.sweep();
    }

    /// Returns the smallest or the largest value of groups.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn extremes(&self, is_max: bool, slots: &[u32]) -> Result<ArrayRef> {
        let tracked = self.extremes.iter().find(|(tracked, _)| *tracked == is_max);
        let (_, extreme) = tracked.ok_or_else(|| Error::internal("an extreme is not tracked"))?;
        let value = |slot: &u32| {
            let best = extreme.best(*slot);
            (best != ABSENT).then(|| self.entries.value(best))
        };
        self.entries.values.decode(&slots.iter().map(value).collect::<Vec<_>>())
    }

    /// Returns the multisets of groups, sorted by value.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn multisets(
        &self,
        map_type: &ArrowType,
        is_distinct: bool,
        slots: &[u32],
    ) -> Result<ArrayRef> {
        let mismatch = || Error::internal("a multiset lies in Arrow as a map");
        let ArrowType::Map(field, is_sorted) = map_type else { return Err(mismatch()) };
        let ArrowType::Struct(fields) = field.data_type() else { return Err(mismatch()) };
        let mut found: Vec<u32> = Vec::new();
        let mut lengths = Vec::with_capacity(slots.len());
        for slot in slots {
            let start = found.len();
            found.extend(self.entries.live(*slot));
            found[start..].sort_unstable_by(|left, right| self.entries.compare(*left, *right));
            lengths.push(found.len() - start);
        }
        let keys: Vec<_> = found.iter().map(|entry| Some(self.entries.value(*entry))).collect();
        let keys = self.entries.values.decode(&keys)?;
        let count = |entry: &u32| if is_distinct { 1 } else { self.entries.count(*entry) as i32 };
        let counts: Int32Array = found.iter().map(|entry| Some(count(entry))).collect();
        let columns = StructArray::try_new(fields.clone(), vec![keys, Arc::new(counts)], None)?;
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, columns, None::<NullBuffer>, *is_sorted)?))
    }

    /// Takes what a checkpoint has to write: the slots, values and counts of entries, and the slots and values of those that have
    /// gone.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self) -> Result<(Saved, Saved)> {
        let (upserts, deletes) = self.entries.take_changed();
        let saved = |entries: &[u32], with_counts: bool| -> Result<Saved> {
            let values: Vec<_> = entries.iter().map(|entry| Some(self.entries.value(*entry))).collect();
            let mut columns = vec![self.entries.values.decode(&values)?];
            if with_counts {
                let counts = entries.iter().map(|entry| self.entries.count(*entry));
                columns.push(Arc::new(Int64Array::from_iter_values(counts)));
            }
            Ok(Saved { slots: entries.iter().map(|entry| self.entries.slot(*entry)).collect(), columns })
        };
        let taken = (saved(&upserts, true)?, saved(&deletes, false)?);
        self.entries.forget(&deletes);
        Ok(taken)
    }

    /// Puts saved values and counts back.
    ///
    /// # Errors
    /// The columns are others.
    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let [values, counts] = columns else {
            return Err(Error::internal("a value is saved with its count"));
        };
        let counts = counts
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::internal("a value is saved with a BIGINT"))?;
        let values = self.entries.values.encode(values, slots)?;
        let found = self.entries.intern(&values)?;
        for (row, entry) in found.iter().enumerate() {
            self.entries.load(*entry, slots[row], counts.value(row));
        }
        for (_, extreme) in &mut self.extremes {
            extreme.settle(&found, &mut self.entries);
        }
        self.entries.sweep();
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let batch = self.batch.rows.capacity()
            + self.batch.entries.capacity()
            + self.batch.transitions.capacity()
            + self.batch.changed.capacity();
        self.entries.bytes()
            + self.extremes.iter().map(|(_, extreme)| extreme.bytes()).sum::<usize>()
            + batch * size_of::<u32>()
    }
}
