//! What a job is started with, and what can be said of it while it runs: plain data that the session fills in and shows.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::connector::LAG_BYTES;
use crate::options::JobResume;

/// What a job is started with.
#[derive(Debug, Clone)]
pub(crate) struct JobSettings {
    /// The number, which names the job's folder of checkpoints.
    pub(crate) id: u128,
    /// The name.
    pub(crate) name: String,
    /// How many workers run the graph.
    pub(crate) workers: usize,
    /// Whether every row is an epoch of its own, so that row kinds are Flink's one by one. Only with one worker.
    pub(crate) is_per_record: bool,
    /// The most rows of an epoch.
    pub(crate) epoch_rows_max: usize,
    /// How long an epoch waits for more rows before it is formed; zero takes what is there.
    pub(crate) epoch_wait: Duration,
    /// Checkpoints; None where the job has none.
    pub(crate) checkpoints: Option<CheckpointSettings>,
    /// The checkpoint's, savepoint's or job's folder to start from, or a `_metadata` file.
    pub(crate) restore: Option<PathBuf>,
    /// Whether state there that no operator claims is left behind.
    pub(crate) ignores_unclaimed_state: bool,
    /// What the job starts from if `restore` does not say it. One that goes on from the newest checkpoint of its name, if there is one,
    /// keeps its own last checkpoint even when it has finished, and needs `checkpoints`.
    pub(crate) resume: JobResume,
    /// What happens after a failure of something outside.
    pub(crate) restart: RestartStrategy,
    /// The most bytes of state of all operators together.
    pub(crate) memory_budget: usize,
}

/// When and where a job is checkpointed.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointSettings {
    /// The time between two starts; None takes one only when the job is stopped with a savepoint.
    pub(crate) interval: Option<Duration>,
    /// The least time between the end of one and the start of the next.
    pub(crate) min_pause: Duration,
    /// After this time a checkpoint has failed.
    pub(crate) timeout: Duration,
    /// How many may fail in a row.
    pub(crate) tolerable_failures: u32,
    /// The folder above the folders of jobs.
    pub(crate) folder: PathBuf,
    /// How many are kept.
    pub(crate) retained: usize,
    /// How many bytes of changes are left beside a copy of the whole state however small that is.
    pub(crate) delta_bytes_min: u64,
    /// Whether the last one stays when the job is cancelled.
    pub(crate) is_kept_on_cancel: bool,
}

/// What a job has started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JobOrigin {
    /// Nothing. An earlier job of that name may have left a checkpoint, which stays as it is.
    Nothing {
        /// That checkpoint.
        left_alone: Option<PathBuf>,
    },
    /// A checkpoint, a savepoint or a job's folder.
    Checkpoint(PathBuf),
}

/// How failures of outside systems are met. Failures that would come again (data, expressions, schemas) always end the job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RestartStrategy {
    /// The job fails.
    None,
    /// A number of times, after a delay.
    FixedDelay { attempts: u32, delay: Duration },
    /// As long as there are not too many within an interval.
    FailureRate { failures_max: u32, interval: Duration, delay: Duration },
    /// For ever (or a number of times), ever more slowly.
    ExponentialDelay {
        initial: Duration,
        max: Duration,
        multiplier: f64,
        reset_after: Duration,
        jitter: f64,
        attempts: Option<u32>,
    },
}

/// What a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "Flink's words")]
pub enum JobStatus {
    Initializing,
    Created,
    Running,
    Failing,
    Failed,
    Cancelling,
    Canceled,
    Finished,
    Restarting,
    Suspended,
    Reconciling,
}

impl JobStatus {
    /// Returns whether the job will not go on.
    pub fn is_final(self) -> bool {
        matches!(self, JobStatus::Failed | JobStatus::Canceled | JobStatus::Finished)
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobStatus::Initializing => "INITIALIZING",
            JobStatus::Created => "CREATED",
            JobStatus::Running => "RUNNING",
            JobStatus::Failing => "FAILING",
            JobStatus::Failed => "FAILED",
            JobStatus::Cancelling => "CANCELLING",
            JobStatus::Canceled => "CANCELED",
            JobStatus::Finished => "FINISHED",
            JobStatus::Restarting => "RESTARTING",
            JobStatus::Suspended => "SUSPENDED",
            JobStatus::Reconciling => "RECONCILING",
        })
    }
}

/// How a job is asked to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// At once; what was not committed is dropped.
    Cancel,
    /// With a last checkpoint (or, without checkpoints, a last commit), so that what was read is written.
    Finish,
    /// With a savepoint in this folder; `drain` ends the input for good first, so that everything held back is emitted.
    Savepoint {
        /// The folder that gets the savepoint's folder.
        folder: PathBuf,
        /// Whether the input is ended.
        drain: bool,
    },
}

/// What a job has done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JobMetrics {
    /// Why it has started again, or failed, the last time.
    pub(crate) last_failure: Option<String>,
    /// The nodes of the graph, in its order.
    pub(crate) operators: Vec<OperatorMetrics>,
    /// Checkpoints that are durable and committed.
    pub(crate) checkpoint_count: u64,
    /// The number of the last one.
    pub(crate) last_checkpoint: Option<u64>,
    /// When it was complete: milliseconds since 1970.
    pub(crate) last_checkpoint_time_ms: Option<i64>,
    /// How long it took.
    pub(crate) last_checkpoint_duration: Option<Duration>,
    /// How many bytes it wrote.
    pub(crate) last_checkpoint_bytes: Option<u64>,
    /// How often the job was restarted.
    pub(crate) restart_count: u64,
}

impl JobMetrics {
    /// Returns how many rows were read.
    pub(crate) fn rows_read(&self) -> u64 {
        self.operators.iter().filter(|operator| operator.is_source).map(|source| source.rows_out).sum()
    }

    /// Returns how much of the servers' logs is not read, by what sources say of it; None if none does.
    pub(crate) fn lag_bytes(&self) -> Option<u64> {
        let said = self.operators.iter().flat_map(|operator| &operator.status);
        said.filter(|(name, _)| name == LAG_BYTES).filter_map(|(_, bytes)| bytes.parse().ok()).max()
    }
}

/// What an operator has done so far, all workers together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OperatorMetrics {
    /// What it is, as EXPLAIN has it.
    pub(crate) name: String,
    /// Whether it reads a table.
    pub(crate) is_source: bool,
    /// Rows in.
    pub(crate) rows_in: u64,
    /// Rows out.
    pub(crate) rows_out: u64,
    /// Bytes in: of a source's frames, or of columns.
    pub(crate) bytes_in: u64,
    /// Bytes of state.
    pub(crate) state_bytes: u64,
    /// What a source says of itself.
    pub(crate) status: Vec<(String, String)>,
    /// Time at work, of all workers together.
    pub(crate) busy: Duration,
    /// Time spent waiting for those who take its rows.
    pub(crate) back_pressured: Duration,
}
