//! Pieces of a statement that is being typed, for colours and completion. It never fails: half a string is a string.
//!
//! The splitter of `sql` decides where statements end; this only says what each piece looks like.

use std::ops::Range;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A bare word: keyword, name or number.
    Word,
    /// `'…'`, perhaps unfinished.
    Text,
    /// `` `…` ``, perhaps unfinished.
    QuotedName,
    /// `-- …` or `/* … */`.
    Comment,
    /// `/*+ … */`.
    Hint,
    /// White space.
    Blank,
    /// Any other single character.
    Symbol,
}

/// A piece of text and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) kind: TokenKind,
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// Whether its closing quote or bracket is there.
    pub(crate) is_finished: bool,
}

/// Cuts a text into tokens, which together are the whole text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (kind, length, is_finished) = next(&text[start..]);
        tokens.push(Token { kind, range: start..start + length, is_finished });
        start += length;
    }
    tokens
}

/// Returns kind, length and completeness of the first token of a text that is not empty.
fn next(text: &str) -> (TokenKind, usize, bool) {
    let until = |kind: TokenKind, skip: usize, end: &str| match text[skip..].find(end) {
        Some(at) => (kind, skip + at + end.len(), true),
        None => (kind, text.len(), false),
    };
    let while_ = |kind: TokenKind, is_part: fn(char) -> bool| {
        (kind, text.find(|c: char| !is_part(c)).unwrap_or(text.len()), true)
    };
    if text.starts_with("/*+") {
        return until(TokenKind::Hint, 3, "*/");
    }
    if text.starts_with("/*") {
        return until(TokenKind::Comment, 2, "*/");
    }
    if text.starts_with("--") {
        // The line break ends the comment and is not part of it.
        return match text.find('\n') {
            Some(at) => (TokenKind::Comment, at, true),
            None => (TokenKind::Comment, text.len(), false),
        };
    }
    match text.chars().next() {
        Some('\'') => until(TokenKind::Text, 1, "'"),
        Some('`') => until(TokenKind::QuotedName, 1, "`"),
        Some(c) if c.is_whitespace() => while_(TokenKind::Blank, char::is_whitespace),
        Some(c) if is_word(c) => while_(TokenKind::Word, is_word),
        first => (TokenKind::Symbol, first.map_or(1, char::len_utf8), true),
    }
}

/// Returns whether a character may be part of a bare word.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cover_the_text_and_know_what_is_unfinished() {
        let text = "SELECT /*+ H */ `a b`, 'it''s ü' -- c\nFROM x /* y */ WHERE '";
        let found = tokens(text);
        assert_eq!(found.iter().map(|token| &text[token.range.clone()]).collect::<String>(), text);
        let of = |kind: TokenKind| -> Vec<&str> {
            found.iter().filter(|token| token.kind == kind).map(|token| &text[token.range.clone()]).collect()
        };
        assert_eq!(of(TokenKind::Hint), ["/*+ H */"]);
        assert_eq!(of(TokenKind::QuotedName), ["`a b`"]);
        assert_eq!(of(TokenKind::Text), ["'it'", "'s ü'", "'"]);
        assert_eq!(of(TokenKind::Comment), ["-- c", "/* y */"]);
        assert!(!found.last().unwrap().is_finished);
    }
}
