//! What is said of a file that cannot be read: which file, what it is for the table, and in which snapshot of which table.

use std::error::Error as StdError;
use std::sync::Arc;

use object_store::Error as StoreError;

use crate::connector::iceberg::table::IcebergTable;
use crate::error::Error;

/// What a file is for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
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
pub(super) struct ReadContext {
    table: Arc<str>,
    snapshot_id: Option<i64>,
}

impl ReadContext {
    /// Describes a read of a snapshot.
    pub(super) fn new(table: &IcebergTable, snapshot_id: Option<i64>) -> ReadContext {
        ReadContext { table: table.ident().to_string().into(), snapshot_id }
    }

    fn file(&self, role: FileRole, location: &str) -> String {
        let snapshot = match self.snapshot_id {
            Some(id) => format!(" of snapshot {id}"),
            None => String::new(),
        };
        format!("{} '{location}'{snapshot} of Iceberg table '{}'", role.name(), self.table)
    }

    /// Says that a store did not give a file, or a part of it.
    pub(super) fn not_read(&self, role: FileRole, location: &str, cause: StoreError) -> Error {
        let file = self.file(role, location);
        match cause {
            StoreError::NotFound { .. } => Error::not_found(format!("{file} is missing"))
                .hint("Somebody has removed the file, or it belongs to a snapshot that has expired."),
            StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
                Error::rejected(format!("{file} may not be read")).caused_by(cause)
            }
            cause => Error::unavailable(format!("{file} cannot be read")).caused_by(cause),
        }
    }

    /// Says that a file holds something else than it should.
    pub(super) fn damaged(
        &self,
        role: FileRole,
        location: &str,
        cause: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Error {
        Error::data(format!("{} is damaged", self.file(role, location))).caused_by(cause)
    }

    /// Says that a file is of a kind that is not read.
    pub(super) fn unsupported(&self, role: FileRole, location: &str, why: &str, hint: &str) -> Error {
        Error::unsupported(format!("{} {why}", self.file(role, location))).hint(hint)
    }
}
