//! Which rows of a table are read, with which columns.

use std::sync::Arc;

use iceberg::spec::{SchemaRef, SnapshotRef};

use super::appended_files::plan_appended_files;
use super::live_files::{PlannedFiles, plan_files, snapshot_to_read};
use super::prune::Pruning;
use crate::connector::iceberg::read_target::ReadTarget;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// The entries of summaries that say how large files are.
const TOTAL_FILE_SIZE: &str = "total-files-size";
const ADDED_FILE_SIZE: &str = "added-files-size";

/// What is read of a table.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct ScanTarget {
    /// The rows.
    pub(in crate::connector::iceberg) rows: ReadTarget,
    /// The columns.
    pub(in crate::connector::iceberg) schema: SchemaRef,
}

impl ScanTarget {
    /// Reads rows with the columns that the table has now.
    pub(in crate::connector::iceberg) fn new(table: &IcebergTable, rows: ReadTarget) -> ScanTarget {
        ScanTarget { rows, schema: Arc::clone(table.metadata().current_schema()) }
    }

    /// Reads the current snapshot.
    #[cfg(test)]
    pub(in crate::connector::iceberg) fn current(table: &IcebergTable) -> ScanTarget {
        ScanTarget::new(table, ReadTarget::current(table.metadata()))
    }

    /// Returns the number of the snapshot; None if the table has none yet, or several are read.
    pub(super) fn snapshot_id(&self) -> Option<i64> {
        match self.rows {
            ReadTarget::Snapshot(id) => Some(id),
            ReadTarget::Nothing | ReadTarget::Appends(_) => None,
        }
    }

    /// Finds the files that may hold wanted rows.
    ///
    /// # Errors
    /// A snapshot is gone, or metadata is missing or damaged.
    pub(super) async fn plan(&self, table: &IcebergTable, pruning: Option<&Pruning>) -> Result<PlannedFiles> {
        match &self.rows {
            ReadTarget::Nothing => Ok(PlannedFiles::default()),
            ReadTarget::Snapshot(id) => match snapshot_to_read(table, Some(*id))? {
                Some(snapshot) => plan_files(table, &snapshot, pruning).await,
                None => Ok(PlannedFiles::default()),
            },
            ReadTarget::Appends(snapshots) => plan_appended_files(table, snapshots, pruning).await,
        }
    }

    /// Returns how many bytes the files have, as far as summaries say so; None if there is nothing to read.
    pub(super) fn file_bytes(&self, table: &IcebergTable) -> Option<Option<u64>> {
        let size = |snapshot: &SnapshotRef, entry: &str| -> Option<u64> {
            snapshot.summary().additional_properties.get(entry)?.parse().ok()
        };
        let metadata = table.metadata();
        match &self.rows {
            ReadTarget::Nothing => None,
            ReadTarget::Snapshot(id) => {
                metadata.snapshot_by_id(*id).map(|snapshot| size(snapshot, TOTAL_FILE_SIZE))
            }
            ReadTarget::Appends(snapshots) => {
                let snapshots = snapshots.iter().filter_map(|id| metadata.snapshot_by_id(*id));
                Some(snapshots.map(|snapshot| size(snapshot, ADDED_FILE_SIZE)).sum())
            }
        }
    }
}
