//! Queries.

use std::sync::Arc;

use futures::StreamExt;

use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::plan::{Planner, ScanProgress};
use crate::runtime::JobHandle;
use crate::session::{
    JobId, ProgressProbe, QueryProgress, QueryResult, ResultColumn, Session, StatementResult,
};
use crate::sql::Query;

impl Session {
    /// Runs a query: its rows come while they are read from the result.
    pub(in crate::session) async fn execute_query(&mut self, query: &Query) -> Result<StatementResult> {
        let planned = Planner::new(&self.catalogs, &self.config)?.query(query).await?;
        let columns = planned
            .columns()
            .map(|(name, data_type)| ResultColumn { name: name.to_owned(), data_type: data_type.clone() })
            .collect();
        self.tell_of_writers(&planned.snapshots()?);
        let is_streaming = planned.is_streaming();
        let (stream, progress) = if is_streaming {
            let (graph, settings) = (planned.job_graph()?, self.query_settings(JobId::random())?);
            (JobHandle::start_collect(graph, settings, Arc::clone(&self.output)).await?.1, None)
        } else {
            let query = planned.prepare_batch().await?;
            let progress = probe(query.progress());
            (query.execute()?.map(|rows| rows.map(ChangelogBatch::inserts)).boxed(), Some(progress))
        };
        let columns = Arc::new(columns);
        Ok(StatementResult::Query(QueryResult { columns, is_streaming, stream, progress }))
    }
}

/// Makes the probe of a query's scans.
fn probe(progress: ScanProgress) -> ProgressProbe {
    Arc::new(move || {
        let read = progress.read();
        QueryProgress { rows: read.rows, bytes: read.bytes, fraction: read.fraction }
    })
}
