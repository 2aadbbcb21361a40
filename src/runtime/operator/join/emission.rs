//! Output rows as they are decided on: which row of the batch, which rows of the other sides, which kind.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use hashbrown::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::super::Output;
use super::incoming::Incoming;
use super::pairs::Pairs;
use super::side_state::SideState;
use super::{ABSENT, BATCH_ROWS, INSERT};
use crate::changelog::ChangelogBatch;
use crate::error::Result;

/// The kind of an entry that another one has made void.
const VOID: u8 = u8::MAX;

/// Rows that are about to be emitted, in order.
#[derive(Debug)]
pub(super) struct Emission {
    /// For each input, where the output row's columns come from: the row of the batch for the input that sent it, the number of
    /// a row for the others; `ABSENT` for NULLs.
    rows: Vec<Vec<u32>>,
    kinds: Vec<u8>,
    /// The last entries without partner, by what they stand for.
    alone: HashMap<u32, Range<usize>>,
    void_count: usize,
}

/// Which two entries without partner make each other void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    /// One that comes and goes: between the two, the row has no other output.
    Coming,
    /// Also one that goes and comes back: the row's only output is itself.
    Both,
}

impl Emission {
    /// Makes an empty one for rows of so many inputs.
    pub(super) fn new(inputs: usize) -> Emission {
        Emission { rows: vec![Vec::new(); inputs], kinds: Vec::new(), alone: HashMap::new(), void_count: 0 }
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Adds a row of the batch, which is of the side `input`, with a row of the other side.
    #[inline]
    pub(super) fn push(&mut self, kind: u8, input: usize, probe: u32, build: u32) {
        self.rows[input].push(probe);
        self.rows[1 - input].push(build);
        self.kinds.push(kind);
    }

    /// Adds pairs, each with the kind of the batch's row.
    pub(super) fn push_pairs(&mut self, kinds: Option<&[u8]>, input: usize, pairs: &Pairs) {
        self.rows[input].extend_from_slice(&pairs.probe);
        self.rows[1 - input].extend_from_slice(&pairs.build);
        match kinds {
            None => self.kinds.resize(self.rows[input].len(), INSERT),
            Some(kinds) => self.kinds.extend(pairs.probe.iter().map(|row| kinds[*row as usize])),
        }
    }

    /// Adds a row of the other side alone, unless it makes an earlier entry void.
    pub(super) fn push_alone(&mut self, kind: u8, input: usize, build: u32, cancel: Cancel) {
        if !self.make_void(build, kind, cancel) {
            let at = self.len();
            self.push(kind, input, ABSENT, build);
            self.note_alone(build, at..at + 1);
        }
    }

    /// Adds all combinations of rows, one of each input's.
    pub(super) fn push_combinations(&mut self, kind: u8, rows: &[&[u32]]) {
        let count: usize = rows.iter().map(|rows| rows.len()).product();
        let mut inner = count;
        for (column, rows) in self.rows.iter_mut().zip(rows) {
            let outer = count / inner;
            inner /= rows.len();
            for _ in 0..outer {
                rows.iter().for_each(|row| column.extend(std::iter::repeat_n(*row, inner)));
            }
        }
        self.kinds.resize(self.kinds.len() + count, kind);
    }

    /// Notes which entries are a row, or all rows of a key, without partner.
    pub(super) fn note_alone(&mut self, of: u32, entries: Range<usize>) {
        self.alone.insert(of, entries);
    }

    /// Makes the entries void that the opposite kind would undo. Returns whether there were any.
    pub(super) fn make_void(&mut self, of: u32, kind: u8, cancel: Cancel) -> bool {
        let Some(entries) = self.alone.remove(&of) else { return false };
        let is_opposite = (self.kinds[entries.start] ^ kind) & 1 == 1;
        if !is_opposite || (cancel == Cancel::Coming && kind & 1 == 0) {
            return false;
        }
        self.void_count += entries.len();
        self.kinds[entries].fill(VOID);
        true
    }

    /// Emits the entries, which stem from a batch of the side `input`. The output may end before the last input's columns.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn flush(
        &mut self,
        incoming: &Incoming,
        sides: &[SideState],
        schema: &SchemaRef,
        output: &mut Output,
    ) -> Result<()> {
        self.drop_void();
        for start in (0..self.len()).step_by(BATCH_ROWS) {
            let end = self.len().min(start + BATCH_ROWS);
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
            for (side, state) in sides.iter().enumerate() {
                let rows = &self.rows[side][start..end];
                let width = state.store().width().min(schema.fields().len() - columns.len());
                if side == incoming.input && is_whole(rows, incoming.rows().num_rows()) {
                    columns.extend_from_slice(&incoming.rows().columns()[..width]);
                } else if side == incoming.input {
                    let rows = positions(rows);
                    for at in 0..width {
                        columns.push(take(incoming.rows().column(at), &rows, None)?);
                    }
                } else {
                    for at in 0..width {
                        columns.push(state.store().gather(at, rows)?);
                    }
                }
            }
            let options = RecordBatchOptions::new().with_row_count(Some(end - start));
            let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
            let kinds = &self.kinds[start..end];
            let has_others = kinds.iter().any(|kind| *kind != INSERT);
            let kinds = has_others.then(|| Buffer::from_slice_ref(kinds));
            output.push(ChangelogBatch::with_kind_bytes(batch, kinds));
        }
        self.rows.iter_mut().for_each(Vec::clear);
        self.kinds.clear();
        self.alone.clear();
        Ok(())
    }

    fn drop_void(&mut self) {
        if self.void_count == 0 {
            return;
        }
        for rows in &mut self.rows {
            let mut kinds = self.kinds.iter();
            rows.retain(|_| kinds.next() != Some(&VOID));
        }
        self.kinds.retain(|kind| *kind != VOID);
        self.void_count = 0;
    }
}

/// Returns whether rows are all rows of a batch, each once, as where each has one partner.
fn is_whole(rows: &[u32], row_count: usize) -> bool {
    rows.len() == row_count && rows.iter().enumerate().all(|(at, row)| at == *row as usize)
}

/// Returns positions for `take`, where `ABSENT` is NULL.
fn positions(rows: &[u32]) -> UInt32Array {
    if rows.contains(&ABSENT) {
        rows.iter().map(|row| (*row != ABSENT).then_some(*row)).collect()
    } else {
        UInt32Array::from(rows.to_vec())
    }
}
