//! SHOW JOBS, DESCRIBE JOB and STOP JOB.

use crate::error::{Error, FlinkClass, Result};
use crate::session::jobs::parse_job_id;
use crate::session::result_table::{AnswerColumn, answer};
use crate::session::{JobSummary, Session, StatementResult};
use crate::sql::Spanned;

/// Makes the four columns of SHOW JOBS.
fn job_table(jobs: &[JobSummary]) -> Result<StatementResult> {
    answer(vec![
        AnswerColumn::texts("job id", jobs.iter().map(|job| Some(job.id.to_string()))),
        AnswerColumn::texts("job name", jobs.iter().map(|job| Some(&job.name))),
        AnswerColumn::texts("status", jobs.iter().map(|job| Some(job.status.to_string()))),
        AnswerColumn::instants("start time", jobs.iter().map(|job| job.start_time.timestamp_millis())),
    ])
}

impl Session {
    /// Lists the jobs.
    pub(in crate::session) fn show_jobs(&self) -> Result<StatementResult> {
        job_table(&self.jobs.list())
    }

    /// Shows one job.
    pub(in crate::session) fn describe_job(&self, job: &Spanned<String>) -> Result<StatementResult> {
        let id = parse_job_id(&job.value).map_err(|error| error.at(job.span))?;
        let found = self.jobs.get(id).ok_or_else(|| {
            Error::not_found(format!("Described job {id} does not exist in the cluster."))
                .class(FlinkClass::GATEWAY_EXECUTION)
                .at(job.span)
        })?;
        job_table(&[found])
    }

    /// Stops a job.
    pub(in crate::session) fn stop_job(
        &self,
        job: &Spanned<String>,
        with_savepoint: bool,
        with_drain: bool,
    ) -> Result<StatementResult> {
        let id = parse_job_id(&job.value).map_err(|error| error.at(job.span))?;
        if (with_savepoint || with_drain) && self.jobs.get(id).is_some() {
            return Err(Error::unsupported("savepoints are not supported yet")
                .at(job.span)
                .hint("Stop the job without WITH SAVEPOINT."));
        }
        self.jobs.stop(id).map_err(|error| error.at(job.span))?;
        Ok(StatementResult::Done)
    }
}
