//! Snapshot and changes together are the table, while it changes: every row that is inserted was not there, and every row that is
//! deleted or updated was.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use super::super::testing::{chunks_of, texts};
use super::super::{TableSnapshot, all_ended_by, next_transaction, wait_for_begun_transactions, widen};
use crate::connector::postgres::pgoutput::{Lsn, Message, OldTuple, Parser, Tuple, TupleValue};
use crate::connector::postgres::testing::TestDatabase;

/// How many keys the writers use.
const KEYS: i64 = 400;

/// A table that is put together from snapshot and changes, by the text of its key.
struct Folded {
    table: &'static str,
    oid: u32,
    /// How many columns the key has; they are the first ones.
    key_columns: usize,
    rows: BTreeMap<String, String>,
    state: TableSnapshot,
    is_filtered: bool,
    /// How many rows came that were there already, or went that were not.
    faults: usize,
}

impl Folded {
    fn key(&self, row: &str) -> String {
        row.split('|').take(self.key_columns).collect::<Vec<_>>().join("|")
    }

    fn insert(&mut self, row: String) {
        let replaced = self.rows.insert(self.key(&row), row.clone());
        assert!(
            !self.is_filtered || replaced.is_none(),
            "{}: {row} comes twice, over {replaced:?}",
            self.table
        );
    }

    fn remove(&mut self, row: &str) {
        let removed = self.rows.remove(&self.key(row));
        self.faults += usize::from(removed.is_none());
    }

    /// Returns whether a change of a row is told.
    fn tells(&self, xid: u64, row: &str) -> bool {
        let key = self.state.key_column().map(|_| row.split('|').next().unwrap().as_bytes());
        !self.is_filtered || !self.state.covers(xid, key).unwrap()
    }

    fn change(&mut self, xid: u64, old: Option<String>, new: Option<String>) {
        if let Some(old) = old.filter(|old| self.tells(xid, old)) {
            self.remove(&old);
        }
        if let Some(new) = new.filter(|new| self.tells(xid, new)) {
            self.insert(new);
        }
    }
}

/// Returns the values of a tuple that are not NULL, joined.
fn text(tuple: Tuple<'_>) -> String {
    let values = tuple.values().filter_map(|value| match value {
        TupleValue::Text(text) => Some(String::from_utf8(text.to_vec()).unwrap()),
        _ => None,
    });
    values.collect::<Vec<_>>().join("|")
}

/// Changes a table in transactions of all kinds until it is told to stop.
async fn write(client: Client, table: &'static str, seed: u64, stop: &AtomicBool) {
    let mut random = StdRng::seed_from_u64(seed);
    let key =
        |key: i64| if table == "composite" { format!("{}, {}", key / 20, key % 20) } else { key.to_string() };
    let columns = if table == "composite" { "(a, b)" } else { "(id)" };
    while !stop.load(Ordering::Relaxed) {
        let mut sql = String::from("BEGIN;");
        for _ in 0..random.random_range(1..6) {
            let (a, b) = (key(random.random_range(0..KEYS)), key(random.random_range(0..KEYS)));
            let value: u32 = random.random();
            let statement = match random.random_range(0..10) {
                0..4 => format!(
                    "INSERT INTO {table} VALUES ({a}, '{value}') ON CONFLICT {columns} DO UPDATE SET v = excluded.v;"
                ),
                4..6 => format!("DELETE FROM {table} WHERE {columns} = ({a});"),
                6..8 => format!(
                    "UPDATE {table} SET {columns} = ROW({b}) WHERE {columns} = ({a}) AND NOT EXISTS (SELECT 1 FROM {table} WHERE {columns} = ({b}));"
                ),
                8 => format!("SAVEPOINT s; DELETE FROM {table} WHERE {columns} = ({a}); ROLLBACK TO s;"),
                _ => format!(
                    "SAVEPOINT s; INSERT INTO {table} VALUES ({a}, '{value}') ON CONFLICT DO NOTHING; RELEASE s;"
                ),
            };
            sql.push_str(&statement);
        }
        let ends = if random.random_ratio(1, 6) { "ROLLBACK" } else { "COMMIT" };
        // Two keys that are taken, or locks in a circle, end a transaction too.
        let done = client.batch_execute(&sql).await;
        if random.random_ratio(1, 8) {
            tokio::time::sleep(Duration::from_millis(random.random_range(0..150))).await;
        }
        client.batch_execute(if done.is_ok() { ends } else { "ROLLBACK" }).await.unwrap();
    }
}

/// Reads the snapshot of tables, dropping the reader now and then between two chunks, and keeping what a checkpoint would.
async fn read_snapshot(database: &TestDatabase, folded: &mut [Folded], random: &mut StdRng) {
    loop {
        let tables: Vec<_> = folded.iter().map(|folded| (folded.table, folded.state.clone())).collect();
        let mut reader = database.try_reader(&tables, &chunks_of(40)).await.unwrap();
        let mut part: Vec<(usize, String)> = Vec::new();
        loop {
            let Some(piece) = reader.next().await.unwrap() else { return };
            part.extend(texts(&piece.batch).into_iter().map(|row| (piece.table, row)));
            if !piece.ends_chunk {
                continue;
            }
            for (table, row) in part.drain(..) {
                folded[table].insert(row);
            }
            let kept = serde_json::to_string(reader.states()).unwrap();
            let states: Vec<TableSnapshot> = serde_json::from_str(&kept).unwrap();
            for (folded, state) in folded.iter_mut().zip(states) {
                folded.state = state;
            }
            tokio::time::sleep(Duration::from_millis(random.random_range(0..20))).await;
            if random.random_ratio(1, 4) {
                break;
            }
        }
    }
}

/// Applies what the slot streams; returns how far it came.
async fn apply_changes(database: &TestDatabase, folded: &mut [Folded], near: u64) -> Lsn {
    let query = "SELECT data FROM pg_logical_slot_get_binary_changes(current_database()::text::name, NULL, NULL, 'proto_version', '1', 'publication_names', 'p')";
    let mut parser = Parser::default();
    let (mut xid, mut end) = (near, Lsn(0));
    for row in database.client.query(query, &[]).await.unwrap() {
        let (oid, old, new) = match parser.parse(row.get(0)).unwrap() {
            Message::Begin { xid: short, .. } => {
                xid = widen(short, xid);
                continue;
            }
            Message::Commit(point) => {
                end = point.end_lsn;
                continue;
            }
            Message::Insert { oid, new, .. } => (oid, None, Some(text(new))),
            Message::Update { oid, old, new, .. } => {
                let old = old.map(|(OldTuple::Key(old) | OldTuple::Row(old))| text(old));
                (oid, Some(old.unwrap_or_else(|| text(new))), Some(text(new)))
            }
            Message::Delete { oid, old: OldTuple::Key(old) | OldTuple::Row(old), .. } => {
                (oid, Some(text(old)), None)
            }
            _ => continue,
        };
        let table = folded.iter_mut().find(|folded| folded.oid == oid).unwrap();
        table.change(xid, old, new);
    }
    end
}

/// Runs writers over a snapshot, and checks that it becomes the table in the end; returns how many faults there were on the way.
async fn run(seed: u64, is_filtered: bool) -> usize {
    let mut faults = 0;
    TestDatabase::with(async |database| {
        database
            .run(&format!(
                "CREATE TABLE keyed (id bigint PRIMARY KEY, v text); CREATE TABLE composite (a int, b int, v text, PRIMARY KEY (a, b)); \
                 INSERT INTO keyed SELECT g, 'first' FROM generate_series(0, {KEYS}, 2) g; \
                 INSERT INTO composite SELECT g / 20, g % 20, 'first' FROM generate_series(0, {KEYS}, 2) g; \
                 ANALYZE; CREATE PUBLICATION p FOR TABLE keyed, composite"
            ))
            .await;
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let mut writers = JoinSet::new();
        for writer in 0..6 {
            let table = if writer % 2 == 0 { "keyed" } else { "composite" };
            writers.spawn(write(database.connect().await, table, seed * 100 + writer, stop));
        }
        database.run("SELECT pg_create_logical_replication_slot(current_database()::text::name, 'pgoutput')").await;
        wait_for_begun_transactions(&database.server, &database.client, |_| {}).await.unwrap();
        let mut folded = Vec::new();
        for (table, key_columns) in [("keyed", 1), ("composite", 2)] {
            let oid = database.table("public", table).await.oid;
            let state = TableSnapshot::Pending;
            folded.push(Folded { table, oid, key_columns, rows: BTreeMap::new(), state, is_filtered, faults: 0 });
        }
        read_snapshot(database, &mut folded, &mut StdRng::seed_from_u64(seed)).await;
        let xid_max = folded.iter().filter_map(|folded| folded.state.xid_max()).max().unwrap();
        let mut pure_at = None;
        while pure_at.is_none() {
            pure_at = all_ended_by(&database.server, &database.client, xid_max).await.unwrap();
        }
        if apply_changes(database, &mut folded, xid_max).await >= pure_at.unwrap() {
            for folded in &mut folded {
                folded.state = TableSnapshot::Pure;
            }
        }
        stop.store(true, Ordering::Relaxed);
        while writers.join_next().await.is_some() {}
        apply_changes(database, &mut folded, xid_max).await;
        for folded in &folded {
            let mut rows: Vec<String> = folded.rows.values().cloned().collect();
            rows.sort();
            assert_eq!(rows, database.rows(folded.table).await, "{}, seed {seed}", folded.table);
            faults += folded.faults;
        }
    })
    .await;
    faults
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_and_changes_are_the_table() {
    for seed in 1..=3 {
        assert_eq!(run(seed, true).await, 0, "seed {seed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_filter_changes_come_twice() {
    if std::env::var("LAKEHEAD_POSTGRES").is_ok() {
        assert!(run(1, false).await > 0);
    }
}

#[tokio::test]
async fn the_next_transaction_has_a_whole_number_by_which_those_of_the_stream_are_known() {
    TestDatabase::with(async |database| {
        let next = next_transaction(&database.server, &database.client).await.unwrap();
        let whole: u64 = database.value("pg_current_xact_id()").await.parse().unwrap();
        assert!(next <= whole && whole - next < 1 << 31, "{next} {whole}");
        #[expect(clippy::cast_possible_truncation, reason = "as the stream has it")]
        let streamed = whole as u32;
        assert_eq!(widen(streamed, next), whole);
    })
    .await;
}
