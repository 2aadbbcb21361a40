//! JSON lines to columns.

use std::sync::Arc;

use super::JsonSettings;
use super::fault::{RowFault, shown};
use super::parser::Cursor;
use super::row::RowReader;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, FlinkClass, Result};
use crate::format::{FrameOrigin, RecordDecoder, lines};

/// Decodes the columns of a projection.
pub(super) struct JsonDecoder {
    settings: Arc<JsonSettings>,
    rows: RowReader,
}

impl JsonDecoder {
    pub(super) fn new(settings: Arc<JsonSettings>, projection: &[usize]) -> JsonDecoder {
        JsonDecoder { rows: settings.row_reader(projection), settings }
    }

    /// Takes one line: an object, or an array of them.
    #[inline]
    fn take_line(&mut self, line: &[u8]) -> Result<(), RowFault> {
        let mut cursor = Cursor::new(line);
        match cursor.peek() {
            None => return Ok(()),
            Some(b'[') => {
                cursor.expect(b'[', "'['")?;
                let mut is_first = true;
                while !cursor.take(b']') {
                    if !is_first {
                        cursor.expect(b',', "',' or ']'")?;
                    }
                    is_first = false;
                    self.rows.take(&mut cursor)?;
                }
            }
            Some(_) => self.rows.take(&mut cursor)?,
        }
        cursor.expect_end()?;
        Ok(())
    }

    fn error(
        &self,
        data: &[u8],
        (start, end): (usize, usize),
        fault: &RowFault,
        origin: FrameOrigin<'_>,
    ) -> Error {
        let text = &data[start..end];
        let mut place = origin.place(data, start);
        if let Some(column) = fault.column {
            place = format!("{place}, {}", self.rows.describe(column));
        }
        let cause = fault.fault.to_error(text);
        Error::data(format!("Failed to deserialize JSON '{}'.", shown(text)))
            .class(FlinkClass::IO)
            .hint(format!("{place}: {}{}", cause.message(), self.settings.skipping()))
            .caused_by(cause)
    }
}

impl RecordDecoder for JsonDecoder {
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch> {
        for (start, line) in lines(data) {
            let before = self.rows.row_count();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Err(fault) = self.take_line(line) {
                // A line is taken whole or not at all, also when it is an array of which only one object is wrong.
                self.rows.truncate(before);
                if !self.settings.ignores_errors {
                    self.rows.truncate(0);
                    return Err(self.error(data, (start, start + line.len()), &fault, origin));
                }
            }
        }
        self.rows.take_batch(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use crate::error::Result;
    use crate::format::testing::{self, cells};
    use crate::schema::{Column, Field, TypeRoot};

    /// What the hint of an error says at its end.
    const SKIPPING: &str = " ('json.ignore-parse-errors' = 'true' skips such records)";

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
            error.hint_text().and_then(|text| text.strip_suffix(SKIPPING)),
            Some("data.csv, line 12, field 'id' (INT): For input string: \"x\"")
        );
        let hint = |text: &str, entries: &[(&str, &str)]| {
            decode(&columns(), text, entries)
                .unwrap_err()
                .hint_text()
                .unwrap()
                .strip_suffix(SKIPPING)
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
