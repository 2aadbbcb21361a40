//! Rows as JSON objects. Numbers, booleans and nested values keep their nature; all else is the text of the client's cell.
//!
//! Numbers are written with all their digits; NaN and infinities, which JSON has no numbers for, are texts.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Float32Type, Float64Type};
use chrono_tz::Tz;

use super::ResultPrinter;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::schema::{CellFormatter, DataType, TypeRoot};
use crate::session::ResultColumn;

/// Prints one object per row.
#[derive(Debug)]
pub(super) struct Json {
    columns: Arc<Vec<ResultColumn>>,
    names: Vec<String>,
    with_kind: bool,
    is_array: bool,
    has_rows: bool,
    zone: Tz,
}

impl Json {
    /// Creates the printer of one array.
    pub(super) fn array(columns: Arc<Vec<ResultColumn>>, with_kind: bool, zone: Tz) -> Json {
        let names = columns.iter().map(|column| quoted(&column.name)).collect();
        Json { columns, names, with_kind, is_array: true, has_rows: false, zone }
    }

    /// Creates the printer of one object per line.
    pub(super) fn lines(columns: Arc<Vec<ResultColumn>>, with_kind: bool, zone: Tz) -> Json {
        Json { is_array: false, ..Json::array(columns, with_kind, zone) }
    }
}

impl ResultPrinter for Json {
    fn begin(&mut self, out: &mut String) {
        if self.is_array {
            out.push('[');
        }
    }

    fn rows(&mut self, batch: ChangelogBatch, out: &mut String) -> Result<()> {
        for row in 0..batch.row_count() {
            if self.is_array {
                out.push_str(if self.has_rows { ",\n " } else { "\n " });
            }
            self.has_rows = true;
            out.push('{');
            if self.with_kind {
                out.push_str("\"op\":\"");
                out.push_str(batch.kind(row).short_string());
                out.push('"');
            }
            for (index, (column, name)) in self.columns.iter().zip(&self.names).enumerate() {
                if index > 0 || self.with_kind {
                    out.push(',');
                }
                out.push_str(name);
                out.push(':');
                push_value(&column.data_type, batch.rows().column(index).as_ref(), row, self.zone, out);
            }
            out.push('}');
            if !self.is_array {
                out.push('\n');
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut String) {
        if self.is_array {
            out.push_str(if self.has_rows { "\n]\n" } else { "]\n" });
        }
    }

    fn interrupt(&mut self, out: &mut String) {
        self.finish(out);
    }
}

/// Appends one value.
fn push_value(data_type: &DataType, array: &dyn Array, row: usize, zone: Tz, out: &mut String) {
    if array.is_null(row) || matches!(data_type.root, TypeRoot::Null) {
        out.push_str("null");
        return;
    }
    match &data_type.root {
        TypeRoot::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        TypeRoot::Float if !array.as_primitive::<Float32Type>().value(row).is_finite() => {
            push_cell_text(data_type, array, row, zone, out);
        }
        TypeRoot::Double if !array.as_primitive::<Float64Type>().value(row).is_finite() => {
            push_cell_text(data_type, array, row, zone, out);
        }
        root if root.is_numeric() => {
            CellFormatter::new(data_type, array, zone).write(row, out);
        }
        TypeRoot::Array(element) => {
            let items = array.as_list::<i32>().value(row);
            push_list(items.len(), '[', ']', out, |index, out| {
                push_value(element, items.as_ref(), index, zone, out);
            });
        }
        TypeRoot::Map(key, value) => push_map(key, value, array, row, zone, out),
        TypeRoot::Multiset(element) => push_map(element, &TypeRoot::Int.not_null(), array, row, zone, out),
        TypeRoot::Row(fields) => {
            let row_array = array.as_struct();
            push_list(fields.len(), '{', '}', out, |index, out| {
                out.push_str(&quoted(&fields[index].name));
                out.push(':');
                push_value(&fields[index].data_type, row_array.column(index).as_ref(), row, zone, out);
            });
        }
        _ => push_cell_text(data_type, array, row, zone, out),
    }
}

/// Appends a map as an object whose names are the texts of its keys.
fn push_map(key: &DataType, value: &DataType, array: &dyn Array, row: usize, zone: Tz, out: &mut String) {
    let entries = array.as_map().value(row);
    push_list(entries.len(), '{', '}', out, |index, out| {
        push_cell_text(key, entries.column(0).as_ref(), index, zone, out);
        out.push(':');
        push_value(value, entries.column(1).as_ref(), index, zone, out);
    });
}

/// Appends `length` items with commas between them and brackets around them.
fn push_list(
    length: usize,
    open: char,
    close: char,
    out: &mut String,
    mut item: impl FnMut(usize, &mut String),
) {
    out.push(open);
    for index in 0..length {
        if index > 0 {
            out.push(',');
        }
        item(index, out);
    }
    out.push(close);
}

/// Appends the client's text of a value as a JSON text.
fn push_cell_text(data_type: &DataType, array: &dyn Array, row: usize, zone: Tz, out: &mut String) {
    let mut text = String::new();
    if CellFormatter::new(data_type, array, zone).write(row, &mut text) {
        push_quoted(&text, out);
    } else {
        out.push_str("null");
    }
}

/// Returns a JSON text.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut out);
    out
}

/// Appends a JSON text.
fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    let mut plain_from = 0;
    for (index, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain_from..index]);
        plain_from = index + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            other => out.push_str(&format!("\\u{other:04x}")),
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n\u{1}é"), "\"a\\\"b\\\\c\\n\\u0001é\"");
    }
}
