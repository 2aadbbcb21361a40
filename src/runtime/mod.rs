//! What runs: a job graph becomes operators on worker threads, fed by sources in epochs, cut into checkpoints, read by sinks.

mod checkpoint;
mod job;
mod operator;
mod sink_task;

pub(crate) use checkpoint::default_folder;
pub use job::JobStatus;
#[cfg(test)]
pub(crate) use job::Lockstep;
pub(crate) use job::{
    CheckpointSettings, JobHandle, JobMetrics, JobOrigin, JobSettings, OperatorMetrics, RestartStrategy,
    StopMode,
};
pub(crate) use sink_task::{SinkInput, run_sinks};
