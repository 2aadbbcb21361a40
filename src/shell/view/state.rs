//! What the user sees of the content and what keys do: page, selection, refresh interval, the opened row.

use std::sync::Arc;
use std::time::Duration;

use chrono::Local;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::ViewMode;
use super::content::{Content, RowText};
use super::screen;
use crate::changelog::RowKind;
use crate::session::ResultColumn;
use crate::shell::print::layout::streaming_width;

/// The refresh intervals that `+` and `-` go through, with their texts. The last one is never.
const INTERVALS: &[(&str, Option<u64>)] = &[
    ("Fastest", Some(0)),
    ("100 ms", Some(100)),
    ("500 ms", Some(500)),
    ("1 s", Some(1_000)),
    ("5 s", Some(5_000)),
    ("10 s", Some(10_000)),
    ("1 min", Some(60_000)),
    ("-", None),
];
const FASTEST: usize = 0;
const FASTEST_OF_TABLE: usize = 1;
const ONE_SECOND: usize = 3;

/// Lines of the frame around the rows: title, status, empty line, header; empty line and two lines of help.
const FRAME_LINES: u16 = 7;

/// How wide a column without a natural width is.
const COLUMN_WIDTH: usize = 30;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing beyond drawing again.
    None,
    /// Looking at the content again.
    Refresh,
    /// Leaving.
    Quit,
}

/// What is on top of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Overlay {
    None,
    /// One row, field by field, from the given line on.
    Row {
        row: RowText,
        scroll: u16,
    },
    /// The page number being typed.
    GotoPage(String),
}

/// A row on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownRow {
    pub(super) kind: Option<RowKind>,
    pub(super) text: RowText,
    /// Whether it is another one than before the last refresh.
    pub(super) is_new: bool,
}

/// A view between two keys.
#[derive(Debug)]
pub(super) struct ViewState {
    pub(super) mode: ViewMode,
    pub(super) columns: Arc<Vec<ResultColumn>>,
    pub(super) widths: Vec<usize>,
    pub(super) rows: Vec<ShownRow>,
    /// The page from 1 on; None follows the last one.
    pub(super) page: Option<usize>,
    pub(super) page_count: usize,
    pub(super) selected: Option<usize>,
    /// Columns of the terminal that are scrolled out at the left.
    pub(super) scroll: usize,
    pub(super) is_finished: bool,
    pub(super) updated: Option<String>,
    pub(super) overlay: Overlay,
    interval: usize,
    wants_refresh: bool,
}

impl ViewState {
    /// Creates the state of a view that has just been opened.
    pub(super) fn new(mode: ViewMode, columns: Arc<Vec<ResultColumn>>) -> ViewState {
        let widths = columns.iter().map(|c| streaming_width(&c.name, &c.data_type, COLUMN_WIDTH)).collect();
        ViewState {
            mode,
            columns,
            widths,
            rows: Vec::new(),
            page: None,
            page_count: 1,
            selected: None,
            scroll: 0,
            is_finished: false,
            updated: None,
            overlay: Overlay::None,
            interval: if mode == ViewMode::Table { ONE_SECOND } else { FASTEST },
            wants_refresh: false,
        }
    }

    /// Returns how often the content is looked at, or None for never.
    pub(super) fn refresh_interval(&self) -> Option<Duration> {
        INTERVALS[self.interval].1.map(Duration::from_millis)
    }

    /// Returns the text of the interval.
    pub(super) fn interval_text(&self) -> &'static str {
        INTERVALS[self.interval].0
    }

    /// Asks for another look at the content.
    pub(super) fn request_refresh(&mut self) {
        self.wants_refresh = true;
    }

    /// Returns whether another look was asked for, once.
    pub(super) fn take_refresh_request(&mut self) -> bool {
        std::mem::take(&mut self.wants_refresh)
    }

    /// Takes the rows of the current page out of the content.
    pub(super) fn refresh(&mut self, content: &mut Content, is_finished: bool, height: u16) {
        let page_size = usize::from(height.saturating_sub(FRAME_LINES)).max(1);
        self.page_count = content.len().div_ceil(page_size).max(1);
        let first = match self.mode {
            // The changelog has no pages: its end is shown.
            ViewMode::Changelog => content.len().saturating_sub(page_size),
            ViewMode::Table => (self.page.unwrap_or(self.page_count).min(self.page_count) - 1) * page_size,
        };
        let rows = content.page(first, page_size).into_iter().enumerate().map(|(index, (kind, text))| {
            let is_new = self.updated.is_some()
                && self.rows.get(index).is_none_or(|before| before.text != text || before.kind != kind);
            ShownRow { kind, text, is_new }
        });
        self.rows = rows.collect();
        self.selected =
            self.selected.filter(|_| !self.rows.is_empty()).map(|row| row.min(self.rows.len() - 1));
        self.is_finished = is_finished;
        self.updated = Some(Local::now().format("%H:%M:%S%.3f").to_string());
    }

    /// Draws the view.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        screen::draw(self, frame);
    }

    /// Does what a key says.
    pub(super) fn key(&mut self, key: KeyEvent) -> Action {
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        match &mut self.overlay {
            Overlay::None if is_interrupt => Action::Quit,
            Overlay::None => self.key_of_rows(key),
            Overlay::Row { scroll, .. } => {
                match key.code {
                    KeyCode::Down | KeyCode::Char('s' | 'S') => *scroll = scroll.saturating_add(1),
                    KeyCode::Up | KeyCode::Char('w' | 'W') => *scroll = scroll.saturating_sub(1),
                    KeyCode::Char('q' | 'Q') | KeyCode::Esc => self.overlay = Overlay::None,
                    _ if is_interrupt => self.overlay = Overlay::None,
                    _ => {}
                }
                Action::None
            }
            Overlay::GotoPage(_) if is_interrupt => {
                self.overlay = Overlay::None;
                Action::None
            }
            Overlay::GotoPage(digits) => {
                let digits = std::mem::take(digits);
                self.key_of_page_number(digits, key.code)
            }
        }
    }

    /// Does what a key says while the rows are shown.
    fn key_of_rows(&mut self, key: KeyEvent) -> Action {
        let is_table = self.mode == ViewMode::Table;
        match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Action::Quit,
            KeyCode::Char('r' | 'R') | KeyCode::F(5) => return Action::Refresh,
            KeyCode::Char('+') => self.interval = (self.interval + 1).min(INTERVALS.len() - 1),
            KeyCode::Char('-') => {
                let fastest = if is_table { FASTEST_OF_TABLE } else { FASTEST };
                self.interval = self.interval.saturating_sub(1).max(fastest);
            }
            KeyCode::Up | KeyCode::Char('w' | 'W') => self.select(-1),
            KeyCode::Down | KeyCode::Char('s' | 'S') => self.select(1),
            KeyCode::Left | KeyCode::Char('a' | 'A') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Right | KeyCode::Char('d' | 'D') => {
                let width: usize = self.widths.iter().map(|width| width + 1).sum();
                self.scroll = (self.scroll + 1).min(width);
            }
            KeyCode::Char('o' | 'O') | KeyCode::Enter => {
                if let Some(row) = self.selected.and_then(|index| self.rows.get(index)) {
                    self.overlay = Overlay::Row { row: Arc::clone(&row.text), scroll: 0 };
                }
            }
            KeyCode::Char('g' | 'G') if is_table => self.overlay = Overlay::GotoPage(String::new()),
            KeyCode::Char('n' | 'N') | KeyCode::PageDown if is_table => {
                return self.turn_to(self.number() + 1);
            }
            KeyCode::Char('p' | 'P') | KeyCode::PageUp if is_table => {
                return self.turn_to(self.number().max(2) - 1);
            }
            KeyCode::Char('l' | 'L') | KeyCode::End if is_table => {
                self.page = None;
                return Action::Refresh;
            }
            _ => {}
        }
        Action::None
    }

    /// Does what a key says while a page number is being typed.
    fn key_of_page_number(&mut self, mut digits: String, key: KeyCode) -> Action {
        match key {
            KeyCode::Esc => {
                self.overlay = Overlay::None;
                return Action::None;
            }
            KeyCode::Enter => {
                self.overlay = Overlay::None;
                return match digits.parse() {
                    Ok(page) if (1..=self.page_count).contains(&page) => self.turn_to(page),
                    _ => Action::None,
                };
            }
            KeyCode::Backspace => {
                digits.pop();
            }
            KeyCode::Char(digit) if digit.is_ascii_digit() && digits.len() < 9 => digits.push(digit),
            _ => {}
        }
        self.overlay = Overlay::GotoPage(digits);
        Action::None
    }

    /// Returns the number of the page that is shown.
    fn number(&self) -> usize {
        self.page.unwrap_or(self.page_count)
    }

    /// Turns to a page; the last one is not followed but stays.
    fn turn_to(&mut self, page: usize) -> Action {
        self.page = Some(page.clamp(1, self.page_count));
        self.selected = None;
        Action::Refresh
    }

    /// Moves the selection; the first step selects the first row.
    fn select(&mut self, step: isize) {
        if self.rows.is_empty() {
            return;
        }
        let moved = match self.selected {
            None => 0,
            Some(row) => row.saturating_add_signed(step),
        };
        self.selected = Some(moved.min(self.rows.len() - 1));
    }
}
