//! CSV bytes to columns. Fields outside the projection are never looked at beyond their ends.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use super::CsvSettings;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, FlinkClass, Result};
use crate::format::column::{ColumnBuilder, Values};
use crate::format::scan::{BLOCK, Scanner};
use crate::format::text::{TextFault, TextParser};
use crate::format::{FrameOrigin, RecordDecoder};

/// What the hint of an error says at its end: of a record, of a field, and of an empty one.
const SKIPPING: &str = " ('csv.ignore-parse-errors' = 'true' skips such lines)";
const NULLING: &str = " ('csv.ignore-parse-errors' = 'true' makes such fields NULL)";
const EMPTY_AS_NULL: &str = " ('csv.null-literal' = '' reads empty fields as NULL)";

/// How much of a broken record an error shows.
const SHOWN_MAX: usize = 1_000;

/// Decodes the columns of a projection.
pub(super) struct CsvDecoder {
    settings: Arc<CsvSettings>,
    /// For each column to produce, its position among the fields.
    fields: Vec<usize>,
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    values: FieldReader,
    row_count: usize,
    /// Where each field of the present record ends; one more than there are columns.
    ends: Vec<usize>,
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy)]
enum RowFault {
    TooFew(usize),
    TooMany,
    MissingQuote,
    BehindQuote(usize),
    Value { column: usize, field: (usize, usize), fault: TextFault },
}

impl CsvDecoder {
    pub(super) fn new(settings: Arc<CsvSettings>, projection: &[usize]) -> CsvDecoder {
        let picked = || projection.iter().map(|at| &settings.columns[*at]);
        let schema =
            Schema::new(picked().map(|column| column.data_type.to_field(&column.name)).collect::<Vec<_>>());
        let columns = picked().map(|column| ColumnBuilder::new(&column.data_type)).collect();
        let ends = vec![0; settings.columns.len() + 1];
        let values = FieldReader::new(&settings);
        CsvDecoder {
            fields: projection.to_vec(),
            schema: Arc::new(schema),
            columns,
            values,
            row_count: 0,
            ends,
            settings,
        }
    }

    fn decode_rows(&mut self, data: &[u8]) -> Result<(), (usize, usize, RowFault)> {
        let mut scanner = Scanner::new(self.settings.dialect);
        let (mut record, mut field, mut start) = (0, 0, 0);
        while start < data.len() {
            let found = scanner.scan(&data[start..]);
            // A projection of nothing needs no fields, only where records end.
            let mut bits = if self.fields.is_empty() { found.records } else { found.fields | found.records };
            while bits != 0 {
                let at = bits.trailing_zeros();
                bits &= bits - 1;
                let end = start + at as usize;
                if let Some(slot) = self.ends.get_mut(field) {
                    *slot = end;
                }
                field += 1;
                if found.records >> at & 1 == 1 {
                    self.take_record(data, record, end, field)?;
                    (record, field) = (end + 1, 0);
                }
            }
            start += BLOCK;
        }
        if record < data.len() {
            if scanner.is_inside_quotes() {
                return self.drop_or_fail(record, data.len(), RowFault::MissingQuote);
            }
            if let Some(slot) = self.ends.get_mut(field) {
                *slot = data.len();
            }
            self.take_record(data, record, data.len(), field + 1)?;
        }
        Ok(())
    }

    /// Takes the record between two offsets, which has `count` fields whose ends are known.
    #[inline]
    fn take_record(
        &mut self,
        data: &[u8],
        start: usize,
        end: usize,
        count: usize,
    ) -> Result<(), (usize, usize, RowFault)> {
        let settings = &*self.settings;
        let width = settings.columns.len();
        // Flink differs: blank lines are no records, unless a record has a single field, which may be empty.
        let is_blank = end == start || (end == start + 1 && data[start] == b'\r');
        if is_blank && width > 1 || settings.dialect.has_comments && data.get(start) == Some(&b'#') {
            return Ok(());
        }
        if self.fields.is_empty() {
            self.row_count += 1;
            return Ok(());
        }
        if count != width
            && let Some(fault) = self.check_count(data, end, count)
        {
            return self.drop_or_fail(start, end, fault);
        }
        let row = self.row_count;
        for (number, field) in self.fields.iter().enumerate() {
            let column = &mut self.columns[number];
            if *field >= count {
                column.push_null();
                continue;
            }
            let from = if *field == 0 { start } else { self.ends[*field - 1] + 1 };
            let mut to = self.ends[*field];
            if to == end && from < to && data[to - 1] == b'\r' {
                to -= 1;
            }
            match self.values.push(&data[from..to], column) {
                Ok(()) => {}
                Err(FieldFault::Value(_)) if self.settings.ignores_errors => {
                    column.truncate(row);
                    column.push_null();
                }
                Err(FieldFault::Value(fault)) => {
                    let fault = RowFault::Value { column: *field, field: (from, to), fault };
                    return self.drop_or_fail(start, end, fault);
                }
                Err(FieldFault::BehindQuote) => {
                    return self.drop_or_fail(start, end, RowFault::BehindQuote(*field));
                }
            }
        }
        self.row_count += 1;
        Ok(())
    }

    fn check_count(&self, data: &[u8], end: usize, count: usize) -> Option<RowFault> {
        let settings = &*self.settings;
        let width = settings.columns.len();
        if count < width {
            return (!settings.ignores_errors || settings.requires_all).then_some(RowFault::TooFew(count));
        }
        let surplus = &data[(self.ends[width - 1] + 1).min(end)..end];
        let is_trailing = count == width + 1 && surplus.trim_ascii().is_empty();
        let is_fine = settings.ignores_surplus || is_trailing && settings.allows_trailing_delimiter;
        (!is_fine).then_some(RowFault::TooMany)
    }

    /// Takes back what the record left in the columns, and fails unless errors are to be ignored.
    fn drop_or_fail(
        &mut self,
        start: usize,
        end: usize,
        fault: RowFault,
    ) -> Result<(), (usize, usize, RowFault)> {
        for column in &mut self.columns {
            column.truncate(self.row_count);
        }
        let is_dropped = self.settings.ignores_errors
            && !(matches!(fault, RowFault::TooFew(_)) && self.settings.requires_all);
        if is_dropped { Ok(()) } else { Err((start, end, fault)) }
    }

    fn error(
        &self,
        data: &[u8],
        (start, end, fault): (usize, usize, RowFault),
        origin: FrameOrigin<'_>,
    ) -> Error {
        let record = &data[start..end.min(start + SHOWN_MAX)];
        let record = String::from_utf8_lossy(record.strip_suffix(b"\r").unwrap_or(record));
        let dots = if end - start > SHOWN_MAX { "…" } else { "" };
        let width = self.settings.columns.len();
        let place = origin.place(data, start);
        let (place, cause) = match fault {
            RowFault::TooFew(count) => {
                let cause =
                    Error::data(format!("Row length mismatch. {width} fields expected but was {count}."));
                (place, cause.class(FlinkClass::RUNTIME))
            }
            RowFault::TooMany => (place, Error::data(format!("Too many entries: expected at most {width}"))),
            RowFault::MissingQuote => (place, Error::data("Missing closing quote for value")),
            RowFault::BehindQuote(column) => {
                let cause = Error::data(
                    "Expected column separator character or end-of-line behind the closing quote",
                );
                (self.field_place(&place, column), cause)
            }
            RowFault::Value { column, field: (from, to), fault } => {
                let message = fault.message(&data[from..to], &self.settings.columns[column].data_type);
                let class = if fault == TextFault::Number {
                    FlinkClass::NUMBER_FORMAT
                } else {
                    FlinkClass::DATE_TIME
                };
                (self.field_place(&place, column), Error::data(message).class(class))
            }
        };
        let way_out = match fault {
            RowFault::Value { field: (from, to), .. } if from == to => EMPTY_AS_NULL,
            RowFault::Value { .. } => NULLING,
            _ => SKIPPING,
        };
        let header = if self.is_header(&data[start..end]) {
            " A line with the names of columns has to go."
        } else {
            ""
        };
        Error::data(format!("Failed to deserialize CSV row '{record}{dots}'."))
            .class(FlinkClass::IO)
            .hint(format!("{place}: {}{header}{way_out}", cause.message()))
            .caused_by(cause)
    }

    /// Returns whether a record looks like the names of the columns, which no option skips.
    fn is_header(&self, record: &[u8]) -> bool {
        let quote = self.settings.dialect.quote.unwrap_or(b'"');
        let names = record.split(|byte| *byte == self.settings.delimiter);
        let names = names.map(|name| unquoted(name.trim_ascii(), quote));
        names
            .zip(&self.settings.columns)
            .all(|(name, column)| name.eq_ignore_ascii_case(column.name.as_bytes()))
    }

    fn field_place(&self, place: &str, column: usize) -> String {
        let declared = &self.settings.columns[column];
        format!("{place}, column {} ('{}' {})", column + 1, declared.name, declared.data_type)
    }

    /// Takes the finished columns.
    fn take_batch(&mut self) -> Result<ChangelogBatch> {
        let arrays = self.columns.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.row_count)));
        Ok(ChangelogBatch::inserts(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &options,
        )?))
    }
}

impl RecordDecoder for CsvDecoder {
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch> {
        match self.decode_rows(data) {
            Ok(()) => self.take_batch(),
            Err(fault) => {
                let error = self.error(data, fault, origin);
                self.columns.iter_mut().for_each(|column| column.truncate(0));
                self.row_count = 0;
                Err(error)
            }
        }
    }
}

fn unquoted(text: &[u8], quote: u8) -> &[u8] {
    match text {
        [first, inner @ .., last] if *first == quote && *last == quote => inner,
        _ => text,
    }
}

/// What is wrong with a field.
enum FieldFault {
    Value(TextFault),
    BehindQuote,
}

impl From<TextFault> for FieldFault {
    fn from(fault: TextFault) -> FieldFault {
        FieldFault::Value(fault)
    }
}

/// Takes quotes and escapes off a field and appends its value.
struct FieldReader {
    parser: TextParser,
    quote: Option<u8>,
    escape: Option<u8>,
    trims: bool,
    null_literal: Option<Vec<u8>>,
    is_empty_null: bool,
    ignores_errors: bool,
    element_delimiter: Vec<u8>,
    scratch: Vec<u8>,
}

impl FieldReader {
    fn new(settings: &CsvSettings) -> FieldReader {
        FieldReader {
            parser: TextParser::new(settings.zone),
            quote: settings.dialect.quote,
            escape: settings.dialect.escape,
            trims: settings.dialect.trims,
            null_literal: settings.null_literal.clone(),
            is_empty_null: settings.is_empty_null,
            ignores_errors: settings.ignores_errors,
            element_delimiter: settings.element_delimiter.clone(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn push(&mut self, raw: &[u8], column: &mut ColumnBuilder) -> Result<(), FieldFault> {
        let raw = if self.trims { raw.trim_ascii() } else { raw };
        let is_quoted = raw.first().is_some_and(|byte| Some(*byte) == self.quote);
        if !is_quoted && self.escape.is_none() {
            return Ok(self.push_value(raw, column)?);
        }
        if is_quoted && self.escape.is_none() {
            let inner = &raw[1..];
            // The usual field has no quote but the two around it.
            if self
                .quote
                .is_some_and(|quote| memchr::memchr(quote, inner) == Some(inner.len().wrapping_sub(1)))
            {
                return Ok(self.push_value(&inner[..inner.len() - 1], column)?);
            }
        }
        let mut plain = std::mem::take(&mut self.scratch);
        plain.clear();
        let is_well_formed = self.unescape(raw, is_quoted, &mut plain);
        let pushed = if is_well_formed {
            self.push_value(&plain, column).map_err(FieldFault::Value)
        } else {
            Err(FieldFault::BehindQuote)
        };
        self.scratch = plain;
        pushed
    }

    /// Appends the field without its quotes and escapes; returns false if something stands behind the closing quote.
    fn unescape(&self, raw: &[u8], is_quoted: bool, plain: &mut Vec<u8>) -> bool {
        let mut at = usize::from(is_quoted);
        while at < raw.len() {
            let byte = raw[at];
            if Some(byte) == self.escape && at + 1 < raw.len() {
                plain.push(match raw[at + 1] {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'0' => 0,
                    other => other,
                });
                at += 2;
            } else if is_quoted && Some(byte) == self.quote {
                if raw.get(at + 1) != Some(&byte) {
                    return at + 1 == raw.len();
                }
                plain.push(byte);
                at += 2;
            } else {
                plain.push(byte);
                at += 1;
            }
        }
        true
    }

    #[inline]
    fn push_value(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), TextFault> {
        if self.is_null(text) {
            column.push_null();
            return Ok(());
        }
        match column.values() {
            Values::List(..) | Values::Row(_) => self.push_elements(text, column),
            _ => self.parser.push(text, column),
        }
    }

    fn is_null(&self, text: &[u8]) -> bool {
        self.null_literal.as_deref() == Some(text) || self.is_empty_null && text.is_empty()
    }

    /// Appends an array or a nested row, whose elements stand between delimiters of their own.
    fn push_elements(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), TextFault> {
        let delimiter = std::mem::take(&mut self.element_delimiter);
        let pushed = self.push_split(&mut split(text, &delimiter), column);
        self.element_delimiter = delimiter;
        pushed
    }

    fn push_split(
        &mut self,
        elements: &mut dyn Iterator<Item = &[u8]>,
        column: &mut ColumnBuilder,
    ) -> Result<(), TextFault> {
        match column.values() {
            Values::List(ends, items) => {
                for element in elements {
                    self.push_element(element, items)?;
                }
                ends.push(i32::try_from(items.len()).unwrap_or(-1));
            }
            Values::Row(fields) => {
                let expected = fields.len();
                let mut actual = 0;
                for element in elements {
                    if let Some(field) = fields.get_mut(actual) {
                        self.push_element(element, field)?;
                    }
                    actual += 1;
                }
                if actual != expected && !self.ignores_errors {
                    return Err(TextFault::Length { expected, actual });
                }
                fields.iter_mut().skip(actual).for_each(ColumnBuilder::push_null);
            }
            _ => return Err(TextFault::Shape),
        }
        column.mark_valid();
        Ok(())
    }

    fn push_element(&mut self, element: &[u8], column: &mut ColumnBuilder) -> Result<(), TextFault> {
        let len = column.len();
        if self.is_null(element) {
            column.push_null();
            return Ok(());
        }
        match self.parser.push(element, column) {
            Err(_) if self.ignores_errors => {
                column.truncate(len);
                column.push_null();
                Ok(())
            }
            pushed => pushed,
        }
    }
}

/// Splits at a delimiter. An empty text has no parts; without a delimiter the whole text is the only one.
fn split<'t>(text: &'t [u8], delimiter: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
    let mut rest = (!text.is_empty()).then_some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let at = if delimiter.is_empty() { None } else { memchr::memmem::find(text, delimiter) };
        rest = at.map(|at| &text[at + delimiter.len()..]);
        Some(at.map_or(text, |at| &text[..at]))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Csv;
    use crate::error::Result;
    use crate::format::testing::{self, cells};
    use crate::schema::{Column, Field, TypeRoot};

    fn columns() -> Vec<Column> {
        vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("name", TypeRoot::STRING.nullable()),
            Column::physical("price", TypeRoot::Decimal(10, 2).nullable()),
        ]
    }

    fn decode(text: &str, entries: &[(&str, &str)]) -> Result<Vec<String>> {
        let format = testing::decoding(&Csv, &columns(), entries)?;
        testing::decode(&*format, &[0, 1, 2], text.as_bytes()).map(|batch| cells(&batch))
    }

    #[test]
    fn fields_are_read_with_quotes_line_breaks_and_carriage_returns() {
        let text = "1,\"a, \"\"b\"\"\nc\",1.005\r\n\n2,5\" pipe,3\n3,,4";
        assert_eq!(decode(text, &[]).unwrap(), ["1|a, \"b\"\nc|101", "2|5\" pipe|300", "3||400"]);
    }

    #[test]
    fn an_error_names_file_line_and_column() {
        let error = decode("1,\"a\nb\",2\nx,y,3\n", &[]).unwrap_err();
        assert_eq!(error.message(), "Failed to deserialize CSV row 'x,y,3'.");
        let hint = "data.csv, line 13, column 1 ('id' INT): For input string: \"x\"";
        assert_eq!(error.hint_text().and_then(|text| text.strip_suffix(super::NULLING)), Some(hint));
        let empty = decode(",a,2\n", &[]).unwrap_err();
        assert!(empty.hint_text().unwrap().ends_with(super::EMPTY_AS_NULL));
        assert!(decode(",a,2\n", &[("csv.null-literal", "")]).is_ok());
        let header = decode("Id,\"name\",price\n1,a,2\n", &[]).unwrap_err();
        assert!(header.hint_text().unwrap().contains("A line with the names of columns has to go."));
    }

    #[test]
    fn rows_have_as_many_fields_as_there_are_columns() {
        let hint = |text: &str| {
            decode(text, &[])
                .unwrap_err()
                .hint_text()
                .unwrap()
                .strip_suffix(super::SKIPPING)
                .unwrap()
                .to_owned()
        };
        assert!(hint("1,a\n").ends_with("Row length mismatch. 3 fields expected but was 2."));
        assert!(hint("1,a,2,3\n").ends_with("Too many entries: expected at most 3"));
        assert!(hint("1,\"a\"x,2\n").contains("column 2 ('name' STRING)"));
        assert!(hint("1,\"a,2\n").ends_with("Missing closing quote for value"));
        assert_eq!(decode("1,a,2,\n", &[]).unwrap(), ["1|a|200"]);
        assert_eq!(decode("1,a,2,x\n", &[("csv.ignore-trailing-unmappable", "true")]).unwrap(), ["1|a|200"]);
    }

    #[test]
    fn ignored_errors_leave_null_fields_and_drop_broken_rows() {
        let text = "x,a,1\n2,b\n3,c,1,1\n4,\"d\"e,1\n5,f,9999999999\n";
        let rows = decode(text, &[("csv.ignore-parse-errors", "true")]).unwrap();
        assert_eq!(rows, ["NULL|a|100", "2|b|NULL", "5|f|NULL"]);
    }

    #[test]
    fn options_change_the_dialect() {
        let options =
            [("csv.field-delimiter", "\\t"), ("csv.quote-character", "'"), ("csv.null-literal", "n/a")];
        assert_eq!(
            decode("1\t'a\tb'\t2\nn/a\tn/a\tn/a\n", &options).unwrap(),
            ["1|a\tb|200", "NULL|NULL|NULL"]
        );
        let options = [("csv.allow-comments", "true"), ("csv.escape-character", "\\")];
        assert_eq!(
            decode("# \"x\n1,a\\,\\\"b,2\n2,\"c\\\"d\",3\n", &options).unwrap(),
            ["1|a,\"b|200", "2|c\"d|300"]
        );
        let options = [("csv.trim-spaces", "true"), ("csv.empty-string-as-null", "true")];
        assert_eq!(decode(" 1 ,  \"a, b\" , 2\n2, ,3\n", &options).unwrap(), ["1|a, b|200", "2|NULL|300"]);
        assert_eq!(
            decode("1,\"a\",2\n", &[("csv.disable-quote-character", "true")]).unwrap(),
            ["1|\"a\"|200"]
        );
    }

    #[test]
    fn arrays_and_rows_split_at_their_own_delimiter() {
        let columns = [
            Column::physical("a", TypeRoot::Array(Box::new(TypeRoot::Int.nullable())).nullable()),
            Column::physical(
                "r",
                TypeRoot::Row(vec![
                    Field::new("x", TypeRoot::Int.nullable()),
                    Field::new("y", TypeRoot::STRING.nullable()),
                ])
                .nullable(),
            ),
        ];
        let format = testing::decoding(&Csv, &columns, &[("csv.null-literal", "-")]).unwrap();
        let batch = testing::decode(&*format, &[0, 1], b"1;-;3,7;z\n,8;\n-,-\n").unwrap();
        assert_eq!(cells(&batch), ["[1, NULL, 3]|(7, z)", "[]|(8, )", "NULL|NULL"]);
        let error = testing::decode(&*format, &[1], b"1,7\n").unwrap_err();
        assert!(error.hint_text().unwrap().contains("Row length mismatch. 2 fields expected but was 1."));
    }

    #[test]
    fn a_projection_may_reorder_repeat_or_be_empty() {
        let format = testing::decoding(&Csv, &columns(), &[]).unwrap();
        let text = b"1,\"a\n,\",2\n2,b,3\n";
        assert_eq!(cells(&testing::decode(&*format, &[2, 0], text).unwrap()), ["200|1", "300|2"]);
        assert_eq!(testing::decode(&*format, &[], text).unwrap().row_count(), 2);
    }
}
