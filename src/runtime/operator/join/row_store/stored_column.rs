//! One column of a row store.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryArray, BooleanArray, NullArray, StringArray, make_array,
    new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::SortOptions;
use arrow::datatypes::{ArrowNativeType, DataType as ArrowType};
use arrow::row::Rows;

use super::super::ABSENT;
use super::byte_arena::ByteArena;
use super::null_bits::NullBits;
use crate::error::{Error, Result};
use crate::state::{PagedVec, RowCodec};

/// The values of a column by row number, and which of them are NULL.
#[derive(Debug)]
pub(super) struct StoredColumn {
    data_type: ArrowType,
    values: Values,
    nulls: NullBits,
}

/// The values of a column by row number.
#[derive(Debug)]
enum Values {
    Null,
    Fixed1(PagedVec<u8>),
    Fixed2(PagedVec<u16>),
    Fixed4(PagedVec<u32>),
    Fixed8(PagedVec<u64>),
    Fixed16(PagedVec<i128>),
    Bytes(ByteArena),
    /// Values in Arrow's row encoding: nested ones.
    Encoded(RowCodec, ByteArena),
}

/// A column of a batch, in the form in which it is written and compared.
pub(super) struct ColumnView {
    values: ViewValues,
    nulls: Option<NullBuffer>,
}

enum ViewValues {
    Null,
    Fixed1(ScalarBuffer<u8>),
    Fixed2(ScalarBuffer<u16>),
    Fixed4(ScalarBuffer<u32>),
    Fixed8(ScalarBuffer<u64>),
    Fixed16(ScalarBuffer<i128>),
    Bytes(OffsetBuffer<i32>, Buffer),
    Encoded(Rows),
}

impl StoredColumn {
    /// Makes an empty column.
    ///
    /// # Errors
    /// The type cannot be kept.
    pub(super) fn new(data_type: &ArrowType) -> Result<StoredColumn> {
        let values = match data_type {
            ArrowType::Null => Values::Null,
            ArrowType::Boolean => Values::Fixed1(PagedVec::default()),
            ArrowType::Utf8 | ArrowType::Binary => Values::Bytes(ByteArena::default()),
            _ => match data_type.primitive_width() {
                Some(1) => Values::Fixed1(PagedVec::default()),
                Some(2) => Values::Fixed2(PagedVec::default()),
                Some(4) => Values::Fixed4(PagedVec::default()),
                Some(8) => Values::Fixed8(PagedVec::default()),
                _ if matches!(data_type, ArrowType::Decimal128(..)) => Values::Fixed16(PagedVec::default()),
                _ => Values::Encoded(
                    RowCodec::new(std::iter::once((data_type.clone(), SortOptions::default())))?,
                    ByteArena::default(),
                ),
            },
        };
        Ok(StoredColumn { data_type: data_type.clone(), values, nulls: NullBits::default() })
    }

    /// Returns a batch's column in this form.
    ///
    /// # Errors
    /// The column has another type.
    pub(super) fn view(&self, column: &ArrayRef) -> Result<ColumnView> {
        if column.data_type() != &self.data_type {
            return Err(Error::internal(format!(
                "a join expects a column of type {} and gets {}",
                self.data_type,
                column.data_type()
            )));
        }
        let values = match &self.values {
            Values::Null => ViewValues::Null,
            Values::Fixed1(_) if self.data_type == ArrowType::Boolean => ViewValues::Fixed1(
                column.as_boolean().values().iter().map(u8::from).collect::<Vec<u8>>().into(),
            ),
            Values::Fixed1(_) => ViewValues::Fixed1(fixed(column)),
            Values::Fixed2(_) => ViewValues::Fixed2(fixed(column)),
            Values::Fixed4(_) => ViewValues::Fixed4(fixed(column)),
            Values::Fixed8(_) => ViewValues::Fixed8(fixed(column)),
            Values::Fixed16(_) => ViewValues::Fixed16(fixed(column)),
            Values::Bytes(_) if self.data_type == ArrowType::Utf8 => {
                let texts = column.as_string::<i32>();
                ViewValues::Bytes(texts.offsets().clone(), texts.values().clone())
            }
            Values::Bytes(_) => {
                let values = column.as_binary::<i32>();
                ViewValues::Bytes(values.offsets().clone(), values.values().clone())
            }
            Values::Encoded(codec, _) => {
                ViewValues::Encoded(codec.encode(std::slice::from_ref(column), column.len())?)
            }
        };
        // A nested NULL is part of the encoding.
        let nulls = match &self.values {
            Values::Encoded(..) => None,
            _ => column.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
        };
        Ok(ColumnView { values, nulls })
    }

    /// Writes rows of a batch under the given numbers, all below `len`.
    pub(super) fn write(&mut self, len: usize, numbers: &[u32], view: &ColumnView, rows: &[u32]) {
        match (&mut self.values, &view.values) {
            (Values::Fixed1(stored), ViewValues::Fixed1(values)) => put(stored, len, numbers, values, rows),
            (Values::Fixed2(stored), ViewValues::Fixed2(values)) => put(stored, len, numbers, values, rows),
            (Values::Fixed4(stored), ViewValues::Fixed4(values)) => put(stored, len, numbers, values, rows),
            (Values::Fixed8(stored), ViewValues::Fixed8(values)) => put(stored, len, numbers, values, rows),
            (Values::Fixed16(stored), ViewValues::Fixed16(values)) => put(stored, len, numbers, values, rows),
            (Values::Bytes(arena) | Values::Encoded(_, arena), values) => {
                arena.reserve(len);
                for (number, row) in numbers.iter().zip(rows) {
                    arena.set(*number as usize, values.bytes(*row as usize));
                }
            }
            _ => {}
        }
        self.nulls.write(numbers, view.nulls.as_ref(), rows);
    }

    /// Returns whether a value equals one of a batch.
    #[inline]
    pub(super) fn equals(&self, number: usize, view: &ColumnView, row: usize) -> bool {
        let is_null = view.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        if is_null || self.nulls.is_null(number) {
            return is_null && self.nulls.is_null(number);
        }
        match (&self.values, &view.values) {
            (Values::Fixed1(stored), ViewValues::Fixed1(values)) => stored[number] == values[row],
            (Values::Fixed2(stored), ViewValues::Fixed2(values)) => stored[number] == values[row],
            (Values::Fixed4(stored), ViewValues::Fixed4(values)) => stored[number] == values[row],
            (Values::Fixed8(stored), ViewValues::Fixed8(values)) => stored[number] == values[row],
            (Values::Fixed16(stored), ViewValues::Fixed16(values)) => stored[number] == values[row],
            (Values::Bytes(arena) | Values::Encoded(_, arena), values) => {
                arena.get(number) == values.bytes(row)
            }
            _ => true,
        }
    }

    /// Returns the values of the given rows; `ABSENT` is NULL.
    ///
    /// # Errors
    /// The column cannot be built.
    pub(super) fn gather(&self, numbers: &[u32]) -> Result<ArrayRef> {
        let nulls = self.nulls.gather(numbers);
        Ok(match &self.values {
            Values::Null => Arc::new(NullArray::new(numbers.len())),
            Values::Fixed1(values) if self.data_type == ArrowType::Boolean => {
                let value = |at: usize| values.get(numbers[at] as usize).is_some_and(|value| value != 0);
                Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(numbers.len(), value), nulls))
            }
            Values::Fixed1(values) => fixed_array(&self.data_type, values, numbers, nulls)?,
            Values::Fixed2(values) => fixed_array(&self.data_type, values, numbers, nulls)?,
            Values::Fixed4(values) => fixed_array(&self.data_type, values, numbers, nulls)?,
            Values::Fixed8(values) => fixed_array(&self.data_type, values, numbers, nulls)?,
            Values::Fixed16(values) => fixed_array(&self.data_type, values, numbers, nulls)?,
            Values::Bytes(arena) => {
                let (offsets, bytes) = arena.gather(numbers)?;
                if self.data_type == ArrowType::Utf8 {
                    Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
                } else {
                    Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
                }
            }
            Values::Encoded(codec, arena) => {
                let null = codec.encode(&[new_null_array(&self.data_type, 1)], 1)?;
                let rows = numbers.iter().map(|number| match *number {
                    ABSENT => null.row(0).data(),
                    number => arena.get(number as usize),
                });
                codec.decode(rows)?.swap_remove(0)
            }
        })
    }

    /// Frees what a value holds beside its place.
    pub(super) fn clear(&mut self, number: usize) {
        if let Values::Bytes(arena) | Values::Encoded(_, arena) = &mut self.values {
            arena.clear(number);
        }
    }

    /// Keeps the values of these rows, in this order.
    pub(super) fn keep(&mut self, numbers: &[u32]) {
        match &mut self.values {
            Values::Null => {}
            Values::Fixed1(values) => *values = values.permuted(numbers),
            Values::Fixed2(values) => *values = values.permuted(numbers),
            Values::Fixed4(values) => *values = values.permuted(numbers),
            Values::Fixed8(values) => *values = values.permuted(numbers),
            Values::Fixed16(values) => *values = values.permuted(numbers),
            Values::Bytes(arena) | Values::Encoded(_, arena) => arena.keep(numbers),
        }
        self.nulls.keep(numbers);
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Null => 0,
            Values::Fixed1(values) => values.bytes(),
            Values::Fixed2(values) => values.bytes(),
            Values::Fixed4(values) => values.bytes(),
            Values::Fixed8(values) => values.bytes(),
            Values::Fixed16(values) => values.bytes(),
            Values::Bytes(arena) | Values::Encoded(_, arena) => arena.bytes(),
        };
        values + self.nulls.bytes()
    }
}

impl ViewValues {
    #[inline]
    fn bytes(&self, row: usize) -> &[u8] {
        match self {
            ViewValues::Bytes(offsets, bytes) => &bytes[offsets[row] as usize..offsets[row + 1] as usize],
            ViewValues::Encoded(rows) => rows.row(row).data(),
            _ => &[],
        }
    }
}

/// Returns the bits of a column's values, without a copy.
fn fixed<T: ArrowNativeType>(column: &ArrayRef) -> ScalarBuffer<T> {
    let data = column.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn put<T: Copy + Default>(stored: &mut PagedVec<T>, len: usize, numbers: &[u32], values: &[T], rows: &[u32]) {
    stored.grow(len, T::default());
    for (number, row) in numbers.iter().zip(rows) {
        stored[*number as usize] = values[*row as usize];
    }
}

fn fixed_array<T: ArrowNativeType>(
    data_type: &ArrowType,
    stored: &PagedVec<T>,
    numbers: &[u32],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let value = |number: &u32| stored.get(*number as usize).unwrap_or_default();
    let values: Vec<T> = numbers.iter().map(value).collect();
    let data = ArrayData::builder(data_type.clone())
        .len(numbers.len())
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}
