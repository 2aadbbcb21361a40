//! What groups showed before the epoch, and how their change is told: for each group at most one retraction and one new row,
//! directly behind each other, in the order in which the epoch touched the groups.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::SchemaRef;

use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;

/// The values of touched groups before the epoch.
#[derive(Debug, Default)]
pub(super) struct EpochChanges {
    row_counts: Vec<i64>,
    /// For each call its results, in one or more pieces.
    results: Vec<Vec<ArrayRef>>,
}

/// Groups as they are now.
pub(super) struct Now {
    /// The keys.
    pub(super) keys: Vec<ArrayRef>,
    /// How many rows each has.
    pub(super) row_counts: Vec<i64>,
    /// For each call its results.
    pub(super) results: Vec<ArrayRef>,
}

impl EpochChanges {
    /// Makes room for calls.
    pub(super) fn new(call_count: usize) -> EpochChanges {
        EpochChanges { row_counts: Vec::new(), results: vec![Vec::new(); call_count] }
    }

    /// Notes how many rows a group has that is touched for the first time.
    #[inline]
    pub(super) fn note_row_count(&mut self, row_count: i64) {
        self.row_counts.push(row_count);
    }

    /// Returns how many groups have been noted.
    pub(super) fn group_count(&self) -> usize {
        self.row_counts.len()
    }

    /// Returns the row counts that were noted last.
    pub(super) fn last_row_counts(&self, count: usize) -> &[i64] {
        &self.row_counts[self.row_counts.len() - count..]
    }

    /// Notes the results of a call for groups that are touched for the first time.
    pub(super) fn note_results(&mut self, call: usize, results: ArrayRef) {
        self.results[call].push(results);
    }

    /// Takes out all that was noted: row counts, and one column per call.
    ///
    /// # Errors
    /// The pieces do not fit together.
    pub(super) fn take(&mut self) -> Result<(Vec<i64>, Vec<ArrayRef>)> {
        let join = |pieces: &mut Vec<ArrayRef>| -> Result<ArrayRef> {
            let pieces = std::mem::take(pieces);
            match pieces.as_slice() {
                [one] => Ok(Arc::clone(one)),
                pieces => Ok(concat(&pieces.iter().map(AsRef::as_ref).collect::<Vec<_>>())?),
            }
        };
        Ok((std::mem::take(&mut self.row_counts), self.results.iter_mut().map(join).collect::<Result<_>>()?))
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let pieces = self.results.iter().flatten().map(Array::get_array_memory_size);
        self.row_counts.capacity() * size_of::<i64>() + pieces.sum::<usize>()
    }
}

/// Tells the change of groups from what they were to what they are.
///
/// # Errors
/// The columns do not fit the schema.
pub(super) fn difference(
    old_counts: &[i64],
    old_results: &[ArrayRef],
    now: &Now,
    emits_update_before: bool,
    schema: &SchemaRef,
) -> Result<ChangelogBatch> {
    let changed = changed_rows(old_results, &now.results, old_counts.len())?;
    // Each row that leaves: 0 for what was and 1 for what is, and the group.
    let mut picks: Vec<(usize, usize)> = Vec::with_capacity(2 * old_counts.len());
    let mut kinds: Vec<u8> = Vec::with_capacity(2 * old_counts.len());
    let mut pick = |kind: RowKind, group: usize| {
        picks.push((usize::from(!kind.is_retraction()), group));
        kinds.push(kind as u8);
    };
    for (group, (old, new)) in old_counts.iter().zip(&now.row_counts).enumerate() {
        match (*old > 0, *new > 0) {
            (false, true) => pick(RowKind::Insert, group),
            (true, false) => pick(RowKind::Delete, group),
            (true, true) if changed.as_ref().is_some_and(|changed| changed.value(group)) => {
                if emits_update_before {
                    pick(RowKind::UpdateBefore, group);
                }
                pick(RowKind::UpdateAfter, group);
            }
            _ => {}
        }
    }
    let is_all_new = picks.len() == old_counts.len() && picks.iter().all(|(side, _)| *side == 1);
    let columns: Vec<ArrayRef> = if is_all_new {
        now.keys.iter().chain(&now.results).map(Arc::clone).collect()
    } else {
        let groups = UInt32Array::from_iter_values(picks.iter().map(|(_, group)| *group as u32));
        let keys = now.keys.iter().map(|key| take(key, &groups, None));
        let results = old_results.iter().zip(&now.results);
        let results = results.map(|(old, new)| interleave(&[old.as_ref(), new.as_ref()], &picks));
        keys.chain(results).collect::<Result<_, _>>()?
    };
    let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
    let rows = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    Ok(ChangelogBatch::with_kind_bytes(rows, Some(Buffer::from_vec(kinds))))
}

/// Returns which rows differ in any column; None if there are no columns.
fn changed_rows(old: &[ArrayRef], new: &[ArrayRef], row_count: usize) -> Result<Option<BooleanBuffer>> {
    let mut changed: Option<BooleanBuffer> = None;
    for (old, new) in old.iter().zip(new) {
        let differs: BooleanArray = if old.data_type().is_nested() {
            let differs = |row: usize| old.slice(row, 1).as_ref() != new.slice(row, 1).as_ref();
            (0..row_count).map(|row| Some(differs(row))).collect()
        } else {
            distinct(old, new)?
        };
        changed = Some(match changed {
            None => differs.values().clone(),
            Some(changed) => &changed | differs.values(),
        });
    }
    Ok(changed)
}
