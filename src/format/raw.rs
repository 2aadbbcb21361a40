//! `raw`: the bytes of a record are the value of the only column. In a file every line is a record.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use super::column::{ColumnBuilder, Values};
use super::lines::lines;
use super::scan::Dialect;
use super::text::{ScalarWriter, TextStyle, TimestampStandard};
use super::{
    DecodingFormat, EncodingFormat, FormatContext, FormatFactory, FrameOrigin, Framing, RecordDecoder,
    RecordEncoder, inserts_only,
};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, OptionValue};
use crate::schema::{Column, TypeRoot};

const CHARSET: ConfigOption<Charset> = ConfigOption::with_default(
    "raw.charset",
    "UTF-8",
    "The encoding of texts: UTF-8, US-ASCII or ISO-8859-1.",
);
const ENDIANNESS: ConfigOption<Endianness> =
    ConfigOption::with_default("raw.endianness", "big-endian", "Which byte of a number comes first.");
const LINE_DELIMITER: ConfigOption<String> =
    ConfigOption::optional("raw.line-delimiter", "What stands between records; only a line break is known.");

/// How texts are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Latin1,
}

impl OptionValue for Charset {
    fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" | "US-ASCII" | "ASCII" => Ok(Charset::Utf8),
            "ISO-8859-1" | "LATIN1" => Ok(Charset::Latin1),
            _ => Err(Error::validation(format!("Unsupported 'raw.charset' name: {text}."))),
        }
    }

    fn describe() -> String {
        "UTF-8, US-ASCII or ISO-8859-1".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["UTF-8", "US-ASCII", "ISO-8859-1"]
    }
}

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endianness {
    Big,
    Little,
}

impl OptionValue for Endianness {
    fn parse(text: &str) -> Result<Self> {
        match text {
            "big-endian" => Ok(Endianness::Big),
            "little-endian" => Ok(Endianness::Little),
            _ => Err(Error::validation(format!(
                "Unsupported endianness name: {text}. It should be 'big-endian' or 'little-endian'."
            ))),
        }
    }

    fn describe() -> String {
        "big-endian or little-endian".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["big-endian", "little-endian"]
    }
}

/// The format `raw`.
pub(crate) struct Raw;

/// The format, set up for a table.
#[derive(Debug, Clone)]
struct RawFormat {
    column: Column,
    charset: Charset,
    endianness: Endianness,
}

impl FormatFactory for Raw {
    fn identifier(&self) -> &'static str {
        "raw"
    }

    fn doc(&self) -> &'static str {
        "The bytes of a record as the value of the only column."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&CHARSET, &ENDIANNESS, &LINE_DELIMITER]
    }

    fn decoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn DecodingFormat>> {
        Ok(Box::new(RawFormat::new(ctx)?))
    }

    fn encoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn EncodingFormat>> {
        Ok(Box::new(RawFormat::new(ctx)?))
    }
}

impl RawFormat {
    fn new(ctx: &FormatContext<'_>) -> Result<RawFormat> {
        let [column] = ctx.columns else {
            let names: Vec<&str> = ctx.columns.iter().map(|column| column.name.as_str()).collect();
            return Err(Error::validation(format!(
                "The 'raw' format only supports single physical column. However the defined schema contains multiple physical columns: [{}]",
                names.join(", ")
            )));
        };
        let root = &column.data_type.root;
        let is_supported = root.is_character()
            || root.is_binary()
            || root.is_integer()
            || root.is_approximate()
            || *root == TypeRoot::Boolean;
        if !is_supported {
            let data_type = &column.data_type;
            return Err(Error::validation(format!(
                "The 'raw' format doesn't supports '{data_type}' as column type."
            )));
        }
        match ctx.get_optional(&LINE_DELIMITER)?.as_deref() {
            None | Some("\n" | "\\n") => {}
            Some(_) => return Err(Error::unsupported("option 'raw.line-delimiter' takes only a line break")),
        }
        Ok(RawFormat {
            column: column.clone(),
            charset: ctx.get(&CHARSET)?,
            endianness: ctx.get(&ENDIANNESS)?,
        })
    }
}

impl DecodingFormat for RawFormat {
    fn framing(&self) -> Framing {
        Framing::Lines(Dialect::LINES)
    }

    fn decoder(&self, projection: &[usize], _metadata: &[&str]) -> Box<dyn RecordDecoder> {
        let fields: Vec<_> =
            projection.iter().map(|_| self.column.data_type.to_field(&self.column.name)).collect();
        Box::new(RawDecoder {
            column: ColumnBuilder::new(&self.column.data_type),
            schema: Arc::new(Schema::new(fields)),
            format: self.clone(),
        })
    }
}

impl EncodingFormat for RawFormat {
    fn file_extension(&self) -> &'static str {
        "raw"
    }

    fn encoder(&self) -> Box<dyn RecordEncoder> {
        Box::new(RawEncoder { format: self.clone() })
    }
}

struct RawDecoder {
    format: RawFormat,
    schema: SchemaRef,
    column: ColumnBuilder,
}

impl RawDecoder {
    /// Appends a record; returns false if it has not the length of its type.
    fn push(&mut self, record: &[u8]) -> bool {
        let is_big = self.format.endianness == Endianness::Big;
        /// Appends a number of as many bytes as it has.
        macro_rules! number {
            ($values:expr, $number:ty) => {{
                let Ok(bytes) = record.try_into() else { return false };
                $values.push(if is_big {
                    <$number>::from_be_bytes(bytes)
                } else {
                    <$number>::from_le_bytes(bytes)
                });
            }};
        }
        match self.column.values() {
            Values::Int8(values) => number!(values, i8),
            Values::Int16(values) => number!(values, i16),
            Values::Int32(values) => number!(values, i32),
            Values::Int64(values) => number!(values, i64),
            Values::Float32(values) => number!(values, f32),
            Values::Float64(values) => number!(values, f64),
            Values::Boolean(values) => match record {
                [byte] => values.append(*byte != 0),
                _ => return false,
            },
            _ => {
                let is_latin = self.format.charset == Charset::Latin1
                    && self.format.column.data_type.root.is_character();
                if is_latin {
                    let text: String = record.iter().map(|byte| char::from(*byte)).collect();
                    self.column.push_bytes(text.as_bytes());
                } else {
                    self.column.push_bytes(record);
                }
                return true;
            }
        }
        self.column.mark_valid();
        true
    }
}

impl RecordDecoder for RawDecoder {
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch> {
        for (start, record) in lines(data) {
            if !self.push(record) {
                let len = record.len();
                self.column.truncate(0);
                return Err(Error::data(format!(
                    "Size of data received for deserializing {} type is not as expected: {len} bytes",
                    self.format.column.data_type
                ))
                .hint(format!(
                    "{}, field '{}'",
                    origin.place(data, start),
                    self.format.column.name
                )));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.column.len()));
        let array = self.column.finish()?;
        let arrays = self.schema.fields().iter().map(|_| Arc::clone(&array)).collect();
        Ok(ChangelogBatch::inserts(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &options,
        )?))
    }
}

struct RawEncoder {
    format: RawFormat,
}

impl RecordEncoder for RawEncoder {
    fn encode(&mut self, rows: &ChangelogBatch, out: &mut Vec<u8>) -> Result<()> {
        let rows = inserts_only(rows)?;
        let array = rows.column(0);
        let values = ScalarWriter::require(&self.format.column.data_type, array)?;
        let is_big = self.format.endianness == Endianness::Big;
        /// Appends a number's bytes.
        macro_rules! number {
            ($value:expr) => {{
                let value = $value;
                out.extend_from_slice(&if is_big { value.to_be_bytes() } else { value.to_le_bytes() });
            }};
        }
        for row in 0..rows.num_rows() {
            if !array.is_null(row) {
                match &values {
                    ScalarWriter::Int8(array) => number!(array.value(row)),
                    ScalarWriter::Int16(array) => number!(array.value(row)),
                    ScalarWriter::Int32(array) => number!(array.value(row)),
                    ScalarWriter::Int64(array) => number!(array.value(row)),
                    ScalarWriter::Float32(array) => number!(array.value(row)),
                    ScalarWriter::Float64(array) => number!(array.value(row)),
                    ScalarWriter::Boolean(array) => out.push(u8::from(array.value(row))),
                    ScalarWriter::Bytes(array) => out.extend_from_slice(array.value(row)),
                    ScalarWriter::Text(array) if self.format.charset == Charset::Latin1 => {
                        let characters = array.value(row).chars();
                        out.extend(characters.map(|character| u8::try_from(character).unwrap_or(b'?')));
                    }
                    other => {
                        let style = TextStyle { timestamps: TimestampStandard::Sql, is_plain_decimal: false };
                        other.write(row, style, out);
                    }
                }
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing::{self, cells};

    fn column(root: TypeRoot) -> [Column; 1] {
        [Column::physical("v", root.nullable())]
    }

    #[test]
    fn each_line_is_a_value() {
        let format = testing::decoding(&Raw, &column(TypeRoot::STRING), &[]).unwrap();
        let batch = testing::decode(&*format, &[0], b"a,b\n\n{}").unwrap();
        assert_eq!(cells(&batch), ["a,b", "", "{}"]);
        assert_eq!(testing::decode(&*format, &[], b"a\nb\n").unwrap().row_count(), 2);
        let encoding = testing::encoding(&Raw, &column(TypeRoot::STRING), &[]).unwrap();
        assert_eq!(testing::encode(&*encoding, batch.rows()).unwrap(), "a,b\n\n{}\n");
    }

    #[test]
    fn numbers_have_the_bytes_of_their_type() {
        let columns = column(TypeRoot::Int);
        for (endianness, bytes) in [("big-endian", [0_u8, 0, 1, 2]), ("little-endian", [2, 1, 0, 0])] {
            let entries = [("raw.endianness", endianness)];
            let format = testing::decoding(&Raw, &columns, &entries).unwrap();
            let batch = testing::decode(&*format, &[0], &bytes).unwrap();
            assert_eq!(cells(&batch), ["258"]);
            let mut out = Vec::new();
            testing::encoding(&Raw, &columns, &entries).unwrap().encoder().encode(&batch, &mut out).unwrap();
            assert_eq!(out, [&bytes[..], b"\n"].concat());
            let error = testing::decode(&*format, &[0], b"abc").unwrap_err();
            assert_eq!(error.hint_text(), Some("data.csv, line 11, field 'v'"));
        }
    }

    #[test]
    fn charsets_are_converted() {
        let format =
            testing::decoding(&Raw, &column(TypeRoot::STRING), &[("raw.charset", "ISO-8859-1")]).unwrap();
        assert_eq!(cells(&testing::decode(&*format, &[0], b"\xe4").unwrap()), ["ä"]);
    }

    #[test]
    fn errors_have_flinks_words() {
        let two = [
            Column::physical("a", TypeRoot::Int.nullable()),
            Column::physical("b", TypeRoot::Int.nullable()),
        ];
        assert_eq!(
            testing::decoding(&Raw, &two, &[]).unwrap_err().message(),
            "The 'raw' format only supports single physical column. However the defined schema contains multiple physical columns: [a, b]"
        );
        assert_eq!(
            testing::decoding(&Raw, &column(TypeRoot::Date), &[]).unwrap_err().message(),
            "The 'raw' format doesn't supports 'DATE' as column type."
        );
        let error = testing::decoding(&Raw, &column(TypeRoot::STRING), &[("raw.charset", "x")]).unwrap_err();
        assert_eq!(error.message(), "Unsupported 'raw.charset' name: x.");
    }
}
