//! A statement's text as tokens with byte places: sqlparser's tokenizer, its comments taken out, its hints kept apart.
//!
//! What Flink reads as two tokens is split here (`>>` closes two types), and what Flink cannot read becomes a single
//! character, which no rule of the parser accepts, so that it is reported where it stands.

use sqlparser::tokenizer::{Location, Span as TokenSpan, Token, Tokenizer, Whitespace};

use super::dialect::FlinkDialect;
use super::hint::parse_hints;
use super::{Hint, Piece, Positions, split};
use crate::error::{Error, Result, Span};

/// A token with its place, once in bytes and once as sqlparser counts.
#[derive(Debug, Clone)]
pub(super) struct PlacedToken {
    /// The token; never white space or a comment.
    pub token: Token,
    /// Bytes in the statement's text.
    pub span: Span,
    /// Lines and columns.
    pub location: TokenSpan,
}

/// The tokens of a text, and what stands between them.
#[derive(Debug)]
pub(super) struct Tokens {
    /// The tokens in order.
    pub tokens: Vec<PlacedToken>,
    /// The text with its hints.
    pub positions: Positions,
}

/// Cuts a statement's text into tokens.
pub(super) fn tokenize(text: &str) -> Result<Tokens> {
    let mut raw = Vec::new();
    if let Err(error) = Tokenizer::new(&FlinkDialect, text).tokenize_with_location_into_buf(&mut raw) {
        return Err(lexical_error(text, &error.message, error.location));
    }
    let mut walk = Walk::new(text);
    let mut tokens: Vec<PlacedToken> = Vec::with_capacity(raw.len() / 2 + 1);
    let mut hints: Vec<Hint> = Vec::new();
    for piece in raw {
        let span = Span::new(walk.advance(piece.span.start), walk.advance(piece.span.end));
        match piece.token {
            Token::Whitespace(Whitespace::MultiLineComment(comment)) if comment.starts_with('+') => {
                let previous_end = tokens.last().map_or(0, |token| token.span.end);
                hints.extend(parse_hints(&comment[1..], span, previous_end)?);
            }
            Token::Whitespace(_) => {}
            token => push(&mut tokens, text, PlacedToken { token, span, location: piece.span }),
        }
    }
    decode_escapes(&mut tokens, text)?;
    Ok(Tokens { tokens, positions: Positions::new(text).with_hints(hints) })
}

/// Returns the places of a text's tokens: what is left without white space, comments and hints.
pub fn token_spans(text: &str) -> Result<Vec<Span>> {
    Ok(tokenize(text)?.tokens.into_iter().map(|token| token.span).collect())
}

/// Adds a token, in the form that the parser expects.
fn push(tokens: &mut Vec<PlacedToken>, text: &str, placed: PlacedToken) {
    let source = &text[placed.span.start..placed.span.end];
    match placed.token {
        Token::ShiftRight => {
            let middle = Location::new(placed.location.start.line, placed.location.start.column + 1);
            let at = placed.span.start;
            tokens.push(PlacedToken {
                token: Token::Gt,
                span: Span::new(at, at + 1),
                location: TokenSpan::new(placed.location.start, middle),
            });
            tokens.push(PlacedToken {
                token: Token::Gt,
                span: Span::new(at + 1, at + 2),
                location: TokenSpan::new(middle, placed.location.end),
            });
        }
        Token::Word(ref word) if word.quote_style.is_none() && source.starts_with(['"', '$']) => {
            let first = source.chars().next().unwrap_or('"');
            tokens.push(PlacedToken { token: Token::Char(first), ..placed });
        }
        // `0x1F` and `1L` are no literals of Flink.
        Token::HexStringLiteral(_) if !source.starts_with(['x', 'X']) => {
            tokens.push(PlacedToken { token: Token::Char('0'), ..placed });
        }
        Token::Number(_, true) => tokens.push(PlacedToken { token: Token::Char('L'), ..placed }),
        _ => tokens.push(placed),
    }
}

/// Applies `UESCAPE 'c'` behind `U&'…'`: such a literal is decoded again from its source.
fn decode_escapes(tokens: &mut Vec<PlacedToken>, text: &str) -> Result<()> {
    let is_escape = |tokens: &[PlacedToken], index: usize| {
        matches!(&tokens[index].token, Token::UnicodeStringLiteral(_))
            && matches!(tokens.get(index + 1).map(|next| &next.token), Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("UESCAPE"))
    };
    if !(0..tokens.len()).any(|index| is_escape(tokens, index)) {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while index < tokens.len() {
        if is_escape(tokens, index) {
            let span = tokens[index].span;
            let escape = match tokens.get(index + 2).map(|token| &token.token) {
                Some(Token::SingleQuotedString(escape)) if escape.chars().count() == 1 => {
                    escape.chars().next()
                }
                _ => None,
            };
            let Some(escape) = escape else {
                return Err(Error::syntax("UESCAPE must be followed by one character in quotes").at(span));
            };
            let last = tokens[index + 2].clone();
            let value = unescape(&text[span.start..span.end], escape).ok_or_else(|| {
                Error::syntax("Unicode escape sequence is malformed").at(span).hint(format!(
                    "An escape is {escape}XXXX with four hexadecimal digits, or {escape}{escape}."
                ))
            })?;
            kept.push(PlacedToken {
                token: Token::UnicodeStringLiteral(value),
                span: span.union(last.span),
                location: TokenSpan::new(tokens[index].location.start, last.location.end),
            });
            index += 3;
        } else {
            kept.push(tokens[index].clone());
            index += 1;
        }
    }
    *tokens = kept;
    Ok(())
}

/// Decodes the source of `U&'…'` with the given escape character; None if an escape is malformed.
fn unescape(source: &str, escape: char) -> Option<String> {
    let inner = source.get(3..source.len().checked_sub(1)?)?.replace("''", "'");
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(character) = rest.next() {
        if character != escape {
            value.push(character);
            continue;
        }
        if rest.as_str().starts_with(escape) {
            rest.next();
            value.push(escape);
            continue;
        }
        let digits: String = rest.by_ref().take(4).collect();
        if digits.len() != 4 || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        value.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
    }
    Some(value)
}

/// Words a text that cannot be cut into tokens.
fn lexical_error(text: &str, message: &str, location: Location) -> Error {
    if let Some(error) = split(text).last().and_then(Piece::unfinished_error) {
        return error;
    }
    let mut walk = Walk::new(text);
    let at = walk.advance(location);
    let end = text[at..].chars().next().map_or(at, |character| at + character.len_utf8());
    Error::syntax(format!("Lexical error at line {}, column {}: {message}", location.line, location.column))
        .at(Span::new(at, end))
}

/// Turns ascending locations into bytes in one pass over the text.
struct Walk<'a> {
    rest: std::str::Chars<'a>,
    length: usize,
    line: u64,
    column: u64,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str) -> Walk<'a> {
        Walk { rest: text.chars(), length: text.len(), line: 1, column: 1 }
    }

    /// Moves to a location, which is not before the last one, and returns its byte.
    fn advance(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column) {
            match self.rest.next() {
                Some('\n') => {
                    self.line += 1;
                    self.column = 1;
                }
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.length - self.rest.as_str().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Vec<&str> {
        let tokens = tokenize(text).unwrap().tokens;
        tokens.iter().map(|token| &text[token.span.start..token.span.end]).collect()
    }

    #[test]
    fn spans_are_bytes_also_behind_wide_characters_and_line_breaks() {
        let text = "SELECT 'é日' -- c\r\n, `ü b`\n FROM\tt";
        assert_eq!(sources(text), ["SELECT", "'é日'", ",", "`ü b`", "FROM", "t"]);
    }

    #[test]
    fn closing_angle_brackets_are_single() {
        assert_eq!(sources("ARRAY<ARRAY<INT>>"), ["ARRAY", "<", "ARRAY", "<", "INT", ">", ">"]);
    }

    #[test]
    fn a_double_quote_is_no_quote() {
        let tokens = tokenize("SELECT \"double\"").unwrap().tokens;
        assert_eq!(tokens[1].token, Token::Char('"'));
    }

    #[test]
    fn a_backslash_is_a_character() {
        let tokens = tokenize(r"SELECT '\'").unwrap().tokens;
        assert_eq!(tokens[1].token, Token::SingleQuotedString("\\".to_owned()));
    }

    #[test]
    fn unicode_literals_know_their_escape() {
        let tokens = tokenize(r"U&'\00e9' , U&'!00e9!!' UESCAPE '!'").unwrap().tokens;
        assert_eq!(tokens[0].token, Token::UnicodeStringLiteral("é".to_owned()));
        assert_eq!(tokens[2].token, Token::UnicodeStringLiteral("é!".to_owned()));
        assert_eq!(tokens.len(), 3);
    }

    #[test]
    fn hints_are_taken_out_and_know_the_token_before() {
        let tokens = tokenize("SELECT /*+ BROADCAST(a) */ * FROM t /*+ OPTIONS('k'='v') */ AS a").unwrap();
        let hints = tokens.positions.hints();
        assert_eq!(hints.len(), 2);
        assert_eq!((hints[0].span.previous_end, hints[1].span.previous_end), (6, 35));
        assert_eq!(hints[0].arguments, ["a"]);
        assert_eq!(hints[1].options[0].key.value, "k");
        assert_eq!(tokens.positions.hints_behind(35).count(), 1);
    }

    #[test]
    fn an_open_string_is_reported_where_it_starts() {
        let error = tokenize("SELECT 1,\n 'abc").unwrap_err();
        assert_eq!(error.message(), "unfinished string literal");
        assert_eq!(error.span(), Some(Span::new(11, 12)));
        let error = tokenize("SELECT 1; \u{feff} SELECT 'é").unwrap_err();
        assert_eq!(error.span(), Some(Span::new(21, 22)));
    }
}
