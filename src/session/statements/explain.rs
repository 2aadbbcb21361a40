//! EXPLAIN.

use crate::error::{Error, Result};
use crate::plan::Planner;
use crate::session::result_table::text_table;
use crate::session::{Session, StatementResult};
use crate::sql::{Explain, ExplainDetail, Statement};

impl Session {
    /// Shows how a statement would run. Nothing is read or written.
    pub(in crate::session) async fn execute_explain(&mut self, explain: &Explain) -> Result<StatementResult> {
        let statements: Vec<&Statement> = match explain.statement.as_ref() {
            Statement::StatementSet(statements) => statements.iter().collect(),
            statement => vec![statement],
        };
        let mut texts = Vec::with_capacity(statements.len());
        for statement in statements {
            texts.push(self.explain_one(statement, &explain.details).await?);
        }
        text_table("result", [texts.join("\n")])
    }

    /// Explains one statement.
    async fn explain_one(&self, statement: &Statement, details: &[ExplainDetail]) -> Result<String> {
        let planner = Planner::new(&self.catalogs, &self.config)?;
        let query = match statement {
            Statement::Query(query) => Some(query),
            Statement::CreateTable(create) => create.query.as_ref(),
            _ => None,
        };
        match (query, statement) {
            (Some(query), _) => planner.query(query).await?.explain(details),
            (None, Statement::Insert(insert)) => planner.insert(insert).await?.explain(details),
            _ => Err(Error::unsupported("EXPLAIN of this statement is not supported")
                .hint("EXPLAIN takes a query, an INSERT, a statement set or CREATE TABLE … AS.")),
        }
    }
}
