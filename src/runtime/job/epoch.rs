//! An epoch: the piece of input that all workers take together, and what they say of it afterwards.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

use super::writer_task::Prepared;
use crate::connector::{CheckpointId, Frame};
use crate::error::Result;
use crate::plan::NodeId;
use crate::runtime::operator::NO_WATERMARK;
use crate::state::StateChanges;

/// What all workers run together.
#[derive(Debug)]
pub(super) struct Epoch {
    /// The frames, in the order in which they came.
    pub(super) frames: Vec<SourceFrame>,
    /// The first frame that no worker has taken yet.
    next_frame: AtomicUsize,
    /// The wall clock when it was formed, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// The event time up to which all rows have come. No source tells it yet.
    pub(super) watermark: i64,
    /// The checkpoint for which sinks prepare afterwards.
    pub(super) checkpoint: Option<CheckpointId>,
    /// Whether the state is taken for it.
    pub(super) takes_state: bool,
    /// Whether the input has ended for good.
    pub(super) is_last: bool,
}

/// A frame and the source that it came from.
#[derive(Debug)]
pub(super) struct SourceFrame {
    /// The source's node.
    pub(super) source: NodeId,
    /// The frame.
    pub(super) frame: Frame,
}

impl SourceFrame {
    /// Returns whether it says that the source's table has been emptied. No frame of an epoch with rows of that source comes before.
    pub(super) fn is_cleared(&self) -> bool {
        matches!(self.frame, Frame::Cleared)
    }
}

impl Epoch {
    /// Creates an epoch of frames.
    pub(super) fn new(frames: Vec<SourceFrame>, time_ms: i64) -> Epoch {
        Epoch {
            frames,
            next_frame: AtomicUsize::new(0),
            time_ms,
            watermark: NO_WATERMARK,
            checkpoint: None,
            takes_state: false,
            is_last: false,
        }
    }

    /// Takes the next frame for a worker, with its number.
    pub(super) fn claim(&self) -> Option<(u32, &SourceFrame)> {
        let at = self.next_frame.fetch_add(1, Ordering::Relaxed);
        self.frames.get(at).map(|frame| (at as u32, frame))
    }
}

/// What a worker says when it is done with an epoch, or with loading state.
#[derive(Debug)]
pub(super) struct EpochReport {
    /// The worker.
    pub(super) worker: usize,
    /// How it went. An interrupted worker was stopped by another's failure.
    pub(super) outcome: Result<WorkerReport>,
}

/// What a worker has to tell.
#[derive(Debug, Default)]
pub(super) struct WorkerReport {
    /// What has been done since the last report, by node.
    pub(super) counters: Vec<NodeCounters>,
    /// The changes of state, by node, where they were to be taken.
    pub(super) changes: Vec<(NodeId, Vec<StateChanges>)>,
    /// What the sinks' writers prepare, by node, where they were to.
    pub(super) prepared: Vec<(NodeId, oneshot::Receiver<Prepared>)>,
    /// When the first operator wants an epoch, in milliseconds since 1970.
    pub(super) next_timer: Option<i64>,
    /// Sources whose rows nobody needs any more.
    pub(super) unneeded_sources: Vec<NodeId>,
}

/// What a node has done on a worker.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodeCounters {
    /// Rows in.
    pub(super) rows_in: u64,
    /// Rows out.
    pub(super) rows_out: u64,
    /// Bytes of frames in.
    pub(super) bytes_in: u64,
    /// Bytes of state now.
    pub(super) state_bytes: usize,
    /// Time at work.
    pub(super) busy: Duration,
    /// Time spent waiting for the reader.
    pub(super) back_pressured: Duration,
}
