//! The task that owns a sink's writer: it writes rows as they come from a worker and prepares commits in between.

use tokio::sync::{mpsc, oneshot};

use crate::changelog::ChangelogBatch;
use crate::connector::{CheckpointId, Committable, SinkWriter};
use crate::error::Result;

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
        prepared: oneshot::Sender<Vec<Committable>>,
    },
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
            WriterMessage::Prepare { checkpoint, prepared } => {
                let committables = writer.prepare_commit(checkpoint).await?;
                // Nobody asks any more where the job is being stopped.
                let _ = prepared.send(committables);
            }
        }
    }
    Ok(())
}
