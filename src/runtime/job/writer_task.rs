//! The task that owns a sink's writer: it writes rows as they come from a worker and prepares commits in between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::changelog::ChangelogBatch;
use crate::connector::{CheckpointId, Committable, SinkWriter};
use crate::error::Result;
use crate::plan::NodeId;
use crate::state::StateChanges;

/// What a writer is told, in order.
#[derive(Debug)]
pub(super) enum WriterMessage {
    /// Write rows.
    Rows(ChangelogBatch),
    /// Prepare what came before for a checkpoint.
    Prepare {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Gets what was prepared.
        prepared: oneshot::Sender<Prepared>,
        /// Whether the state is taken for it.
        takes_state: bool,
    },
}

/// What a writer hands over for a checkpoint.
#[derive(Debug)]
pub(super) struct Prepared {
    /// What is to be committed.
    pub(super) committables: Vec<Committable>,
    /// What has changed in the writer's state; empty where it is not taken.
    pub(super) changes: Vec<StateChanges>,
}

/// After how many rows it is seen anew how much state a writer has.
const LOOK_ROWS: usize = 1 << 16;

/// How many batches wait for a writer at most.
pub(super) const WRITER_QUEUE: usize = 4;

/// Knows which writers live, and lets them stop.
#[derive(Debug)]
pub(super) struct WriterLives {
    is_stopped: Arc<AtomicBool>,
    life: Option<mpsc::Sender<()>>,
    ended: mpsc::Receiver<()>,
    /// How many bytes of state each writer has, as it says itself.
    state_bytes: Vec<(NodeId, Arc<AtomicUsize>)>,
}

/// The life of a writer: the writer is gone when it is dropped.
#[derive(Debug)]
pub(super) struct WriterLife {
    is_stopped: Arc<AtomicBool>,
    state_bytes: Arc<AtomicUsize>,
    _life: Option<mpsc::Sender<()>>,
}

impl WriterLives {
    /// Begins without writers.
    pub(super) fn new() -> WriterLives {
        let (life, ended) = mpsc::channel(1);
        WriterLives { is_stopped: Arc::default(), life: Some(life), ended, state_bytes: Vec::new() }
    }

    /// Begins the life of a writer of a sink.
    pub(super) fn begin(&mut self, sink: NodeId) -> WriterLife {
        let state_bytes = Arc::<AtomicUsize>::default();
        self.state_bytes.push((sink, Arc::clone(&state_bytes)));
        WriterLife { is_stopped: Arc::clone(&self.is_stopped), state_bytes, _life: self.life.clone() }
    }

    /// Returns how many bytes of state the writers have, by sink.
    pub(super) fn state_bytes(&self) -> BTreeMap<NodeId, usize> {
        let mut by_sink = BTreeMap::new();
        for (sink, bytes) in &self.state_bytes {
            *by_sink.entry(*sink).or_default() += bytes.load(Ordering::Relaxed);
        }
        by_sink
    }

    /// Lets writers end what they are at, and take nothing more.
    pub(super) fn stop(&mut self) {
        self.is_stopped.store(true, Ordering::Release);
        self.life = None;
    }

    /// Waits until all writers are gone. They must have been stopped, and nobody may send to them any more.
    pub(super) async fn ended(&mut self) {
        // Nobody sends: the channel ends with the last writer.
        self.ended.recv().await;
    }
}

/// Runs a writer until nobody sends any more, or it is stopped.
///
/// # Errors
/// The sink cannot be written.
pub(super) async fn run_writer(
    mut writer: Box<dyn SinkWriter>,
    mut messages: mpsc::Receiver<WriterMessage>,
    life: WriterLife,
) -> Result<()> {
    let mut unseen_rows = 0;
    while let Some(message) = messages.recv().await {
        if life.is_stopped.load(Ordering::Acquire) {
            break;
        }
        match message {
            WriterMessage::Rows(batch) => {
                unseen_rows += batch.row_count();
                writer.write(batch).await?;
                if unseen_rows >= LOOK_ROWS {
                    unseen_rows = 0;
                    life.state_bytes.store(writer.state_bytes(), Ordering::Relaxed);
                }
            }
            WriterMessage::Prepare { checkpoint, prepared, takes_state } => {
                let committables = writer.prepare_commit(checkpoint).await?;
                let changes = if takes_state { writer.take_changes()? } else { Vec::new() };
                life.state_bytes.store(writer.state_bytes(), Ordering::Relaxed);
                // Nobody asks any more where the job is being stopped.
                let _ = prepared.send(Prepared { committables, changes });
            }
        }
    }
    Ok(())
}
