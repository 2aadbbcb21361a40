//! INSERT, and CREATE TABLE … AS.

use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::{CreateTable, Insert};

impl Session {
    /// Runs an INSERT as a job.
    #[allow(clippy::unused_async, reason = "running a job waits for catalogs")]
    pub(in crate::session) async fn execute_insert(&mut self, _insert: &Insert, _text: &str) -> Result<StatementResult> {
        Err(Error::unsupported("INSERT is not supported yet"))
    }

    /// Creates a table as its query says, and fills it.
    #[allow(clippy::unused_async, reason = "running a job waits for catalogs")]
    pub(in crate::session) async fn execute_create_table_as(&mut self, _create: &CreateTable, _text: &str) -> Result<StatementResult> {
        Err(Error::unsupported("CREATE TABLE AS is not supported yet"))
    }
}
