//! Output rows as they are decided on: which row of the batch, which row of the other side, which kind.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::Buffer;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use hashbrown::HashMap;
use std::sync::Arc;

use super::super::Output;
use super::side_state::SideState;
use super::{ABSENT, BATCH_ROWS};
use crate::changelog::ChangelogBatch;
use crate::error::Result;

/// The kind of an entry that another one has made void.
const VOID: u8 = u8::MAX;

/// Rows that are about to be emitted, in order.
#[derive(Debug, Default)]
pub(super) struct Emission {
    /// The row of the batch, or `ABSENT` for NULLs.
    probe: Vec<u32>,
    /// The number of the other side's row, or `ABSENT` for NULLs.
    build: Vec<u32>,
    kinds: Vec<u8>,
    /// Where the last entry without partner is, by the other side's row.
    alone: HashMap<u32, usize>,
    void_count: usize,
}

/// Which two entries of one row without partner make each other void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    /// One that comes and goes: between the two, the row has no other output.
    Coming,
    /// Also one that goes and comes back: the row's only output is itself.
    Both,
}

impl Emission {
    /// Returns how many entries there are.
    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Adds a row of the batch with a row of the other side.
    #[inline]
    pub(super) fn push(&mut self, kind: u8, probe: u32, build: u32) {
        self.probe.push(probe);
        self.build.push(build);
        self.kinds.push(kind);
    }

    /// Adds pairs, each with the kind of the batch's row.
    pub(super) fn push_pairs(&mut self, kinds: Option<&[u8]>, probe: &[u32], build: &[u32]) {
        self.probe.extend_from_slice(probe);
        self.build.extend_from_slice(build);
        match kinds {
            None => self.kinds.resize(self.build.len(), 0),
            Some(kinds) => self.kinds.extend(probe.iter().map(|row| kinds[*row as usize])),
        }
    }

    /// Adds a row of the other side alone, unless it makes an earlier entry void.
    pub(super) fn push_alone(&mut self, kind: u8, build: u32, cancel: Cancel) {
        if let Some(at) = self.alone.remove(&build)
            && (self.kinds[at] ^ kind) & 1 == 1
            && (cancel == Cancel::Both || kind & 1 == 1)
        {
            self.kinds[at] = VOID;
            self.void_count += 1;
            return;
        }
        self.alone.insert(build, self.kinds.len());
        self.push(kind, ABSENT, build);
    }

    /// Emits the entries. `input` is the side of the batch; the output has the columns of the first `sides_shown` sides.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn flush(
        &mut self,
        input: usize,
        rows: &RecordBatch,
        sides: &[SideState; 2],
        schema: &SchemaRef,
        output: &mut Output,
    ) -> Result<()> {
        self.drop_void();
        for start in (0..self.len()).step_by(BATCH_ROWS) {
            let end = self.len().min(start + BATCH_ROWS);
            let probe = positions(&self.probe[start..end]);
            let build = &self.build[start..end];
            let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
            for (side, state) in sides.iter().enumerate() {
                for at in 0..state.store().width() {
                    if columns.len() == schema.fields().len() {
                        break;
                    }
                    columns.push(if side == input {
                        take(rows.column(at), &probe, None)?
                    } else {
                        state.store().gather(at, build)?
                    });
                }
            }
            let options = RecordBatchOptions::new().with_row_count(Some(end - start));
            let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
            let kinds = Buffer::from_slice_ref(&self.kinds[start..end]);
            output.push(ChangelogBatch::with_kind_bytes(batch, Some(kinds)));
        }
        self.probe.clear();
        self.build.clear();
        self.kinds.clear();
        self.alone.clear();
        Ok(())
    }

    fn drop_void(&mut self) {
        if self.void_count == 0 {
            return;
        }
        let mut kept = 0;
        for at in 0..self.len() {
            if self.kinds[at] != VOID {
                self.probe[kept] = self.probe[at];
                self.build[kept] = self.build[at];
                self.kinds[kept] = self.kinds[at];
                kept += 1;
            }
        }
        self.probe.truncate(kept);
        self.build.truncate(kept);
        self.kinds.truncate(kept);
        self.void_count = 0;
    }
}

/// Returns positions for `take`, where `ABSENT` is NULL.
fn positions(rows: &[u32]) -> UInt32Array {
    if rows.contains(&ABSENT) {
        rows.iter().map(|row| (*row != ABSENT).then_some(*row)).collect()
    } else {
        UInt32Array::from(rows.to_vec())
    }
}
