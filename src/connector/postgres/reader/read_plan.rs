//! What is read: the declared tables that share a slot, and how they may be read.

use std::any::Any;

use super::backoff::Backoff;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::options::StartupMode;
use crate::connector::postgres::postgres_source::PostgresSource;
use crate::connector::postgres::row_shape::RowShape;
use crate::connector::postgres::settings::{StreamSettings, TableSettings, default_slot_name};
use crate::connector::postgres::slot::drop_slot;
use crate::connector::{ReaderContext, TableRead};
use crate::error::{Error, ErrorKind, Result};
use crate::options::JobResume;

/// The tables of a slot and everything that they share.
#[derive(Debug)]
pub(in crate::connector::postgres) struct ReadPlan {
    pub(super) server: PgServer,
    pub(super) stream: StreamSettings,
    /// The name of the slot. A query that is only looked at makes one that goes with its session.
    pub(super) slot: String,
    pub(super) tables: Vec<DeclaredRead>,
    pub(super) context: ReaderContext,
    /// What the user is told when the job starts.
    pub(super) notes: Vec<String>,
}

/// A declared table.
#[derive(Debug)]
pub(super) struct DeclaredRead {
    /// What its entries in positions are called: its name, and a number if it is read more than once.
    pub(super) name: String,
    pub(super) shape: RowShape,
    /// The columns of the declared key.
    pub(super) key: Vec<String>,
    pub(super) settings: TableSettings,
}

impl ReadPlan {
    /// Plans the reading of tables.
    ///
    /// # Errors
    /// Their options contradict each other.
    pub(in crate::connector::postgres) fn new(
        reads: &[TableRead<'_>],
        context: &ReaderContext,
    ) -> Result<ReadPlan> {
        let sources: Vec<(&TableRead<'_>, &PostgresSource)> = reads
            .iter()
            .map(|read| {
                let source: &dyn Any = read.source;
                let source = source.downcast_ref::<PostgresSource>();
                source.map(|source| (read, source)).ok_or_else(|| {
                    Error::internal("a table of another connector is to be read with one of postgres-cdc")
                })
            })
            .collect::<Result<_>>()?;
        let Some((_, first)) = sources.first() else {
            return Err(Error::internal("nothing is to be read"));
        };
        let (mut tables, mut notes) = (Vec::<DeclaredRead>::new(), Vec::new());
        for (read, source) in &sources {
            agree(first, source)?;
            let copies = tables.iter().filter(|table| table.shape.table == source.table).count();
            let name = match copies {
                0 => source.table.clone(),
                _ => format!("{}#{}", source.table, copies + 1),
            };
            for note in &source.notes {
                let note = format!("Table '{}': {note}", source.table);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            tables.push(DeclaredRead {
                name,
                shape: source.shape(&read.projection, read.wants_update_before)?,
                key: source.key.clone(),
                settings: source.settings.clone(),
            });
        }
        let slot = match &first.stream.slot {
            _ if !context.is_insert => format!("lakehead_query_{:016x}", rand::random::<u64>()),
            Some(slot) => slot.clone(),
            None => default_slot_name(&context.job),
        };
        Ok(ReadPlan {
            server: PgServer::new(first.server.clone()),
            stream: first.stream.clone(),
            slot,
            tables,
            context: context.clone(),
            notes,
        })
    }

    /// Drops the slot of a job that has ended, when the server has noticed that nobody reads it any more.
    ///
    /// # Errors
    /// Somebody else reads it, or the server cannot be reached or refuses.
    pub(in crate::connector::postgres) async fn drop_slot(&self) -> Result<()> {
        let mut backoff = Backoff::new();
        loop {
            let client = self.server.connect().await?;
            match drop_slot(&self.server, &client, &self.slot).await {
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && backoff.count() < self.server.settings().connect_retries =>
                {
                    tokio::time::sleep(backoff.failed()).await;
                }
                ended => return ended,
            }
        }
    }

    /// Returns whether the reader ends when it has read what tables hold.
    pub(super) fn is_snapshot_only(&self) -> bool {
        self.stream.startup == StartupMode::Snapshot
    }

    /// Returns whether a job that begins reads the tables' content before their changes. One that replaces what was written before does
    /// in every mode: there would be nothing to replace it with.
    pub(super) fn reads_snapshot(&self) -> bool {
        matches!(self.stream.startup, StartupMode::Initial | StartupMode::Snapshot)
            || self.context.resume == JobResume::Resnapshot
    }
}

/// Fails if two tables that share a slot are not read in the same way.
fn agree(first: &PostgresSource, other: &PostgresSource) -> Result<()> {
    let (one, another) = (&first.server, &other.server);
    let of_server = [
        ("username", one.user != another.user),
        ("password", one.password != another.password),
        ("debezium.database.sslmode", one.tls != another.tls),
        ("connect.timeout", one.connect_timeout != another.connect_timeout),
        ("connect.max-retries", one.connect_retries != another.connect_retries),
    ];
    let of_server = of_server.iter().find(|(_, differs)| *differs).map(|(key, _)| *key);
    match of_server.or_else(|| first.stream.first_difference(&other.stream)) {
        None => Ok(()),
        Some(option) => Err(Error::validation(format!(
            "tables '{}' and '{}' are read through one replication slot, but option '{option}' is not the same in both",
            first.table, other.table
        ))
        .hint(format!("Give both the same '{option}', or each another 'slot.name'."))),
    }
}
