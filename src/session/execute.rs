//! The one match over all statements.

use super::{Session, StatementResult};
use crate::error::Result;
use crate::sql::Statement;

impl Session {
    /// Executes a statement. `text` is what it was parsed from; places in errors point into it.
    ///
    /// # Errors
    /// What the statement asks for cannot be done; the session goes on.
    pub async fn execute(&mut self, statement: &Statement, text: &str) -> Result<StatementResult> {
        if let Some(result) = self.collect_in_statement_set(statement, text)? {
            return Ok(result);
        }
        match statement {
            Statement::Help => Ok(StatementResult::Help),
            Statement::Quit => Ok(StatementResult::Exit),
            Statement::Clear => Ok(StatementResult::Clear),
            Statement::Set(command) => self.execute_set(command),
            Statement::Reset(key) => self.execute_reset(key.as_ref()),
            Statement::Query(query) => self.execute_query(query, text).await,
            Statement::Insert(insert) => self.execute_insert(insert, text).await,
            Statement::BeginStatementSet => self.begin_statement_set(),
            Statement::EndStatementSet => self.end_statement_set().await,
            Statement::StatementSet(statements) => self.execute_statement_set(statements).await,
            Statement::Explain(explain) => self.execute_explain(explain, text).await,
            _ => self.execute_other(statement, text).await,
        }
    }

    async fn execute_other(&mut self, _statement: &Statement, _text: &str) -> Result<StatementResult> {
        Err(crate::error::Error::unsupported("not yet"))
    }
}
