//! What real servers sent, decoded into Arrow, folded into tables and printed, equals what the servers' own COPY gave afterwards.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use serde_json::Value;

use crate::changelog::{ChangelogBatch, RowKind};
use crate::connector::postgres::change_decoder::{ChangeDecoder, Emits, Transaction};
use crate::connector::postgres::options::Unrepresentable;
use crate::connector::postgres::pg_types::{PgType, PgTypes, TypeKind};
use crate::connector::postgres::pgoutput::{Message, Parser, Relation, RelationColumn, ReplicaIdentity};
use crate::connector::postgres::row_shape::{Changes, RowShape};
use crate::connector::postgres::table::{PgColumn, PgTable};
use crate::connector::postgres::testing::{Recording, built_in_types, pg_texts, shape};
use crate::schema::TypeRoot::{
    self, BigInt, Boolean, Date, Decimal, Double, Float, Int, SmallInt, Time, Timestamp, TimestampLtz,
};

/// A row as PostgreSQL writes it.
type Cells = Vec<Option<String>>;

/// Returns the declared type for a column of the recordings of types: all that a type can be read as without loss, but for STRING.
fn declared_type(table: &str, column: &str) -> Option<TypeRoot> {
    let array = |item: TypeRoot| TypeRoot::Array(Box::new(item.nullable()));
    Some(match column {
        "b" => Boolean,
        "i2" => SmallInt,
        "i4" => Int,
        "i8" | "o" => BigInt,
        "f4" => Float,
        "f8" => Double,
        "n10_2" | "p" => Decimal(10, 2),
        "n38_18" => Decimal(38, 18),
        "m" if table == "numbers" => Decimal(19, 2),
        "by" => TypeRoot::BYTES,
        "d" => Date,
        "t3" => Time(3),
        "ts" => Timestamp(6),
        "ts3" => Timestamp(3),
        "tstz" => TimestampLtz(6),
        "ia" => array(Int),
        "ta" | "na" | "ma" => array(TypeRoot::STRING),
        "h" => {
            let text = || Box::new(TypeRoot::STRING.nullable());
            TypeRoot::Map(text(), text())
        }
        _ => return None,
    })
}

/// Columns that a stream in binary form has in a form that is read.
const READ_IN_BINARY: [&str; 23] = [
    "id", "b", "i2", "i4", "i8", "f4", "f8", "n10_2", "n38_18", "o", "t", "v", "c", "nm", "by", "u", "j",
    "jb", "d", "t3", "ts", "ts3", "tstz",
];

/// Returns what is declared of a relation in a recording.
fn declared(recording: &str, relation: &Relation<'_>) -> RowShape {
    let is_types = recording.starts_with("types");
    let columns: Vec<(&str, TypeRoot)> = relation
        .columns
        .iter()
        .filter(|column| recording != "types_binary" || READ_IN_BINARY.contains(&column.name))
        // "t" is text in one table and a time in another.
        .filter(|column| recording != "types_binary" || (column.name, column.type_oid) != ("t", 1083))
        .map(|column| {
            let by_type = match column.type_oid {
                23 => Int,
                20 => BigInt,
                1700 if column.type_modifier == 327_685 => Decimal(5, 1),
                _ => TypeRoot::STRING,
            };
            let root = match recording {
                "types_session" if column.name == "b" => Boolean,
                "types_session" => TypeRoot::STRING,
                _ if is_types => declared_type(relation.table, column.name).unwrap_or(by_type),
                _ => by_type,
            };
            (column.name, root)
        })
        .collect();
    let is_identity = |name: &str| relation.columns.iter().any(|column| column.name == name && column.is_key);
    let is_full = relation.identity == ReplicaIdentity::Full;
    let key: Vec<usize> = (0..columns.len()).filter(|at| !is_full && is_identity(columns[*at].0)).collect();
    let mut shape = shape(&columns, &key, if is_full { Changes::All } else { Changes::Upsert });
    shape.unrepresentable = Unrepresentable::Null;
    shape
}

/// A table as a reader of changes knows it.
struct Folded {
    decoder: ChangeDecoder,
    name: String,
    columns: Vec<String>,
    rows: Vec<Cells>,
}

impl Folded {
    /// Applies changes. Where a column has been added, a row that was there before comes with its default when it goes.
    fn fold(&mut self, batch: &ChangelogBatch, has_new_columns: bool) {
        let shape = self.decoder.shape.clone();
        let arrays = shape.physical.iter().zip(batch.rows().columns());
        let columns: Vec<Cells> = arrays.map(|(column, array)| pg_texts(&column.data_type, array)).collect();
        for row in 0..batch.row_count() {
            let cells: Cells = columns.iter().map(|column| column[row].clone()).collect();
            let kind = batch.kind(row);
            let place = self.rows.iter().position(|known| match shape.changes {
                Changes::Upsert if shape.key.is_empty() => false,
                Changes::Upsert => shape.key.iter().all(|key| known[*key] == cells[*key]),
                _ => *known == cells || has_new_columns && known[0] == cells[0],
            });
            match (kind.is_retraction(), place, shape.changes) {
                (true, Some(place), _) => {
                    self.rows.remove(place);
                }
                (true, None, _) => panic!("{}: {kind} of a row that is not there: {cells:?}", self.name),
                (false, Some(place), Changes::Upsert) => {
                    assert_eq!(kind, RowKind::UpdateAfter, "{}: {cells:?} is there", self.name);
                    self.rows[place] = cells;
                }
                _ => self.rows.push(cells),
            }
        }
    }
}

/// Reads a recording as the reader of a job does, but for what prepared and streamed transactions need.
struct Replay<'r> {
    recording: &'r Recording,
    types: PgTypes,
    tables: HashMap<u32, Folded>,
    notices: Vec<String>,
}

impl Replay<'_> {
    fn run(recording: &Recording) -> Replay<'_> {
        let mut replay =
            Replay { recording, types: built_in_types(), tables: HashMap::new(), notices: Vec::new() };
        let mut parser = if recording.is_parallel() { Parser::parallel() } else { Parser::default() };
        // What each open transaction has done so far, each step with its subtransaction.
        let mut open: BTreeMap<String, Vec<(Option<u32>, Message<'_>)>> = BTreeMap::new();
        let (mut current, mut is_plain) = (String::new(), false);
        for (_, bytes) in recording.messages() {
            let message = parser.parse(bytes).unwrap();
            match &message {
                Message::Begin { .. } => is_plain = true,
                Message::Commit(_) => {
                    replay.flush();
                    is_plain = false;
                }
                Message::BeginPrepare { xid, .. } | Message::StreamStart { xid, .. } => {
                    current = xid.to_string();
                    open.entry(current.clone()).or_default();
                }
                Message::StreamCommit { xid, .. } => {
                    replay.commit(open.remove(&xid.to_string()).unwrap());
                }
                Message::Prepare { xid, gid, .. } | Message::StreamPrepare { xid, gid, .. } => {
                    let steps = open.remove(&xid.to_string()).unwrap();
                    open.insert((*gid).to_owned(), steps);
                }
                Message::CommitPrepared { gid, .. } => replay.commit(open.remove(*gid).unwrap()),
                Message::RollbackPrepared { gid, .. } => {
                    open.remove(*gid).unwrap();
                }
                Message::StreamAbort { xid, subtransaction, .. } if xid == subtransaction => {
                    open.remove(&xid.to_string());
                }
                Message::StreamAbort { xid, subtransaction, .. } => {
                    let steps = open.get_mut(&xid.to_string()).unwrap();
                    steps.retain(|(of, _)| of != &Some(*subtransaction));
                }
                Message::Relation { xid, .. }
                | Message::Type { xid, .. }
                | Message::Insert { xid, .. }
                | Message::Update { xid, .. }
                | Message::Delete { xid, .. }
                | Message::Truncate { xid, .. } => {
                    let xid = *xid;
                    let describes = matches!(message, Message::Relation { .. } | Message::Type { .. });
                    // Outside of streams a description holds for all that follow, whatever becomes of its transaction.
                    if is_plain || xid.is_none() && describes {
                        replay.step(message);
                    } else {
                        open.get_mut(&current).unwrap().push((xid, message));
                    }
                }
                Message::Origin { .. } | Message::Logical { .. } | Message::StreamStop => {}
            }
        }
        assert!(open.is_empty());
        replay
    }

    fn commit(&mut self, steps: Vec<(Option<u32>, Message<'_>)>) {
        steps.into_iter().for_each(|(_, step)| self.step(step));
        self.flush();
    }

    fn step(&mut self, step: Message<'_>) {
        let of = Transaction { xid: 1, commit_time: 0 };
        match step {
            Message::Type { oid, schema, name, .. } => self.learn_type(oid, schema, name),
            Message::Relation { relation, .. } => self.define(&relation),
            Message::Insert { oid, new, .. } => self.table(oid).decoder.insert(oid, new, of).unwrap(),
            Message::Update { oid, old, new, .. } => {
                self.table(oid).decoder.update(oid, old, new, Emits::BOTH, of).unwrap();
            }
            Message::Delete { oid, old, .. } => self.table(oid).decoder.delete(oid, old, of).unwrap(),
            Message::Truncate { oids, .. } => {
                self.flush();
                oids.iter().for_each(|oid| self.table(*oid).rows.clear());
            }
            _ => {}
        }
    }

    fn table(&mut self, oid: u32) -> &mut Folded {
        self.tables.get_mut(&oid).unwrap_or_else(|| panic!("{}: {oid}", self.recording.name))
    }

    fn flush(&mut self) {
        let recording = self.recording;
        for table in self.tables.values_mut() {
            // What is read again is what the table holds at the end.
            let end = expected_rows(recording, &table.name, &table.columns);
            let shape = table.decoder.shape.clone();
            let read = |_: u32, key: &[String]| {
                let is_meant = |row: &&Cells| {
                    shape.key.iter().zip(key).all(|(at, text)| row[*at].as_ref() == Some(text))
                };
                end.iter().find(is_meant).cloned()
            };
            table.decoder.resolve_from(read).unwrap();
            if let Some(batch) = table.decoder.finish().unwrap() {
                table.fold(&batch, recording.name == "schema_change");
            }
        }
    }

    /// Types that somebody has made are named before they are used, domains by the type below them.
    fn learn_type(&mut self, oid: u32, schema: &str, name: &str) {
        let kind = match name {
            "numeric" => TypeKind::Domain { base: 1700, type_modifier: 655_366 },
            "mood" | "Odd \"Name" => TypeKind::Enum,
            "_mood" => TypeKind::Array { element: 25, delimiter: b',' },
            "pair" => TypeKind::Composite,
            _ => TypeKind::Base,
        };
        let (schema, name) = (schema.to_owned(), name.to_owned());
        self.types.insert(oid, PgType { schema, name, kind, has_text_cast: false });
    }

    fn define(&mut self, relation: &Relation<'_>) {
        let declared = declared(&self.recording.name, relation);
        let columns: Vec<String> = declared.physical.iter().map(|column| column.name.clone()).collect();
        let column = |column: &RelationColumn<'_>| PgColumn {
            name: column.name.to_owned(),
            type_oid: column.type_oid,
            type_modifier: column.type_modifier,
        };
        let table = PgTable {
            oid: relation.oid,
            schema: relation.schema.to_owned(),
            name: relation.table.to_owned(),
            columns: relation.columns.iter().map(column).collect(),
            key: Vec::new(),
            identity: relation.identity,
            is_partitioned: false,
            row_estimate: None,
            pages: 0,
        };
        self.flush();
        let name = format!("{}.{}", relation.schema, relation.table);
        let known = self.tables.remove(&relation.oid);
        let is_same = known.as_ref().is_some_and(|known| {
            let shape = &known.decoder.shape;
            (&shape.physical, &shape.key, shape.changes)
                == (&declared.physical, &declared.key, declared.changes)
        });
        let mut folded = match known {
            Some(known) if is_same => Folded { name, ..known },
            // As if the table had been declared anew with the columns that it has now.
            known => {
                let carried = known.map_or_else(Vec::new, |known| {
                    let place = |name: &String| known.columns.iter().position(|column| column == name);
                    let places: Vec<Option<usize>> = columns.iter().map(place).collect();
                    let carry = |row: &Cells| places.iter().map(|place| row[(*place)?].clone()).collect();
                    known.rows.iter().map(carry).collect()
                });
                Folded { decoder: ChangeDecoder::new(declared, "fixture"), name, columns, rows: carried }
            }
        };
        self.notices.extend(folded.decoder.define(relation, &table, &self.types).unwrap());
        self.tables.insert(relation.oid, folded);
    }
}

/// Returns the rows that the server's table had at the end, in the given columns.
fn expected_rows(recording: &Recording, table: &str, columns: &[String]) -> Vec<Cells> {
    let Some(table) = recording.expected["tables"].get(table) else { return Vec::new() };
    let names = table["columns"].as_array().unwrap();
    let places: Vec<usize> =
        columns.iter().filter_map(|column| names.iter().position(|name| name == column)).collect();
    let cells = |row: &Value| places.iter().map(|place| row[*place].as_str().map(str::to_owned)).collect();
    table["rows"].as_array().unwrap().iter().map(cells).collect()
}

/// Returns what a cell of the server is in a column of a declared type: NULL where the type does not hold it.
fn held(cell: &Option<String>, root: &TypeRoot) -> Option<String> {
    let text = cell.clone()?;
    match root {
        Decimal(..) if ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) => None,
        Decimal(19, 2) => Some(text.replace(['$', ','], "")),
        Date | Timestamp(_) | TimestampLtz(_) if text.ends_with("infinity") => None,
        // Microseconds since 1970 end before.
        Timestamp(6) | TimestampLtz(6) if text.starts_with("294276") => None,
        Time(_) if text == "24:00:00" => None,
        // One dimension is declared, and no bounds.
        TypeRoot::Array(_) if text.starts_with("{{") => None,
        TypeRoot::Array(_) => Some(text[text.find('{').unwrap()..].to_owned()),
        // The order of entries is that of the server.
        _ => Some(text),
    }
}

/// Rows that a reader of the messages has, or has not, although the table says otherwise at the end; tests/postgres/pgoutput/README.md
/// and the headers of the recordings say why.
fn correct_for_what_is_not_sent(recording: &str, table: &str, expected: &mut Vec<Cells>) {
    match (recording, table) {
        ("partition_root", "public.parts") => {
            expected.push(vec![Some("3".to_owned()), Some("stays".to_owned())]);
        }
        ("pg18_origin_none", "public.t") => expected.retain(|row| row[0].as_deref() != Some("2")),
        // Described, but its changes are the root's.
        ("partition_root", "public.parts_high") => expected.clear(),
        // Columns that were renamed or added made no events: rows that were there before do not have them.
        ("schema_change", "public.renamed") => {
            for row in expected {
                let id: u32 = row[0].as_ref().unwrap().parse().unwrap();
                if id < 3 {
                    row[1] = None;
                }
                if id < 6 {
                    row[3] = None;
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_tables_of_every_recording_are_what_the_server_has() {
    let (mut table_count, mut cell_count) = (0, 0);
    for recording in Recording::all() {
        let replay = Replay::run(&recording);
        for table in replay.tables.values() {
            if recording.name == "types_session" {
                continue;
            }
            let mut expected = expected_rows(&recording, &table.name, &table.columns);
            correct_for_what_is_not_sent(&recording.name, &table.name, &mut expected);
            let roots = table.decoder.shape.physical.iter().map(|column| &column.data_type.root);
            let roots: Vec<&TypeRoot> = roots.collect();
            let held = |row: &Cells| row.iter().zip(&roots).map(|(cell, root)| held(cell, root)).collect();
            let mut expected: Vec<Cells> = expected.iter().map(held).collect();
            let mut found = table.rows.clone();
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{}: {}", recording.name, table.name);
            (table_count, cell_count) = (table_count + 1, cell_count + found.len() * roots.len());
        }
    }
    assert!(table_count >= 30 && cell_count >= 400, "{table_count} tables, {cell_count} cells");
}

#[test]
fn texts_of_other_session_settings_are_read_as_they_stand() {
    let recording = Recording::read("types_session");
    let replay = Replay::run(&recording);
    let mut expected: HashMap<u64, Vec<Cells>> = HashMap::new();
    for message in recording.expected["messages"].as_array().unwrap() {
        if message["type"] == "insert" {
            let cells =
                message["new"].as_array().unwrap().iter().map(|cell| cell.as_str().map(str::to_owned));
            expected.entry(message["oid"].as_u64().unwrap()).or_default().push(cells.collect());
        }
    }
    assert_eq!(expected.len(), 4);
    for (oid, rows) in expected {
        assert_eq!(replay.tables[&(oid as u32)].rows, rows);
    }
}

#[test]
fn a_key_that_changes_with_a_large_value_keeps_it() {
    let recording = Recording::read("toast");
    let replay = Replay::run(&recording);
    let table = replay.tables.values().find(|table| table.name == "public.by_default").unwrap();
    let big = "b".repeat(2_500);
    assert_eq!(table.rows, [vec![Some("20".to_owned()), Some("2".to_owned()), Some(big)]]);
}
