//! The folder of a job, and the lock that keeps two processes from running it at the same time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::connector::CheckpointId;
use crate::error::{Error, Result};

/// A job's folder of checkpoints, locked as long as the value lives.
#[derive(Debug)]
pub(crate) struct JobFolder {
    name: String,
    id: u128,
    path: PathBuf,
}

/// The newest complete checkpoint of a job's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LatestCheckpoint {
    /// The folder of the checkpoint.
    pub(crate) path: PathBuf,
    /// The number of the job that wrote it; a job that goes on from it may take the same number.
    pub(crate) job_id: u128,
    /// The number of the checkpoint.
    pub(crate) number: CheckpointId,
}

impl JobFolder {
    /// Locks the name of a job. A name that a job of this process has gets `-2`, `-3` and so on; `name()` is the one that was taken.
    ///
    /// # Errors
    /// Another process runs the job (the error names it), or the folder cannot be written.
    pub(crate) fn acquire(_folder: &Path, _name: &str, _id: u128) -> Result<JobFolder> {
        Err(Error::internal("checkpoints are not built yet"))
    }

    /// Returns the name that was locked.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the job.
    pub(crate) fn id(&self) -> u128 {
        self.id
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the folder of checkpoints where none is set: below the user's folder of state. `variable` looks up the environment.
pub(crate) fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local").join("state")))?;
    Some(state.join("lakehead").join("checkpoints"))
}

/// Finds the newest complete checkpoint of a job's name, over all runs of it.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn latest(_folder: &Path, _job_name: &str) -> Result<Option<LatestCheckpoint>> {
    Err(Error::internal("checkpoints are not built yet"))
}
