//! The parser's place in the tokens: looking ahead, taking keywords, and saying what was expected.
//!
//! No rule backs up over a token that it took, so the first token that no rule accepts is where the error stands.

use std::sync::Arc;

use sqlparser::ast::Ident;
use sqlparser::tokenizer::{Span as TokenSpan, Token};

use super::super::reserved::{is_reserved, is_structural};
use super::super::tokens::{PlacedToken, tokenize};
use super::super::{Hint, Positions, Spanned};
use crate::error::{Error, FlinkClass, Result, Span};

/// How deep brackets, queries and types may be nested. Each level takes stack when a tree is walked.
pub(super) const DEPTH_MAX: usize = 500;

/// A statement's tokens and how many of them are taken.
pub(super) struct Parser<'a> {
    /// The statement's text.
    pub(super) text: &'a str,
    /// The text as lines and hints, shared by everything that is parsed.
    pub(super) positions: Arc<Positions>,
    tokens: Vec<PlacedToken>,
    index: usize,
    depth: usize,
    /// What the rules asked for at token `expected_at`, in their order.
    expected: Vec<&'static str>,
    expected_at: usize,
    /// Ends of the tokens behind which hints were looked for, ascending, since no rule goes back.
    hint_places: Vec<usize>,
}

impl<'a> Parser<'a> {
    /// Reads a statement's tokens.
    pub(super) fn new(text: &'a str) -> Result<Parser<'a>> {
        let read = tokenize(text)?;
        Ok(Parser {
            text,
            positions: Arc::new(read.positions),
            tokens: read.tokens,
            index: 0,
            depth: 0,
            expected: Vec::new(),
            expected_at: 0,
            hint_places: Vec::new(),
        })
    }

    /// Returns the next token; None at the end.
    pub(super) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    /// Returns the token `ahead` tokens behind the next one.
    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.index + ahead).map(|placed| &placed.token)
    }

    /// Takes the next token.
    pub(super) fn advance(&mut self) {
        self.index += 1;
    }

    /// Returns the next token's bytes; at the end, the empty span behind the last token.
    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.index).map_or(Span::new(self.text.len(), self.text.len()), |placed| placed.span)
    }

    /// Returns the bytes from `start` to the end of the token that was taken last.
    pub(super) fn span_from(&self, start: Span) -> Span {
        Span::new(start.start, self.previous_end().max(start.start))
    }

    /// Returns where the token that was taken last ends.
    pub(super) fn previous_end(&self) -> usize {
        self.index.checked_sub(1).and_then(|index| self.tokens.get(index)).map_or(0, |placed| placed.span.end)
    }

    /// Returns the next token's lines and columns.
    pub(super) fn location(&self) -> TokenSpan {
        self.tokens.get(self.index).map_or(TokenSpan::empty(), |placed| placed.location)
    }

    /// Returns a copy of the next token with its place, for sqlparser's nodes that keep one.
    pub(super) fn attached(&self) -> sqlparser::ast::helpers::attached_token::AttachedToken {
        let token = self.peek().cloned().unwrap_or(Token::EOF);
        sqlparser::tokenizer::TokenWithSpan { token, span: self.location() }.into()
    }

    /// Returns how many tokens are taken.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Returns the source of a token that was taken or not.
    pub(super) fn source(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |placed| &self.text[placed.span.start..placed.span.end])
    }

    /// Returns whether the next token is this keyword.
    pub(super) fn at(&self, keyword: &str) -> bool {
        self.at_ahead(0, keyword)
    }

    /// Returns whether a token further on is this keyword.
    pub(super) fn at_ahead(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.peek_at(ahead), Some(Token::Word(word)) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    /// Returns whether the next token is one of these keywords.
    pub(super) fn at_any(&self, keywords: &[&str]) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_none() && keywords.iter().any(|keyword| word.value.eq_ignore_ascii_case(keyword)))
    }

    /// Returns whether the next tokens are these keywords.
    pub(super) fn at_all(&self, keywords: &[&str]) -> bool {
        keywords.iter().enumerate().all(|(ahead, keyword)| self.at_ahead(ahead, keyword))
    }

    /// Returns whether the next token is this sign.
    pub(super) fn at_sign(&self, token: &Token) -> bool {
        self.peek() == Some(token)
    }

    /// Takes a keyword if it is next.
    pub(super) fn accept(&mut self, keyword: &'static str) -> bool {
        let found = self.at(keyword);
        if found {
            self.advance();
        } else {
            self.expecting(keyword);
        }
        found
    }

    /// Takes keywords if all of them are next.
    pub(super) fn accept_all(&mut self, keywords: &'static [&'static str]) -> bool {
        let found = self.at_all(keywords);
        if found {
            self.index += keywords.len();
        } else if let Some(first) = keywords.first() {
            self.expecting(first);
        }
        found
    }

    /// Takes the one of these keywords that is next and returns its number.
    pub(super) fn accept_any(&mut self, keywords: &[&'static str]) -> Option<usize> {
        keywords.iter().position(|keyword| self.accept(keyword))
    }

    /// Takes a keyword that must be next.
    pub(super) fn expect(&mut self, keyword: &'static str) -> Result<()> {
        if self.accept(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Takes keywords that must be next, one after the other.
    pub(super) fn expect_all(&mut self, keywords: &[&'static str]) -> Result<()> {
        keywords.iter().try_for_each(|keyword| self.expect(keyword))
    }

    /// Takes the one of these keywords that must be next and returns its number.
    pub(super) fn expect_any(&mut self, keywords: &[&'static str]) -> Result<usize> {
        self.accept_any(keywords).ok_or_else(|| self.unexpected())
    }

    /// Takes a sign if it is next.
    pub(super) fn accept_sign(&mut self, token: &Token) -> bool {
        let found = self.at_sign(token);
        if found {
            self.advance();
        } else {
            self.expecting(sign_name(token));
        }
        found
    }

    /// Takes a sign that must be next.
    pub(super) fn expect_sign(&mut self, token: &Token) -> Result<()> {
        if self.accept_sign(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns whether nothing is left but a `;`.
    pub(super) fn at_end(&self) -> bool {
        match self.peek() {
            None => true,
            Some(Token::SemiColon) => self.index + 1 == self.tokens.len(),
            Some(_) => false,
        }
    }

    /// Ends a statement: only a `;` may follow, and every hint must have been looked for.
    pub(super) fn finish(&mut self) -> Result<()> {
        let ended = self.accept_sign(&Token::SemiColon);
        if self.peek().is_some() {
            return Err(if ended && !self.at_sign(&Token::SemiColon) {
                Error::syntax("only single statement supported")
                    .class(FlinkClass::ILLEGAL_ARGUMENT)
                    .at(self.span())
            } else {
                self.unexpected()
            });
        }
        let stray = self
            .positions
            .hints()
            .iter()
            .find(|hint| self.hint_places.binary_search(&hint.span.previous_end).is_err());
        let Some(hint) = stray else { return Ok(()) };
        let span = hint.span.span;
        let (line, column) = self.line_column(span.start);
        Err(Error::syntax(format!("Encountered \"/*+\" at line {line}, column {column}."))
            .class(FlinkClass::PARSE)
            .at(span)
            .hint("A hint stands right behind SELECT or right behind the name of a table."))
    }

    /// Takes a comma-separated list with at least one item.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept_sign(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Takes a list in brackets with at least one item.
    pub(super) fn bracketed_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_sign(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect_sign(&Token::RParen)?;
        Ok(items)
    }

    /// Runs a rule one level deeper.
    pub(super) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            return Err(Error::syntax(format!(
                "statement is nested too deeply: more than {DEPTH_MAX} levels"
            ))
            .class(FlinkClass::PARSE)
            .at(self.span())
            .hint("Split the statement with views or WITH, or write fewer brackets."));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Returns the hints behind the token that was taken last, and remembers that hints may stand here.
    pub(super) fn hints_here(&mut self) -> Vec<Hint> {
        if self.positions.hints().is_empty() {
            return Vec::new();
        }
        let end = self.previous_end();
        self.hint_places.push(end);
        self.positions.hints_behind(end).cloned().collect()
    }

    /// Returns whether the next token can be a name: quoted, or a word that holds no statement together.
    pub(super) fn at_name(&self) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_some() || !is_structural(&word.value))
    }

    /// Takes a name.
    pub(super) fn name(&mut self) -> Result<Spanned<String>> {
        if !self.at_name() {
            self.expecting("a name");
            return Err(self.unexpected());
        }
        let ident = self.any_word()?;
        Ok(Spanned {
            span: Span::new(self.previous_end() - self.source(self.index - 1).len(), self.previous_end()),
            value: ident.value,
        })
    }

    /// Takes a name as sqlparser keeps it.
    pub(super) fn ident(&mut self) -> Result<Ident> {
        if !self.at_name() {
            self.expecting("a name");
            return Err(self.unexpected());
        }
        self.any_word()
    }

    /// Takes any word, where even `FROM` can only be a name.
    pub(super) fn any_word(&mut self) -> Result<Ident> {
        let location = self.location();
        match self.peek() {
            Some(Token::Word(word)) if !(word.value.is_empty()) => {
                let ident =
                    Ident { value: word.value.clone(), quote_style: word.quote_style, span: location };
                self.advance();
                Ok(ident)
            }
            _ => {
                self.expecting("a name");
                Err(self.unexpected())
            }
        }
    }

    /// Notes what a rule looked for, for the hint of the error that may come.
    pub(super) fn expecting(&mut self, what: &'static str) {
        if self.expected_at != self.index {
            self.expected_at = self.index;
            self.expected.clear();
        }
        if !self.expected.contains(&what) {
            self.expected.push(what);
        }
    }

    /// Returns the error that the next token is not what any rule looked for.
    pub(super) fn unexpected(&self) -> Error {
        self.unexpected_at(self.index)
    }

    /// Returns the error that the next token is not what any rule looked for, with another hint than what was.
    pub(super) fn refused(&mut self, hint: &str) -> Error {
        self.expected.clear();
        self.unexpected().hint(hint)
    }

    /// Returns the error that a token further back is the one that no rule accepts.
    pub(super) fn unexpected_at(&self, index: usize) -> Error {
        let error = match self.tokens.get(index) {
            Some(placed) => {
                let source = match &placed.token {
                    Token::Char(character) => {
                        &self.text[placed.span.start..placed.span.start + character.len_utf8()]
                    }
                    _ => &self.text[placed.span.start..placed.span.end],
                };
                let (line, column) = (placed.location.start.line, placed.location.start.column);
                let is_keyword = matches!(&placed.token, Token::Word(word) if word.quote_style.is_none())
                    && is_reserved(source)
                    && source == source.to_uppercase();
                let message = if is_keyword {
                    format!("Incorrect syntax near the keyword '{source}' at line {line}, column {column}.")
                } else {
                    format!("Encountered \"{}\" at line {line}, column {column}.", escape(source))
                };
                Error::syntax(message).at(placed.span)
            }
            None => {
                // Flink counts the end as the last character.
                let last = self.text.char_indices().next_back().map_or(0, |(offset, _)| offset);
                let (line, column) = self.line_column(last);
                Error::syntax(format!("Encountered \"<EOF>\" at line {line}, column {column}."))
                    .at(Span::new(last, self.text.len()))
            }
        };
        let error = error.class(FlinkClass::PARSE);
        if index == self.expected_at && !self.expected.is_empty() {
            error.hint(self.expected_text())
        } else {
            error
        }
    }

    /// Words what was expected.
    fn expected_text(&self) -> String {
        const SHOWN: usize = 8;
        let mut items: Vec<&str> = self.expected.iter().copied().take(SHOWN).collect();
        if self.expected.len() > SHOWN {
            items.push("something else");
        }
        match items.split_last() {
            Some((last, [])) => format!("Expected {last}."),
            Some((last, rest)) => format!("Expected {} or {last}.", rest.join(", ")),
            None => String::new(),
        }
    }

    /// Returns line and column of a byte, both from 1, in characters.
    fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// Escapes a token's source as Flink's generated parser does in its messages.
fn escape(source: &str) -> String {
    let mut escaped = String::with_capacity(source.len());
    for character in source.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            '"' | '\'' | '\\' => {
                escaped.push('\\');
                escaped.push(character);
            }
            ' '..='~' => escaped.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    escaped
}

/// Names a sign for a hint.
fn sign_name(token: &Token) -> &'static str {
    match token {
        Token::LParen => "'('",
        Token::RParen => "')'",
        Token::LBracket => "'['",
        Token::RBracket => "']'",
        Token::Comma => "','",
        Token::SemiColon => "';'",
        Token::Period => "'.'",
        Token::Eq => "'='",
        Token::Lt => "'<'",
        Token::Gt => "'>'",
        Token::RArrow => "'=>'",
        Token::LBrace => "'{'",
        Token::RBrace => "'}'",
        _ => "another sign",
    }
}
