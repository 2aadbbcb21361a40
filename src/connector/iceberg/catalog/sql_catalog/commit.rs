//! Commits of a SQL catalog: new metadata is written beside the old, and counts when the row says so.

use iceberg::table::Table;
use iceberg::{TableIdent, TableRequirement, TableUpdate};

use super::SqlCatalog;
use super::database::WriteError;
use crate::connector::iceberg::catalog::commit_catalog::CommitError;
use crate::connector::iceberg::catalog::metadata_commit::{
    NextMetadata, commit_unknown, conflict, delete_expired, no_table,
};
use crate::connector::iceberg::catalog::metadata_file::read_metadata;
use crate::error::Error;

impl SqlCatalog {
    /// Makes one attempt to commit.
    pub(super) async fn commit(
        &self,
        ident: &TableIdent,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        let base = self.load(ident).await.map_err(CommitError::Failed)?;
        let base_location = base.metadata_location().unwrap_or_default();
        let Some(mut next) = NextMetadata::after(&base, requirements, updates)? else { return Ok(base) };
        let location = self.write_metadata(&next, Some(base_location)).await.map_err(CommitError::Failed)?;
        let expired = next.take_expired();
        // Behind the commit nothing may fail any more.
        let table = next.into_table(ident, location.clone(), self.files.file_io());
        let table = table.map_err(CommitError::Failed)?;
        let statement = self.tables.replace_metadata(ident, base_location, &location);
        match self.database.write(vec![statement]).await {
            Ok(counts) if counts == [1] => {}
            Ok(_) => {
                self.forget(&location).await;
                return Err(match self.metadata_location(ident).await {
                    Ok(None) => CommitError::Failed(no_table(ident)),
                    _ => conflict(ident, "somebody else committed first".into(), None),
                });
            }
            Err(WriteError::Unknown(error)) => {
                self.resolve(ident, base_location, &location, error).await?;
            }
            Err(WriteError::Raced(error)) => {
                self.forget(&location).await;
                return Err(conflict(ident, error.message().to_owned(), None));
            }
            Err(WriteError::Exists(error) | WriteError::Failed(error)) => {
                self.forget(&location).await;
                return Err(CommitError::Failed(error));
            }
        }
        delete_expired(&self.files, expired).await;
        Ok(table)
    }

    /// Finds out whether a commit whose answer was lost has landed.
    async fn resolve(
        &self,
        ident: &TableIdent,
        base: &str,
        location: &str,
        error: Error,
    ) -> Result<(), CommitError> {
        let Ok(Some(current)) = self.metadata_location(ident).await else {
            return Err(commit_unknown(ident, error));
        };
        // While the database has the base, it may still be about to do what it was told.
        let log = match current.as_str() {
            found if found == location => return Ok(()),
            found if found == base && self.database.answers_are_final() => {
                self.forget(location).await;
                return Err(CommitError::Failed(error));
            }
            found if found == base => return Err(commit_unknown(ident, error)),
            found => match read_metadata(&self.files, found).await {
                Ok(metadata) => metadata.metadata_log().to_vec(),
                Err(_) => return Err(commit_unknown(ident, error)),
            },
        };
        let is_in_log = |file: &str| log.iter().any(|entry| entry.metadata_file == file);
        if is_in_log(location) {
            // Others have already committed behind it.
            return Ok(());
        }
        if is_in_log(base) {
            self.forget(location).await;
            return Err(conflict(ident, "somebody else committed first".into(), None));
        }
        Err(commit_unknown(ident, error))
    }
}
