//! Which snapshot of a table is read, with which columns.

use std::sync::Arc;

use iceberg::spec::{SchemaRef, SnapshotRef};

use super::live_files::snapshot_to_read;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// What is read of a table.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct ScanTarget {
    /// The snapshot; None is the current one.
    pub(in crate::connector::iceberg) snapshot_id: Option<i64>,
    /// The columns.
    pub(in crate::connector::iceberg) schema: SchemaRef,
}

impl ScanTarget {
    /// Reads the current snapshot with the current columns.
    pub(in crate::connector::iceberg) fn current(table: &IcebergTable) -> ScanTarget {
        ScanTarget { snapshot_id: None, schema: Arc::clone(table.metadata().current_schema()) }
    }

    /// Returns the snapshot; None if the table has none yet.
    ///
    /// # Errors
    /// There is no such snapshot.
    pub(in crate::connector::iceberg) fn snapshot(
        &self,
        table: &IcebergTable,
    ) -> Result<Option<SnapshotRef>> {
        snapshot_to_read(table, self.snapshot_id)
    }
}
