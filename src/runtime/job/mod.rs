//! A running job: the driver that forms epochs, the workers that run operators, the tasks of sources and sinks.
//!
//! ```text
//! source tasks ─frames→ intake ─epochs→ workers ─rows→ writer tasks
//!                          driver ─cuts→ coordinator ─commit→ committers, ─release→ source tasks
//! ```
//!
//! Everything is in step: the driver (`attempt`) hands an epoch to all workers at once and forms the next one while they run it.
//! Between two epochs nothing is underway but what writers have not taken yet, so a cut there is a consistent checkpoint.

mod attempt;
mod blueprint;
#[cfg(test)]
mod checkpoint_tests;
#[cfg(test)]
mod clear_tests;
mod coordinator;
mod driver;
mod epoch;
mod exchange;
#[cfg(test)]
mod group_tests;
mod handle;
mod intake;
mod layout;
#[cfg(test)]
mod lockstep;
mod open_commit;
mod outbox;
mod restart;
#[cfg(test)]
mod restart_tests;
mod settings;
mod source_task;
mod stage;
#[cfg(test)]
mod stop_tests;
mod stops;
mod team;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod worker;
mod writer_task;

pub(crate) use handle::JobHandle;
#[cfg(test)]
pub(crate) use lockstep::Lockstep;
pub use settings::JobStatus;
pub(crate) use settings::{
    CheckpointSettings, JobMetrics, JobOrigin, JobSettings, OperatorMetrics, RestartStrategy, StopMode,
};
