//! INSERT, UPDATE, DELETE and TRUNCATE.

use sqlparser::tokenizer::Token;

use super::super::{Delete, Expression, Insert, OnConflict, Spanned, Statement, Update};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes `INSERT {INTO | OVERWRITE} name …`.
    pub(super) fn insert(&mut self) -> Result<Statement> {
        self.expect("INSERT")?;
        let overwrite = self.expect_any(&["INTO", "OVERWRITE"])? == 1;
        let target = self.object_name()?;
        let hints = self.hints_here();
        let partition = if self.accept("PARTITION") { self.static_partition()? } else { Vec::new() };
        let columns = if self.at_sign(&Token::LParen) && !self.at_bracketed_query() {
            Some(self.bracketed_names()?)
        } else {
            None
        };
        let source = self.spanned_query()?;
        let on_conflict = if self.accept("ON") {
            self.expect_all(&["CONFLICT", "DO"])?;
            Some(match self.expect_any(&["ERROR", "NOTHING", "DEDUPLICATE"])? {
                0 => OnConflict::Error,
                1 => OnConflict::Nothing,
                _ => OnConflict::Deduplicate,
            })
        } else {
            None
        };
        Ok(Statement::Insert(Insert { target, hints, overwrite, partition, columns, source, on_conflict }))
    }

    /// Takes `(key = literal, …)`.
    fn static_partition(&mut self) -> Result<Vec<(Spanned<String>, Expression)>> {
        self.bracketed_list(|parser| {
            let key = parser.name()?;
            parser.expect_sign(&Token::Eq)?;
            Ok((key, parser.spanned_expression()?))
        })
    }

    /// Takes `UPDATE name SET column = expression, … [WHERE condition]`.
    pub(super) fn update(&mut self) -> Result<Statement> {
        self.expect("UPDATE")?;
        let target = self.object_name()?;
        self.expect("SET")?;
        let assignments = self.list(|parser| {
            let column = parser.name()?;
            parser.expect_sign(&Token::Eq)?;
            Ok((column, parser.spanned_expression()?))
        })?;
        Ok(Statement::Update(Update { target, assignments, condition: self.condition()? }))
    }

    /// Takes `DELETE FROM name [WHERE condition]`.
    pub(super) fn delete(&mut self) -> Result<Statement> {
        self.expect_all(&["DELETE", "FROM"])?;
        let target = self.object_name()?;
        Ok(Statement::Delete(Delete { target, condition: self.condition()? }))
    }

    fn condition(&mut self) -> Result<Option<Expression>> {
        if self.accept("WHERE") { Ok(Some(self.spanned_expression()?)) } else { Ok(None) }
    }

    /// Takes `TRUNCATE TABLE name`.
    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.expect_all(&["TRUNCATE", "TABLE"])?;
        Ok(Statement::Truncate(self.object_name()?))
    }
}
