//! Columns to CSV. Texts get quotes by Jackson's loose rule, which is cheap rather than sparing: when they are longer than 24
//! characters or hold anything up to the delimiter, the quote or a line break in the order of code points, blanks included.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray};

use super::CsvSettings;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::format::text::{ScalarWriter, TextStyle, TimestampStandard};
use crate::format::{RecordEncoder, inserts_only};
use crate::schema::{DataType, TypeRoot};

/// The length beyond which a text is quoted without being looked at.
const UNQUOTED_MAX: usize = 24;

/// Encodes rows.
pub(super) struct CsvEncoder {
    settings: Arc<CsvSettings>,
    style: TextStyle,
    least_safe: u8,
    scratch: Vec<u8>,
}

/// A column that is being written.
enum FieldWriter {
    /// A single value; numbers and booleans are never quoted.
    Scalar {
        array: ArrayRef,
        values: ScalarWriter,
        is_bare: bool,
    },
    Array {
        array: ListArray,
        items: ScalarWriter,
    },
    Row {
        array: StructArray,
        fields: Vec<ScalarWriter>,
    },
}

impl CsvEncoder {
    pub(super) fn new(settings: Arc<CsvSettings>) -> CsvEncoder {
        let dialect = settings.dialect;
        let special = [Some(settings.delimiter), dialect.quote, dialect.escape, Some(b'\r')];
        let least_safe = special.iter().flatten().max().map_or(0, |byte| byte + 1);
        let style =
            TextStyle { timestamps: TimestampStandard::Sql, is_plain_decimal: settings.is_plain_decimal };
        CsvEncoder { settings, style, least_safe, scratch: Vec::new() }
    }

    fn write_field(&mut self, field: &FieldWriter, row: usize, out: &mut Vec<u8>) -> Result<()> {
        match field {
            FieldWriter::Scalar { array, .. } if array.is_null(row) => self.write_null(out),
            FieldWriter::Scalar { values, is_bare: true, .. } => values.write(row, self.style, out),
            FieldWriter::Scalar { values, .. } => {
                self.scratch.clear();
                values.write(row, self.style, &mut self.scratch);
                return self.write_text(out);
            }
            FieldWriter::Array { array, .. } if array.is_null(row) => self.write_null(out),
            FieldWriter::Array { array, items } => {
                self.scratch.clear();
                let offsets = array.value_offsets();
                let range = offsets[row] as usize..offsets[row + 1] as usize;
                for (number, item) in range.enumerate() {
                    self.write_element(number, items, (!array.values().is_null(item)).then_some(item));
                }
                return self.write_text(out);
            }
            FieldWriter::Row { array, .. } if array.is_null(row) => self.write_null(out),
            FieldWriter::Row { array, fields } => {
                self.scratch.clear();
                for (number, field) in fields.iter().enumerate() {
                    self.write_element(number, field, (!array.column(number).is_null(row)).then_some(row));
                }
                return self.write_text(out);
            }
        }
        Ok(())
    }

    fn write_null(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.settings.null_literal.as_deref().unwrap_or_default());
    }

    fn write_element(&mut self, number: usize, values: &ScalarWriter, row: Option<usize>) {
        if number > 0 {
            self.scratch.extend_from_slice(&self.settings.element_delimiter);
        }
        match row {
            Some(row) => values.write(row, self.style, &mut self.scratch),
            None => self.scratch.extend_from_slice(self.settings.null_literal.as_deref().unwrap_or_default()),
        }
    }

    /// Writes the scratch text, in quotes where it needs them.
    fn write_text(&self, out: &mut Vec<u8>) -> Result<()> {
        let text = &self.scratch;
        let dialect = self.settings.dialect;
        let needs_quotes = text.len() > UNQUOTED_MAX
            && String::from_utf8_lossy(text).encode_utf16().count() > UNQUOTED_MAX
            || text.iter().any(|byte| *byte < self.least_safe);
        let Some(quote) = dialect.quote else { return self.write_unquoted(text, out) };
        if !needs_quotes {
            out.extend_from_slice(text);
            return Ok(());
        }
        out.push(quote);
        for byte in text {
            if *byte == quote || Some(*byte) == dialect.escape {
                out.push(dialect.escape.unwrap_or(quote));
            }
            out.push(*byte);
        }
        out.push(quote);
        Ok(())
    }

    fn write_unquoted(&self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        for byte in text {
            let is_special = *byte == self.settings.delimiter || matches!(byte, b'\n' | b'\r');
            match self.settings.dialect.escape {
                Some(escape) if is_special || *byte == escape => out.push(escape),
                None if is_special => {
                    // Flink differs: it writes a file that no reader takes apart again.
                    return Err(Error::data(format!(
                        "the value '{}' holds a delimiter or line break and cannot be written without quotes",
                        String::from_utf8_lossy(text)
                    ))
                    .hint("Set 'csv.escape-character', or leave 'csv.disable-quote-character' out."));
                }
                _ => {}
            }
            // An escaped line break is written as a letter, so that it does not end the record.
            out.push(match byte {
                b'\n' => b'n',
                b'\r' => b'r',
                other => *other,
            });
        }
        Ok(())
    }
}

impl FieldWriter {
    fn new(data_type: &DataType, array: &ArrayRef) -> Result<FieldWriter> {
        match &data_type.root {
            TypeRoot::Array(element) => {
                let array = array
                    .as_list_opt::<i32>()
                    .ok_or_else(|| Error::internal("an ARRAY came as another Arrow type"))?;
                Ok(FieldWriter::Array {
                    items: ScalarWriter::require(element, array.values())?,
                    array: array.clone(),
                })
            }
            TypeRoot::Row(fields) => {
                let array = array
                    .as_struct_opt()
                    .ok_or_else(|| Error::internal("a ROW came as another Arrow type"))?;
                let columns = fields.iter().zip(array.columns());
                let fields = columns.map(|(field, column)| ScalarWriter::require(&field.data_type, column));
                Ok(FieldWriter::Row { fields: fields.collect::<Result<_>>()?, array: array.clone() })
            }
            root => {
                let is_bare = root.is_numeric() && *root != TypeRoot::Null
                    || root.is_interval()
                    || *root == TypeRoot::Boolean;
                let values = ScalarWriter::require(data_type, array)?;
                Ok(FieldWriter::Scalar { array: Arc::clone(array), values, is_bare })
            }
        }
    }
}

impl RecordEncoder for CsvEncoder {
    fn encode(&mut self, rows: &ChangelogBatch, out: &mut Vec<u8>) -> Result<()> {
        let rows = inserts_only(rows)?;
        let settings = Arc::clone(&self.settings);
        let columns = settings.columns.iter().zip(rows.columns());
        let fields: Vec<FieldWriter> = columns
            .map(|(column, array)| FieldWriter::new(&column.data_type, array))
            .collect::<Result<_>>()?;
        for row in 0..rows.num_rows() {
            for (number, field) in fields.iter().enumerate() {
                if number > 0 {
                    out.push(settings.delimiter);
                }
                self.write_field(field, row, out)?;
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Csv;
    use crate::format::testing;
    use crate::schema::{Column, TypeRoot};
    use proptest::prelude::*;

    fn encode(text: &str, entries: &[(&str, &str)]) -> crate::error::Result<String> {
        let columns = [
            Column::physical("a", TypeRoot::STRING.nullable()),
            Column::physical("b", TypeRoot::Timestamp(3).nullable()),
            Column::physical("c", TypeRoot::Double.nullable()),
        ];
        let batch = testing::decode(
            &*testing::decoding(&Csv, &columns, &[("csv.null-literal", "~")])?,
            &[0, 1, 2],
            text.as_bytes(),
        )?;
        testing::encode(&*testing::encoding(&Csv, &columns, entries)?, batch.rows())
    }

    #[test]
    fn texts_are_quoted_by_the_loose_rule() {
        assert_eq!(encode("a-b,2020-01-01 10:00:00,1\n", &[]).unwrap(), "a-b,\"2020-01-01 10:00:00\",1.0\n");
        assert_eq!(encode("\"a\"\"b\",~,1e10\n", &[]).unwrap(), "\"a\"\"b\",,1.0E10\n");
        assert_eq!(
            encode("abcdefghijklmnopqrstuvwxyz,~,~\n", &[]).unwrap(),
            "\"abcdefghijklmnopqrstuvwxyz\",,\n"
        );
    }

    #[test]
    fn without_quotes_a_delimiter_needs_an_escape() {
        let bare = ("csv.disable-quote-character", "true");
        assert!(
            encode("\"a,b\",~,~\n", &[bare])
                .unwrap_err()
                .message()
                .contains("cannot be written without quotes")
        );
        assert_eq!(
            encode("\"a,b\n\",~,~\n", &[bare, ("csv.escape-character", "\\")]).unwrap(),
            "a\\,b\\n,,\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn what_was_written_is_read_again(table in testing::random_table(false)) {
            let entries = [("csv.null-literal", "\u{1}null")];
            let encoding = testing::encoding(&Csv, &table.columns, &entries).unwrap();
            let text = testing::encode(&*encoding, &table.rows).unwrap();
            let decoding = testing::decoding(&Csv, &table.columns, &entries).unwrap();
            let all: Vec<usize> = (0..table.columns.len()).collect();
            let batch = testing::decode(&*decoding, &all, text.as_bytes()).unwrap();
            prop_assert_eq!(batch.rows(), &table.rows);
        }
    }
}
