//! Frames that were read and wait for the next epoch, and how far the epochs so far have come in each source.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::epoch::SourceFrame;
use super::source_task::{ReadFrame, SourceItem, frame_bytes};
use crate::connector::{Frame, SourcePosition};
use crate::plan::NodeId;

/// Frames on their way into epochs.
#[derive(Debug)]
pub(super) struct Intake {
    waiting: VecDeque<WaitingFrame>,
    bytes: usize,
    rows: usize,
    limits: EpochLimits,
    /// When the first of the waiting frames came.
    since: Option<Instant>,
    /// Sources that have not ended.
    open: BTreeSet<NodeId>,
    /// Sources that have not said anything yet.
    silent: BTreeSet<NodeId>,
    /// Behind the frames that epochs have taken.
    positions: BTreeMap<NodeId, SourcePosition>,
    /// Whether the last epoch has taken only a part of the first waiting frame.
    has_cut_frame: bool,
}

/// How much an epoch may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpochLimits {
    /// Bytes of frames.
    pub(super) bytes: usize,
    /// Rows of frames that know how many they have.
    pub(super) rows: usize,
}

#[derive(Debug)]
struct WaitingFrame {
    source: NodeId,
    frame: Frame,
    position: SourcePosition,
    /// Given back when the frame goes into an epoch; None for rows that no source has read.
    room: Option<OwnedSemaphorePermit>,
}

impl Intake {
    /// Creates the intake of sources, with the positions at which they begin.
    pub(super) fn new(positions: BTreeMap<NodeId, SourcePosition>, limits: EpochLimits) -> Intake {
        let open: BTreeSet<NodeId> = positions.keys().copied().collect();
        Intake {
            waiting: VecDeque::new(),
            bytes: 0,
            rows: 0,
            limits,
            since: None,
            silent: open.clone(),
            open,
            positions,
            has_cut_frame: false,
        }
    }

    /// Takes what a source has given.
    pub(super) fn take(&mut self, item: SourceItem) {
        let SourceItem { source, frame } = item;
        self.silent.remove(&source);
        if !self.open.contains(&source) {
            return;
        }
        let Some(ReadFrame { frame, position, room }) = frame else {
            self.open.remove(&source);
            return;
        };
        self.add(source, frame, position, Some(room));
    }

    /// Adds a frame with the position behind it.
    pub(super) fn add(
        &mut self,
        source: NodeId,
        frame: Frame,
        position: SourcePosition,
        room: Option<OwnedSemaphorePermit>,
    ) {
        self.bytes += frame_bytes(&frame);
        self.rows += known_rows(&frame);
        self.since.get_or_insert_with(Instant::now);
        self.waiting.push_back(WaitingFrame { source, frame, position, room });
    }

    /// Notes that rows which no source reads came before a restart.
    pub(super) fn resume(&mut self, node: NodeId, position: SourcePosition) {
        self.positions.insert(node, position);
    }

    /// Leaves a source alone from now on; returns whether it had not ended. The rest of a frame that an epoch has begun still comes.
    pub(super) fn close(&mut self, source: NodeId) -> bool {
        if !self.open.remove(&source) {
            return false;
        }
        let begun = if self.has_cut_frame { self.waiting.pop_front() } else { None };
        self.waiting.retain(|frame| frame.source != source);
        self.waiting.extend(begun);
        self.waiting.rotate_right(usize::from(self.has_cut_frame));
        self.bytes = self.waiting.iter().map(|waiting| frame_bytes(&waiting.frame)).sum();
        self.rows = self.waiting.iter().map(|waiting| known_rows(&waiting.frame)).sum();
        true
    }

    /// Puts waiting frames into the order of their sources in the graph.
    pub(super) fn sort_by_source(&mut self) {
        self.waiting.make_contiguous().sort_by_key(|frame| frame.source);
    }

    /// Returns whether there is enough for an epoch.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= self.limits.bytes || self.rows >= self.limits.rows
    }

    /// Returns whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns since when frames wait.
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Returns whether all sources have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns whether all sources have given something, or ended.
    pub(super) fn has_heard_all(&self) -> bool {
        self.silent.is_empty()
    }

    /// Returns whether the last epoch ended within a frame, of which no position tells.
    pub(super) fn has_cut_frame(&self) -> bool {
        self.has_cut_frame
    }

    /// Returns how far epochs have come in each source.
    pub(super) fn positions(&self) -> &BTreeMap<NodeId, SourcePosition> {
        &self.positions
    }

    /// Takes the frames of the next epoch: at least one if there is any, no more than the limits say.
    pub(super) fn next_frames(&mut self) -> Vec<SourceFrame> {
        let mut frames = Vec::new();
        let (mut bytes, mut rows) = (0, 0);
        while let Some(waiting) = self.waiting.pop_front() {
            let WaitingFrame { source, frame, position, room } = waiting;
            let left = self.limits.rows.saturating_sub(rows);
            let known = known_rows(&frame);
            // Only a frame that is too large by itself is cut: where every epoch ended within one, no checkpoint would be possible.
            let is_full = left == 0 || known > left || bytes + frame_bytes(&frame) > self.limits.bytes;
            if is_full && !frames.is_empty() {
                self.waiting.push_front(WaitingFrame { source, frame, position, room });
                break;
            }
            if known > left {
                let (taken, rest) = split(frame, left);
                self.count_out(&taken);
                frames.push(SourceFrame { source, frame: taken });
                self.waiting.push_front(WaitingFrame { source, frame: rest, position, room });
                self.has_cut_frame = true;
                self.since = Some(Instant::now());
                return frames;
            }
            bytes += frame_bytes(&frame);
            rows += known;
            self.count_out(&frame);
            self.positions.insert(source, position);
            self.has_cut_frame = false;
            frames.push(SourceFrame { source, frame });
        }
        self.since = (!self.waiting.is_empty()).then(Instant::now);
        frames
    }

    fn count_out(&mut self, frame: &Frame) {
        self.bytes = self.bytes.saturating_sub(frame_bytes(frame));
        self.rows = self.rows.saturating_sub(known_rows(frame));
    }
}

/// Returns the rows of a frame that knows them.
fn known_rows(frame: &Frame) -> usize {
    match frame {
        Frame::Bytes { .. } => 0,
        Frame::Rows(batch) => batch.row_count(),
        Frame::Generate { count, .. } => *count,
    }
}

/// Splits a frame that knows its rows, of which it has more than `rows`.
fn split(frame: Frame, rows: usize) -> (Frame, Frame) {
    match frame {
        Frame::Rows(batch) => {
            (Frame::Rows(batch.slice(0, rows)), Frame::Rows(batch.slice(rows, batch.row_count() - rows)))
        }
        Frame::Generate { first, count } => (
            Frame::Generate { first, count: rows },
            Frame::Generate { first: first + rows as u64, count: count - rows },
        ),
        frame @ Frame::Bytes { .. } => (frame.clone(), frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_whole_frames_or_a_piece_of_one() {
        let source: NodeId = 0;
        let start = BTreeMap::from([(source, SourcePosition::new())]);
        let mut intake = Intake::new(start, EpochLimits { bytes: usize::MAX, rows: 5 });
        for (number, count) in [7, 2, 3, 4, 6, 1].into_iter().enumerate() {
            let position = SourcePosition::from([("0".to_owned(), (number + 1).to_string())]);
            intake.add(source, Frame::Generate { first: 0, count }, position, None);
        }
        let mut epochs = Vec::new();
        while !intake.is_empty() {
            let rows = intake.next_frames().iter().map(|frame| known_rows(&frame.frame)).collect::<Vec<_>>();
            epochs.push((rows, intake.has_cut_frame(), intake.positions()[&source].get("0").cloned()));
        }
        let behind = |number: usize| Some(number.to_string());
        let expected = [
            (vec![5], true, None),
            (vec![2, 2], false, behind(2)),
            (vec![3], false, behind(3)),
            (vec![4], false, behind(4)),
            (vec![5], true, behind(4)),
            (vec![1, 1], false, behind(6)),
        ];
        assert_eq!(epochs, expected);
    }
}
