//! Values that a change left out.

use std::time::Duration;

use tokio_postgres::Client;

use super::*;
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::settings::TableSelection;
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::{TestDatabase, shape};
use crate::schema::TypeRoot::{self, Int};

fn declared(changes: Changes) -> RowShape {
    shape(&[("id", Int), ("a", TypeRoot::STRING), ("b", Int)], &[0], changes)
}

#[test]
fn whole_old_rows_have_what_the_new_ones_lack() {
    let mut decoder = decoder(declared(Changes::All), ReplicaIdentity::Full);
    let changes = [
        update_from(b'O', &["1", "large", "1"], &["1", UNCHANGED, "2"]),
        update_from(b'O', &["1", "large", "2"], &["5", UNCHANGED, "2"]),
    ];
    let expected = ["-U 1 large 1", "+U 1 large 2", "-D 1 large 2", "+I 5 large 2"];
    assert_eq!(decoded(&mut decoder, &changes), expected);
}

#[test]
fn a_batch_is_not_given_away_before_it_is_whole() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    apply(&mut decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap();
    assert_eq!(decoder.unresolved_count(), 1);
    assert!(decoder.finish().is_err());
}

#[test]
fn values_are_read_by_the_key_after_the_change_and_rows_that_are_gone_are_dropped() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let changes = [
        update(&["1", UNCHANGED, "2"]),
        insert(&["3", "three", "3"]),
        update(&["2", UNCHANGED, "2"]),
        update_from(b'K', &["4", NULL, NULL], &["5", UNCHANGED, "5"]),
    ];
    changes.iter().for_each(|change| apply(&mut decoder, change, Emits::BOTH).unwrap());
    let there = |_: u32, key: &[String]| match key[0].as_str() {
        "1" => Some(vec![None, Some("read".to_owned()), None]),
        "5" => Some(vec![None, None, None]),
        _ => None,
    };
    decoder.resolve_from(there).unwrap();
    let batch = decoder.finish().unwrap().unwrap();
    let expected = ["+U 1 read 2", "+I 3 three 3", "-D 4 <null> <null>", "+I 5 <null> 5"];
    assert_eq!(rows(&batch), expected);
    assert_eq!(decoder.unresolved_count(), 0);
}

#[test]
fn a_batch_of_nothing_but_rows_that_are_gone_is_none() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    apply(&mut decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap();
    decoder.resolve_from(|_, _| None).unwrap();
    assert!(decoder.finish().unwrap().is_none());
    assert_eq!(decoded(&mut decoder, &[insert(&["1", "one", "1"])]), ["+I 1 one 1"]);
}

#[test]
fn rows_of_a_table_that_is_emptied_are_not_read_again() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let changes = [insert(&["3", "three", "3"]), update(&["1", UNCHANGED, "2"])];
    changes.iter().for_each(|change| apply(&mut decoder, change, Emits::BOTH).unwrap());
    decoder.leave_out_unresolved();
    assert_eq!(rows(&decoder.finish().unwrap().unwrap()), ["+I 3 three 3"]);
    apply(&mut decoder, &update(&["3", UNCHANGED, "4"]), Emits::BOTH).unwrap();
    assert_eq!(decoder.unresolved_count(), 1, "what follows is");
}

#[test]
fn a_log_takes_no_row_that_is_not_whole() {
    let mut shape = declared(Changes::AppendOnly);
    shape.wants_update_before = false;
    let mut decoder = decoder(shape, ReplicaIdentity::Default);
    let error = apply(&mut decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap_err();
    assert!(error.hint_text().unwrap().starts_with("Run ALTER TABLE \"public\".\"t\" REPLICA IDENTITY FULL"));
}

#[test]
fn rows_without_a_key_are_refused_with_the_statement_that_helps() {
    let columns = [("id", 23, false), ("a", 25, false), ("b", 23, false)];
    let mut decoder = ChangeDecoder::new(declared(Changes::Upsert), "app");
    describe(&mut decoder, ReplicaIdentity::Nothing, &columns, &built_in_types()).unwrap();
    let error = apply(&mut decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap_err();
    assert!(error.message().contains("it has no key"), "{error}");
    assert!(error.hint_text().unwrap().contains("REPLICA IDENTITY FULL"));
}

/// Gives a decoder what a slot has of a table; returns how many rows lack values.
async fn take_changes(
    database: &TestDatabase,
    client: &Client,
    decoder: &mut ChangeDecoder,
    table: &PgTable,
    types: &PgTypes,
) -> usize {
    let changes = format!(
        "SELECT data FROM pg_logical_slot_get_binary_changes('{}', NULL, NULL, 'proto_version', '1', 'publication_names', 'all')",
        database.name
    );
    let (mut parser, mut of) = (Parser::default(), COMMITTED);
    for row in client.query(&changes, &[]).await.unwrap() {
        match parser.parse(row.get(0)).unwrap() {
            Message::Begin { xid, commit_time, .. } => of = Transaction { xid: u64::from(xid), commit_time },
            Message::Relation { relation, .. } => {
                decoder.define(&relation, table, types).unwrap();
            }
            Message::Insert { oid, new, .. } => decoder.insert(oid, new, of).unwrap(),
            Message::Update { oid, old, new, .. } => decoder.update(oid, old, new, Emits::BOTH, of).unwrap(),
            Message::Delete { oid, old, .. } => decoder.delete(oid, old, of).unwrap(),
            _ => {}
        }
    }
    decoder.unresolved_count()
}

/// Keys of types that are compared in their own way, a name that must be quoted, a type whose cast to text is a function of its own.
const TABLE: &str = "CREATE EXTENSION citext;
  CREATE DOMAIN code AS char(3);
  CREATE COLLATION german (provider = icu, locale = 'de');
  CREATE TABLE \"T t\" (name text COLLATE german, at timestamptz, kind code, id citext, big text, ip inet, n int, PRIMARY KEY (name, at, kind, id));
  ALTER TABLE \"T t\" ALTER big SET STORAGE EXTERNAL;
  CREATE PUBLICATION \"all\" FOR ALL TABLES";

fn declared_table() -> RowShape {
    let columns = [
        ("name", TypeRoot::STRING),
        ("at", TypeRoot::TimestampLtz(6)),
        ("kind", TypeRoot::STRING),
        ("id", TypeRoot::STRING),
        ("big", TypeRoot::STRING),
        ("ip", TypeRoot::STRING),
        ("n", Int),
    ];
    shape(&columns, &[0, 1, 2, 3], Changes::Upsert)
}

/// Makes the table, a slot, and three rows with large values; returns the table.
async fn make_table(database: &TestDatabase, client: &Client) -> PgTable {
    database.run(TABLE).await;
    let slot = &database.name;
    database.run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")).await;
    let insert = "INSERT INTO \"T t\" SELECT n, '2024-01-01 00:00:00.000001+00', k, 'Id', repeat(k, 20000), '10.0.0.1', 0
      FROM (VALUES ('É', 'a'), ('b', 'b '), ('c', 'c'), ('d', 'd')) v (n, k)";
    database.run(insert).await;
    let selection = TableSelection::new("public".to_owned(), ".*".to_owned(), false).unwrap();
    let tables = load_tables(&database.server, client, &selection, GeneratedColumns::Selected).await.unwrap();
    tables.into_iter().next().unwrap()
}

#[tokio::test]
async fn large_values_are_read_from_the_server_in_one_go() {
    TestDatabase::with(async |database| {
        let mut client = database.server.connect().await.unwrap();
        let table = make_table(database, &client).await;
        let types = PgTypes::load(&client).await.unwrap();
        let mut decoder = ChangeDecoder::new(declared_table(), "app");
        assert_eq!(take_changes(database, &client, &mut decoder, &table, &types).await, 0);
        assert_eq!(decoder.finish().unwrap().unwrap().row_count(), 4);
        for change in [
            "UPDATE \"T t\" SET n = 1",
            "UPDATE \"T t\" SET name = 'C', n = 2 WHERE name = 'c'",
            "UPDATE \"T t\" SET big = NULL WHERE name = 'b'",
            "DELETE FROM \"T t\" WHERE name = 'd'",
            // Names are those at the time of the reading.
            "ALTER TABLE \"T t\" RENAME TO \"U \"\"u\"",
        ] {
            database.run(change).await;
        }
        assert_eq!(take_changes(database, &client, &mut decoder, &table, &types).await, 5);
        decoder.resolve(&mut client, &database.server).await.unwrap();
        let batch = decoder.finish().unwrap().unwrap();
        let large =
            |row: &String| row.replace(&"a".repeat(20_000), "AAA").replace(&"c".repeat(20_000), "CCC");
        let found: Vec<String> = rows(&batch).iter().map(large).collect();
        let at = "2024-01-01 00:00:00.000001+00";
        assert_eq!(
            found,
            [
                // Newer than the change: NULL follows.
                format!("+U É {at} a   Id AAA 10.0.0.1 1"),
                format!("+U b {at} b   Id <null> 10.0.0.1 1"),
                // Those of c before it became C, and of d, are gone.
                format!("-D c {at} c   Id <null> <null> <null>"),
                format!("+I C {at} c   Id CCC 10.0.0.1 2"),
                format!("+U b {at} b   Id <null> 10.0.0.1 1"),
                format!("-D d {at} d   Id <null> <null> <null>"),
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn nothing_is_read_before_the_change_itself_is_visible() {
    TestDatabase::with(async |database| {
        let mut client = database.server.connect().await.unwrap();
        let table = make_table(database, &client).await;
        let types = PgTypes::load(&client).await.unwrap();
        let mut decoder = ChangeDecoder::new(declared_table(), "app");
        take_changes(database, &client, &mut decoder, &table, &types).await;
        decoder.finish().unwrap();
        // A transaction that the stream has already and that others do not see yet, as behind a slow standby.
        let mut writer = database.server.connect().await.unwrap();
        let transaction = writer.transaction().await.unwrap();
        let change =
            "UPDATE \"T t\" SET big = 'new' WHERE name = 'b' RETURNING pg_current_xact_id()::text::bigint";
        let change = change.replace("\"T t\"", "public.\"T t\"");
        let xid: i64 = transaction.query_one(&change, &[]).await.unwrap().get(0);
        let update = update(&["b", "2024-01-01 00:00:00.000001+00", "b  ", "Id", UNCHANGED, "10.0.0.1", "1"]);
        let update = [&update[..1], &table.oid.to_be_bytes(), &update[5..]].concat();
        let Message::Update { oid, old, new, .. } = Parser::default().parse(&update).unwrap() else {
            panic!()
        };
        let of = Transaction { xid: xid.cast_unsigned(), commit_time: 0 };
        decoder.update(oid, old, new, Emits::BOTH, of).unwrap();
        let early = decoder.resolve(&mut client, &database.server);
        assert!(tokio::time::timeout(Duration::from_millis(100), early).await.is_err(), "it waits");
        transaction.commit().await.unwrap();
        decoder.resolve(&mut client, &database.server).await.unwrap();
        let batch = decoder.finish().unwrap().unwrap();
        assert_eq!(rows(&batch), ["+U b 2024-01-01 00:00:00.000001+00 b   Id new 10.0.0.1 1"]);
    })
    .await;
}
