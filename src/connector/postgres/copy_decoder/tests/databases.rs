//! Databases that are not as one would like them: texts of no known encoding, types that the role may not name.

use super::same_cells::{copied, streamed};
use super::*;
use crate::connector::postgres::settings::TableSelection;
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::TestDatabase;
use crate::error::ErrorKind;
use crate::schema::TypeRoot::{Array, Decimal, Map};

/// Describes the table `t`.
async fn described(database: &TestDatabase) -> (PgTable, PgTypes) {
    let selection = TableSelection::new("public".to_owned(), "t".to_owned(), true).unwrap();
    let (server, client) = (&database.server, &database.client);
    let mut tables = load_tables(server, client, &selection, GeneratedColumns::Selected).await.unwrap();
    (tables.remove(0), PgTypes::load(client).await.unwrap())
}

#[tokio::test]
async fn texts_that_are_not_utf8_are_an_error_with_a_way_out() {
    let encoding = "ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'";
    TestDatabase::with_options(encoding, async |database| {
        database
            .run(
                "CREATE EXTENSION hstore; CREATE TABLE t (id int PRIMARY KEY, a text, c char(5), l text[], h hstore, j json, x xml);
                 CREATE PUBLICATION fixture FOR TABLE t",
            )
            .await;
        let slot = &database.name;
        database.run(&format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")).await;
        database
            .run(
                "INSERT INTO t VALUES (1, E'caf\\xe9', E'caf\\xe9', ARRAY[E'caf\\xe9'], hstore('k', E'caf\\xe9'), E'\"caf\\xe9\"',
                   XMLPARSE(CONTENT '<a/>'))",
            )
            .await;
        let client = database.server.connect().await.unwrap();
        let changes = format!(
            "SELECT data FROM pg_logical_slot_get_binary_changes('{slot}', NULL, NULL, 'proto_version', '1', 'publication_names', 'fixture')"
        );
        let messages: Vec<Vec<u8>> =
            client.query(&changes, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let (table, types) = described(database).await;
        let text = || TypeRoot::STRING.nullable();
        for (column, root) in [
            ("a", TypeRoot::STRING),
            ("c", TypeRoot::Char(5)),
            ("l", Array(Box::new(text()))),
            ("l", TypeRoot::STRING),
            ("h", Map(Box::new(text()), Box::new(text()))),
            ("j", TypeRoot::STRING),
        ] {
            let mut shape = shape(&[(column, root)], &[], Changes::All);
            shape.unrepresentable = Unrepresentable::Null;
            let errors = [
                copied(&client, &shape, &table, &types).await.unwrap_err(),
                streamed(&messages, &shape, &table, &types).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Data, "{error}");
                let message = error.message();
                let value = format!("of column '{column}' in table public.t ");
                assert!(message.contains("caf\\xe9") && message.contains(&value), "{message}");
                assert!(message.ends_with("it is not UTF-8"), "{message}");
            }
        }
        // What the hint says helps.
        let shape = shape(&[("a", TypeRoot::STRING)], &[], Changes::All);
        let error = copied(&client, &shape, &table, &types).await.unwrap_err();
        let (_, rest) = error.hint_text().unwrap().split_once("UPDATE ").unwrap();
        let (statement, _) = rest.split_once(" WHERE").unwrap();
        database.run(&format!("UPDATE {statement}")).await;
        let found = copied(&client, &shape, &table, &types).await.unwrap();
        assert_eq!(pg_texts(&shape.physical[0].data_type, &found), [Some("café".to_owned())]);
    })
    .await;
}

#[tokio::test]
async fn who_may_read_a_table_need_not_be_allowed_to_name_its_types() {
    TestDatabase::with(async |database| {
        database
            .run(
                "CREATE SCHEMA types; CREATE EXTENSION citext SCHEMA types; CREATE DOMAIN types.amount AS numeric(10, 2);
                 CREATE DOMAIN types.mail AS types.citext; CREATE DOMAIN types.code AS char(3); CREATE TYPE types.mood AS ENUM ('ok');
                 CREATE TABLE t (id int PRIMARY KEY, n types.amount, c types.citext, m types.mail, k types.code, e types.mood);
                 INSERT INTO t VALUES (1, 1.5, 'Ab', 'a@B.c', 'k', 'ok')",
            )
            .await;
        let (table, types) = described(database).await;
        let role = database.role("", "x").await;
        database.run(&format!("GRANT SELECT ON t TO {}", role.settings().user)).await;
        let client = role.connect().await.unwrap();
        for (column, root, expected) in [
            ("n", Decimal(10, 2), "1.50"),
            ("c", TypeRoot::STRING, "Ab"),
            ("m", TypeRoot::STRING, "a@B.c"),
            ("k", TypeRoot::STRING, "k  "),
            ("e", TypeRoot::STRING, "ok"),
        ] {
            let shape = shape(&[(column, root)], &[], Changes::All);
            let found = copied(&client, &shape, &table, &types).await.unwrap();
            assert_eq!(pg_texts(&shape.physical[0].data_type, &found), [Some(expected.to_owned())]);
        }
    })
    .await;
}
