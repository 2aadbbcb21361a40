//! A reader's connection, and the snapshot that its transaction reads under.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::chunk_key::source;
use super::visibility::SnapshotXids;
use crate::connector::postgres::connection::{PgServer, StatementWatch};
use crate::connector::postgres::table::PgTable;
use crate::error::{Error, Result};

/// For how long ranges of keys are read under one snapshot. Longer would keep the server from removing dead rows, shorter would make
/// what checkpoints hold of the table grow with its size. Tests do not wait that long.
const SNAPSHOT_LASTS: Duration =
    if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(60) };

/// What a session of a reader needs besides what all sessions are given: no limit ends it that is meant for people, and it takes no
/// more of the server than one process, which loses no time by compiling what is computed from a row. The names are those that this
/// version of the server has.
const SETTINGS: &str = "SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES \
    ('lock_timeout', '0'), ('transaction_timeout', '0'), ('idle_session_timeout', '0'), \
    ('max_parallel_workers_per_gather', '0'), ('jit', 'off')) AS wanted (name, value) USING (name)";

/// What is done, for messages that name no table.
const READING: &str = "reading tables";

/// A connection that reads one range after the other.
#[derive(Debug)]
pub(super) struct Session {
    server: PgServer,
    client: Client,
    watch: StatementWatch,
    reading: Option<Reading>,
    may_scan_all: bool,
}

/// A transaction that is open.
#[derive(Debug, Clone)]
struct Reading {
    xids: Arc<SnapshotXids>,
    since: Instant,
}

/// The snapshot that the readers of a table share. Whoever finds none, or an old one, takes one, and lets the others read under it.
#[derive(Debug)]
pub(super) struct SharedSnapshot {
    server: PgServer,
    table: PgTable,
    current: Mutex<Option<Exported>>,
}

/// A snapshot that other transactions may read under, as long as the one lasts that took it.
#[derive(Debug, Clone)]
struct Exported {
    id: String,
    reading: Reading,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub(super) async fn open(server: PgServer) -> Result<Session> {
        let client = server.connect().await?;
        server.answer("preparing a session that reads tables", client.batch_execute(SETTINGS)).await?;
        let watch = StatementWatch::of(&server, &client).await?;
        Ok(Session { server, client, watch, reading: None, may_scan_all: true })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for what a statement of the session brings next, however long that takes.
    ///
    /// # Errors
    /// Nothing comes any more (unavailable).
    pub(super) async fn wait<T>(&self, doing: &str, next: impl Future<Output = T>) -> Result<T> {
        self.watch.wait(doing, next).await
    }

    /// Returns what is visible to the transaction that is open.
    ///
    /// # Errors
    /// None is open.
    pub(super) fn xids(&self) -> Result<Arc<SnapshotXids>> {
        let reading = self
            .reading
            .as_ref()
            .ok_or_else(|| Error::internal("a table is read outside of a transaction"))?;
        Ok(Arc::clone(&reading.xids))
    }

    /// Returns when the transaction should be over; None if there is none.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.reading.as_ref().map(|reading| reading.since + SNAPSHOT_LASTS)
    }

    /// Lets the server go through whole tables, or has it use an index wherever there is one, as for a part of a big table, about which
    /// its statistics may be wrong.
    pub(super) async fn set_may_scan_all(&mut self, may_scan_all: bool) -> Result<()> {
        if self.may_scan_all != may_scan_all {
            let setting = if may_scan_all { "SET enable_seqscan = on" } else { "SET enable_seqscan = off" };
            self.run(setting).await?.map_err(|error| self.failed(error))?;
            self.may_scan_all = may_scan_all;
        }
        Ok(())
    }

    /// Ends the transaction, if there is one.
    pub(super) async fn end(&mut self) -> Result<()> {
        if self.reading.take().is_some() {
            self.run("COMMIT").await?.map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Runs statements, and returns what the server says to them.
    async fn run(&self, sql: &str) -> Result<std::result::Result<(), tokio_postgres::Error>> {
        self.wait(READING, self.client.batch_execute(sql)).await
    }

    fn failed(&self, error: tokio_postgres::Error) -> Error {
        self.server.sql_error(READING, error)
    }
}

impl SharedSnapshot {
    pub(super) fn new(server: PgServer, table: PgTable) -> SharedSnapshot {
        SharedSnapshot { server, table, current: Mutex::new(None) }
    }

    /// Brings a session into a transaction that reads under the shared snapshot, which is made anew if there is none or it is old.
    ///
    /// # Errors
    /// The server cannot be asked, or the table is not what it was.
    pub(super) async fn enter(&self, session: &mut Session) -> Result<()> {
        if session.ends_at().is_some_and(|end| Instant::now() < end) {
            return Ok(());
        }
        session.end().await?;
        loop {
            let mut current = self.current.lock().await;
            let shared = current.clone().filter(|shared| shared.reading.since.elapsed() < SNAPSHOT_LASTS);
            let Some(shared) = shared else {
                *current = Some(self.export(session).await?);
                return Ok(());
            };
            drop(current);
            if self.begin_under(session, &shared).await? {
                return Ok(());
            }
            let mut current = self.current.lock().await;
            if current.as_ref().is_some_and(|current| current.id == shared.id) {
                *current = None;
            }
        }
    }

    /// Begins to read under the snapshot if it is there; returns whether it was.
    ///
    /// # Errors
    /// The server cannot be asked.
    pub(super) async fn join(&self, session: &mut Session) -> Result<bool> {
        let current = self.current.lock().await.clone();
        match current {
            Some(exported) => self.begin_under(session, &exported).await,
            None => Ok(false),
        }
    }

    async fn begin_under(&self, session: &mut Session, exported: &Exported) -> Result<bool> {
        let begin = format!("{}; SET TRANSACTION SNAPSHOT '{}'", self.begin(), exported.id);
        match session.run(&begin).await? {
            Ok(()) => {
                session.reading = Some(exported.reading.clone());
                Ok(true)
            }
            // The transaction that took it has ended.
            Err(error) if error.as_db_error().is_some() => {
                session.run("ROLLBACK").await?.map_err(|error| session.failed(error))?;
                Ok(false)
            }
            Err(error) => Err(session.failed(error)),
        }
    }

    async fn export(&self, session: &mut Session) -> Result<Exported> {
        let doing = format!("taking a snapshot of table {}", self.table.label());
        let failed = |error| self.server.sql_error(&doing, error);
        // A command that changes the table may hold its lock for long.
        session.wait(&doing, session.client.batch_execute(&self.begin())).await?.map_err(failed)?;
        let query = "SELECT pg_export_snapshot(), pg_current_snapshot()::text, pg_is_in_recovery(), to_regclass($1)::oid";
        let name = self.table.sql();
        let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
        let asking = session.client.query_typed_one(query, &parameters);
        let row = session.wait(&doing, asking).await?.map_err(failed)?;
        let id: String = row.try_get(0).map_err(failed)?;
        let xids: String = row.try_get(1).map_err(failed)?;
        let is_standby: bool = row.try_get(2).map_err(failed)?;
        let oid: Option<u32> = row.try_get(3).map_err(failed)?;
        if is_standby {
            // In a failover it may be promoted soon.
            return Err(Error::unavailable(format!(
                "Postgres '{}': it is a standby, whose snapshots do not tell which transactions were in progress",
                self.server.name()
            ))
            .hint("Name the primary as 'hostname'."));
        }
        if oid != Some(self.table.oid) {
            return Err(Error::rejected(format!(
                "Postgres '{}': table {} is another one than when the job began: it was dropped or renamed, and made anew",
                self.server.name(),
                self.table.label()
            ))
            .hint("SET 'lakehead.job.resume' = 'resnapshot' and start the job again: it reads all tables anew."));
        }
        let reading = Reading { xids: Arc::new(xids.parse()?), since: Instant::now() };
        session.reading = Some(reading.clone());
        Ok(Exported { id, reading })
    }

    /// Returns what begins a transaction. The lock comes before the snapshot: a command that writes the table anew, such as ALTER COLUMN
    /// … TYPE, leaves it empty to snapshots taken before, and the stream does not tell of those rows.
    fn begin(&self) -> String {
        let source = source(&self.table);
        format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE {source} IN ACCESS SHARE MODE")
    }
}
