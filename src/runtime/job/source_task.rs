//! The task that owns a source's reader: it reads ahead, within bounds, and passes on what checkpoints release.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, Result};
use crate::plan::NodeId;

/// What a source has given.
#[derive(Debug)]
pub(super) struct SourceItem {
    /// The source's node.
    pub(super) source: NodeId,
    /// A frame, or None at the end of the input.
    pub(super) frame: Option<ReadFrame>,
}

/// A frame that was read ahead.
#[derive(Debug)]
pub(super) struct ReadFrame {
    /// The frame.
    pub(super) frame: Frame,
    /// The position behind it.
    pub(super) position: SourcePosition,
    /// The room that it takes, given back when this is dropped.
    pub(super) room: OwnedSemaphorePermit,
}

/// What a source is told.
#[derive(Debug)]
pub(super) enum SourceMessage {
    /// Its rows are needed no more.
    Stop,
    /// A checkpoint with this position is durable and its sinks have committed.
    CheckpointComplete {
        /// The position.
        position: SourcePosition,
        /// Hears when the source has released what lies before.
        released: oneshot::Sender<()>,
    },
}

/// How many frames a source reads ahead.
pub(super) const FRAMES_AHEAD: usize = 64;

/// What a row of a frame without bytes counts for.
const ROW_BYTES: usize = 64;

/// Returns about how many bytes a frame takes.
pub(super) fn frame_bytes(frame: &Frame) -> usize {
    match frame {
        Frame::Bytes { data, .. } => data.len(),
        Frame::Rows(batch) => batch.row_count() * ROW_BYTES,
        Frame::Generate { count, .. } => count * ROW_BYTES,
    }
}

/// A source that is read ahead.
pub(super) struct SourceTask {
    /// The source's node.
    pub(super) source: NodeId,
    /// The reader.
    pub(super) reader: Box<dyn SourceReader>,
    /// Takes what is read.
    pub(super) items: mpsc::Sender<SourceItem>,
    /// Says what to do.
    pub(super) messages: mpsc::Receiver<SourceMessage>,
    /// The kilobytes that may be read ahead.
    pub(super) room: Arc<Semaphore>,
    /// How many that are.
    pub(super) room_max: usize,
}

impl SourceTask {
    /// Reads until nobody listens any more.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(super) async fn run(mut self) -> Result<()> {
        let mut item = None;
        let mut is_over = false;
        loop {
            tokio::select! {
                biased;
                message = self.messages.recv() => match message {
                    None => return Ok(()),
                    Some(SourceMessage::Stop) => {
                        is_over = true;
                        item = None;
                    }
                    Some(SourceMessage::CheckpointComplete { position, released }) => {
                        self.reader.on_checkpoint_complete(&position).await?;
                        // The job may be ending without waiting.
                        let _ = released.send(());
                    }
                },
                slot = self.items.reserve(), if item.is_some() => {
                    let Ok(slot) = slot else { return Ok(()) };
                    if let Some(item) = item.take() {
                        slot.send(item);
                    }
                }
                read = read(self.source, self.reader.as_mut(), &self.room, self.room_max),
                    if item.is_none() && !is_over =>
                {
                    let read = read?;
                    is_over = read.frame.is_none();
                    item = Some(read);
                }
            }
        }
    }
}

/// Reads a frame as soon as there is room for one. Cancel-safe: room is given back, and the reader is asked last.
async fn read(
    source: NodeId,
    reader: &mut dyn SourceReader,
    room: &Arc<Semaphore>,
    room_max: usize,
) -> Result<SourceItem> {
    let mut taken = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(|error| Error::internal("a source's room was closed").caused_by(error))?;
    let frame = match reader.next().await? {
        SourceEvent::EndOfInput => None,
        SourceEvent::Frame(frame) => {
            // The frame is there already: it takes what room is left, and the next one waits until it is gone.
            let wanted = (frame_bytes(&frame) / 1024).min(room_max) as u32;
            let more = wanted.min(room.available_permits() as u32);
            if let Ok(more) = Arc::clone(room).try_acquire_many_owned(more) {
                taken.merge(more);
            }
            Some(ReadFrame { frame, position: reader.position(), room: taken })
        }
    };
    Ok(SourceItem { source, frame })
}
