//! Rows on their way out of a worker: to a sink's writer or to whoever asked the query.
//!
//! Small batches are put together, so that an epoch of single rows does not cost a message each.

use std::time::{Duration, Instant};

use futures::executor::block_on;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use super::exchange::aborted;
use super::writer_task::{Prepared, WriterMessage};
use crate::changelog::ChangelogBatch;
use crate::connector::CheckpointId;
use crate::error::Result;

/// Batches below this number of rows wait for others, at most until the end of the epoch.
const SMALL_ROWS: usize = 1_024;

/// The most rows that wait.
const WAITING_ROWS_MAX: usize = 8_192;

/// About how many bytes wait at most: rows of large values are few.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Where rows go.
#[derive(Debug, Clone)]
pub(super) enum Recipient {
    /// A writer.
    Writer(mpsc::Sender<WriterMessage>),
    /// The reader of a query.
    Reader(mpsc::Sender<Result<ChangelogBatch>>),
}

/// Collects and sends rows of one node.
#[derive(Debug)]
pub(super) struct Outbox {
    recipient: Recipient,
    aborted: watch::Receiver<bool>,
    waiting: Vec<ChangelogBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
    /// The time spent waiting for room since it was last asked for.
    blocked: Duration,
}

impl Outbox {
    /// Creates an empty one, which gives up waiting for room when the job is aborted.
    pub(super) fn new(recipient: Recipient, aborted: watch::Receiver<bool>) -> Outbox {
        Outbox {
            recipient,
            aborted,
            waiting: Vec::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
            blocked: Duration::ZERO,
        }
    }

    /// Takes rows, and waits for room where they are many.
    ///
    /// # Errors
    /// The recipient is gone.
    pub(super) fn push(&mut self, batch: ChangelogBatch) -> Result<()> {
        let rows = batch.row_count();
        if self.waiting.is_empty() && rows >= SMALL_ROWS {
            return self.send(batch);
        }
        self.waiting_rows += rows;
        self.waiting_bytes += batch.byte_size();
        self.waiting.push(batch);
        let is_full = self.waiting_rows >= WAITING_ROWS_MAX || self.waiting_bytes >= WAITING_BYTES_MAX;
        if is_full { self.flush() } else { Ok(()) }
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// The recipient is gone.
    pub(super) fn flush(&mut self) -> Result<()> {
        let together = ChangelogBatch::concat(&self.waiting)?;
        self.waiting.clear();
        (self.waiting_rows, self.waiting_bytes) = (0, 0);
        together.map_or(Ok(()), |batch| self.send(batch))
    }

    /// Asks the writer, if there is one, to prepare what came so far.
    ///
    /// # Errors
    /// The writer is gone.
    pub(super) fn prepare(
        &mut self,
        checkpoint: CheckpointId,
        takes_state: bool,
    ) -> Result<Option<oneshot::Receiver<Prepared>>> {
        let Recipient::Writer(writer) = &self.recipient else { return Ok(None) };
        let (prepared, receiver) = oneshot::channel();
        let message = WriterMessage::Prepare { checkpoint, prepared, takes_state };
        send(writer, message, &mut self.aborted, &mut self.blocked)?;
        Ok(Some(receiver))
    }

    /// Returns the time spent waiting for room since the last call.
    pub(super) fn take_blocked(&mut self) -> Duration {
        std::mem::take(&mut self.blocked)
    }

    fn send(&mut self, batch: ChangelogBatch) -> Result<()> {
        let (aborted, blocked) = (&mut self.aborted, &mut self.blocked);
        match &self.recipient {
            Recipient::Writer(sender) => send(sender, WriterMessage::Rows(batch), aborted, blocked),
            Recipient::Reader(sender) => send(sender, Ok(batch), aborted, blocked),
        }
    }
}

/// Sends a message, waiting for room, and adds up the time spent so.
fn send<T>(
    sender: &mpsc::Sender<T>,
    message: T,
    is_aborted: &mut watch::Receiver<bool>,
    blocked: &mut Duration,
) -> Result<()> {
    let message = match sender.try_send(message) {
        Ok(()) => return Ok(()),
        Err(TrySendError::Closed(_)) => return Err(aborted()),
        Err(TrySendError::Full(message)) => message,
    };
    let began = Instant::now();
    let sent = block_on(async {
        tokio::select! {
            sent = sender.send(message) => sent.map_err(|_| aborted()),
            _ = is_aborted.wait_for(|is_aborted| *is_aborted) => Err(aborted()),
        }
    });
    *blocked += began.elapsed();
    sent
}
