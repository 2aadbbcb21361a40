//! The way of rows from the tasks that read them to the one that asks for them.
//!
//! Several ranges are read at the same time, but handed over one after the other: a checkpoint may stand between two of them and not
//! within one. A range is held until it is read wholly, or has become so big that its turn is waited for, from which on its rows are
//! handed over as they come.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::keyed_snapshot::KeyRange;
use super::visibility::SnapshotXids;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};

/// How many bytes of a range are held before its turn.
const HELD_BYTES: usize = 16 << 20;

/// How many pieces, of about 1 MB each, lie ready for who asks.
const PIECES_READY: usize = 4;

/// Rows on their way.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) table: usize,
    pub(super) batch: ChangelogBatch,
    /// What has been read wholly with these rows.
    pub(super) ends: Option<Ended>,
}

/// What was read, and under which snapshot.
#[derive(Debug)]
pub(super) struct Ended {
    /// None: the whole table.
    pub(super) range: Option<KeyRange>,
    pub(super) xids: Arc<SnapshotXids>,
}

/// Where pieces go.
#[derive(Debug, Clone)]
pub(super) struct HandOver {
    pieces: mpsc::Sender<Piece>,
    turns: Arc<Semaphore>,
}

/// Rows of a range that are not handed over yet.
#[derive(Debug)]
pub(super) struct Held {
    hand_over: HandOver,
    table: usize,
    batches: Vec<ChangelogBatch>,
    bytes: usize,
    turn: Option<Turn>,
    is_begun: bool,
}

/// The right to hand over, until all copies of it are dropped.
#[derive(Debug, Clone)]
pub(super) struct Turn(
    #[expect(dead_code, reason = "it is given back when it is dropped")] Arc<OwnedSemaphorePermit>,
);

impl HandOver {
    /// Makes both ends.
    pub(super) fn channel() -> (HandOver, mpsc::Receiver<Piece>) {
        let (pieces, receiver) = mpsc::channel(PIECES_READY);
        (HandOver { pieces, turns: Arc::new(Semaphore::new(1)) }, receiver)
    }

    /// Begins to hold a range of a table, which needs no turn if it has got one already.
    pub(super) fn hold(&self, table: usize, turn: Option<Turn>) -> Held {
        Held { hand_over: self.clone(), table, batches: Vec::new(), bytes: 0, turn, is_begun: false }
    }

    /// Waits until nobody else is handing over.
    pub(super) async fn turn(&self) -> Result<Turn> {
        let permit = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| gone())?;
        Ok(Turn(Arc::new(permit)))
    }

    /// Hands over a piece, waiting until there is room.
    async fn send(&self, piece: Piece) -> Result<()> {
        self.pieces.send(piece).await.map_err(|_| gone())
    }
}

impl Held {
    /// Takes rows.
    pub(super) async fn push(&mut self, batch: ChangelogBatch, bytes: usize) -> Result<()> {
        self.batches.push(batch);
        self.bytes += bytes;
        if self.turn.is_none() && self.bytes > HELD_BYTES {
            self.turn = Some(self.hand_over.turn().await?);
        }
        if self.turn.is_some() {
            self.hand_over_all_but_last().await?;
        }
        Ok(())
    }

    /// Returns whether there is a batch that can end the range.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns whether somebody may have seen rows of it, so that it must not be read again.
    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    /// Hands over what is left, and tells with the last rows what they end.
    pub(super) async fn finish(mut self, ends: Option<Ended>) -> Result<()> {
        if self.turn.is_none() {
            self.turn = Some(self.hand_over.turn().await?);
        }
        self.hand_over_all_but_last().await?;
        match self.batches.pop() {
            Some(batch) => self.hand_over.send(Piece { table: self.table, batch, ends }).await,
            None => Err(Error::internal("a range of a snapshot ended without a batch")),
        }
    }

    /// The last batch stays, as it may turn out to end the range.
    async fn hand_over_all_but_last(&mut self) -> Result<()> {
        let last = self.batches.len().saturating_sub(1);
        for batch in self.batches.drain(..last) {
            self.is_begun = true;
            self.hand_over.send(Piece { table: self.table, batch, ends: None }).await?;
        }
        Ok(())
    }
}

/// The error of tasks that go on although the reader was dropped. Nobody sees it.
fn gone() -> Error {
    Error::interrupted("nobody reads the snapshot any more")
}
