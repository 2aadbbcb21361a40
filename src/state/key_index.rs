//! Keys to slots: an open-addressing table of slot numbers over keys in columns.
//!
//! An entry is 8 bytes, the upper half of the hash and the slot; the keys lie in one column by slot (8 or 16 bytes each, or
//! bytes in an arena), so that a probe touches one cache line of the table and, where the tags agree, one key. A batch is probed
//! in passes: the first only reads the table, the second only keys of 8 bytes, so that the misses of many rows overlap.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{ArrowNativeType, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type};
use arrow::downcast_primitive_array;
use arrow::row::Rows;

use super::arena::Arena;
use super::hash::not_a_key;
use super::row_store::RowCodec;
use crate::error::{Error, Result};

/// The slot of a key that is not there.
pub(crate) const ABSENT: u32 = u32::MAX;

/// The part of an entry that comes from the hash.
const TAG: u64 = 0xffff_ffff_0000_0000;

/// The smallest table.
const ENTRIES_MIN: usize = 16;

/// Maps keys of one or more columns to slots, which are numbers from 0 that are used again when a key is removed.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    /// Tag and slot + 1; 0 where there is nothing.
    entries: Vec<u64>,
    keys: Keys,
    /// The hash of each slot's key.
    hashes: Vec<u64>,
    free: Vec<u32>,
    key_count: usize,
}

/// The keys by slot.
#[derive(Debug)]
enum Keys {
    /// No columns: one key.
    Unit,
    /// One column of up to 8 bytes; a slot may hold NULL.
    Narrow { data_type: ArrowType, values: Vec<u64>, null_slot: u32 },
    /// One column of decimals.
    Wide { data_type: ArrowType, values: Vec<i128>, null_slot: u32 },
    /// One column of texts or bytes, or several columns in Arrow's row encoding.
    Bytes { column: ByteKeys, arena: Arena, null_slot: u32 },
}

/// What the bytes of a key are.
#[derive(Debug)]
enum ByteKeys {
    /// The value itself.
    Plain(ArrowType),
    /// A row of several columns.
    Rows(RowCodec),
}

/// The keys of a batch, in the form in which they are compared.
enum Probe<'a> {
    Unit,
    Narrow(Vec<u64>, Option<&'a NullBuffer>),
    Wide(&'a [i128], Option<&'a NullBuffer>),
    Plain(&'a dyn Array, Option<&'a NullBuffer>),
    Rows(Rows),
}

impl KeyIndex {
    /// Makes an index of keys of these types.
    ///
    /// # Errors
    /// A type cannot be compared.
    pub(crate) fn new(types: &[ArrowType]) -> Result<KeyIndex> {
        let keys = match types {
            [] => Keys::Unit,
            [data_type] if matches!(data_type, ArrowType::Decimal128(..)) => {
                Keys::Wide { data_type: data_type.clone(), values: Vec::new(), null_slot: ABSENT }
            }
            [data_type] if is_narrow(data_type) => {
                Keys::Narrow { data_type: data_type.clone(), values: Vec::new(), null_slot: ABSENT }
            }
            [data_type @ (ArrowType::Utf8 | ArrowType::Binary)] => Keys::Bytes {
                column: ByteKeys::Plain(data_type.clone()),
                arena: Arena::default(),
                null_slot: ABSENT,
            },
            types => {
                let columns = types.iter().map(|data_type| (data_type.clone(), SortOptions::default()));
                Keys::Bytes {
                    column: ByteKeys::Rows(RowCodec::new(columns)?),
                    arena: Arena::default(),
                    null_slot: ABSENT,
                }
            }
        };
        Ok(KeyIndex {
            entries: vec![0; ENTRIES_MIN],
            keys,
            hashes: Vec::new(),
            free: Vec::new(),
            key_count: 0,
        })
    }

    /// Returns how many keys there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.key_count
    }

    /// Returns how many slots there have been: what columns by slot must have room for.
    pub(crate) fn slot_count(&self) -> usize {
        self.hashes.len()
    }

    /// Returns the hash of the key in a slot.
    pub(crate) fn hash(&self, slot: u32) -> u64 {
        self.hashes[slot as usize]
    }

    /// Finds the key of every row, adding those that are new, and writes the slots.
    ///
    /// # Errors
    /// The columns have other types, or there are 4 billion keys.
    pub(crate) fn intern(
        &mut self,
        columns: &[ArrayRef],
        hashes: &[u64],
        slots: &mut Vec<u32>,
    ) -> Result<()> {
        let probe = self.probe(columns)?;
        self.first_look(hashes, slots);
        let is_confirmed = self.confirm(&probe, slots);
        for (row, hash) in hashes.iter().enumerate() {
            if is_confirmed && slots[row] != ABSENT {
                continue;
            }
            let slot = self.search(&probe, row, *hash, slots[row]);
            slots[row] = if slot == ABSENT { self.insert(&probe, row, *hash)? } else { slot };
        }
        Ok(())
    }

    /// Finds the key of every row and writes the slots, `ABSENT` for keys that are not there.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn find(&self, columns: &[ArrayRef], hashes: &[u64], slots: &mut Vec<u32>) -> Result<()> {
        let probe = self.probe(columns)?;
        self.first_look(hashes, slots);
        let is_confirmed = self.confirm(&probe, slots);
        for (row, hash) in hashes.iter().enumerate() {
            if !is_confirmed || slots[row] == ABSENT {
                slots[row] = self.search(&probe, row, *hash, slots[row]);
            }
        }
        Ok(())
    }

    /// Removes a key; its slot will be given to another.
    pub(crate) fn remove(&mut self, slot: u32) {
        let mask = self.entries.len() - 1;
        let mut at = self.hashes[slot as usize] as usize & mask;
        while self.entries[at] as u32 != slot + 1 {
            at = (at + 1) & mask;
        }
        // Entries behind the gap move up, so that a search never has to step over one that is gone.
        let mut gap = at;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry == 0 {
                break;
            }
            let home = self.hashes[(entry as u32 - 1) as usize] as usize & mask;
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = 0;
        self.keys.clear(slot);
        self.free.push(slot);
        self.key_count -= 1;
    }

    /// Returns the key in a slot of an index over one column of decimals.
    pub(crate) fn wide_key(&self, slot: u32) -> i128 {
        match &self.keys {
            Keys::Wide { values, .. } => values[slot as usize],
            _ => 0,
        }
    }

    /// Compares two keys, neither of them NULL: numbers by value, floats in total order, texts and bytes byte by byte, several
    /// columns one after the other.
    pub(crate) fn compare(&self, left: u32, right: u32) -> Ordering {
        let (left, right) = (left as usize, right as usize);
        match &self.keys {
            Keys::Unit => Ordering::Equal,
            Keys::Narrow { data_type, values, .. } => compare_narrow(data_type, values[left], values[right]),
            Keys::Wide { values, .. } => values[left].cmp(&values[right]),
            Keys::Bytes { arena, .. } => arena.get(left).cmp(arena.get(right)),
        }
    }

    /// Returns the keys of slots as columns.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        self.keys.columns(slots)
    }

    /// Returns how many bytes the index has allocated.
    pub(crate) fn bytes(&self) -> usize {
        let keys = match &self.keys {
            Keys::Unit => 0,
            Keys::Narrow { values, .. } => values.capacity() * size_of::<u64>(),
            Keys::Wide { values, .. } => values.capacity() * size_of::<i128>(),
            Keys::Bytes { arena, .. } => arena.allocated(),
        };
        keys + (self.entries.capacity() + self.hashes.capacity()) * size_of::<u64>()
            + self.free.capacity() * size_of::<u32>()
    }

    /// Reads the table once for every row; the loads do not depend on each other, so that they overlap.
    fn first_look(&self, hashes: &[u64], slots: &mut Vec<u32>) {
        let mask = self.entries.len() - 1;
        slots.clear();
        slots.extend(hashes.iter().map(|hash| {
            let entry = self.entries[*hash as usize & mask];
            // What stands at home is the answer for most keys; the key itself is still to be compared.
            if entry != 0 && entry & TAG == hash & TAG { entry as u32 - 1 } else { ABSENT }
        }));
    }

    /// Compares the keys of likely slots with those of rows: what stays is the answer, the others become `ABSENT` and have to be
    /// searched for. Returns false, and does nothing, where keys do not lie in 8 bytes each.
    fn confirm(&self, probe: &Probe<'_>, slots: &mut [u32]) -> bool {
        let (Keys::Narrow { values, null_slot, .. }, Probe::Narrow(probed, None)) = (&self.keys, probe)
        else {
            return false;
        };
        for (slot, probed) in slots.iter_mut().zip(probed) {
            let is_same = values.get(*slot as usize) == Some(probed) && *slot != *null_slot;
            *slot = if is_same { *slot } else { ABSENT };
        }
        true
    }

    /// Returns whether a slot has the key of a row. A number is compared at once, bytes only where the whole hash agrees.
    #[inline]
    fn holds(&self, slot: u32, probe: &Probe<'_>, row: usize, hash: u64) -> bool {
        let is_number = matches!(self.keys, Keys::Narrow { .. } | Keys::Wide { .. });
        (is_number || self.hashes[slot as usize] == hash) && self.keys.equals(slot, probe, row)
    }

    #[inline]
    fn search(&self, probe: &Probe<'_>, row: usize, hash: u64, likely: u32) -> u32 {
        if likely != ABSENT && self.holds(likely, probe, row, hash) {
            return likely;
        }
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let entry = self.entries[at];
            if entry == 0 {
                return ABSENT;
            }
            if entry & TAG == hash & TAG {
                let slot = entry as u32 - 1;
                if self.holds(slot, probe, row, hash) {
                    return slot;
                }
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, probe: &Probe<'_>, row: usize, hash: u64) -> Result<u32> {
        if (self.key_count + 1) * 2 > self.entries.len() {
            self.grow();
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.hashes.len()).ok().filter(|slot| *slot < ABSENT - 1);
                self.hashes.push(0);
                slot.ok_or_else(|| Error::unsupported("more than 4 billion keys in one operator's state"))?
            }
        };
        self.hashes[slot as usize] = hash;
        self.keys.set(slot, probe, row);
        self.place(slot, hash);
        self.key_count += 1;
        Ok(slot)
    }

    fn place(&mut self, slot: u32, hash: u64) {
        let mask = self.entries.len() - 1;
        let mut at = hash as usize & mask;
        while self.entries[at] != 0 {
            at = (at + 1) & mask;
        }
        self.entries[at] = hash & TAG | u64::from(slot + 1);
    }

    fn grow(&mut self) {
        let before = std::mem::take(&mut self.entries);
        // Memory that only reads as zero would be mapped twice: when it is looked at, and when it is written.
        self.entries = Vec::with_capacity(before.len() * 2);
        self.entries.resize(before.len() * 2, 0);
        for entry in before.into_iter().filter(|entry| *entry != 0) {
            let slot = entry as u32 - 1;
            self.place(slot, self.hashes[slot as usize]);
        }
    }

    fn probe<'a>(&self, columns: &'a [ArrayRef]) -> Result<Probe<'a>> {
        Ok(match (&self.keys, columns) {
            (Keys::Unit, _) => Probe::Unit,
            (Keys::Narrow { .. }, [column]) => Probe::Narrow(narrow_values(column)?, column.nulls()),
            (Keys::Wide { .. }, [column]) => {
                let values = column.as_primitive_opt::<Decimal128Type>();
                let values = values.ok_or_else(|| Error::internal("a key column has changed its type"))?;
                Probe::Wide(values.values(), column.nulls())
            }
            (Keys::Bytes { column: ByteKeys::Plain(data_type), .. }, [column])
                if column.data_type() == data_type =>
            {
                Probe::Plain(column.as_ref(), column.nulls())
            }
            (Keys::Bytes { column: ByteKeys::Rows(codec), .. }, columns) => {
                Probe::Rows(codec.encode(columns, columns.first().map_or(0, Array::len))?)
            }
            _ => return Err(Error::internal("a key has other columns than its index")),
        })
    }
}

/// Returns a column of floats with one NaN; other columns as they are.
pub(crate) fn one_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        ArrowType::Float32 => {
            let values = column.as_primitive::<Float32Type>();
            Arc::new(values.unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value }))
        }
        ArrowType::Float64 => {
            let values = column.as_primitive::<Float64Type>();
            Arc::new(values.unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value }))
        }
        _ => Arc::clone(column),
    }
}

/// Returns whether values of a type lie in 8 bytes.
pub(crate) fn is_narrow(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Boolean) || data_type.primitive_width().is_some_and(|width| width <= 8)
}

/// Returns the values of a column as 8 bytes each; what stands under a NULL means nothing.
///
/// # Errors
/// The type has no such values.
pub(crate) fn narrow_values(column: &ArrayRef) -> Result<Vec<u64>> {
    let array = column.as_ref();
    Ok(match column.data_type() {
        ArrowType::Boolean => array.as_boolean().values().iter().map(u64::from).collect(),
        ArrowType::Float32 => array
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .map(|value| u64::from(if value.is_nan() { f32::NAN } else { *value }.to_bits()))
            .collect(),
        ArrowType::Float64 => array
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .map(|value| if value.is_nan() { f64::NAN } else { *value }.to_bits())
            .collect(),
        _ => downcast_primitive_array!(
            array => array.values().iter().map(|value| value.to_i64().unwrap_or_default() as u64).collect(),
            other => return Err(not_a_key(other))
        ),
    })
}

/// Compares two values of a type that lie in 8 bytes.
pub(crate) fn compare_narrow(data_type: &ArrowType, left: u64, right: u64) -> Ordering {
    match data_type {
        ArrowType::Float32 => f32::from_bits(left as u32).total_cmp(&f32::from_bits(right as u32)),
        ArrowType::Float64 => f64::from_bits(left).total_cmp(&f64::from_bits(right)),
        data_type if data_type.is_unsigned_integer() => left.cmp(&right),
        _ => (left as i64).cmp(&(right as i64)),
    }
}

/// Builds a column of 8-byte values.
///
/// # Errors
/// The type has no such values.
pub(crate) fn narrow_array(
    data_type: &ArrowType,
    values: impl Iterator<Item = u64>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    fn primitive<T: ArrowPrimitiveType>(
        data_type: &ArrowType,
        values: impl Iterator<Item = u64>,
        nulls: Option<NullBuffer>,
        value_of: impl Fn(u64) -> T::Native,
    ) -> ArrayRef {
        let values: ScalarBuffer<T::Native> = values.map(value_of).collect();
        Arc::new(PrimitiveArray::<T>::new(values, nulls).with_data_type(data_type.clone()))
    }
    macro_rules! integers {
        ($type:ty) => {
            primitive::<$type>(data_type, values, nulls, |value| value as _)
        };
    }
    use arrow::datatypes::*;
    Ok(match data_type {
        ArrowType::Boolean => Arc::new(BooleanArray::new(values.map(|value| value != 0).collect(), nulls)),
        ArrowType::Float32 => {
            primitive::<Float32Type>(data_type, values, nulls, |value| f32::from_bits(value as u32))
        }
        ArrowType::Float64 => primitive::<Float64Type>(data_type, values, nulls, f64::from_bits),
        ArrowType::Int8 => integers!(Int8Type),
        ArrowType::Int16 => integers!(Int16Type),
        ArrowType::Int32 => integers!(Int32Type),
        ArrowType::Int64 => integers!(Int64Type),
        ArrowType::UInt8 => integers!(UInt8Type),
        ArrowType::UInt16 => integers!(UInt16Type),
        ArrowType::UInt32 => integers!(UInt32Type),
        ArrowType::UInt64 => integers!(UInt64Type),
        ArrowType::Date32 => integers!(Date32Type),
        ArrowType::Date64 => integers!(Date64Type),
        ArrowType::Time32(TimeUnit::Second) => integers!(Time32SecondType),
        ArrowType::Time32(_) => integers!(Time32MillisecondType),
        ArrowType::Time64(TimeUnit::Microsecond) => integers!(Time64MicrosecondType),
        ArrowType::Time64(_) => integers!(Time64NanosecondType),
        ArrowType::Timestamp(TimeUnit::Second, _) => integers!(TimestampSecondType),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => integers!(TimestampMillisecondType),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => integers!(TimestampMicrosecondType),
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => integers!(TimestampNanosecondType),
        ArrowType::Duration(TimeUnit::Second) => integers!(DurationSecondType),
        ArrowType::Duration(TimeUnit::Millisecond) => integers!(DurationMillisecondType),
        ArrowType::Duration(TimeUnit::Microsecond) => integers!(DurationMicrosecondType),
        ArrowType::Duration(TimeUnit::Nanosecond) => integers!(DurationNanosecondType),
        ArrowType::Interval(IntervalUnit::YearMonth) => integers!(IntervalYearMonthType),
        other => return Err(not_a_key(other)),
    })
}

impl Keys {
    #[inline]
    fn equals(&self, slot: u32, probe: &Probe<'_>, row: usize) -> bool {
        let at = slot as usize;
        match (self, probe) {
            (Keys::Unit, _) => true,
            (Keys::Narrow { values, null_slot, .. }, Probe::Narrow(probed, nulls)) => match nulls {
                Some(nulls) if nulls.is_null(row) => slot == *null_slot,
                _ => slot != *null_slot && values[at] == probed[row],
            },
            (Keys::Wide { values, null_slot, .. }, Probe::Wide(probed, nulls)) => match nulls {
                Some(nulls) if nulls.is_null(row) => slot == *null_slot,
                _ => slot != *null_slot && values[at] == probed[row],
            },
            (Keys::Bytes { arena, null_slot, .. }, Probe::Plain(column, nulls)) => match nulls {
                Some(nulls) if nulls.is_null(row) => slot == *null_slot,
                _ => slot != *null_slot && arena.get(at) == bytes_of(*column, row),
            },
            (Keys::Bytes { arena, .. }, Probe::Rows(rows)) => arena.get(at) == rows.row(row).data(),
            _ => false,
        }
    }

    fn set(&mut self, slot: u32, probe: &Probe<'_>, row: usize) {
        fn put<T: Copy + Default>(values: &mut Vec<T>, at: usize, value: T) {
            if values.len() <= at {
                values.resize(at + 1, T::default());
            }
            values[at] = value;
        }
        let at = slot as usize;
        match (self, probe) {
            (Keys::Narrow { values, null_slot, .. }, Probe::Narrow(probed, nulls)) => {
                put(values, at, probed[row]);
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    *null_slot = slot;
                }
            }
            (Keys::Wide { values, null_slot, .. }, Probe::Wide(probed, nulls)) => {
                put(values, at, probed[row]);
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    *null_slot = slot;
                }
            }
            (Keys::Bytes { arena, null_slot, .. }, Probe::Plain(column, nulls)) => {
                if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                    arena.set(at, &[]);
                    *null_slot = slot;
                } else {
                    arena.set(at, bytes_of(*column, row));
                }
            }
            (Keys::Bytes { arena, .. }, Probe::Rows(rows)) => arena.set(at, rows.row(row).data()),
            _ => {}
        }
    }

    fn clear(&mut self, slot: u32) {
        match self {
            Keys::Unit => {}
            Keys::Narrow { null_slot, .. } | Keys::Wide { null_slot, .. } => {
                if *null_slot == slot {
                    *null_slot = ABSENT;
                }
            }
            Keys::Bytes { arena, null_slot, .. } => {
                arena.clear(slot as usize);
                if *null_slot == slot {
                    *null_slot = ABSENT;
                }
            }
        }
    }

    fn columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        let nulls = |null_slot: u32| {
            (null_slot != ABSENT && slots.contains(&null_slot))
                .then(|| slots.iter().map(|slot| *slot != null_slot).collect::<NullBuffer>())
        };
        Ok(match self {
            Keys::Unit => Vec::new(),
            Keys::Narrow { data_type, values, null_slot } => {
                let values = slots.iter().map(|slot| values[*slot as usize]);
                vec![narrow_array(data_type, values, nulls(*null_slot))?]
            }
            Keys::Wide { data_type, values, null_slot } => {
                let values: ScalarBuffer<i128> = slots.iter().map(|slot| values[*slot as usize]).collect();
                let array = PrimitiveArray::<Decimal128Type>::new(values, nulls(*null_slot));
                vec![Arc::new(array.with_data_type(data_type.clone()))]
            }
            Keys::Bytes { column: ByteKeys::Plain(data_type), arena, null_slot } => {
                let value = |slot: &u32| (*slot != *null_slot).then(|| arena.get(*slot as usize));
                let values = slots.iter().map(value);
                let binary: ArrayRef = Arc::new(values.collect::<arrow::array::BinaryArray>());
                vec![if *data_type == ArrowType::Binary {
                    binary
                } else {
                    arrow::compute::cast(&binary, data_type)?
                }]
            }
            Keys::Bytes { column: ByteKeys::Rows(codec), arena, .. } => {
                codec.decode(slots.iter().map(|slot| arena.get(*slot as usize)))?
            }
        })
    }
}

/// Returns a text or a byte string.
#[inline]
fn bytes_of(column: &dyn Array, row: usize) -> &[u8] {
    match column.data_type() {
        ArrowType::Utf8 => column.as_string::<i32>().value(row).as_bytes(),
        _ => column.as_binary::<i32>().value(row),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash_rows;
    use super::*;
    use arrow::array::{Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray};
    use arrow::datatypes::TimeUnit;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn intern(index: &mut KeyIndex, columns: &[ArrayRef]) -> Vec<u32> {
        let (mut hashes, mut slots) = (Vec::new(), Vec::new());
        let rows = columns.first().map_or(3, Array::len);
        hash_rows(columns, rows, &mut hashes).unwrap();
        index.intern(columns, &hashes, &mut slots).unwrap();
        slots
    }

    #[test]
    fn keys_of_every_layout_come_back_as_they_were() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(-3), None, Some(7)])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("")])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(0.0)])),
            Arc::new(
                Decimal128Array::from(vec![Some(-5), None, Some(5)]).with_precision_and_scale(9, 2).unwrap(),
            ),
            arrow::compute::cast(
                &Int64Array::from(vec![Some(-1), None, Some(1)]),
                &ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            )
            .unwrap(),
        ];
        for column in &columns {
            let mut index = KeyIndex::new(&[column.data_type().clone()]).unwrap();
            assert_eq!(intern(&mut index, std::slice::from_ref(column)), [0, 1, 2]);
            assert_eq!(intern(&mut index, std::slice::from_ref(column)), [0, 1, 2]);
            assert_eq!(&index.columns(&[0, 1, 2]).unwrap()[0], column);
        }
        let types: Vec<ArrowType> = columns.iter().map(|column| column.data_type().clone()).collect();
        let mut index = KeyIndex::new(&types).unwrap();
        assert_eq!(intern(&mut index, &columns), [0, 1, 2]);
        assert_eq!(index.columns(&[2, 0]).unwrap().len(), columns.len());
        let mut unit = KeyIndex::new(&[]).unwrap();
        assert_eq!(intern(&mut unit, &[]), [0, 0, 0]);
    }

    #[test]
    fn a_null_is_not_what_lies_in_its_place_whatever_the_hashes_are() {
        let mut index = KeyIndex::new(&[ArrowType::Int64]).unwrap();
        let mut slots = Vec::new();
        let mut slots_of = |values: Vec<Option<i64>>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            index.intern(&[Arc::clone(&column)], &vec![7; column.len()], &mut slots).unwrap();
            let interned = slots.clone();
            index.find(&[column], &vec![7; interned.len()], &mut slots).unwrap();
            assert_eq!(slots, interned);
            interned
        };
        assert_eq!(slots_of(vec![None]), [0]);
        assert_eq!(slots_of(vec![Some(0), Some(5), Some(0)]), [1, 2, 1]);
        assert_eq!(slots_of(vec![Some(5), None, Some(0), Some(6)]), [2, 0, 1, 3]);
    }

    #[test]
    fn every_nan_is_one_key_and_both_zeros_are_two() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0]));
        let mut index = KeyIndex::new(&[ArrowType::Float64]).unwrap();
        assert_eq!(intern(&mut index, std::slice::from_ref(&floats)), [0, 0, 1, 2]);
        let mut pair = KeyIndex::new(&[ArrowType::Float64, ArrowType::Float64]).unwrap();
        assert_eq!(intern(&mut pair, &[Arc::clone(&floats), floats]), [0, 0, 1, 2]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn an_index_is_a_map(steps in prop::collection::vec((0_u8..4, 0_i64..40), 1..400), is_text: bool) {
            let data_type = if is_text { ArrowType::Utf8 } else { ArrowType::Int64 };
            let mut index = KeyIndex::new(std::slice::from_ref(&data_type)).unwrap();
            let mut model: HashMap<i64, u32> = HashMap::new();
            for (step, key) in steps {
                let column: ArrayRef = Arc::new(Int64Array::from(vec![(key > 0).then_some(key)]));
                let column = [arrow::compute::cast(&column, &data_type).unwrap()];
                let (mut hashes, mut slots) = (Vec::new(), Vec::new());
                hash_rows(&column, 1, &mut hashes).unwrap();
                if step == 0 {
                    if let Some(slot) = model.remove(&key) {
                        index.remove(slot);
                    }
                } else if step == 1 {
                    index.find(&column, &hashes, &mut slots).unwrap();
                    prop_assert_eq!(slots[0], model.get(&key).copied().unwrap_or(ABSENT));
                } else {
                    index.intern(&column, &hashes, &mut slots).unwrap();
                    let slot = *model.entry(key).or_insert(slots[0]);
                    prop_assert_eq!(slot, slots[0]);
                    prop_assert_eq!(&index.columns(&slots).unwrap()[0], &column[0]);
                }
                prop_assert_eq!(index.len(), model.len());
            }
        }
    }

    #[test]
    fn maps_are_keys_by_their_entries() {
        use arrow::array::{Int64Builder, MapBuilder, StringBuilder};
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for entries in [Some(vec![("a", 1)]), None, Some(vec![]), Some(vec![("a", 1)]), Some(vec![("a", 2)])]
        {
            for (key, value) in entries.iter().flatten() {
                builder.keys().append_value(key);
                builder.values().append_value(*value);
            }
            builder.append(entries.is_some()).unwrap();
        }
        let maps: ArrayRef = Arc::new(builder.finish());
        let mut index = KeyIndex::new(&[maps.data_type().clone()]).unwrap();
        let slots = intern(&mut index, std::slice::from_ref(&maps));
        assert_eq!(slots, [0, 1, 2, 0, 3]);
        assert_eq!(index.columns(&slots).unwrap()[0].to_data(), maps.to_data());
    }
}
