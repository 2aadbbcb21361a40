//! Objects to rows. An object that looks like the one before is read by comparing the text between its values; every other one
//! key by key, which defines what the fast way must give: its values are appended by the same code, and whatever it does not
//! expect is taken back and read again.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};

use super::fault::{Fault, RowFault};
use super::parser::{Cursor, RawString, skip_plain, unescape};
use super::shape::ShapeGuess;
use super::value::ValueReader;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::format::column::ColumnBuilder;
use crate::schema::Column;

// Limit: how many keys of an object are remembered for the next one.
const KEYS_MAX: usize = 4_096;

/// Appends objects as rows to the columns of a projection.
pub(in crate::format) struct RowReader {
    schema: SchemaRef,
    names: Vec<String>,
    /// For each column, the first one of the same name: a projection may want a field twice, and only that one is filled.
    firsts: Vec<usize>,
    columns: Vec<ColumnBuilder>,
    row_count: usize,
    requires_fields: bool,
    /// The keys of the last object in order, each with its column: the next object most likely has the same.
    key_order: Vec<(Vec<u8>, Option<usize>)>,
    guess: ShapeGuess,
    /// Whether objects may be guessed; tests compare both ways.
    pub(super) is_speculative: bool,
    values: ValueReader,
}

impl RowReader {
    /// Creates a reader of some columns; with `requires_fields` an object must have all of them.
    pub(in crate::format) fn new<'c>(
        columns: impl Iterator<Item = &'c Column> + Clone,
        values: ValueReader,
        requires_fields: bool,
    ) -> RowReader {
        let fields: Vec<_> = columns.clone().map(|column| column.data_type.to_field(&column.name)).collect();
        let names: Vec<String> = columns.clone().map(|column| column.name.clone()).collect();
        RowReader {
            schema: Arc::new(Schema::new(fields)),
            firsts: names
                .iter()
                .enumerate()
                .map(|(at, name)| names.iter().position(|other| other == name).unwrap_or(at))
                .collect(),
            names,
            columns: columns.map(|column| ColumnBuilder::new(&column.data_type)).collect(),
            row_count: 0,
            requires_fields,
            key_order: Vec::new(),
            guess: ShapeGuess::default(),
            is_speculative: true,
            values,
        }
    }

    /// Returns the number of rows since the last batch.
    pub(in crate::format) fn row_count(&self) -> usize {
        self.row_count
    }

    /// Returns the name of a column and its type, for errors.
    pub(in crate::format) fn describe(&self, column: usize) -> String {
        format!("field '{}' ({})", self.names[column], self.columns[column].data_type())
    }

    /// Cuts the rows back to a number of them.
    pub(in crate::format) fn truncate(&mut self, row_count: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(row_count));
        self.row_count = row_count;
    }

    /// Appends the object at the cursor as a row. After an error, part of it is there: the caller must cut it off.
    #[inline]
    pub(in crate::format) fn take(&mut self, cursor: &mut Cursor<'_>) -> Result<(), RowFault> {
        cursor.peek();
        let start = cursor.at();
        match self.take_expected(cursor) {
            Some(true) => {
                self.guess.hit();
                return Ok(());
            }
            Some(false) => {
                self.guess.miss();
                self.truncate(self.row_count);
                cursor.rewind(start);
            }
            None => {}
        }
        self.take_exactly(cursor)
    }

    /// Appends the object if it looks as expected; returns None if nothing is expected.
    fn take_expected(&mut self, cursor: &mut Cursor<'_>) -> Option<bool> {
        if !self.is_speculative {
            return None;
        }
        let shape = self.guess.expected()?;
        let text = cursor.text();
        let mut at = cursor.at();
        for step in shape.steps() {
            let Some(value) = shape.pass(&step.lead, text, at) else { return Some(false) };
            at = value;
            let end = match step.column {
                Some(column) => self.values.push_plain(text, at, &mut self.columns[column as usize]),
                None => skip_plain(text, at),
            };
            at = match end {
                Some(end) => end,
                None => {
                    cursor.rewind(at);
                    let is_taken = match step.column {
                        Some(column) => self.values.push(cursor, &mut self.columns[column as usize]).is_ok(),
                        None => cursor.skip_value().is_ok(),
                    };
                    if !is_taken {
                        return Some(false);
                    }
                    cursor.at()
                }
            };
        }
        let Some(end) = shape.pass(shape.tail(), text, at) else { return Some(false) };
        cursor.rewind(end);
        if shape.column_count() == self.columns.len() {
            self.row_count += 1;
            return Some(true);
        }
        Some(self.complete().is_ok())
    }

    /// Appends the object key by key, and learns what it looks like.
    fn take_exactly(&mut self, cursor: &mut Cursor<'_>) -> Result<(), RowFault> {
        let row = self.row_count;
        self.guess.begin();
        let mut behind = cursor.at();
        cursor.expect(b'{', "'{'")?;
        let mut number = 0;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key()?;
            let target = self.column_of(number, key);
            cursor.peek();
            self.guess.learn(cursor.since(behind), target);
            match target {
                None => cursor.skip_value()?,
                Some(at) => {
                    let column = &mut self.columns[at];
                    if column.len() > row {
                        // Of two fields with the same name the later one counts.
                        column.truncate(row);
                        self.guess.give_up();
                    }
                    self.values.push(cursor, column).map_err(|fault| RowFault { fault, column: Some(at) })?;
                }
            }
            behind = cursor.at();
            number += 1;
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'")?;
            }
        }
        self.guess.finish(cursor.since(behind));
        self.complete()
    }

    /// Gives the columns for which there was no field their NULL.
    #[inline]
    fn complete(&mut self) -> Result<(), RowFault> {
        let row = self.row_count;
        for (at, column) in self.columns.iter_mut().enumerate() {
            if column.len() == row {
                if self.requires_fields && self.firsts[at] == at {
                    let fault = Fault::Missing(self.names[at].clone());
                    return Err(RowFault { fault, column: Some(at) });
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
        let mut plain = Vec::new();
        unescape(key.inner, &mut plain);
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

    /// Returns the rows as columns and starts anew.
    ///
    /// # Errors
    /// A column has more than two gigabytes.
    pub(in crate::format) fn finish(&mut self) -> Result<(SchemaRef, Vec<ArrayRef>)> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let array = self.columns[at].finish()?;
            let first = self.firsts[at];
            arrays.push(if first < at { Arc::clone(&arrays[first]) } else { array });
        }
        self.row_count = 0;
        Ok((Arc::clone(&self.schema), arrays))
    }

    /// Returns the rows as a batch and starts anew; without kinds all are inserts.
    ///
    /// # Errors
    /// A column has more than two gigabytes.
    pub(in crate::format) fn take_batch(&mut self, kinds: Option<Vec<u8>>) -> Result<ChangelogBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.row_count));
        let (schema, arrays) = self.finish()?;
        let rows = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        Ok(ChangelogBatch::with_kind_bytes(rows, kinds.map(Buffer::from_vec)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::json::{Json, JsonSettings};
    use crate::format::testing::{self, RandomTable, cells};
    use proptest::prelude::*;

    /// Reads lines of one object each and returns what came of each and the rows at the end.
    fn read(
        settings: &JsonSettings,
        projection: &[usize],
        lines: &[Vec<u8>],
        is_speculative: bool,
    ) -> (Vec<String>, Vec<String>) {
        let mut reader = settings.row_reader(projection);
        reader.is_speculative = is_speculative;
        let mut outcomes = Vec::new();
        for line in lines {
            let mut cursor = Cursor::new(line);
            let before = reader.row_count();
            match reader.take(&mut cursor) {
                Ok(()) => outcomes.push(format!("ends at {}", cursor.at())),
                Err(fault) => {
                    reader.truncate(before);
                    outcomes.push(format!("{:?} {}", fault.column, fault.fault.to_error(line).message()));
                }
            }
        }
        (outcomes, cells(&reader.take_batch(None).unwrap()))
    }

    /// How the lines of a table are broken, or only written otherwise.
    fn mutate(line: &str, seed: u64) -> Vec<u8> {
        let at = |count: usize| (seed >> 8) as usize % count.max(1);
        let mut bytes = line.as_bytes().to_vec();
        match seed % 13 {
            0 => bytes.truncate(at(bytes.len())),
            1 => {
                let others = b"{}[]\",:0-9.eEnx\\ ";
                let at = at(bytes.len());
                bytes[at] = others[(seed >> 40) as usize % others.len()];
            }
            2 => {
                let at = at(bytes.len());
                bytes.remove(at);
            }
            3 => bytes = line.replacen("null", "\"\"", 1).into_bytes(),
            4 => bytes = line.replacen(':', " : ", 1 + at(3)).into_bytes(),
            5 => bytes = line.replacen("\"c1\":", "\"x\":[1,{\"y\":\"z\"}],\"c1\":", 1).into_bytes(),
            6 => bytes = line.replacen("\"c1\"", "\"c0\"", 1).into_bytes(),
            7 => bytes = line.replacen("c1", "c9", 1).into_bytes(),
            8 => bytes = line.replacen("\"c1\"", "\"\\u0063\\u0031\"", 1).into_bytes(),
            9 => bytes = line.replacen(':', ":1", 1).into_bytes(),
            _ => {}
        }
        bytes
    }

    fn lines(table: &RandomTable) -> Vec<String> {
        let encoding = testing::encoding(&Json, &table.columns, &[]).unwrap();
        let text = testing::encode(&*encoding, &table.rows).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn guessing_never_changes_what_a_record_gives(
            table in testing::random_table(true),
            seeds in prop::collection::vec(any::<u64>(), 20),
            option in prop::sample::select(vec!["", "json.ignore-parse-errors", "json.fail-on-missing-field"]),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let entries = [(option, "true")];
            let options = crate::options::TableOptions::new(
                "test",
                entries.iter().filter(|(key, _)| !key.is_empty()).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            );
            let ctx = crate::format::FormatContext {
                columns: &table.columns,
                options: &options,
                prefix: "json.",
                zone: chrono_tz::Tz::UTC,
            };
            let settings = JsonSettings::new(&ctx).unwrap();
            let lines: Vec<Vec<u8>> = lines(&table)
                .iter()
                .zip(&seeds)
                .map(|(line, seed)| mutate(line, *seed))
                .collect();
            let projection: Vec<usize> = picks.iter().map(|pick| pick.index(table.columns.len())).collect();
            prop_assert_eq!(
                read(&settings, &projection, &lines, true),
                read(&settings, &projection, &lines, false)
            );
        }
    }

    #[test]
    fn records_of_one_shape_are_guessed_and_others_are_read_all_the_same() {
        let columns = [
            Column::physical("a", crate::schema::TypeRoot::BigInt.nullable()),
            Column::physical("b", crate::schema::TypeRoot::STRING.nullable()),
        ];
        let options = crate::options::TableOptions::new("test", std::collections::BTreeMap::new());
        let ctx = crate::format::FormatContext {
            columns: &columns,
            options: &options,
            prefix: "json.",
            zone: chrono_tz::Tz::UTC,
        };
        let mut reader = JsonSettings::new(&ctx).unwrap().row_reader(&[0, 1]);
        let mut guessed = |text: &str| {
            let mut cursor = Cursor::new(text.as_bytes());
            let outcome = reader.take_expected(&mut cursor);
            if outcome != Some(true) {
                reader.truncate(reader.row_count);
                cursor.rewind(0);
                reader.take_exactly(&mut cursor).unwrap();
            }
            outcome
        };
        assert_eq!(guessed(r#"{"a": 1, "x": [2], "b": "c"}"#), None);
        assert_eq!(guessed(r#"{"a": -20, "x": [], "b": "\u0063"}"#), Some(true));
        assert_eq!(guessed(r#"{"a": null, "x": 2.5, "b": "d"}"#), Some(true));
        assert_eq!(guessed(r#"{"b": "e", "a": 4}"#), Some(false));
        assert_eq!(guessed(r#"{"b": "f", "a": 12.9}"#), Some(true));
        assert_eq!(guessed(r#"{"b": "g"}"#), Some(false));
        assert_eq!(
            cells(&reader.take_batch(None).unwrap()),
            ["1|c", "-20|c", "NULL|d", "4|e", "12|f", "NULL|g"]
        );
    }
}
