//! Statements that are recognised and kept as text: materialized tables, models, connections.

use sqlparser::tokenizer::Token;

use super::super::{ObjectName, Statement, Unexecuted};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

impl Parser<'_> {
    /// Takes what follows CREATE for an object that is never made.
    pub(super) fn unexecuted_create(&mut self) -> Result<Statement> {
        let or_alter = self.accept_all(&["OR", "ALTER"]);
        let temporary = !or_alter && self.accept("TEMPORARY");
        let verb = if or_alter { "CREATE OR ALTER" } else { "CREATE" };
        self.unexecuted(verb, temporary)
    }

    /// Takes the object's kind, its name and everything behind it.
    pub(super) fn unexecuted(&mut self, verb: &str, temporary: bool) -> Result<Statement> {
        let mut keywords = vec![verb];
        if temporary {
            keywords.push("TEMPORARY");
        }
        let start = self.span();
        if self.accept("SYSTEM") {
            keywords.push("SYSTEM");
        }
        let kind = self.expect_any(&["MATERIALIZED", "MODEL", "CONNECTION"])?;
        let is_table = kind == 0;
        if is_table {
            self.expect("TABLE")?;
        }
        if is_table && temporary {
            return Err(Error::syntax("TEMPORARY MATERIALIZED TABLE is not supported")
                .class(FlinkClass::PARSE)
                .at(self.span_from(start)));
        }
        keywords.push(["MATERIALIZED TABLE", "MODEL", "CONNECTION"][kind]);
        if self.if_not_exists() {
            keywords.push("IF NOT EXISTS");
        } else if self.if_exists() {
            keywords.push("IF EXISTS");
        }
        let name: ObjectName = self.object_name()?;
        let mut rest = Vec::new();
        while self.peek().is_some() && !self.at_sign(&Token::SemiColon) {
            rest.push(self.source(self.index()));
            self.hints_here();
            self.advance();
        }
        let held = Unexecuted { keywords: keywords.join(" "), name, rest: rest.join(" ") };
        Ok(if is_table { Statement::MaterializedTable(held) } else { Statement::Model(held) })
    }
}
