//! Rows in columns that grow, found by number; the numbers of freed rows are given again.
//!
//! Every column is a vector of its values' bits, whatever they mean, so that a gather is one loop over a slice and a freed row
//! costs nothing but its number. What has no fixed width lies in an arena, whose dead space is taken back when it is more than
//! what is in use.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryArray, BooleanArray, NullArray, StringArray, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType as ArrowType};
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::{Error, Result};

/// Rows by number.
#[derive(Debug)]
pub(super) struct RowStore {
    columns: Vec<StoredColumn>,
}

#[derive(Debug)]
struct StoredColumn {
    data_type: ArrowType,
    values: Values,
    nulls: NullBits,
}

/// The values of a column by row number.
#[derive(Debug)]
enum Values {
    Null,
    Fixed1(Vec<u8>),
    Fixed2(Vec<u16>),
    Fixed4(Vec<u32>),
    Fixed8(Vec<u64>),
    Fixed16(Vec<i128>),
    Bytes(ByteArena),
    /// Values in Arrow's row encoding: nested ones.
    Encoded(RowConverter, ByteArena),
}

/// Which rows are NULL; without memory until one is.
#[derive(Debug, Default)]
struct NullBits {
    words: Vec<u64>,
}

/// Byte strings by row number.
#[derive(Debug, Default)]
struct ByteArena {
    bytes: Vec<u8>,
    starts: Vec<u64>,
    lengths: Vec<u32>,
    dead: usize,
}

/// Dead bytes below which an arena is left alone.
const DEAD_MIN: usize = 1 << 14;

/// The columns of a batch, in the form in which they are written to a store and compared with it.
pub(super) struct RowsView {
    columns: Vec<ColumnView>,
}

struct ColumnView {
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

impl RowStore {
    /// Makes an empty store of columns of these types.
    ///
    /// # Errors
    /// A type cannot be kept.
    pub(super) fn new<'a>(types: impl IntoIterator<Item = &'a ArrowType>) -> Result<RowStore> {
        let columns = types.into_iter().map(StoredColumn::new).collect::<Result<_>>()?;
        Ok(RowStore { columns })
    }

    /// Returns a batch's columns in the store's form.
    ///
    /// # Errors
    /// The columns have other types.
    pub(super) fn view(&self, columns: &[ArrayRef]) -> Result<RowsView> {
        let columns = self.columns.iter().zip(columns).map(|(stored, column)| stored.view(column));
        Ok(RowsView { columns: columns.collect::<Result<_>>()? })
    }

    /// Writes rows of a batch under the given numbers.
    pub(super) fn write(&mut self, numbers: &[u32], view: &RowsView, rows: &[u32]) {
        let Some(len) = numbers.iter().max().map(|largest| *largest as usize + 1) else { return };
        for (column, view) in self.columns.iter_mut().zip(&view.columns) {
            column.write(len, numbers, view, rows);
        }
    }

    /// Frees what a row holds beside its number.
    pub(super) fn clear(&mut self, number: u32) {
        for column in &mut self.columns {
            if let Values::Bytes(arena) | Values::Encoded(_, arena) = &mut column.values {
                arena.clear(number as usize);
            }
        }
    }

    /// Returns whether a row equals a batch's row in the given columns; NULL equals NULL, floats compare by bits.
    #[inline]
    pub(super) fn equals(&self, number: u32, view: &RowsView, row: u32, columns: &[usize]) -> bool {
        columns.iter().all(|at| self.columns[*at].equals(number as usize, &view.columns[*at], row as usize))
    }

    /// Returns a column of the given rows; a number that is not there (`ABSENT`) is NULL.
    ///
    /// # Errors
    /// A column cannot be built: a text of more than 2 GiB.
    pub(super) fn gather(&self, column: usize, numbers: &[u32]) -> Result<ArrayRef> {
        self.columns[column].gather(numbers)
    }

    /// Returns how many columns there are.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.columns.iter().map(StoredColumn::bytes).sum()
    }
}

impl StoredColumn {
    fn new(data_type: &ArrowType) -> Result<StoredColumn> {
        let values = match data_type {
            ArrowType::Null => Values::Null,
            ArrowType::Boolean => Values::Fixed1(Vec::new()),
            ArrowType::Utf8 | ArrowType::Binary => Values::Bytes(ByteArena::default()),
            _ => match data_type.primitive_width() {
                Some(1) => Values::Fixed1(Vec::new()),
                Some(2) => Values::Fixed2(Vec::new()),
                Some(4) => Values::Fixed4(Vec::new()),
                Some(8) => Values::Fixed8(Vec::new()),
                _ if matches!(data_type, ArrowType::Decimal128(..)) => Values::Fixed16(Vec::new()),
                _ => Values::Encoded(converter(data_type)?, ByteArena::default()),
            },
        };
        Ok(StoredColumn { data_type: data_type.clone(), values, nulls: NullBits::default() })
    }

    fn view(&self, column: &ArrayRef) -> Result<ColumnView> {
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
            Values::Encoded(converter, _) => {
                ViewValues::Encoded(converter.convert_columns(std::slice::from_ref(column))?)
            }
        };
        // A nested NULL is part of the encoding.
        let nulls = match &self.values {
            Values::Encoded(..) => None,
            _ => column.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
        };
        Ok(ColumnView { values, nulls })
    }

    fn write(&mut self, len: usize, numbers: &[u32], view: &ColumnView, rows: &[u32]) {
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

    #[inline]
    fn equals(&self, number: usize, view: &ColumnView, row: usize) -> bool {
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

    fn gather(&self, numbers: &[u32]) -> Result<ArrayRef> {
        let nulls = self.nulls.gather(numbers);
        Ok(match &self.values {
            Values::Null => Arc::new(NullArray::new(numbers.len())),
            Values::Fixed1(values) if self.data_type == ArrowType::Boolean => {
                let value = |at: usize| values.get(numbers[at] as usize).is_some_and(|value| *value != 0);
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
            Values::Encoded(converter, arena) => {
                let null = converter.convert_columns(&[arrow::array::new_null_array(&self.data_type, 1)])?;
                let parser = converter.parser();
                let rows = numbers.iter().map(|number| {
                    let known = (*number as usize) < arena.lengths.len();
                    parser.parse(if known { arena.get(*number as usize) } else { null.row(0).data() })
                });
                Arc::clone(&converter.convert_rows(rows)?[0])
            }
        })
    }

    fn bytes(&self) -> usize {
        let values = match &self.values {
            Values::Null => 0,
            Values::Fixed1(values) => values.capacity(),
            Values::Fixed2(values) => values.capacity() * 2,
            Values::Fixed4(values) => values.capacity() * 4,
            Values::Fixed8(values) => values.capacity() * 8,
            Values::Fixed16(values) => values.capacity() * 16,
            Values::Bytes(arena) | Values::Encoded(_, arena) => {
                arena.bytes.capacity() + arena.starts.capacity() * 8 + arena.lengths.capacity() * 4
            }
        };
        values + self.nulls.words.capacity() * 8
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

impl NullBits {
    #[inline]
    fn is_null(&self, number: usize) -> bool {
        self.words.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn write(&mut self, numbers: &[u32], nulls: Option<&NullBuffer>, rows: &[u32]) {
        if self.words.is_empty() && nulls.is_none() {
            return;
        }
        for (number, row) in numbers.iter().zip(rows) {
            let (word, bit) = (*number as usize / 64, 1 << (number % 64));
            let is_null = nulls.is_some_and(|nulls| nulls.is_null(*row as usize));
            if is_null {
                if self.words.len() <= word {
                    self.words.resize(word + 1, 0);
                }
                self.words[word] |= bit;
            } else if let Some(word) = self.words.get_mut(word) {
                *word &= !bit;
            }
        }
    }

    fn gather(&self, numbers: &[u32]) -> Option<NullBuffer> {
        if self.words.is_empty() && !numbers.contains(&super::ABSENT) {
            return None;
        }
        let is_valid = |at: usize| numbers[at] != super::ABSENT && !self.is_null(numbers[at] as usize);
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(numbers.len(), is_valid));
        (nulls.null_count() > 0).then_some(nulls)
    }
}

impl ByteArena {
    #[inline]
    fn get(&self, at: usize) -> &[u8] {
        let start = self.starts[at] as usize;
        &self.bytes[start..start + self.lengths[at] as usize]
    }

    fn reserve(&mut self, len: usize) {
        if self.starts.len() < len {
            self.starts.resize(len, 0);
            self.lengths.resize(len, 0);
        }
    }

    fn set(&mut self, at: usize, value: &[u8]) {
        self.starts[at] = self.bytes.len() as u64;
        self.lengths[at] = value.len() as u32;
        self.bytes.extend_from_slice(value);
    }

    fn clear(&mut self, at: usize) {
        self.dead += self.lengths[at] as usize;
        self.lengths[at] = 0;
        if self.dead > DEAD_MIN && self.dead > self.bytes.len() / 2 {
            let mut kept = Vec::with_capacity(self.bytes.len() - self.dead);
            for (start, length) in self.starts.iter_mut().zip(&self.lengths) {
                let value = &self.bytes[*start as usize..*start as usize + *length as usize];
                *start = kept.len() as u64;
                kept.extend_from_slice(value);
            }
            self.bytes = kept;
            self.dead = 0;
        }
    }

    fn gather(&self, numbers: &[u32]) -> Result<(OffsetBuffer<i32>, Buffer)> {
        let length = |number: &u32| self.lengths.get(*number as usize).map_or(0, |length| *length as usize);
        let total: usize = numbers.iter().map(length).sum();
        if i32::try_from(total).is_err() {
            return Err(Error::data("the texts of one batch of joined rows are longer than 2 GiB")
                .hint("Join fewer long texts per key, or fetch them after the join."));
        }
        let mut bytes = Vec::with_capacity(total);
        for number in numbers {
            if length(number) > 0 {
                bytes.extend_from_slice(self.get(*number as usize));
            }
        }
        Ok((OffsetBuffer::from_lengths(numbers.iter().map(length)), Buffer::from_vec(bytes)))
    }
}

/// Returns the encoder of a nested type.
fn converter(data_type: &ArrowType) -> Result<RowConverter> {
    RowConverter::new(vec![SortField::new(data_type.clone())]).map_err(|error| {
        Error::unsupported(format!(
            "a column of type {data_type} in a join in streaming mode is not supported yet"
        ))
        .hint("Select the parts that are needed before the join.")
        .caused_by(error)
    })
}

/// Returns the bits of a column's values, without a copy.
fn fixed<T: ArrowNativeType>(column: &ArrayRef) -> ScalarBuffer<T> {
    let data = column.to_data();
    ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len())
}

fn put<T: Copy + Default>(stored: &mut Vec<T>, len: usize, numbers: &[u32], values: &[T], rows: &[u32]) {
    if stored.len() < len {
        stored.resize(len, T::default());
    }
    for (number, row) in numbers.iter().zip(rows) {
        stored[*number as usize] = values[*row as usize];
    }
}

fn fixed_array<T: ArrowNativeType>(
    data_type: &ArrowType,
    stored: &[T],
    numbers: &[u32],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let value = |number: &u32| stored.get(*number as usize).copied().unwrap_or_default();
    let values: Vec<T> = numbers.iter().map(value).collect();
    let data = ArrayData::builder(data_type.clone())
        .len(numbers.len())
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}
