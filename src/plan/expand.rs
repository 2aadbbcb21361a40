//! Flink's expanded text: every name in full and in back-ticks, FROM and its fellows on lines of their own.
//!
//! The binder notes what each name in the text stands for; here the text is written again token by token with those notes in
//! place of what was there. What nobody noted is kept as written, so an expanded text always parses again.

use std::collections::BTreeMap;

use crate::error::{Result, Span};
use crate::sql;

/// What the binder found out about pieces of a text.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    /// By first byte: the end of the piece and what stands there instead.
    pieces: BTreeMap<usize, (usize, String)>,
}

impl Expansion {
    /// Notes what a piece of the text stands for. The first note of a place holds: a piece may be bound more than once.
    pub(crate) fn note(&mut self, span: Span, text: String) {
        self.pieces.entry(span.start).or_insert((span.end, text));
    }

    /// Writes the part of a statement's text again.
    ///
    /// # Errors
    /// The text cannot be cut into tokens, which it was before.
    pub(crate) fn apply(&self, text: &str, part: Span) -> Result<String> {
        let mut out = String::new();
        let mut covered = 0;
        let mut depth = 0_usize;
        let mut previous = String::new();
        for token in sql::token_spans(text)? {
            if token.start < part.start || token.end > part.end || token.start < covered {
                continue;
            }
            let piece = match self.pieces.get(&token.start) {
                Some((end, replacement)) => {
                    covered = *end;
                    replacement.as_str()
                }
                None => &text[token.start..token.end],
            };
            out.push_str(separator(&previous, piece, depth));
            out.push_str(piece);
            match piece {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            piece.clone_into(&mut previous);
        }
        Ok(out)
    }
}

/// Clauses that start a line.
const LINE_STARTS: &[&str] = &[
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "LIMIT",
    "INNER",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "JOIN",
];

/// Words behind which JOIN stays on the line.
const JOIN_PREFIXES: &[&str] = &["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "NATURAL"];

/// Returns what stands between two pieces, inside of so many brackets.
fn separator(previous: &str, next: &str, depth: usize) -> &'static str {
    if previous.is_empty() || matches!(next, ")" | "," | "." | "]") || matches!(previous, "(" | "." | "[") {
        return "";
    }
    let (before, word) = (previous.to_ascii_uppercase(), next.to_ascii_uppercase());
    if matches!(next, "(" | "[") && is_call(&before) {
        return "";
    }
    let continues = (word == "JOIN" && JOIN_PREFIXES.contains(&before.as_str()))
        // LEFT and RIGHT are functions too, where an expression starts.
        || matches!(before.as_str(), "SELECT" | "," | "=" | "AND" | "OR" | "WHERE" | "ON" | "BY");
    if depth == 0 && !continues && LINE_STARTS.contains(&word.as_str()) { "\n" } else { " " }
}

/// Returns whether a bracket behind the piece belongs to it.
fn is_call(before: &str) -> bool {
    const APART: &[&str] = &[
        "IN", "AS", "AND", "OR", "NOT", "EXISTS", "FROM", "WHERE", "ON", "VALUES", "SELECT", "BY", "UNION",
        "ALL", "JOIN", "THEN", "ELSE", "WHEN", "OVER", "USING",
    ];
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '`' || c == ')' || c == ']')
        && !APART.contains(&before)
}

/// Puts a name in back-ticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Puts several names in back-ticks, with dots between them.
pub(crate) fn quoted_path<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    parts.into_iter().map(|part| quoted(part)).collect::<Vec<_>>().join(".")
}
