//! Values of any type as numbers of 8 bytes. What fits is its own number; other values lie in an index, once each however many
//! groups have them, and are counted there.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal128Array, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::DataType as ArrowType;

use crate::error::Result;
use crate::state::{KeyIndex, compare_narrow, hash_rows, is_narrow, narrow_array, narrow_values};

/// A value of a group: the slot, the number that stands for the value, and whether it is NULL. It lies in indexes as a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotValue(i128);

impl SlotValue {
    const NULL: i128 = 1 << 96;

    /// Makes the value with a number.
    pub(super) fn new(slot: u32, code: u64) -> SlotValue {
        SlotValue(i128::from(slot) << 64 | i128::from(code))
    }

    /// Makes NULL.
    pub(super) fn null(slot: u32) -> SlotValue {
        SlotValue(i128::from(slot) << 64 | SlotValue::NULL)
    }

    /// Returns what an index over these has for one.
    pub(super) fn from_key(key: i128) -> SlotValue {
        SlotValue(key)
    }

    /// Returns the group.
    pub(super) fn slot(self) -> u32 {
        (self.0 >> 64) as u32
    }

    /// Returns whether the value is NULL.
    pub(super) fn is_null(self) -> bool {
        self.0 & SlotValue::NULL != 0
    }

    /// Returns the number that stands for the value.
    pub(super) fn code(self) -> u64 {
        self.0 as u64
    }

    /// Returns a column to probe an index with.
    pub(super) fn column(values: &[SlotValue]) -> ArrayRef {
        Arc::new(Decimal128Array::from_iter_values(values.iter().map(|value| value.0)))
    }

    /// Makes an index over values of groups.
    pub(super) fn index() -> Result<KeyIndex> {
        KeyIndex::new(&[ArrowType::Decimal128(38, 0)])
    }
}

/// Knows the values behind their numbers.
#[derive(Debug)]
pub(super) enum ValueStore {
    /// The number is the value.
    Narrow(ArrowType),
    /// The number is a slot of the index.
    Indexed(Box<IndexedValues>),
}

/// Values that are each there once.
#[derive(Debug)]
pub(super) struct IndexedValues {
    data_type: ArrowType,
    index: KeyIndex,
    /// How often each is used; `FREE` for a slot without value.
    uses: Vec<u32>,
    /// Values that may have no use.
    idle: Vec<u32>,
}

/// The uses of a slot without value.
const FREE: u32 = u32::MAX;

impl ValueStore {
    /// Makes a store for values of a type.
    ///
    /// # Errors
    /// The type cannot be compared.
    pub(super) fn new(data_type: &ArrowType) -> Result<ValueStore> {
        if is_narrow(data_type) {
            return Ok(ValueStore::Narrow(data_type.clone()));
        }
        Ok(ValueStore::Indexed(Box::new(IndexedValues {
            data_type: data_type.clone(),
            index: KeyIndex::new(std::slice::from_ref(data_type))?,
            uses: Vec::new(),
            idle: Vec::new(),
        })))
    }

    /// Returns the values of a column, each with its group. Who keeps one says so by `retain`; the others go with `sweep`.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn encode(&mut self, column: &ArrayRef, slots: &[u32]) -> Result<Vec<SlotValue>> {
        let nulls = column.logical_nulls();
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let value = |row: usize, slot: u32, code: u64| {
            if is_null(row) { SlotValue::null(slot) } else { SlotValue::new(slot, code) }
        };
        let rows = slots.iter().zip(self.numbers(column)?).enumerate();
        Ok(rows.map(|(row, (slot, code))| value(row, *slot, code)).collect())
    }

    /// Returns the numbers of the values of a column; that of a NULL means nothing. For who keeps them see `encode`.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn numbers(&mut self, column: &ArrayRef) -> Result<Vec<u64>> {
        match self {
            ValueStore::Narrow(_) => narrow_values(column),
            ValueStore::Indexed(values) => {
                let IndexedValues { index, uses, idle, .. } = values.as_mut();
                let (mut hashes, mut found) = (Vec::new(), Vec::new());
                hash_rows(std::slice::from_ref(column), column.len(), &mut hashes)?;
                index.intern(std::slice::from_ref(column), &hashes, &mut found)?;
                uses.resize(index.slot_count(), FREE);
                for at in &found {
                    if uses[*at as usize] == FREE {
                        uses[*at as usize] = 0;
                        idle.push(*at);
                    }
                }
                Ok(found.into_iter().map(u64::from).collect())
            }
        }
    }

    /// Keeps a value.
    pub(super) fn retain(&mut self, value: SlotValue) {
        if let ValueStore::Indexed(values) = self
            && !value.is_null()
        {
            values.uses[value.code() as usize] += 1;
        }
    }

    /// Lets a value go that was kept.
    pub(super) fn release(&mut self, value: SlotValue) {
        if let ValueStore::Indexed(values) = self
            && !value.is_null()
        {
            let IndexedValues { uses, idle, .. } = values.as_mut();
            let at = value.code() as u32;
            uses[at as usize] -= 1;
            if uses[at as usize] == 0 {
                idle.push(at);
            }
        }
    }

    /// Forgets values that nobody keeps.
    pub(super) fn sweep(&mut self) {
        if let ValueStore::Indexed(values) = self {
            let IndexedValues { index, uses, idle, .. } = values.as_mut();
            for at in idle.drain(..) {
                if uses[at as usize] == 0 {
                    uses[at as usize] = FREE;
                    index.remove(at);
                }
            }
        }
    }

    /// Compares two values, neither of them NULL.
    pub(super) fn compare(&self, left: SlotValue, right: SlotValue) -> Ordering {
        match self {
            ValueStore::Narrow(data_type) => compare_narrow(data_type, left.code(), right.code()),
            ValueStore::Indexed(values) => values.index.compare(left.code() as u32, right.code() as u32),
        }
    }

    /// Returns values as a column; None is NULL.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn decode(&self, values: &[Option<SlotValue>]) -> Result<ArrayRef> {
        let present = |value: &Option<SlotValue>| value.filter(|value| !value.is_null());
        let has_nulls = values.iter().any(|value| present(value).is_none());
        match self {
            ValueStore::Narrow(data_type) => {
                let nulls: Option<NullBuffer> =
                    has_nulls.then(|| values.iter().map(|value| present(value).is_some()).collect());
                narrow_array(
                    data_type,
                    values.iter().map(|value| present(value).map_or(0, SlotValue::code)),
                    nulls,
                )
            }
            ValueStore::Indexed(indexed) => {
                let IndexedValues { data_type, index, .. } = indexed.as_ref();
                let kept: Vec<u32> =
                    values.iter().filter_map(present).map(|value| value.code() as u32).collect();
                if kept.is_empty() {
                    return Ok(new_null_array(data_type, values.len()));
                }
                let column = index.columns(&kept)?.swap_remove(0);
                if !has_nulls {
                    return Ok(column);
                }
                let mut next = 0..;
                let places: UInt32Array =
                    values.iter().map(|value| present(value).and_then(|_| next.next())).collect();
                Ok(take(&column, &places, None)?)
            }
        }
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        match self {
            ValueStore::Narrow(_) => 0,
            ValueStore::Indexed(values) => {
                let IndexedValues { index, uses, idle, .. } = values.as_ref();
                size_of::<IndexedValues>()
                    + index.bytes()
                    + (uses.capacity() + idle.capacity()) * size_of::<u32>()
            }
        }
    }
}
