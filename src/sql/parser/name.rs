//! Names of several parts, texts in quotes, numbers, and lists of options: what most statements are made of.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::super::{ObjectName, Spanned, SqlOption};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

impl Parser<'_> {
    /// Takes `[catalog.][database.]name`.
    pub(super) fn object_name(&mut self) -> Result<ObjectName> {
        let name = self.dotted_name()?;
        if name.parts.len() > 3 {
            return Err(Error::validation("Object identifier must consist of 1 to 3 parts.")
                .class(FlinkClass::VALIDATION)
                .at(name.span)
                .hint("A name has at most a catalog, a database and an object; put back-ticks around a part with dots."));
        }
        Ok(name)
    }

    /// Takes a name of any number of parts: a path into a nested column, a Kafka-like procedure name.
    pub(super) fn dotted_name(&mut self) -> Result<ObjectName> {
        let first = self.name()?;
        let start = first.span;
        let mut parts = vec![first.value];
        while self.accept_sign(&Token::Period) {
            parts.push(self.any_word()?.value);
        }
        Ok(ObjectName { parts, span: self.span_from(start) })
    }

    /// Takes a table's name as sqlparser keeps it.
    pub(super) fn table_name(&mut self) -> Result<ast::ObjectName> {
        let start = self.span();
        let mut parts = vec![self.ident()?];
        while self.accept_sign(&Token::Period) {
            parts.push(self.any_word()?);
        }
        if parts.len() > 3 {
            return Err(Error::validation("Object identifier must consist of 1 to 3 parts.")
                .class(FlinkClass::VALIDATION)
                .at(self.span_from(start)));
        }
        Ok(ast::ObjectName::from(parts))
    }

    /// Takes a text in quotes.
    pub(super) fn text(&mut self) -> Result<Spanned<String>> {
        let span = self.span();
        match self.peek() {
            Some(Token::SingleQuotedString(text) | Token::UnicodeStringLiteral(text)) => {
                let value = text.clone();
                self.advance();
                Ok(Spanned { value, span })
            }
            _ => {
                self.expecting("a text in single quotes");
                Err(self.unexpected())
            }
        }
    }

    /// Returns whether a text in quotes is next.
    pub(super) fn at_text(&self) -> bool {
        matches!(self.peek(), Some(Token::SingleQuotedString(_) | Token::UnicodeStringLiteral(_)))
    }

    /// Takes a whole number without a sign.
    pub(super) fn unsigned<T: std::str::FromStr>(&mut self) -> Result<T> {
        if let Some(Token::Number(digits, false)) = self.peek() {
            if let Ok(value) = digits.parse() {
                self.advance();
                return Ok(value);
            }
            if digits.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(Error::syntax(format!("number {digits} is too large here")).at(self.span()));
            }
        }
        self.expecting("a whole number");
        Err(self.unexpected())
    }

    /// Takes `IF NOT EXISTS` if it is next.
    pub(super) fn if_not_exists(&mut self) -> bool {
        self.accept_all(&["IF", "NOT", "EXISTS"])
    }

    /// Takes `IF EXISTS` if it is next.
    pub(super) fn if_exists(&mut self) -> bool {
        self.accept_all(&["IF", "EXISTS"])
    }

    /// Takes `COMMENT 'text'` if it is next.
    pub(super) fn comment(&mut self) -> Result<Option<String>> {
        if self.accept("COMMENT") { Ok(Some(self.text()?.value)) } else { Ok(None) }
    }

    /// Takes `WITH ('key' = 'value', …)` if it is next.
    pub(super) fn with_options(&mut self) -> Result<Vec<SqlOption>> {
        if self.accept("WITH") { self.options() } else { Ok(Vec::new()) }
    }

    /// Takes `('key' = 'value', …)`, which may be empty.
    pub(super) fn options(&mut self) -> Result<Vec<SqlOption>> {
        self.expect_sign(&Token::LParen)?;
        if self.accept_sign(&Token::RParen) {
            return Ok(Vec::new());
        }
        let options = self.list(|parser| {
            let key = parser.text()?;
            parser.expect_sign(&Token::Eq)?;
            Ok(SqlOption { key, value: parser.text()? })
        })?;
        self.expect_sign(&Token::RParen)?;
        Ok(options)
    }

    /// Takes `('key', …)`, which may be empty.
    pub(super) fn keys(&mut self) -> Result<Vec<Spanned<String>>> {
        self.expect_sign(&Token::LParen)?;
        if self.accept_sign(&Token::RParen) {
            return Ok(Vec::new());
        }
        let keys = self.list(Self::text)?;
        self.expect_sign(&Token::RParen)?;
        Ok(keys)
    }

    /// Takes `(name, …)`.
    pub(super) fn bracketed_names(&mut self) -> Result<Vec<Spanned<String>>> {
        self.bracketed_list(Self::name)
    }
}
