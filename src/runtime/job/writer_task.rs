//! The task that owns a sink's writer: it writes rows as they come from a worker and prepares commits in between.

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

/// Runs a writer until nobody sends any more.
///
/// # Errors
/// The sink cannot be written.
pub(super) async fn run_writer(
    mut writer: Box<dyn SinkWriter>,
    mut messages: mpsc::Receiver<WriterMessage>,
) -> Result<()> {
    while let Some(message) = messages.recv().await {
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
