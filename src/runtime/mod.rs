//! What runs: a stream graph becomes a stream of changelog batches, and a sink takes them.

mod calc;
mod pipeline;
mod sink_task;

pub(crate) use pipeline::run_stream;
pub(crate) use sink_task::{SinkInput, run_sink};
