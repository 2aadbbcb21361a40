//! The jobs of a session: what SHOW JOBS lists and STOP JOB stops. Whoever runs a job registers it here and reports its status.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use super::JobId;
use crate::error::{Error, FlinkClass, Result};
use crate::runtime::{JobHandle, JobStatus, StopMode};

/// A job as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// The number.
    pub id: JobId,
    /// The name: `pipeline.name`, or made from the targets.
    pub name: String,
    /// What it is doing.
    pub status: JobStatus,
    /// When it was started.
    pub start_time: DateTime<Utc>,
}

#[derive(Debug)]
struct Entry {
    summary: JobSummary,
    run: Run,
}

/// How a job runs.
#[derive(Debug)]
enum Run {
    /// As a batch, which hears this signal.
    Batch(Arc<Notify>),
    /// As a streaming job.
    Stream(JobHandle),
}

impl Entry {
    fn summary(&self) -> JobSummary {
        let status = match &self.run {
            Run::Batch(_) => self.summary.status,
            Run::Stream(handle) => handle.status(),
        };
        JobSummary { status, ..self.summary.clone() }
    }
}

/// The jobs of a session, in the order of their start.
#[derive(Debug, Default)]
pub struct JobRegistry(Mutex<Vec<Entry>>);

impl JobRegistry {
    fn with<T>(&self, run: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a streaming job that has started.
    pub(crate) fn add(&self, id: JobId, handle: JobHandle) {
        let name = handle.name().to_owned();
        let summary = JobSummary { id, name, status: handle.status(), start_time: Utc::now() };
        self.with(|jobs| jobs.push(Entry { summary, run: Run::Stream(handle) }));
    }

    /// Returns a streaming job.
    pub(crate) fn handle(&self, id: JobId) -> Option<JobHandle> {
        self.with(|jobs| {
            jobs.iter().find(|job| job.summary.id == id).and_then(|job| match &job.run {
                Run::Stream(handle) => Some(handle.clone()),
                Run::Batch(_) => None,
            })
        })
    }

    /// Asks all streaming jobs to stop at once.
    pub(crate) fn cancel_all(&self) {
        self.with(|jobs| {
            for job in jobs {
                if let Run::Stream(handle) = &job.run {
                    handle.cancel();
                }
            }
        });
    }

    /// Adds a batch job that starts now. The returned signal is given once, when the job is to stop.
    pub fn register(&self, name: impl Into<String>) -> (JobId, Arc<Notify>) {
        let id = JobId::random();
        let stop = Arc::new(Notify::new());
        let summary =
            JobSummary { id, name: name.into(), status: JobStatus::Running, start_time: Utc::now() };
        self.with(|jobs| jobs.push(Entry { summary, run: Run::Batch(Arc::clone(&stop)) }));
        (id, stop)
    }

    /// Reports what a batch job is doing. A job that has ended stays so.
    pub fn set_status(&self, id: JobId, status: JobStatus) {
        self.with(|jobs| {
            let job = jobs.iter_mut().find(|job| job.summary.id == id && !job.summary.status.is_final());
            if let Some(job) = job {
                job.summary.status = status;
            }
        });
    }

    /// Returns all jobs.
    pub fn list(&self) -> Vec<JobSummary> {
        self.with(|jobs| jobs.iter().map(Entry::summary).collect())
    }

    /// Returns a job.
    pub fn get(&self, id: JobId) -> Option<JobSummary> {
        self.with(|jobs| jobs.iter().find(|job| job.summary.id == id).map(Entry::summary))
    }

    /// Asks a job to stop; what it has read is still written. A job that has ended is left alone.
    ///
    /// # Errors
    /// There is no such job.
    pub fn stop(&self, id: JobId) -> Result<()> {
        self.with(|jobs| {
            let job = jobs.iter_mut().find(|job| job.summary.id == id);
            let job = job.ok_or_else(|| {
                Error::not_found(format!("Could not find Flink job ({id})")).class(FlinkClass::JOB_NOT_FOUND)
            })?;
            match &job.run {
                Run::Stream(handle) => handle.request_stop(StopMode::Finish),
                Run::Batch(stop) if !job.summary.status.is_final() => {
                    job.summary.status = JobStatus::Cancelling;
                    stop.notify_one();
                }
                Run::Batch(_) => {}
            }
            Ok(())
        })
    }
}

/// Reads the number of a job: 32 hex digits.
///
/// # Errors
/// The text is none; Flink's words, which name the first two characters that are no hex digits.
pub(super) fn parse_job_id(text: &str) -> Result<JobId> {
    let characters: Vec<char> = text.chars().collect();
    for pair in characters.chunks_exact(2) {
        if !pair.iter().all(char::is_ascii_hexdigit) {
            let pair: String = pair.iter().collect();
            return Err(Error::validation(format!("For input string: \"{pair}\" under radix 16"))
                .class(FlinkClass::NUMBER_FORMAT)
                .hint("A job's number has 32 hex digits; SHOW JOBS lists them."));
        }
    }
    let number = if text.len() == 32 { u128::from_str_radix(text, 16).ok() } else { None };
    number.map(JobId).ok_or_else(|| {
        Error::validation("Argument bytes must by an array of 16 bytes")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("A job's number has 32 hex digits; SHOW JOBS lists them.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_job_hears_of_it_and_an_ended_one_stays_ended() {
        let jobs = JobRegistry::default();
        let (id, _stop) = jobs.register("insert-into_c.d.t");
        jobs.stop(id).unwrap();
        assert_eq!(jobs.get(id).unwrap().status, JobStatus::Cancelling);
        jobs.set_status(id, JobStatus::Canceled);
        jobs.set_status(id, JobStatus::Running);
        assert_eq!(jobs.list()[0].status.to_string(), "CANCELED");
        assert!(jobs.stop(JobId(0)).unwrap_err().message().starts_with("Could not find Flink job (0000"));
    }

    #[test]
    fn job_numbers_are_32_hex_digits() {
        assert_eq!(parse_job_id("nope").unwrap_err().message(), "For input string: \"no\" under radix 16");
        assert!(parse_job_id("abcd").is_err());
        assert!(parse_job_id("").is_err());
        assert_eq!(parse_job_id("000000000000000000000000000000ff").unwrap(), JobId(255));
    }
}
