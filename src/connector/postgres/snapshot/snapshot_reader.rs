//! Reads what tables hold already, before their changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::chunk_key::ChunkKey;
use super::hand_over::{Ended, HandOver, Piece};
use super::key_chunks::KeyChunks;
use super::key_value::KeyType;
use super::keyed_snapshot::KeyedSnapshot;
use super::session::{Session, SharedSnapshot};
use super::table_reading::TableReading;
use super::table_snapshot::TableSnapshot;
use crate::changelog::ChangelogBatch;
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::copy_decoder::CopyPlan;
use crate::connector::postgres::settings::ChunkSettings;
use crate::connector::postgres::table::PgTable;
use crate::error::{Error, Result};

/// Reads tables, one after the other, each with several connections.
#[derive(Debug)]
pub(in crate::connector::postgres) struct SnapshotReader {
    pieces: mpsc::Receiver<Piece>,
    /// The task that reads; it ends when it is dropped.
    task: JoinSet<Result<()>>,
    states: Vec<TableSnapshot>,
    counts: Vec<RangeCount>,
}

/// A table that is to be read.
#[derive(Debug)]
pub(in crate::connector::postgres) struct SnapshotTable {
    pub(in crate::connector::postgres) table: PgTable,
    pub(in crate::connector::postgres) copy: CopyPlan,
    /// What has been read of it before.
    pub(in crate::connector::postgres) state: TableSnapshot,
    pub(in crate::connector::postgres) chunks: ChunkSettings,
}

/// Rows of a table.
#[derive(Debug)]
pub(in crate::connector::postgres) struct SnapshotPiece {
    /// The table's position among those that the reader was made with.
    pub(in crate::connector::postgres) table: usize,
    pub(in crate::connector::postgres) batch: ChangelogBatch,
    /// Whether a chunk is whole with them: `states()` has it now, and a checkpoint may follow. Pieces of other chunks do not come
    /// between those of one.
    pub(in crate::connector::postgres) ends_chunk: bool,
}

/// How far reading has come since the reader was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) struct SnapshotProgress {
    pub(in crate::connector::postgres) chunks_done: u64,
    /// An estimate while there is more to read.
    pub(in crate::connector::postgres) chunks_total: u64,
    pub(in crate::connector::postgres) tables_done: usize,
    pub(in crate::connector::postgres) tables_total: usize,
}

/// The ranges of a table.
#[derive(Debug)]
struct RangeCount {
    done: u64,
    /// About how many there are.
    total: Arc<AtomicU64>,
}

/// A table, and how it is read.
struct ToRead {
    reading: Arc<TableReading>,
    /// None if it is read by pages.
    chunks: Option<KeyChunks>,
}

impl SnapshotReader {
    /// Begins to read what tables hold that has not been read of them. At most `readers` connections are used.
    ///
    /// # Errors
    /// A table cannot be read in the way that the settings say.
    pub(in crate::connector::postgres) fn new(
        server: &PgServer,
        tables: Vec<SnapshotTable>,
        readers: usize,
    ) -> Result<SnapshotReader> {
        let (hand_over, pieces) = HandOver::channel();
        let mut states = Vec::with_capacity(tables.len());
        let mut counts = Vec::with_capacity(tables.len());
        let mut to_read = Vec::new();
        for (position, SnapshotTable { table, copy, state, chunks: settings }) in
            tables.into_iter().enumerate()
        {
            let total = Arc::new(AtomicU64::new(u64::from(!state.is_complete())));
            counts.push(RangeCount { done: 0, total: Arc::clone(&total) });
            let state = begun(&table, state, settings.key_column.as_deref())?;
            if !state.is_complete() {
                let chunks = match &state {
                    TableSnapshot::Keyed(keyed) => Some(KeyChunks::new(
                        server.clone(),
                        table.clone(),
                        keyed,
                        copy.select_list().to_owned(),
                        settings,
                    )),
                    _ => None,
                };
                let shared = SharedSnapshot::new(server.clone(), table.clone());
                let reading = TableReading {
                    server: server.clone(),
                    position,
                    table,
                    copy,
                    hand_over: hand_over.clone(),
                    range_count: total,
                    shared,
                };
                to_read.push(ToRead { reading: Arc::new(reading), chunks });
            }
            states.push(state);
        }
        let mut task = JoinSet::new();
        task.spawn(read_all(to_read, readers.max(1)));
        Ok(SnapshotReader { pieces, task, states, counts })
    }

    /// Returns the next rows; None when all has been read. A call that is dropped loses nothing.
    ///
    /// # Errors
    /// The server refuses or cannot be reached, or a value cannot be represented. What was handed out behind the last end of a chunk
    /// counts for nothing then, and the reader must be made anew.
    pub(in crate::connector::postgres) async fn next(&mut self) -> Result<Option<SnapshotPiece>> {
        if let Some(Piece { table, batch, ends }) = self.pieces.recv().await {
            let ends_chunk = ends.is_some();
            if let Some(ended) = ends {
                self.note(table, ended);
            }
            return Ok(Some(SnapshotPiece { table, batch, ends_chunk }));
        }
        match self.task.join_next().await {
            Some(Ok(done)) => done.map(|()| None),
            Some(Err(error)) => {
                Err(Error::internal("the task that reads tables has crashed").caused_by(error))
            }
            None => Ok(None),
        }
    }

    /// Returns what to keep of each table once all pieces that were handed out are safe.
    pub(in crate::connector::postgres) fn states(&self) -> &[TableSnapshot] {
        &self.states
    }

    /// Returns how far it has come.
    pub(in crate::connector::postgres) fn progress(&self) -> SnapshotProgress {
        let ranges = |count: &RangeCount, state: &TableSnapshot| {
            if state.is_complete() {
                count.done
            } else {
                count.total.load(Ordering::Relaxed).max(count.done + 1)
            }
        };
        SnapshotProgress {
            chunks_done: self.counts.iter().map(|count| count.done).sum(),
            chunks_total: self
                .counts
                .iter()
                .zip(&self.states)
                .map(|(count, state)| ranges(count, state))
                .sum(),
            tables_done: self.states.iter().filter(|state| state.is_complete()).count(),
            tables_total: self.states.len(),
        }
    }

    fn note(&mut self, table: usize, ended: Ended) {
        let (Some(state), Some(count)) = (self.states.get_mut(table), self.counts.get_mut(table)) else {
            return;
        };
        match (ended.range, state) {
            (Some(range), TableSnapshot::Keyed(keyed)) => {
                keyed.note_read(&range, &ended.xids);
                count.done += 1;
            }
            (_, state) => {
                *state = TableSnapshot::Whole((*ended.xids).clone());
                count.done = count.total.load(Ordering::Relaxed);
            }
        }
    }
}

/// Decides how a table is read of which nothing has been.
fn begun(table: &PgTable, state: TableSnapshot, key_column: Option<&str>) -> Result<TableSnapshot> {
    let is_begun = match &state {
        TableSnapshot::Pending => false,
        TableSnapshot::Keyed(keyed) => !keyed.snapshots().is_empty(),
        TableSnapshot::Whole(_) | TableSnapshot::Pure => true,
    };
    if let TableSnapshot::Keyed(keyed) = &state
        && is_begun
        && !state.is_complete()
    {
        let column = table.columns.iter().find(|column| column.name == keyed.column());
        if column.and_then(|column| KeyType::of(column.type_oid)) != Some(keyed.key_type()) {
            return Err(Error::rejected(format!(
                "column '{}' of table '{}' has changed: it cannot be gone on with where its values were read to",
                keyed.column(),
                table.label()
            ))
            .hint("SET 'lakehead.job.resume' = 'resnapshot' and start the job again: it reads all tables anew."));
        }
    }
    if is_begun {
        return Ok(state);
    }
    Ok(match ChunkKey::choose(table, key_column)? {
        Some(key) => TableSnapshot::Keyed(KeyedSnapshot::new(&key.column, key.key_type)),
        None => TableSnapshot::Pending,
    })
}

/// Reads tables one after the other. Connections are kept from one to the next.
async fn read_all(tables: Vec<ToRead>, readers: usize) -> Result<()> {
    let mut sessions: Vec<Session> = Vec::new();
    for ToRead { reading, chunks } in tables {
        match chunks {
            Some(chunks) => reading.read_by_key(chunks, readers, &mut sessions).await?,
            None => reading.read_by_page(readers, &mut sessions).await?,
        }
    }
    Ok(())
}
