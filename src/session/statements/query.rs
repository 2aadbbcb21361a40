//! Queries.

use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::Query;

impl Session {
    /// Runs a query.
    #[allow(clippy::unused_async, reason = "running a query waits for catalogs")]
    pub(in crate::session) async fn execute_query(&mut self, _query: &Query, _text: &str) -> Result<StatementResult> {
        Err(Error::unsupported("queries are not supported yet"))
    }
}
