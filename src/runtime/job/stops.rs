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
    pub(super) answer: Option<Answer>,
}

/// The wishes to stop a job, as the job hears them.
#[derive(Debug)]
pub(super) struct Stops {
    requests: mpsc::UnboundedReceiver<StopRequest>,
    /// Kept so that the channel never closes.
    _sender: mpsc::UnboundedSender<StopRequest>,
    /// Who waits for an answer, and how the job was to stop for him.
    waiting: Vec<(StopMode, Answer)>,
    is_to_end: bool,
}

/// Where one who waits gets his answer.
type Answer = oneshot::Sender<Result<Option<PathBuf>>>;

impl Stops {
    /// Creates the channel. It has no bounds: each wish is somebody's, and one that is lost would leave a job running.
    pub(super) fn new() -> (mpsc::UnboundedSender<StopRequest>, Stops) {
        let (sender, requests) = mpsc::unbounded_channel();
        (sender.clone(), Stops { requests, _sender: sender, waiting: Vec::new(), is_to_end: false })
    }

    /// Waits for the next wish. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self) -> StopMode {
        match self.requests.recv().await {
            Some(StopRequest { mode, answer }) => {
                self.waiting.extend(answer.map(|answer| (mode.clone(), answer)));
                // A job that cannot be saved goes on; otherwise a wish to stop stands, whatever happens.
                self.is_to_end |= !matches!(mode, StopMode::Savepoint { .. });
                mode
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until a job that does not run just now is to end. Savepoints are refused meanwhile: there is nothing to save.
    pub(super) async fn end(&mut self) -> StopMode {
        loop {
            let mode = self.next().await;
            let StopMode::Savepoint { .. } = mode else { return mode };
            self.refuse_savepoints(
                &Error::unavailable("the job is being started again, and has no state to save until it runs")
                    .hint("Ask once more when the job runs."),
            );
        }
    }

    /// Returns whether the job was asked to end, so that it is not started again.
    pub(super) fn is_to_end(&self) -> bool {
        self.is_to_end
    }

    /// Answers all who wait that the job has failed.
    pub(super) fn refuse_all(&mut self, error: &Error) {
        self.refuse_where(|_| true, error);
    }

    /// Answers all who wait for a savepoint that there is none. Who wants the job to end waits on.
    pub(super) fn refuse_savepoints(&mut self, error: &Error) {
        self.refuse_where(|mode| matches!(mode, StopMode::Savepoint { .. }), error);
    }

    /// Answers those who wait for the job to stop in just this way.
    pub(super) fn refuse(&mut self, mode: &StopMode, error: &Error) {
        self.refuse_where(|waiting| waiting == mode, error);
    }

    fn refuse_where(&mut self, is_refused: impl Fn(&StopMode) -> bool, error: &Error) {
        for (_, answer) in self.waiting.extract_if(.., |(mode, _)| is_refused(mode)) {
            // Whoever asked may have gone.
            let _ = answer.send(Err(error.duplicate()));
        }
    }

    /// Answers all who wait, and those to come, that the job has ended.
    pub(super) fn answer_all(mut self, path: Option<PathBuf>) {
        self.requests.close();
        while let Ok(StopRequest { mode, answer }) = self.requests.try_recv() {
            self.waiting.extend(answer.map(|answer| (mode, answer)));
        }
        for (_, answer) in self.waiting {
            let _ = answer.send(Ok(path.clone()));
        }
    }
}
