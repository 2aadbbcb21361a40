//! Hashes of rows, and the key groups that they fall into.
//!
//! A hash is part of what a checkpoint means, since key groups come from it: it is the same on every machine and in every
//! version that reads the same state format. Values are told apart by their bits, as Flink does for keys: every NaN is one
//! value, `-0.0` and `0.0` are two.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{ArrowPrimitiveType, DataType as ArrowType, Decimal128Type, Float32Type, Float64Type};
use arrow::downcast_primitive_array;
use xxhash_rust::xxh3::xxh3_64;

use super::row_store::RowCodec;
use crate::error::{Error, Result};

/// How many key groups there are: as many as workers can ever be.
pub(crate) const GROUP_COUNT: usize = 128;

/// The hash of a row without columns: all such rows are in the first group.
const EMPTY: u64 = 0;

/// What stands for NULL.
const NULL: u64 = 0x9c1d_5a3e_77b4_02f1;

/// Returns the key group of a hash.
#[inline]
pub(crate) fn key_group(hash: u64) -> u8 {
    (hash >> 57) as u8
}

/// Returns the worker that owns a key group, of `workers`.
#[inline]
pub(crate) fn owner(group: u8, workers: usize) -> usize {
    usize::from(group) * workers / GROUP_COUNT
}

/// Writes the hash of every row into `hashes`, whose length becomes the number of rows.
///
/// # Errors
/// A column's type cannot be a key.
pub(crate) fn hash_rows(columns: &[ArrayRef], row_count: usize, hashes: &mut Vec<u64>) -> Result<()> {
    hashes.clear();
    hashes.resize(row_count, EMPTY);
    for (number, column) in columns.iter().enumerate() {
        hash_column(column, number == 0, hashes)?;
    }
    Ok(())
}

/// Returns the hash of a number: spreads its bits.
#[inline]
pub(crate) fn hash_word(value: u64) -> u64 {
    let product =
        u128::from(value ^ 0x2545_f491_4f6c_dd1d).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    (product >> 64) as u64 ^ product as u64
}

/// Adds a column to the hashes so far.
#[inline]
fn fold(hash: &mut u64, value: u64, is_first: bool) {
    *hash = if is_first { value } else { hash_word(hash.rotate_left(23) ^ value) };
}

fn hash_column(column: &ArrayRef, is_first: bool, hashes: &mut [u64]) -> Result<()> {
    match column.data_type() {
        ArrowType::Null => hashes.iter_mut().for_each(|hash| fold(hash, NULL, is_first)),
        ArrowType::Boolean => hash_booleans(column.as_boolean(), is_first, hashes),
        ArrowType::Float32 => {
            hash_primitives(column.as_primitive::<Float32Type>(), is_first, hashes, |value| {
                hash_word(u64::from(if value.is_nan() { f32::NAN } else { value }.to_bits()))
            });
        }
        ArrowType::Float64 => {
            hash_primitives(column.as_primitive::<Float64Type>(), is_first, hashes, |value| {
                hash_word(if value.is_nan() { f64::NAN } else { value }.to_bits())
            });
        }
        ArrowType::Decimal128(..) => {
            hash_primitives(column.as_primitive::<Decimal128Type>(), is_first, hashes, |value| {
                hash_word(value as u64 ^ hash_word((value >> 64) as u64))
            });
        }
        ArrowType::Utf8 => {
            let texts = column.as_string::<i32>();
            hash_bytes(
                texts.len(),
                |row| (!texts.is_null(row)).then(|| texts.value(row).as_bytes()),
                is_first,
                hashes,
            );
        }
        ArrowType::Binary => {
            let values = column.as_binary::<i32>();
            hash_bytes(
                values.len(),
                |row| (!values.is_null(row)).then(|| values.value(row)),
                is_first,
                hashes,
            );
        }
        ArrowType::FixedSizeBinary(_) => {
            let values = column.as_fixed_size_binary();
            hash_bytes(
                values.len(),
                |row| (!values.is_null(row)).then(|| values.value(row)),
                is_first,
                hashes,
            );
        }
        data_type if data_type.is_primitive() => hash_integers(column, is_first, hashes)?,
        _ => hash_nested(column, is_first, hashes)?,
    }
    Ok(())
}

fn hash_booleans(values: &BooleanArray, is_first: bool, hashes: &mut [u64]) {
    for (row, hash) in hashes.iter_mut().enumerate() {
        let value = if values.is_null(row) { NULL } else { hash_word(u64::from(values.value(row))) };
        fold(hash, value, is_first);
    }
}

fn hash_primitives<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    is_first: bool,
    hashes: &mut [u64],
    hash_of: impl Fn(T::Native) -> u64,
) {
    if values.null_count() == 0 {
        for (hash, value) in hashes.iter_mut().zip(values.values()) {
            fold(hash, hash_of(*value), is_first);
        }
        return;
    }
    for (row, hash) in hashes.iter_mut().enumerate() {
        let value = if values.is_null(row) { NULL } else { hash_of(values.value(row)) };
        fold(hash, value, is_first);
    }
}

/// Integers hash by their value, so that equal numbers of two widths meet.
fn hash_integers(column: &ArrayRef, is_first: bool, hashes: &mut [u64]) -> Result<()> {
    use arrow::datatypes::ArrowNativeType;
    let array = column.as_ref();
    downcast_primitive_array!(
        array => hash_primitives(array, is_first, hashes, |value| hash_word(value.to_i64().unwrap_or_default() as u64)),
        other => return Err(not_a_key(other))
    );
    Ok(())
}

fn hash_bytes<'a>(len: usize, value: impl Fn(usize) -> Option<&'a [u8]>, is_first: bool, hashes: &mut [u64]) {
    for (row, hash) in hashes.iter_mut().enumerate().take(len) {
        fold(hash, value(row).map_or(NULL, xxh3_64), is_first);
    }
}

/// Nested values hash by their row encoding, which is the same for equal values.
fn hash_nested(column: &ArrayRef, is_first: bool, hashes: &mut [u64]) -> Result<()> {
    let codec = RowCodec::new(std::iter::once((column.data_type().clone(), SortOptions::default())))?;
    let rows = codec.encode(std::slice::from_ref(column), column.len())?;
    for (hash, row) in hashes.iter_mut().zip(rows.iter()) {
        fold(hash, xxh3_64(row.as_ref()), is_first);
    }
    Ok(())
}

/// The error of a type that cannot be compared.
pub(super) fn not_a_key(data_type: &ArrowType) -> Error {
    Error::unsupported(format!("a value of type {data_type} as a key in streaming mode is not supported yet"))
        .hint("Group, join or partition by columns of other types.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn hashes(columns: &[ArrayRef]) -> Vec<u64> {
        let mut hashes = Vec::new();
        hash_rows(columns, columns[0].len(), &mut hashes).unwrap();
        hashes
    }

    #[test]
    fn a_hash_never_changes() {
        let ints: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-1)]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("")]));
        let decimals: ArrayRef =
            Arc::new(Decimal128Array::from(vec![1, -1, 5]).with_precision_and_scale(10, 2).unwrap());
        let all =
            [hashes(&[Arc::clone(&ints)]), hashes(&[Arc::clone(&texts)]), hashes(&[ints, texts, decimals])];
        let text: Vec<String> = all.concat().iter().map(|hash| format!("{hash:016x}")).collect();
        assert_eq!(text, EXPECTED, "state written by older versions would be looked for on other workers");
    }

    const EXPECTED: [&str; 9] = [
        "41131173c27342ad",
        "9c1d5a3e77b402f1",
        "6187e104dfe7236d",
        "e6c632b61e964e1f",
        "9c1d5a3e77b402f1",
        "2d06800538d394c2",
        "8b9e98a04c65592b",
        "614e742702a292b6",
        "c2aa78b29e4924d1",
    ];

    #[test]
    fn equal_keys_meet_whatever_their_width_and_nan_is_one_value() {
        let narrow: ArrayRef = Arc::new(Int32Array::from(vec![7, -7]));
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![7, -7]));
        assert_eq!(hashes(&[narrow]), hashes(&[wide]));
        let floats = hashes(&[Arc::new(Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0]))]);
        assert_eq!(floats[0], floats[1]);
        assert_ne!(floats[2], floats[3]);
    }

    #[test]
    fn key_groups_are_spread_over_all_workers() {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
        let mut counts = [0; 3];
        hashes(&[keys]).into_iter().for_each(|hash| counts[owner(key_group(hash), 3)] += 1);
        assert!(counts.iter().all(|count| *count > 3_000), "{counts:?}");
    }
}
