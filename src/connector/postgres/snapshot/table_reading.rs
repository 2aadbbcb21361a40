//! Reads one table, with several connections at a time.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout_at;

use super::chunk_key::source;
use super::hand_over::{Ended, HandOver, Held, Turn};
use super::key_chunks::KeyChunks;
use super::keyed_snapshot::KeyRange;
use super::page_ranges::{PageRange, page_ranges};
use super::session::{Session, SharedSnapshot};
use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::copy_decoder::{CopyDecoder, CopyPlan};
use crate::connector::postgres::table::PgTable;
use crate::error::{Error, ErrorKind, Result};

/// How big the batches are that rows are handed over in.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 1 << 20;

/// How often a range of keys is read anew after connections were lost, before that is told; and how long is waited before, twice as
/// long each time.
const RETRIES: u32 = 4;
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// A table, and what its readers have in common.
#[derive(Debug)]
pub(super) struct TableReading {
    pub(super) server: PgServer,
    /// Its position among all tables.
    pub(super) position: usize,
    pub(super) table: PgTable,
    pub(super) copy: CopyPlan,
    pub(super) hand_over: HandOver,
    /// About how many ranges there are.
    pub(super) range_count: Arc<AtomicU64>,
    pub(super) shared: SharedSnapshot,
}

/// The ranges of keys that nobody reads yet.
#[derive(Debug)]
struct Keys {
    column: String,
    chunks: Mutex<KeyChunks>,
}

/// The pages that nobody reads yet, and the number of ranges that are not handed over.
#[derive(Debug)]
struct Pages {
    unread: SyncMutex<VecDeque<PageRange>>,
    left: Mutex<usize>,
    turn: Turn,
}

impl TableReading {
    /// Reads the table in ranges of its key, each as a whole of its own.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached for a while.
    pub(super) async fn read_by_key(
        self: Arc<TableReading>,
        mut chunks: KeyChunks,
        readers: usize,
        sessions: &mut Vec<Session>,
    ) -> Result<()> {
        let mut first = self.session(sessions).await?;
        self.shared.enter(&mut first).await?;
        first.wait(&self.cutting(), chunks.prepare(first.client())).await??;
        self.range_count.store(chunks.estimate(), Ordering::Relaxed);
        sessions.push(first);
        let readers = readers.min(usize::try_from(chunks.estimate()).unwrap_or(usize::MAX));
        let keys = Arc::new(Keys { column: chunks.column().to_owned(), chunks: Mutex::new(chunks) });
        let mut tasks = JoinSet::new();
        for reader in 0..readers {
            tasks.spawn(Arc::clone(&self).read_ranges(Arc::clone(&keys), sessions.pop(), reader == 0));
        }
        while let Some(done) = tasks.join_next().await {
            if let Some(session) = done.map_err(crashed)?? {
                keep(session, sessions).await;
            }
        }
        Ok(())
    }

    /// Reads ranges until there are no more. One that may be spared leaves them to the others when it cannot connect, as the server may
    /// have fewer connections left than there are readers.
    async fn read_ranges(
        self: Arc<TableReading>,
        keys: Arc<Keys>,
        mut session: Option<Session>,
        is_needed: bool,
    ) -> Result<Option<Session>> {
        let mut range = None;
        let mut failures = 0;
        loop {
            let mut held = self.hand_over.hold(self.position, None);
            match self.read_range(&keys, &mut session, &mut range, &mut held).await {
                Ok(Some(ended)) => {
                    failures = 0;
                    range = None;
                    finish(held, ended, &mut session).await?;
                }
                Ok(None) => return Ok(session),
                Err(error) if error.kind() != ErrorKind::Unavailable || held.is_begun() => return Err(error),
                Err(_) if range.is_none() && !is_needed => return Ok(None),
                Err(error) if failures < RETRIES => {
                    session = None;
                    tracing::debug!(table = %self.table.label(), error = %error, "reading a range anew");
                    tokio::time::sleep(RETRY_AFTER * 2_u32.pow(failures)).await;
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads a range, the one that is given or the next; None if there is no more.
    async fn read_range(
        &self,
        keys: &Keys,
        session: &mut Option<Session>,
        range: &mut Option<KeyRange>,
        held: &mut Held,
    ) -> Result<Option<Ended>> {
        let session = match session {
            Some(session) => session,
            None => session.insert(Session::open(self.server.clone()).await?),
        };
        self.shared.enter(session).await?;
        if range.is_none() {
            let mut chunks = keys.chunks.lock().await;
            *range = session.wait(&self.cutting(), chunks.next(session.client())).await??;
        }
        let Some(range) = range.clone() else { return Ok(None) };
        session.set_may_scan_all(range.is_all()).await?;
        let xids = session.xids()?;
        self.copy(session, range.condition(&keys.column), held).await?;
        Ok(Some(Ended { range: Some(range), xids }))
    }

    /// Reads the table page by page, as one whole.
    ///
    /// # Errors
    /// The server refuses, or a connection is lost: the table must be read from its start then.
    pub(super) async fn read_by_page(
        self: Arc<TableReading>,
        readers: usize,
        sessions: &mut Vec<Session>,
    ) -> Result<()> {
        let mut first = self.session(sessions).await?;
        self.shared.enter(&mut first).await?;
        let ranges = page_ranges(&self.server, first.client(), &self.table);
        let ranges = first.wait(&self.cutting(), ranges).await??;
        self.range_count.store(ranges.len() as u64, Ordering::Relaxed);
        let readers = readers.min(ranges.len());
        let turn = self.hand_over.turn().await?;
        let pages =
            Arc::new(Pages { left: Mutex::new(ranges.len()), unread: SyncMutex::new(ranges.into()), turn });
        let mut tasks = JoinSet::new();
        let first = Arc::clone(&self).read_pages(Arc::clone(&pages), first);
        tasks.spawn(async move { first.await.map(Some) });
        for _ in 1..readers {
            tasks.spawn(Arc::clone(&self).help_with_pages(Arc::clone(&pages), sessions.pop()));
        }
        let mut ended = Vec::new();
        while *pages.left.lock().await > 0 {
            match tasks.join_next().await {
                Some(done) => ended.extend(done.map_err(crashed)??),
                None => return Err(Error::internal("ranges of pages are left that nobody reads")),
            }
        }
        // Those that still wait to join go, and their connections with them.
        drop(tasks);
        // The snapshot is there for the others until the first session ends its transaction.
        for session in ended {
            keep(session, sessions).await;
        }
        Ok(())
    }

    /// Joins those that read pages, if that is possible. Joins before it takes a range: an ALTER TABLE may wait for the first session to
    /// end, and it for that command. The ranges are left to those who can read them, and then both go on.
    async fn help_with_pages(
        self: Arc<TableReading>,
        pages: Arc<Pages>,
        session: Option<Session>,
    ) -> Result<Option<Session>> {
        let session = match session {
            Some(session) => Ok(session),
            None => Session::open(self.server.clone()).await,
        };
        let mut session = match session {
            Ok(session) => session,
            // The server may have fewer connections left than there are readers.
            Err(error) if error.kind() == ErrorKind::Unavailable => return Ok(None),
            Err(error) => return Err(error),
        };
        if self.shared.join(&mut session).await? {
            session = self.read_pages(pages, session).await?;
        }
        Ok(Some(session))
    }

    /// Reads pages until there are no more.
    async fn read_pages(self: Arc<TableReading>, pages: Arc<Pages>, mut session: Session) -> Result<Session> {
        session.set_may_scan_all(true).await?;
        let xids = session.xids()?;
        loop {
            let range = pages.unread.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(range) = range else { return Ok(session) };
            let mut held = self.hand_over.hold(self.position, Some(pages.turn.clone()));
            self.copy(&session, range.condition(), &mut held).await?;
            // Who sends the end of the last range sends it behind the ends of the others.
            let mut left = pages.left.lock().await;
            *left -= 1;
            let ends = (*left == 0).then(|| Ended { range: None, xids: Arc::clone(&xids) });
            held.finish(ends).await?;
        }
    }

    /// Reads the rows that a condition is true for.
    async fn copy(&self, session: &Session, condition: Option<String>, held: &mut Held) -> Result<()> {
        let doing = format!("reading table {}", self.table.label());
        let failed = |error| self.server.sql_error(&doing, error);
        let condition = condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
        let query = format!(
            "COPY (SELECT {} FROM {} t{condition}) TO STDOUT (FORMAT binary)",
            self.copy.select_list(),
            source(&self.table)
        );
        let copying = session.client().copy_out(&query);
        let mut rows = pin!(session.wait(&doing, copying).await?.map_err(failed)?);
        let mut decoder = CopyDecoder::new(&self.copy);
        while let Some(data) = session.wait(&doing, rows.next()).await? {
            decoder.push(&data.map_err(failed)?)?;
            if decoder.row_count() >= BATCH_ROWS || decoder.byte_size() >= BATCH_BYTES {
                let bytes = decoder.byte_size();
                held.push(decoder.take()?, bytes).await?;
            }
        }
        decoder.expect_end()?;
        if decoder.row_count() > 0 || held.is_empty() {
            let bytes = decoder.byte_size();
            held.push(decoder.take()?, bytes).await?;
        }
        Ok(())
    }

    /// Says what is done while ranges are made.
    fn cutting(&self) -> String {
        format!("cutting table {} into ranges", self.table.label())
    }

    /// Returns a connection that is free, or a new one.
    async fn session(&self, sessions: &mut Vec<Session>) -> Result<Session> {
        match sessions.pop() {
            Some(session) => Ok(session),
            None => Session::open(self.server.clone()).await,
        }
    }
}

/// Hands a range over. If that takes long, the transaction that it was read in ends meanwhile.
async fn finish(held: Held, ended: Ended, session: &mut Option<Session>) -> Result<()> {
    let mut handing = pin!(held.finish(Some(ended)));
    let Some(ends_at) = session.as_ref().and_then(Session::ends_at) else { return handing.await };
    if let Ok(done) = timeout_at(ends_at.into(), handing.as_mut()).await {
        return done;
    }
    if let Some(open) = session
        && open.end().await.is_err()
    {
        // It is found out again when the next range is read.
        *session = None;
    }
    handing.await
}

/// Keeps the connection of a session that has nothing left to read, unless it was lost meanwhile: everything has been handed over.
async fn keep(mut session: Session, sessions: &mut Vec<Session>) {
    if session.end().await.is_ok() {
        sessions.push(session);
    }
}

fn crashed(error: tokio::task::JoinError) -> Error {
    Error::internal("a task that reads a table has crashed").caused_by(error)
}
