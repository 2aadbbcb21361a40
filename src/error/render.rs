//! The only code that turns an error into text: Flink's reason line, then place, caret, hint and causes.

use super::redact::{REDACTED, redact_message, secret_spans};
use super::{Error, ErrorKind, SourceText, Span};

/// An error ready for the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedError {
    /// Class and message as Flink prints them, possibly several lines.
    pub reason: String,
    /// Place, source line, caret, hint and causes; empty when there is nothing to add.
    pub details: String,
}

/// Renders an error. `source` is the text that the error's place points into; `verbose` adds every cause.
pub fn render(error: &Error, source: Option<&SourceText>, verbose: bool) -> RenderedError {
    let shown = |text: String| match source {
        Some(source) => redact_message(text, &source.text, error.span()),
        None => text,
    };
    let mut details = Vec::new();
    if let (Some(span), Some(source)) = (error.span(), source) {
        details.extend(excerpt(source, span.start, span.end));
    }
    if error.kind() == ErrorKind::Internal {
        details.push(
            "hint: This is a bug in Lakehead. Please report it with the statement that led here.".to_owned(),
        );
    }
    if let Some(hint) = error.hint_text() {
        details.push(shown(format!("hint: {hint}")));
    }
    let mut cause = std::error::Error::source(error);
    let mut last = error.message().to_owned();
    while let Some(current) = cause {
        let text = current.to_string();
        if text != last && (verbose || !last.contains(&text)) {
            details.push(shown(format!("caused by: {text}")));
        }
        last = text;
        cause = current.source();
    }
    RenderedError {
        reason: shown(format!("{}: {}", error.flink_class().name(), error.message())),
        details: details.join("\n"),
    }
}

/// The longest piece of a source line that is shown; a statement may well be one line of megabytes.
const EXCERPT_CHARS_MAX: usize = 160;

/// Shows a place as `--> file:line:column`, the line with its secrets starred out, and a caret below it.
fn excerpt(source: &SourceText, start: usize, end: usize) -> Vec<String> {
    let (number, column) = source.line_column(start);
    let (line, line_start) = source.line(start);
    let secrets = secret_spans(&source.text);
    let cells = visible_cells(line, line_start, &secrets);
    let place = cells.iter().rposition(|(offset, _)| *offset <= start).unwrap_or(0);
    let end = end.clamp(start + 1, (line_start + line.len()).max(start + 1));
    let place = if start >= line_start + line.len() { cells.len() } else { place };
    let first = place.saturating_sub(EXCERPT_CHARS_MAX / 2);
    let width = |cells: &[(usize, char)]| -> usize { cells.iter().map(|(_, c)| display_width(*c)).sum() };
    let shown = &cells[first..cells.len().min(first + EXCERPT_CHARS_MAX)];
    let marked: Vec<(usize, char)> =
        shown.iter().skip(place - first).take_while(|(offset, _)| *offset < end).copied().collect();
    let gutter = " ".repeat(number.to_string().len());
    let text: String = shown.iter().map(|(_, character)| *character).collect();
    vec![
        format!("{gutter}--> {}:{number}:{column}", source.name),
        format!("{gutter} |"),
        format!("{number} | {}", text.trim_end()),
        format!(
            "{gutter} | {}{}",
            " ".repeat(width(&cells[first..place])),
            "^".repeat(width(&marked).max(1))
        ),
    ]
}

/// Returns the characters of a line as they are shown, each with the byte offset that it stands for.
fn visible_cells(line: &str, line_start: usize, secrets: &[Span]) -> Vec<(usize, char)> {
    let mut cells = Vec::with_capacity(line.len().min(4096));
    let mut starred: Option<usize> = None;
    for (index, character) in line.char_indices() {
        let offset = line_start + index;
        let secret = secrets.iter().position(|span| span.start <= offset && offset < span.end);
        match secret {
            Some(secret) if starred == Some(secret) => {}
            Some(_) => cells.extend(REDACTED.chars().map(|star| (offset, star))),
            None => cells.push((offset, if character == '\t' { ' ' } else { character })),
        }
        starred = secret;
    }
    cells
}

/// Returns how many terminal columns a character takes.
fn display_width(character: char) -> usize {
    unicode_width::UnicodeWidthChar::width(character).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_the_line_is_starred_and_the_caret_still_fits() {
        let text = "CREATE TABLE t (a INT) WITH ('password' = 'hunter2', 'nope' = 'x');";
        let start = text.find("'nope'").unwrap();
        let rendered = render(
            &Error::validation("m").at(Span::new(start, start + 6)),
            Some(&SourceText::new("a.sql", text)),
            false,
        );
        assert!(!rendered.details.contains("hunter2"));
        let lines: Vec<&str> = rendered.details.lines().collect();
        assert_eq!(lines[2].find("'nope'"), lines[3].find("^^^^^^"));
    }

    #[test]
    fn caret_stands_below_the_marked_text() {
        let source = SourceText::new("a.sql", "SELECT 1;\nSELECT 'ü' nope;\n");
        let start = source.text.find("nope").unwrap();
        let error = Error::validation("Column 'nope' not found in any table")
            .at(Span::new(start, start + 4))
            .hint("Did you mean 'note'?");
        let rendered = render(&error, Some(&source), false);
        assert_eq!(
            rendered.reason,
            "org.apache.flink.table.api.ValidationException: Column 'nope' not found in any table"
        );
        assert_eq!(
            rendered.details,
            " --> a.sql:2:12\n  |\n2 | SELECT 'ü' nope;\n  |            ^^^^\nhint: Did you mean 'note'?"
        );
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_place() {
        let text = format!("SELECT {}x", "1 + ".repeat(10_000));
        let start = text.len() - 1;
        let source = SourceText::new("a.sql", text);
        let rendered = render(&Error::validation("m").at(Span::new(start, start + 1)), Some(&source), false);
        assert!(rendered.details.lines().all(|line| line.chars().count() < 200));
    }
}
