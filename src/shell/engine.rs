//! What the shell needs of a session, as a trait, so that the shell can be tested without one.

use async_trait::async_trait;

use crate::error::Result;
use crate::options::{SessionConfig, time_zone};
use crate::session::{JobProgress, StatementResult, StoppedJob};
use crate::sql::Statement;

/// Executes statements. The shell calls it from one thread only, whose stack is large enough for any statement.
#[async_trait]
pub(crate) trait Engine: Send {
    /// Executes a statement; `text` is what the user wrote. A call that is dropped before it is done is interrupted.
    async fn execute(&mut self, statement: &Statement, text: &str) -> Result<StatementResult>;

    /// Returns the configuration.
    fn config(&self) -> &SessionConfig;

    /// Returns the session time zone.
    ///
    /// # Errors
    /// The configured zone does not exist.
    fn zone(&self) -> Result<chrono_tz::Tz> {
        time_zone(self.config())
    }

    /// Returns the names of all catalogs.
    fn catalog_names(&self) -> Vec<String>;

    /// Returns the databases of a catalog, or of the current one. What cannot be reached offers nothing.
    async fn database_names(&self, catalog: Option<&str>) -> Vec<String>;

    /// Returns the tables and views of `[[catalog.]database]`; of the current database without parts.
    async fn table_names(&self, database: &[String]) -> Vec<String>;

    /// Returns the columns of a table or view.
    async fn column_names(&self, table: &[String]) -> Vec<String>;

    /// Returns the names of all functions.
    fn function_names(&self) -> Vec<String>;

    /// Returns how far the jobs are that still run.
    fn running_jobs(&self) -> Vec<JobProgress>;

    /// Waits until every job that the session started has ended. A call that is dropped cancels nothing.
    ///
    /// # Errors
    /// A job failed.
    async fn wait_for_jobs(&mut self) -> Result<()>;

    /// Stops all jobs that run, with a last checkpoint, and waits until they have ended. A call that is dropped leaves them
    /// stopping.
    async fn stop_jobs(&mut self) -> Vec<StoppedJob>;

    /// Stops all jobs that run at once, without waiting.
    fn cancel_jobs(&mut self);
}
