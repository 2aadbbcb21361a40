//! The checkpoints of one job: writes them, merges their segments, removes what no retained one needs.

use std::path::{Path, PathBuf};

use super::checkpoint_data::CheckpointData;
use super::job_folder::JobFolder;
use super::restore::Restore;
use crate::connector::CheckpointId;
use crate::error::{Error, Result};

/// Writes the checkpoints of a job into its folder.
#[derive(Debug)]
pub(crate) struct CheckpointStore {
    folder: JobFolder,
    retained: usize,
}

/// A checkpoint or savepoint that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointSummary {
    /// Its number.
    pub(crate) number: CheckpointId,
    /// Its folder, which a later job can start from.
    pub(crate) path: PathBuf,
    /// The bytes that were written for it.
    pub(crate) bytes: u64,
    /// The bytes of all files that it needs.
    pub(crate) bytes_total: u64,
}

impl CheckpointStore {
    /// Opens the folder of a job, which may hold earlier checkpoints, and removes what a crash has left behind. `retained` (at least
    /// 1) is how many checkpoints are kept.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn open(folder: JobFolder, retained: usize) -> Result<CheckpointStore> {
        Ok(CheckpointStore { folder, retained })
    }

    /// Returns the number of the next checkpoint, to be asked for before sinks prepare. Numbers grow, also over restores.
    pub(crate) fn next_number(&mut self) -> CheckpointId {
        0
    }

    /// Goes on from a restored checkpoint: further ones build on its segments. Segments of another folder are linked or copied into
    /// the job's own, so that the job never depends on them. To be called for every restore, also of the job's own checkpoint
    /// after a failure.
    ///
    /// # Errors
    /// The segments cannot be copied.
    pub(crate) fn continue_from(&mut self, _restore: &Restore) -> Result<()> {
        Err(Error::internal("checkpoints are not built yet"))
    }

    /// Starts again without state, after a failure before the first checkpoint: changes that were written are forgotten.
    pub(crate) fn start_anew(&mut self) {}

    /// Returns the folder of the newest complete checkpoint of this job: where to start again after a failure.
    pub(crate) fn latest(&self) -> Option<PathBuf> {
        None
    }

    /// Writes a checkpoint; when this returns it is durable, and those that are no longer retained are removed. After an error the
    /// changes are kept and written with the next checkpoint, so the job may go on; committables are the caller's to keep.
    ///
    /// # Errors
    /// The folder cannot be written, or changes do not fit the tables that they are said to belong to.
    pub(crate) fn write_checkpoint(&mut self, _data: CheckpointData) -> Result<CheckpointSummary> {
        Err(Error::internal("checkpoints are not built yet"))
    }

    /// Merges segments if that has become worth it; returns whether it did. Best called after a checkpoint's sinks have committed;
    /// what was merged is used by the next checkpoint.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn compact(&mut self) -> Result<bool> {
        Err(Error::internal("checkpoints are not built yet"))
    }

    /// Writes the newest checkpoint once more as a savepoint into a new folder in `folder`. It needs no other file and may be moved.
    ///
    /// # Errors
    /// There is no checkpoint yet, or the folder cannot be written.
    pub(crate) fn write_savepoint(&self, _folder: &Path) -> Result<CheckpointSummary> {
        Err(Error::internal("checkpoints are not built yet"))
    }

    /// Removes all checkpoints of the job and gives the lock back; other files stay.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(crate) fn discard(self) -> Result<()> {
        Err(Error::internal("checkpoints are not built yet"))
    }
}
