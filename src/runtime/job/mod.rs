//! A running job: the driver that forms epochs, the workers that run operators, the tasks of sources and sinks.

mod settings;

pub(crate) use settings::{CheckpointSettings, RestartStrategy, RestoreSettings};
