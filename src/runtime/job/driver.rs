//! The life of a job: run after run until it ends, and what remains then.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::attempt::{Attempt, AttemptEnd, Job, discard_unfinished, forget_commits, forget_readers};
use super::coordinator::discard;
use super::handle::Progress;
use super::restart::Restarts;
use super::settings::{JobStatus, StopMode};
use super::stops::Stops;
use crate::error::{Error, ErrorKind, Result};
use crate::runtime::checkpoint::CheckpointSummary;

/// Drives a job to its end.
pub(super) struct Driver {
    /// What is driven.
    pub(super) job: Job,
    /// Where its status is told.
    pub(super) progress: Progress,
    /// Says when it is to stop.
    pub(super) stops: Stops,
    /// Hears when the job runs, or why it cannot.
    pub(super) ready: Option<oneshot::Sender<Result<()>>>,
}

impl Driver {
    /// Runs the job until it has ended for good.
    pub(super) async fn run(mut self) {
        let mut is_restart = false;
        let mut restarts = Restarts::new(self.job.settings.restart.clone());
        let mut start = self.job.settings.restore.clone();
        let ended = loop {
            let error = match self.attempt(start.clone(), is_restart).await {
                Ok(end) => break Ok(end),
                Err(error) => error,
            };
            match self.next_start(&error, &mut restarts).await {
                Err(error) => break Err(error),
                Ok((delay, from)) => {
                    self.tell_restart(&error);
                    self.stops.refuse_savepoints(&error);
                    start = from.or(start);
                    is_restart = true;
                    self.tell_ready(Ok(()));
                    self.progress.set(JobStatus::Restarting);
                    match self.stopped_within(delay).await {
                        None => {}
                        Some(StopMode::Cancel) => break Ok(AttemptEnd::Stopped(StopMode::Cancel, None)),
                        // It cannot write what it has read, and that is why it ends.
                        Some(_) => break Err(error),
                    }
                }
            }
        };
        self.end(ended).await;
    }

    /// Runs the job once, from a checkpoint if one is given.
    async fn attempt(&mut self, start: Option<PathBuf>, is_restart: bool) -> Result<AttemptEnd> {
        self.progress.set(JobStatus::Initializing);
        let mut attempt = tokio::select! {
            opened = Attempt::open(&self.job, start.as_deref(), is_restart) => opened?,
            _ = self.stops.end() => return Ok(AttemptEnd::Stopped(StopMode::Cancel, None)),
        };
        self.progress.set(JobStatus::Running);
        if let Some(ready) = self.ready.take() {
            // Whoever started the job may have gone.
            let _ = ready.send(Ok(()));
        }
        let ended = attempt.run(&mut self.stops).await;
        self.progress.set(match &ended {
            Ok(AttemptEnd::Stopped(..)) => JobStatus::Cancelling,
            Ok(AttemptEnd::Finished) => JobStatus::Running,
            Err(_) => JobStatus::Failing,
        });
        attempt.close().await;
        ended
    }

    /// Decides what follows a failure: a delay and where to start from, or the end.
    async fn next_start(
        &self,
        error: &Error,
        restarts: &mut Restarts,
    ) -> Result<(Duration, Option<PathBuf>)> {
        if error.kind() != ErrorKind::Unavailable || self.job.reader.is_some() || self.stops.is_to_end() {
            return Err(error.duplicate());
        }
        let Some(delay) = restarts.next_delay(Instant::now()) else { return Err(error.duplicate()) };
        if self.job.is_beyond_checkpoints.load(Ordering::Acquire) {
            return Err(error.duplicate().hint(
                "The job was not started again: it has written what no checkpoint covers. SET 'execution.checkpointing.interval' to have checkpoints.",
            ));
        }
        let latest = match &self.job.store {
            Some(store) => store.lock().await.latest(),
            None => None,
        };
        Ok((delay, latest))
    }

    /// Tells that the job starts again, and why. One that does so again and again for the same reason says it less and less often.
    fn tell_restart(&self, error: &Error) {
        let reason = error.to_string();
        let mut is_told = false;
        self.job.update_metrics(|metrics| {
            metrics.restart_count += 1;
            let is_new = metrics.last_failure.as_ref() != Some(&reason);
            is_told = is_new || metrics.restart_count.is_power_of_two();
            metrics.last_failure = Some(reason.clone());
        });
        let name = &self.job.settings.name;
        info!(job = %name, %error, hint = error.hint_text(), "the job starts again");
        if is_told {
            self.job.output.warn(&format!("Job '{name}' starts again: {reason}"));
        }
    }

    /// Waits; returns how the job was asked to stop meanwhile.
    async fn stopped_within(&mut self, delay: Duration) -> Option<StopMode> {
        tokio::select! {
            () = sleep(delay) => None,
            mode = self.stops.end() => Some(mode),
        }
    }

    fn tell_ready(&mut self, how: Result<()>) {
        if let Some(ready) = self.ready.take() {
            // Whoever started the job may have gone.
            let _ = ready.send(how);
        }
    }

    /// Tidies up and tells everybody how the job has ended.
    async fn end(mut self, ended: Result<AttemptEnd>) {
        let store = self.job.store.take();
        let checkpoints = self.job.settings.checkpoints.as_ref();
        let is_kept = match &ended {
            // A script that is run again is not to repeat the input that it has finished.
            Ok(AttemptEnd::Finished | AttemptEnd::Stopped(StopMode::Savepoint { .. }, _)) => {
                self.job.settings.resume.goes_on()
            }
            Ok(AttemptEnd::Stopped(..)) => {
                checkpoints.is_some_and(|checkpoints| checkpoints.is_kept_on_cancel)
            }
            Err(_) => true,
        };
        let latest = match &store {
            Some(store) => store.lock().await.latest(),
            None => None,
        };
        // Nothing goes on from what the writers were at. A job that has failed without a checkpoint of its own may have begun with
        // another's, of which something is still to be committed.
        let leaves_unfinished = match &ended {
            Ok(AttemptEnd::Stopped(StopMode::Cancel, _)) => !is_kept,
            Ok(_) => false,
            Err(_) => latest.is_none() && self.job.settings.restore.is_none(),
        };
        let path = match &ended {
            Ok(AttemptEnd::Stopped(StopMode::Savepoint { .. }, summary)) => path_of(summary.as_ref()),
            Ok(AttemptEnd::Stopped(_, summary)) if is_kept => path_of(summary.as_ref()).or(latest),
            _ => None,
        };
        // Also one that is kept is let go of before the job has ended: the next one locks the same folder.
        let store = match store {
            Some(store) => store.into_inner().await,
            None => None,
        };
        match store {
            Some(store) if !is_kept => discard(store).await,
            kept => drop(kept),
        }
        if leaves_unfinished && !self.job.open_commit.is_open() {
            discard_unfinished(&self.job).await;
        }
        if !is_kept && !matches!(&ended, Ok(AttemptEnd::Stopped(StopMode::Savepoint { .. }, _))) {
            forget_readers(&self.job).await;
        }
        if !is_kept && let Err(error) = forget_commits(&self.job).await {
            // Only traces of what was committed stay: no reason to call the job failed.
            warn!(job = %self.job.settings.name, %error, "a sink could not be told that the job has ended");
        }
        let (status, failure) = match ended {
            Ok(AttemptEnd::Finished | AttemptEnd::Stopped(StopMode::Savepoint { .. }, _)) => {
                (JobStatus::Finished, None)
            }
            Ok(AttemptEnd::Stopped(..)) => (JobStatus::Canceled, None),
            Err(error) => (JobStatus::Failed, Some(error)),
        };
        info!(job = %self.job.settings.name, %status, "the job has ended");
        match &failure {
            Some(error) => {
                self.job.update_metrics(|metrics| metrics.last_failure = Some(error.to_string()));
                self.tell_ready(Err(error.duplicate()));
                self.stops.refuse_all(error);
            }
            None => self.tell_ready(Ok(())),
        }
        let for_reader = failure.as_ref().map(Error::duplicate);
        self.progress.end(status, failure);
        self.stops.answer_all(path);
        if let (Some(reader), Some(error)) = (self.job.reader, for_reader) {
            // A reader that has gone does not want to know.
            let _ = reader.send(Err(error)).await;
        }
    }
}

fn path_of(summary: Option<&CheckpointSummary>) -> Option<PathBuf> {
    summary.map(|summary| summary.path.clone())
}
