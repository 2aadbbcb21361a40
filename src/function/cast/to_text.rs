//! Casts to CHAR and VARCHAR: the text of the value, cut to the length, and padded for CHAR. Also lengths of bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder};

use super::super::EvalContext;
use super::super::operand::TextWriter;
use crate::error::{Error, Result};
use crate::schema::{CellFormatter, DataType, LENGTH_MAX, TypeRoot};

/// Casts anything to text.
pub(super) fn cast(
    array: &ArrayRef,
    from: &DataType,
    to: &TypeRoot,
    context: &EvalContext,
) -> Result<ArrayRef> {
    let formatter = CellFormatter::for_cast(from, array.as_ref(), context.zone);
    let (length, is_padded) = match to {
        TypeRoot::Char(length) => (*length as usize, true),
        TypeRoot::Varchar(length) => (*length as usize, false),
        _ => return Err(Error::internal("a cast to text got another target")),
    };
    let guess = if from.root.is_character() { array.get_buffer_memory_size() } else { array.len() * 12 };
    let mut writer = TextWriter::with_capacity(array.len(), guess);
    for row in 0..array.len() {
        let start = writer.row_start();
        let is_valid = formatter.write(row, writer.buffer());
        if is_valid && (is_padded || length < LENGTH_MAX as usize) {
            resize_text(writer.buffer(), start, length, is_padded);
        }
        writer.finish_row(is_valid)?;
    }
    writer.finish()
}

/// Cuts what stands behind `start` to a count of characters, or pads it.
fn resize_text(text: &mut String, start: usize, length: usize, is_padded: bool) {
    // A text has at least as many bytes as characters, so most need no counting.
    if text.len() - start > length
        && let Some((cut, _)) = text[start..].char_indices().nth(length)
    {
        text.truncate(start + cut);
        return;
    }
    if is_padded {
        let missing = length - text[start..].chars().count();
        text.extend(std::iter::repeat_n(' ', missing));
    }
}

/// Cuts bytes to the length of the target, and fills BINARY up with zeros.
pub(super) fn resize_bytes(array: &ArrayRef, to: &TypeRoot) -> Result<ArrayRef> {
    let (length, is_padded) = match to {
        TypeRoot::Binary(length) => (*length as usize, true),
        TypeRoot::Varbinary(length) => (*length as usize, false),
        _ => return Err(Error::internal("a cast to bytes got another target")),
    };
    let bytes =
        array.as_binary_opt::<i32>().ok_or_else(|| Error::internal("a cast of bytes got another array"))?;
    let mut builder = BinaryBuilder::with_capacity(bytes.len(), bytes.values().len());
    let mut padded = Vec::new();
    for row in 0..bytes.len() {
        if bytes.is_null(row) {
            builder.append_null();
            continue;
        }
        let value = bytes.value(row);
        if is_padded && value.len() < length {
            padded.clear();
            padded.extend_from_slice(value);
            padded.resize(length, 0);
            builder.append_value(&padded);
        } else {
            builder.append_value(&value[..value.len().min(length)]);
        }
    }
    Ok(Arc::new(builder.finish()))
}
