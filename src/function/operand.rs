//! The columns that a kernel reads, and the ones that it writes.
//!
//! A constant stays one row long: its readers repeat that row, so a literal costs nothing per batch.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray,
    UInt32Array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::Call;
use crate::error::{Error, Result};

/// An argument: a column, or one value for all rows.
#[derive(Debug, Clone)]
pub struct Operand {
    array: ArrayRef,
    is_constant: bool,
}

impl Operand {
    /// A value per row.
    pub fn column(array: ArrayRef) -> Operand {
        Operand { array, is_constant: false }
    }

    /// One value for all rows: the only one of the array.
    pub fn constant(array: ArrayRef) -> Operand {
        Operand { array, is_constant: true }
    }

    /// Returns the array, which has one row if this is a constant.
    pub fn array(&self) -> &ArrayRef {
        &self.array
    }

    /// Returns whether all rows have the same value.
    pub fn is_constant(&self) -> bool {
        self.is_constant
    }

    /// Returns the index of a row in the array.
    pub fn index(&self, row: usize) -> usize {
        if self.is_constant { 0 } else { row }
    }

    /// Returns whether the value of a row is NULL.
    pub fn is_null(&self, row: usize) -> bool {
        self.array.is_null(self.index(row))
    }

    /// Returns a column of `row_count` rows.
    ///
    /// # Errors
    /// Arrow refuses to repeat the value.
    pub fn to_column(&self, row_count: usize) -> Result<ArrayRef> {
        if !self.is_constant {
            return Ok(Arc::clone(&self.array));
        }
        if self.array.is_null(0) {
            return Ok(new_null_array(self.array.data_type(), row_count));
        }
        let indices = UInt32Array::from(vec![0; row_count]);
        Ok(arrow::compute::take(&self.array, &indices, None)?)
    }

    /// Reads the values as text.
    ///
    /// # Errors
    /// The array is no text, which is a bug of the binder.
    pub(super) fn texts(&self) -> Result<Texts<'_>> {
        let array = self.array.as_string_opt::<i32>().ok_or_else(|| self.mismatch("text"))?;
        Ok(Texts { array, stride: self.stride() })
    }

    /// Reads the values as bytes.
    ///
    /// # Errors
    /// As for `texts`.
    pub(super) fn bytes(&self) -> Result<Bytes<'_>> {
        let array = self.array.as_binary_opt::<i32>().ok_or_else(|| self.mismatch("bytes"))?;
        Ok(Bytes { array, stride: self.stride() })
    }

    /// Reads the values as numbers of the given Arrow type.
    ///
    /// # Errors
    /// As for `texts`.
    pub(super) fn values<T: ArrowPrimitiveType>(&self) -> Result<Values<'_, T::Native>> {
        let array =
            self.array.as_primitive_opt::<T>().ok_or_else(|| self.mismatch(&T::DATA_TYPE.to_string()))?;
        Ok(Values { values: array.values().as_ref(), stride: self.stride() })
    }

    /// Returns the text of a constant that is not NULL.
    pub fn constant_text(&self) -> Option<&str> {
        let array = self.array.as_string_opt::<i32>()?;
        (self.is_constant && array.len() == 1 && array.is_valid(0)).then(|| array.value(0))
    }

    fn stride(&self) -> usize {
        usize::from(!self.is_constant)
    }

    fn mismatch(&self, wanted: &str) -> Error {
        Error::internal(format!("a kernel for {wanted} got {}", self.array.data_type()))
    }
}

/// Texts of an operand by row.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    array: &'a StringArray,
    stride: usize,
}

impl<'a> Texts<'a> {
    /// Returns the text of a row; of a NULL anything.
    pub(super) fn get(&self, row: usize) -> &'a str {
        self.array.value(row * self.stride)
    }

    /// Returns how many bytes all rows have, to size a result of about the same.
    pub(super) fn byte_count(&self) -> usize {
        self.array.value_offsets().last().map_or(0, |end| (*end - self.array.value_offsets()[0]) as usize)
    }
}

/// Byte strings of an operand by row.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    array: &'a BinaryArray,
    stride: usize,
}

impl<'a> Bytes<'a> {
    /// Returns the bytes of a row; of a NULL anything.
    pub(super) fn get(&self, row: usize) -> &'a [u8] {
        self.array.value(row * self.stride)
    }
}

/// Numbers of an operand by row.
#[derive(Clone, Copy)]
pub(super) struct Values<'a, N> {
    values: &'a [N],
    stride: usize,
}

impl<N: Copy> Values<'_, N> {
    /// Returns the value of a row; of a NULL anything.
    pub(super) fn get(&self, row: usize) -> N {
        self.values[row * self.stride]
    }
}

/// Returns which rows have no NULL argument, or None where no row has one.
pub(super) fn validity(operands: &[Operand], row_count: usize) -> Option<NullBuffer> {
    let mut valid: Option<NullBuffer> = None;
    for operand in operands {
        let Some(nulls) = operand.array.logical_nulls() else { continue };
        if !operand.is_constant {
            valid = NullBuffer::union(valid.as_ref(), Some(&nulls));
        } else if nulls.is_null(0) {
            return Some(NullBuffer::new_null(row_count));
        }
    }
    valid.filter(|nulls| nulls.null_count() > 0)
}

/// Writes a text per row into one buffer.
pub(super) struct TextWriter {
    text: String,
    offsets: Vec<i32>,
    valid: Vec<bool>,
}

/// The most bytes that one column of a batch may have.
const COLUMN_BYTES_MAX: usize = i32::MAX as usize;

impl TextWriter {
    /// Makes room for `row_count` rows and a guess of bytes.
    pub(super) fn with_capacity(row_count: usize, byte_count: usize) -> TextWriter {
        let mut offsets = Vec::with_capacity(row_count + 1);
        offsets.push(0);
        TextWriter { text: String::with_capacity(byte_count), offsets, valid: Vec::with_capacity(row_count) }
    }

    /// Returns the buffer to append the current row to.
    pub(super) fn buffer(&mut self) -> &mut String {
        &mut self.text
    }

    /// Returns where the current row starts in the buffer.
    pub(super) fn row_start(&self) -> usize {
        self.offsets.last().map_or(0, |offset| *offset as usize)
    }

    /// Ends the row; a row that is NULL keeps nothing of what was written.
    ///
    /// # Errors
    /// The column has more bytes than fit.
    pub(super) fn finish_row(&mut self, is_valid: bool) -> Result<()> {
        if !is_valid {
            self.text.truncate(self.row_start());
        }
        if self.text.len() > COLUMN_BYTES_MAX {
            return Err(Error::data("a batch of texts is longer than 2 GB"));
        }
        self.offsets.push(self.text.len() as i32);
        self.valid.push(is_valid);
        Ok(())
    }

    /// Returns the column.
    ///
    /// # Errors
    /// Arrow refuses the parts.
    pub(super) fn finish(self) -> Result<ArrayRef> {
        let nulls = NullBuffer::from(self.valid);
        let nulls = (nulls.null_count() > 0).then_some(nulls);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(self.text.into_bytes()), nulls)?))
    }
}

/// Computes a text for each row without a NULL argument. The closure appends it and returns whether it is not NULL.
///
/// # Errors
/// As the closure's.
pub(super) fn map_text(
    call: &Call<'_>,
    operands: &[Operand],
    mut write: impl FnMut(usize, &mut String) -> Result<bool>,
) -> Result<ArrayRef> {
    let valid = validity(operands, call.row_count);
    let byte_count =
        operands.iter().filter_map(|operand| operand.texts().ok()).map(|texts| texts.byte_count()).max();
    let mut writer = TextWriter::with_capacity(call.row_count, byte_count.unwrap_or(call.row_count * 8));
    for row in 0..call.row_count {
        let is_valid = valid.as_ref().is_none_or(|valid| valid.is_valid(row)) && write(row, writer.buffer())?;
        writer.finish_row(is_valid)?;
    }
    writer.finish()
}

/// Computes a number for each row without a NULL argument; the closure may see rows of NULLs and its value is not used there.
///
/// # Errors
/// Arrow refuses the parts.
pub(super) fn map_values<T: ArrowPrimitiveType>(
    call: &Call<'_>,
    operands: &[Operand],
    compute: impl FnMut(usize) -> T::Native,
) -> Result<ArrayRef> {
    let values: Vec<T::Native> = (0..call.row_count).map(compute).collect();
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), validity(operands, call.row_count))?;
    Ok(Arc::new(array.with_data_type(call.result.to_arrow())))
}

/// Computes a number or NULL for each row without a NULL argument.
///
/// # Errors
/// As the closure's.
pub(super) fn try_map_values<T: ArrowPrimitiveType>(
    call: &Call<'_>,
    operands: &[Operand],
    mut compute: impl FnMut(usize) -> Result<Option<T::Native>>,
) -> Result<ArrayRef> {
    let valid = validity(operands, call.row_count);
    let mut values = Vec::with_capacity(call.row_count);
    let mut present = Vec::with_capacity(call.row_count);
    for row in 0..call.row_count {
        let value = match &valid {
            Some(valid) if valid.is_null(row) => None,
            _ => compute(row)?,
        };
        present.push(value.is_some());
        values.push(value.unwrap_or_default());
    }
    let nulls = NullBuffer::from(present);
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(array.with_data_type(call.result.to_arrow())))
}

/// Computes a truth value for each row without a NULL argument.
///
/// # Errors
/// As the closure's.
pub(super) fn map_booleans(
    call: &Call<'_>,
    operands: &[Operand],
    mut compute: impl FnMut(usize) -> Result<bool>,
) -> Result<ArrayRef> {
    let valid = validity(operands, call.row_count);
    let mut values = Vec::with_capacity(call.row_count);
    for row in 0..call.row_count {
        values.push(valid.as_ref().is_none_or(|valid| valid.is_valid(row)) && compute(row)?);
    }
    Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(values), valid)))
}
