//! Writers that change the tables of the truth test at random: inserts, updates, deletes, changes of keys, rollbacks, transactions
//! that stay open for long, and one of 200 000 changes.
//!
//! What they do comes from a seed; in which order their transactions commit, and which of them a restart of the server takes away,
//! does not. They know nothing of what they have done: what the tables hold at the end says Postgres.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::tables::{BODY, VALUES};
use crate::support::postgres::{Address, Connection, RUNTIME};
use crate::support::waiting::wait_until;

/// How many writers there are.
const WRITERS: u64 = 4;

/// How long a transaction of the holder stays open.
const HELD: Duration = Duration::from_secs(10);

/// How many rows the large transaction inserts, and then changes.
const LARGE: u64 = if cfg!(debug_assertions) { 10_000 } else { 100_000 };

/// Running writers.
pub(super) struct Load {
    stops: watch::Sender<bool>,
    committed: Arc<AtomicU64>,
    tasks: Vec<JoinHandle<()>>,
    large: Option<JoinHandle<()>>,
}

/// What a writer needs.
struct Writer {
    address: Address,
    stops: watch::Receiver<bool>,
    committed: Arc<AtomicU64>,
    rng: StdRng,
}

impl Load {
    /// Starts the writers.
    pub(super) fn start(address: &Address, seed: u64) -> Load {
        let mut load = Load {
            stops: watch::Sender::new(false),
            committed: Arc::new(AtomicU64::new(0)),
            tasks: Vec::new(),
            large: None,
        };
        for number in 0..WRITERS {
            let writer = load.writer(address, seed * 100 + number);
            load.tasks.push(RUNTIME.spawn(writer.write_short_ones()));
        }
        load
    }

    /// Starts the transactions that stay open.
    pub(super) fn hold(&mut self, address: &Address, seed: u64) {
        let writer = self.writer(address, seed * 100 + 50);
        self.tasks.push(RUNTIME.spawn(writer.write_held_ones()));
    }

    /// Starts the large transaction.
    pub(super) fn write_large_one(&mut self, address: &Address, seed: u64) {
        let writer = self.writer(address, seed * 100 + 60);
        self.large = Some(RUNTIME.spawn(writer.write_large_one()));
    }

    fn writer(&self, address: &Address, seed: u64) -> Writer {
        Writer {
            address: address.clone(),
            stops: self.stops.subscribe(),
            committed: Arc::clone(&self.committed),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Returns how many transactions have been committed.
    pub(super) fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    /// Waits until so many more transactions have been committed.
    pub(super) fn wait_for_more(&self, count: u64) {
        let wanted = self.committed() + count;
        wait_until(format!("{wanted} transactions are committed"), || {
            let now = self.committed();
            if now >= wanted { Ok(()) } else { Err(now.to_string()) }
        });
    }

    /// Ends all writers; the large transaction is committed by then.
    pub(super) fn finish(mut self) {
        self.stops.send_replace(true);
        for task in self.tasks.drain(..).chain(self.large.take()) {
            RUNTIME.block_on(task).unwrap();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stops.send_replace(true);
        self.tasks.iter().chain(&self.large).for_each(JoinHandle::abort);
    }
}

impl Writer {
    fn is_done(&self) -> bool {
        *self.stops.borrow()
    }

    /// Connects, however long the server is away. Nobody waits for long for rows of transactions that stay open.
    async fn connect(&self) -> Connection {
        loop {
            if let Ok(connection) = self.address.open().await
                && connection.client().batch_execute("SET lock_timeout = '200ms'").await.is_ok()
            {
                return connection;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Runs transactions until it is told to stop. One that fails is gone, with its connection if the server is.
    async fn write_short_ones(mut self) {
        let mut connection = self.connect().await;
        while !self.is_done() {
            let statements = self.transaction();
            if connection.client().batch_execute(&statements).await.is_ok() {
                self.committed.fetch_add(1, Ordering::SeqCst);
            } else if connection.client().batch_execute("ROLLBACK").await.is_err() {
                connection = self.connect().await;
            }
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..12))).await;
        }
    }

    /// Makes the statements of a transaction.
    fn transaction(&mut self) -> String {
        let mut statements = "BEGIN;\n".to_owned();
        for _ in 0..self.rng.random_range(1..6) {
            statements += &self.change();
            statements += ";\n";
        }
        if self.rng.random_bool(0.1) {
            statements += &format!("SAVEPOINT s;\n{};\nROLLBACK TO s;\n", self.change());
        }
        if self.rng.random_bool(0.02) {
            // It has its number and its rows, and then is nothing.
            statements += &format!("SELECT pg_sleep({});\n", self.rng.random_range(0.0..1.5));
        }
        statements + if self.rng.random_bool(0.1) { "ROLLBACK" } else { "COMMIT" }
    }

    /// Makes a statement that changes a few rows of a table.
    fn change(&mut self) -> String {
        match self.rng.random_range(0..10) {
            0..3 => self.change_account(),
            3..5 => self.change_document(),
            5..7 => self.change_word(),
            7..9 => self.change_line(),
            _ => self.change_event(),
        }
    }

    fn change_account(&mut self) -> String {
        let (id, other) = (self.rng.random_range(1..70_000), self.rng.random_range(1..70_000));
        let values = VALUES.replace(" i ", &format!(" {id} "));
        match self.rng.random_range(0..10) {
            0..3 => format!("INSERT INTO accounts SELECT {id}, {values} ON CONFLICT DO NOTHING"),
            3..6 => format!(
                "UPDATE accounts SET (n, amount, name, paid, changed) = (SELECT {values}) WHERE id BETWEEN {id} AND {id} + 6"
            ),
            6..8 => format!("DELETE FROM accounts WHERE id BETWEEN {id} AND {id} + 3"),
            _ => format!(
                "UPDATE accounts SET id = {other} WHERE id = {id} - {id} % 3 AND NOT EXISTS (SELECT FROM accounts WHERE id = {other})"
            ),
        }
    }

    fn change_document(&mut self) -> String {
        let (id, other) = (self.rng.random_range(1..400), self.rng.random_range(1..400));
        let body = BODY.replace(" i ", &format!(" {id} "));
        match self.rng.random_range(0..10) {
            0..2 => format!("INSERT INTO documents VALUES ({id}, 0, {body}) ON CONFLICT DO NOTHING"),
            2..6 => format!("UPDATE documents SET n = n + 1 WHERE id BETWEEN {id} AND {id} + 3"),
            6 => format!("UPDATE documents SET body = {body} WHERE id = {id}"),
            7 => format!("DELETE FROM documents WHERE id = {id}"),
            _ => format!(
                "UPDATE documents SET id = {other}, n = n + 1 WHERE id = {id} AND NOT EXISTS (SELECT FROM documents WHERE id = {other})"
            ),
        }
    }

    fn change_word(&mut self) -> String {
        const WORDS: [&str; 12] = ["a", "B", "c", "É", "e", "ß", "ss", "Z", "Å", "z", "-", " x"];
        let mut word =
            || format!("{}{}", WORDS[self.rng.random_range(0..WORDS.len())], self.rng.random_range(1..500));
        let (word, other) = (word(), word());
        match self.rng.random_range(0..8) {
            0..3 => format!(
                "INSERT INTO words VALUES ('{word}', 0, localtimestamp) ON CONFLICT (word) DO UPDATE SET n = words.n + 1"
            ),
            3..5 => format!("UPDATE words SET n = n + 1, changed = localtimestamp WHERE word = '{word}'"),
            5 => format!("DELETE FROM words WHERE word = '{word}'"),
            _ => format!(
                "UPDATE words SET word = '{other}' WHERE word = '{word}' AND NOT EXISTS (SELECT FROM words WHERE word = '{other}')"
            ),
        }
    }

    fn change_line(&mut self) -> String {
        let (order, line) = (self.rng.random_range(0..2_500), self.rng.random_range(0..6));
        let values = VALUES.replace(" i ", &format!(" {order} "));
        match self.rng.random_range(0..8) {
            0..3 => format!("INSERT INTO lines SELECT {order}, {line}, {values} ON CONFLICT DO NOTHING"),
            3..5 => format!(
                "UPDATE lines SET (n, amount, name, paid, changed) = (SELECT {values}) WHERE order_id = {order}"
            ),
            5 => format!("DELETE FROM lines WHERE order_id = {order} AND line_no >= {line}"),
            6 => format!("UPDATE lines SET line_no = line_no + 10 WHERE order_id = {order}"),
            _ => format!(
                "UPDATE lines SET order_id = order_id + 3000 WHERE order_id = {order} AND line_no = {line}"
            ),
        }
    }

    fn change_event(&mut self) -> String {
        let kind = self.rng.random_range(0..520);
        let one = format!("(SELECT ctid FROM events WHERE kind = {kind} LIMIT 1)");
        match self.rng.random_range(0..8) {
            0..4 => format!(
                "INSERT INTO events SELECT {kind}, 'note ' || i FROM generate_series(1, 1 + {kind} % 3) i"
            ),
            4..6 => format!("UPDATE events SET note = note || '.' WHERE ctid = {one}"),
            _ => format!("DELETE FROM events WHERE ctid = {one}"),
        }
    }

    /// Runs transactions that stay open for long, of which one in three is rolled back.
    async fn write_held_ones(mut self) {
        while !self.is_done() {
            let connection = self.connect().await;
            let changes: Vec<String> = (0..8).map(|_| self.change()).collect();
            let begins = format!("BEGIN;\n{}", changes.join(";\n"));
            if connection.client().batch_execute(&begins).await.is_err() {
                continue; // with another connection, and other rows
            }
            // Whichever comes first: the time is over, or the test is.
            let _ = timeout(HELD, self.stops.wait_for(|stops| *stops)).await;
            let end = if self.rng.random_bool(0.3) { "ROLLBACK" } else { "COMMIT" };
            if connection.client().batch_execute(end).await.is_ok() {
                self.committed.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Runs the large transaction until it is committed once.
    async fn write_large_one(self) {
        let values = VALUES.replace("* 3)::int)", "* 40)::int)");
        let statements = format!(
            "BEGIN;
             INSERT INTO accounts SELECT 1000000 + i, {values} FROM generate_series(1, {LARGE}) i ON CONFLICT DO NOTHING;
             UPDATE accounts SET n = n + 1, paid = NOT paid WHERE id > 1000000 AND id <= 1000000 + {LARGE};
             COMMIT"
        );
        loop {
            let connection = self.connect().await;
            if connection.client().batch_execute(&statements).await.is_ok() {
                self.committed.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    }
}
