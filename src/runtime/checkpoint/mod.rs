//! Checkpoints on disk: what a job needs to go on after it has stopped or crashed.
//!
//! ```text
//! <folder>/<job name>/_lock                    who runs the job now
//! <folder>/<job name>/<job id>/chk-7/_metadata what checkpoint 7 consists of
//! <folder>/<job name>/<job id>/shared/…        segments: rows of state, which several checkpoints share
//! <folder>/savepoint-1a2b3c-…/_metadata        a savepoint, with its segment beside it
//! ```
//!
//! A checkpoint adds one segment with what has changed since the one before; its manifest lists that and all earlier segments
//! that still count. It exists as soon as its manifest has its name. Segments never change, so a crash leaves at worst files that
//! no manifest names, which the next start of the job removes. Merging segments (`CheckpointStore::compact`) comes after a
//! checkpoint, so that no sink waits for it, and counts from the next one on.
//!
//! How a job uses this: `JobFolder::acquire` → `CheckpointStore::open` → (`Restore::open` → `check` → `CheckpointStore::continue_from`
//! → `Restore::read` by each worker) → for each checkpoint `next_number`, `write_checkpoint`, commit the sinks, `compact` → at the
//! end `discard` unless the last checkpoint is to stay. All of it blocks.

mod checkpoint_data;
mod compaction;
mod disk;
mod evolution;
mod job_folder;
mod manifest;
mod merge;
mod restore;
mod segment;
mod segment_writer;
mod state_schema;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use checkpoint_data::{CheckpointData, OperatorChanges};
pub(crate) use job_folder::{JobFolder, LatestCheckpoint, default_folder};
pub(crate) use manifest::Manifest;
pub(crate) use restore::{Claims, OperatorClaim, Restore};
pub(crate) use store::{CheckpointStore, CheckpointSummary};
