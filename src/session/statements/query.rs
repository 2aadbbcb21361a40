//! Queries.

use std::sync::Arc;

use crate::error::Result;
use crate::plan::Planner;
use crate::runtime::run_stream;
use crate::session::{QueryResult, ResultColumn, Session, StatementResult};
use crate::sql::Query;

impl Session {
    /// Runs a query: its rows come while they are read from the result.
    pub(in crate::session) async fn execute_query(&mut self, query: &Query) -> Result<StatementResult> {
        let planned = Planner::new(&self.catalogs, &self.config)?.query(query).await?;
        let columns = planned
            .columns()
            .map(|(name, data_type)| ResultColumn { name: name.to_owned(), data_type: data_type.clone() })
            .collect();
        let is_streaming = planned.is_streaming();
        let stream = planned.prepare().await?.start(run_stream)?;
        Ok(StatementResult::Query(QueryResult { columns: Arc::new(columns), is_streaming, stream }))
    }
}
