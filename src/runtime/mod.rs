//! What runs: a job graph becomes operators on worker threads, fed by sources in epochs, cut into checkpoints, read by sinks.

mod checkpoint;
mod job;
mod operator;
mod pipeline;
mod sink_task;
mod state;

pub(crate) use job::{CheckpointSettings, RestartStrategy, RestoreSettings};
pub(crate) use pipeline::run_stream;
pub(crate) use sink_task::{SinkInput, run_sink};
pub(crate) use state::GROUP_COUNT;
