//! A job's reader, taken from by a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::timeout;

use super::super::{PostgresReader, ReadPlan};
use crate::changelog::ChangelogBatch;
use crate::connector::postgres::factory::PostgresCdc;
use crate::connector::postgres::testing::{TestDatabase, cells};
use crate::connector::testing::{Printed, Table};
use crate::connector::{
    Frame, OperatorStatus, Projection, ReaderContext, SourceEvent, SourcePosition, SourceReader,
    TableFactory, TableRead,
};
use crate::error::{Error, Result};
use crate::options::JobResume;
use crate::schema::{Column, PrimaryKey, TypeRoot};

/// How long anything may take that a test waits for.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long it is waited for what is not to come.
pub(super) const NOT_TO_COME: Duration = Duration::from_millis(500);

/// Tables of two numbers, `id` and `n`, the first one their key. Slot and job have the name of the database.
pub(super) struct ReadingJob {
    reader: PostgresReader,
    printed: Arc<Printed>,
    /// What DESCRIBE JOB shows.
    shown: Arc<Mutex<Vec<(String, String)>>>,
    /// All rows so far, as `+I 1 7`.
    pub(super) rows: Vec<String>,
    /// Behind what was read before the last boundary.
    pub(super) position: SourcePosition,
}

/// How a job is started.
pub(super) struct Start<'a> {
    pub(super) options: &'a [(&'a str, &'a str)],
    pub(super) resume: JobResume,
    pub(super) position: Option<&'a SourcePosition>,
    pub(super) is_insert: bool,
}

/// A job that begins anew.
pub(super) const ANEW: Start<'static> =
    Start { options: &[], resume: JobResume::None, position: None, is_insert: true };

impl ReadingJob {
    pub(super) fn start(database: &TestDatabase, start: Start<'_>) -> ReadingJob {
        let settings = database.server.settings();
        let port = settings.port.to_string();
        let usual = [
            ("hostname", settings.host.as_str()),
            ("port", &port),
            ("username", &settings.user),
            ("password", settings.password.expose()),
            ("database-name", &settings.database),
            ("schema-name", "public"),
            ("table-name", "t.*"),
            ("slot.name", &database.name),
            ("debezium.database.sslmode", "disable"),
            ("changelog-mode", "upsert"),
        ];
        let is_left = |(key, _): &(&str, &str)| start.options.iter().all(|(given, _)| given != key);
        let options: Vec<_> =
            usual.into_iter().filter(is_left).chain(start.options.iter().copied()).collect();
        let columns = ["id", "n"].map(|name| Column::physical(name, TypeRoot::BigInt.nullable()));
        let mut table = Table::new("postgres-cdc", columns.to_vec(), &options);
        let columns = vec!["id".to_owned()];
        table.schema.primary_key = Some(PrimaryKey { name: "PK".to_owned(), columns });
        let source = PostgresCdc.create_source(&table.context()).unwrap();
        let printed = Arc::new(Printed::default());
        let output = Arc::clone(&printed);
        let shown = Arc::new(Mutex::default());
        let kept = Arc::clone(&shown);
        let context = ReaderContext {
            job: database.name.as_str().into(),
            is_insert: start.is_insert,
            has_checkpoints: true,
            workers: 2,
            resume: start.resume,
            status: OperatorStatus::new(move |values| *kept.lock().unwrap() = values),
            output: Some(output),
        };
        let read = TableRead {
            name: "t",
            source: &*source,
            projection: Projection::of_columns(&[0, 1]),
            wants_update_before: false,
        };
        let plan = ReadPlan::new(&[read], &context).unwrap();
        let reader = PostgresReader::new(plan, start.position).unwrap();
        ReadingJob { reader, printed, shown, rows: Vec::new(), position: SourcePosition::new() }
    }

    /// Takes what comes next; returns whether it is a boundary.
    async fn take(&mut self) -> Result<bool> {
        match self.reader.next().await? {
            SourceEvent::Part { frame: Frame::Rows(rows), .. } => {
                self.rows.extend(texts(&rows));
                Ok(false)
            }
            SourceEvent::Boundary => {
                self.position = self.reader.position();
                Ok(true)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Makes a checkpoint of the last boundary, and returns what is shown under a name then.
    pub(super) async fn checkpoint(&mut self, name: &str) -> Option<String> {
        self.reader.on_checkpoint_complete(&self.position).await.unwrap();
        let shown = self.shown.lock().unwrap();
        shown.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// Takes what comes up to the next boundary.
    pub(super) async fn boundary(&mut self) -> SourcePosition {
        let taking = async { while !self.take().await.unwrap() {} };
        if timeout(DEADLINE, taking).await.is_err() {
            panic!("no boundary behind {:?}: {}", self.rows, self.printed.text());
        }
        self.position.clone()
    }

    /// Takes what comes until there are so many rows and a boundary behind them; returns them sorted.
    pub(super) async fn rows(&mut self, count: usize) -> Vec<String> {
        let taking = async {
            loop {
                let is_boundary = self.take().await.unwrap();
                if is_boundary && self.rows.len() >= count {
                    break;
                }
            }
        };
        if timeout(DEADLINE, taking).await.is_err() {
            panic!("only {:?}: {}", self.rows, self.printed.text());
        }
        let mut rows = self.rows.clone();
        rows.sort();
        rows
    }

    /// Takes what comes until nothing has come for a while, or only word of what others write.
    pub(super) async fn quiet(&mut self) {
        for _ in 0..10 {
            match timeout(NOT_TO_COME, self.take()).await {
                Ok(taken) => drop(taken.unwrap()),
                Err(_) => return,
            }
        }
    }

    /// Takes what comes until it fails.
    pub(super) async fn failure(&mut self) -> Error {
        let taking = async {
            loop {
                if let Err(error) = self.take().await {
                    return error;
                }
            }
        };
        timeout(DEADLINE, taking).await.expect("it fails")
    }

    /// Returns what it has told the user.
    pub(super) fn told(&self) -> String {
        self.printed.text()
    }

    /// Takes what comes until it has said something.
    pub(super) async fn said(&mut self, part: &str) {
        let taking = async {
            while !self.printed.text().contains(part) {
                if let Ok(taken) = timeout(Duration::from_millis(20), self.take()).await {
                    taken.unwrap();
                }
            }
        };
        if timeout(DEADLINE, taking).await.is_err() {
            panic!("it does not say '{part}' but {}", self.printed.text());
        }
    }

    /// Ends the reader, as a crash of the job does, and waits until nobody reads its slot any more.
    pub(super) async fn end(self, database: &TestDatabase) {
        drop(self);
        let active = format!(
            "SELECT count(*) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
            database.name
        );
        database.wait_for(&active, "0").await;
    }
}

/// Waits until the changes of a job's slot are sent to it.
pub(super) async fn wait_streaming(database: &TestDatabase) {
    let sender = format!(
        "SELECT count(*) FROM pg_stat_replication r JOIN pg_replication_slots s ON s.active_pid = r.pid \
         WHERE s.slot_name = '{}' AND r.state = 'streaming'",
        database.name
    );
    database.wait_for(&sender, "1").await;
}

/// Returns rows as text, with their kinds.
fn texts(batch: &ChangelogBatch) -> Vec<String> {
    let rows = cells(batch, "NULL").into_iter().enumerate();
    rows.map(|(row, cells)| format!("{} {}", batch.kind(row).short_string(), cells.join(" "))).collect()
}

/// Makes a table with rows of equal numbers.
pub(super) async fn create(database: &TestDatabase, table: &str, count: u32) {
    database
        .run(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, n bigint); INSERT INTO {table} SELECT i, i FROM generate_series(1, {count}) i; ANALYZE {table}"
        ))
        .await;
}

/// Returns such rows as a job gets them from a snapshot.
pub(super) fn read(ids: impl IntoIterator<Item = u32>) -> Vec<String> {
    ids.into_iter().map(|id| format!("+I {id} {id}")).collect()
}
