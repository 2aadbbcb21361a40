//! SHOW JOBS, DESCRIBE JOB and STOP JOB.

use crate::error::{Error, FlinkClass, Result};
use crate::runtime::{JobMetrics, OperatorMetrics, StopMode};
use crate::session::job_settings::savepoint_folder;
use crate::session::jobs::no_such_job;
use crate::session::result_table::{AnswerColumn, answer, text_table};
use crate::session::{JobId, JobSummary, Session, StatementResult};
use crate::sql::Spanned;

impl Session {
    /// Lists the jobs.
    pub(in crate::session) fn show_jobs(&self) -> Result<StatementResult> {
        let jobs: Vec<Option<JobSummary>> = self.jobs.list().into_iter().map(Some).collect();
        answer(job_columns(&jobs))
    }

    /// Shows one job and what its operators have done.
    pub(in crate::session) fn describe_job(&self, job: &Spanned<String>) -> Result<StatementResult> {
        let id = self.jobs.find(&job.value).map_err(|error| error.at(job.span))?;
        let found = self.jobs.get(id).zip(self.jobs.metrics(id)).ok_or_else(|| {
            Error::not_found(format!("Described job {id} does not exist in the cluster."))
                .class(FlinkClass::GATEWAY_EXECUTION)
                .at(job.span)
        })?;
        if let Some(failure) = &found.1.last_failure {
            self.tell(&format!("The last failure of job '{}': {failure}", found.0.name));
        }
        job_table(found.0, &found.1)
    }

    /// Stops a job and waits until it has ended. A job that has ended is left alone.
    pub(in crate::session) async fn stop_job(
        &mut self,
        job: &Spanned<String>,
        with_savepoint: bool,
        drain: bool,
    ) -> Result<StatementResult> {
        let id = self.jobs.find(&job.value).map_err(|error| error.at(job.span))?;
        let found = self.jobs.get(id).ok_or_else(|| no_such_job(id).at(job.span))?;
        if with_savepoint {
            return self.stop_with_savepoint(&found, drain).await.map_err(|error| error.at(job.span));
        }
        match self.jobs.handle(id) {
            Some(handle) => {
                if let Some(path) = handle.stop(StopMode::Finish).await? {
                    self.tell(&format!("The last checkpoint of job '{}' is {}", found.name, path.display()));
                }
            }
            None => self.stop_batch(id).await?,
        }
        Ok(StatementResult::Done)
    }

    /// Stops a job with a savepoint and answers with its path.
    async fn stop_with_savepoint(&self, job: &JobSummary, drain: bool) -> Result<StatementResult> {
        let folder = savepoint_folder(&self.config)?;
        let handle = self.jobs.handle(job.id).ok_or_else(|| {
            Error::unsupported(format!("job {} is a batch job, which has no savepoints", job.id))
                .hint("Stop the job without WITH SAVEPOINT.")
        })?;
        match handle.stop(StopMode::Savepoint { folder, drain }).await? {
            Some(path) => text_table("savepoint path", [path.display().to_string()]),
            None => Err(Error::validation(format!(
                "Could not stop job {} with savepoint: it is {}",
                job.id,
                handle.status()
            ))
            .class(FlinkClass::GATEWAY_EXECUTION)
            .hint("Only a job that runs has a state to save.")),
        }
    }

    /// Stops a batch job and waits until it has ended.
    async fn stop_batch(&mut self, id: JobId) -> Result<()> {
        self.jobs.stop_batch(id);
        match self.running.iter().position(|(running, _)| *running == id) {
            Some(at) => self.finish_job(at).await,
            None => Ok(()),
        }
    }
}

/// Makes Flink's four columns of jobs, which are empty in rows that belong to the job above them.
fn job_columns(jobs: &[Option<JobSummary>]) -> Vec<AnswerColumn> {
    let jobs = || jobs.iter().map(Option::as_ref);
    vec![
        AnswerColumn::texts("job id", jobs().map(|job| job.map(|job| job.id.to_string()))),
        AnswerColumn::texts("job name", jobs().map(|job| job.map(|job| &job.name))),
        AnswerColumn::texts("status", jobs().map(|job| job.map(|job| job.status.to_string()))),
        AnswerColumn::optional_instants(
            "start time",
            jobs().map(|job| job.map(|job| job.start_time.timestamp_millis())),
        ),
    ]
}

/// Makes the answer of DESCRIBE JOB: one row of the job, with its restarts and last checkpoint, then one for each operator.
fn job_table(job: JobSummary, metrics: &JobMetrics) -> Result<StatementResult> {
    let count = metrics.operators.len();
    let mut jobs = vec![Some(job)];
    jobs.resize(count + 1, None);
    let of_job = |number: Option<u64>| std::iter::once(number).chain(std::iter::repeat_n(None, count));
    let of_operators = |number: &dyn Fn(&OperatorMetrics) -> u64| {
        let numbers: Vec<Option<u64>> = metrics.operators.iter().map(|one| Some(number(one))).collect();
        std::iter::once(None).chain(numbers)
    };
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut columns = job_columns(&jobs);
    columns.push(AnswerColumn::numbers("restarts", of_job(Some(metrics.restart_count))));
    columns.push(AnswerColumn::numbers("checkpoint", of_job(metrics.last_checkpoint)));
    let time = std::iter::once(metrics.last_checkpoint_time_ms).chain(std::iter::repeat_n(None, count));
    columns.push(AnswerColumn::optional_instants("checkpoint time", time));
    let duration = metrics.last_checkpoint_duration.map(millis);
    columns.push(AnswerColumn::numbers("checkpoint ms", of_job(duration)));
    columns.push(AnswerColumn::numbers("checkpoint bytes", of_job(metrics.last_checkpoint_bytes)));
    let names = metrics.operators.iter().map(|operator| Some(operator.name.as_str()));
    columns.push(AnswerColumn::texts("operator", std::iter::once(None).chain(names)));
    columns.push(AnswerColumn::numbers("rows in", of_operators(&|one| one.rows_in)));
    columns.push(AnswerColumn::numbers("rows out", of_operators(&|one| one.rows_out)));
    columns.push(AnswerColumn::numbers("bytes in", of_operators(&|one| one.bytes_in)));
    columns.push(AnswerColumn::numbers("busy ms", of_operators(&|one| millis(one.busy))));
    columns.push(AnswerColumn::numbers("back-pressured ms", of_operators(&|one| millis(one.back_pressured))));
    columns.push(AnswerColumn::numbers("state bytes", of_operators(&|one| one.state_bytes)));
    if metrics.operators.iter().any(|operator| !operator.status.is_empty()) {
        let said: Vec<String> = metrics.operators.iter().map(status_text).collect();
        let said = said.iter().map(|text| Some(text.as_str()).filter(|text| !text.is_empty()));
        columns.push(AnswerColumn::texts("status", std::iter::once(None).chain(said)));
    }
    answer(columns)
}

/// Returns what a source or sink says of itself, in one line.
fn status_text(operator: &OperatorMetrics) -> String {
    let values: Vec<String> = operator.status.iter().map(|(name, value)| format!("{name} {value}")).collect();
    values.join(", ")
}
