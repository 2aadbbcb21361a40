//! Change events to rows with kinds. Payloads go into the columns while the envelope is read, although only its `op`, which comes
//! last, says what they are: an event whose payloads turn out not to be the rows in their order is read a second time. Where nobody
//! reads `-U`, `before` is skipped first, because few events are deletes.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::Schema;

use super::metadata::{MetadataPlaces, MetadataReader, Property};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::{Error, FlinkClass, Result};
use crate::format::json::{Cursor, JsonSettings, Piece, RowFault, RowReader, ShapeGuess, shown, unescape};
use crate::format::{FrameOrigin, RecordDecoder, lines};

/// Decodes events, one a line.
pub(super) struct DebeziumDecoder {
    settings: Arc<JsonSettings>,
    has_schema: bool,
    rows: RowReader,
    /// One kind per row.
    kinds: Vec<u8>,
    metadata: Option<MetadataReader>,
    /// Skips `source`, whose fields are always the same: a reader of no columns.
    source: RowReader,
    /// Skips `before` in the same way, where nobody reads `-U`.
    before: Option<RowReader>,
    /// What envelopes look like: all but what is in them stays the same.
    guess: ShapeGuess,
    /// The last schema: it takes most of a record and hardly ever changes.
    schema: Vec<u8>,
}

/// A field of an envelope that means something.
#[derive(Debug, Clone, Copy)]
enum Field {
    Before,
    After,
    Op,
    Source,
    TsMs,
}

/// Their names.
const FIELDS: [(&[u8], Field); 5] = [
    (b"before", Field::Before),
    (b"after", Field::After),
    (b"op", Field::Op),
    (b"source", Field::Source),
    (b"ts_ms", Field::TsMs),
];

/// The row before or after a change.
#[derive(Debug, Clone, Copy)]
struct Image {
    /// Where it is in the record.
    at: usize,
    /// The number of the row as which it was read; None if it was skipped.
    row: Option<usize>,
}

/// What an envelope holds.
#[derive(Debug, Default)]
struct Envelope {
    before: Option<Image>,
    after: Option<Image>,
    /// Where the value of `op` is.
    op: Option<(usize, usize)>,
    places: MetadataPlaces,
}

/// What is wrong with an event.
#[derive(Debug)]
enum EventFault {
    /// It is no JSON, or a value does not fit its column.
    Json(RowFault),
    /// The rows before the change are missing; of which operation.
    NoBefore(&'static str),
    /// A field of the envelope is missing.
    NoField(&'static str),
    /// An operation that is not known.
    UnknownOp(String),
}

impl<F: Into<RowFault>> From<F> for EventFault {
    fn from(fault: F) -> EventFault {
        EventFault::Json(fault.into())
    }
}

impl DebeziumDecoder {
    pub(super) fn new(
        settings: Arc<JsonSettings>,
        has_schema: bool,
        projection: &[usize],
        properties: Vec<Property>,
    ) -> DebeziumDecoder {
        let metadata = (!properties.is_empty()).then(|| MetadataReader::new(&settings, properties));
        DebeziumDecoder {
            has_schema,
            rows: settings.row_reader(projection),
            kinds: Vec::new(),
            metadata,
            source: settings.row_reader(&[]),
            before: None,
            guess: ShapeGuess::default(),
            schema: Vec::new(),
            settings,
        }
    }

    /// Appends the rows of one line. After an error, part of them is there.
    fn take_line(&mut self, line: &[u8]) -> Result<(), EventFault> {
        let mut cursor = Cursor::new(line);
        // A tombstone, which deletes a key from a compacted topic and is no change of its own.
        if cursor.peek().is_none() {
            return Ok(());
        }
        let first = self.rows.row_count();
        let mut envelope = Envelope::default();
        if self.has_schema {
            self.read_record(&mut cursor, &mut envelope)?;
        } else {
            self.read_envelope(&mut cursor, &mut envelope)?;
        }
        cursor.expect_end()?;
        let (images, count) = images(line, &envelope)?;
        let is_half = self.before.is_some() && count == 2;
        let images = &images[usize::from(is_half)..count];
        let count = images.len();
        let is_in_place = self.rows.row_count() == first + count
            && images.iter().enumerate().all(|(number, (image, _))| image.row == Some(first + number));
        if !is_in_place {
            self.rows.truncate(first);
            for (image, _) in images {
                cursor.rewind(image.at);
                self.rows.take(&mut cursor)?;
            }
        }
        for (_, kind) in images {
            self.kinds.push(*kind as u8);
            if let Some(metadata) = &mut self.metadata {
                metadata.push(line, envelope.places)?;
            }
        }
        Ok(())
    }

    /// Reads a record of schema and payload.
    fn read_record(&mut self, cursor: &mut Cursor<'_>, envelope: &mut Envelope) -> Result<(), EventFault> {
        let mut has_payload = false;
        let mut schema = None;
        cursor.expect(b'{', "'{'")?;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key()?;
            match key.inner {
                b"schema" => {
                    cursor.peek();
                    schema = Some(cursor.at());
                    self.skip_schema(cursor)?;
                }
                b"payload" => {
                    has_payload = cursor.peek() == Some(b'{');
                    *envelope = Envelope::default();
                    if has_payload {
                        self.read_envelope(cursor, envelope)?;
                    } else {
                        cursor.skip_value()?;
                    }
                }
                _ => cursor.skip_value()?,
            }
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'")?;
            }
        }
        envelope.places.schema = schema;
        if has_payload { Ok(()) } else { Err(EventFault::NoField("payload")) }
    }

    /// Skips the schema, without parsing one that is the last one again.
    fn skip_schema(&mut self, cursor: &mut Cursor<'_>) -> Result<(), EventFault> {
        let start = cursor.at();
        // Only an object says itself where it ends.
        if self.schema.ends_with(b"}") && cursor.text()[start..].starts_with(&self.schema) {
            cursor.rewind(start + self.schema.len());
            return Ok(());
        }
        cursor.skip_value()?;
        self.schema.clear();
        self.schema.extend_from_slice(cursor.since(start));
        Ok(())
    }

    /// Reads an envelope; its rows are appended in the order in which they stand in the text.
    fn read_envelope(&mut self, cursor: &mut Cursor<'_>, envelope: &mut Envelope) -> Result<(), EventFault> {
        cursor.peek();
        let (start, first) = (cursor.at(), self.rows.row_count());
        match self.read_expected(cursor, envelope) {
            Some(true) => {
                self.guess.hit();
                return Ok(());
            }
            Some(false) => {
                self.guess.miss();
                self.rows.truncate(first);
                cursor.rewind(start);
                *envelope = Envelope::default();
            }
            None => {}
        }
        self.read_exactly(cursor, envelope)
    }

    /// Reads an envelope if it looks like the last one; returns None if nothing is expected.
    fn read_expected(&mut self, cursor: &mut Cursor<'_>, envelope: &mut Envelope) -> Option<bool> {
        self.guess.expected()?;
        let mut number = 0;
        while let Some(step) = self.guess.shape().steps().get(number).copied() {
            let field = step.column.map(|at| FIELDS[at as usize].1);
            if !self.pass(step.lead, cursor) || self.take_field(field, cursor, envelope).is_err() {
                return Some(false);
            }
            number += 1;
        }
        Some(self.pass(*self.guess.shape().tail(), cursor))
    }

    /// Goes on behind a piece of the shape, if it is next.
    #[inline]
    fn pass(&self, piece: Piece, cursor: &mut Cursor<'_>) -> bool {
        let end = self.guess.shape().pass(&piece, cursor.text(), cursor.at());
        end.map(|end| cursor.rewind(end)).is_some()
    }

    /// Reads an envelope field by field, and learns what it looks like.
    fn read_exactly(&mut self, cursor: &mut Cursor<'_>, envelope: &mut Envelope) -> Result<(), EventFault> {
        self.guess.begin();
        let mut behind = cursor.at();
        cursor.expect(b'{', "'{'")?;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key()?;
            let mut name = Cow::Borrowed(key.inner);
            if key.is_escaped {
                name = Cow::Owned(Vec::new());
                unescape(key.inner, name.to_mut());
            }
            let field = FIELDS.iter().position(|(known, _)| *known == &*name);
            cursor.peek();
            self.guess.learn(cursor.since(behind), field);
            self.take_field(field.map(|at| FIELDS[at].1), cursor, envelope)?;
            behind = cursor.at();
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'")?;
            }
        }
        self.guess.finish(cursor.since(behind));
        Ok(())
    }

    /// Reads the value of a field, or skips that of one that means nothing.
    #[inline]
    fn take_field(
        &mut self,
        field: Option<Field>,
        cursor: &mut Cursor<'_>,
        envelope: &mut Envelope,
    ) -> Result<(), EventFault> {
        let next = cursor.peek();
        let at = cursor.at();
        match field {
            Some(Field::Before) => envelope.before = self.take_before(next, cursor)?,
            Some(Field::After) => envelope.after = self.take_image(next, cursor)?,
            Some(Field::Op) => {
                cursor.skip_value()?;
                envelope.op = Some((at, cursor.at()));
            }
            Some(Field::Source) if next == Some(b'{') => {
                self.source.take(cursor)?;
                envelope.places.source = Some(at);
            }
            Some(Field::TsMs) => {
                cursor.skip_value()?;
                envelope.places.ts_ms = Some(at);
            }
            Some(Field::Source) | None => cursor.skip_value()?,
        }
        Ok(())
    }

    /// Appends the row before a change, or skips it where it is most likely not wanted; returns None where it is null.
    #[inline]
    fn take_before(
        &mut self,
        next: Option<u8>,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<Image>, EventFault> {
        match &mut self.before {
            Some(skipped) if next == Some(b'{') => {
                let image = Image { at: cursor.at(), row: None };
                skipped.take(cursor)?;
                Ok(Some(image))
            }
            _ => self.take_image(next, cursor),
        }
    }

    /// Appends a row before or after a change; returns None where it is null.
    #[inline]
    fn take_image(&mut self, next: Option<u8>, cursor: &mut Cursor<'_>) -> Result<Option<Image>, EventFault> {
        if next == Some(b'{') {
            let image = Image { at: cursor.at(), row: Some(self.rows.row_count()) };
            self.rows.take(cursor)?;
            return Ok(Some(image));
        }
        let start = cursor.at();
        cursor.skip_value()?;
        if cursor.since(start) == b"null" || self.settings.ignores_errors {
            return Ok(None);
        }
        cursor.rewind(start);
        Err(cursor.fault("an object or null").into())
    }

    fn truncate(&mut self, row_count: usize) {
        self.rows.truncate(row_count);
        self.kinds.truncate(row_count);
        if let Some(metadata) = &mut self.metadata {
            metadata.truncate(row_count);
        }
    }

    fn error(&self, data: &[u8], line: (usize, usize), fault: &EventFault, origin: FrameOrigin<'_>) -> Error {
        let text = &data[line.0..line.1];
        let mut place = origin.place(data, line.0);
        let cause = match fault {
            EventFault::Json(fault) => {
                if let Some(column) = fault.column {
                    place = format!("{place}, {}", self.rows.describe(column));
                }
                fault.fault.to_error(text)
            }
            EventFault::NoBefore(operation) => Error::data(format!(
                "The \"before\" field of {operation} message is null, if you are using Debezium Postgres Connector, please check the Postgres table has been set REPLICA IDENTITY to FULL level."
            ))
            .class(FlinkClass::ILLEGAL_STATE),
            EventFault::NoField(name) => Error::data(format!("Field \"{name}\" is missing or null")),
            EventFault::UnknownOp(op) => Error::data(format!(
                "Unknown \"op\" value \"{op}\". The Debezium JSON message is '{}'",
                shown(text)
            )),
        };
        Error::data(format!("Corrupt Debezium JSON message '{}'.", shown(text)))
            .class(FlinkClass::IO)
            .hint(format!("{place}: {}{}", cause.message(), self.settings.skipping()))
            .caused_by(cause)
    }

    fn take_batch(&mut self) -> Result<ChangelogBatch> {
        let kinds = std::mem::take(&mut self.kinds);
        let Some(metadata) = &mut self.metadata else { return self.rows.take_batch(Some(kinds)) };
        let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let (schema, mut arrays) = self.rows.finish()?;
        let mut fields: Vec<_> = schema.fields().iter().map(Arc::clone).collect();
        for (key, data_type, array) in metadata.finish()? {
            fields.push(Arc::new(data_type.to_field(key)));
            arrays.push(array);
        }
        let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        Ok(ChangelogBatch::with_kind_bytes(rows, Some(Buffer::from_vec(kinds))))
    }
}

/// Returns the rows that an event adds and takes away, and how many there are.
fn images(text: &[u8], envelope: &Envelope) -> Result<([(Image, RowKind); 2], usize), EventFault> {
    let Some((start, end)) = envelope.op else { return Err(EventFault::NoField("op")) };
    let op = &text[start..end];
    let after = || envelope.after.ok_or(EventFault::NoField("after"));
    match op {
        b"\"c\"" | b"\"r\"" => {
            let created = (after()?, RowKind::Insert);
            Ok(([created, created], 1))
        }
        b"\"u\"" => {
            let before = envelope.before.ok_or(EventFault::NoBefore("UPDATE"))?;
            Ok(([(before, RowKind::UpdateBefore), (after()?, RowKind::UpdateAfter)], 2))
        }
        b"\"d\"" => {
            let deleted = (envelope.before.ok_or(EventFault::NoBefore("DELETE"))?, RowKind::Delete);
            Ok(([deleted, deleted], 1))
        }
        b"null" => Err(EventFault::NoField("op")),
        _ => {
            let op = op.strip_prefix(b"\"").and_then(|op| op.strip_suffix(b"\"")).unwrap_or(op);
            Err(EventFault::UnknownOp(shown(op)))
        }
    }
}

impl RecordDecoder for DebeziumDecoder {
    fn decode(&mut self, data: &[u8], origin: FrameOrigin<'_>) -> Result<ChangelogBatch> {
        for (start, line) in lines(data) {
            let before = self.rows.row_count();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Err(fault) = self.take_line(line) {
                // An event is taken whole or not at all, an update of which one half is wrong included.
                self.truncate(before);
                if !self.settings.ignores_errors {
                    self.truncate(0);
                    return Err(self.error(data, (start, start + line.len()), &fault, origin));
                }
            }
        }
        self.source.truncate(0);
        if let Some(before) = &mut self.before {
            before.truncate(0);
        }
        self.take_batch()
    }

    fn ignore_update_before(&mut self) {
        self.before = Some(self.settings.row_reader(&[]));
    }
}

#[cfg(test)]
mod tests {
    use super::super::DebeziumJson;
    use crate::changelog::ChangelogBatch;
    use crate::error::Result;
    use crate::format::testing::{self, cells};
    use crate::format::{DecodingFormat, FrameOrigin};
    use crate::schema::{Column, TypeRoot};
    use proptest::prelude::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("k", TypeRoot::STRING.nullable()),
            Column::physical("v", TypeRoot::Int.nullable()),
        ]
    }

    fn format(entries: &[(&str, &str)]) -> Box<dyn DecodingFormat> {
        testing::decoding(&DebeziumJson, &columns(), entries).unwrap()
    }

    /// Returns each row with its kind.
    fn rows(batch: &ChangelogBatch) -> Vec<String> {
        let cells = cells(batch).into_iter().enumerate();
        cells.map(|(row, cells)| format!("{} {cells}", batch.kind(row).short_string())).collect()
    }

    fn decode(text: &str, entries: &[(&str, &str)]) -> Result<Vec<String>> {
        testing::decode(&*format(entries), &[0, 1, 2], text.as_bytes()).map(|batch| rows(&batch))
    }

    fn hint(text: &str) -> String {
        let error = decode(text, &[]).unwrap_err();
        assert!(error.message().starts_with("Corrupt Debezium JSON message '{"), "{error:?}");
        error.hint_text().unwrap().split(" ('debezium-json.").next().unwrap().to_owned()
    }

    /// The rows that Flink 2.3 shows for the same lines.
    #[test]
    fn events_give_the_rows_and_kinds_of_flink() {
        let text = r#"{"before":null,"after":{"id":1,"k":"a","v":10},"op":"c"}
{"before":null,"after":{"id":2,"k":"a","v":20},"op":"c"}
{"before":{"id":1,"k":"a","v":10},"after":{"id":1,"k":"b","v":11},"op":"u"}
{"before":{"id":2,"k":"a","v":20},"after":{"id":2,"k":"a","v":20},"op":"u"}
{"before":{"id":2,"k":"a","v":20},"after":null,"op":"d"}
{"before":{"id":9,"k":"z","v":1},"after":null,"op":"d"}
{"before":null,"after":{"id":1,"k":"b","v":11},"op":"c"}
{"before":null,"after":{"id":3,"k":null,"v":null},"op":"r"}
"#;
        assert_eq!(
            decode(text, &[]).unwrap(),
            [
                "+I 1|a|10",
                "+I 2|a|20",
                "-U 1|a|10",
                "+U 1|b|11",
                "-U 2|a|20",
                "+U 2|a|20",
                "-D 2|a|20",
                "-D 9|z|1",
                "+I 1|b|11",
                "+I 3|NULL|NULL"
            ]
        );
    }

    #[test]
    fn order_and_rest_of_the_envelope_do_not_matter() {
        let text = r#"{"op":"u","ts_ms":5,"after":{"id":2},"source":{"db":"x","n":[1]},"before":{"id":1},"transaction":null}
{"before":{"id":7},"after":{"id":3},"op":"c"}
{"before":{"id":4},"after":{"id":8},"op":"d"}
{"before":{"id":9},"before":{"id":5},"after":null,"op":"d"}
{"b\u0065fore":{"id":6},"op":"d"}
"#;
        assert_eq!(
            decode(text, &[]).unwrap(),
            [
                "-U 1|NULL|NULL",
                "+U 2|NULL|NULL",
                "+I 3|NULL|NULL",
                "-D 4|NULL|NULL",
                "-D 5|NULL|NULL",
                "-D 6|NULL|NULL"
            ]
        );
    }

    #[test]
    fn tombstones_are_skipped() {
        let text = "\n{\"before\":{\"id\":1},\"after\":null,\"op\":\"d\"}\n\n \r\n";
        assert_eq!(decode(text, &[]).unwrap(), ["-D 1|NULL|NULL"]);
    }

    #[test]
    fn with_a_schema_the_envelope_is_the_payload() {
        let record =
            |payload: &str| format!("{{\"schema\":{{\"type\":\"struct\"}},\"payload\":{payload}}}\n");
        let text = [
            record(r#"{"before":null,"after":{"id":1},"op":"c"}"#),
            record(r#"{"before":{"id":1},"after":{"id":2},"op":"u"}"#),
            "{\"payload\":{\"before\":{\"id\":2},\"op\":\"d\"},\"schema\":null}\n".to_owned(),
        ]
        .concat();
        let entries = [("debezium-json.schema-include", "true")];
        assert_eq!(
            decode(&text, &entries).unwrap(),
            ["+I 1|NULL|NULL", "-U 1|NULL|NULL", "+U 2|NULL|NULL", "-D 2|NULL|NULL"]
        );
        let error = decode(&record("null"), &entries).unwrap_err();
        assert!(error.hint_text().unwrap().contains("Field \"payload\" is missing or null"));
    }

    #[test]
    fn what_is_wrong_with_an_event_is_said_in_flinks_words() {
        assert_eq!(
            hint(r#"{"before":null,"after":{"id":1},"op":"u"}"#),
            "data.csv, line 11: The \"before\" field of UPDATE message is null, if you are using Debezium Postgres Connector, please check the Postgres table has been set REPLICA IDENTITY to FULL level."
        );
        assert!(
            hint(r#"{"after":null,"op":"d"}"#).contains("The \"before\" field of DELETE message is null")
        );
        assert_eq!(
            hint(r#"{"after":null,"op":"t"}"#),
            "data.csv, line 11: Unknown \"op\" value \"t\". The Debezium JSON message is '{\"after\":null,\"op\":\"t\"}'"
        );
        assert_eq!(
            hint(r#"{"after":null,"op":"c"}"#),
            "data.csv, line 11: Field \"after\" is missing or null"
        );
        assert_eq!(hint(r#"{"id":1}"#), "data.csv, line 11: Field \"op\" is missing or null");
        assert_eq!(
            hint(r#"{"before":1,"after":null,"op":"c"}"#),
            "data.csv, line 11: Expected an object or null at column 11"
        );
        assert_eq!(
            hint("{\"after\":{\"id\":1},\"op\":\"c\"}\n{\"after\":{\"v\":\"x\"},\"op\":\"c\"}"),
            "data.csv, line 12, field 'v' (INT): For input string: \"x\""
        );
    }

    #[test]
    fn broken_events_are_dropped_whole_where_errors_are_ignored() {
        let text = r#"{"before":{"id":1},"after":{"id":2},"op":"x"}
{"before":{"id":1},"after":{"id":2,"op":"u"}
{"before":null,"after":{"id":2},"op":"u"}
{"before":{"id":1,"v":"no"},"after":{"id":2},"op":"u"}
{"before":7,"after":{"id":3},"op":"c"}
"#;
        assert_eq!(
            decode(text, &[("debezium-json.ignore-parse-errors", "true")]).unwrap(),
            ["-U 1|NULL|NULL", "+U 2|NULL|NULL", "+I 3|NULL|NULL"]
        );
    }

    #[test]
    fn metadata_columns_say_where_and_when() {
        let text = r#"{"before":{"id":1},"after":{"id":2},"source":{"db":"d","schema":"s","table":"t","ts_ms":1000,"n":null},"op":"u","ts_ms":2000}
{"after":{"id":3},"op":"c","source":null}
"#;
        let format = format(&[]);
        let keys: Vec<&str> = format.metadata_columns().iter().map(|column| column.key).collect();
        let origin = FrameOrigin { name: "t", offset: 0, lines_before: &|| None };
        let batch = format.decoder(&[0], &keys).decode(text.as_bytes(), origin).unwrap();
        let meta = "NULL|1970-01-01T00:00:02Z|1970-01-01T00:00:01Z|d|s|t|{db=d, schema=s, table=t, ts_ms=1000, n=NULL}";
        assert_eq!(
            rows(&batch),
            [
                format!("-U 1|{meta}"),
                format!("+U 2|{meta}"),
                "+I 3|NULL|NULL|NULL|NULL|NULL|NULL|NULL".to_owned()
            ]
        );
    }

    #[test]
    fn a_projection_may_be_empty() {
        let text = br#"{"before":{"id":1},"after":{"id":2},"op":"u"}"#;
        let batch = testing::decode(&*format(&[]), &[], text).unwrap();
        assert_eq!((batch.row_count(), batch.kind(0).short_string()), (2, "-U"));
    }

    #[test]
    fn without_the_rows_before_updates_the_others_are_the_same() {
        let text = r#"{"before":null,"after":{"id":1,"v":1},"op":"c"}
{"before":{"id":1,"k":"a","v":1},"after":{"id":1,"k":"b","v":2},"op":"u"}
{"after":{"id":1,"v":3},"before":{"v":2,"x":[{}],"id":1},"op":"u"}
{"before":{"id":1,"k":null,"v":3},"after":null,"op":"d"}
{"before":{"id":7},"after":{"id":2},"op":"r"}
{"before":{"id":4},"after":{"id":8},"op":"d"}
"#;
        let origin = FrameOrigin { name: "t", offset: 0, lines_before: &|| None };
        let decode = |text: &str, ignores: bool| {
            let mut decoder = format(&[]).decoder(&[0, 1, 2], &["ingestion-timestamp"]);
            if ignores {
                decoder.ignore_update_before();
            }
            decoder.decode(text.as_bytes(), origin).map(|batch| rows(&batch))
        };
        let mut wanted = decode(text, false).unwrap();
        wanted.retain(|row| !row.starts_with("-U"));
        assert_eq!(decode(text, true).unwrap(), wanted);
        for broken in
            [r#"{"before":null,"after":{"id":1},"op":"u"}"#, r#"{"before":{"id":},"after":{},"op":"u"}"#]
        {
            assert!(decode(broken, true).is_err());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// A record that is broken anywhere leaves the rows of the others as they are.
        #[test]
        fn a_broken_event_never_touches_the_others(
            ops in prop::collection::vec(0_usize..5, 1..30),
            broken in 0_usize..30,
            at in 0_usize..60,
            byte in prop::sample::select(b"{}[]\",:0xn\\ ".to_vec()),
        ) {
            let lines: Vec<String> = ops
                .iter()
                .enumerate()
                .map(|(n, op)| match op {
                    0 => format!(r#"{{"before":null,"after":{{"id":{n},"k":"a{n}","v":1}},"op":"c"}}"#),
                    1 => format!(r#"{{"before":{{"id":{n},"k":"a","v":1}},"after":{{"id":{n},"k":"b","v":2}},"op":"u"}}"#),
                    2 => format!(r#"{{"before":{{"id":{n},"k":"b","v":2}},"after":null,"op":"d"}}"#),
                    3 => format!(r#"{{"op":"r","after":{{"v":3,"id":{n}}}}}"#),
                    _ => String::new(),
                })
                .collect();
            let entries = [("debezium-json.ignore-parse-errors", "true")];
            let alone = |line: &str| decode(line, &entries).unwrap();
            let mut lines = lines;
            let broken = broken % lines.len();
            let mut bytes = lines[broken].clone().into_bytes();
            if at < bytes.len() {
                bytes[at] = byte;
            }
            lines[broken] = String::from_utf8(bytes).unwrap();
            let expected: Vec<String> = lines.iter().flat_map(|line| alone(line)).collect();
            prop_assert_eq!(decode(&lines.join("\n"), &entries).unwrap(), expected);
        }
    }
}
