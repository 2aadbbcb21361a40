//! Tests of the decoder on recordings of servers, and on messages made by hand.

mod changes;
mod descriptions;
mod large_values;
mod recordings;

use super::{ChangeDecoder, Emits, Transaction};
use crate::changelog::ChangelogBatch;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::pgoutput::{Message, Parser, Relation, RelationColumn, ReplicaIdentity};
use crate::connector::postgres::row_shape::RowShape;
use crate::connector::postgres::table::{PgColumn, PgTable};
use crate::connector::postgres::testing::{built_in_types, pg_texts};
use crate::error::Result;
use crate::schema::DataType;

/// The table of tests.
const OID: u32 = 16_385;

/// NULL, in tuples and in cells.
const NULL: &str = "<null>";
/// A value that was left out.
const UNCHANGED: &str = "<unchanged>";

fn tuple(values: &[&str]) -> Vec<u8> {
    let mut bytes = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        match *value {
            NULL => bytes.push(b'n'),
            UNCHANGED => bytes.push(b'u'),
            text => {
                bytes.push(b't');
                bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
    bytes
}

fn message(kind: u8, parts: &[(u8, &[&str])]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&OID.to_be_bytes());
    for (mark, values) in parts {
        bytes.push(*mark);
        bytes.extend_from_slice(&tuple(values));
    }
    bytes
}

fn insert(new: &[&str]) -> Vec<u8> {
    message(b'I', &[(b'N', new)])
}

/// An update without old row.
fn update(new: &[&str]) -> Vec<u8> {
    message(b'U', &[(b'N', new)])
}

/// An update with an old row of a kind: K, a key, or O, a whole row.
fn update_from(kind: u8, old: &[&str], new: &[&str]) -> Vec<u8> {
    message(b'U', &[(kind, old), (b'N', new)])
}

fn delete(kind: u8, old: &[&str]) -> Vec<u8> {
    message(b'D', &[(kind, old)])
}

/// A moment in 2024.
const COMMITTED: Transaction = Transaction { xid: 7, commit_time: 1_717_171_717_123_456 };

/// Gives a change to the decoder.
fn apply(decoder: &mut ChangeDecoder, change: &[u8], emits: Emits) -> Result<()> {
    match Parser::default().parse(change)? {
        Message::Insert { oid, new, .. } => decoder.insert(oid, new, COMMITTED),
        Message::Update { oid, old, new, .. } => decoder.update(oid, old, new, emits, COMMITTED),
        Message::Delete { oid, old, .. } => decoder.delete(oid, old, COMMITTED),
        _ => panic!("no change"),
    }
}

/// Columns of a relation: the name, the number of the type, whether it is part of the identity.
type Described<'a> = &'a [(&'a str, u32, bool)];

/// Describes `public.t`, the primary key of which are the columns that say so; under FULL all columns are part of the identity as well.
fn describe(
    decoder: &mut ChangeDecoder,
    identity: ReplicaIdentity,
    columns: Described<'_>,
    types: &PgTypes,
) -> Result<Vec<String>> {
    describe_since(decoder, identity, columns, columns, types)
}

/// The same, where the table had other columns when the job started.
fn describe_since(
    decoder: &mut ChangeDecoder,
    identity: ReplicaIdentity,
    at_start: Described<'_>,
    columns: Described<'_>,
    types: &PgTypes,
) -> Result<Vec<String>> {
    let is_full = identity == ReplicaIdentity::Full;
    let relation_column = |(name, type_oid, is_key): &(&'static str, u32, bool)| RelationColumn {
        is_key: *is_key || is_full,
        name,
        type_oid: *type_oid,
        type_modifier: -1,
    };
    let owned: Vec<(&'static str, u32, bool)> = columns
        .iter()
        .map(|(name, oid, is_key)| (String::leak((*name).to_owned()) as &str, *oid, *is_key))
        .collect();
    let relation = Relation {
        oid: OID,
        schema: "public",
        table: "t",
        identity,
        columns: owned.iter().map(relation_column).collect(),
    };
    let table = PgTable {
        oid: OID,
        schema: "public".to_owned(),
        name: "t".to_owned(),
        columns: at_start
            .iter()
            .map(|(name, type_oid, _)| PgColumn {
                name: (*name).to_owned(),
                type_oid: *type_oid,
                type_modifier: -1,
            })
            .collect(),
        key: (0..at_start.len()).filter(|at| at_start[*at].2).collect(),
        identity,
        is_partitioned: false,
        row_estimate: None,
        pages: 0,
    };
    decoder.define(&relation, &table, types)
}

/// Makes a decoder of `public.t (id int4 PRIMARY KEY, a text, b int4)`.
fn decoder(shape: RowShape, identity: ReplicaIdentity) -> ChangeDecoder {
    let mut decoder = ChangeDecoder::new(shape, "app");
    let columns = [("id", 23, true), ("a", 25, false), ("b", 23, false)];
    describe(&mut decoder, identity, &columns, &built_in_types()).unwrap();
    decoder
}

/// Returns the rows, as `+I 1 one 10`.
fn rows(batch: &ChangelogBatch) -> Vec<String> {
    let schema = batch.rows().schema();
    let columns: Vec<Vec<Option<String>>> = schema
        .fields()
        .iter()
        .zip(batch.rows().columns())
        .map(|(field, array)| pg_texts(&DataType::from_arrow(field.data_type()).unwrap(), array))
        .collect();
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column[row].as_deref().unwrap_or(NULL));
        format!("{} {}", batch.kind(row), cells.collect::<Vec<_>>().join(" "))
    };
    (0..batch.row_count()).map(row).collect()
}

/// Returns what changes become.
fn decoded(decoder: &mut ChangeDecoder, changes: &[Vec<u8>]) -> Vec<String> {
    changes.iter().for_each(|change| apply(decoder, change, Emits::BOTH).unwrap());
    decoder.finish().unwrap().map_or_else(Vec::new, |batch| rows(&batch))
}
