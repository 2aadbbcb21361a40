//! What the user is told of a job beside the answer of the statement that started it: lines on standard error, so that they are
//! never taken for rows.

use std::path::PathBuf;

use super::{JobId, Session};
use crate::connector::Boundedness;
use crate::error::{Error, Result, render};
use crate::options::{
    CHECKPOINTING_DIR, CHECKPOINTING_INTERVAL, DML_SYNC, JOB_RESUME, JobResume, OptionDef, RECOVERY_PATH,
    STATE_TTL,
};
use crate::plan::{JobGraph, OperatorSpec, SinkSpec};
use crate::runtime::{JobHandle, JobOrigin, JobSettings};

/// What is told of a job's settings once it has started.
pub(super) struct StartNotes {
    /// The folder of its checkpoints, if nobody has named it.
    folder: Option<PathBuf>,
    /// Whether state is to expire.
    has_ttl: bool,
}

impl Session {
    /// Tells the user something.
    pub(super) fn tell(&self, text: &str) {
        self.output.tell(text);
    }

    /// Tells the user what he might not expect.
    pub(super) fn warn(&self, text: &str) {
        self.output.warn(text);
    }

    /// Tells that a job has still to finish writing a table whose rows of now are about to be read.
    pub(super) fn tell_of_writers(&self, tables: &[String]) {
        if let Some((job, table)) = self.jobs.unfinished_writer_of(tables) {
            self.tell(&format!(
                "Job '{job}' still writes to '{table}': rows that it has not committed are not read. To let an INSERT wait for its job: SET '{}' = 'true';",
                DML_SYNC.key()
            ));
        }
    }

    /// Prepares what is told once a job has started.
    ///
    /// # Errors
    /// A setting does not fit.
    pub(super) fn start_notes(&self, settings: &JobSettings) -> Result<StartNotes> {
        let interval = settings.checkpoints.as_ref().filter(|checkpoints| checkpoints.interval.is_some());
        let is_named = self.config.get_optional(&CHECKPOINTING_DIR)?.is_some();
        Ok(StartNotes {
            folder: interval.filter(|_| !is_named).map(|checkpoints| checkpoints.folder.clone()),
            has_ttl: !self.config.get(&STATE_TTL)?.is_zero(),
        })
    }

    /// Tells where a job that was started has its checkpoints, and what it goes on from.
    pub(super) fn tell_start(&mut self, job: &JobHandle, settings: &JobSettings, notes: &StartNotes) {
        if let Some(folder) = notes.folder.as_ref().filter(|_| !self.knows_checkpoint_folder) {
            self.tell(&format!("Checkpoints are written to {}", folder.display()));
            self.knows_checkpoint_folder = true;
        }
        let name = job.name();
        match job.origin() {
            JobOrigin::Checkpoint(path) => {
                self.tell(&format!("Job '{name}' goes on from {}", path.display()));
            }
            JobOrigin::Nothing { .. } if settings.resume == JobResume::Resnapshot => self.tell(&format!(
                "Job '{name}' starts anew, as '{}' = 'resnapshot' asks for: what its targets hold is replaced by what its sources hold now",
                JOB_RESUME.key()
            )),
            JobOrigin::Nothing { left_alone: Some(path) } => self.tell(&format!(
                "Job '{name}' starts anew. An earlier one has left a checkpoint; to go on from it: SET '{}' = 'latest'; or SET '{}' = '{}';",
                JOB_RESUME.key(),
                RECOVERY_PATH.key(),
                path.display()
            )),
            JobOrigin::Nothing { left_alone: None } if settings.resume.goes_on() => {
                self.tell(&format!("Job '{name}' starts anew: there is no checkpoint of a job of that name"));
            }
            JobOrigin::Nothing { left_alone: None } => {}
        }
        if notes.has_ttl {
            self.warn(&format!("State does not expire yet: '{}' is kept without effect", STATE_TTL.key()));
        }
    }
}

/// Returns whether a job runs until it is stopped.
pub(super) fn is_endless(graph: &JobGraph) -> bool {
    graph.nodes.iter().any(|node| match &node.spec {
        OperatorSpec::Source { table, .. } => table.source.boundedness() == Boundedness::Unbounded,
        _ => false,
    })
}

/// Returns the warning that a job without checkpoints needs if it writes what is only visible with one.
pub(super) fn visibility_warning(graph: &JobGraph, settings: &JobSettings) -> Option<String> {
    let has_interval =
        settings.checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.interval.is_some());
    if has_interval || !is_endless(graph) {
        return None;
    }
    let sinks = sinks(graph).filter(|spec| spec.sink.commits_with_checkpoints());
    let sinks: Vec<String> = sinks.map(|spec| format!("'{}'", spec.name)).collect();
    (!sinks.is_empty()).then(|| {
        format!(
            "The job has no checkpoints, because '{}' is not set: what it writes to {} is not visible before the job ends or is stopped.",
            CHECKPOINTING_INTERVAL.key(),
            sinks.join(", ")
        )
    })
}

/// Checks that what was written before can be replaced, if that is asked for.
///
/// # Errors
/// A table's connector cannot do it.
pub(super) fn check_replaceable(graph: &JobGraph, settings: &JobSettings) -> Result<()> {
    if settings.resume != JobResume::Resnapshot {
        return Ok(());
    }
    match sinks(graph).find(|spec| !spec.sink.can_replace_content()) {
        None => Ok(()),
        Some(spec) => Err(Error::unsupported(format!(
            "'{}' = 'resnapshot' replaces what '{}' holds, which its connector cannot do",
            JOB_RESUME.key(),
            spec.name
        ))
        .hint(format!("Empty the table, and SET '{}' = 'none';", JOB_RESUME.key()))),
    }
}

/// Returns the warnings that a job needs which reads tables anew from their beginning into tables that hold rows: what has gone from the
/// sources meanwhile stays.
pub(super) fn leftover_warnings(graph: &JobGraph) -> Vec<String> {
    let reads_anew = graph.nodes.iter().any(|node| match &node.spec {
        // Only changes can tell that a row has gone.
        OperatorSpec::Source { table, .. } => table.source.group().is_some(),
        _ => false,
    });
    let with_rows = sinks(graph).filter(|spec| reads_anew && spec.sink.holds_rows() == Some(true));
    with_rows
        .map(|spec| {
            format!(
                "'{}' holds rows already, and the job reads its sources from their beginning: rows that have gone there stay here. To replace what the table holds: SET '{1}' = 'resnapshot'; to go on from the last checkpoint: SET '{1}' = 'latest'; or, where the server does not have the changes since any more: SET '{1}' = 'skip';",
                spec.name,
                JOB_RESUME.key()
            )
        })
        .collect()
}

fn sinks(graph: &JobGraph) -> impl Iterator<Item = &SinkSpec> {
    graph.nodes.iter().filter_map(|node| match &node.spec {
        OperatorSpec::Sink(spec) => Some(spec),
        _ => None,
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
