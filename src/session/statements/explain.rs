//! EXPLAIN.

use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::Explain;

impl Session {
    /// Shows how a statement would run.
    #[allow(clippy::unused_async, reason = "planning waits for catalogs")]
    pub(in crate::session) async fn execute_explain(&mut self, _explain: &Explain, _text: &str) -> Result<StatementResult> {
        Err(Error::unsupported("EXPLAIN is not supported yet"))
    }
}
