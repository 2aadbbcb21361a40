//! What a stream's client yields, in batches.
//!
//! A server that is read as fast as it can send puts each message into a packet of its own, and whoever waits for the next one is woken by
//! each: that costs several times what the message does. So a thread waits that does nothing else, hands on what has come, and sleeps for
//! a moment before it looks again. What comes meanwhile lies in the socket's buffer, and is read at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use pgwire_replication::{ReplicationClient, ReplicationEvent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{unconstrained, yield_now};
use tokio::time::timeout;

use crate::connector::postgres::connection::SocketThread;
use crate::connector::postgres::pgoutput::Lsn;

/// How long the thread sleeps behind a batch that is not full: a message may be as much later.
const PAUSE: Duration = Duration::from_micros(500);

/// A batch of more bytes is full.
const BATCH_BYTES: usize = 256 << 10;

/// How many bytes may wait for whoever takes them, unless it is a single message.
const ROOM_BYTES: usize = 4 << 20;

/// What a message takes beside its own bytes.
const MESSAGE_BYTES: usize = size_of::<ReplicationEvent>() + 32;

/// How long the end of a stream may take.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What a client answers.
pub(super) type Received = pgwire_replication::Result<Option<ReplicationEvent>>;

/// The batches of a stream.
pub(super) struct MessageBatches {
    batches: mpsc::UnboundedReceiver<Batch>,
    /// What is being taken.
    current: Batch,
    /// What the server may forget; the client ends when it is dropped.
    acknowledged: watch::Sender<Lsn>,
}

#[derive(Default)]
struct Batch {
    messages: VecDeque<Received>,
    bytes: usize,
    /// Given back when all has been taken.
    room: Option<OwnedSemaphorePermit>,
}

impl Batch {
    /// Adds what was received; returns whether nothing comes behind it.
    fn push(&mut self, received: Received) -> bool {
        self.bytes += MESSAGE_BYTES;
        if let Ok(Some(ReplicationEvent::XLogData { data, .. })) = &received {
            self.bytes += data.len();
        }
        let is_end = !matches!(received, Ok(Some(_)));
        self.messages.push_back(received);
        is_end
    }
}

impl MessageBatches {
    /// Reads a client that has started, on the thread that it lives on.
    pub(super) fn read(client: ReplicationClient, thread: SocketThread) -> MessageBatches {
        let (sender, batches) = mpsc::unbounded_channel();
        let (acknowledged, acknowledgements) = watch::channel(Lsn(0));
        let room = Arc::new(Semaphore::new(ROOM_BYTES));
        let runtime = thread.runtime().clone();
        runtime.spawn(async move {
            let mut reading = Reading { client, acknowledgements, sender, room };
            if reading.run().await.is_none() {
                // Nobody takes anything any more. The server hears of it, if it still hears.
                drop(timeout(CLOSE_WAIT, reading.client.shutdown()).await);
            }
            drop(thread);
        });
        MessageBatches { batches, current: Batch::default(), acknowledged }
    }

    /// Returns the next message, waiting for it; None behind the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Received> {
        loop {
            if let Some(message) = self.current.messages.pop_front() {
                return Some(message);
            }
            self.current.room = None;
            self.current = self.batches.recv().await?;
        }
    }

    /// Returns the next message if it has come already.
    #[inline]
    pub(super) fn try_next(&mut self) -> Option<Received> {
        if self.current.messages.is_empty() {
            self.current.room = None;
            self.current = self.batches.try_recv().ok()?;
        }
        self.current.messages.pop_front()
    }

    /// Lets the server forget what lies before a position.
    pub(super) fn acknowledge(&self, position: Lsn) {
        self.acknowledged.send_if_modified(|known| {
            let goes_on = position > *known;
            *known = position.max(*known);
            goes_on
        });
    }
}

/// The thread's side.
struct Reading {
    client: ReplicationClient,
    acknowledgements: watch::Receiver<Lsn>,
    sender: mpsc::UnboundedSender<Batch>,
    room: Arc<Semaphore>,
}

impl Reading {
    /// Reads to the end; None if nobody takes what is read.
    #[allow(
        clippy::disallowed_methods,
        reason = "the thread has nothing else to do, and is to let packets gather"
    )]
    async fn run(&mut self) -> Option<()> {
        loop {
            let mut batch = Batch::default();
            let mut is_end = batch.push(self.first().await?);
            loop {
                let count = batch.messages.len();
                while !is_end && batch.bytes < BATCH_BYTES {
                    let Some(received) = unconstrained(self.client.recv()).now_or_never() else { break };
                    is_end = batch.push(received);
                }
                if is_end || batch.bytes >= BATCH_BYTES || batch.messages.len() == count {
                    break;
                }
                // The client goes on reading what it has had no place for.
                yield_now().await;
            }
            let is_full = batch.bytes >= BATCH_BYTES;
            batch.room = Some(self.wait_for_room(batch.bytes.min(ROOM_BYTES)).await?);
            self.sender.send(batch).ok()?;
            if is_end {
                return Some(());
            }
            if !is_full {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Waits for a message, and tells the client meanwhile what it is to acknowledge.
    async fn first(&mut self) -> Option<Received> {
        loop {
            tokio::select! {
                received = self.client.recv() => return Some(received),
                changed = self.acknowledgements.changed() => changed.ok()?,
            }
            self.acknowledge();
        }
    }

    async fn wait_for_room(&mut self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        loop {
            tokio::select! {
                permit = Arc::clone(&self.room).acquire_many_owned(bytes) => {
                    self.acknowledge();
                    return permit.ok();
                }
                changed = self.acknowledgements.changed() => changed.ok()?,
            }
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        let position = *self.acknowledgements.borrow_and_update();
        self.client.update_applied_lsn(pgwire_replication::Lsn::from(position.0));
    }
}
