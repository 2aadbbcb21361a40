//! EXPLAIN.

use crate::error::{Error, Result};
use crate::plan::Planner;
use crate::session::result_table::text_table;
use crate::session::{Session, StatementResult};
use crate::sql::{Explain, ExplainDetail, Statement};

impl Session {
    /// Returns what statements are planned against.
    pub(crate) fn planner(&self) -> Result<Planner<'_>> {
        Planner::new(&self.catalogs, &self.config)
    }

    /// Shows how a statement would run. Nothing is read or written.
    pub(in crate::session) async fn execute_explain(&mut self, explain: &Explain) -> Result<StatementResult> {
        let text = self.explain(explain.statement.as_ref(), &explain.details).await?;
        text_table("result", [text])
    }

    /// Explains a statement; the INSERTs of a statement set are one job.
    async fn explain(&self, statement: &Statement, details: &[ExplainDetail]) -> Result<String> {
        let planner = self.planner()?;
        let statements = match statement {
            Statement::StatementSet(statements) => statements.as_slice(),
            Statement::Query(query) => return planner.query(query).await?.explain(details).await,
            Statement::CreateTable(create) => match &create.query {
                Some(query) => return planner.query(query).await?.explain(details).await,
                None => return Err(not_explained()),
            },
            statement => std::slice::from_ref(statement),
        };
        let mut inserts = Vec::with_capacity(statements.len());
        for statement in statements {
            let Statement::Insert(insert) = statement else { return Err(not_explained()) };
            inserts.push(planner.insert(insert).await?);
        }
        planner.explain(&inserts, details).await
    }
}

/// Makes the error for a statement that has no plan.
fn not_explained() -> Error {
    Error::unsupported("EXPLAIN of this statement is not supported")
        .hint("EXPLAIN takes a query, an INSERT, a statement set or CREATE TABLE … AS.")
}
