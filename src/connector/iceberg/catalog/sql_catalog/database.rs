//! What the SQL catalog asks of a database: rows of text, and statements that count together.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::error::{Error, Result};

/// A statement with its parameters, which it calls `$1`, `$2` … All columns and parameters of the catalog's tables are text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) parameters: Vec<String>,
}

impl Statement {
    /// Makes a statement.
    pub(super) fn new<'p>(
        sql: impl Into<String>,
        parameters: impl IntoIterator<Item = &'p str>,
    ) -> Statement {
        let parameters = parameters.into_iter().map(str::to_owned).collect();
        Statement { sql: sql.into(), parameters }
    }
}

/// A row of a result.
pub(super) type Row = Vec<Option<String>>;

/// A database that holds a catalog's tables.
#[async_trait]
pub(super) trait Database: Debug + Send + Sync {
    /// Returns the query for the names of the columns of the table `$1`; no rows if there is no such table.
    fn columns_query(&self) -> &'static str;

    /// Returns whether a transaction whose answer was an error does nothing any more once a query has been answered behind it: no
    /// server has it still in hand.
    fn answers_are_final(&self) -> bool {
        false
    }

    /// Runs a query.
    async fn read(&self, query: Statement) -> Result<Vec<Row>>;

    /// Runs statements in one transaction, and returns how many rows each has changed.
    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<u64>, WriteError>;
}

/// How a transaction failed.
#[derive(Debug)]
pub(super) enum WriteError {
    /// A row with this key is there already. Nothing has changed.
    Exists(Error),
    /// It met another transaction. Nothing has changed, and the same again may go well.
    Raced(Error),
    /// Nothing has changed.
    Failed(Error),
    /// The answer was lost: it may have been done or not.
    Unknown(Error),
}

impl WriteError {
    /// Returns the error itself.
    pub(super) fn into_error(self) -> Error {
        match self {
            WriteError::Exists(error)
            | WriteError::Raced(error)
            | WriteError::Failed(error)
            | WriteError::Unknown(error) => error,
        }
    }
}
