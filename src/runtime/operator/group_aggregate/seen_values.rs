//! The values that each group has seen where no row is ever taken back: what DISTINCT needs then, and nothing more.
//!
//! A group has a table of its values' numbers, 8 bytes each, in which a search touches one cache line. A value has its place by the
//! share of the hash space below its hash, so a table may have any size and grows by half. Before the first checkpoint nothing is
//! noted about what it has to write, which is everything.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use std::sync::Arc;

use super::rows::Rows;
use super::tables::Saved;
use super::value_store::{SlotValue, ValueStore};
use crate::error::{Error, Result};
use crate::state::hash_word;

/// The values of groups.
#[derive(Debug)]
pub(super) struct SeenValues {
    /// Whether NULL is a value.
    keeps_nulls: bool,
    values: ValueStore,
    /// By slot.
    sets: Vec<ValueSet>,
    /// What has come since the last checkpoint; None if there has been none.
    news: Option<Vec<SlotValue>>,
    batch: Batch,
    /// The bytes of all sets.
    set_bytes: usize,
}

/// The batch at hand.
#[derive(Debug, Default)]
struct Batch {
    /// The number of each row's value.
    numbers: Vec<u64>,
    nulls: Option<NullBuffer>,
    /// Whether a row's value stands in its place already.
    is_known: Vec<bool>,
    /// Rows of the last step by which a value came.
    transitions: Vec<u32>,
}

/// The values of one group.
#[derive(Debug, Default)]
struct ValueSet {
    /// Values by their places; 0 where there is none.
    numbers: Vec<u64>,
    /// How many there are.
    count: u32,
    has_zero: bool,
    has_null: bool,
}

impl SeenValues {
    /// Makes the values of no groups.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn new(data_type: &ArrowType, keeps_nulls: bool) -> Result<SeenValues> {
        Ok(SeenValues {
            keeps_nulls,
            values: ValueStore::new(data_type)?,
            sets: Vec::new(),
            news: None,
            batch: Batch::default(),
            set_bytes: 0,
        })
    }

    /// Makes room for slots.
    pub(super) fn grow(&mut self, slot_count: usize) {
        if self.sets.len() < slot_count {
            self.sets.resize_with(slot_count, ValueSet::default);
        }
    }

    /// Finds the numbers of all values of a batch.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn begin_batch(&mut self, column: &ArrayRef) -> Result<()> {
        self.batch.numbers = self.values.numbers(column)?;
        self.batch.nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(())
    }

    /// Adds rows. Afterwards `transitions` has those by which a value came.
    pub(super) fn apply(&mut self, rows: &Rows<'_>) {
        let SeenValues { keeps_nulls, values, sets, news, batch, set_bytes } = self;
        let Batch { numbers, nulls, is_known, transitions } = batch;
        // The first look has loads that do not depend on each other, so that the misses of many rows overlap.
        is_known.clear();
        is_known.extend(rows.slots.iter().zip(&*numbers).map(|(slot, number)| {
            let set = &sets[*slot as usize];
            *number != 0 && set.numbers.get(set.home(*number)) == Some(number)
        }));
        transitions.clear();
        let nulls = nulls.as_ref();
        rows.for_each(nulls.filter(|_| !*keeps_nulls), |row, slot, is_retraction| {
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
            if is_retraction || (is_known[row] && !is_null) {
                return;
            }
            let set = &mut sets[slot];
            let before = set.numbers.capacity();
            let (is_new, value) = if is_null {
                (!std::mem::replace(&mut set.has_null, true), SlotValue::null(slot as u32))
            } else {
                (set.insert(numbers[row]), SlotValue::new(slot as u32, numbers[row]))
            };
            if is_new {
                *set_bytes += (set.numbers.capacity() - before) * size_of::<u64>();
                values.retain(value);
                transitions.push(row as u32);
                if let Some(news) = news {
                    news.push(value);
                }
            }
        });
        values.sweep();
    }

    /// Returns the rows of the last `apply` by which a value came.
    pub(super) fn transitions(&self) -> &[u32] {
        &self.batch.transitions
    }

    /// Takes what a checkpoint has to write, in the form of counted values.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self) -> Result<(Saved, Saved)> {
        let news = match self.news.replace(Vec::new()) {
            Some(news) => news,
            None => (0..).zip(&self.sets).flat_map(|(slot, set)| set.iter(slot)).collect(),
        };
        let slots = news.iter().map(|value| value.slot()).collect();
        let count = news.len();
        let values: Vec<Option<SlotValue>> = news.into_iter().map(Some).collect();
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![1; count]));
        let none = Saved { slots: Vec::new(), columns: vec![self.values.decode(&[])?] };
        Ok((Saved { slots, columns: vec![self.values.decode(&values)?, counts] }, none))
    }

    /// Puts saved values back.
    ///
    /// # Errors
    /// The columns are others.
    pub(super) fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let [values, counts] = columns else {
            return Err(Error::internal("a value is saved with its count"));
        };
        counts
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| Error::internal("a value is saved with a BIGINT"))?;
        self.begin_batch(values)?;
        self.news = None;
        self.apply(&Rows { slots, kinds: None, selection: super::rows::Selection::All(0..slots.len()) });
        self.news = Some(Vec::new());
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let Batch { numbers, is_known, transitions, .. } = &self.batch;
        self.values.bytes()
            + self.set_bytes
            + self.sets.capacity() * size_of::<ValueSet>()
            + self.news.as_ref().map_or(0, Vec::capacity) * size_of::<SlotValue>()
            + numbers.capacity() * size_of::<u64>()
            + is_known.capacity()
            + transitions.capacity() * size_of::<u32>()
    }
}

/// The size below which a table grows to twice its size.
const SMALL: usize = 64;

impl ValueSet {
    /// Returns the place of a value: where it stands if it came before others that have the same.
    #[inline]
    fn home(&self, number: u64) -> usize {
        ((u128::from(hash_word(number)) * self.numbers.len() as u128) >> 64) as usize
    }

    /// Adds a value; returns whether it was not there.
    fn insert(&mut self, number: u64) -> bool {
        if number == 0 {
            return !std::mem::replace(&mut self.has_zero, true);
        }
        if (self.count as usize + 1) * 4 > self.numbers.len() * 3 {
            self.widen();
        }
        let is_new = self.place(number);
        self.count += u32::from(is_new);
        is_new
    }

    #[inline]
    fn place(&mut self, number: u64) -> bool {
        let mut at = self.home(number);
        loop {
            match self.numbers[at] {
                0 => {
                    self.numbers[at] = number;
                    return true;
                }
                other if other == number => return false,
                _ => at = if at + 1 < self.numbers.len() { at + 1 } else { 0 },
            }
        }
    }

    fn widen(&mut self) {
        let size = match self.numbers.len() {
            0 => 2,
            size if size < SMALL => size * 2,
            size => size + size / 2,
        };
        let before = std::mem::replace(&mut self.numbers, vec![0; size]);
        before.into_iter().filter(|number| *number != 0).for_each(|number| {
            self.place(number);
        });
    }

    /// Returns all values, as those of a group.
    fn iter(&self, slot: u32) -> impl Iterator<Item = SlotValue> + '_ {
        let numbers = self.numbers.iter().copied().filter(|number| *number != 0);
        let all = self.has_zero.then_some(0).into_iter().chain(numbers);
        all.map(move |number| SlotValue::new(slot, number))
            .chain(self.has_null.then_some(SlotValue::null(slot)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_has_each_value_once_whatever_its_size() {
        let (mut set, mut model) = (ValueSet::default(), BTreeSet::new());
        let mut number = 0_u64;
        for _ in 0..5_000 {
            let value = number % 1_500;
            assert_eq!(set.insert(value), model.insert(value));
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        }
        let found: BTreeSet<u64> = set.iter(7).map(SlotValue::code).collect();
        assert_eq!(found, model);
        assert_eq!(set.count as usize + 1, model.len(), "0 is not in the table");
        assert!(
            set.numbers.len() < set.count as usize * 3,
            "the table is at least half full after it has grown"
        );
    }
}
