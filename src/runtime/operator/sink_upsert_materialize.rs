//! Keeps, per key of a sink, the rows that claim it, and passes on the last one: when it goes, the key falls back to the one before.
//!
//! Rows of one key are a list through their numbers, in the order in which they came.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};

use super::stored_changes::StoredChanges;
use super::{EpochEnd, Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;
use crate::state::{ABSENT, KeyIndex, SequencedRows, StateChanges, StateTable, hash_rows};

/// Passes on the last row that claims each key.
pub(crate) struct SinkUpsertMaterialize {
    keys: Vec<usize>,
    index: KeyIndex,
    lists: Vec<Claims>,
    rows: SequencedRows,
    /// The rows that come before and after, by number.
    links: Vec<Link>,
    /// Keys that the epoch has touched, with the last row at its start.
    touched: Vec<(u32, u32)>,
    retired: Vec<u32>,
    epoch_rows: usize,
    loaded: Vec<(u32, u32)>,
    schema: SchemaRef,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

/// The rows that claim a key.
#[derive(Debug, Clone, Copy)]
struct Claims {
    first: u32,
    last: u32,
    is_touched: bool,
}

/// The neighbours of a row in its list.
#[derive(Debug, Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

const NO_CLAIMS: Claims = Claims { first: ABSENT, last: ABSENT, is_touched: false };
const NO_LINK: Link = Link { previous: ABSENT, next: ABSENT };

impl SinkUpsertMaterialize {
    /// Makes the operator over an input's columns.
    ///
    /// # Errors
    /// A column cannot be a key or be stored.
    pub(crate) fn new(keys: &[usize], input: &SchemaRef) -> Result<SinkUpsertMaterialize> {
        let key_types: Vec<ArrowType> =
            keys.iter().map(|column| input.field(*column).data_type().clone()).collect();
        Ok(SinkUpsertMaterialize {
            keys: keys.to_vec(),
            index: KeyIndex::new(&key_types)?,
            lists: Vec::new(),
            rows: SequencedRows::new("rows", input, keys)?,
            links: Vec::new(),
            touched: Vec::new(),
            retired: Vec::new(),
            epoch_rows: 0,
            loaded: Vec::new(),
            schema: Arc::clone(input),
            hashes: Vec::new(),
            slots: Vec::new(),
        })
    }

    fn find_keys(&mut self, columns: &[ArrayRef], count: usize) -> Result<()> {
        let keys: Vec<ArrayRef> = self.keys.iter().map(|key| Arc::clone(&columns[*key])).collect();
        hash_rows(&keys, count, &mut self.hashes)?;
        self.index.intern(&keys, &self.hashes, &mut self.slots)?;
        self.lists.resize(self.index.slot_count(), NO_CLAIMS);
        Ok(())
    }

    fn touch(&mut self, slot: u32) {
        let list = &mut self.lists[slot as usize];
        if !std::mem::replace(&mut list.is_touched, true) {
            self.touched.push((slot, list.last));
        }
    }

    /// Puts a row behind the others that claim a key.
    fn append(&mut self, slot: u32, number: u32) {
        if self.links.len() <= number as usize {
            self.links.resize(number as usize + 1, NO_LINK);
        }
        let list = &mut self.lists[slot as usize];
        let previous = std::mem::replace(&mut list.last, number);
        self.links[number as usize] = Link { previous, next: ABSENT };
        match previous {
            ABSENT => list.first = number,
            previous => self.links[previous as usize].next = number,
        }
    }

    /// Takes the first of equal rows out, if there is one.
    fn remove(&mut self, slot: u32, row: &[u8]) {
        let mut number = self.lists[slot as usize].first;
        while number != ABSENT && self.rows.get(number) != row {
            number = self.links[number as usize].next;
        }
        if number == ABSENT {
            return;
        }
        let Link { previous, next } = self.links[number as usize];
        match previous {
            ABSENT => self.lists[slot as usize].first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            ABSENT => self.lists[slot as usize].last = previous,
            next => self.links[next as usize].previous = previous,
        }
        self.retired.push(number);
    }

    /// Says how the last row of each touched key has changed.
    fn changes(&self) -> StoredChanges {
        let is_exact = self.epoch_rows == 1;
        let mut changes = StoredChanges::default();
        for (slot, before) in &self.touched {
            match (*before, self.lists[*slot as usize].last) {
                (before, now) if before == now => {}
                (ABSENT, now) => changes.push(RowKind::Insert, now),
                (before, ABSENT) => changes.push(RowKind::Delete, before),
                // Flink passes an equal row on; over more rows there is nothing to say of it.
                (before, now) if !is_exact && self.rows.get(before) == self.rows.get(now) => {}
                (_, now) => changes.push(RowKind::UpdateAfter, now),
            }
        }
        changes
    }
}

impl Operator for SinkUpsertMaterialize {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, _output: &mut Output) -> Result<()> {
        self.epoch_rows += batch.row_count();
        self.find_keys(batch.rows().columns(), batch.row_count())?;
        let encoded = self.rows.encode(batch.rows().columns(), batch.row_count())?;
        for row in 0..batch.row_count() {
            let slot = self.slots[row];
            self.touch(slot);
            if batch.kind(row).is_retraction() {
                self.remove(slot, encoded.row(row).data());
            } else {
                let number = self.rows.insert(encoded.row(row).data());
                self.append(slot, number);
            }
        }
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        let changes = self.changes();
        let columns = self.rows.columns(changes.numbers())?;
        output.push(changes.into_batch(&self.schema, columns)?);
        self.retired.drain(..).for_each(|number| self.rows.remove(number));
        for (slot, _) in self.touched.drain(..) {
            let list = &mut self.lists[slot as usize];
            list.is_touched = false;
            if list.first == ABSENT {
                self.index.remove(slot);
            }
        }
        self.epoch_rows = 0;
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        vec![self.rows.state_table()]
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        Ok(vec![self.rows.take_changes()?])
    }

    fn load(&mut self, _table: usize, rows: &RecordBatch) -> Result<()> {
        let (columns, numbers) = self.rows.load(rows)?;
        self.find_keys(&columns, rows.num_rows())?;
        self.loaded.extend(self.slots.iter().copied().zip(numbers));
        Ok(())
    }

    fn finish_load(&mut self) -> Result<()> {
        let mut loaded = std::mem::take(&mut self.loaded);
        loaded.sort_unstable_by_key(|(slot, number)| (*slot, self.rows.sequence(*number)));
        loaded.into_iter().for_each(|(slot, number)| self.append(slot, number));
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        self.index.bytes()
            + self.rows.bytes()
            + self.lists.capacity() * size_of::<Claims>()
            + self.links.capacity() * size_of::<Link>()
            + self.touched.capacity() * size_of::<(u32, u32)>()
            + (self.retired.capacity() + self.slots.capacity()) * size_of::<u32>()
            + self.hashes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Harness, Random, TestInput, check, fold_upserts, parse, retractions, schema,
    };
    use super::*;
    use arrow::datatypes::DataType::{Int32, Utf8};
    use std::collections::BTreeMap;

    fn columns() -> SchemaRef {
        schema(&[("k", Utf8), ("v", Int32)])
    }

    fn input() -> [TestInput; 1] {
        [TestInput::new(&columns(), &[0])]
    }

    fn make() -> SinkUpsertMaterialize {
        SinkUpsertMaterialize::new(&[0], &columns()).unwrap()
    }

    #[test]
    fn a_key_falls_back_to_the_earlier_row_when_the_later_one_goes() {
        check(
            make,
            &input(),
            &["+I a 1", "+I a 2", "+U a 3", "-D a 2", "-U a 3", "-D a 9", "-D a 1", "-D a 1", "+I a 4"],
            &["+I a 1", "+U a 2", "+U a 3", "+U a 1", "-D a 1", "+I a 4"],
        );
    }

    #[test]
    fn an_equal_row_is_passed_on_as_flink_does_and_only_then() {
        check(make, &input(), &["+I a 1", "+I a 1"], &["+I a 1", "+U a 1"]);
        let mut operator = Harness::new(make, &input());
        assert_eq!(operator.epoch(&["+I a 1", "+I b 1", "-D b 1"]), ["+I a 1"]);
        assert_eq!(operator.epoch(&["-U a 1", "+U a 1"]), [""; 0]);
    }

    /// The last row of each key, from lists that are searched one by one.
    fn model(lines: &[String]) -> BTreeMap<String, String> {
        let mut lists: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines {
            let (_, kind, values) = parse(line);
            let list = lists.entry(values[0].to_owned()).or_default();
            let row = values.join(" ");
            match kind.is_retraction() {
                true => drop(list.remove(list.iter().position(|other| *other == row).unwrap())),
                false => list.push(row),
            }
        }
        lists.into_iter().filter_map(|(key, list)| Some((key, list.last()?.clone()))).collect()
    }

    #[test]
    fn the_last_row_that_claims_a_key_has_it_over_epochs_and_restarts() {
        let mut random = Random::new(8);
        for _ in 0..40 {
            let lines = random.changelog(&columns(), &[], 200);
            let expected = model(&lines);
            assert_eq!(fold_upserts(&Harness::new(make, &input()).per_record(&lines), &[0]), expected);
            let mut operator = Harness::new(make, &input());
            let mut shown = Vec::new();
            for part in random.split(&lines) {
                shown.extend(operator.epoch(part));
                if random.chance(40) {
                    operator.restart(1 + random.below(3));
                }
            }
            assert_eq!(fold_upserts(&shown, &[0]), expected);
            shown.extend(operator.in_epochs(&retractions(&lines), 7));
            assert_eq!(fold_upserts(&shown, &[0]), BTreeMap::new());
            operator.checkpoint();
            assert_eq!(operator.saved(0), [""; 0]);
        }
    }
}
