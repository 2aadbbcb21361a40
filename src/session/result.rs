//! What a statement answers. The shell turns it into text; nothing here prints.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::stream::BoxStream;

use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::schema::DataType;

/// The number of a job: 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub u128);

impl JobId {
    /// Makes a number that no other job has.
    pub(crate) fn random() -> JobId {
        JobId(uuid::Uuid::new_v4().as_u128())
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A named, typed column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// The name.
    pub name: String,
    /// The type.
    pub data_type: DataType,
}

/// A small, finished answer: SHOW, DESCRIBE, EXPLAIN, CALL. Printed without time and never capped; NULL prints as nothing.
#[derive(Debug, Clone)]
pub struct ResultTable {
    /// The columns.
    pub columns: Arc<Vec<ResultColumn>>,
    /// The rows, in the Arrow form of the columns' types.
    pub rows: RecordBatch,
}

/// How much of its input a query has read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryProgress {
    /// The rows.
    pub rows: u64,
    /// The bytes; 0 where nobody counts them.
    pub bytes: u64,
    /// Which part of all that is, between 0 and 1, if that is known.
    pub fraction: Option<f64>,
}

/// Tells how far a query is.
pub type ProgressProbe = Arc<dyn Fn() -> QueryProgress + Send + Sync>;

/// Rows of a query, as they come.
pub struct QueryResult {
    /// The columns.
    pub columns: Arc<Vec<ResultColumn>>,
    /// Whether the session is in streaming mode: rows are changes and print with their kind.
    pub is_streaming: bool,
    /// The rows. Dropping the stream cancels the query.
    pub stream: BoxStream<'static, Result<ChangelogBatch>>,
    /// Tells how far a batch query is; None for changes, which have no end.
    pub progress: Option<ProgressProbe>,
}

impl fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryResult").field("columns", &self.columns).finish_non_exhaustive()
    }
}

/// What a statement answers.
#[derive(Debug)]
pub enum StatementResult {
    /// It is done and there is nothing to show.
    Done,
    /// It is done, and the user should know something.
    DoneWithNote(String),
    /// A small answer.
    Table(ResultTable),
    /// Rows of a query.
    Query(QueryResult),
    /// Jobs were started and go on.
    JobSubmitted(JobId),
    /// A job was started and has finished (`table.dml-sync`).
    JobFinished(JobId),
    /// HELP.
    Help,
    /// CLEAR.
    Clear,
    /// QUIT or EXIT.
    Exit,
}
