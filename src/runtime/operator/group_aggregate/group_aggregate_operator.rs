//! The operator of GROUP BY: groups by slot, with their row counts, calls and shared tables.
//!
//! As in Flink a group lives from its first row to its last. When the last is taken back all that its aggregates know is dropped,
//! even what a stray retraction has left behind; so where a group dies and comes back within a batch, the batch is taken in parts.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType as ArrowType, Int64Type, SchemaRef};

use super::super::{EpochEnd, Operator, Output};
use super::call::{Aggregate, Call};
use super::epoch_changes::{EpochChanges, Now, difference};
use super::masks::Masks;
use super::rows::{Rows, Selection};
use super::state_layout;
use super::tables::{Saved, Tables};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::plan::GroupAggregateSpec;
use crate::state::{KeyIndex, SlotTracker, StateChanges, StateTable, hash_rows, key_group};

/// How many groups are told of in one batch: each has at most two rows.
const GROUPS_PER_BATCH: usize = 4096;

/// The row count of a group that has died in this epoch and whose aggregates still have to be emptied.
const DEAD: i64 = -1;

/// GROUP BY over rows that change.
pub(crate) struct GroupAggregateOperator {
    keys: Vec<usize>,
    emits_update_before: bool,
    output: SchemaRef,
    groups: KeyIndex,
    row_counts: Vec<i64>,
    tracker: SlotTracker,
    calls: Vec<Call>,
    tables: Tables,
    changes: EpochChanges,
    state_tables: Vec<StateTable>,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

/// What counting the rows of a batch has shown.
#[derive(Debug, Default)]
struct Counted {
    /// Groups that the epoch touches for the first time.
    fresh: Vec<u32>,
    /// Rows by which a group that has died comes back, with its slot.
    returns: Vec<(usize, u32)>,
    /// Rows that take back what is in no group.
    strays: Vec<usize>,
}

impl GroupAggregateOperator {
    /// The input for rows.
    pub(crate) const ROWS: usize = 0;
    /// The input for groups that other workers have made of rows.
    pub(crate) const GROUPS: usize = 1;

    /// Creates the operator.
    ///
    /// # Errors
    /// A type cannot be grouped by or aggregated.
    pub(crate) fn new(
        spec: &GroupAggregateSpec,
        inputs: &[SchemaRef],
        output: &SchemaRef,
    ) -> Result<GroupAggregateOperator> {
        let [input] = inputs else { return Err(Error::internal("GROUP BY has one input")) };
        let types: Vec<ArrowType> =
            spec.keys.iter().map(|key| input.field(*key).data_type().clone()).collect();
        let mut tables = Tables::default();
        let calls = spec.calls.iter().map(|call| Call::new(call, spec, input, &mut tables));
        let calls = calls.collect::<Result<Vec<Call>>>()?;
        Ok(GroupAggregateOperator {
            keys: spec.keys.clone(),
            emits_update_before: spec.emits_update_before,
            output: Arc::clone(output),
            groups: KeyIndex::new(&types)?,
            row_counts: Vec::new(),
            tracker: SlotTracker::default(),
            changes: EpochChanges::new(calls.len()),
            state_tables: state_layout::state_tables(&spec.keys, &calls, &tables, input, output)?,
            calls,
            tables,
            hashes: Vec::new(),
            slots: Vec::new(),
        })
    }

    /// Finds the slot of each key, making room for new ones.
    fn find_groups(&mut self, keys: &[ArrayRef], row_count: usize) -> Result<()> {
        hash_rows(keys, row_count, &mut self.hashes)?;
        self.groups.intern(keys, &self.hashes, &mut self.slots)?;
        let slot_count = self.groups.slot_count();
        if slot_count > self.row_counts.len() {
            self.row_counts.resize(slot_count, 0);
            for call in &mut self.calls {
                if let Aggregate::Own(accumulator) = &mut call.aggregate {
                    accumulator.grow(slot_count);
                }
            }
            self.tables.counts.iter_mut().for_each(|shared| shared.table.grow(slot_count));
            self.tables.arrivals.iter_mut().for_each(|shared| shared.table.grow(slot_count));
        }
        Ok(())
    }

    /// Counts the rows of each group.
    fn count_rows(&mut self, kinds: Option<&[u8]>) -> Counted {
        let mut counted = Counted::default();
        for (row, slot) in self.slots.iter().enumerate() {
            let count = &mut self.row_counts[*slot as usize];
            if self.tracker.touch(*slot) {
                counted.fresh.push(*slot);
                self.changes.note_row_count(*count);
            }
            if kinds.is_some_and(|kinds| kinds[row] & 1 != 0) {
                match *count {
                    1 => *count = DEAD,
                    count if count <= 0 => counted.strays.push(row),
                    _ => *count -= 1,
                }
            } else if *count == DEAD {
                *count = 1;
                counted.returns.push((row, *slot));
            } else {
                *count += 1;
            }
        }
        counted
    }

    /// Notes what groups show that the epoch touches for the first time.
    fn note_results(&mut self, fresh: &[u32]) -> Result<()> {
        if fresh.is_empty() {
            return Ok(());
        }
        for (number, call) in self.calls.iter().enumerate() {
            let row_counts = self.changes.last_row_counts(fresh.len());
            let results = call.results(fresh, row_counts, &self.tables)?;
            self.changes.note_results(number, results);
        }
        Ok(())
    }

    /// Adds groups that were made of rows elsewhere; they have come as rows of the first table.
    fn merge(&mut self, groups: &RecordBatch) -> Result<()> {
        let (keys, own) = groups.columns().split_at(self.keys.len());
        self.find_groups(keys, groups.num_rows())?;
        let mut fresh = Vec::new();
        for (slot, row_count) in self.slots.iter().zip(saved_row_counts(own)?.values()) {
            let count = &mut self.row_counts[*slot as usize];
            if self.tracker.touch(*slot) {
                fresh.push(*slot);
                self.changes.note_row_count(*count);
            }
            *count += row_count;
        }
        self.note_results(&fresh)?;
        self.load_calls(&own[1..])
    }

    /// Returns how many groups the epoch has touched.
    pub(super) fn touched_count(&self) -> usize {
        self.changes.group_count()
    }

    /// Returns how many columns the keys have.
    pub(super) fn key_count(&self) -> usize {
        self.keys.len()
    }

    /// Takes out all groups as rows of the first table, so that none is left; there are no others, and no checkpoint knows them.
    pub(super) fn take_groups(&mut self) -> Result<Option<RecordBatch>> {
        let touched = std::mem::take(&mut self.tracker).take_touched();
        if touched.is_empty() {
            return Ok(None);
        }
        self.changes.take()?;
        let (groups, _) = self.state_rows(0, &self.saved_groups(touched.clone())?, true)?;
        touched.iter().for_each(|slot| self.row_counts[*slot as usize] = DEAD);
        self.free_dead(&touched)?;
        Ok(Some(groups))
    }

    /// Gives all rows of a batch to the tables that look things up, so that they do it at once.
    fn begin_batch(&mut self, columns: &[ArrayRef], kinds: Option<&[u8]>, masks: &mut Masks) -> Result<()> {
        for call in &self.calls {
            masks.add(call.filter, columns)?;
        }
        let rows = |selection| Rows { slots: &self.slots, kinds, selection };
        for shared in &mut self.tables.counts {
            let rows = rows(masks.select_all(shared.filter));
            shared.table.begin_batch(&columns[shared.argument], &rows)?;
        }
        for shared in &mut self.tables.arrivals {
            let rows = rows(masks.select_all(shared.filter));
            shared.table.begin_batch(&columns[shared.argument], &rows)?;
        }
        Ok(())
    }

    /// Gives a part of a batch to all aggregates.
    fn apply(
        &mut self,
        columns: &[ArrayRef],
        kinds: Option<&[u8]>,
        masks: &Masks,
        range: Range<usize>,
    ) -> Result<()> {
        let rows = |selection| Rows { slots: &self.slots, kinds, selection };
        for shared in &mut self.tables.counts {
            shared.table.apply(&rows(masks.select(shared.filter, range.clone())));
        }
        for shared in &mut self.tables.arrivals {
            let selection = match shared.distinct {
                Some(counts) => Selection::Listed(self.tables.counts[counts].table.transitions()),
                None => masks.select(shared.filter, range.clone()),
            };
            shared.table.apply(&rows(selection));
        }
        for call in &mut self.calls {
            let rows = rows(masks.select(call.filter, range.clone()));
            call.update(columns, &rows, &self.tables)?;
        }
        Ok(())
    }

    /// Empties the aggregates of a group.
    fn clear(&mut self, slot: u32) -> Result<()> {
        for call in &mut self.calls {
            if let Aggregate::Own(accumulator) = &mut call.aggregate {
                accumulator.clear(slot);
            }
        }
        self.tables.counts.iter_mut().for_each(|shared| shared.table.clear(slot));
        self.tables.arrivals.iter_mut().try_for_each(|shared| shared.table.clear(slot))
    }

    fn sweep(&mut self) {
        self.tables.counts.iter_mut().for_each(|shared| shared.table.sweep());
        self.tables.arrivals.iter_mut().for_each(|shared| shared.table.sweep());
    }

    /// Returns groups as they are now.
    fn now(&self, slots: &[u32]) -> Result<Now> {
        let row_counts: Vec<i64> = slots.iter().map(|slot| self.row_counts[*slot as usize]).collect();
        let results = self.calls.iter().map(|call| call.results(slots, &row_counts, &self.tables));
        let results = results.collect::<Result<_>>()?;
        Ok(Now { keys: self.groups.columns(slots)?, row_counts, results })
    }

    /// Frees the groups among these that have no row.
    fn free_dead(&mut self, slots: &[u32]) -> Result<()> {
        for slot in slots {
            if self.row_counts[*slot as usize] > 0 {
                continue;
            }
            if self.row_counts[*slot as usize] == DEAD {
                self.clear(*slot)?;
            }
            self.row_counts[*slot as usize] = 0;
        }
        // Values are let go before the slots that they lie under.
        self.sweep();
        for slot in slots {
            if self.row_counts[*slot as usize] == 0 && self.tracker.release(*slot) {
                self.groups.remove(*slot);
            }
        }
        Ok(())
    }

    /// Makes rows of a table of state, with their key groups.
    fn state_rows(&self, table: usize, saved: &Saved, is_whole: bool) -> Result<(RecordBatch, Vec<u8>)> {
        let StateTable { schema, key_count, .. } = &self.state_tables[table];
        let schema = if is_whole {
            Arc::clone(schema)
        } else {
            Arc::new(schema.project(&(0..*key_count).collect::<Vec<_>>())?)
        };
        let mut columns = self.groups.columns(&saved.slots)?;
        columns.extend(saved.columns.iter().map(Arc::clone));
        let options = RecordBatchOptions::new().with_row_count(Some(saved.slots.len()));
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        Ok((rows, saved.slots.iter().map(|slot| key_group(self.groups.hash(*slot))).collect()))
    }

    fn state_changes(&self, table: usize, upserts: &Saved, deletes: &Saved) -> Result<StateChanges> {
        let (upserts, upsert_groups) = self.state_rows(table, upserts, true)?;
        let (deletes, delete_groups) = self.state_rows(table, deletes, false)?;
        Ok(StateChanges { upserts, upsert_groups, deletes, delete_groups })
    }

    /// Returns the rows of groups in the first table.
    fn saved_groups(&self, slots: Vec<u32>) -> Result<Saved> {
        let row_counts = slots.iter().map(|slot| self.row_counts[*slot as usize]);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(row_counts))];
        for call in &self.calls {
            if let Aggregate::Own(accumulator) = &call.aggregate {
                columns.extend(accumulator.states(&slots)?);
            }
        }
        Ok(Saved { slots, columns })
    }

    fn load_groups(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for (slot, row_count) in self.slots.iter().zip(saved_row_counts(columns)?.values()) {
            self.row_counts[*slot as usize] = *row_count;
            self.tracker.load(*slot);
        }
        self.load_calls(&columns[1..])
    }

    /// Gives saved columns to the aggregates that they are of.
    fn load_calls(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let mut next = 0;
        for call in &mut self.calls {
            if let Aggregate::Own(accumulator) = &mut call.aggregate {
                let width = accumulator.state_fields().len();
                let states = columns.get(next..next + width);
                let states = states.ok_or_else(|| Error::internal("a group is saved with other columns"))?;
                accumulator.load(&self.slots, states)?;
                next += width;
            }
        }
        Ok(())
    }
}

/// Returns the row counts of saved groups.
fn saved_row_counts(columns: &[ArrayRef]) -> Result<&Int64Array> {
    columns
        .first()
        .and_then(|column| column.as_primitive_opt::<Int64Type>())
        .ok_or_else(|| Error::internal("a group is saved with its row count"))
}

impl Operator for GroupAggregateOperator {
    fn process(&mut self, input: usize, batch: ChangelogBatch, _output: &mut Output) -> Result<()> {
        if input == GroupAggregateOperator::GROUPS {
            return self.merge(batch.rows());
        }
        let (rows, kinds) = batch.into_parts();
        let (columns, kinds) = (rows.columns(), kinds.as_deref());
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
        self.find_groups(&keys, rows.num_rows())?;
        let counted = self.count_rows(kinds);
        self.note_results(&counted.fresh)?;
        let mut masks = Masks::new(rows.num_rows(), &counted.strays);
        self.begin_batch(columns, kinds, &mut masks)?;
        let mut start = 0;
        for (row, slot) in counted.returns {
            if row > start {
                self.apply(columns, kinds, &masks, start..row)?;
                start = row;
            }
            self.clear(slot)?;
        }
        self.apply(columns, kinds, &masks, start..rows.num_rows())?;
        self.sweep();
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        let touched = self.tracker.take_touched();
        if touched.is_empty() {
            return Ok(());
        }
        let (old_counts, old_results) = self.changes.take()?;
        let mut start = 0;
        for slots in touched.chunks(GROUPS_PER_BATCH) {
            let now = self.now(slots)?;
            let old: Vec<ArrayRef> = old_results.iter().map(|old| old.slice(start, slots.len())).collect();
            let old_counts = &old_counts[start..start + slots.len()];
            output.push(difference(old_counts, &old, &now, self.emits_update_before, &self.output)?);
            start += slots.len();
        }
        self.free_dead(&touched)
    }

    fn state_tables(&self) -> Vec<StateTable> {
        self.state_tables.clone()
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        let row_counts = &self.row_counts;
        let changed = self.tracker.take_changed(|slot| row_counts[slot as usize] > 0);
        let upserts = self.saved_groups(changed.upserts)?;
        let deletes = Saved { slots: changed.deletes, columns: Vec::new() };
        let mut taken = vec![self.state_changes(0, &upserts, &deletes)?];
        let mut saved = Vec::new();
        for shared in &mut self.tables.counts {
            saved.push(shared.table.take_changes()?);
        }
        for shared in &mut self.tables.arrivals {
            saved.push(shared.table.take_changes()?);
        }
        for (number, (upserts, deletes)) in saved.iter().enumerate() {
            taken.push(self.state_changes(number + 1, upserts, deletes)?);
        }
        deletes.slots.iter().for_each(|slot| self.groups.remove(*slot));
        Ok(taken)
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        let (keys, own) = rows.columns().split_at(self.keys.len());
        self.find_groups(keys, rows.num_rows())?;
        let counts = self.tables.counts.len();
        if table == 0 {
            return self.load_groups(own);
        }
        if let Some(shared) = self.tables.counts.get_mut(table - 1) {
            return shared.table.load(&self.slots, own);
        }
        match self.tables.arrivals.get_mut(table - 1 - counts) {
            Some(shared) => shared.table.load(&self.slots, own),
            None => Err(Error::internal("GROUP BY has no such table of state")),
        }
    }

    fn finish_load(&mut self) -> Result<()> {
        self.tables.arrivals.iter_mut().try_for_each(|shared| shared.table.finish_load())
    }

    fn state_bytes(&self) -> usize {
        let own = self.calls.iter().map(|call| match &call.aggregate {
            Aggregate::Own(accumulator) => accumulator.bytes(),
            _ => 0,
        });
        self.groups.bytes()
            + self.row_counts.capacity() * size_of::<i64>()
            + self.tracker.bytes()
            + self.changes.bytes()
            + self.hashes.capacity() * size_of::<u64>()
            + self.slots.capacity() * size_of::<u32>()
            + own.sum::<usize>()
            + self.tables.counts.iter().map(|shared| shared.table.bytes()).sum::<usize>()
            + self.tables.arrivals.iter().map(|shared| shared.table.bytes()).sum::<usize>()
    }
}
