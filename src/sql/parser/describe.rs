//! DESCRIBE and ANALYZE.

use sqlparser::tokenizer::Token;

use super::super::{Analyze, Describe, DescribeWhat, Statement};
use super::cursor::Parser;
use crate::error::Result;

impl Parser<'_> {
    /// Takes `{DESCRIBE | DESC} …`.
    pub(super) fn describe(&mut self) -> Result<Statement> {
        self.advance();
        // None of these words is reserved: a table may have it as its name.
        let is_kind = matches!(
            self.peek_at(1),
            Some(Token::Word(_) | Token::SingleQuotedString(_) | Token::UnicodeStringLiteral(_))
        );
        let kind = if is_kind {
            self.accept_any(&["CATALOG", "DATABASE", "FUNCTION", "JOB", "MODEL"])
        } else {
            None
        };
        if kind == Some(3) {
            let what = DescribeWhat::Job(self.text()?);
            return Ok(Statement::Describe(Describe { what, extended: false }));
        }
        let extended = self.at("EXTENDED") && matches!(self.peek_at(1), Some(Token::Word(_)));
        if extended {
            self.advance();
        }
        let what = match kind {
            Some(0) => DescribeWhat::Catalog(self.name()?),
            Some(1) => DescribeWhat::Database(self.object_name()?),
            Some(2) => DescribeWhat::Function(self.object_name()?),
            Some(_) => DescribeWhat::Model(self.object_name()?),
            None => DescribeWhat::Table(self.object_name()?),
        };
        Ok(Statement::Describe(Describe { what, extended }))
    }

    /// Takes `ANALYZE TABLE name [PARTITION (…)] COMPUTE STATISTICS [FOR {COLUMNS c, … | ALL COLUMNS}]`.
    pub(super) fn analyze(&mut self) -> Result<Statement> {
        self.expect_all(&["ANALYZE", "TABLE"])?;
        let table = self.object_name()?;
        let partition = if self.accept("PARTITION") { self.partition_spec()? } else { Vec::new() };
        self.expect_all(&["COMPUTE", "STATISTICS"])?;
        let columns = if !self.accept("FOR") {
            None
        } else if self.accept("ALL") {
            self.expect("COLUMNS")?;
            Some(Vec::new())
        } else {
            self.expect("COLUMNS")?;
            Some(self.list(Self::name)?)
        };
        Ok(Statement::Analyze(Analyze { table, partition, columns }))
    }
}
