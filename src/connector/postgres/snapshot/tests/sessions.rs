//! What goes on beside the readers: connections that are lost, commands that write tables anew, settings of the server.

use std::time::Duration;

use super::super::testing::{chunks_of, read_all, texts};
use super::super::{SnapshotReader, TableSnapshot};
use crate::connector::postgres::testing::TestDatabase;
use crate::error::ErrorKind;

/// Ends the connections that are reading tables.
const END_READERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'COPY %'";

#[tokio::test(flavor = "multi_thread")]
async fn chunks_are_read_anew_when_connections_are_lost() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY, v text)").await;
        database
            .run("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 40000) g; ANALYZE t")
            .await;
        let mut reader = database.reader("t", 500).await;
        let mut rows = Vec::new();
        let mut chunks = 0;
        while let Some(piece) = reader.next().await.unwrap() {
            rows.extend(texts(&piece.batch));
            chunks += 1;
            if chunks % 20 == 0 {
                database.run(END_READERS).await;
            }
        }
        rows.sort();
        assert_eq!(rows, database.rows("t").await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_under_one_snapshot_fails_as_unavailable_when_a_connection_is_lost() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (k text PRIMARY KEY, v text)").await;
        database
            .run("INSERT INTO t SELECT 'k' || g, repeat('x', 1000) FROM generate_series(1, 60000) g")
            .await;
        let mut reader = database.reader("t", 500).await;
        reader.next().await.unwrap().unwrap();
        database.run(END_READERS).await;
        let error = loop {
            match reader.next().await {
                Ok(piece) => assert!(!piece.unwrap().ends_chunk),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert_eq!(reader.states(), [TableSnapshot::Pending]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_goes_on_behind_the_chunks_that_were_kept() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id uuid PRIMARY KEY); CREATE TABLE c (k text PRIMARY KEY)").await;
        database
            .run(
                "INSERT INTO a SELECT generate_series(1, 2000); INSERT INTO b SELECT gen_random_uuid() FROM generate_series(1, 2000); \
                 INSERT INTO c SELECT generate_series(1, 2000); ANALYZE",
            )
            .await;
        let mut states = vec![TableSnapshot::Pending; 3];
        let mut rows: Vec<Vec<String>> = vec![Vec::new(); 3];
        let mut readers = 0;
        while !states.iter().all(TableSnapshot::is_complete) {
            let tables: Vec<_> = ["a", "b", "c"].into_iter().zip(states.iter().cloned()).collect();
            let mut reader = database.try_reader(&tables, &chunks_of(100)).await.unwrap();
            readers += 1;
            let mut ends = 0;
            let mut part = Vec::new();
            while let Some(piece) = reader.next().await.unwrap() {
                part.push((piece.table, texts(&piece.batch)));
                if piece.ends_chunk {
                    for (table, texts) in part.drain(..) {
                        rows[table].extend(texts);
                    }
                    states = reader.states().to_vec();
                    ends += 1;
                    if ends == 3 {
                        break;
                    }
                }
            }
        }
        assert!(readers > 10, "{readers}");
        for (table, mut rows) in ["a", "b", "c"].into_iter().zip(rows) {
            rows.sort();
            assert_eq!(rows, database.rows(table).await, "{table}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_tables_gain_while_they_are_read_is_read_or_left_to_the_stream() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY, v text)").await;
        database.run("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 5000) g; ANALYZE t").await;
        let mut reader = database.reader("t", 100).await;
        let mut rows: Vec<String> = Vec::new();
        let mut xids = Vec::new();
        while let Some(piece) = reader.next().await.unwrap() {
            rows.extend(texts(&piece.batch));
            if xids.len() < 20 {
                let id = 10_000 + 100 * xids.len();
                let insert = format!("INSERT INTO t SELECT g, 'new' FROM generate_series({id}, {id} + 99) g RETURNING pg_current_xact_id()::text");
                let xid: String = database.client.query(&insert, &[]).await.unwrap()[0].get(0);
                xids.push(xid.parse::<u64>().unwrap());
            }
        }
        assert_eq!(rows.iter().filter(|row| row.ends_with("old")).count(), 5000);
        for (batch, xid) in xids.into_iter().enumerate() {
            let id = 10_000 + 100 * batch;
            let is_read = rows.contains(&format!("{id}|new"));
            let is_covered = reader.states()[0].covers(xid, Some(id.to_string().as_bytes())).unwrap();
            assert_eq!(is_read, is_covered, "{id}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_writes_the_table_anew_waits_and_hides_no_rows() {
    TestDatabase::with(async |database| {
        for (key, chunk_rows) in [("int", 500), ("text", 500)] {
            database.run(&format!("DROP TABLE IF EXISTS t; CREATE TABLE t (id {key} PRIMARY KEY, v int, w text)")).await;
            database.run("INSERT INTO t SELECT g, g, repeat('x', 2000) FROM generate_series(1, 30000) g; ANALYZE t").await;
            let mut reader = database.reader("t", chunk_rows).await;
            let mut count = reader.next().await.unwrap().unwrap().batch.row_count();
            let client = database.connect().await;
            let altered = tokio::spawn(async move {
                client.batch_execute("ALTER TABLE t ALTER COLUMN v TYPE bigint").await.unwrap();
            });
            let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'";
            while !altered.is_finished() && database.client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
            while let Some(piece) = tokio::time::timeout(Duration::from_secs(100), reader.next()).await.unwrap().unwrap() {
                count += piece.batch.row_count();
            }
            assert_eq!(count, 30_000, "{key}");
            altered.await.unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_policy_hides_fail_the_snapshot() {
    TestDatabase::with(async |database| {
        let role = format!("reader_{}", uuid::Uuid::new_v4().simple());
        database
            .run(&format!(
                "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2); CREATE ROLE {role}; GRANT SELECT ON t TO {role}; \
                 ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id = 1); \
                 ALTER DATABASE {} SET role = {role}",
                database.client.query_one("SELECT current_database()::text", &[]).await.unwrap().get::<_, String>(0),
            ))
            .await;
        let error = database.reader("t", 10).await.next().await.unwrap_err();
        assert!(error.message().contains("row-level security"), "{error}");
        database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timeouts_of_the_server_do_not_end_a_snapshot() {
    TestDatabase::with(async |database| {
        let name: String =
            database.client.query_one("SELECT current_database()::text", &[]).await.unwrap().get(0);
        for setting in [
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "idle_session_timeout",
        ] {
            database.run(&format!("ALTER DATABASE {name} SET {setting} = 50")).await;
        }
        database.run("CREATE TABLE t (id int PRIMARY KEY, v text)").await;
        database
            .run("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 20000) g; ANALYZE t")
            .await;
        let mut reader = database.reader("t", 1000).await;
        reader.next().await.unwrap();
        // Longer than any of them.
        database.run("SELECT pg_sleep(0.3)").await;
        let (rows, _) = read_all(&mut reader).await;
        assert!(rows.len() < 20_000 && rows.len() > 10_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_to_select_a_table_is_enough_for_its_partitions_too() {
    TestDatabase::with(async |database| {
        database
            .run(
                "CREATE SCHEMA s; CREATE TABLE s.plain (k text PRIMARY KEY); INSERT INTO s.plain VALUES ('a'); \
                 CREATE TABLE s.parts (k text PRIMARY KEY) PARTITION BY HASH (k); \
                 CREATE TABLE s.part PARTITION OF s.parts FOR VALUES WITH (MODULUS 1, REMAINDER 0); INSERT INTO s.parts VALUES ('b'); \
                 CREATE TABLE s.keyed (id int PRIMARY KEY); INSERT INTO s.keyed SELECT generate_series(1, 1000); ANALYZE s.keyed",
            )
            .await;
        let server = database.role("", "secret").await;
        let user = &server.settings().user;
        database.run(&format!("GRANT USAGE ON SCHEMA s TO {user}; GRANT SELECT ON s.plain, s.parts, s.keyed TO {user}")).await;
        let mut tables = Vec::new();
        for table in ["plain", "parts", "keyed"] {
            tables.push(database.input("s", table, TableSnapshot::Pending, &chunks_of(100)).await.unwrap());
        }
        let mut reader = SnapshotReader::new(&server, tables, 2).unwrap();
        assert_eq!(read_all(&mut reader).await.0.len(), 1002);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_get_no_connection_leave_the_table_to_the_others() {
    TestDatabase::with(async |database| {
        database
            .run("CREATE TABLE keyed (id int PRIMARY KEY); CREATE TABLE pages (k text PRIMARY KEY, v text)")
            .await;
        database
            .run(
                "INSERT INTO keyed SELECT generate_series(1, 1000); ANALYZE keyed; \
                 INSERT INTO pages SELECT g, repeat('x', 1900) FROM generate_series(1, 15000) g",
            )
            .await;
        let server = database.role("CONNECTION LIMIT 1", "secret").await;
        database.run(&format!("GRANT SELECT ON keyed, pages TO {}", server.settings().user)).await;
        let mut tables = Vec::new();
        for table in ["keyed", "pages"] {
            tables.push(
                database.input("public", table, TableSnapshot::Pending, &chunks_of(100)).await.unwrap(),
            );
        }
        let mut reader = SnapshotReader::new(&server, tables, 3).unwrap();
        assert_eq!(read_all(&mut reader).await.0.len(), 16_000);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_anew_is_told() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY)").await;
        let tables =
            vec![database.input("public", "t", TableSnapshot::Pending, &chunks_of(100)).await.unwrap()];
        database.run("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY)").await;
        let mut reader = SnapshotReader::new(&database.server, tables, 1).unwrap();
        let error = reader.next().await.unwrap_err();
        assert!(error.message().contains("table public.t is another one"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Rejected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_nobody_takes_holds_no_transaction_open() {
    TestDatabase::with(async |database| {
        database.run("CREATE TABLE t (id int PRIMARY KEY, v text)").await;
        database.run("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 40000) g; ANALYZE t").await;
        let mut reader = database.reader("t", 2000).await;
        reader.next().await.unwrap();
        let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL";
        database.wait_for(open, "0").await;
        let (rows, _) = read_all(&mut reader).await;
        assert!(rows.len() >= 38_000);
    })
    .await;
}
