//! What is said of a file that cannot be read: which file, what it is for the table, and in which snapshot of which table.

use std::error::Error as StdError;
use std::sync::Arc;

use iceberg::TableIdent;
use object_store::Error as StoreError;

use crate::connector::iceberg::table::IcebergTable;
use crate::error::Error;

/// What a file is for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::iceberg) enum FileRole {
    ManifestList,
    Manifest,
    DataFile,
    PositionDeletes,
    DeletionVector,
    EqualityDeletes,
}

impl FileRole {
    fn name(self) -> &'static str {
        match self {
            FileRole::ManifestList => "manifest list",
            FileRole::Manifest => "manifest",
            FileRole::DataFile => "data file",
            FileRole::PositionDeletes => "position delete file",
            FileRole::DeletionVector => "deletion vector",
            FileRole::EqualityDeletes => "equality delete file",
        }
    }
}

/// The table and the snapshot that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::iceberg) struct ReadContext {
    table: Arc<str>,
    snapshot_id: Option<i64>,
    /// Where a query finds other snapshots.
    snapshots: Option<Arc<str>>,
}

impl ReadContext {
    /// Describes a read of a snapshot, if it is of one.
    pub(in crate::connector::iceberg) fn new(table: &IcebergTable, snapshot_id: Option<i64>) -> ReadContext {
        let snapshots = Some(table.snapshots_name().into());
        ReadContext { snapshot_id, snapshots, ..ReadContext::of_table(table.ident()) }
    }

    /// Describes a read of a table, whatever the snapshot.
    pub(in crate::connector::iceberg) fn of_table(table: &TableIdent) -> ReadContext {
        ReadContext { table: table.to_string().into(), snapshot_id: None, snapshots: None }
    }

    /// Describes the read of a snapshot of the same table.
    pub(in crate::connector::iceberg) fn of_snapshot(&self, snapshot_id: i64) -> ReadContext {
        ReadContext { snapshot_id: Some(snapshot_id), ..self.clone() }
    }

    fn file(&self, role: FileRole, location: &str) -> String {
        let snapshot = match self.snapshot_id {
            Some(id) => format!(" of snapshot {id}"),
            None => String::new(),
        };
        format!("{} '{location}'{snapshot} of Iceberg table '{}'", role.name(), self.table)
    }

    /// Says what can be done: mend the file, or read rows that do not need it.
    fn way_out(&self, mend: &str) -> String {
        match &self.snapshots {
            Some(snapshots) => format!(
                "{mend}, or read an earlier snapshot with /*+ OPTIONS('snapshot-id' = '…') */: SELECT snapshot_id, committed_at FROM {snapshots} lists them."
            ),
            None => format!("{mend}."),
        }
    }

    /// Says that a store did not give a file, or a part of it.
    pub(in crate::connector::iceberg) fn not_read(
        &self,
        role: FileRole,
        location: &str,
        cause: StoreError,
    ) -> Error {
        let file = self.file(role, location);
        match cause {
            StoreError::NotFound { .. } => Error::not_found(format!("{file} is missing")).hint(
                self.way_out("Somebody has removed the file, or its snapshot has expired. Put it back"),
            ),
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
                Error::rejected(format!("{file} may not be read")).caused_by(cause)
            }
            cause => Error::unavailable(format!("{file} cannot be read")).caused_by(cause),
        }
    }

    /// Says that a file holds something else than it should.
    pub(in crate::connector::iceberg) fn damaged(
        &self,
        role: FileRole,
        location: &str,
        cause: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Error {
        Error::data(format!("{} is damaged", self.file(role, location)))
            .hint(self.way_out("Put an intact copy in its place"))
            .caused_by(cause)
    }

    /// Says that a file is of a kind that is not read.
    pub(in crate::connector::iceberg) fn unsupported(
        &self,
        role: FileRole,
        location: &str,
        why: &str,
        hint: &str,
    ) -> Error {
        Error::unsupported(format!("{} {why}", self.file(role, location))).hint(hint)
    }
}
