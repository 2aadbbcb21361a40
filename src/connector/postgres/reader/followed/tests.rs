//! What the catalog of a real server says.

use super::catalog::{had_rows, look_up, named};
use crate::connector::postgres::testing::TestDatabase;

/// Returns the number of a table.
async fn oid(database: &TestDatabase, table: &str) -> u32 {
    database.value(&format!("'{table}'::regclass::oid")).await.parse().unwrap()
}

#[tokio::test]
async fn a_table_is_published_by_the_same_entry_until_it_is_taken_out() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int); CREATE PUBLICATION p FOR TABLE t")
            .await;
        let t = oid(database, "t").await;
        let entries = async || {
            let seen = look_up(&database.server, &database.client, "p", &[t, 1]).await.unwrap();
            assert_eq!(seen.len(), 1);
            seen[&t].entries.clone()
        };
        let first = entries().await;
        assert_eq!(first.len(), 1);
        // Neither by other tables nor by another name.
        database.run("ALTER PUBLICATION p ADD TABLE u; ALTER PUBLICATION p SET TABLE t; ALTER TABLE t RENAME TO v").await;
        assert_eq!(entries().await, first);
        database.run("ALTER PUBLICATION p DROP TABLE v").await;
        assert!(entries().await.is_empty());
        database.run("ALTER PUBLICATION p ADD TABLE v").await;
        assert_ne!(entries().await, first);
        database.run("DROP PUBLICATION p; CREATE PUBLICATION p FOR ALL TABLES").await;
        assert_eq!(entries().await.len(), 1);
        if database.version().await >= 150_000 {
            database.run("DROP PUBLICATION p; CREATE PUBLICATION p FOR TABLES IN SCHEMA public, TABLE v").await;
            assert_eq!(entries().await.len(), 2);
        }
    })
    .await;
}

#[tokio::test]
async fn a_partition_of_a_published_root_is_published_by_the_roots_entry() {
    TestDatabase::with(async |database| {
        database
            .run(
                "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (10);
                 CREATE PUBLICATION p FOR TABLE t",
            )
            .await;
        let (t, low) = (oid(database, "t").await, oid(database, "t_low").await);
        let seen = look_up(&database.server, &database.client, "p", &[t, low]).await.unwrap();
        assert_eq!(seen[&t].partitions, [low]);
        assert_eq!(seen[&t].entries.len(), 1);
        assert_eq!(seen[&low].entries, seen[&t].entries);
    })
    .await;
}

#[tokio::test]
async fn rows_that_a_partition_had_before_it_was_attached_are_known() {
    TestDatabase::with(async |database| {
        let role = database.role("", "x").await;
        let attach = |table: &str, from: u32| {
            format!("ALTER TABLE t ATTACH PARTITION {table} FOR VALUES FROM ({from}) TO ({})", from + 10)
        };
        // Each a transaction of its own.
        for sql in [
            "CREATE TABLE t (id int) PARTITION BY RANGE (id)",
            "CREATE TABLE born PARTITION OF t FOR VALUES FROM (0) TO (10)",
            "INSERT INTO t VALUES (0)",
            "CREATE TABLE empty (id int)",
            &attach("empty", 10),
            "INSERT INTO t VALUES (10)",
            "CREATE TABLE filled (id int)",
            "INSERT INTO filled VALUES (20)",
            &attach("filled", 20),
            "INSERT INTO t VALUES (21)",
            &format!(
                "CREATE TABLE at_once (id int); INSERT INTO at_once VALUES (30); {}",
                attach("at_once", 30)
            ),
            &format!("CREATE TABLE behind (id int); {}; INSERT INTO t VALUES (40)", attach("behind", 40)),
            "CREATE TABLE branch (id int) PARTITION BY RANGE (id)",
            "CREATE TABLE leaf PARTITION OF branch FOR VALUES FROM (50) TO (60)",
            "INSERT INTO branch VALUES (50)",
            &attach("branch", 50),
            &format!("GRANT SELECT ON t TO {}", role.settings().user),
        ] {
            database.run(sql).await;
        }
        let client = role.connect().await.unwrap();
        let t = oid(database, "t").await;
        let expected = [
            ("born", false, Some(false)),
            ("empty", false, None),
            ("filled", true, None),
            ("at_once", true, Some(false)),
            ("behind", false, Some(false)),
            ("leaf", true, None),
        ];
        for (table, had, without_right) in expected {
            let oid = oid(database, table).await;
            let label = format!("public.{table}");
            let found = had_rows(&database.server, &database.client, oid, t).await.unwrap();
            assert_eq!(found, Some((label.clone(), Some(had))), "{table}");
            let found = had_rows(&role, &client, oid, t).await.unwrap();
            if table != "at_once" {
                assert_eq!(found, Some((label, without_right)), "{table} without the right to read it");
            }
        }
        assert_eq!(had_rows(&database.server, &database.client, 1, t).await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_table_that_has_the_name_of_another_one_is_found() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE \"My t\" (id int)").await;
        let first = oid(database, "\"My t\"").await;
        let name = [(first, "public".to_owned(), "My t".to_owned())];
        assert_eq!(named(&database.server, &database.client, &name).await.unwrap(), []);
        database.run("DROP TABLE \"My t\"; CREATE TABLE \"My t\" (id int)").await;
        let found = named(&database.server, &database.client, &name).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].oid, oid(database, "\"My t\"").await);
    })
    .await;
}
