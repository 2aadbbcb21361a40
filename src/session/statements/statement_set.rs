//! BEGIN STATEMENT SET … END: what comes between is collected and runs as one job.

use crate::error::{Error, FlinkClass, Result};
use crate::plan::Planner;
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
    /// A set is open and the statement cannot be part of it or does not fit its tables; the set stays open.
    pub(in crate::session) async fn collect_in_statement_set(
        &mut self,
        statement: &Statement,
        text: &str,
    ) -> Result<Option<StatementResult>> {
        if self.statement_set.is_none() {
            return Ok(None);
        }
        match statement {
            Statement::EndStatementSet | Statement::Help | Statement::Clear | Statement::Quit => Ok(None),
            Statement::Insert(insert) => {
                // A mistake is told here, where its place is known, and not at END.
                Planner::new(&self.catalogs, &self.config)?.insert(insert).await?;
                Ok(Some(self.collect(statement, text)))
            }
            Statement::CreateTable(create) if create.query.is_some() => Ok(Some(self.collect(statement, text))),
            _ => Err(Error::validation(
                "Only 'INSERT/CREATE TABLE AS' statement is allowed in Statement Set or use 'END' statement to submit Statement Set.",
            )
            .class(FlinkClass::GATEWAY_EXECUTION)),
        }
    }

    /// Adds a statement to the open set.
    fn collect(&mut self, statement: &Statement, text: &str) -> StatementResult {
        self.statement_set.get_or_insert_default().push((statement.clone(), text.to_owned()));
        StatementResult::Done
    }

    /// Closes the statement set and runs it.
    pub(in crate::session) async fn end_statement_set(&mut self) -> Result<StatementResult> {
        let collected = self.statement_set.take().ok_or_else(|| {
            Error::validation(
                "No Statement Set to submit. 'END' statement should be used after 'BEGIN STATEMENT SET'.",
            )
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
    pub(in crate::session) async fn execute_statement_set(
        &mut self,
        statements: &[Statement],
    ) -> Result<StatementResult> {
        let planner = Planner::new(&self.catalogs, &self.config)?;
        let mut inserts = Vec::with_capacity(statements.len());
        for statement in statements {
            let Statement::Insert(insert) = statement else {
                return Err(Error::unsupported("CREATE TABLE … AS in a statement set is not supported yet")
                    .hint("Create the table first, then INSERT INTO it in the set."));
            };
            inserts.push(planner.insert(insert).await?);
        }
        self.submit(inserts).await
    }
}
