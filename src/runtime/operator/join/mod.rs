//! Joins of changing inputs.
//!
//! A batch is joined with what the other side holds at that moment and is then added to its own side, so that whatever the order
//! in which two inputs come, every pair is found once. Rows leave while batches come, in exactly Flink's order and with its
//! kinds, and not at the end of the epoch: a joined row and the padded row that it replaces have the same key, so that
//! their order matters to whoever keeps rows by key. What comes and goes within one batch is left out where that cannot show.

mod emission;
mod incoming;
mod join_keys;
mod join_operator;
mod multi_join_operator;
mod null_aware;
mod pairs;
mod row_journal;
mod row_store;
mod side_state;

pub(crate) use join_operator::JoinOperator;
pub(crate) use multi_join_operator::MultiJoinOperator;

use crate::changelog::RowKind;
use crate::state::ABSENT;

const INSERT: u8 = RowKind::Insert as u8;
const DELETE: u8 = RowKind::Delete as u8;

/// How many rows an output batch has at most.
const BATCH_ROWS: usize = 8192;

#[cfg(test)]
mod tests;
