//! Frames that were read and wait for the next epoch, and how far the epochs so far have come in each source.
//!
//! A reader may give something whole, such as a transaction, in several parts, of several tables. Epochs may end within, but then no
//! checkpoint follows them; so an epoch ends where everything is whole if it can. An epoch also ends where a table of which it has rows
//! is cleared: who remembers the rows forgets them as the next one begins, on every worker, and none of them need know the order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::epoch::SourceFrame;
use super::source_task::{Given, ReadFrame, SourceItem, frame_bytes};
use crate::connector::{Frame, SourcePosition};
use crate::plan::NodeId;

/// Frames on their way into epochs. A reader is known by the node of its first table.
#[derive(Debug)]
pub(super) struct Intake {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    rows: usize,
    limits: EpochLimits,
    /// When the first of the waiting frames came.
    since: Option<Instant>,
    /// The nodes of each reader's tables.
    tables: BTreeMap<NodeId, Vec<NodeId>>,
    /// Readers that have not ended.
    open: BTreeSet<NodeId>,
    /// Readers that have not said anything yet.
    silent: BTreeSet<NodeId>,
    /// Readers of which epochs have taken a part, and not all of what it belongs to.
    within: BTreeSet<NodeId>,
    /// Readers of which the same can be said once all that waits is taken.
    within_at_end: BTreeSet<NodeId>,
    /// Behind what epochs have taken.
    positions: BTreeMap<NodeId, SourcePosition>,
    /// Whether the last epoch has taken only a piece of the first waiting frame.
    has_cut_frame: bool,
    /// What was given up last. Nothing else is taken before it is clear whether the job ends.
    tail: VecDeque<Waiting>,
}

/// How much an epoch may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpochLimits {
    /// Bytes of frames.
    pub(super) bytes: usize,
    /// Rows of frames that know how many they have.
    pub(super) rows: usize,
}

/// A frame, or the end of what came in parts, where there is none.
#[derive(Debug)]
struct Waiting {
    reader: NodeId,
    frame: Option<SourceFrame>,
    /// None within what comes in parts.
    position: Option<SourcePosition>,
    /// What the frame takes, counted once.
    bytes: usize,
    /// Given back when the frame goes into an epoch; None for rows that no source has read.
    room: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    fn new(
        reader: NodeId,
        frame: Option<SourceFrame>,
        position: Option<SourcePosition>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Waiting {
        let bytes = frame.as_ref().map_or(0, |frame| frame_bytes(&frame.frame));
        Waiting { reader, frame, position, bytes, room }
    }

    fn rows(&self) -> usize {
        self.frame.as_ref().map_or(0, |frame| known_rows(&frame.frame))
    }
}

/// A reader that has been opened.
#[derive(Debug)]
pub(super) struct OpenReader {
    /// The nodes of its tables.
    pub(super) tables: Vec<NodeId>,
    /// Where it begins.
    pub(super) position: SourcePosition,
    /// Whether a checkpoint may come before the first event.
    pub(super) begins_whole: bool,
}

impl Intake {
    /// Creates the intake of readers.
    pub(super) fn new(readers: Vec<OpenReader>, limits: EpochLimits) -> Intake {
        let first = |reader: &OpenReader| reader.tables[0];
        let open: BTreeSet<NodeId> = readers.iter().map(first).collect();
        let positions = readers.iter().map(|reader| (first(reader), reader.position.clone())).collect();
        let within: BTreeSet<NodeId> =
            readers.iter().filter(|reader| !reader.begins_whole).map(first).collect();
        Intake {
            waiting: VecDeque::new(),
            bytes: 0,
            rows: 0,
            limits,
            since: None,
            tables: readers.into_iter().map(|reader| (reader.tables[0], reader.tables)).collect(),
            silent: open.clone(),
            open,
            within_at_end: within.clone(),
            within,
            positions,
            has_cut_frame: false,
            tail: VecDeque::new(),
        }
    }

    /// Takes what a reader has given.
    pub(super) fn take(&mut self, item: SourceItem) {
        let SourceItem { reader, given } = item;
        self.silent.remove(&reader);
        if !self.open.contains(&reader) {
            return;
        }
        match given {
            Given::End => {
                self.open.remove(&reader);
            }
            Given::Boundary(position) if self.waiting.is_empty() => {
                self.within_at_end.remove(&reader);
                self.pass(reader, Some(position));
            }
            Given::Boundary(position) => {
                self.within_at_end.remove(&reader);
                match self.trailing_boundary(reader) {
                    // Behind a sink that takes nothing there would be ever more of them.
                    Some(earlier) => earlier.position = Some(position),
                    None => self.waiting.push_back(Waiting::new(reader, None, Some(position), None)),
                }
            }
            Given::Frame(ReadFrame { source, frame, position, room }) => {
                self.push(Waiting::new(reader, Some(SourceFrame { source, frame }), position, Some(room)));
            }
        }
    }

    /// Adds rows that no source reads, with the position behind them.
    pub(super) fn add(&mut self, node: NodeId, frame: Frame, position: SourcePosition) {
        let frame = Some(SourceFrame { source: node, frame });
        self.push(Waiting::new(node, frame, Some(position), None));
    }

    /// Returns the boundary that a reader has given last, if no frame of anybody waits behind it.
    fn trailing_boundary(&mut self, reader: NodeId) -> Option<&mut Waiting> {
        let mut trailing = self.waiting.iter_mut().rev().take_while(|waiting| waiting.frame.is_none());
        trailing.find(|waiting| waiting.reader == reader)
    }

    fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.rows += waiting.rows();
        self.since.get_or_insert_with(Instant::now);
        match waiting.position {
            Some(_) => self.within_at_end.remove(&waiting.reader),
            None => self.within_at_end.insert(waiting.reader),
        };
        self.waiting.push_back(waiting);
    }

    /// Gives up what is not whole at the end of what waits, if that is possible: it is read again when the job goes on.
    pub(super) fn give_up_tail(&mut self) {
        let (mut within, mut whole) = (self.within.clone(), self.is_whole().then_some(0));
        for (at, waiting) in self.waiting.iter().enumerate() {
            match waiting.position {
                Some(_) => within.remove(&waiting.reader),
                None => within.insert(waiting.reader),
            };
            if within.is_empty() {
                whole = Some(at + 1);
            }
        }
        if let Some(whole) = whole {
            self.tail = self.waiting.split_off(whole);
            self.within_at_end.clear();
            self.count_waiting();
        }
    }

    /// Takes back what was given up: the job goes on after all.
    pub(super) fn take_tail_back(&mut self) {
        for waiting in std::mem::take(&mut self.tail) {
            self.push(waiting);
        }
    }

    fn count_waiting(&mut self) {
        self.bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        self.rows = self.waiting.iter().map(Waiting::rows).sum();
    }

    /// Notes that rows which no source reads came before a restart.
    pub(super) fn resume(&mut self, node: NodeId, position: SourcePosition) {
        self.positions.insert(node, position);
    }

    /// Leaves a source alone from now on; returns whether its reader is to stop, because nobody needs any of its tables. The rest of a
    /// frame that an epoch has begun still comes.
    pub(super) fn close(&mut self, source: NodeId) -> bool {
        // The other tables of a reader may still be needed.
        let is_only_table = self.tables.get(&source).is_some_and(|tables| tables.len() == 1);
        if !is_only_table || !self.open.remove(&source) {
            return false;
        }
        let begun = if self.has_cut_frame { self.waiting.pop_front() } else { None };
        self.waiting.retain(|waiting| waiting.reader != source);
        self.waiting.extend(begun);
        self.waiting.rotate_right(usize::from(self.has_cut_frame));
        self.within.remove(&source);
        self.within_at_end.remove(&source);
        self.count_waiting();
        true
    }

    /// Puts waiting frames into the order of their readers in the graph.
    pub(super) fn sort_by_reader(&mut self) {
        self.waiting.make_contiguous().sort_by_key(|waiting| waiting.reader);
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

    /// Returns whether what epochs have taken is whole, so that positions tell of all of it.
    pub(super) fn is_whole(&self) -> bool {
        !self.has_cut_frame && self.within.is_empty()
    }

    /// Returns whether everything is whole once all that waits is taken.
    pub(super) fn is_whole_at_end(&self) -> bool {
        self.within_at_end.is_empty()
    }

    /// Returns how far epochs have come in each source.
    pub(super) fn positions(&self) -> BTreeMap<NodeId, SourcePosition> {
        let mut positions = self.positions.clone();
        for (reader, tables) in &self.tables {
            if let Some(position) = self.positions.get(reader) {
                positions.extend(tables.iter().map(|table| (*table, position.clone())));
            }
        }
        positions
    }

    /// Takes the frames of the next epoch: at least one if there is any, no more than the limits say.
    pub(super) fn next_frames(&mut self) -> Vec<SourceFrame> {
        let mut frames = Vec::new();
        let count = self.next_count();
        for waiting in self.waiting.drain(..count).collect::<Vec<_>>() {
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
            self.rows = self.rows.saturating_sub(waiting.rows());
            let Waiting { reader, frame, position, room, .. } = waiting;
            drop(room);
            self.has_cut_frame = false;
            self.pass(reader, position);
            frames.extend(frame);
        }
        if count == 0
            && let Some(waiting) = self.waiting.front_mut()
            && let Some(SourceFrame { source, frame }) = waiting.frame.take()
        {
            // Only a frame that is too large by itself is cut: where every epoch ended within one, no checkpoint would be possible.
            let (taken, rest) = split(frame, self.limits.rows);
            let bytes = frame_bytes(&rest);
            self.bytes = self.bytes.saturating_sub(waiting.bytes) + bytes;
            waiting.bytes = bytes;
            waiting.frame = Some(SourceFrame { source, frame: rest });
            self.rows = self.rows.saturating_sub(known_rows(&taken));
            self.has_cut_frame = true;
            frames.push(SourceFrame { source, frame: taken });
        }
        self.since = (!self.waiting.is_empty()).then(Instant::now);
        frames
    }

    /// Notes that an epoch has taken something.
    fn pass(&mut self, reader: NodeId, position: Option<SourcePosition>) {
        match position {
            Some(position) => {
                self.positions.insert(reader, position);
                self.within.remove(&reader);
            }
            None => {
                self.within.insert(reader);
            }
        }
    }

    /// Returns how many of those that wait the next epoch takes whole: as many as fit, up to where all is whole if there is such a place.
    /// 0 if the first frame has too many rows.
    fn next_count(&self) -> usize {
        let (mut bytes, mut rows, mut whole) = (0, 0, 0);
        let mut within = self.within.clone();
        let mut have_rows = BTreeSet::new();
        for (at, waiting) in self.waiting.iter().enumerate() {
            bytes += waiting.bytes;
            rows += waiting.rows();
            let is_too_much = rows > self.limits.rows || (bytes > self.limits.bytes && at > 0);
            if let Some(SourceFrame { source, frame }) = &waiting.frame {
                let is_cleared = matches!(frame, Frame::Cleared);
                if is_too_much || (is_cleared && have_rows.contains(source)) {
                    return if whole > 0 { whole } else { at };
                }
                if !is_cleared {
                    have_rows.insert(*source);
                }
            }
            match waiting.position {
                Some(_) => within.remove(&waiting.reader),
                None => within.insert(waiting.reader),
            };
            if within.is_empty() {
                whole = at + 1;
            }
        }
        self.waiting.len()
    }
}

/// Returns the rows of a frame that knows them.
fn known_rows(frame: &Frame) -> usize {
    match frame {
        Frame::Bytes { .. } | Frame::Cleared => 0,
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
        Frame::Generate { first, count, row_bytes } => (
            Frame::Generate { first, count: rows, row_bytes },
            Frame::Generate { first: first + rows as u64, count: count - rows, row_bytes },
        ),
        frame @ (Frame::Bytes { .. } | Frame::Cleared) => (frame.clone(), frame),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{RecordBatch, StringArray};
    use arrow::datatypes::DataType;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::changelog::ChangelogBatch;
    use crate::runtime::operator::testing as text;

    fn reader(tables: &[NodeId], position: SourcePosition) -> OpenReader {
        OpenReader { tables: tables.to_vec(), position, begins_whole: true }
    }

    fn position(number: usize) -> SourcePosition {
        SourcePosition::from([("0".to_owned(), number.to_string())])
    }

    fn part(source: NodeId, count: usize) -> SourceItem {
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let frame = Frame::Generate { first: 0, count, row_bytes: 1 };
        SourceItem { reader: 1, given: Given::Frame(ReadFrame { source, frame, position: None, room }) }
    }

    fn boundary(number: usize) -> SourceItem {
        SourceItem { reader: 1, given: Given::Boundary(position(number)) }
    }

    #[test]
    fn an_epoch_ends_where_all_parts_have_come_if_it_can() {
        let mut intake =
            Intake::new(vec![reader(&[1, 2], position(0))], EpochLimits { bytes: usize::MAX, rows: 5 });
        let epoch = |intake: &mut Intake| {
            let rows: Vec<usize> =
                intake.next_frames().iter().map(|frame| known_rows(&frame.frame)).collect();
            let positions = intake.positions();
            assert_eq!(positions[&1], positions[&2]);
            (rows, intake.is_whole(), positions[&1]["0"].clone())
        };
        for item in [part(1, 2), part(2, 1), boundary(1), part(1, 1), part(2, 3), boundary(2)] {
            intake.take(item);
        }
        assert_eq!(epoch(&mut intake), (vec![2, 1], true, "1".to_owned()));
        assert_eq!(epoch(&mut intake), (vec![1, 3], true, "2".to_owned()));
        // A transaction that is larger than an epoch.
        for item in [part(1, 4), part(2, 4), part(2, 4)] {
            intake.take(item);
        }
        assert_eq!(epoch(&mut intake), (vec![4], false, "2".to_owned()));
        assert_eq!(epoch(&mut intake), (vec![4], false, "2".to_owned()));
        assert_eq!(epoch(&mut intake), (vec![4], false, "2".to_owned()));
        intake.take(boundary(3));
        assert!(intake.is_empty() && intake.is_whole());
        assert_eq!(intake.positions()[&2], position(3));
        // Nothing but a position moves.
        intake.take(boundary(4));
        assert!(intake.is_empty() && intake.is_whole());
        assert_eq!(intake.positions()[&2], position(4));
        assert!(!intake.close(2));
    }

    #[test]
    fn what_is_not_whole_is_given_up_unless_an_epoch_has_taken_a_part_of_it() {
        let limits = EpochLimits { bytes: usize::MAX, rows: 5 };
        let mut intake = Intake::new(vec![reader(&[1, 2], position(0))], limits);
        for item in [part(1, 2), boundary(1), part(1, 1), part(2, 3)] {
            intake.take(item);
        }
        assert!(!intake.is_whole_at_end());
        intake.give_up_tail();
        assert!(intake.is_whole_at_end());
        assert_eq!(intake.next_frames().len(), 1);
        assert!(intake.is_empty() && intake.is_whole());
        intake.take(part(1, 4));
        intake.next_frames();
        intake.take(part(1, 4));
        intake.give_up_tail();
        assert!(!intake.is_whole_at_end());
        intake.take(boundary(2));
        assert!(intake.is_whole_at_end() && !intake.is_whole());
        intake.next_frames();
        assert!(intake.is_whole());
        // The job goes on after all.
        intake.take(part(1, 2));
        intake.give_up_tail();
        assert!(intake.is_empty() && intake.is_whole_at_end());
        intake.take_tail_back();
        assert!(!intake.is_empty() && !intake.is_whole_at_end());
        assert_eq!(intake.next_frames().len(), 1);
    }

    #[test]
    fn a_boundary_takes_the_place_of_the_one_before() {
        let limits = EpochLimits { bytes: usize::MAX, rows: 5 };
        let mut intake = Intake::new(vec![reader(&[1, 2], position(0))], limits);
        for item in [part(1, 1), boundary(1), boundary(2), boundary(3), part(2, 1), boundary(4), boundary(5)]
        {
            intake.take(item);
        }
        assert_eq!(intake.waiting.len(), 4);
        intake.next_frames();
        assert!(intake.is_empty() && intake.is_whole());
        assert_eq!(intake.positions()[&1], position(5));
        // A frame that belongs to what follows stays behind what came before.
        for item in [part(1, 5), boundary(6), part(1, 5), boundary(7)] {
            intake.take(item);
        }
        intake.next_frames();
        assert_eq!(intake.positions()[&1], position(6));
    }

    #[test]
    fn an_epoch_takes_no_more_bytes_than_its_rows_may_hold() {
        let limits = EpochLimits { bytes: 1 << 20, rows: usize::MAX };
        let mut intake = Intake::new(vec![reader(&[1], position(0))], limits);
        let schema = text::schema(&[("t", DataType::Utf8)]);
        let rows = RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec!["x".repeat(400_000)]))]);
        let rows = ChangelogBatch::inserts(rows.unwrap());
        for number in 1..=4 {
            intake.add(1, Frame::Rows(rows.clone()), position(number));
        }
        assert!(intake.is_full());
        assert_eq!(intake.next_frames().len(), 2);
        assert!(!intake.is_full());
        assert_eq!(intake.next_frames().len(), 2);
        assert_eq!((intake.bytes, intake.rows), (0, 0));
    }

    #[test]
    fn no_epoch_has_rows_of_a_table_before_the_table_is_cleared() {
        let limits = EpochLimits { bytes: usize::MAX, rows: 5 };
        let mut intake = Intake::new(vec![reader(&[1, 2], position(0))], limits);
        let cleared = |source: NodeId| {
            let mut item = part(source, 0);
            if let Given::Frame(read) = &mut item.given {
                read.frame = Frame::Cleared;
            }
            item
        };
        for item in [
            part(1, 1),
            boundary(1),
            part(1, 2),
            cleared(2),
            cleared(1),
            part(1, 1),
            part(2, 1),
            boundary(2),
            // More than an epoch takes, and emptied twice.
            part(1, 7),
            cleared(1),
            cleared(1),
            part(1, 1),
            cleared(1),
            boundary(3),
        ] {
            intake.take(item);
        }
        let mut epochs = Vec::new();
        while !intake.is_empty() {
            let text = |frame: &SourceFrame| match &frame.frame {
                Frame::Cleared => format!("{} cleared", frame.source),
                frame_of_rows => format!("{} {}", frame.source, known_rows(frame_of_rows)),
            };
            let frames = intake.next_frames().iter().map(text).collect::<Vec<_>>().join(", ");
            epochs.push((frames, intake.is_whole()));
        }
        let expected = [
            ("1 1", true),
            ("1 2, 2 cleared", false),
            ("1 cleared, 1 1, 2 1", true),
            ("1 5", false),
            ("1 2", false),
            ("1 cleared, 1 cleared, 1 1", false),
            ("1 cleared", true),
        ];
        assert_eq!(epochs, expected.map(|(frames, is_whole)| (frames.to_owned(), is_whole)));
    }

    #[test]
    fn an_epoch_takes_whole_frames_or_a_piece_of_one() {
        let source: NodeId = 0;
        let mut intake = Intake::new(
            vec![reader(&[source], SourcePosition::new())],
            EpochLimits { bytes: usize::MAX, rows: 5 },
        );
        for (number, count) in [7, 2, 3, 4, 6, 1].into_iter().enumerate() {
            intake.add(source, Frame::Generate { first: 0, count, row_bytes: 1 }, position(number + 1));
        }
        let mut epochs = Vec::new();
        while !intake.is_empty() {
            let rows = intake.next_frames().iter().map(|frame| known_rows(&frame.frame)).collect::<Vec<_>>();
            epochs.push((rows, !intake.is_whole(), intake.positions()[&source].get("0").cloned()));
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
