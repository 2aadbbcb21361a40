//! The seam between tables and the place that says which metadata file is a table's current one.

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{Catalog, TableIdent, TableRequirement, TableUpdate};

use crate::connector::iceberg::storage::FileStore;
use crate::error::Error;

/// A catalog in which a table's metadata can be replaced atomically.
///
/// The crate's own `Catalog::update_table` takes a `TableCommit`, which only the crate can make; so changes of rows come through here,
/// and implementations forward `update_table` to it (`take_requirements`, `take_updates`).
#[async_trait]
pub(in crate::connector::iceberg) trait CommitCatalog: Catalog {
    /// Returns what the user calls the catalog, for hints; None if it has no name.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Returns where the files of its tables are.
    fn files(&self) -> &FileStore;

    /// Applies updates to a table's current metadata, if it fulfils the requirements and nobody else commits meanwhile, and returns
    /// the new table. One attempt: who calls it tries again after a conflict.
    async fn commit_table(
        &self,
        ident: &TableIdent,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError>;
}

/// How a commit failed.
#[derive(Debug)]
pub(in crate::connector::iceberg) enum CommitError {
    /// Somebody else committed first, or a requirement does not hold. Nothing has changed.
    Conflict(Error),
    /// It may have landed or not: the answer was lost.
    Unknown(Error),
    /// It has not landed, and would not if it was tried again.
    Failed(Error),
}

impl CommitError {
    /// Returns the error itself, for who does not care how the commit failed.
    pub(in crate::connector::iceberg) fn into_error(self) -> Error {
        match self {
            CommitError::Conflict(error) | CommitError::Unknown(error) | CommitError::Failed(error) => error,
        }
    }
}
