//! BEGIN STATEMENT SET … END: what comes between is collected and runs as one job.

use crate::error::{Error, FlinkClass, Result};
use crate::session::{Session, StatementResult};
use crate::sql::Statement;

impl Session {
    /// Opens a statement set.
    pub(in crate::session) fn begin_statement_set(&mut self) -> Result<StatementResult> {
        self.statement_set = Some(Vec::new());
        Ok(StatementResult::Done)
    }

    /// Takes a statement into the open statement set. None: there is none open, or the statement is not for it.
    ///
    /// # Errors
    /// A set is open and the statement cannot be part of it; the set stays open.
    pub(in crate::session) fn collect_in_statement_set(
        &mut self,
        statement: &Statement,
        text: &str,
    ) -> Result<Option<StatementResult>> {
        let Some(statements) = &mut self.statement_set else { return Ok(None) };
        match statement {
            Statement::EndStatementSet | Statement::Help | Statement::Clear | Statement::Quit => Ok(None),
            Statement::Insert(_) => {
                statements.push((statement.clone(), text.to_owned()));
                Ok(Some(StatementResult::Done))
            }
            Statement::CreateTable(create) if create.query.is_some() => {
                statements.push((statement.clone(), text.to_owned()));
                Ok(Some(StatementResult::Done))
            }
            _ => Err(Error::validation(
                "Only 'INSERT/CREATE TABLE AS' statement is allowed in Statement Set or use 'END' statement to submit Statement Set.",
            )
            .class(FlinkClass::GATEWAY_EXECUTION)),
        }
    }

    /// Closes the statement set and runs it.
    pub(in crate::session) async fn end_statement_set(&mut self) -> Result<StatementResult> {
        let collected = self.statement_set.take().ok_or_else(|| {
            Error::validation("No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'.")
                .class(FlinkClass::GATEWAY_EXECUTION)
        })?;
        if collected.is_empty() {
            return Ok(StatementResult::Done);
        }
        let statements: Vec<Statement> = collected.into_iter().map(|(statement, _)| statement).collect();
        // Places point into the statements' own texts, and the text at hand is END.
        self.execute_statement_set(&statements).await.map_err(Error::without_span)
    }

    /// Runs several INSERTs as one job.
    #[allow(clippy::unused_async, reason = "running a job waits for catalogs")]
    pub(in crate::session) async fn execute_statement_set(&mut self, _statements: &[Statement]) -> Result<StatementResult> {
        Err(Error::unsupported("statement sets are not supported yet"))
    }
}
