//! Wishes to stop a job, and their answers.

use std::path::PathBuf;

use tokio::sync::{mpsc, oneshot};

use super::settings::StopMode;
use crate::error::{Error, Result};

/// A wish to stop a job.
#[derive(Debug)]
pub(super) struct StopRequest {
    /// How.
    pub(super) mode: StopMode,
    /// Gets the savepoint or last checkpoint once the job has ended; None where nobody waits.
    pub(super) answer: Option<oneshot::Sender<Result<Option<PathBuf>>>>,
}

/// The wishes to stop a job, as the job hears them.
#[derive(Debug)]
pub(super) struct Stops {
    requests: mpsc::Receiver<StopRequest>,
    /// Kept so that the channel never closes.
    _sender: mpsc::Sender<StopRequest>,
    waiting: Vec<oneshot::Sender<Result<Option<PathBuf>>>>,
    is_to_end: bool,
}

/// How many wishes may be underway.
const REQUESTS_MAX: usize = 16;

impl Stops {
    /// Creates the channel.
    pub(super) fn new() -> (mpsc::Sender<StopRequest>, Stops) {
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        (sender.clone(), Stops { requests, _sender: sender, waiting: Vec::new(), is_to_end: false })
    }

    /// Waits for the next wish. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self) -> StopMode {
        match self.requests.recv().await {
            Some(StopRequest { mode, answer }) => {
                self.waiting.extend(answer);
                // A job that cannot be saved goes on; otherwise a wish to stop stands, whatever happens.
                self.is_to_end |= !matches!(mode, StopMode::Savepoint { .. });
                mode
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until a job that does not run just now is to end. Savepoints are refused meanwhile: there is nothing to save.
    pub(super) async fn end(&mut self) {
        while let StopMode::Savepoint { .. } = self.next().await {
            self.refuse(
                &Error::unavailable("the job is being started again, and has no state to save until it runs")
                    .hint("Ask once more when the job runs."),
            );
        }
    }

    /// Returns whether the job was asked to end, so that it is not started again.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_to_end
    }

    /// Answers all who wait that the job goes on.
    pub(super) fn refuse(&mut self, error: &Error) {
        for answer in self.waiting.drain(..) {
            // Whoever asked may have gone.
            let _ = answer.send(Err(error.duplicate()));
        }
    }

    /// Answers all who wait, and those to come, that the job has ended.
    pub(super) fn answer_all(mut self, path: Option<PathBuf>) {
        self.requests.close();
        while let Ok(StopRequest { answer, .. }) = self.requests.try_recv() {
            self.waiting.extend(answer);
        }
        for answer in self.waiting {
            let _ = answer.send(Ok(path.clone()));
        }
    }
}
