//! What every catalog does to commit: the next metadata is made from the current one, and old metadata files are deleted behind it.
//! How the next metadata becomes the current one is what catalogs differ in.

use iceberg::io::FileIO;
use iceberg::spec::{TableMetadata, TableMetadataBuildResult, TableMetadataBuilder};
use iceberg::table::Table;
use iceberg::{Runtime, TableCreation, TableIdent, TableRequirement, TableUpdate};

use super::commit_catalog::CommitError;
use crate::connector::iceberg::dropped_partition_fields::{build_metadata, metadata_builder};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, FlinkClass, Result};

/// The property by which old metadata files are deleted.
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";

/// Metadata that is to become a table's current one.
#[derive(Debug)]
pub(super) struct NextMetadata {
    /// The metadata.
    pub(super) metadata: TableMetadata,
    /// Metadata files that its log does not name any more, and that the table wants to be deleted.
    expired: Vec<String>,
    /// The snapshots that it adds.
    snapshots: Vec<i64>,
}

impl NextMetadata {
    /// Makes the metadata of a new table; `location` is its folder unless the creation names one.
    ///
    /// # Errors
    /// Schema, partition spec, sort order or properties do not fit each other.
    pub(super) fn of_new_table(mut creation: TableCreation, location: String) -> Result<NextMetadata> {
        creation.location.get_or_insert(location);
        let built = TableMetadataBuilder::from_table_creation(creation).and_then(TableMetadataBuilder::build);
        Ok(NextMetadata::from(built.map_err(from_iceberg)?))
    }

    /// Applies updates to a table's current metadata; None if they change nothing.
    ///
    /// # Errors
    /// `Conflict` if a requirement does not hold, or a snapshot does not fit behind those that came meanwhile; `Failed` for any
    /// other update that cannot be made.
    pub(super) fn after(
        base: &Table,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> Result<Option<NextMetadata>, CommitError> {
        for requirement in requirements {
            requirement
                .check(Some(base.metadata()))
                .map_err(|error| conflict(base.identifier(), error.message().to_owned(), Some(error)))?;
        }
        let base_location = base.metadata_location().map(str::to_owned);
        let mut snapshots = Vec::new();
        let failed = |error| CommitError::Failed(from_iceberg(error));
        let mut builder = metadata_builder(base.metadata(), base_location).map_err(failed)?;
        for update in updates {
            let is_snapshot = matches!(update, TableUpdate::AddSnapshot { .. });
            if let TableUpdate::AddSnapshot { snapshot } = &update {
                snapshots.push(snapshot.snapshot_id());
            }
            builder = update.apply(builder).map_err(|error| {
                if is_snapshot {
                    conflict(base.identifier(), error.message().to_owned(), Some(error))
                } else {
                    failed(error)
                }
            })?;
        }
        let built = build_metadata(builder).map_err(failed)?;
        let is_change = !built.changes.is_empty();
        Ok(is_change.then(|| NextMetadata { snapshots, ..NextMetadata::from(built) }))
    }

    /// Returns the table of which this is the current metadata.
    ///
    /// # Errors
    /// Not called within a runtime.
    pub(super) fn into_table(self, ident: &TableIdent, location: String, io: FileIO) -> Result<Table> {
        loaded_table(ident, self.metadata, location, io)
    }

    /// Takes out which metadata files are to be deleted behind the commit.
    pub(super) fn take_expired(&mut self) -> Vec<String> {
        std::mem::take(&mut self.expired)
    }

    /// Takes out which snapshots come with it.
    pub(super) fn take_snapshots(&mut self) -> Vec<i64> {
        std::mem::take(&mut self.snapshots)
    }
}

impl From<TableMetadataBuildResult> for NextMetadata {
    fn from(built: TableMetadataBuildResult) -> NextMetadata {
        let wanted = built.metadata.properties().get(DELETE_AFTER_COMMIT);
        let is_wanted = wanted.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
        let logs = built.expired_metadata_logs.into_iter().filter(|_| is_wanted);
        let expired = logs.map(|log| log.metadata_file).collect();
        NextMetadata { metadata: built.metadata, expired, snapshots: Vec::new() }
    }
}

/// Deletes metadata files that fell out of the log. They are in nobody's way: what cannot be deleted stays.
pub(super) async fn delete_expired(files: &FileStore, expired: Vec<String>) {
    for location in expired {
        if let Err(error) = files.delete(&location).await {
            tracing::warn!(error = %error, "an old metadata file stays");
        }
    }
}

/// Returns a table as the crate knows it.
///
/// # Errors
/// Not called within a runtime.
pub(super) fn loaded_table(
    ident: &TableIdent,
    metadata: TableMetadata,
    location: String,
    io: FileIO,
) -> Result<Table> {
    let runtime = Runtime::try_current().map_err(from_iceberg)?;
    Table::builder()
        .identifier(ident.clone())
        .metadata(metadata)
        .metadata_location(location)
        .file_io(io)
        .runtime(runtime)
        .build()
        .map_err(from_iceberg)
}

/// Returns the conflict of a commit to a table.
pub(super) fn conflict(ident: &TableIdent, reason: String, cause: Option<iceberg::Error>) -> CommitError {
    let error = Error::unavailable(format!("table '{ident}' has changed meanwhile: {reason}"))
        .class(FlinkClass::ICEBERG_COMMIT_FAILED);
    CommitError::Conflict(match cause {
        Some(cause) => error.caused_by(cause),
        None => error,
    })
}

/// Returns the error of a commit that may have landed.
pub(super) fn commit_unknown(ident: &TableIdent, error: Error) -> CommitError {
    let reason = format!("whether the commit to table '{ident}' has landed is not known: {error}");
    CommitError::Unknown(
        Error::unavailable(reason).class(FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN).caused_by(error),
    )
}

/// Returns the error of a namespace that is not there.
pub(super) fn no_namespace(name: &str) -> Error {
    Error::not_found(format!("Namespace does not exist: {name}")).class(FlinkClass::ICEBERG_NO_SUCH_NAMESPACE)
}

/// Returns the error of a table that is not there.
pub(super) fn no_table(ident: &TableIdent) -> Error {
    Error::not_found(format!("Table does not exist: {ident}")).class(FlinkClass::ICEBERG_NO_SUCH_TABLE)
}

/// Returns the error of a table that is there already.
pub(super) fn table_exists(ident: &TableIdent) -> Error {
    Error::already_exists(format!("Table already exists: {ident}")).class(FlinkClass::ICEBERG_ALREADY_EXISTS)
}
