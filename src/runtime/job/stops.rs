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
}

/// How many wishes may be underway.
const REQUESTS_MAX: usize = 16;

impl Stops {
    /// Creates the channel.
    pub(super) fn new() -> (mpsc::Sender<StopRequest>, Stops) {
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        (sender.clone(), Stops { requests, _sender: sender, waiting: Vec::new() })
    }

    /// Waits for the next wish. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self) -> StopMode {
        match self.requests.recv().await {
            Some(StopRequest { mode, answer }) => {
                self.waiting.extend(answer);
                mode
            }
            None => std::future::pending().await,
        }
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
