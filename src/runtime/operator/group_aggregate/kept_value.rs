//! Functions over rows that are never taken back, whose result is one of the group's values: FIRST_VALUE, LAST_VALUE, and MIN and
//! MAX of texts and the like. NULLs do not count.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::DataType as ArrowType;

use super::accumulator::Accumulator;
use super::rows::Rows;
use super::value_store::{SlotValue, ValueStore};
use crate::error::{Error, Result};

/// Which of the values is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    First,
    Last,
    Min,
    Max,
}

/// The kept values of groups.
#[derive(Debug)]
pub(super) struct KeptValue {
    kept: Kept,
    data_type: ArrowType,
    store: ValueStore,
    values: Vec<Option<SlotValue>>,
}

impl KeptValue {
    /// Creates the accumulator.
    ///
    /// # Errors
    /// The values cannot be compared.
    pub(super) fn new(kept: Kept, data_type: &ArrowType) -> Result<KeptValue> {
        let store = ValueStore::new(data_type)?;
        Ok(KeptValue { kept, data_type: data_type.clone(), store, values: Vec::new() })
    }

    fn offer(&mut self, slot: usize, value: SlotValue) {
        let replaces = match self.values[slot] {
            None => true,
            Some(held) => match self.kept {
                Kept::First => false,
                Kept::Last => true,
                Kept::Min => self.store.compare(value, held) == Ordering::Less,
                Kept::Max => self.store.compare(value, held) == Ordering::Greater,
            },
        };
        if replaces {
            self.store.retain(value);
            if let Some(held) = self.values[slot].replace(value) {
                self.store.release(held);
            }
        }
    }
}

impl Accumulator for KeptValue {
    fn grow(&mut self, slot_count: usize) {
        self.values.resize(slot_count.max(self.values.len()), None);
    }

    fn update(&mut self, values: Option<&ArrayRef>, rows: &Rows<'_>) -> Result<()> {
        let column = values.ok_or_else(|| Error::internal("an aggregate of values has an argument"))?;
        let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let mut chosen: Vec<u32> = Vec::new();
        rows.for_each(nulls.as_ref(), |row, slot, _| {
            if self.kept != Kept::First || self.values[slot].is_none() {
                chosen.push(row as u32);
            }
        });
        if chosen.is_empty() {
            return Ok(());
        }
        let slots: Vec<u32> = chosen.iter().map(|row| rows.slots[*row as usize]).collect();
        let column = if chosen.len() == column.len() {
            Arc::clone(column)
        } else {
            take(column, &UInt32Array::from(chosen), None)?
        };
        for value in self.store.encode(&column, &slots)? {
            self.offer(value.slot() as usize, value);
        }
        self.store.sweep();
        Ok(())
    }

    fn results(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.store.decode(&slots.iter().map(|slot| self.values[*slot as usize]).collect::<Vec<_>>())
    }

    fn clear(&mut self, slot: u32) {
        if let Some(held) = self.values[slot as usize].take() {
            self.store.release(held);
            self.store.sweep();
        }
    }

    fn state_fields(&self) -> Vec<(String, ArrowType)> {
        vec![("value".to_owned(), self.data_type.clone())]
    }

    fn states(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(slots)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let column = columns.first().ok_or_else(|| Error::internal("a kept value has a column"))?;
        for value in self.store.encode(column, slots)? {
            if !value.is_null() {
                self.offer(value.slot() as usize, value);
            }
        }
        self.store.sweep();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.store.bytes() + self.values.capacity() * size_of::<Option<SlotValue>>()
    }
}
