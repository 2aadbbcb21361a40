//! A database, a lake beside it, and jobs from one to the other: what nearly every test of this folder needs.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::support::content::TableContent;
use crate::support::postgres::{Connection, Database, Lsn, PostgresServer};
use crate::support::proxy::Proxy;
use crate::support::run::{Finished, Lakehead};
use crate::support::running::Running;
use crate::support::session::Conversation;
use crate::support::waiting::wait_until;

/// A database and a lake. The database's slots and the lake's files go with it.
pub(super) struct Pipeline {
    pub(super) postgres: Connection,
    database: Arc<Database>,
    port: u16,
    user: (String, String),
    root: TempDir,
    reader: RefCell<Conversation>,
    /// Variables of the environment of every job.
    variables: Vec<(String, String)>,
}

impl Pipeline {
    /// Creates a database on the shared server, unless there is none, and an empty lake.
    pub(super) fn create() -> Option<Pipeline> {
        Some(Pipeline::of(Database::create()?))
    }

    /// Creates a database on a server, with what stands behind its name in CREATE DATABASE, and an empty lake.
    pub(super) fn on(server: &Arc<PostgresServer>, clauses: &str) -> Pipeline {
        Pipeline::of(server.create_database(clauses))
    }

    fn of(database: Database) -> Pipeline {
        let root = tempfile::tempdir().unwrap();
        let mut reader = Conversation::new();
        let warehouse = catalog(root.path(), "'cache-enabled' = 'false'");
        let zone = "SET 'table.local-time-zone' = 'UTC'";
        reader.expect(&[("SET 'execution.runtime-mode' = 'batch'", "ok"), (zone, "ok"), (&warehouse, "ok")]);
        let server = database.server();
        Pipeline {
            postgres: database.connect(),
            port: server.port(),
            user: (server.user().to_owned(), server.password()),
            root,
            reader: RefCell::new(reader),
            database: Arc::new(database),
            variables: Vec::new(),
        }
    }

    /// Lets jobs connect through a proxy.
    pub(super) fn through(&mut self, proxy: &Proxy) {
        self.port = proxy.port();
    }

    /// Lets jobs connect as another user.
    pub(super) fn connect_as(&mut self, user: &str, password: &str) {
        self.user = (user.to_owned(), password.to_owned());
    }

    /// Gives jobs a variable of the environment.
    pub(super) fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Connects anew after the server has started again.
    pub(super) fn reconnect(&mut self) {
        self.postgres = self.database.connect();
    }

    /// Returns the database.
    pub(super) fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Returns the folder of the lake, of checkpoints and savepoints.
    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Returns the slot of all jobs that are not told another one.
    pub(super) fn slot(&self) -> &str {
        self.database.name()
    }

    /// Returns a statement that declares a table of the database. What is given goes before the usual options.
    pub(super) fn source(&self, table: &str, columns: &str, options: &[(&str, &str)]) -> String {
        let port = self.port.to_string();
        let usual = [
            ("connector", "postgres-cdc"),
            ("hostname", "localhost"),
            ("port", port.as_str()),
            ("username", self.user.0.as_str()),
            ("password", self.user.1.as_str()),
            ("database-name", self.database.name()),
            ("schema-name", "public"),
            ("table-name", table),
            ("slot.name", self.slot()),
            ("decoding.plugin.name", "pgoutput"),
            // Tests wait for what is acknowledged.
            ("scan.lsn-commit.checkpoints-num-delay", "0"),
        ];
        let is_left = |(key, _): &&(&str, &str)| !options.iter().any(|(given, _)| given == key);
        let all = usual.iter().filter(is_left).chain(options).filter(|(_, value)| *value != ABSENT);
        let clauses: Vec<String> =
            all.map(|(key, value)| format!("'{key}' = '{}'", value.replace('\'', "''"))).collect();
        format!("CREATE TABLE {} ({columns}) WITH ({});\n", quoted(table), clauses.join(", "))
    }

    /// Returns statements that declare a table of the database and one like it in the lake, and the INSERT that keeps them equal.
    pub(super) fn mirror(&self, table: &str, columns: &str, options: &[(&str, &str)]) -> String {
        let name = quoted(table);
        format!(
            "{}{}CREATE TABLE IF NOT EXISTS lake.db.{name} ({columns});\nINSERT INTO lake.db.{name} SELECT * FROM {name};\n",
            self.source(table, columns, options),
            self.lake(),
        )
    }

    /// Returns statements that make the lake known.
    pub(super) fn lake(&self) -> String {
        format!(
            "{};\nCREATE DATABASE IF NOT EXISTS lake.db;\n",
            catalog(self.root(), "'cache-enabled' = 'false'")
        )
    }

    /// Returns the settings of jobs: quick checkpoints, from the last of which a job goes on.
    fn settings(&self) -> String {
        format!(
            "SET 'execution.checkpointing.interval' = '100 ms';
SET 'execution.checkpointing.dir' = '{root}/checkpoints';
SET 'execution.checkpointing.savepoint-dir' = '{root}/savepoints';
SET 'pipeline.name' = 'cdc';
SET 'lakehead.job.resume' = 'latest';
SET 'parallelism.default' = '2';
SET 'sql-client.execution.result-mode' = 'tableau';\n",
            root = self.root().display()
        )
    }

    fn lakehead(&self) -> Lakehead {
        self.variables.iter().fold(Lakehead::new(), |lakehead, (name, value)| lakehead.variable(name, value))
    }

    /// Starts a shell that runs statements, and their jobs, and takes more.
    pub(super) fn start(&self, statements: &str) -> Running {
        let mut running = Running::start(self.lakehead());
        running.write(&format!("{}{statements}", self.settings()));
        running
    }

    /// Runs statements and waits for their jobs, which end by themselves.
    pub(super) fn run(&self, statements: &str) -> Finished {
        self.lakehead()
            .input(format!("{}SET 'table.dml-sync' = 'true';\n{statements}", self.settings()))
            .run()
    }

    /// Starts a script, runs its jobs until one fails, and returns what is said of that.
    #[track_caller]
    pub(super) fn fail(&self, statements: &str) -> String {
        let mut running = self.start(statements);
        failure(&mut running)
    }

    /// Returns what a batch query answers: rows with bars between their cells, or an error.
    pub(super) fn ask(&self, query: &str) -> String {
        self.reader.borrow_mut().answer(query)
    }

    /// Waits until a query on the lake has an answer; fails if a job does.
    #[track_caller]
    pub(super) fn wait(&self, running: &mut Running, query: &str, expected: &str) {
        wait_until(format!("{query} says\n{expected}\nand not"), || {
            let shown = running.shown();
            assert!(!shown.contains("[ERROR]"), "{shown}");
            let answer = self.ask(query);
            if answer.trim_end() == expected.trim_end() { Ok(()) } else { Err(format!("{answer}\n{shown}")) }
        });
    }

    /// Waits until the table `lake.db.t` has rows, in order of all columns.
    #[track_caller]
    pub(super) fn wait_table(&self, running: &mut Running, table: &str, columns: &str, expected: &str) {
        let query = format!("SELECT {columns} FROM lake.db.{} ORDER BY {columns}", quoted(table));
        self.wait(running, &query, expected);
    }

    /// Returns what a table of the lake holds.
    pub(super) fn lake_content(&self, table: &str, columns: &[&str]) -> Result<TableContent, String> {
        let query = format!("SELECT {} FROM lake.db.{table}", columns.join(", "));
        Ok(TableContent::new(columns, self.reader.borrow_mut().rows(&query)?))
    }

    /// Returns the files below the lake's folder that end with something.
    pub(super) fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.root().to_owned()];
        while let Some(folder) = folders.pop() {
            // What a running job removes meanwhile is of no interest.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.to_string_lossy().ends_with(ending) {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Returns the number of the newest checkpoint on disk.
    pub(super) fn checkpoint(&self) -> u64 {
        let number = |path: &PathBuf| {
            let folder = path.parent()?.file_name()?.to_str()?;
            folder.strip_prefix("chk-")?.parse().ok()
        };
        self.files("_metadata").iter().filter_map(number).max().unwrap_or_default()
    }
}

/// Stands for an option that is not given although it usually is.
pub(super) const ABSENT: &str = "\0";

/// Returns a name of Flink's SQL.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn catalog(root: &Path, option: &str) -> String {
    format!(
        "CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'hadoop', 'warehouse' = 'file://{}/warehouse', {option})",
        root.display()
    )
}

/// Waits until a job has failed, and returns what was said.
#[track_caller]
pub(super) fn failure(running: &mut Running) -> String {
    wait_until("a job fails", || {
        let shown = running.shown();
        // What follows the first line is said with it.
        if shown.contains("[ERROR]") { Ok(()) } else { Err(shown) }
    });
    let ended = running.end();
    format!("{}{}", ended.stdout, ended.stderr)
}

/// Stops the first job of a shell, whose state stays, and ends the shell.
#[track_caller]
pub(super) fn stop(running: &mut Running) {
    let id = running.job_id();
    running.write(&format!("STOP JOB '{id}';\n"));
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
}

/// Returns what DESCRIBE JOB shows of the job of a shell.
#[track_caller]
pub(super) fn describe(running: &mut Running) -> String {
    let id = running.job_id();
    let from = running.shown_out().len();
    running.write(&format!("DESCRIBE JOB '{id}';\n"));
    wait_until("the job is described", || {
        let shown = running.shown_out();
        let said = &shown[from..];
        if said.contains("back-pressured ms") && said.contains(" in set") {
            Ok(said.to_owned())
        } else {
            Err(shown)
        }
    })
}

/// Returns the word behind a name in what a source says of itself: `lsn 0/15D68A8, lag bytes 0`.
pub(super) fn status_of(described: &str, name: &str) -> Option<String> {
    let at = described.find(&format!(" {name} "))? + name.len() + 2;
    let word = described[at..].split([',', ' ', '|']).next()?;
    Some(word.to_owned())
}

/// Waits until DESCRIBE JOB shows that a checkpoint holds everything up to a position of the server's log.
#[track_caller]
pub(super) fn wait_checkpointed(running: &mut Running, position: Lsn) {
    wait_until(format!("DESCRIBE JOB shows a checkpoint at {position:?} or behind"), || {
        let shown = running.shown();
        assert!(!shown.contains("[ERROR]"), "{shown}");
        let described = describe(running);
        let reached = status_of(&described, "checkpointed lsn");
        if reached.as_deref().and_then(Lsn::parse) >= Some(position) { Ok(()) } else { Err(described) }
    });
}

/// Returns the SQL statements for Postgres that a text advises, which begin with something.
pub(super) fn advised(text: &str, beginning: &str) -> Vec<String> {
    let end = |rest: &str| {
        let end = rest.find([';', '\n', '`']).unwrap_or(rest.len());
        rest[..end].trim_end().trim_end_matches('.').to_owned()
    };
    let mut found: Vec<String> = text.match_indices(beginning).map(|(at, _)| end(&text[at..])).collect();
    found.dedup();
    found
}
