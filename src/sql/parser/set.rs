//! Client commands: HELP, CLEAR, QUIT, and SET and RESET in both of their grammars.
//!
//! Keys and values without quotes are no SQL (`SET state.dir = s3://a/b`), so these are read from the text itself.

use sqlparser::tokenizer::Token;

use super::super::{SetCommand, Spanned, SqlOption, Statement};
use super::cursor::Parser;
use crate::error::{Result, Span};

/// Parses a client command whose words need no tokens; None if the text is none.
pub(super) fn parse_client_command(text: &str) -> Option<Statement> {
    let body = skip_comments(text, 0);
    let word_end = text[body..]
        .find(|character: char| !character.is_ascii_alphabetic())
        .map_or(text.len(), |length| body + length);
    let rest = skip_comments(text, word_end);
    let is_alone = is_end(text, word_end);
    match text[body..word_end].to_ascii_uppercase().as_str() {
        "HELP" if is_alone => Some(Statement::Help),
        "CLEAR" if is_alone => Some(Statement::Clear),
        "QUIT" | "EXIT" if is_alone => Some(Statement::Quit),
        "SET" if is_alone => Some(Statement::Set(SetCommand::List)),
        "RESET" if is_alone => Some(Statement::Reset(None)),
        // Something must stand between the keyword and the key.
        "SET" if rest > word_end => set(text, rest),
        "RESET" if rest > word_end => {
            let key = bare_word(text, rest)?;
            is_end(text, key.end).then(|| Statement::Reset(Some(spanned(text, key))))
        }
        _ => None,
    }
}

/// Parses `key = value` without quotes around the key.
fn set(text: &str, start: usize) -> Option<Statement> {
    let word = bare_word(text, start)?;
    if text[word.start..word.end].eq_ignore_ascii_case("ALL") && is_end(text, word.end) {
        return Some(Statement::Set(SetCommand::ListAll));
    }
    // The key is as long as it can be: `a=b = c` has the key `a=b`.
    let behind = skip_blanks(text, word.end);
    let assigned = if text[behind..].starts_with('=') {
        value(text, skip_blanks(text, behind + 1)).map(|value| (word, value))
    } else {
        None
    };
    let (key, value) = assigned.or_else(|| {
        let inner = &text[word.start..word.end];
        inner.match_indices('=').rev().find_map(|(equals, _)| {
            let equals = word.start + equals;
            let key = Span::new(word.start, equals);
            (key.start < key.end).then_some(())?;
            value(text, skip_blanks(text, equals + 1)).map(|value| (key, value))
        })
    })?;
    Some(Statement::Set(SetCommand::Assign(SqlOption { key: spanned(text, key), value })))
}

/// Parses a value with or without quotes, which ends the statement.
fn value(text: &str, start: usize) -> Option<Spanned<String>> {
    if text[start..].starts_with('\'') {
        let mut end = start + 1;
        loop {
            end += text[end..].find('\'')?;
            end += 1;
            if !text[end..].starts_with('\'') {
                break;
            }
            end += 1;
        }
        let value = text[start + 1..end - 1].replace("''", "'");
        return is_end(text, end).then_some(Spanned { value, span: Span::new(start, end) });
    }
    let end = text[start..]
        .find(|character: char| character.is_whitespace() || character == ';')
        .map_or(text.len(), |length| start + length);
    (start < end && is_end(text, end)).then(|| spanned(text, Span::new(start, end)))
}

/// Returns the place of a word of anything but blanks, quotes and `;`; None if there is none.
fn bare_word(text: &str, start: usize) -> Option<Span> {
    let end = text[start..]
        .find(|character: char| character.is_whitespace() || matches!(character, '\'' | ';' | '`'))
        .map_or(text.len(), |length| start + length);
    (start < end).then_some(Span::new(start, end))
}

fn spanned(text: &str, span: Span) -> Spanned<String> {
    Spanned { value: text[span.start..span.end].to_owned(), span }
}

/// Returns whether only blanks, comments and one `;` follow.
fn is_end(text: &str, from: usize) -> bool {
    let at = skip_comments(text, from);
    let behind = if text[at..].starts_with(';') { skip_comments(text, at + 1) } else { at };
    behind == text.len()
}

fn skip_blanks(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start().len()
}

/// Skips white space and comments, but no hints.
fn skip_comments(text: &str, from: usize) -> usize {
    let mut at = skip_blanks(text, from);
    loop {
        let rest = &text[at..];
        let end = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") && !rest.starts_with("/*+") {
            match rest[2..].find("*/") {
                Some(length) => length + 4,
                None => return at,
            }
        } else {
            return at;
        };
        at = skip_blanks(text, at + end);
    }
}

impl Parser<'_> {
    /// Takes `SET 'key' = 'value'`.
    pub(super) fn set_quoted(&mut self) -> Result<Statement> {
        const HINT: &str = "Write SET 'key' = 'value'; a value with blanks needs its quotes.";
        self.expect("SET")?;
        let bare = !self.at_text();
        let key = self.text().map_err(|error| if bare { error.hint(HINT) } else { error })?;
        self.expect_sign(&Token::Eq)?;
        let value = self.text()?;
        Ok(Statement::Set(SetCommand::Assign(SqlOption { key, value })))
    }

    /// Takes `RESET 'key'`.
    pub(super) fn reset_quoted(&mut self) -> Result<Statement> {
        self.expect("RESET")?;
        Ok(Statement::Reset(Some(self.text()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_statement;
    use super::*;

    fn assigned(text: &str) -> (String, String) {
        match parse_statement(text).unwrap() {
            Statement::Set(SetCommand::Assign(option)) => (option.key.value, option.value.value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_grammars_of_set() {
        for (text, key, value) in [
            ("SET execution.checkpointing.interval = 3s;", "execution.checkpointing.interval", "3s"),
            ("set k=v", "k", "v"),
            ("SET k = 'a b';", "k", "a b"),
            ("SET 'k' = 'it''s';", "k", "it's"),
            ("-- first\nSET /* c */ a.b = file:///tmp/x -- last\n;", "a.b", "file:///tmp/x"),
            ("SET a=b=c;", "a=b", "c"),
            ("SET state.dir=s3://b/x--y;", "state.dir", "s3://b/x--y"),
        ] {
            assert_eq!(assigned(text), (key.to_owned(), value.to_owned()), "{text}");
        }
    }

    #[test]
    fn set_and_reset_without_a_key_and_of_all() {
        assert_eq!(parse_statement("SET;").unwrap(), Statement::Set(SetCommand::List));
        assert_eq!(parse_statement("set all").unwrap(), Statement::Set(SetCommand::ListAll));
        assert_eq!(parse_statement("RESET;").unwrap(), Statement::Reset(None));
        for text in ["RESET ALL;", "RESET k", "RESET 'k' ;"] {
            assert!(matches!(parse_statement(text).unwrap(), Statement::Reset(Some(_))), "{text}");
        }
    }

    #[test]
    fn malformed_assignments_are_parse_errors() {
        let error = parse_statement("SET = 3;").unwrap_err();
        assert_eq!(error.message(), "Encountered \"=\" at line 1, column 5.");
        assert!(parse_statement("SET k = a b;").unwrap_err().hint_text().unwrap().contains("quotes"));
        assert!(parse_statement("SET k").is_err());
    }

    #[test]
    fn commands_stand_alone() {
        assert_eq!(parse_statement(" quit ;").unwrap(), Statement::Quit);
        assert_eq!(parse_statement("EXIT -- bye").unwrap(), Statement::Quit);
        assert_eq!(parse_statement("/* c */ Help;").unwrap(), Statement::Help);
        assert_eq!(parse_statement("CLEAR").unwrap(), Statement::Clear);
        assert!(parse_statement("HELP me").is_err());
    }
}
