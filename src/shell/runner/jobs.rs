//! Jobs that go on when the statements are done: waiting for them, showing how far they are, and stopping them.

use std::time::{Duration, Instant};

use super::{Outcome, Runner};
use crate::error::{ErrorKind, Result};
use crate::session::{JobEnd, StoppedJob};
use crate::shell::progress::ProgressLines;

/// How often lines of progress are looked at.
const TICK: Duration = Duration::from_secs(1);

/// How often they are written where nothing can be painted over.
const LINES_PAUSE: Duration = Duration::from_secs(10);

/// How long jobs that were cancelled may take to let go of what they hold.
const CANCEL_WAIT: Duration = Duration::from_secs(2);

/// What ended a moment of waiting.
enum Moment {
    Ended(Result<()>),
    Interrupted,
    Tick,
}

impl Runner {
    /// Waits for running jobs and shows how far they are. The first Ctrl-C stops them.
    pub(crate) fn wait_for_jobs(&mut self) -> Outcome {
        let mut written = Instant::now();
        let mut progress = ProgressLines::new(&self.engine.running_jobs(), written);
        loop {
            let Runner { engine, runtime, interrupts, .. } = self;
            let moment = runtime.block_on(async {
                tokio::select! {
                    biased;
                    ended = engine.wait_for_jobs() => Moment::Ended(ended),
                    () = interrupts.raised() => Moment::Interrupted,
                    () = tokio::time::sleep(TICK) => Moment::Tick,
                }
            });
            if !matches!(moment, Moment::Tick) {
                self.console.paint(Vec::new());
            }
            match moment {
                Moment::Ended(ended) => return self.ended(ended),
                Moment::Interrupted => return self.stop_jobs(),
                // Nobody reads any more, which is how `| head` ends a program.
                Moment::Tick if self.console.is_broken() => return self.stop_jobs(),
                Moment::Tick if self.console.paints() => {
                    let lines = progress.lines(&self.engine.running_jobs(), Instant::now());
                    self.console.paint(lines);
                }
                Moment::Tick if written.elapsed() >= LINES_PAUSE => {
                    written = Instant::now();
                    for line in progress.lines(&self.engine.running_jobs(), written) {
                        self.console.note(&line);
                    }
                }
                Moment::Tick => {}
            }
        }
    }

    /// Stops running jobs with a last checkpoint and says how each can go on. Another Ctrl-C cancels them.
    pub(crate) fn stop_jobs(&mut self) -> Outcome {
        self.interrupts.reset();
        let count = self.engine.running_jobs().len();
        if count == 0 {
            return Outcome::Done;
        }
        let jobs = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
        self.console.note(&format!("Stopping {jobs} with a last checkpoint. Ctrl-C cancels at once."));
        let Runner { engine, runtime, interrupts, .. } = self;
        let stopped = runtime.block_on(async {
            tokio::select! {
                stopped = engine.stop_jobs() => Some(stopped),
                () = interrupts.raised() => None,
            }
        });
        let Some(stopped) = stopped else {
            self.cancel_jobs();
            return Outcome::Interrupted;
        };
        stopped.iter().for_each(|job| self.tell_stopped(job));
        // What failed has said so, but only when its end is waited for.
        let Runner { engine, runtime, .. } = self;
        let waited = runtime.block_on(async {
            tokio::time::timeout(CANCEL_WAIT, engine.wait_for_jobs()).await.unwrap_or(Ok(()))
        });
        let is_dropped = stopped.iter().any(|job| matches!(job.end, JobEnd::Dropped));
        match self.ended(waited) {
            Outcome::Done if stopped.iter().any(|job| matches!(job.end, JobEnd::Failed)) => Outcome::Failed,
            Outcome::Done if is_dropped => Outcome::Interrupted,
            outcome => outcome,
        }
    }

    /// Stops running jobs at once.
    pub(crate) fn cancel_jobs(&mut self) {
        self.engine.cancel_jobs();
        let Runner { engine, runtime, .. } = self;
        // Jobs that take longer are left behind, as after a crash.
        let _ = runtime.block_on(async { tokio::time::timeout(CANCEL_WAIT, engine.wait_for_jobs()).await });
        self.console.note(
            "The jobs are cancelled. SET 'lakehead.job.resume' = 'latest'; lets them go on from their last checkpoints, where they have any.",
        );
    }

    /// Says what became of a job.
    fn tell_stopped(&self, job: &StoppedJob) {
        let name = &job.name;
        let text = match &job.end {
            JobEnd::Resumable(path) => format!(
                "Job '{name}' is stopped. To go on from here: SET 'execution.state-recovery.path' = '{}';",
                path.display()
            ),
            JobEnd::Ended => format!(
                "Job '{name}' is stopped, and what it had read is written. It has no checkpoint to go on from: another run reads that again."
            ),
            JobEnd::Dropped => format!("Batch job '{name}' is cancelled. Nothing of it is written."),
            // It has said so itself.
            JobEnd::Failed => return,
        };
        self.console.note(&text);
    }

    /// Returns what the end of all jobs means.
    fn ended(&self, ended: Result<()>) -> Outcome {
        match ended {
            Ok(()) => Outcome::Done,
            Err(error) => {
                // A job says itself that it failed; only one that panicked could not.
                if error.kind() == ErrorKind::Internal {
                    self.report(error, None);
                }
                Outcome::Failed
            }
        }
    }
}
