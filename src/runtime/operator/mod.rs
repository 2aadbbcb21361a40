//! Operators: what a node of the job graph does while it runs.
//!
//! An operator is synchronous and lives on one worker thread, which owns its state. It reads no clock and no environment: time
//! comes with the epoch. The worker gives it every batch of an epoch, then says that the epoch has ended; rows may leave at
//! either point. What an operator keeps for longer is in tables of state (`state`), whose changes a checkpoint takes.

mod build;
mod calc;
mod changelog_normalize;
mod deduplicate;
mod drop_update_before;
mod expand;
mod group_aggregate;
mod join;
mod limit;
mod set_operation;
mod sink_upsert_materialize;
mod stored_changes;
#[cfg(test)]
pub(crate) mod testing;
mod top_n;
mod union;
mod unnest;

pub(crate) use build::{build, operator_name};
pub(crate) use calc::Calc;
use changelog_normalize::ChangelogNormalize;
use deduplicate::Deduplicate;
use drop_update_before::DropUpdateBefore;
use expand::ExpandOperator;
pub(crate) use group_aggregate::{GroupAggregateOperator, LocalGroupAggregate};
use join::{JoinOperator, MultiJoinOperator};
use limit::Limit;
use set_operation::SetOperation;
use sink_upsert_materialize::SinkUpsertMaterialize;
use top_n::TopN;
use union::Union;
use unnest::Unnest;

use arrow::array::RecordBatch;

use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::state::{StateChanges, StateTable};

/// The watermark before there is one.
pub(crate) const NO_WATERMARK: i64 = i64::MIN;

/// What is known when an epoch has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EpochEnd {
    /// The number, which grows by one.
    pub(crate) number: u64,
    /// The wall clock when the epoch was formed, in milliseconds since 1970: processing time.
    pub(crate) time_ms: i64,
    /// No row at or before this event time (milliseconds) is still to come; `NO_WATERMARK` if unknown.
    pub(crate) watermark: i64,
    /// Whether the input has ended for good.
    pub(crate) is_last: bool,
}

/// Where an operator's rows go: the worker hands them on in this order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    batches: Vec<ChangelogBatch>,
}

impl Output {
    /// Emits rows; an empty batch is dropped.
    pub(crate) fn push(&mut self, batch: ChangelogBatch) {
        if batch.row_count() > 0 {
            self.batches.push(batch);
        }
    }

    /// Takes out what was emitted, in order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = ChangelogBatch> {
        self.batches.drain(..)
    }
}

/// What a node does.
pub(crate) trait Operator: Send {
    /// Takes rows of an input (0 is the first). Batches of one input come in order; the inputs of an epoch come in any order.
    ///
    /// # Errors
    /// A value is out of an expression's domain, or the state has no room. The job fails.
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()>;

    /// Ends an epoch: every input has given all its rows. Emits what is still to be said about the epoch's changes: where a key
    /// changed several times only the net change, `-U` before `+U`, what goes before what comes.
    ///
    /// # Errors
    /// As for `process`.
    fn end_epoch(&mut self, _epoch: &EpochEnd, _output: &mut Output) -> Result<()> {
        Ok(())
    }

    /// Takes back every row that has come before. Called before the first batch of an epoch, of operators that remember all rows of a
    /// table which may be cleared.
    ///
    /// # Errors
    /// The operator is none of them.
    fn clear(&mut self) -> Result<()> {
        Err(Error::internal("a table is cleared whose rows nobody remembers"))
    }

    /// Returns whether no row that may still come changes anything, so that those before need not go on.
    fn is_exhausted(&self) -> bool {
        false
    }

    /// Returns the processing time (milliseconds) at which the operator wants an epoch even if no rows come.
    fn next_timer(&self) -> Option<i64> {
        None
    }

    /// Describes the state; the order is that in which tables are saved and loaded.
    fn state_tables(&self) -> Vec<StateTable> {
        Vec::new()
    }

    /// Takes what has changed since the last call (or since `load`), one entry per table of `state_tables`. Called between epochs.
    ///
    /// # Errors
    /// Columns cannot be built.
    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        Ok(Vec::new())
    }

    /// Puts rows back that were saved: those of the key groups that this worker owns, each key once, in any order. Comes before
    /// any row, table by table; may be called several times for one table.
    ///
    /// # Errors
    /// The rows do not fit.
    fn load(&mut self, _table: usize, _rows: &RecordBatch) -> Result<()> {
        Ok(())
    }

    /// Says that all that was saved is loaded.
    ///
    /// # Errors
    /// What was loaded makes no whole.
    fn finish_load(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns how many bytes the state holds: what its columns and indexes have allocated.
    fn state_bytes(&self) -> usize {
        0
    }
}
