//! The join of two inputs, as Flink's: which rows it emits for a row, in which order and with which kinds.
//!
//! A join without residual needs no count of partners per row: whether a row has partners is whether the other side's chain of
//! its key is empty. Only with a residual does each row of a preserved side count its own.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;

use super::super::super::state::{ABSENT, KeyIndex, StateChanges, StateTable};
use super::super::{Operator, Output};
use super::emission::{Cancel, Emission};
use super::incoming::{Incoming, intern_keys, key_columns, rows_without_key, without_unchanged_updates};
use super::pairs::{Pairs, Residual};
use super::side_state::{Lookup, SideLayout, SideState};
use crate::changelog::{ChangelogBatch, ChangelogMode, RowKind};
use crate::error::{Error, Result};
use crate::plan::{JoinKind, JoinSide, JoinSpec, JoinUniqueness};

const INSERT: u8 = RowKind::Insert as u8;
const DELETE: u8 = RowKind::Delete as u8;

/// Joins two inputs.
pub(crate) struct JoinOperator {
    pub(super) kind: JoinKind,
    pub(super) is_null_aware: bool,
    residual: Option<Residual>,
    /// The key's columns in each input.
    key_columns: [Vec<usize>; 2],
    is_null_safe: Vec<bool>,
    keys: KeyIndex,
    pub(super) sides: [SideState; 2],
    pub(super) schema: SchemaRef,
    pairs: Pairs,
    pub(super) emission: Emission,
    /// The slot of the key NULL; for null-aware joins.
    pub(super) null_slot: u32,
}

impl JoinOperator {
    /// Builds the operator. `modes` are the kinds that each input may send.
    ///
    /// # Errors
    /// A column's type cannot be kept or compared, or the residual cannot be evaluated row by row.
    pub(crate) fn new(
        spec: &JoinSpec,
        inputs: &[SchemaRef; 2],
        modes: [ChangelogMode; 2],
        output: &SchemaRef,
    ) -> Result<JoinOperator> {
        let nullable = spec.is_null_aware && spec.residual.is_some();
        let spec = if nullable { &null_aware_as_residual(spec, inputs)? } else { spec };
        let residual = spec.residual.as_ref().map(|condition| Residual::new(condition, &spec.pair_schema));
        let residual = residual.transpose()?;
        let key_columns = [
            spec.keys.iter().map(|key| key.left).collect::<Vec<_>>(),
            spec.keys.iter().map(|key| key.right).collect::<Vec<_>>(),
        ];
        for key in &spec.keys {
            let [left, right] =
                [inputs[0].field(key.left).data_type(), inputs[1].field(key.right).data_type()];
            if left != right {
                return Err(Error::internal(format!("a join compares keys of types {left} and {right}")));
            }
        }
        let types: Vec<_> =
            key_columns[0].iter().map(|at| inputs[0].field(*at).data_type().clone()).collect();
        let side = |number: usize, name| {
            let layout = SideLayout {
                counts_associations: residual.is_some() && preserves(spec.kind, number),
                ..side_layout(&spec.sides[number], &inputs[number], modes[number])
            };
            SideState::new(name, &inputs[number], layout)
        };
        Ok(JoinOperator {
            kind: spec.kind,
            is_null_aware: spec.is_null_aware,
            sides: [side(0, "left")?, side(1, "right")?],
            residual,
            key_columns,
            is_null_safe: spec.keys.iter().map(|key| key.is_null_safe || spec.is_null_aware).collect(),
            keys: KeyIndex::new(&types)?,
            schema: SchemaRef::clone(output),
            pairs: Pairs::default(),
            emission: Emission::default(),
            null_slot: ABSENT,
        })
    }

    /// Looks the keys of a batch up and writes what it adds. None if nothing is left of it.
    fn receive(&mut self, input: usize, batch: ChangelogBatch) -> Result<Option<Incoming>> {
        let mut batch = without_unchanged_updates(batch)?;
        let keys = key_columns(batch.rows().columns(), &self.key_columns[input]);
        let mut nulls = rows_without_key(&keys, &self.is_null_safe);
        if let Some(valid) = &nulls
            && !shows_unmatched(self.kind, input)
        {
            let rows: UInt32Array = valid.valid_indices().map(|row| row as u32).collect();
            batch = batch.take(&rows)?;
            nulls = None;
        }
        let row_count = batch.row_count();
        if row_count == 0 {
            return Ok(None);
        }
        let keys = key_columns(batch.rows().columns(), &self.key_columns[input]);
        let (slots, mut hashes) = intern_keys(&mut self.keys, &keys, row_count, nulls.as_ref())?;
        if self.is_null_aware {
            // All rows meet on one worker; so their key group is that of rows without a key.
            hashes.fill(0);
            if let Some(row) =
                keys[0].logical_nulls().and_then(|nulls| (0..row_count).find(|at| nulls.is_null(*at)))
            {
                self.null_slot = slots[row];
            }
        }
        for side in &mut self.sides {
            side.ensure_slots(self.keys.slot_count());
        }
        let kinds = batch.kind_bytes();
        let is_added = |row: usize| slots[row] != ABSENT && kinds.is_none_or(|kinds| kinds[row] & 1 == 0);
        let arrivals = self.sides[input].arrive(batch.rows().columns(), row_count, &hashes, is_added)?;
        Ok(Some(Incoming { input, batch, slots, arrivals }))
    }

    /// Adds a row to its side or takes it back. Returns whether that made the first row of its key, or removed the last, and the
    /// row's number if it has been added.
    pub(super) fn apply(&mut self, incoming: &Incoming, row: usize) -> (bool, u32) {
        let slot = incoming.slots[row];
        if slot == ABSENT {
            return (false, ABSENT);
        }
        let side = &mut self.sides[incoming.input];
        let was_empty = side.is_empty(slot);
        let number = if incoming.kind(row) & 1 == 0 {
            side.add(slot, &incoming.arrivals, row)
        } else {
            side.remove(slot, &incoming.arrivals, row);
            ABSENT
        };
        (was_empty != side.is_empty(slot), number)
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
                self.emission.push_pairs(incoming.batch.kind_bytes(), &pairs.probe, &pairs.build);
                for row in start..end {
                    self.apply(incoming, row);
                }
            } else {
                self.decide(incoming, start..end, &pairs);
            }
            self.pairs = pairs;
            self.emission.flush(input, incoming.rows(), &self.sides, &self.schema, output)?;
            start = end;
        }
        Ok(())
    }

    /// Decides what rows with their pairs make of an outer, semi or anti join.
    fn decide(&mut self, incoming: &Incoming, rows: std::ops::Range<usize>, pairs: &Pairs) {
        let mut at = 0;
        for row in rows {
            let from = at;
            while pairs.probe.get(at) == Some(&(row as u32)) {
                at += 1;
            }
            let partners = &pairs.build[from..at];
            let (is_turn, number) = self.apply(incoming, row);
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
        let kind = incoming.kind(row);
        let is_outer = preserves(self.kind, incoming.input);
        let other_is_outer = preserves(self.kind, 1 - incoming.input);
        if partners.is_empty() {
            if is_outer {
                self.emission.push(if kind & 1 == 0 { INSERT } else { DELETE }, row as u32, ABSENT);
            }
            return;
        }
        if kind & 1 == 0 {
            if other_is_outer {
                self.turn(incoming, partners, is_turn, kind, DELETE, Cancel::Coming);
            }
            let joined = if is_outer || other_is_outer { INSERT } else { kind };
            partners.iter().for_each(|partner| self.emission.push(joined, row as u32, *partner));
        } else {
            let joined = if is_outer { DELETE } else { kind };
            partners.iter().for_each(|partner| self.emission.push(joined, row as u32, *partner));
            if other_is_outer {
                self.turn(incoming, partners, is_turn, kind, INSERT, Cancel::Coming);
            }
        }
    }

    fn decide_membership(&mut self, incoming: &Incoming, row: usize, partners: &[u32], is_turn: bool) {
        let kind = incoming.kind(row);
        let is_semi = self.kind == JoinKind::Semi;
        if incoming.input == 0 {
            if partners.is_empty() != is_semi {
                self.emission.push(kind, row as u32, ABSENT);
            }
            return;
        }
        let shown = match (is_semi, kind & 1 == 0) {
            (true, _) => kind,
            (false, true) => DELETE,
            (false, false) => INSERT,
        };
        self.turn(incoming, partners, is_turn, kind, shown, Cancel::Both);
    }

    /// Emits, alone and with the kind `shown`, those partners for which the row is the first, or was the last.
    fn turn(
        &mut self,
        incoming: &Incoming,
        partners: &[u32],
        is_turn: bool,
        kind: u8,
        shown: u8,
        cancel: Cancel,
    ) {
        if self.residual.is_none() {
            if is_turn {
                partners.iter().for_each(|partner| self.emission.push_alone(shown, *partner, cancel));
            }
            return;
        }
        let other = &mut self.sides[1 - incoming.input];
        let (mut last, mut before) = (ABSENT, 0);
        for partner in partners {
            if *partner != last {
                last = *partner;
                before = other.associations(last);
                let after = if kind & 1 == 0 { before + 1 } else { before.saturating_sub(1) };
                other.set_associations(last, after);
            }
            if before == u32::from(kind & 1 == 1) {
                self.emission.push_alone(shown, *partner, cancel);
            }
        }
    }

    /// Semi and anti joins without residual: partners are looked at only where a key gets its first or loses its last.
    fn join_members(&mut self, incoming: &Incoming, output: &mut Output) -> Result<()> {
        let mut partners = Vec::new();
        for row in 0..incoming.slots.len() {
            let slot = incoming.slots[row];
            let (is_turn, _) = self.apply(incoming, row);
            partners.clear();
            if incoming.input == 0 {
                // One partner stands for all.
                partners.extend((!self.sides[1].is_empty(slot)).then_some(ABSENT));
            } else if is_turn {
                self.sides[0].walk(self.sides[0].first(slot), &mut partners);
            }
            self.decide_membership(incoming, row, &partners, is_turn);
            if self.emission.len() >= super::BATCH_ROWS {
                self.emission.flush(incoming.input, incoming.rows(), &self.sides, &self.schema, output)?;
            }
        }
        self.emission.flush(incoming.input, incoming.rows(), &self.sides, &self.schema, output)
    }

    /// Removes the keys of a batch that have no row on either side.
    fn remove_empty_keys(&mut self, incoming: &Incoming) {
        if incoming.batch.kind_bytes().is_none() {
            return;
        }
        let mut empty = incoming.slots.clone();
        empty.retain(|slot| *slot != ABSENT && self.sides.iter().all(|side| side.is_empty(*slot)));
        empty.sort_unstable();
        empty.dedup();
        for slot in empty {
            self.keys.remove(slot);
            if slot == self.null_slot {
                self.null_slot = ABSENT;
            }
        }
    }
}

impl Operator for JoinOperator {
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let Some(incoming) = self.receive(input, batch)? else { return Ok(()) };
        let is_membership = matches!(self.kind, JoinKind::Semi | JoinKind::Anti);
        if self.is_null_aware {
            self.join_null_aware(&incoming, output)?;
        } else if is_membership && self.residual.is_none() {
            self.join_members(&incoming, output)?;
        } else {
            self.join_pairs(&incoming, output)?;
        }
        self.remove_empty_keys(&incoming);
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        self.sides.iter().map(|side| side.table().clone()).collect()
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        self.sides.iter_mut().map(SideState::take_changes).collect()
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        let keys = key_columns(self.sides[table].saved_columns(rows), &self.key_columns[table]);
        let (slots, mut hashes) = intern_keys(&mut self.keys, &keys, rows.num_rows(), None)?;
        if self.is_null_aware {
            hashes.fill(0);
            let nulls = keys[0].logical_nulls();
            if let Some(row) = nulls.and_then(|nulls| (0..slots.len()).find(|at| nulls.is_null(*at))) {
                self.null_slot = slots[row];
            }
        }
        self.sides[table].load(rows, &hashes, &slots)
    }

    fn finish_load(&mut self) -> Result<()> {
        for side in &mut self.sides {
            side.ensure_slots(self.keys.slot_count());
            side.finish_load();
        }
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

/// Returns how the rows of a side are told apart; see `side_state`.
fn side_layout(side: &JoinSide, schema: &SchemaRef, mode: ChangelogMode) -> SideLayout {
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let is_upsert = mode.contains(RowKind::UpdateAfter) && !mode.contains(RowKind::UpdateBefore);
    let replaces = is_upsert && side.uniqueness != JoinUniqueness::None;
    let (lookup, key) = match &side.uniqueness {
        _ if side.is_insert_only => (Lookup::Never, &[][..]),
        JoinUniqueness::JoinKey => (Lookup::Chain, &[][..]),
        JoinUniqueness::Key(key) => (Lookup::Hash, key.as_slice()),
        JoinUniqueness::None => (Lookup::Hash, &[][..]),
    };
    SideLayout {
        lookup,
        identity: if replaces { key.to_vec() } else { all },
        replaces,
        counts_equal_rows: side.uniqueness == JoinUniqueness::None && !side.is_insert_only,
        counts_associations: false,
    }
}

/// Writes NOT IN with a further condition as a condition of every pair: `x NOT IN (SELECT y …)` is no answer for pairs in which
/// either is NULL.
fn null_aware_as_residual(spec: &JoinSpec, inputs: &[SchemaRef; 2]) -> Result<JoinSpec> {
    use datafusion::logical_expr::Expr;
    let [key] = spec.keys.as_slice() else {
        return Err(Error::internal("a null-aware join has more than one key"));
    };
    let columns = spec.pair_schema.columns();
    let left = Expr::Column(columns[key.left].clone());
    let right = Expr::Column(columns[inputs[0].fields().len() + key.right].clone());
    let is_unknown = left.clone().is_null().or(right.clone().is_null());
    let may_be_equal = left.eq(right).or(is_unknown);
    let residual = spec.residual.clone().map_or(may_be_equal.clone(), |residual| residual.and(may_be_equal));
    Ok(JoinSpec { keys: Vec::new(), residual: Some(residual), is_null_aware: false, ..spec.clone() })
}
