//! Reading a checkpoint back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;

use super::manifest::Manifest;
use crate::error::{Error, Result};
use crate::runtime::state::StateTable;

/// A checkpoint or savepoint that has been found whole: every byte of its files has been checked.
#[derive(Debug)]
pub(crate) struct Restore {
    manifest: Manifest,
    path: PathBuf,
}

/// What a job will go on with, to be compared with what a checkpoint holds.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The operators that keep state.
    pub(crate) operators: Vec<OperatorClaim>,
    /// The uids of sources.
    pub(crate) sources: BTreeSet<String>,
    /// The uids of sinks.
    pub(crate) sinks: BTreeSet<String>,
}

/// An operator of the job and its tables.
#[derive(Debug, Clone)]
pub(crate) struct OperatorClaim {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is, for errors.
    pub(crate) kind: String,
    /// Its tables.
    pub(crate) tables: Vec<StateTable>,
}

impl Restore {
    /// Opens a checkpoint's or savepoint's folder, its `_metadata`, or a job's folder, of which it takes the newest checkpoint.
    ///
    /// # Errors
    /// There is none, or a file of it is damaged or of a newer version. An older checkpoint is never taken instead.
    pub(crate) fn open(_path: &Path) -> Result<Restore> {
        Err(Error::internal("restoring is not built yet"))
    }

    /// Returns what the checkpoint holds beside rows: positions of sources, committables, extra values, its number.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the folder of the checkpoint.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the job can go on with the state: equal tables, at most with further columns that may be NULL.
    ///
    /// # Errors
    /// Names what has changed; or state that nobody claims, unless that is ignored.
    pub(crate) fn check(&self, _claims: &Claims, _ignores_unclaimed_state: bool) -> Result<()> {
        Err(Error::internal("restoring is not built yet"))
    }

    /// Reads the rows of a table that fall into the key groups that `owns` accepts, each key once, as the table's columns are now.
    /// Several workers may read at the same time. An operator that the checkpoint does not know has no rows.
    ///
    /// # Errors
    /// A file has become unreadable since `open`, or `load` fails.
    pub(crate) fn read(
        &self,
        _uid: &str,
        _table: &StateTable,
        _owns: &dyn Fn(u8) -> bool,
        _load: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        Err(Error::internal("restoring is not built yet"))
    }
}
