//! Columns to JSON lines: keys in the order of the columns, NULL written as `null`.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch};

use super::{JsonSettings, MapNullKeyMode};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::format::text::{ScalarWriter, TextStyle};
use crate::format::{RecordEncoder, inserts_only};
use crate::schema::{DataType, TypeRoot};

/// Encodes rows, one object a line.
pub(super) struct JsonEncoder {
    objects: ObjectWriter,
}

/// Writes rows as objects.
pub(in crate::format) struct ObjectWriter {
    settings: Arc<JsonSettings>,
    writer: ValueWriter,
}

/// The columns of a batch, each with its key, ready to be written.
pub(in crate::format) struct ObjectFields(Vec<(Vec<u8>, ColumnWriter)>);

struct ValueWriter {
    style: TextStyle,
    omits_nulls: bool,
    null_key_mode: MapNullKeyMode,
    null_key_literal: String,
    scratch: Vec<u8>,
}

/// A column that is being written.
struct ColumnWriter {
    array: ArrayRef,
    values: ValuesWriter,
}

enum ValuesWriter {
    /// Numbers and booleans.
    Bare(ScalarWriter),
    /// Numbers among which some may not be numbers to JSON.
    Float(ScalarWriter),
    Quoted(ScalarWriter),
    /// Quoted, and free of anything to escape.
    Plain(ScalarWriter),
    Array(ListArray, Box<ColumnWriter>),
    Map(MapArray, Box<ColumnWriter>, Box<ColumnWriter>),
    Row(Vec<(Vec<u8>, ColumnWriter)>),
}

impl JsonEncoder {
    pub(super) fn new(settings: Arc<JsonSettings>) -> JsonEncoder {
        JsonEncoder { objects: ObjectWriter::new(settings) }
    }
}

impl RecordEncoder for JsonEncoder {
    fn encode(&mut self, rows: &ChangelogBatch, out: &mut Vec<u8>) -> Result<()> {
        let rows = inserts_only(rows)?;
        let fields = self.objects.prepare(rows)?;
        for row in 0..rows.num_rows() {
            self.objects.write(&fields, row, out)?;
            out.push(b'\n');
        }
        Ok(())
    }
}

impl ObjectWriter {
    /// Creates a writer of a table's rows.
    pub(in crate::format) fn new(settings: Arc<JsonSettings>) -> ObjectWriter {
        let writer = ValueWriter {
            style: TextStyle { timestamps: settings.timestamps, is_plain_decimal: settings.is_plain_decimal },
            omits_nulls: settings.omits_nulls,
            null_key_mode: settings.null_key_mode,
            null_key_literal: settings.null_key_literal.clone(),
            scratch: Vec::new(),
        };
        ObjectWriter { settings, writer }
    }

    /// Prepares the columns of a batch.
    ///
    /// # Errors
    /// A column has another Arrow type than its declared type asks for.
    pub(in crate::format) fn prepare(&self, rows: &RecordBatch) -> Result<ObjectFields> {
        let columns = self.settings.columns.iter().zip(rows.columns());
        let fields = columns.map(|(column, array)| named(&column.name, &column.data_type, array));
        Ok(ObjectFields(fields.collect::<Result<_>>()?))
    }

    /// Appends a row as an object.
    ///
    /// # Errors
    /// A map has a NULL key, which the options forbid.
    pub(in crate::format) fn write(
        &mut self,
        fields: &ObjectFields,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.writer.write_row(&fields.0, row, out)
    }
}

/// Prepares a column with its key, written once.
fn named(name: &str, data_type: &DataType, array: &ArrayRef) -> Result<(Vec<u8>, ColumnWriter)> {
    let mut key = Vec::new();
    write_string(name.as_bytes(), &mut key);
    key.push(b':');
    Ok((key, ColumnWriter::new(data_type, array)?))
}

impl ColumnWriter {
    fn new(data_type: &DataType, array: &ArrayRef) -> Result<ColumnWriter> {
        let mismatch =
            || Error::internal(format!("a column of type {data_type} came as Arrow {}", array.data_type()));
        let values = match &data_type.root {
            TypeRoot::Array(element) => {
                let list: ListArray = array.as_list_opt().ok_or_else(mismatch)?.clone();
                let items = ColumnWriter::new(element, list.values())?;
                ValuesWriter::Array(list, Box::new(items))
            }
            TypeRoot::Map(key, value) => map_writer(array.as_map_opt().ok_or_else(mismatch)?, key, value)?,
            TypeRoot::Multiset(element) => {
                map_writer(array.as_map_opt().ok_or_else(mismatch)?, element, &TypeRoot::Int.not_null())?
            }
            TypeRoot::Row(fields) => {
                let columns = array.as_struct_opt().ok_or_else(mismatch)?.columns();
                let columns = fields
                    .iter()
                    .zip(columns)
                    .map(|(field, column)| named(&field.name, &field.data_type, column));
                ValuesWriter::Row(columns.collect::<Result<_>>()?)
            }
            root => {
                let writer = ScalarWriter::require(data_type, array)?;
                if root.is_approximate() {
                    ValuesWriter::Float(writer)
                } else if root.is_character() {
                    ValuesWriter::Quoted(writer)
                } else if matches!(
                    root,
                    TypeRoot::Boolean
                        | TypeRoot::TinyInt
                        | TypeRoot::SmallInt
                        | TypeRoot::Int
                        | TypeRoot::BigInt
                        | TypeRoot::Decimal(..)
                        | TypeRoot::IntervalYearMonth(_)
                        | TypeRoot::IntervalDayTime(_)
                ) {
                    ValuesWriter::Bare(writer)
                } else {
                    ValuesWriter::Plain(writer)
                }
            }
        };
        Ok(ColumnWriter { array: Arc::clone(array), values })
    }

    fn is_null(&self, row: usize) -> bool {
        self.array.is_null(row) || *self.array.data_type() == arrow::datatypes::DataType::Null
    }
}

fn map_writer(map: &MapArray, key: &DataType, value: &DataType) -> Result<ValuesWriter> {
    let keys = ColumnWriter::new(key, map.keys())?;
    let values = ColumnWriter::new(value, map.values())?;
    Ok(ValuesWriter::Map(map.clone(), Box::new(keys), Box::new(values)))
}

impl ValueWriter {
    fn write_row(&mut self, fields: &[(Vec<u8>, ColumnWriter)], row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        let mut is_first = true;
        for (key, column) in fields {
            if self.omits_nulls && column.is_null(row) {
                continue;
            }
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            out.extend_from_slice(key);
            self.write(column, row, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn write(&mut self, column: &ColumnWriter, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if column.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match &column.values {
            ValuesWriter::Bare(values) => values.write(row, self.style, out),
            ValuesWriter::Float(values) => {
                let start = out.len();
                values.write(row, self.style, out);
                if out[start..].iter().any(|byte| matches!(byte, b'N' | b'I')) {
                    out.insert(start, b'"');
                    out.push(b'"');
                }
            }
            ValuesWriter::Quoted(values) => {
                self.scratch.clear();
                values.write(row, self.style, &mut self.scratch);
                write_string(&self.scratch, out);
            }
            ValuesWriter::Plain(values) => {
                out.push(b'"');
                values.write(row, self.style, out);
                out.push(b'"');
            }
            ValuesWriter::Array(list, items) => {
                out.push(b'[');
                let offsets = list.value_offsets();
                for (number, item) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    self.write(items, item, out)?;
                }
                out.push(b']');
            }
            ValuesWriter::Map(map, keys, values) => {
                let offsets = map.value_offsets();
                return self.write_map(offsets[row] as usize..offsets[row + 1] as usize, keys, values, out);
            }
            ValuesWriter::Row(fields) => return self.write_row(fields, row, out),
        }
        Ok(())
    }

    fn write_map(
        &mut self,
        entries: std::ops::Range<usize>,
        keys: &ColumnWriter,
        values: &ColumnWriter,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        out.push(b'{');
        let mut is_first = true;
        for entry in entries {
            let is_null = keys.is_null(entry);
            match self.null_key_mode {
                MapNullKeyMode::Drop if is_null => continue,
                MapNullKeyMode::Fail if is_null => {
                    return Err(Error::data(
                        "JSON format doesn't support to serialize map data with null keys. You can drop null key entries or encode null in literals by specifying map-null-key.mode option.",
                    ));
                }
                _ => {}
            }
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            if is_null {
                write_string(self.null_key_literal.as_bytes(), out);
            } else {
                self.write(keys, entry, out)?;
            }
            out.push(b':');
            self.write(values, entry, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

/// Appends a string with quotes and escapes.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut written = 0;
    for (at, byte) in text.iter().enumerate() {
        if *byte >= 0x20 && !matches!(byte, b'"' | b'\\') {
            continue;
        }
        out.extend_from_slice(&text[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            other => {
                let _ = write!(out, "\\u{other:04X}");
            }
        }
    }
    out.extend_from_slice(&text[written..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use crate::format::testing;
    use crate::schema::{Column, TypeRoot};
    use proptest::prelude::*;

    fn recode(text: &str, entries: &[(&str, &str)]) -> String {
        let columns = [
            Column::physical("a\"", TypeRoot::STRING.nullable()),
            Column::physical("t", TypeRoot::TimestampLtz(3).nullable()),
            Column::physical("d", TypeRoot::Decimal(10, 9).nullable()),
            Column::physical("f", TypeRoot::Double.nullable()),
        ];
        let decoding = testing::decoding(&Json, &columns, &[]).unwrap();
        let batch = testing::decode(&*decoding, &[0, 1, 2, 3], text.as_bytes()).unwrap();
        testing::encode(&*testing::encoding(&Json, &columns, entries).unwrap(), batch.rows()).unwrap()
    }

    #[test]
    fn keys_come_in_order_with_nulls_and_javas_numbers() {
        let text = r#"{"f":"NaN","d":2.7E-8,"t":"2020-01-01 00:00:00.5Z","a\"":"x\u0001\n"}"#;
        assert_eq!(
            recode(text, &[]),
            "{\"a\\\"\":\"x\\u0001\\n\",\"t\":\"2020-01-01 00:00:00.5Z\",\"d\":2.7E-8,\"f\":\"NaN\"}\n"
        );
        assert_eq!(recode("{}", &[]), "{\"a\\\"\":null,\"t\":null,\"d\":null,\"f\":null}\n");
        let options = [
            ("json.encode.ignore-null-fields", "true"),
            ("json.encode.decimal-as-plain-number", "true"),
            ("json.timestamp-format.standard", "ISO-8601"),
        ];
        assert_eq!(
            recode("{\"d\":2.7E-8,\"t\":\"2020-01-01 00:00:00Z\"}", &options),
            "{\"t\":\"2020-01-01T00:00:00Z\",\"d\":0.000000027}\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(80))]

        #[test]
        fn what_was_written_is_read_again(table in testing::random_table(true)) {
            let encoding = testing::encoding(&Json, &table.columns, &[]).unwrap();
            let text = testing::encode(&*encoding, &table.rows).unwrap();
            for line in text.lines() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{}", line);
            }
            let decoding = testing::decoding(&Json, &table.columns, &[]).unwrap();
            let all: Vec<usize> = (0..table.columns.len()).collect();
            let batch = testing::decode(&*decoding, &all, text.as_bytes()).unwrap();
            prop_assert_eq!(batch.rows(), &table.rows);
        }
    }
}
