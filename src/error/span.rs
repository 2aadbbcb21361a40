//! Places in a text: byte offsets, and the line and column that a person counts.

/// A half-open range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Span {
    /// Creates a span.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the span moved towards the end by `offset` bytes.
    #[must_use]
    pub const fn shifted(self, offset: usize) -> Span {
        Span { start: self.start + offset, end: self.end + offset }
    }

    /// Returns the smallest span that holds both.
    #[must_use]
    pub fn union(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A named text, usually a script; errors are shown in it.
#[derive(Debug, Clone)]
pub struct SourceText {
    /// The file name, `<stdin>` or `<shell>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl SourceText {
    /// Creates a named text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceText {
        SourceText { name: name.into(), text: text.into() }
    }

    /// Returns line and column of a byte offset, both counted from 1; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..floor_boundary(&self.text, offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Returns the line that holds a byte offset, without its line break, and the offset of the line's first byte.
    pub fn line(&self, offset: usize) -> (&str, usize) {
        let offset = floor_boundary(&self.text, offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |newline| offset + newline);
        (self.text[start..end].trim_end_matches('\r'), start)
    }
}

/// Returns the nearest offset that is not behind `offset`, inside the text and between two characters.
fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let source = SourceText::new("x.sql", "a\nüb c\r\nd");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(4), (2, 2));
        assert_eq!(source.line(5), ("üb c", 2));
        assert_eq!(source.line_column(1000), (3, 2));
    }
}
