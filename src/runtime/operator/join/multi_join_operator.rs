//! The join of several inputs on one key that all of them have: no intermediate rows are kept.
//!
//! A row is combined with the rows of its key in all other inputs. Inputs that are optional (LEFT) stand in with NULLs where they
//! have no row of the key; kinds are as if two inputs were joined after the other: with an optional input in the join, rows come
//! as `+I`.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::super::{EpochEnd, Operator, Output};
use super::emission::{Cancel, Emission};
use super::incoming::Incoming;
use super::join_keys::JoinKeys;
use super::side_state::{SideLayout, SideState};
use super::{ABSENT, BATCH_ROWS, DELETE, INSERT};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::plan::{GraphNode, JoinSide, MULTI_JOIN_INPUTS_MAX};
use crate::state::{StateChanges, StateTable};

/// The names of the inputs' tables of state.
const TABLES: [&str; MULTI_JOIN_INPUTS_MAX] = [
    "input-0", "input-1", "input-2", "input-3", "input-4", "input-5", "input-6", "input-7", "input-8",
    "input-9", "input-10", "input-11", "input-12", "input-13", "input-14", "input-15",
];

/// Joins several inputs.
pub(crate) struct MultiJoinOperator {
    is_optional: Vec<bool>,
    keys: JoinKeys,
    sides: Vec<SideState>,
    schema: SchemaRef,
    emission: Emission,
    /// For each input, the rows that a row is combined with.
    partners: Vec<Vec<u32>>,
}

impl MultiJoinOperator {
    /// Builds the operator; `keys` are the key's columns in each input.
    ///
    /// # Errors
    /// A column's type cannot be kept or compared, or there are too many inputs.
    pub(crate) fn new(
        keys: &[Vec<usize>],
        is_optional: &[bool],
        inputs: &[&GraphNode],
        output: &SchemaRef,
    ) -> Result<MultiJoinOperator> {
        if inputs.len() > TABLES.len() {
            return Err(Error::internal(format!("a join of {} inputs on one key", inputs.len())));
        }
        let schemas: Vec<SchemaRef> =
            inputs.iter().map(|input| SchemaRef::clone(input.arrow_schema())).collect();
        let side = |number: usize| {
            let layout =
                SideLayout::new(&JoinSide::of(&inputs[number].unique_keys, &keys[number]), inputs[number]);
            SideState::new(TABLES[number], &schemas[number], layout)
        };
        let is_null_safe = vec![false; keys.first().map_or(0, Vec::len)];
        Ok(MultiJoinOperator {
            is_optional: is_optional.to_vec(),
            keys: JoinKeys::new(&schemas, keys.to_vec(), is_null_safe, false)?,
            sides: (0..inputs.len()).map(side).collect::<Result<_>>()?,
            schema: SchemaRef::clone(output),
            emission: Emission::new(inputs.len()),
            partners: vec![Vec::new(); inputs.len()],
        })
    }

    /// Returns whether a row of an input is shown where no other input has its key.
    fn stands_alone(&self, input: usize) -> bool {
        let mut others = self.is_optional.iter().enumerate().filter(|(other, _)| *other != input);
        !self.is_optional[input] && others.all(|(_, is_optional)| *is_optional)
    }

    fn decide(&mut self, incoming: &Incoming, row: usize, output: &mut Output) -> Result<()> {
        let (input, kind) = (incoming.input, incoming.kind(row));
        let is_turn = incoming.apply(&mut self.sides, row).is_turn;
        if !self.find_partners(incoming, row) {
            return Ok(());
        }
        let has_optional = self.is_optional.contains(&true);
        let pads = is_turn && self.is_optional[input];
        if incoming.is_added(row) {
            if pads {
                self.pad(DELETE, incoming, row, output)?;
            }
            self.combine(if has_optional { INSERT } else { kind }, incoming, output)
        } else {
            let is_preserved = has_optional && !self.is_optional[input];
            self.combine(if is_preserved { DELETE } else { kind }, incoming, output)?;
            if pads { self.pad(INSERT, incoming, row, output) } else { Ok(()) }
        }
    }

    /// Collects what a row is combined with; returns false if an input is missing that must be there.
    fn find_partners(&mut self, incoming: &Incoming, row: usize) -> bool {
        let slot = incoming.slots[row];
        for (other, partners) in self.partners.iter_mut().enumerate() {
            partners.clear();
            if other == incoming.input {
                partners.push(row as u32);
            } else if !self.sides[other].is_empty(slot) {
                self.sides[other].walk(self.sides[other].first(slot), partners);
            } else if self.is_optional[other] {
                partners.push(ABSENT);
            } else {
                return false;
            }
        }
        true
    }

    /// Emits the combinations in which NULLs stand for the row's input.
    fn pad(&mut self, kind: u8, incoming: &Incoming, row: usize, output: &mut Output) -> Result<()> {
        let slot = incoming.slots[row];
        if self.emission.make_void(slot, kind, Cancel::Coming) {
            return Ok(());
        }
        self.partners[incoming.input][0] = ABSENT;
        let start = self.emission.len();
        self.combine(kind, incoming, output)?;
        self.partners[incoming.input][0] = row as u32;
        // Where some have left already there is nothing to make void.
        let count: usize = self.partners.iter().map(Vec::len).product();
        if self.emission.len() == start + count {
            self.emission.note_alone(slot, start..start + count);
        }
        Ok(())
    }

    /// Emits all combinations of the partners.
    fn combine(&mut self, kind: u8, incoming: &Incoming, output: &mut Output) -> Result<()> {
        let mut rows: Vec<&[u32]> = self.partners.iter().map(Vec::as_slice).collect();
        let most = (0..rows.len()).max_by_key(|input| rows[*input].len()).unwrap_or(0);
        let others: usize = rows.iter().map(|rows| rows.len()).product::<usize>() / rows[most].len();
        for part in self.partners[most].chunks((BATCH_ROWS / others).max(1)) {
            rows[most] = part;
            self.emission.push_combinations(kind, &rows);
            if self.emission.len() >= BATCH_ROWS {
                self.emission.flush(incoming, &self.sides, &self.schema, output)?;
            }
        }
        Ok(())
    }
}

impl Operator for MultiJoinOperator {
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let keeps_null_keys = self.stands_alone(input);
        let Some(incoming) = self.keys.receive(&mut self.sides, input, batch, keeps_null_keys)? else {
            return Ok(());
        };
        for row in 0..incoming.slots.len() {
            self.decide(&incoming, row, output)?;
        }
        self.emission.flush(&incoming, &self.sides, &self.schema, output)?;
        self.keys.remove_empty(&self.sides, &incoming);
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, _output: &mut Output) -> Result<()> {
        self.sides.iter_mut().for_each(SideState::compact);
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        self.sides.iter().map(|side| side.table().clone()).collect()
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        self.sides.iter_mut().map(SideState::take_changes).collect()
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        self.keys.load(&mut self.sides, table, rows)
    }

    fn finish_load(&mut self) -> Result<()> {
        self.keys.finish_load(&mut self.sides);
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        self.keys.bytes() + self.sides.iter().map(SideState::bytes).sum::<usize>()
    }
}
