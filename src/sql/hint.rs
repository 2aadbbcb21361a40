//! The text between `/*+` and `*/`: names with arguments, such as `OPTIONS('k' = 'v'), BROADCAST(a, b)`.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Whitespace};

use super::dialect::FlinkDialect;
use super::{Hint, HintSpan, Spanned, SqlOption};
use crate::error::{Error, Result, Span};

/// Parses the content of one hint comment, which may hold several hints.
pub(super) fn parse_hints(content: &str, span: Span, previous_end: usize) -> Result<Vec<Hint>> {
    let malformed = || {
        Error::syntax("malformed hint")
            .at(span)
            .hint("A hint is /*+ NAME */, /*+ NAME(argument, …) */ or /*+ NAME('key' = 'value', …) */.")
    };
    let mut tokens = Tokenizer::new(&FlinkDialect, content)
        .tokenize_with_location()
        .map_err(|_| malformed())?
        .into_iter()
        .filter(|token| {
            !matches!(
                token.token,
                Token::Whitespace(Whitespace::Space | Whitespace::Tab | Whitespace::Newline)
            )
        })
        .peekable();
    let mut hints = Vec::new();
    while let Some(token) = tokens.next() {
        let name = match token.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
            Token::Comma if !hints.is_empty() && tokens.peek().is_some() => continue,
            _ => return Err(malformed()),
        };
        let mut hint =
            Hint { name, options: Vec::new(), arguments: Vec::new(), span: HintSpan { span, previous_end } };
        if tokens.next_if(|token| token.token == Token::LParen).is_some() {
            // `NAME()` is a hint without arguments.
            while tokens.next_if(|token| token.token == Token::RParen).is_none() {
                let first = tokens.next().ok_or_else(malformed)?;
                let at = place(content, span, first.span.start);
                let argument = argument_text(first.token).ok_or_else(malformed)?;
                if tokens.next_if(|token| token.token == Token::Eq).is_some() {
                    let second = tokens.next().ok_or_else(malformed)?;
                    let value_at = place(content, span, second.span.start);
                    let value = argument_text(second.token).ok_or_else(malformed)?;
                    hint.options.push(SqlOption {
                        key: Spanned { value: argument, span: at },
                        value: Spanned { value, span: value_at },
                    });
                } else {
                    hint.arguments.push(argument);
                }
                let is_last = |token: Option<&TokenWithSpan>| matches!(token, Some(token) if token.token == Token::RParen);
                let has_comma = tokens.next_if(|token| token.token == Token::Comma).is_some();
                if has_comma == is_last(tokens.peek()) {
                    return Err(malformed());
                }
            }
        }
        hints.push(hint);
    }
    if hints.is_empty() { Err(malformed()) } else { Ok(hints) }
}

/// Returns what one argument says; a name and a text in quotes say the same.
fn argument_text(token: Token) -> Option<String> {
    match token {
        Token::Word(word) if !word.value.starts_with(['"', '$']) => Some(word.value),
        Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text) => Some(text),
        Token::Number(text, false) => Some(text),
        _ => None,
    }
}

/// Returns the byte of the statement at which a token of the hint starts, as an empty span.
fn place(content: &str, span: Span, location: Location) -> Span {
    let line_start = match location.line.checked_sub(2) {
        None => 0,
        Some(before) => {
            content.match_indices('\n').nth(before as usize).map_or(content.len(), |(newline, _)| newline + 1)
        }
    };
    let column = (location.column as usize).saturating_sub(1);
    let offset = content[line_start..]
        .char_indices()
        .nth(column)
        .map_or(content.len(), |(offset, _)| line_start + offset);
    // The content stands behind the three bytes of `/*+`.
    let at = span.start + 3 + offset;
    Span::new(at, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(content: &str) -> Result<Vec<Hint>> {
        parse_hints(content, Span::new(10, 10 + content.len() + 5), 9)
    }

    #[test]
    fn one_comment_may_hold_several_hints() {
        let hints = parse(" OPTIONS('a'='b', 'c' = 'it''s'), broadcast(x, y) NEST_LOOP ").unwrap();
        let names: Vec<&str> = hints.iter().map(|hint| hint.name.as_str()).collect();
        assert_eq!(names, ["OPTIONS", "BROADCAST", "NEST_LOOP"]);
        assert_eq!(hints[0].options[1].value.value, "it's");
        assert_eq!(hints[0].options[0].key.span, Span::new(22, 22));
        assert_eq!(hints[1].arguments, ["x", "y"]);
    }

    #[test]
    fn malformed_hints_are_refused() {
        for content in ["", " 1 ", " A(", " A(b c) ", " A('k'=) ", " A(,b) ", " A(b,) "] {
            assert!(parse(content).is_err(), "{content}");
        }
    }
}
