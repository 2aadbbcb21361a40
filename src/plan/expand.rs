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
    pub(crate) fn apply(&self, text: &str, part: Span) -> Result<String> {
        let mut out = String::new();
        let mut covered = 0;
        let mut previous: Option<String> = None;
        for token in sql::significant_tokens(text)? {
            let inside = part.start <= token.span.start && token.span.end <= part.end;
            if !inside || token.span.start < covered {
                continue;
            }
            let written = &text[token.span.start..token.span.end];
            let piece = match self.pieces.get(&token.span.start) {
                Some((end, replacement)) => {
                    covered = *end;
                    replacement.clone()
                }
                None if token.is_word => written.to_owned(),
                None => written.to_owned(),
            };
            out.push_str(separator(previous.as_deref(), &piece));
            out.push_str(&piece);
            previous = Some(piece);
        }
        Ok(out)
    }
}

/// Clauses that start a line.
const LINE_STARTS: &[&str] = &["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "UNION", "INTERSECT", "EXCEPT", "LIMIT", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "JOIN"];

/// Words behind which JOIN stays on the line.
const JOIN_PREFIXES: &[&str] = &["INNER", "LEFT", "RIGHT", "FULL", "CROSS", "OUTER", "NATURAL"];

/// Returns what stands between two pieces.
fn separator(previous: Option<&str>, next: &str) -> &'static str {
    let Some(previous) = previous else { return "" };
    let upper = next.to_ascii_uppercase();
    let before = previous.to_ascii_uppercase();
    if matches!(next, ")" | "," | "." | "]") || matches!(previous, "(" | "." | "[") {
        return "";
    }
    if (next == "(" || next == "[") && is_call(&before) {
        return "";
    }
    if upper == "JOIN" && JOIN_PREFIXES.contains(&before.as_str()) {
        return " ";
    }
    // EXTRACT(x FROM y) and LEFT(s, n) never come here: their keyword follows a bracket or is followed by one.
    if LINE_STARTS.contains(&upper.as_str()) { "\n" } else { " " }
}

/// Returns whether a bracket behind the piece belongs to it.
fn is_call(before: &str) -> bool {
    const APART: &[&str] = &["IN", "AS", "AND", "OR", "NOT", "EXISTS", "FROM", "WHERE", "ON", "VALUES", "SELECT", "BY", "UNION", "ALL", "JOIN", "THEN", "ELSE", "WHEN", "OVER", "USING"];
    before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '`' || c == ')' || c == ']') && !APART.contains(&before)
}

/// Puts a name in back-ticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Puts several names in back-ticks, with dots between them.
pub(crate) fn quoted_path<'a>(parts: impl IntoIterator<Item = &'a String>) -> String {
    parts.into_iter().map(|part| quoted(part)).collect::<Vec<_>>().join(".")
}
