//! Postgres servers, and a database on them for each test.
//!
//! `scripts/postgres.sh` starts one server that the tests share; `LAKEHEAD_POSTGRES` names it. Tests that restart their server, or
//! want other options, start one of their own with the same script. Without the variable there is no Postgres, and what needs one
//! says so and passes.
#![allow(clippy::print_stderr, reason = "tests say why they do nothing, and what they leave behind")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, LazyLock};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};
use uuid::Uuid;

use super::waiting::{wait_until, wait_until_within};

/// The variable with the URL of the shared server.
const SERVER: &str = "LAKEHEAD_POSTGRES";

/// Runs connections, proxies and loads of all tests.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});

/// A running server.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    /// Where it listens, and who may do everything.
    config: Config,
    /// The folder of a server that belongs to the test.
    home: Option<PathBuf>,
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// In order.
    Fast,
    /// At once, so that it has to recover.
    Immediate,
}

impl PostgresServer {
    /// Returns the server that tests share, unless there is none.
    pub(crate) fn shared() -> Option<Arc<PostgresServer>> {
        let Ok(url) = std::env::var(SERVER) else {
            eprintln!("skipped: {SERVER} is not set");
            return None;
        };
        Some(Arc::new(PostgresServer { config: url.parse().unwrap(), home: None }))
    }

    /// Starts a server with more options, unless there is no Postgres. It ends with the last reference to it.
    pub(crate) fn start(options: &[&str]) -> Option<Arc<PostgresServer>> {
        PostgresServer::shared()?;
        let home = std::env::temp_dir().join(format!("lakehead-postgres-{}", Uuid::new_v4().simple()));
        let options: String = options.iter().map(|option| format!("-c {option} ")).collect();
        let answer = script(&home, &["start"], &options);
        let url = answer
            .split(|c: char| c.is_ascii_whitespace())
            .find_map(|word| word.strip_prefix(&format!("{SERVER}=")))
            .unwrap_or_else(|| panic!("no {SERVER} in {answer}"));
        Some(Arc::new(PostgresServer { config: url.parse().unwrap(), home: Some(home) }))
    }

    /// Ends the server and starts it again on the same port.
    pub(crate) fn restart(&self, how: Shutdown) {
        self.down(how);
        self.up();
    }

    /// Ends the server and keeps its data.
    pub(crate) fn down(&self, how: Shutdown) {
        let home = self.home.as_ref().expect("only servers of a test's own are ended");
        let arguments: &[&str] = if how == Shutdown::Fast { &["down"] } else { &["down", "immediate"] };
        script(home, arguments, "");
    }

    /// Starts the server again.
    pub(crate) fn up(&self) {
        script(self.home.as_ref().unwrap(), &["up"], "");
    }

    /// Lets the server, which is down, be a standby when it starts again: it takes no changes before it is promoted, and then goes on on
    /// another line of history.
    pub(crate) fn make_standby(&self) {
        fs::write(self.data().join("standby.signal"), "").unwrap();
    }

    /// Promotes it.
    pub(crate) fn promote(&self) {
        self.connect("postgres").wait_true("SELECT pg_promote()");
    }

    /// Keeps a copy of the server's data, which is down.
    pub(crate) fn keep_copy(&self) {
        let copied = Command::new("cp").arg("-a").args([self.data(), self.copy()]).status().unwrap();
        assert!(copied.success());
    }

    /// Puts the copy in the place of the data of the server, which is down: a standby that had got no further.
    pub(crate) fn fall_back(&self) {
        fs::remove_dir_all(self.data()).unwrap();
        fs::rename(self.copy(), self.data()).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.home.as_ref().expect("only servers of a test's own are changed").join("data")
    }

    fn copy(&self) -> PathBuf {
        self.data().with_file_name("copy")
    }

    /// Returns the file of who signed the server's certificate.
    pub(crate) fn authority(&self) -> String {
        match &self.home {
            Some(home) => home.join("ca.crt").display().to_string(),
            None => std::env::var("LAKEHEAD_POSTGRES_CA").unwrap(),
        }
    }

    /// Returns the port that the server listens on.
    pub(crate) fn port(&self) -> u16 {
        self.config.get_ports()[0]
    }

    /// Returns who may do everything.
    pub(crate) fn user(&self) -> &str {
        self.config.get_user().unwrap()
    }

    /// Returns that user's password.
    pub(crate) fn password(&self) -> String {
        String::from_utf8(self.config.get_password().unwrap().to_vec()).unwrap()
    }

    /// Returns the number of the server's major version.
    pub(crate) fn version(&self) -> u32 {
        self.connect("postgres").value("SHOW server_version_num").parse::<u32>().unwrap() / 10_000
    }

    /// Connects to a database.
    pub(crate) fn connect(&self, database: &str) -> Connection {
        wait_until(format!("'{database}' takes a connection"), || self.try_connect(database))
    }

    fn try_connect(&self, database: &str) -> Result<Connection, String> {
        RUNTIME.block_on(self.open(database))
    }

    async fn open(&self, database: &str) -> Result<Connection, String> {
        self.address(database).open().await
    }

    fn address(&self, database: &str) -> Address {
        let mut config = self.config.clone();
        config.dbname(database);
        Address { config }
    }

    /// Creates a database of the test's own, with what stands behind its name in CREATE DATABASE.
    pub(crate) fn create_database(self: &Arc<PostgresServer>, clauses: &str) -> Database {
        let name = format!("test_{}", &Uuid::new_v4().simple().to_string()[..12]);
        self.connect("postgres").run(&format!("CREATE DATABASE {name} {clauses}"));
        Database { server: Arc::clone(self), name }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(home) = &self.home {
            script(home, &["stop"], "");
        }
    }
}

/// Runs the script for a server of its own, and returns what it prints.
fn script(home: &PathBuf, arguments: &[&str], options: &str) -> String {
    let run = Command::new("bash")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres.sh"))
        .args(arguments)
        .env("LAKEHEAD_POSTGRES_HOME", home)
        .env("PG_OPTS", options)
        .output()
        .unwrap();
    assert!(run.status.success(), "postgres.sh {arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// A database, which goes with its slots when the test ends.
#[derive(Debug)]
pub(crate) struct Database {
    server: Arc<PostgresServer>,
    name: String,
}

impl Database {
    /// Creates a database on the shared server, unless there is none.
    pub(crate) fn create() -> Option<Database> {
        Some(PostgresServer::shared()?.create_database(""))
    }

    /// Returns its name, which no other database has and which is a name for a slot, too.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its server.
    pub(crate) fn server(&self) -> &Arc<PostgresServer> {
        &self.server
    }

    /// Connects to it.
    pub(crate) fn connect(&self) -> Connection {
        self.server.connect(&self.name)
    }

    /// Returns where it is, for tasks that connect to it and must not keep it.
    pub(crate) fn address(&self) -> Address {
        self.server.address(&self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A server of the test's own may be down.
        let Ok(connection) = self.server.try_connect("postgres") else { return };
        let name = &self.name;
        // A slot can be dropped once its reader has gone.
        let _ = wait_until_within(super::waiting::DEADLINE, || {
            let end = format!(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = '{name}' AND active"
            );
            connection.try_run(&end)?;
            let drop = format!(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '{name}'"
            );
            connection.try_run(&drop)
        });
        if let Err(error) = connection.try_run(&format!("DROP DATABASE {name} WITH (FORCE)")) {
            eprintln!("note: the database {name} stays: {error}");
        }
    }
}

/// Where a database is, and who may do everything in it.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    config: Config,
}

impl Address {
    /// Connects, if the server takes connections.
    pub(crate) async fn open(&self) -> Result<Connection, String> {
        let (client, connection) = self.config.connect(NoTls).await.map_err(|error| describe(&error))?;
        tokio::spawn(connection);
        Ok(Connection { client })
    }
}

/// A connection, which a test uses one statement after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
}

impl Connection {
    /// Runs statements.
    #[track_caller]
    pub(crate) fn run(&self, sql: &str) {
        self.try_run(sql).unwrap_or_else(|error| panic!("{error}\n{sql}"));
    }

    /// Runs statements, or says what the server has against them.
    pub(crate) fn try_run(&self, sql: &str) -> Result<(), String> {
        RUNTIME.block_on(self.client.batch_execute(sql)).map_err(|error| describe(&error))
    }

    /// Returns the rows of a query as text.
    #[track_caller]
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let answer = RUNTIME.block_on(self.client.simple_query(sql));
        let answer = answer.unwrap_or_else(|error| panic!("{}\n{sql}", describe(&error)));
        let cells = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        };
        answer.into_iter().filter_map(cells).collect()
    }

    /// Returns the rows of a query, a line each, with bars between their cells.
    #[track_caller]
    pub(crate) fn lines(&self, sql: &str) -> String {
        let line = |row: Vec<Option<String>>| {
            let cells: Vec<String> =
                row.into_iter().map(|cell| cell.unwrap_or_else(|| "NULL".to_owned())).collect();
            cells.join("|")
        };
        self.rows(sql).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the only cell of a query's only row; empty if it is NULL or there is no row.
    #[track_caller]
    pub(crate) fn value(&self, sql: &str) -> String {
        self.rows(sql).into_iter().next().and_then(|row| row.into_iter().next()?).unwrap_or_default()
    }

    /// Waits until a query's only cell is what the test wants.
    #[track_caller]
    pub(crate) fn wait(&self, sql: &str, is_there: impl Fn(&str) -> bool) -> String {
        wait_until(sql, || {
            let value = self.value(sql);
            if is_there(&value) { Ok(value) } else { Err(value) }
        })
    }

    /// Waits until a query says `t`.
    #[track_caller]
    pub(crate) fn wait_true(&self, sql: &str) {
        self.wait(sql, |value| value == "t");
    }

    /// Returns how far the server's log has come.
    pub(crate) fn lsn(&self) -> Lsn {
        Lsn::parse(&self.value("SELECT pg_current_wal_insert_lsn()")).unwrap()
    }

    /// Returns the confirmed position of a slot.
    pub(crate) fn confirmed(&self, slot: &str) -> Option<Lsn> {
        Lsn::parse(&self.value(&format!(
            "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{slot}'"
        )))
    }

    /// Waits until everything that is committed by now is acknowledged by the reader of a slot.
    #[track_caller]
    pub(crate) fn wait_acknowledged(&self, slot: &str) {
        let now = self.lsn();
        wait_until(format!("slot '{slot}' is acknowledged up to {now:?}"), || {
            let confirmed = self.confirmed(slot);
            if confirmed >= Some(now) { Ok(()) } else { Err(format!("{confirmed:?}")) }
        });
    }

    /// Returns the client for what needs more than text.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

/// A position in the server's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lsn(u64);

impl Lsn {
    /// Reads `16/B374D848`.
    pub(crate) fn parse(text: &str) -> Option<Lsn> {
        let (high, low) = text.trim().split_once('/')?;
        let (high, low) = (u64::from_str_radix(high, 16).ok()?, u64::from_str_radix(low, 16).ok()?);
        Some(Lsn((high << 32) | low))
    }
}

/// Returns what the server says, not only that it has said something.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{}: {} ({})", said.severity(), said.message(), said.code().code()),
        None => {
            let cause = std::error::Error::source(error);
            cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
        }
    }
}
