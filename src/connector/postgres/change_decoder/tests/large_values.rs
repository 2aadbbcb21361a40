//! Values that a change left out.

use std::time::Duration;

use tokio_postgres::Client;

use super::*;
use crate::connector::postgres::row_shape::Changes;
use crate::connector::postgres::settings::TableSelection;
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::{TestDatabase, shape};
use crate::error::ErrorKind;
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

#[test]
fn rows_count_by_what_has_been_read_last_for_others() {
    const KB: usize = 1 << 10;
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    let lack = |decoder: &mut ChangeDecoder, count: usize, length: usize| {
        (0..count).for_each(|_| {
            apply(decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap();
        });
        let expected = decoder.byte_size() / KB / count;
        let text = "x".repeat(length);
        decoder.resolve_from(|_, _| Some(vec![None, Some(text.clone()), None])).unwrap();
        // What has been read counts as what it is.
        assert_eq!(decoder.byte_size() / KB, count * length / KB);
        decoder.finish().unwrap();
        assert_eq!(decoder.byte_size(), 0);
        expected
    };
    // Few rows before anything is known, and then as many as go into some megabytes.
    assert_eq!(lack(&mut decoder, 4, 2_000 * KB), 128);
    assert_eq!(lack(&mut decoder, 4, 20 * KB), 2_000);
    let falling: Vec<usize> = (0..9).map(|_| lack(&mut decoder, 4, 4 * KB)).collect();
    assert_eq!(falling, [1_000, 500, 250, 125, 62, 31, 15, 8, 8]);
    assert_eq!(lack(&mut decoder, 4, 4 * KB), 8, "a value that is kept apart has some size");
}

#[test]
fn a_table_is_not_described_anew_while_rows_of_it_lack_values() {
    let mut decoder = decoder(declared(Changes::Upsert), ReplicaIdentity::Default);
    apply(&mut decoder, &update(&["1", UNCHANGED, "2"]), Emits::BOTH).unwrap();
    assert!(decoder.lacks_values_of(OID) && !decoder.lacks_values_of(OID + 1));
    // The key has grown: that of the row is looked for in other columns than the description now has.
    let columns = [("id", 23, true), ("a", 25, false), ("b", 23, true)];
    assert!(describe(&mut decoder, ReplicaIdentity::Default, &columns, &built_in_types()).is_err());
    decoder.resolve_from(|_, key| Some(vec![None, Some(key.join(",")), None])).unwrap();
    describe(&mut decoder, ReplicaIdentity::Default, &columns, &built_in_types()).unwrap();
    assert_eq!(decoded(&mut decoder, &[insert(&["2", "two", "2"])]), ["+U 1 1 2", "+I 2 two 2"]);
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

/// Makes a table `t` and a slot, and updates its row; returns a decoder that has the change without the large value.
async fn lacking(database: &TestDatabase, setup: &str, key: TypeRoot) -> ChangeDecoder {
    let publication = "CREATE PUBLICATION \"all\" FOR ALL TABLES WITH (publish_via_partition_root)";
    database.run(&format!("{setup}; {publication}")).await;
    database
        .run(&format!("SELECT pg_create_logical_replication_slot('{}', 'pgoutput')", database.name))
        .await;
    let client = database.server.connect().await.unwrap();
    let selection = TableSelection::new("public".to_owned(), "t".to_owned(), true).unwrap();
    let tables =
        load_tables(&database.server, &client, &selection, GeneratedColumns::Selected).await.unwrap();
    let types = PgTypes::load(&client).await.unwrap();
    database.run("UPDATE t SET n = 2").await;
    let columns = [("id", key), ("big", TypeRoot::STRING), ("n", Int)];
    let mut decoder = ChangeDecoder::new(shape(&columns, &[0], Changes::Upsert), "app");
    assert_eq!(take_changes(database, &client, &mut decoder, &tables[0], &types).await, 1);
    decoder
}

/// A table with one row that has a large value.
const PLAIN: &str = "CREATE TABLE t (id int PRIMARY KEY, big text, n int);
  ALTER TABLE t ALTER big SET STORAGE EXTERNAL; INSERT INTO t VALUES (1, repeat('x', 20000), 1)";

/// Returns the rows, large values cut short.
fn cut(batch: &ChangelogBatch) -> Vec<String> {
    rows(batch).iter().map(|row| row.replace(&"x".repeat(19_999), "")).collect()
}

#[tokio::test]
async fn rows_of_a_table_that_has_been_dropped_are_dropped() {
    TestDatabase::with(async |database| {
        let mut decoder = lacking(database, PLAIN, Int).await;
        database.run("DROP TABLE t").await;
        let mut client = database.server.connect().await.unwrap();
        decoder.resolve(&mut client, &database.server).await.unwrap();
        assert!(decoder.finish().unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn rows_of_tables_that_inherit_are_not_taken_for_those_of_the_table() {
    TestDatabase::with(async |database| {
        let mut decoder = lacking(database, PLAIN, Int).await;
        database
            .run("CREATE TABLE child () INHERITS (t); INSERT INTO child VALUES (1, 'of the child', 1)")
            .await;
        let mut client = database.server.connect().await.unwrap();
        decoder.resolve(&mut client, &database.server).await.unwrap();
        assert_eq!(cut(&decoder.finish().unwrap().unwrap()), ["+U 1 x 2"]);
    })
    .await;
}

#[tokio::test]
async fn rows_of_partitions_are_read_again_through_their_root() {
    TestDatabase::with(async |database| {
        let setup = "CREATE TABLE t (id int PRIMARY KEY, big text, n int) PARTITION BY RANGE (id);
          CREATE TABLE first PARTITION OF t FOR VALUES FROM (0) TO (10);
          ALTER TABLE t ALTER big SET STORAGE EXTERNAL; ALTER TABLE first ALTER big SET STORAGE EXTERNAL;
          INSERT INTO t VALUES (1, repeat('x', 20000), 1)";
        let mut decoder = lacking(database, setup, Int).await;
        let mut client = database.server.connect().await.unwrap();
        decoder.resolve(&mut client, &database.server).await.unwrap();
        assert_eq!(cut(&decoder.finish().unwrap().unwrap()), ["+U 1 x 2"]);
    })
    .await;
}

#[tokio::test]
async fn a_key_that_has_become_the_key_of_several_rows_is_told() {
    TestDatabase::with(async |database| {
        let mut decoder = lacking(database, PLAIN, Int).await;
        database.run("ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t VALUES (1, 'another', 1)").await;
        let mut client = database.server.connect().await.unwrap();
        let error = decoder.resolve(&mut client, &database.server).await.unwrap_err();
        assert!(error.message().ends_with("(id) is no key of the table any more"), "{error}");
        assert!(error.hint_text().unwrap().contains("'resnapshot'"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn silence_while_values_are_read_again_is_taken_for_a_lost_connection() {
    TestDatabase::with(async |database| {
        let mut decoder = lacking(database, PLAIN, Int).await;
        // A server that does not answer.
        database.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").await;
        let mut client = database.server.connect().await.unwrap();
        let error = decoder.resolve(&mut client, &database.server).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            error.message().ends_with(": reading large values of table public.t again: no answer in 2 s"),
            "{error}"
        );
        database.run("ROLLBACK").await;
        let mut client = database.server.connect().await.unwrap();
        decoder.resolve(&mut client, &database.server).await.unwrap();
        assert_eq!(cut(&decoder.finish().unwrap().unwrap()), ["+U 1 x 2"]);
    })
    .await;
}

#[tokio::test]
async fn a_key_of_a_domain_is_found_without_the_right_to_name_it() {
    TestDatabase::with(async |database| {
        let setup = "CREATE SCHEMA types; CREATE DOMAIN types.code AS char(3); CREATE TABLE t (id types.code PRIMARY KEY, big text, n int);
          ALTER TABLE t ALTER big SET STORAGE EXTERNAL; INSERT INTO t VALUES ('a', repeat('x', 20000), 1)";
        let mut decoder = lacking(database, setup, TypeRoot::STRING).await;
        let role = database.role("", "x").await;
        database.run(&format!("GRANT SELECT ON t TO {}", role.settings().user)).await;
        let mut client = role.connect().await.unwrap();
        decoder.resolve(&mut client, &role).await.unwrap();
        assert_eq!(cut(&decoder.finish().unwrap().unwrap()), ["+U a   x 2"]);
    })
    .await;
}

#[tokio::test]
async fn a_large_value_that_is_not_utf8_is_told_by_name() {
    let encoding = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'";
    TestDatabase::with_options(encoding, async |database| {
        let setup = PLAIN.replace("repeat('x', 20000)", "repeat(E'caf\\xe9', 5000)");
        let mut decoder = lacking(database, &setup, Int).await;
        let mut client = database.server.connect().await.unwrap();
        let error = decoder.resolve(&mut client, &database.server).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        assert!(error.message().starts_with("value 'caf\\xe9caf"), "{error}");
        assert!(
            error.message().contains("column 'big' in table public.t")
                && error.message().ends_with("it is not UTF-8"),
            "{error}"
        );
    })
    .await;
}
