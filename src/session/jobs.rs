//! The jobs of a session: what SHOW JOBS lists and STOP JOB stops. Whoever runs a job registers it here and reports its status.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use super::JobId;
use crate::error::{Error, FlinkClass, Result};
use crate::runtime::{JobHandle, JobMetrics, JobStatus, OperatorMetrics};

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

/// What a job that still runs has done so far, in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobProgress {
    /// The number.
    pub id: JobId,
    /// The name.
    pub name: String,
    /// What it is doing.
    pub status: JobStatus,
    /// How many rows a streaming job has read, or a batch job has written.
    pub rows: u64,
    /// The number of the last checkpoint, and when it was complete.
    pub last_checkpoint: Option<(u64, DateTime<Utc>)>,
    /// How many bytes of their servers' logs its sources have not read, if they know.
    pub lag_bytes: Option<u64>,
}

/// How a job was stopped.
#[derive(Debug)]
pub struct StoppedJob {
    /// The name.
    pub name: String,
    /// What became of it.
    pub end: JobEnd,
}

/// What became of a job that was stopped.
#[derive(Debug)]
pub enum JobEnd {
    /// It has written what it had read; this checkpoint is where it can go on.
    Resumable(PathBuf),
    /// It has written what it had read, and there is no checkpoint.
    Ended,
    /// It was a batch job, and nothing of it is written.
    Dropped,
    /// It failed, which it has reported.
    Failed,
}

#[derive(Debug)]
struct Entry {
    summary: JobSummary,
    /// The tables that hold all that it writes only when it has finished, which it will.
    unfinished: Vec<String>,
    run: Run,
}

/// How a job runs.
#[derive(Debug)]
enum Run {
    /// As a batch.
    Batch(BatchRun),
    /// As a streaming job.
    Stream(JobHandle),
}

/// What the registry shares with a batch job.
#[derive(Debug, Clone)]
pub(crate) struct BatchRun {
    /// Is given once, when the job is to stop.
    pub(crate) stop: Arc<Notify>,
    /// The targets, and how many rows each was given.
    pub(crate) targets: Vec<(String, Arc<AtomicU64>)>,
}

impl BatchRun {
    /// Prepares a job that writes these tables.
    pub(crate) fn new(targets: Vec<String>) -> BatchRun {
        let targets = targets.into_iter().map(|target| (target, Arc::default())).collect();
        BatchRun { stop: Arc::default(), targets }
    }
}

impl Entry {
    fn summary(&self) -> JobSummary {
        let status = match &self.run {
            Run::Batch(_) => self.summary.status,
            Run::Stream(handle) => handle.status(),
        };
        JobSummary { status, ..self.summary.clone() }
    }

    fn metrics(&self) -> JobMetrics {
        match &self.run {
            Run::Batch(run) => {
                let sink = |(name, rows): &(String, Arc<AtomicU64>)| OperatorMetrics {
                    name: format!("Sink: {name}"),
                    rows_in: rows.load(Ordering::Relaxed),
                    ..OperatorMetrics::default()
                };
                JobMetrics { operators: run.targets.iter().map(sink).collect(), ..JobMetrics::default() }
            }
            Run::Stream(handle) => handle.metrics(),
        }
    }

    fn progress(&self) -> JobProgress {
        let JobSummary { id, name, status, .. } = self.summary();
        let metrics = self.metrics();
        let rows = match &self.run {
            Run::Batch(_) => metrics.operators.iter().map(|sink| sink.rows_in).sum(),
            Run::Stream(_) => metrics.rows_read(),
        };
        let time = metrics.last_checkpoint_time_ms.and_then(DateTime::from_timestamp_millis);
        JobProgress {
            id,
            name,
            status,
            rows,
            last_checkpoint: metrics.last_checkpoint.zip(time),
            lag_bytes: metrics.lag_bytes(),
        }
    }
}

/// The jobs of a session, in the order of their start.
#[derive(Debug, Default)]
pub struct JobRegistry(Mutex<Vec<Entry>>);

impl JobRegistry {
    fn with<T>(&self, run: impl FnOnce(&mut Vec<Entry>) -> T) -> T {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a name as it is, or with a number behind it while a job that runs has it; with `keeps_finished` those that have come to
    /// their end keep theirs, too.
    pub(crate) fn free_name(&self, name: String, keeps_finished: bool) -> String {
        self.with(|jobs| {
            let keeps = |status| keeps_finished && status == JobStatus::Finished;
            let is_taken = |name: &str| {
                let mut jobs = jobs.iter().map(Entry::summary);
                jobs.any(|job| job.name == name && (!job.status.is_final() || keeps(job.status)))
            };
            if !is_taken(&name) {
                return name;
            }
            let mut names = (2..).map(|copy: usize| format!("{name}-{copy}"));
            names.find(|name| !is_taken(name)).unwrap_or(name)
        })
    }

    /// Adds a streaming job that has started. One that goes on from an earlier run takes that run's place.
    /// `unfinished` are the tables that it writes if it ends by itself.
    pub(crate) fn add(&self, handle: JobHandle, unfinished: Vec<String>) {
        let (id, name) = (JobId(handle.id()), handle.name().to_owned());
        let summary = JobSummary { id, name, status: handle.status(), start_time: Utc::now() };
        self.with(|jobs| {
            jobs.retain(|job| job.summary.id != id);
            jobs.push(Entry { summary, unfinished, run: Run::Stream(handle) });
        });
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

    /// Returns the streaming jobs that still run.
    pub(crate) fn live_handles(&self) -> Vec<JobHandle> {
        self.with(|jobs| {
            let handles = jobs.iter().filter_map(|job| match &job.run {
                Run::Stream(handle) if !handle.status().is_final() => Some(handle.clone()),
                _ => None,
            });
            handles.collect()
        })
    }

    /// Returns a job that has still to finish writing one of these tables, and that table.
    pub(super) fn unfinished_writer_of(&self, tables: &[String]) -> Option<(String, String)> {
        self.with(|jobs| {
            let mut live = jobs.iter().filter(|job| !job.summary().status.is_final());
            live.find_map(|job| {
                let table = job.unfinished.iter().find(|table| tables.contains(table))?;
                Some((job.summary.name.clone(), table.clone()))
            })
        })
    }

    /// Adds a batch job that starts now.
    pub(crate) fn register(&self, name: impl Into<String>, run: BatchRun) -> JobId {
        let id = JobId::random();
        let summary =
            JobSummary { id, name: name.into(), status: JobStatus::Running, start_time: Utc::now() };
        let unfinished = run.targets.iter().map(|(target, _)| target.clone()).collect();
        self.with(|jobs| jobs.push(Entry { summary, unfinished, run: Run::Batch(run) }));
        id
    }

    /// Reports what a batch job is doing. A job that has ended stays so.
    pub(crate) fn set_status(&self, id: JobId, status: JobStatus) {
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

    /// Returns the job that a text means: one of that name, the live one or else the last, or the one of that number.
    ///
    /// # Errors
    /// No job has that name, and the text is no number; Flink's words, which know numbers only.
    pub(super) fn find(&self, text: &str) -> Result<JobId> {
        let named = self.with(|jobs| {
            let named = || jobs.iter().rev().map(Entry::summary).filter(|job| job.name == text);
            named().find(|job| !job.status.is_final()).or_else(|| named().next()).map(|job| job.id)
        });
        named.map_or_else(|| parse_job_id(text), Ok)
    }

    /// Returns a job.
    pub fn get(&self, id: JobId) -> Option<JobSummary> {
        self.with(|jobs| jobs.iter().find(|job| job.summary.id == id).map(Entry::summary))
    }

    /// Returns what a job has done so far.
    pub(crate) fn metrics(&self, id: JobId) -> Option<JobMetrics> {
        self.with(|jobs| jobs.iter().find(|job| job.summary.id == id).map(Entry::metrics))
    }

    /// Returns how far the jobs are that still run.
    pub fn progress(&self) -> Vec<JobProgress> {
        let live = |job: &&Entry| !job.summary().status.is_final();
        self.with(|jobs| jobs.iter().filter(live).map(Entry::progress).collect())
    }

    /// Asks a batch job to stop; what it has read is still written. A job that has ended is left alone.
    pub(crate) fn stop_batch(&self, id: JobId) {
        self.with(|jobs| {
            let job = jobs.iter_mut().find(|job| job.summary.id == id && !job.summary.status.is_final());
            if let Some(Entry { summary, run: Run::Batch(run), .. }) = job {
                summary.status = JobStatus::Cancelling;
                run.stop.notify_one();
            }
        });
    }
}

/// Makes the error about a job that is not there.
pub(super) fn no_such_job(id: JobId) -> Error {
    Error::not_found(format!("Could not find Flink job ({id})"))
        .class(FlinkClass::JOB_NOT_FOUND)
        .hint("SHOW JOBS lists the jobs of this session.")
}

/// Reads the number of a job: 32 hex digits.
///
/// # Errors
/// The text is none; Flink's words, which name the first two characters that are no hex digits.
fn parse_job_id(text: &str) -> Result<JobId> {
    let characters: Vec<char> = text.chars().collect();
    for pair in characters.chunks_exact(2) {
        if !pair.iter().all(char::is_ascii_hexdigit) {
            let pair: String = pair.iter().collect();
            return Err(Error::validation(format!("For input string: \"{pair}\" under radix 16"))
                .class(FlinkClass::NUMBER_FORMAT)
                .hint(
                    "A job is known by its name or by its number of 32 hex digits; SHOW JOBS lists them.",
                ));
        }
    }
    let number = if text.len() == 32 { u128::from_str_radix(text, 16).ok() } else { None };
    number.map(JobId).ok_or_else(|| {
        Error::validation("Argument bytes must by an array of 16 bytes")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("A job is known by its name or by its number of 32 hex digits; SHOW JOBS lists them.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_job_hears_of_it_and_an_ended_one_stays_ended() {
        let jobs = JobRegistry::default();
        let id = jobs.register("insert-into_c.d.t", BatchRun::new(Vec::new()));
        jobs.stop_batch(id);
        assert_eq!(jobs.get(id).unwrap().status, JobStatus::Cancelling);
        jobs.set_status(id, JobStatus::Canceled);
        jobs.set_status(id, JobStatus::Running);
        assert_eq!(jobs.list()[0].status.to_string(), "CANCELED");
        assert!(jobs.progress().is_empty());
    }

    #[test]
    fn a_table_is_unfinished_as_long_as_a_job_writes_it() {
        let jobs = JobRegistry::default();
        let tables = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let id = jobs.register("a", BatchRun::new(tables(&["c.d.t", "c.d.u"])));
        let of_table = Some(("a".to_owned(), "c.d.u".to_owned()));
        assert_eq!(jobs.unfinished_writer_of(&tables(&["c.d.s", "c.d.u"])), of_table);
        assert_eq!(jobs.unfinished_writer_of(&tables(&["c.d.s"])), None);
        jobs.set_status(id, JobStatus::Finished);
        assert_eq!(jobs.unfinished_writer_of(&tables(&["c.d.t", "c.d.u"])), None);
    }

    #[test]
    fn a_second_live_job_of_a_name_gets_a_number() {
        let jobs = JobRegistry::default();
        assert_eq!(jobs.free_name("a".to_owned(), false), "a");
        let first = jobs.register("a", BatchRun::new(Vec::new()));
        assert_eq!(jobs.free_name("a".to_owned(), false), "a-2");
        jobs.register("a-2", BatchRun::new(Vec::new()));
        assert_eq!(jobs.free_name("a".to_owned(), false), "a-3");
        jobs.set_status(first, JobStatus::Finished);
        assert_eq!(jobs.free_name("a".to_owned(), false), "a");
        assert_eq!(jobs.free_name("a".to_owned(), true), "a-3");
    }

    #[test]
    fn a_job_is_found_by_its_name_the_live_one_first() {
        let jobs = JobRegistry::default();
        let first = jobs.register("a", BatchRun::new(Vec::new()));
        jobs.set_status(first, JobStatus::Finished);
        let second = jobs.register("a", BatchRun::new(Vec::new()));
        let third = jobs.register("a", BatchRun::new(Vec::new()));
        jobs.set_status(third, JobStatus::Finished);
        assert_eq!(jobs.find("a").unwrap(), second);
        jobs.set_status(second, JobStatus::Finished);
        assert_eq!(jobs.find("a").unwrap(), third);
        assert_eq!(jobs.find(&first.to_string()).unwrap(), first);
        assert!(jobs.find("nope").is_err());
    }

    #[test]
    fn job_numbers_are_32_hex_digits() {
        assert_eq!(parse_job_id("nope").unwrap_err().message(), "For input string: \"no\" under radix 16");
        assert!(parse_job_id("abcd").is_err());
        assert!(parse_job_id("").is_err());
        assert_eq!(parse_job_id("000000000000000000000000000000ff").unwrap(), JobId(255));
    }
}
