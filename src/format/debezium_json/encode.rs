//! Rows to change events. Whatever adds a row is a creation and whatever takes one away a deletion, since the two halves of an
//! update come one by one.

use std::sync::Arc;

use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::format::RecordEncoder;
use crate::format::json::{JsonSettings, ObjectWriter};

/// The texts around the object of one kind of event.
struct Envelope {
    open: &'static [u8],
    close: &'static [u8],
}

/// Encodes rows, one event a line.
pub(super) struct DebeziumEncoder {
    objects: ObjectWriter,
    created: Envelope,
    deleted: Envelope,
}

impl DebeziumEncoder {
    pub(super) fn new(settings: Arc<JsonSettings>) -> DebeziumEncoder {
        let close_created: &[u8] = b",\"op\":\"c\"}\n";
        let (created, deleted) = if settings.omits_nulls {
            (
                Envelope { open: b"{\"after\":", close: close_created },
                Envelope { open: b"{\"before\":", close: b",\"op\":\"d\"}\n" },
            )
        } else {
            (
                Envelope { open: b"{\"before\":null,\"after\":", close: close_created },
                Envelope { open: b"{\"before\":", close: b",\"after\":null,\"op\":\"d\"}\n" },
            )
        };
        DebeziumEncoder { objects: ObjectWriter::new(settings), created, deleted }
    }
}

impl RecordEncoder for DebeziumEncoder {
    fn encode(&mut self, rows: &ChangelogBatch, out: &mut Vec<u8>) -> Result<()> {
        let fields = self.objects.prepare(rows.rows())?;
        let kinds = rows.kind_bytes();
        for row in 0..rows.row_count() {
            let is_retraction = kinds.is_some_and(|kinds| kinds[row] & 1 == 1);
            let envelope = if is_retraction { &self.deleted } else { &self.created };
            out.extend_from_slice(envelope.open);
            self.objects.write(&fields, row, out)?;
            out.extend_from_slice(envelope.close);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::DebeziumJson;
    use crate::changelog::{ChangelogBatch, RowKind};
    use crate::format::testing::{self, cells};
    use crate::schema::{Column, TypeRoot};
    use proptest::prelude::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::physical("id", TypeRoot::Int.nullable()),
            Column::physical("k", TypeRoot::STRING.nullable()),
        ]
    }

    fn recode(text: &str, entries: &[(&str, &str)]) -> String {
        let decoding = testing::decoding(&DebeziumJson, &columns(), &[]).unwrap();
        let batch = testing::decode(&*decoding, &[0, 1], text.as_bytes()).unwrap();
        let mut out = Vec::new();
        let encoding = testing::encoding(&DebeziumJson, &columns(), entries).unwrap();
        encoding.encoder().encode(&batch, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_update_is_written_as_a_deletion_and_a_creation() {
        let text = r#"{"before":{"id":1,"k":"a"},"after":{"id":1,"k":null},"op":"u"}"#;
        assert_eq!(
            recode(text, &[]),
            "{\"before\":{\"id\":1,\"k\":\"a\"},\"after\":null,\"op\":\"d\"}\n\
             {\"before\":null,\"after\":{\"id\":1,\"k\":null},\"op\":\"c\"}\n"
        );
        assert_eq!(
            recode(text, &[("debezium-json.encode.ignore-null-fields", "true")]),
            "{\"before\":{\"id\":1,\"k\":\"a\"},\"op\":\"d\"}\n{\"after\":{\"id\":1},\"op\":\"c\"}\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn what_was_written_is_read_again_with_what_it_does(
            table in testing::random_table(true),
            kinds in prop::collection::vec(0_u8..4, 20),
        ) {
            let kinds: Vec<RowKind> =
                kinds[..table.rows.num_rows()].iter().map(|byte| RowKind::from_byte(*byte)).collect();
            let batch = ChangelogBatch::with_kinds(table.rows.clone(), kinds.iter().copied());
            let mut text = Vec::new();
            let encoding = testing::encoding(&DebeziumJson, &table.columns, &[]).unwrap();
            encoding.encoder().encode(&batch, &mut text).unwrap();
            let decoding = testing::decoding(&DebeziumJson, &table.columns, &[]).unwrap();
            let all: Vec<usize> = (0..table.columns.len()).collect();
            let read = testing::decode(&*decoding, &all, &text).unwrap();
            prop_assert_eq!(cells(&read), cells(&batch));
            prop_assert_eq!(read.rows(), batch.rows());
            for (row, kind) in kinds.iter().enumerate() {
                let is_retraction = *kind as u8 & 1 == 1;
                let expected = if is_retraction { RowKind::Delete } else { RowKind::Insert };
                prop_assert_eq!(read.kind(row), expected);
            }
        }
    }
}
