//! NOT IN over changing inputs, in SQL's three values.
//!
//! `x NOT IN (SELECT y …)` holds if there is no `y` at all, or if neither `x` nor any `y` is NULL and no `y` equals `x`. So a row
//! with NULL on the right hides every left row, and a left NULL is hidden by any row on the right: both are seen from the
//! chains of the key NULL and the number of rows, without a count per row.

use super::super::Output;
use super::emission::Cancel;
use super::incoming::Incoming;
use super::join_operator::JoinOperator;
use super::{ABSENT, BATCH_ROWS, DELETE, INSERT};
use crate::error::Result;

impl JoinOperator {
    /// Joins a batch of either side.
    pub(super) fn join_null_aware(&mut self, incoming: &Incoming, output: &mut Output) -> Result<()> {
        for row in 0..incoming.slots.len() {
            if incoming.input == 0 {
                incoming.apply(&mut self.sides, row);
                if !self.is_hidden(incoming.slots[row]) {
                    self.emission.push(incoming.kind(row), 0, row as u32, ABSENT);
                }
            } else {
                self.apply_right(incoming, row);
            }
            if self.emission.len() >= BATCH_ROWS {
                self.flush(incoming, output)?;
            }
        }
        self.flush(incoming, output)
    }

    /// Returns whether left rows of a key are not shown.
    fn is_hidden(&self, slot: u32) -> bool {
        let (right, null_slot) = (&self.sides[1], self.keys.null_slot());
        if slot == null_slot {
            right.row_count() > 0
        } else {
            !right.is_empty(slot) || !right.is_empty(null_slot)
        }
    }

    /// Adds a right row or takes it back, and shows or hides the left rows that it decides about.
    fn apply_right(&mut self, incoming: &Incoming, row: usize) {
        let (slot, null_slot) = (incoming.slots[row], self.keys.null_slot());
        let was_nothing = self.sides[1].row_count() == 0;
        let had_null = !self.sides[1].is_empty(null_slot);
        if !incoming.apply(&mut self.sides, row).is_turn {
            return;
        }
        let kind = if incoming.is_added(row) { DELETE } else { INSERT };
        if slot == null_slot {
            for at in 0..self.sides[0].slot_count() as u32 {
                if at != slot && self.sides[1].is_empty(at) {
                    self.show(at, kind);
                }
            }
        } else if !had_null {
            self.show(slot, kind);
        }
        if was_nothing != (self.sides[1].row_count() == 0) && null_slot != ABSENT {
            self.show(null_slot, kind);
        }
    }

    /// Emits the left rows of a key.
    fn show(&mut self, slot: u32, kind: u8) {
        let mut rows = Vec::new();
        self.sides[0].walk(self.sides[0].first(slot), &mut rows);
        rows.iter().for_each(|row| self.emission.push_alone(kind, 1, *row, Cancel::Both));
    }
}
