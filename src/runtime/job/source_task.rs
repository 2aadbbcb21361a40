//! The task that owns a source's reader: it reads ahead, within bounds, and passes on what checkpoints release.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, Result};
use crate::plan::NodeId;

/// What a reader has given.
#[derive(Debug)]
pub(super) struct SourceItem {
    /// The reader: the node of its first table.
    pub(super) reader: NodeId,
    /// What it has given.
    pub(super) given: Given,
}

/// What a reader gives.
#[derive(Debug)]
pub(super) enum Given {
    /// A frame that was read ahead.
    Frame(ReadFrame),
    /// What came so far is whole, up to this position.
    Boundary(SourcePosition),
    /// The end of the input.
    End,
}

/// A frame that was read ahead.
#[derive(Debug)]
pub(super) struct ReadFrame {
    /// The table's node.
    pub(super) source: NodeId,
    /// The frame.
    pub(super) frame: Frame,
    /// The position behind it; None if it is a part of something.
    pub(super) position: Option<SourcePosition>,
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

/// What a row counts for at least that is still to be made up.
const ROW_BYTES: usize = 64;

/// Returns about how many bytes a frame takes.
pub(super) fn frame_bytes(frame: &Frame) -> usize {
    match frame {
        Frame::Bytes { data, .. } => data.len(),
        Frame::Rows(batch) => batch.byte_size(),
        Frame::Generate { count, row_bytes, .. } => count * row_bytes.max(&ROW_BYTES),
        Frame::Cleared => 0,
    }
}

/// A reader that reads ahead.
pub(super) struct SourceTask {
    /// The nodes of its tables, in the order in which it knows them.
    pub(super) sources: Vec<NodeId>,
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
                read = read(&self.sources, self.reader.as_mut(), &self.room, self.room_max),
                    if item.is_none() && !is_over =>
                {
                    let read = read?;
                    is_over = matches!(read.given, Given::End);
                    item = Some(read);
                }
            }
        }
    }
}

/// Reads a frame as soon as there is room for one. Cancel-safe: room is given back, and the reader is asked last.
async fn read(
    sources: &[NodeId],
    reader: &mut dyn SourceReader,
    room: &Arc<Semaphore>,
    room_max: usize,
) -> Result<SourceItem> {
    let mut taken = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(|error| Error::internal("a source's room was closed").caused_by(error))?;
    let (table, frame, position) = match reader.next().await? {
        SourceEvent::EndOfInput => return Ok(SourceItem { reader: sources[0], given: Given::End }),
        SourceEvent::Boundary => {
            return Ok(SourceItem { reader: sources[0], given: Given::Boundary(reader.position()) });
        }
        SourceEvent::Frame(frame) => (0, frame, Some(reader.position())),
        SourceEvent::Part { table, frame } => (table, frame, None),
    };
    // The frame is there already: it takes what room is left, and the next one waits until it is gone.
    let wanted = (frame_bytes(&frame) / 1024).min(room_max) as u32;
    let more = wanted.min(room.available_permits() as u32);
    if let Ok(more) = Arc::clone(room).try_acquire_many_owned(more) {
        taken.merge(more);
    }
    let source = *sources.get(table).ok_or_else(|| Error::internal("a frame of a table that is not read"))?;
    let given = Given::Frame(ReadFrame { source, frame, position, room: taken });
    Ok(SourceItem { reader: sources[0], given })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_still_to_be_made_up_count_for_what_they_will_take() {
        let bytes = |row_bytes| frame_bytes(&Frame::Generate { first: 0, count: 10, row_bytes });
        assert_eq!((bytes(8), bytes(20_000)), (640, 200_000));
    }
}
