//! JSON lines to columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use super::JsonSettings;
use super::parser::{Cursor, RawString, SyntaxFault, compact, unescape};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, FlinkClass, Result};
use crate::format::column::{ColumnBuilder, Values};
use crate::format::text::{TextFault, TextParser};
use crate::format::{FrameOrigin, RecordDecoder};
use crate::schema::{DataType, TypeRoot};

/// What the hint of an error says at its end.
const SKIPPING: &str = " ('json.ignore-parse-errors' = 'true' skips such records)";

/// How much of a broken record an error shows.
const SHOWN_MAX: usize = 1_000;

// Limit: how many keys of an object are remembered for the next one.
const KEYS_MAX: usize = 4_096;

/// Decodes the columns of a projection.
pub(super) struct JsonDecoder {
    settings: Arc<JsonSettings>,
    schema: SchemaRef,
    names: Vec<String>,
    /// For each column, the first one of the same name: a projection may want a field twice, and only that one is filled.
    firsts: Vec<usize>,
    columns: Vec<ColumnBuilder>,
    row_count: usize,
    /// The keys of the last object in order, each with its column: the next object most likely looks the same.
    key_order: Vec<(Vec<u8>, Option<usize>)>,
    values: ValueReader,
}

/// What is wrong with a record.
#[derive(Debug)]
enum Fault {
    Syntax(SyntaxFault),
    /// A value that its type does not take: where it is, and of which type the column is.
    Value {
        start: usize,
        end: usize,
        fault: TextFault,
        data_type: DataType,
    },
    Missing(String),
}

impl From<SyntaxFault> for Fault {
    fn from(fault: SyntaxFault) -> Fault {
        Fault::Syntax(fault)
    }
}

impl JsonDecoder {
    pub(super) fn new(settings: Arc<JsonSettings>, projection: &[usize]) -> JsonDecoder {
        let picked = || projection.iter().map(|at| &settings.columns[*at]);
        let schema =
            Schema::new(picked().map(|column| column.data_type.to_field(&column.name)).collect::<Vec<_>>());
        let names: Vec<String> = picked().map(|column| column.name.clone()).collect();
        JsonDecoder {
            schema: Arc::new(schema),
            firsts: names
                .iter()
                .enumerate()
                .map(|(at, name)| names.iter().position(|other| other == name).unwrap_or(at))
                .collect(),
            names,
            columns: picked().map(|column| ColumnBuilder::new(&column.data_type)).collect(),
            row_count: 0,
            key_order: Vec::new(),
            values: ValueReader {
                parser: TextParser::new(settings.zone),
                ignores_errors: settings.ignores_errors,
                requires_fields: settings.requires_fields,
                scratch: Vec::new(),
            },
            settings,
        }
    }

    /// Takes one line: an object, or an array of them.
    fn take_line(&mut self, line: &[u8]) -> Result<(), (Fault, Option<usize>)> {
        let mut cursor = Cursor::new(line);
        let syntax = |fault: SyntaxFault| (Fault::Syntax(fault), None);
        match cursor.peek() {
            None => return Ok(()),
            Some(b'[') => {
                cursor.expect(b'[', "'['").map_err(syntax)?;
                let mut is_first = true;
                while !cursor.take(b']') {
                    if !is_first {
                        cursor.expect(b',', "',' or ']'").map_err(syntax)?;
                    }
                    is_first = false;
                    self.take_object(&mut cursor)?;
                }
            }
            Some(_) => self.take_object(&mut cursor)?,
        }
        match cursor.peek() {
            None => Ok(()),
            Some(_) => Err(syntax(cursor.fault("the end of the line"))),
        }
    }

    fn take_object(&mut self, cursor: &mut Cursor<'_>) -> Result<(), (Fault, Option<usize>)> {
        let syntax = |fault: SyntaxFault| (Fault::Syntax(fault), None);
        let row = self.row_count;
        cursor.expect(b'{', "'{'").map_err(syntax)?;
        let mut number = 0;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key().map_err(syntax)?;
            match self.column_of(number, key) {
                None => cursor.skip_value().map_err(syntax)?,
                Some(at) => {
                    let column = &mut self.columns[at];
                    // Of two fields with the same name the later one counts.
                    column.truncate(row);
                    self.values.push(cursor, column).map_err(|fault| (fault, Some(at)))?;
                }
            }
            number += 1;
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'").map_err(syntax)?;
            }
        }
        for (at, column) in self.columns.iter_mut().enumerate() {
            if column.len() == row {
                if self.settings.requires_fields && self.firsts[at] == at {
                    return Err((Fault::Missing(self.names[at].clone()), Some(at)));
                }
                column.push_null();
            }
        }
        self.row_count += 1;
        Ok(())
    }

    /// Returns the column of the `number`th key of an object.
    #[inline]
    fn column_of(&mut self, number: usize, key: RawString<'_>) -> Option<usize> {
        if let Some((known, column)) = self.key_order.get(number)
            && known == key.inner
        {
            return *column;
        }
        let plain = &mut self.values.scratch;
        plain.clear();
        unescape(key.inner, plain);
        let column = self.names.iter().position(|name| name.as_bytes() == plain.as_slice());
        match self.key_order.get_mut(number) {
            Some((known, known_column)) => {
                known.clear();
                known.extend_from_slice(key.inner);
                *known_column = column;
            }
            None if number < KEYS_MAX => self.key_order.push((key.inner.to_owned(), column)),
            None => {}
        }
        column
    }

    fn error(
        &self,
        data: &[u8],
        line: (usize, usize),
        fault: (Fault, Option<usize>),
        origin: FrameOrigin<'_>,
    ) -> Error {
        let text = &data[line.0..line.1];
        let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]);
        let dots = if text.len() > SHOWN_MAX { "…" } else { "" };
        let mut place = origin.place(data, line.0);
        if let Some(at) = fault.1 {
            let column = self.settings.columns.iter().find(|column| column.name == self.names[at]);
            let data_type = column.map(|column| column.data_type.to_string()).unwrap_or_default();
            place = format!("{place}, field '{}' ({data_type})", self.names[at]);
        }
        let cause = match &fault.0 {
            Fault::Syntax(fault) => {
                let column = String::from_utf8_lossy(&text[..fault.at.min(text.len())]).chars().count() + 1;
                Error::data(format!("Expected {} at column {column}", fault.expected))
            }
            Fault::Value { start, end, fault, data_type } => {
                let class = if *fault == TextFault::Number {
                    FlinkClass::NUMBER_FORMAT
                } else {
                    FlinkClass::DATE_TIME
                };
                let value = &text[*start..*end];
                let inner =
                    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
                Error::data(fault.message(inner, data_type)).class(class)
            }
            Fault::Missing(name) => {
                Error::data(format!("Could not find field with name '{name}'.")).class(FlinkClass::RUNTIME)
            }
        };
        Error::data(format!("Failed to deserialize JSON '{shown}{dots}'."))
            .class(FlinkClass::IO)
            .hint(format!("{place}: {}{SKIPPING}", cause.message()))
            .caused_by(cause)
    }

    fn take_batch(&mut self) -> Result<ChangelogBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let array = self.columns[at].finish()?;
            let first = self.firsts[at];
            arrays.push(if first < at { Arc::clone(&arrays[first]) } else { array });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.row_count)));
        Ok(ChangelogBatch::inserts(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            arrays,
            &options,
        )?))
    }

    fn truncate(&mut self, row_count: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(row_count));
        self.row_count = row_count;
    }
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch> {
        let mut start = 0;
        while start < data.len() {
            let end = memchr::memchr(b'\n', &data[start..]).map_or(data.len(), |at| start + at);
            let before = self.row_count;
            let line = &data[start..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Err(fault) = self.take_line(line) {
                // A line is taken whole or not at all, also when it is an array of which only one object is wrong.
                self.truncate(before);
                if !self.settings.ignores_errors {
                    self.truncate(0);
                    return Err(self.error(data, (start, start + line.len()), fault, origin));
                }
            }
            start = end + 1;
        }
        self.take_batch()
    }
}

/// Appends JSON values to columns.
struct ValueReader {
    parser: TextParser,
    ignores_errors: bool,
    requires_fields: bool,
    scratch: Vec<u8>,
}

impl ValueReader {
    /// Appends the value at the cursor; one that the column's type does not take is NULL where errors are ignored.
    fn push(&mut self, cursor: &mut Cursor<'_>, column: &mut ColumnBuilder) -> Result<(), Fault> {
        let Some(first) = cursor.peek() else { return Err(cursor.fault("a value").into()) };
        let (start, len) = (cursor.at(), column.len());
        match self.push_strictly(first, cursor, column) {
            Err(Fault::Value { .. }) if self.ignores_errors => {
                column.truncate(len);
                column.push_null();
                cursor.rewind(start);
                Ok(cursor.skip_value()?)
            }
            pushed => pushed,
        }
    }

    #[inline]
    fn push_strictly(
        &mut self,
        first: u8,
        cursor: &mut Cursor<'_>,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let start = cursor.at();
        match first {
            b'"' => {
                let raw = cursor.string()?;
                if !raw.is_escaped {
                    return self.push_text(raw.inner, column, start, cursor.at());
                }
                let mut plain = std::mem::take(&mut self.scratch);
                plain.clear();
                unescape(raw.inner, &mut plain);
                let pushed = self.push_text(&plain, column, start, cursor.at());
                self.scratch = plain;
                pushed
            }
            b'{' | b'[' => self.push_nested(first, cursor, column),
            _ => {
                let token = cursor.token()?;
                if token == b"null" {
                    column.push_null();
                    return Ok(());
                }
                // Jackson cuts the fraction off where a whole number is wanted and a number stands there.
                let cut = match column.data_type().root {
                    TypeRoot::Int | TypeRoot::BigInt => cut_fraction(token),
                    _ => None,
                };
                match cut {
                    Some(whole) => self.push_text(whole.to_string().as_bytes(), column, start, cursor.at()),
                    None => self.push_text(token, column, start, cursor.at()),
                }
            }
        }
    }

    #[inline]
    fn push_text(
        &mut self,
        text: &[u8],
        column: &mut ColumnBuilder,
        start: usize,
        end: usize,
    ) -> Result<(), Fault> {
        self.parser.push(text, column).map_err(|fault| Fault::Value {
            start,
            end,
            fault,
            data_type: column.data_type().clone(),
        })
    }

    fn push_nested(
        &mut self,
        first: u8,
        cursor: &mut Cursor<'_>,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let (start, len) = (cursor.at(), column.len());
        let (data_type, values) = column.parts();
        match values {
            Values::Row(fields) if first == b'{' => {
                if let TypeRoot::Row(declared) = &data_type.root {
                    self.push_row(cursor, declared, fields, len)?;
                }
            }
            Values::List(ends, items) if first == b'[' => {
                cursor.expect(b'[', "'['")?;
                let mut is_end = cursor.take(b']');
                while !is_end {
                    self.push(cursor, items)?;
                    is_end = cursor.take(b']');
                    if !is_end {
                        cursor.expect(b',', "',' or ']'")?;
                    }
                }
                ends.push(i32::try_from(items.len()).unwrap_or(-1));
            }
            // Limit: a key that comes twice stays in the map twice.
            Values::Map(ends, keys, counts) if first == b'{' => {
                cursor.expect(b'{', "'{'")?;
                let mut is_end = cursor.take(b'}');
                while !is_end {
                    let key = cursor.key()?;
                    self.scratch.clear();
                    unescape(key.inner, &mut self.scratch);
                    keys.push_bytes(&self.scratch);
                    self.push(cursor, counts)?;
                    is_end = cursor.take(b'}');
                    if !is_end {
                        cursor.expect(b',', "',' or '}'")?;
                    }
                }
                ends.push(i32::try_from(keys.len()).unwrap_or(-1));
            }
            Values::Bytes(..) if data_type.root.is_character() => {
                cursor.skip_value()?;
                self.scratch.clear();
                compact(cursor.since(start), &mut self.scratch);
                column.push_bytes(&self.scratch);
                return Ok(());
            }
            _ => {
                let data_type = data_type.clone();
                cursor.skip_value()?;
                return Err(Fault::Value { start, end: cursor.at(), fault: TextFault::Shape, data_type });
            }
        }
        column.mark_valid();
        Ok(())
    }

    fn push_row(
        &mut self,
        cursor: &mut Cursor<'_>,
        declared: &[crate::schema::Field],
        fields: &mut [ColumnBuilder],
        len: usize,
    ) -> Result<(), Fault> {
        cursor.expect(b'{', "'{'")?;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key()?;
            let position = if key.is_escaped {
                self.scratch.clear();
                unescape(key.inner, &mut self.scratch);
                declared.iter().position(|field| field.name.as_bytes() == self.scratch)
            } else {
                declared.iter().position(|field| field.name.as_bytes() == key.inner)
            };
            match position.and_then(|at| fields.get_mut(at)) {
                Some(field) => {
                    field.truncate(len);
                    self.push(cursor, field)?;
                }
                None => cursor.skip_value()?,
            }
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'")?;
            }
        }
        for (field, declared) in fields.iter_mut().zip(declared) {
            if field.len() == len {
                if self.requires_fields {
                    return Err(Fault::Missing(declared.name.clone()));
                }
                field.push_null();
            }
        }
        Ok(())
    }
}

/// Returns the whole part of a number that has a fraction or an exponent.
fn cut_fraction(token: &[u8]) -> Option<i64> {
    memchr::memchr3(b'.', b'e', b'E', token)?;
    let value = crate::format::text::parse_f64(token)?.trunc();
    (value.abs() < 9.2e18).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use crate::error::Result;
    use crate::format::testing::{self, cells};
    use crate::schema::{Column, Field, TypeRoot};

    fn columns() -> Vec<Column> {
        vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("name", TypeRoot::STRING.nullable()),
            Column::physical("ok", TypeRoot::Boolean.nullable()),
        ]
    }

    fn decode(columns: &[Column], text: &str, entries: &[(&str, &str)]) -> Result<Vec<String>> {
        let format = testing::decoding(&Json, columns, entries)?;
        let all: Vec<usize> = (0..columns.len()).collect();
        testing::decode(&*format, &all, text.as_bytes()).map(|batch| cells(&batch))
    }

    #[test]
    fn fields_are_found_by_their_exact_name() {
        let text = "{\"id\":1,\"name\":\"a\\u00e4\\\"\",\"ok\":true}\n\n{\"x\":{\"id\":9},\"ok\":false,\"ID\":7}\r\n{\"n\\u0061me\":\"b\",\"id\":1,\"id\":2}";
        assert_eq!(decode(&columns(), text, &[]).unwrap(), ["1|aä\"|true", "NULL|NULL|false", "2|b|NULL"]);
    }

    #[test]
    fn scalars_convert_as_in_jackson() {
        let text = r#"{"id":" 12 ","name":12.50,"ok":"TRUE"}
{"id":12.9,"name":{"a": [1, " x"]},"ok":1}
{"id":null,"name":[ ],"ok":"yes"}
"#;
        assert_eq!(
            decode(&columns(), text, &[]).unwrap(),
            ["12|12.50|true", "12|{\"a\":[1,\" x\"]}|false", "NULL|[]|false"]
        );
    }

    #[test]
    fn arrays_at_the_top_are_several_rows() {
        assert_eq!(decode(&columns(), "[{\"id\":1},{\"id\":2}]\n[]\n{\"id\":3}\n", &[]).unwrap().len(), 3);
        let ignore = [("json.ignore-parse-errors", "true")];
        assert_eq!(
            decode(&columns(), "[{\"id\":1},{\"id\":2]\n{\"id\":3}\n", &ignore).unwrap(),
            ["3|NULL|NULL"]
        );
    }

    #[test]
    fn nested_types_are_filled() {
        let row = TypeRoot::Row(vec![
            Field::new("x", TypeRoot::Int.nullable()),
            Field::new("y", TypeRoot::Array(Box::new(TypeRoot::STRING.nullable())).nullable()),
        ]);
        let map = TypeRoot::Map(
            Box::new(TypeRoot::STRING.not_null()),
            Box::new(TypeRoot::Decimal(5, 1).nullable()),
        );
        let columns = [
            Column::physical("r", row.nullable()),
            Column::physical("m", map.nullable()),
            Column::physical("u", TypeRoot::Multiset(Box::new(TypeRoot::STRING.nullable())).nullable()),
        ];
        let text = r#"{"r":{"y":["a",null,3],"z":1},"m":{"k":1.25,"l":null},"u":{"e":2}}
{"r":{"x":5,"y":[]},"m":{}}
"#;
        assert_eq!(
            decode(&columns, text, &[]).unwrap(),
            ["(NULL, [a, NULL, 3])|{k=13, l=NULL}|{e=2}", "(5, [])|{}|NULL"]
        );
        let ignore = [("json.ignore-parse-errors", "true")];
        let text = "{\"r\":{\"x\":\"no\",\"y\":[\"a\"]},\"m\":[1]}\n{\"r\":{\"x\":1,\"y\":[\"a\",}}\n";
        assert_eq!(decode(&columns, text, &ignore).unwrap(), ["(NULL, [a])|NULL|NULL"]);
    }

    #[test]
    fn temporal_values_and_bytes() {
        let columns = [
            Column::physical("d", TypeRoot::Date.nullable()),
            Column::physical("t", TypeRoot::Timestamp(3).nullable()),
            Column::physical("z", TypeRoot::TimestampLtz(3).nullable()),
            Column::physical("b", TypeRoot::BYTES.nullable()),
        ];
        let text =
            r#"{"d":"2020-01-02","t":"2020-01-02T03:04:05.678","z":"2020-01-02 03:04:05Z","b":"aGk="}"#;
        assert_eq!(
            decode(&columns, text, &[]).unwrap(),
            ["2020-01-02|2020-01-02T03:04:05.678|2020-01-02T03:04:05Z|6869"]
        );
    }

    #[test]
    fn an_error_names_file_line_and_field() {
        let error = decode(&columns(), "{\"id\":1}\n{\"id\":\"x\"}\n", &[]).unwrap_err();
        assert_eq!(error.message(), "Failed to deserialize JSON '{\"id\":\"x\"}'.");
        assert_eq!(
            error.hint_text().and_then(|text| text.strip_suffix(super::SKIPPING)),
            Some("data.csv, line 12, field 'id' (INT): For input string: \"x\"")
        );
        let hint = |text: &str, entries: &[(&str, &str)]| {
            decode(&columns(), text, entries)
                .unwrap_err()
                .hint_text()
                .unwrap()
                .strip_suffix(super::SKIPPING)
                .unwrap()
                .to_owned()
        };
        assert_eq!(hint("{\"id\":1", &[]), "data.csv, line 11: Expected ',' or '}' at column 8");
        assert_eq!(hint("{\"id\":1} x", &[]), "data.csv, line 11: Expected the end of the line at column 10");
        assert_eq!(hint("3", &[]), "data.csv, line 11: Expected '{' at column 1");
        let missing = hint("{\"id\":1}", &[("json.fail-on-missing-field", "true")]);
        assert!(missing.ends_with("Could not find field with name 'name'."), "{missing}");
    }

    #[test]
    fn a_projection_may_reorder_repeat_or_be_empty() {
        let format = testing::decoding(&Json, &columns(), &[]).unwrap();
        let text = b"{\"id\":1,\"name\":\"a\"}\n{\"name\":\"b\",\"id\":2}\n";
        assert_eq!(cells(&testing::decode(&*format, &[1, 0, 1], text).unwrap()), ["a|1|a", "b|2|b"]);
        assert_eq!(testing::decode(&*format, &[], text).unwrap().row_count(), 2);
    }
}
