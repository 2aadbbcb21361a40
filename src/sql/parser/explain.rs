//! EXPLAIN and compiled plans.

use super::super::{CompilePlan, Explain, ExplainDetail, Statement};
use super::cursor::Parser;
use crate::error::{Error, FlinkClass, Result};

/// The details of EXPLAIN in the order of their enum.
const DETAILS: [(&str, ExplainDetail); 4] = [
    ("ESTIMATED_COST", ExplainDetail::EstimatedCost),
    ("CHANGELOG_MODE", ExplainDetail::ChangelogMode),
    ("JSON_EXECUTION_PLAN", ExplainDetail::JsonExecutionPlan),
    ("PLAN_ADVICE", ExplainDetail::PlanAdvice),
];

impl Parser<'_> {
    /// Takes `EXPLAIN [PLAN FOR | detail, …] statement`.
    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.expect("EXPLAIN")?;
        let mut details = Vec::new();
        if self.accept("PLAN") {
            self.expect("FOR")?;
        } else if DETAILS.iter().any(|(word, _)| self.at(word)) {
            loop {
                let span = self.span();
                let index = self.expect_any(&DETAILS.map(|(word, _)| word))?;
                let detail = DETAILS[index].1;
                if details.contains(&detail) {
                    return Err(Error::syntax("Duplicate EXPLAIN DETAIL is not allowed.")
                        .class(FlinkClass::PARSE)
                        .at(span));
                }
                details.push(detail);
                if !self.accept_sign(&sqlparser::tokenizer::Token::Comma) {
                    break;
                }
            }
        }
        let statement = Box::new(self.explained()?);
        Ok(Statement::Explain(Explain { details, statement }))
    }

    /// Takes what EXPLAIN can explain.
    fn explained(&mut self) -> Result<Statement> {
        if self.at("EXECUTE") {
            self.advance();
        }
        if self.at("STATEMENT") {
            return self.statement_set();
        }
        if self.at("INSERT")
            || self.at("UPDATE")
            || self.at("DELETE")
            || self.at("CREATE")
            || self.at("REPLACE")
        {
            return self.statement();
        }
        if self.at_bracketed_query() {
            return Ok(Statement::Query(self.spanned_query()?));
        }
        for what in ["SELECT", "INSERT", "STATEMENT SET", "CREATE TABLE … AS"] {
            self.expecting(what);
        }
        Err(self.unexpected())
    }

    /// Takes `COMPILE [AND EXECUTE] PLAN 'file' [IF NOT EXISTS] FOR statement`.
    pub(super) fn compile_plan(&mut self) -> Result<Statement> {
        self.expect("COMPILE")?;
        let execute = self.accept_all(&["AND", "EXECUTE"]);
        self.expect("PLAN")?;
        let file = self.text()?.value;
        let if_not_exists = self.if_not_exists();
        self.expect("FOR")?;
        let statement = Box::new(if self.at("STATEMENT") { self.statement_set()? } else { self.insert()? });
        Ok(Statement::CompilePlan(CompilePlan { file, if_not_exists, execute, statement }))
    }
}
