//! The join of two inputs, as Flink's: which rows it emits for a row, in which order and with which kinds.
//!
//! A join without residual needs no count of partners per row: whether a row has partners is whether the other side's chain of
//! its key is empty. Only with a residual does each row of a preserved side count its own.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::Expr;

use super::super::{EpochEnd, Operator, Output};
use super::emission::{Cancel, Emission};
use super::incoming::{Applied, Incoming};
use super::join_keys::JoinKeys;
use super::pairs::{Pairs, Residual};
use super::side_state::{SideLayout, SideState};
use super::{ABSENT, DELETE, INSERT};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::plan::{GraphNode, JoinKind, JoinSpec};
use crate::state::{StateChanges, StateTable};

/// Joins two inputs.
pub(crate) struct JoinOperator {
    pub(super) kind: JoinKind,
    is_null_aware: bool,
    residual: Option<Residual>,
    pub(super) keys: JoinKeys,
    pub(super) sides: [SideState; 2],
    pub(super) schema: SchemaRef,
    pairs: Pairs,
    pub(super) emission: Emission,
}

impl JoinOperator {
    /// Builds the operator over its two inputs.
    ///
    /// # Errors
    /// A column's type cannot be kept or compared, or the residual cannot be evaluated row by row.
    pub(crate) fn new(spec: &JoinSpec, inputs: &[&GraphNode], output: &SchemaRef) -> Result<JoinOperator> {
        let [left, right] = inputs else {
            return Err(Error::internal("a join has two inputs"));
        };
        if spec.is_null_aware && spec.keys.len() != 1 {
            return Err(Error::internal(format!("a null-aware join has {} keys", spec.keys.len())));
        }
        let schemas = [left, right].map(|input| SchemaRef::clone(input.arrow_schema()));
        let is_rewritten = spec.is_null_aware && spec.residual.is_some();
        let spec = if is_rewritten { &null_aware_as_residual(spec, &schemas[0]) } else { spec };
        let residual = spec.residual.as_ref().map(|condition| Residual::new(condition, &spec.pair_schema));
        let residual = residual.transpose()?;
        let key_columns = vec![
            spec.keys.iter().map(|key| key.left).collect(),
            spec.keys.iter().map(|key| key.right).collect(),
        ];
        let is_null_safe = spec.keys.iter().map(|key| key.is_null_safe || spec.is_null_aware).collect();
        let side = |number: usize, name| {
            let mut layout = SideLayout::new(&spec.sides[number], inputs[number]);
            layout.counts_associations = residual.is_some() && preserves(spec.kind, number);
            SideState::new(name, &schemas[number], layout)
        };
        Ok(JoinOperator {
            kind: spec.kind,
            is_null_aware: spec.is_null_aware,
            sides: [side(0, "left")?, side(1, "right")?],
            residual,
            keys: JoinKeys::new(&schemas, key_columns, is_null_safe, spec.is_null_aware)?,
            schema: SchemaRef::clone(output),
            pairs: Pairs::default(),
            emission: Emission::new(2),
        })
    }

    /// Joins a batch with the other side, pairs by pairs.
    fn join_pairs(&mut self, incoming: &Incoming, output: &mut Output) -> Result<()> {
        let input = incoming.input;
        let other = &self.sides[1 - input];
        let first = |slot: &u32| if *slot == ABSENT { ABSENT } else { other.first(*slot) };
        let firsts: Vec<u32> = incoming.slots.iter().map(first).collect();
        let mut start = 0;
        while start < firsts.len() {
            let mut pairs = std::mem::take(&mut self.pairs);
            let end = pairs.collect(&firsts, start, &self.sides[1 - input]);
            if let Some(residual) = &self.residual {
                residual.retain(&mut pairs, input, incoming.rows(), &self.sides)?;
            }
            if self.kind == JoinKind::Inner {
                self.emission.push_pairs(incoming.batch.kind_bytes(), input, &pairs);
                for row in start..end {
                    incoming.apply(&mut self.sides, row);
                }
            } else {
                self.decide(incoming, start..end, &pairs);
            }
            self.pairs = pairs;
            self.flush(incoming, output)?;
            start = end;
        }
        Ok(())
    }

    /// Emits what has been decided.
    pub(super) fn flush(&mut self, incoming: &Incoming, output: &mut Output) -> Result<()> {
        self.emission.flush(incoming, &self.sides, &self.schema, output)
    }

    /// Decides what rows with their pairs make of an outer, semi or anti join.
    fn decide(&mut self, incoming: &Incoming, rows: Range<usize>, pairs: &Pairs) {
        let mut at = 0;
        for row in rows {
            let from = at;
            while pairs.probe.get(at) == Some(&(row as u32)) {
                at += 1;
            }
            let partners = &pairs.build[from..at];
            let Applied { is_turn, number } = incoming.apply(&mut self.sides, row);
            if self.residual.is_some() && number != ABSENT && preserves(self.kind, incoming.input) {
                self.sides[incoming.input].set_associations(number, partners.len() as u32);
            }
            match self.kind {
                JoinKind::Semi | JoinKind::Anti => self.decide_membership(incoming, row, partners, is_turn),
                _ => self.decide_outer(incoming, row, partners, is_turn),
            }
        }
    }

    fn decide_outer(&mut self, incoming: &Incoming, row: usize, partners: &[u32], is_turn: bool) {
        let (input, is_added) = (incoming.input, incoming.is_added(row));
        let [is_outer, other_is_outer] = [input, 1 - input].map(|side| preserves(self.kind, side));
        if partners.is_empty() {
            if is_outer {
                self.emission.push(if is_added { INSERT } else { DELETE }, input, row as u32, ABSENT);
            }
            return;
        }
        if is_added && other_is_outer {
            self.turn(incoming, row, partners, is_turn, DELETE, Cancel::Coming);
        }
        let joined = match is_added {
            true if is_outer || other_is_outer => INSERT,
            false if is_outer => DELETE,
            _ => incoming.kind(row),
        };
        for partner in partners {
            self.emission.push(joined, input, row as u32, *partner);
        }
        if !is_added && other_is_outer {
            self.turn(incoming, row, partners, is_turn, INSERT, Cancel::Coming);
        }
    }

    fn decide_membership(&mut self, incoming: &Incoming, row: usize, partners: &[u32], is_turn: bool) {
        let kind = incoming.kind(row);
        let is_semi = self.kind == JoinKind::Semi;
        if incoming.input == 0 {
            if partners.is_empty() != is_semi {
                self.emission.push(kind, incoming.input, row as u32, ABSENT);
            }
            return;
        }
        let shown = match (is_semi, incoming.is_added(row)) {
            (true, _) => kind,
            (false, true) => DELETE,
            (false, false) => INSERT,
        };
        self.turn(incoming, row, partners, is_turn, shown, Cancel::Both);
    }

    /// Emits, alone and with the kind `shown`, those partners for which the row is the first, or was the last.
    fn turn(
        &mut self,
        incoming: &Incoming,
        row: usize,
        partners: &[u32],
        is_turn: bool,
        shown: u8,
        cancel: Cancel,
    ) {
        if self.residual.is_none() {
            for partner in partners.iter().filter(|_| is_turn) {
                self.emission.push_alone(shown, incoming.input, *partner, cancel);
            }
            return;
        }
        let is_added = incoming.is_added(row);
        let other = &mut self.sides[1 - incoming.input];
        let (mut last, mut before) = (ABSENT, 0);
        for partner in partners {
            // A row that counts several times stands here as often, side by side.
            if *partner != last {
                last = *partner;
                before = other.associations(last);
                other.set_associations(last, if is_added { before + 1 } else { before.saturating_sub(1) });
            }
            if before == u32::from(!is_added) {
                self.emission.push_alone(shown, incoming.input, *partner, cancel);
            }
        }
    }

    /// Semi and anti joins without residual: partners are looked at only where a key gets its first or loses its last.
    fn join_members(&mut self, incoming: &Incoming, output: &mut Output) -> Result<()> {
        let mut partners = Vec::new();
        for row in 0..incoming.slots.len() {
            let slot = incoming.slots[row];
            let is_turn = incoming.apply(&mut self.sides, row).is_turn;
            partners.clear();
            if incoming.input == 0 {
                // One partner stands for all.
                partners.extend((!self.sides[1].is_empty(slot)).then_some(ABSENT));
            } else if is_turn {
                self.sides[0].walk(self.sides[0].first(slot), &mut partners);
            }
            self.decide_membership(incoming, row, &partners, is_turn);
            if self.emission.len() >= super::BATCH_ROWS {
                self.flush(incoming, output)?;
            }
        }
        self.flush(incoming, output)
    }
}

impl Operator for JoinOperator {
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let keeps_null_keys = shows_unmatched(self.kind, input);
        let Some(incoming) = self.keys.receive(&mut self.sides, input, batch, keeps_null_keys)? else {
            return Ok(());
        };
        let is_membership = matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        if self.is_null_aware {
            self.join_null_aware(&incoming, output)?;
        } else if is_membership && self.residual.is_none() {
            self.join_members(&incoming, output)?;
        } else {
            self.join_pairs(&incoming, output)?;
        }
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

/// Returns whether rows of a side are shown, or hidden, by whether they have partners.
fn preserves(kind: JoinKind, side: usize) -> bool {
    match kind {
        JoinKind::Inner => false,
        JoinKind::Left | JoinKind::Semi | JoinKind::Anti => side == 0,
        JoinKind::Right => side == 1,
        JoinKind::Full => true,
    }
}

/// Returns whether rows of a side without partner are shown.
fn shows_unmatched(kind: JoinKind, side: usize) -> bool {
    kind != JoinKind::Semi && preserves(kind, side)
}

/// Writes NOT IN with a further condition as a condition of every pair: `x NOT IN (SELECT y …)` is no answer for pairs in which
/// either is NULL.
fn null_aware_as_residual(spec: &JoinSpec, left_schema: &SchemaRef) -> JoinSpec {
    let key = &spec.keys[0];
    let columns = spec.pair_schema.columns();
    let left = Expr::Column(columns[key.left].clone());
    let right = Expr::Column(columns[left_schema.fields().len() + key.right].clone());
    let is_unknown = left.clone().is_null().or(right.clone().is_null());
    let may_be_equal = left.eq(right).or(is_unknown);
    let residual = spec.residual.clone().map_or(may_be_equal.clone(), |residual| residual.and(may_be_equal));
    JoinSpec { keys: Vec::new(), residual: Some(residual), is_null_aware: false, ..spec.clone() }
}
