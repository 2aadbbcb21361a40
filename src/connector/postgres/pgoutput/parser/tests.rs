//! The parser on recordings of servers, and on what is cut or malformed.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::super::message::{Tuple, TupleValue};
use super::*;
use crate::connector::postgres::testing::Recording;

fn time(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).unwrap().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn tuple(tuple: &Tuple<'_>) -> Value {
    let values: Vec<Value> = tuple
        .values()
        .map(|value| match value {
            TupleValue::Null => Value::Null,
            TupleValue::Unchanged => json!({"unchanged": true}),
            TupleValue::Text(text) => json!(std::str::from_utf8(text).unwrap()),
            TupleValue::Binary(bytes) => {
                json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()})
            }
        })
        .collect();
    assert_eq!(values.len(), tuple.column_count());
    Value::Array(values)
}

fn old(fields: &mut Map<String, Value>, old: &OldTuple<'_>) {
    match old {
        OldTuple::Key(key) => fields.insert("key".to_owned(), tuple(key)),
        OldTuple::Row(row) => fields.insert("old".to_owned(), tuple(row)),
    };
}

fn committed(kind: &str, point: &CommitPoint, time_key: &str) -> Value {
    json!({
        "type": kind, "lsn": point.lsn.to_string(), "end_lsn": point.end_lsn.to_string(), time_key: time(point.time)
    })
}

fn prepared(kind: &str, point: &CommitPoint, xid: u32, gid: &str) -> Value {
    let mut value = committed(kind, point, "time");
    value["xid"] = json!(xid);
    value["gid"] = json!(gid);
    value
}

/// Writes bytes that are no text as `\xff`.
fn text_of(bytes: &[u8]) -> String {
    let invalid = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    bytes.utf8_chunks().map(|chunk| format!("{}{}", chunk.valid(), invalid(chunk.invalid()))).collect()
}

/// Writes a message as the fixtures do, but for flags, which mean nothing.
#[expect(clippy::too_many_lines, reason = "one arm a message")]
fn shown(message: &Message<'_>) -> Value {
    let mut value = match message {
        Message::Begin { final_lsn, commit_time, xid } => {
            json!({"type": "begin", "final_lsn": final_lsn.to_string(), "commit_time": time(*commit_time), "xid": xid})
        }
        Message::Commit(point) => committed("commit", point, "commit_time"),
        Message::Origin { lsn, name } => {
            json!({"type": "origin", "origin_lsn": lsn.to_string(), "name": name})
        }
        Message::Relation { relation, .. } => {
            let identity = match relation.identity {
                ReplicaIdentity::Default => "d",
                ReplicaIdentity::Nothing => "n",
                ReplicaIdentity::Full => "f",
                ReplicaIdentity::Index => "i",
            };
            let column = |column: &RelationColumn<'_>| json!({"key": column.is_key, "name": column.name, "type_oid": column.type_oid, "typmod": column.type_modifier});
            json!({
                "type": "relation", "oid": relation.oid, "schema": relation.schema, "table": relation.table,
                "identity": identity, "columns": relation.columns.iter().map(column).collect::<Vec<_>>()
            })
        }
        Message::Type { oid, schema, name, .. } => {
            json!({"type": "type", "oid": oid, "schema": schema, "name": name})
        }
        Message::Insert { oid, new, .. } => json!({"type": "insert", "oid": oid, "new": tuple(new)}),
        Message::Update { oid, old: before, new, .. } => {
            let mut value = json!({"type": "update", "oid": oid, "new": tuple(new)});
            if let Some(before) = before {
                old(value.as_object_mut().unwrap(), before);
            }
            value
        }
        Message::Delete { oid, old: before, .. } => {
            let mut value = json!({"type": "delete", "oid": oid});
            old(value.as_object_mut().unwrap(), before);
            value
        }
        Message::Truncate { cascades, restarts_identity, oids, .. } => {
            json!({"type": "truncate", "cascade": cascades, "restart_identity": restarts_identity, "oids": oids})
        }
        Message::Logical { is_transactional, lsn, prefix, content, .. } => json!({
            "type": "message", "transactional": is_transactional, "lsn": lsn.to_string(), "prefix": prefix,
            "content": text_of(content)
        }),
        Message::StreamStart { xid, is_first } => {
            json!({"type": "stream_start", "xid": xid, "first_segment": is_first})
        }
        Message::StreamStop => json!({"type": "stream_stop"}),
        Message::StreamCommit { xid, point } => {
            let mut value = committed("stream_commit", point, "commit_time");
            value["xid"] = json!(xid);
            value
        }
        Message::StreamAbort { xid, subtransaction, at } => {
            let mut value = json!({"type": "stream_abort", "xid": xid, "subxid": subtransaction});
            if let Some((lsn, at)) = at {
                value["abort_lsn"] = json!(lsn.to_string());
                value["abort_time"] = json!(time(*at));
            }
            value
        }
        Message::BeginPrepare { point, xid, gid } => prepared("begin_prepare", point, *xid, gid),
        Message::Prepare { point, xid, gid } => prepared("prepare", point, *xid, gid),
        Message::CommitPrepared { point, xid, gid } => prepared("commit_prepared", point, *xid, gid),
        Message::StreamPrepare { point, xid, gid } => prepared("stream_prepare", point, *xid, gid),
        Message::RollbackPrepared { prepare_end_lsn, end_lsn, prepare_time, time: at, xid, gid } => json!({
            "type": "rollback_prepared", "prepare_end_lsn": prepare_end_lsn.to_string(), "end_lsn": end_lsn.to_string(),
            "prepare_time": time(*prepare_time), "time": time(*at), "xid": xid, "gid": gid
        }),
    };
    let xid = match message {
        Message::Relation { xid, .. }
        | Message::Type { xid, .. }
        | Message::Insert { xid, .. }
        | Message::Update { xid, .. }
        | Message::Delete { xid, .. }
        | Message::Truncate { xid, .. }
        | Message::Logical { xid, .. } => *xid,
        _ => None,
    };
    if let Some(xid) = xid {
        value["xid"] = json!(xid);
    }
    value
}

#[test]
fn the_messages_of_every_recording_are_read_as_the_server_meant_them() {
    for recording in Recording::all() {
        let mut parser = if recording.is_parallel() { Parser::parallel() } else { Parser::default() };
        let messages = recording.messages();
        let wanted = recording.expected["messages"].as_array().unwrap();
        assert_eq!(messages.len(), wanted.len(), "{}", recording.name);
        for ((position, bytes), wanted) in messages.into_iter().zip(wanted) {
            let mut wanted = wanted.clone();
            wanted.as_object_mut().unwrap().remove("flags");
            let mut read = shown(&parser.parse(bytes).unwrap());
            read["wal_start"] = json!(position.to_string());
            assert_eq!(read, wanted, "{}", recording.name);
        }
    }
}

#[test]
fn a_message_that_is_cut_anywhere_is_an_error_and_never_a_panic() {
    let recording = Recording::read("identity");
    for (_, message) in recording.messages() {
        for end in 0..message.len() {
            assert!(Parser::default().parse(&message[..end]).is_err(), "{message:?} cut at {end}");
        }
        assert!(Parser::default().parse(&[message, &[0]].concat()).is_err());
    }
}

#[test]
fn what_is_malformed_is_named() {
    let error = Parser::default().parse(b"I\0\0\0\x01X").unwrap_err();
    assert_eq!(
        error.message(),
        "a message 'I' of plugin pgoutput is malformed: expected a new tuple at byte 6"
    );
    assert!(Parser::default().parse(b"Z").unwrap_err().message().contains("a kind of message that is known"));
}
