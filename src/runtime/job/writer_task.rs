//! The task that owns a sink's writer: it writes rows as they come from a worker and prepares commits in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::changelog::ChangelogBatch;
use crate::connector::{CheckpointId, Committable, SinkWriter};
use crate::error::Result;
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
    /// How many bytes the state holds.
    pub(super) state_bytes: usize,
}

/// How many batches wait for a writer at most.
pub(super) const WRITER_QUEUE: usize = 4;

/// Knows which writers live, and lets them stop.
#[derive(Debug)]
pub(super) struct WriterLives {
    is_stopped: Arc<AtomicBool>,
    life: Option<mpsc::Sender<()>>,
    ended: mpsc::Receiver<()>,
}

/// The life of a writer: the writer is gone when it is dropped.
#[derive(Debug)]
pub(super) struct WriterLife {
    is_stopped: Arc<AtomicBool>,
    _life: Option<mpsc::Sender<()>>,
}

impl WriterLives {
    /// Begins without writers.
    pub(super) fn new() -> WriterLives {
        let (life, ended) = mpsc::channel(1);
        WriterLives { is_stopped: Arc::default(), life: Some(life), ended }
    }

    /// Begins the life of a writer.
    pub(super) fn begin(&self) -> WriterLife {
        WriterLife { is_stopped: Arc::clone(&self.is_stopped), _life: self.life.clone() }
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
    while let Some(message) = messages.recv().await {
        if life.is_stopped.load(Ordering::Acquire) {
            break;
        }
        match message {
            WriterMessage::Rows(batch) => writer.write(batch).await?,
            WriterMessage::Prepare { checkpoint, prepared, takes_state } => {
                let committables = writer.prepare_commit(checkpoint).await?;
                let changes = if takes_state { writer.take_changes()? } else { Vec::new() };
                let state_bytes = writer.state_bytes();
                // Nobody asks any more where the job is being stopped.
                let _ = prepared.send(Prepared { committables, changes, state_bytes });
            }
        }
    }
    Ok(())
}
