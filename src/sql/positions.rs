//! From sqlparser's lines and columns to bytes of the statement, and from a place to the hint that stands there.

use sqlparser::tokenizer::{Location, Span as TokenSpan};

use super::Hint;
use crate::error::Span;

/// Line starts of a statement's text, and its hints in order.
#[derive(Debug, Clone, Default)]
pub struct Positions {
    text: String,
    line_starts: Vec<usize>,
    hints: Vec<Hint>,
}

impl Positions {
    /// Indexes a text.
    pub fn new(text: &str) -> Positions {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        Positions { text: text.to_owned(), line_starts, hints: Vec::new() }
    }

    /// Adds the hints that the tokenizer found.
    #[must_use]
    pub(super) fn with_hints(mut self, hints: Vec<Hint>) -> Positions {
        self.hints = hints;
        self
    }

    /// Returns the statement's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns all hints in the order of the text.
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Returns the hints that stand right behind a token which ends at byte `end`.
    pub fn hints_behind(&self, end: usize) -> impl Iterator<Item = &Hint> {
        // Hints are in the order of the text, and so are the tokens before them.
        let first = self.hints.partition_point(|hint| hint.span.previous_end < end);
        self.hints[first..].iter().take_while(move |hint| hint.span.previous_end == end)
    }

    /// Returns the byte offset of a location; columns count characters from 1. An empty location is the start.
    pub fn offset(&self, location: Location) -> usize {
        if location.line == 0 {
            return 0;
        }
        let start = self.line_starts.get(location.line as usize - 1).copied().unwrap_or(self.text.len());
        let rest = &self.text[start..];
        let column = (location.column as usize).saturating_sub(1);
        // Most statements are ASCII, and the widths of their characters need no counting.
        if rest.as_bytes().get(..column).is_some_and(<[u8]>::is_ascii) {
            return start + column;
        }
        rest.char_indices().nth(column).map_or(self.text.len(), |(index, _)| start + index)
    }

    /// Returns the bytes of a token span.
    pub fn span(&self, span: TokenSpan) -> Span {
        Span::new(self.offset(span.start), self.offset(span.end).max(self.offset(span.start)))
    }
}
