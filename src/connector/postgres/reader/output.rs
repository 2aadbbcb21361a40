//! The way of rows and positions to the job.

use tokio::sync::mpsc;

use super::position::{ReaderPosition, WrittenPosition};
use crate::changelog::ChangelogBatch;
use crate::connector::{Frame, SourcePosition};
use crate::error::{Error, ErrorKind, Result};

/// What the job gets.
#[derive(Debug)]
pub(super) enum Event {
    /// Rows of a declared table, or that it has none any more.
    Rows(usize, Frame),
    /// All that came so far is whole.
    Boundary(SourcePosition),
}

/// Hands rows on.
#[derive(Debug)]
pub(super) struct Output {
    events: mpsc::Sender<Event>,
    /// Whether something has gone out behind the last boundary.
    has_open_rows: bool,
    /// Whether anything has ever gone out.
    has_begun: bool,
    /// Whether a position has gone out, which a checkpoint may have.
    has_told_position: bool,
    /// Whether boundaries are kept back, because all that the tables hold is to go out as one.
    is_one_piece: bool,
    written: WrittenPosition,
}

impl Output {
    pub(super) fn new(events: mpsc::Sender<Event>, is_one_piece: bool) -> Output {
        Output {
            events,
            has_open_rows: false,
            has_begun: false,
            has_told_position: false,
            is_one_piece,
            written: WrittenPosition::default(),
        }
    }

    /// Says that all that the tables hold has gone out.
    pub(super) fn end_piece(&mut self) {
        self.is_one_piece = false;
    }

    /// Hands rows of a declared table on.
    ///
    /// # Errors
    /// Nobody takes them any more.
    pub(super) async fn rows(&mut self, table: usize, rows: ChangelogBatch) -> Result<()> {
        if rows.row_count() == 0 {
            return Ok(());
        }
        (self.has_open_rows, self.has_begun) = (true, true);
        self.events.send(Event::Rows(table, Frame::Rows(rows))).await.map_err(|_| gone())
    }

    /// Says that a declared table has been emptied: its rows so far are gone.
    ///
    /// # Errors
    /// Nobody listens any more.
    pub(super) async fn cleared(&mut self, table: usize) -> Result<()> {
        (self.has_open_rows, self.has_begun) = (true, true);
        self.events.send(Event::Rows(table, Frame::Cleared)).await.map_err(|_| gone())
    }

    /// Says that everything so far is whole.
    ///
    /// # Errors
    /// Nobody listens any more.
    pub(super) async fn boundary(&mut self, position: &ReaderPosition) -> Result<()> {
        if self.is_one_piece {
            return Ok(());
        }
        (self.has_open_rows, self.has_begun, self.has_told_position) = (false, true, true);
        self.events.send(Event::Boundary(self.written.write(position)?)).await.map_err(|_| gone())
    }

    /// Returns whether rows have gone out behind the last boundary.
    pub(super) fn has_open_rows(&self) -> bool {
        self.has_open_rows
    }

    /// Returns whether a position has gone out, which a checkpoint may have.
    pub(super) fn has_told_position(&self) -> bool {
        self.has_told_position
    }

    /// Returns whether anything has ever gone out.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Interrupted, "the job does not read any more")
}
