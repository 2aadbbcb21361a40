//! What the user is told of a job beside the answer of the statement that started it: lines on standard error, so that they are
//! never taken for rows.

use super::{JobId, Session};
use crate::connector::{Boundedness, OutputStream};
use crate::error::{Error, Result, render};
use crate::options::{
    CHECKPOINTING_DIR, CHECKPOINTING_INTERVAL, JOB_RESUME, OptionDef, RECOVERY_PATH, STATE_TTL,
};
use crate::plan::{JobGraph, OperatorSpec};
use crate::runtime::{JobHandle, JobOrigin, JobSettings};

impl Session {
    /// Tells the user something.
    pub(super) fn tell(&self, text: &str) {
        self.output.print(OutputStream::Err, &format!("[INFO] {text}\n"));
    }

    /// Tells the user what he might not expect.
    pub(super) fn warn(&self, text: &str) {
        self.output.print(OutputStream::Err, &format!("[WARNING] {text}\n"));
    }

    /// Tells where a job that was started has its checkpoints, and what it goes on from.
    ///
    /// # Errors
    /// A setting does not fit.
    pub(super) fn tell_start(&mut self, job: &JobHandle, settings: &JobSettings) -> Result<()> {
        let interval = settings.checkpoints.as_ref().filter(|checkpoints| checkpoints.interval.is_some());
        if let Some(checkpoints) = interval
            && self.config.get_optional(&CHECKPOINTING_DIR)?.is_none()
            && !self.knows_checkpoint_folder
        {
            self.tell(&format!("Checkpoints are written to {}", checkpoints.folder.display()));
            self.knows_checkpoint_folder = true;
        }
        let name = job.name();
        match job.origin() {
            JobOrigin::Checkpoint(path) => {
                self.tell(&format!("Job '{name}' goes on from {}", path.display()));
            }
            JobOrigin::Nothing { left_alone: Some(path) } => self.tell(&format!(
                "Job '{name}' starts anew. An earlier one has left a checkpoint; to go on from it: SET '{}' = 'latest'; or SET '{}' = '{}';",
                JOB_RESUME.key(),
                RECOVERY_PATH.key(),
                path.display()
            )),
            JobOrigin::Nothing { left_alone: None } if settings.resumes_latest => {
                self.tell(&format!("Job '{name}' starts anew: there is no checkpoint of a job of that name"));
            }
            JobOrigin::Nothing { left_alone: None } => {}
        }
        if !self.config.get(&STATE_TTL)?.is_zero() {
            self.warn(&format!("State does not expire yet: '{}' is kept without effect", STATE_TTL.key()));
        }
        Ok(())
    }
}

/// Returns the warning that a job without checkpoints needs if it writes what is only visible with one.
pub(super) fn visibility_warning(graph: &JobGraph, settings: &JobSettings) -> Option<String> {
    let has_interval =
        settings.checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.interval.is_some());
    let is_endless = graph.nodes.iter().any(|node| match &node.spec {
        OperatorSpec::Source { table, .. } => table.source.boundedness() == Boundedness::Unbounded,
        _ => false,
    });
    if has_interval || !is_endless {
        return None;
    }
    let sinks = graph.nodes.iter().filter_map(|node| match &node.spec {
        OperatorSpec::Sink(spec) if spec.sink.commits_with_checkpoints() => Some(format!("'{}'", spec.name)),
        _ => None,
    });
    let sinks: Vec<String> = sinks.collect();
    (!sinks.is_empty()).then(|| {
        format!(
            "The job has no checkpoints, because '{}' is not set: what it writes to {} is not visible before the job ends or is stopped.",
            CHECKPOINTING_INTERVAL.key(),
            sinks.join(", ")
        )
    })
}

/// Words the failure of a job that runs in the background, as Flink's client words that of a statement.
pub(super) fn failure_lines(id: JobId, name: &str, error: &Error) -> String {
    let rendered = render(error, None, false);
    let mut lines = format!("[ERROR] Job {id} ({name}) failed. Reason:\n{}\n", rendered.reason);
    if !rendered.details.is_empty() {
        lines.push_str(&rendered.details);
        lines.push('\n');
    }
    lines
}
