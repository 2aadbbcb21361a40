//! The stream of changes of a slot: whole messages of transactions that have committed, and word of the server in between.

mod message_batches;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pgwire_replication::{PgWireError, ReplicationEvent};
use tokio::time::Instant;

use super::connection::{PgServer, ReplicationSession};
use super::pgoutput::Lsn;
use crate::error::{Error, Result};
use message_batches::{MessageBatches, Received};

/// Microseconds from 1970 to 2000, where the server's times begin.
const SERVER_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// What the server sends. Transactions come whole, one after the other, in the order of their commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WalMessage {
    /// A transaction.
    Begin {
        /// Where its commit record begins.
        final_lsn: Lsn,
        /// When it was committed, in microseconds since 1970.
        commit_time_us: i64,
        xid: u32,
    },
    /// Its end.
    Commit {
        /// Where its commit record begins.
        lsn: Lsn,
        /// Just behind it: what has this position has all of the transaction.
        end_lsn: Lsn,
    },
    /// Any other message of pgoutput.
    Data(Bytes),
    /// The server is there, and has sent everything before this position.
    KeepAlive { wal_end: Lsn },
    /// What `pg_logical_emit_message` wrote; it may stand outside of transactions.
    Logical { is_transactional: bool, lsn: Lsn },
}

/// A stream of changes. The slot is free for the next one soon after it is dropped.
#[async_trait]
pub(super) trait WalStream: Send {
    /// Returns the next message, waiting for it. Cancel-safe: a call that is dropped loses nothing.
    ///
    /// # Errors
    /// The connection is lost, or silent for longer than the server ever is (unavailable); the server refuses to go on.
    async fn next(&mut self) -> Result<WalMessage>;

    /// Returns the next message if it has come already. Cheaper than `next`, where there is much to read.
    ///
    /// # Errors
    /// As `next`.
    fn try_next(&mut self) -> Result<Option<WalMessage>>;

    /// Lets the server forget what lies before a position. It hears of it soon; going back has no effect.
    fn ack(&self, position: Lsn);
}

/// The stream of a slot of a server. Word of us is sent whether or not anybody takes what comes, so a slow sink does not cut it off.
pub(super) struct PgWalStream {
    server: PgServer,
    batches: MessageBatches,
    slot: String,
    /// How long the server may be silent: it gives word after half of its own time-out.
    silence_max: Duration,
    /// Since when nothing has come, if anybody waits for it.
    waiting_since: Option<Instant>,
}

impl PgWalStream {
    /// Reads a slot that is there: every transaction whose commit record begins at `from` or behind it, or at the slot's own position if
    /// that is later, which the caller must have ruled out.
    ///
    /// # Errors
    /// The slot is not there, is in use (unavailable) or lost; the server cannot be reached (unavailable) or refuses.
    #[cfg(test)]
    pub(super) async fn start(
        server: &PgServer,
        slot: &str,
        publication: &str,
        from: Lsn,
    ) -> Result<PgWalStream> {
        let session = ReplicationSession::open(server, slot, publication, from).await?;
        PgWalStream::of_session(session, slot).await
    }

    /// Reads the slot that the session was opened for, from where it was opened.
    ///
    /// # Errors
    /// The slot is not there, is in use (unavailable) or lost; the connection is lost (unavailable).
    pub(super) async fn of_session(session: ReplicationSession, slot: &str) -> Result<PgWalStream> {
        let server = session.server().clone();
        let silence_max = session.sender_timeout() * 3 / 2;
        let (client, thread) = session.start(slot).await?;
        let batches = MessageBatches::read(client, thread);
        Ok(PgWalStream { server, batches, slot: slot.to_owned(), silence_max, waiting_since: None })
    }

    fn doing(&self) -> String {
        format!("reading replication slot {}", self.slot)
    }

    /// Converts what the client yields.
    fn taken(&mut self, received: Option<Received>) -> Result<WalMessage> {
        self.waiting_since = None;
        match received {
            Some(Ok(Some(event))) => self.converted(event),
            // The second is said when the call that met the end was dropped, and its reason with it.
            None | Some(Ok(None) | Err(PgWireError::Internal(_))) => Err(Error::unavailable(format!(
                "Postgres '{}': {}: the server has ended the stream",
                self.server.name(),
                self.doing()
            ))),
            Some(Err(error)) => Err(self.server.stream_error(&self.doing(), &error)),
        }
    }

    fn converted(&self, event: ReplicationEvent) -> Result<WalMessage> {
        Ok(match event {
            ReplicationEvent::XLogData { data, .. } => WalMessage::Data(data),
            ReplicationEvent::Begin { final_lsn, xid, commit_time_micros } => WalMessage::Begin {
                final_lsn: Lsn(final_lsn.into()),
                commit_time_us: commit_time_micros.saturating_add(SERVER_EPOCH_MICROS),
                xid,
            },
            ReplicationEvent::Commit { lsn, end_lsn, .. } => {
                WalMessage::Commit { lsn: Lsn(lsn.into()), end_lsn: Lsn(end_lsn.into()) }
            }
            ReplicationEvent::KeepAlive { wal_end, .. } => {
                WalMessage::KeepAlive { wal_end: Lsn(wal_end.into()) }
            }
            ReplicationEvent::Message { transactional, lsn, .. } => {
                WalMessage::Logical { is_transactional: transactional, lsn: Lsn(lsn.into()) }
            }
            ReplicationEvent::StoppedAt { .. } => {
                return Err(Error::internal("a stream without an end has come to it"));
            }
        })
    }
}

#[async_trait]
impl WalStream for PgWalStream {
    async fn next(&mut self) -> Result<WalMessage> {
        if let Some(message) = self.try_next()? {
            return Ok(message);
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        match tokio::time::timeout_at(since + self.silence_max, self.batches.next()).await {
            Ok(received) => self.taken(received),
            Err(_) => {
                self.waiting_since = None;
                Err(Error::unavailable(format!(
                    "Postgres '{}': {}: the server has been silent for {} s",
                    self.server.name(),
                    self.doing(),
                    self.silence_max.as_secs_f64()
                )))
            }
        }
    }

    fn try_next(&mut self) -> Result<Option<WalMessage>> {
        self.batches.try_next().map(|received| self.taken(Some(received))).transpose()
    }

    fn ack(&self, position: Lsn) {
        self.batches.acknowledge(position);
    }
}

#[cfg(test)]
mod tests;
