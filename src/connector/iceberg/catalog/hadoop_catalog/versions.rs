//! The metadata files of a table in Hadoop's layout: `v1.metadata.json`, `v2.metadata.json` …, the highest of which counts.
//!
//! `version-hint.text` saves looking for it: it may be old, missing or garbage. It is never ahead, since it is written behind the version
//! that it tells: then files have been lost, and an older version must not pass for the table. A version is taken by creating its
//! file where there is none. That file could have one of three names, by compression; so that two writers cannot take one version
//! under two names, the name follows from the version before: a change of the codec counts from the version behind it.
//!
//! Old versions are deleted, so a writer that was paused may find the name of its version free again long after others took it. What
//! it creates then is a ghost, and not to be found by a hint: see `settle`.

use bytes::Bytes;
use iceberg::TableIdent;

use crate::connector::iceberg::catalog::commit_catalog::CommitError;
use crate::connector::iceberg::catalog::metadata_commit::{commit_unknown, conflict, no_table};
use crate::connector::iceberg::catalog::metadata_file::{Codec, read_metadata};
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

/// The file that tells a version near the newest.
pub(super) const VERSION_HINT: &str = "version-hint.text";

/// How names of metadata files end; the last is how they ended once.
const EXTENSIONS: [&str; 3] = [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"];

/// The folder with a table's metadata files.
#[derive(Debug)]
pub(super) struct Versions<'a> {
    files: &'a FileStore,
    /// `<table>/metadata`.
    folder: String,
}

/// A version of a table, and where its metadata is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// The number.
    pub(super) number: u64,
    /// The metadata file.
    pub(super) location: String,
}

/// What the hint tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint {
    /// There is none, or it cannot be read.
    None,
    /// No number.
    Garbage,
    /// A version.
    Version(u64),
}

impl<'a> Versions<'a> {
    /// Looks at the table in a folder.
    pub(super) fn of(files: &'a FileStore, table_folder: &str) -> Versions<'a> {
        Versions { files, folder: format!("{table_folder}/metadata") }
    }

    /// Returns the newest version; None if there is no table.
    ///
    /// # Errors
    /// The folder cannot be read, or the hint tells a version that is missing.
    pub(super) async fn current(&self) -> Result<Option<Version>> {
        let mut hint = self.hint().await;
        loop {
            let hinted = match hint {
                Hint::Version(number) => self.version(number).await?,
                Hint::None | Hint::Garbage => None,
            };
            let newest = match hinted {
                Some(version) => Some(version),
                None => self.newest_listed().await?,
            };
            let found = newest.as_ref().map_or(0, |version| version.number);
            let is_missing = match hint {
                Hint::None => false,
                Hint::Garbage => newest.is_none(),
                Hint::Version(number) => found < number,
            };
            if !is_missing {
                return match newest {
                    Some(newest) => self.last_from(newest).await.map(Some),
                    None => Ok(None),
                };
            }
            // The table may have been dropped, and made anew, between the two looks.
            let again = self.hint().await;
            if again == hint {
                return Err(self.missing(hint, found));
            }
            hint = again;
        }
    }

    /// Follows the versions from one to the last.
    async fn last_from(&self, mut newest: Version) -> Result<Version> {
        while let Some(next) = self.version(newest.number.saturating_add(1)).await? {
            newest = next;
        }
        Ok(newest)
    }

    /// Makes the error for a hint that tells more than there is.
    fn missing(&self, hint: Hint, found: u64) -> Error {
        let folder = &self.folder;
        let message = match hint {
            Hint::Version(number) => format!(
                "Metadata file for version {number} is missing: '{folder}/{VERSION_HINT}' tells of it, but there is no '{folder}/v{number}.metadata.json'"
            ),
            Hint::Garbage | Hint::None => {
                format!(
                    "Metadata files are missing: there is '{folder}/{VERSION_HINT}', but no version beside it"
                )
            }
        };
        let hint = match found {
            0 => "Put the metadata file back.".to_owned(),
            _ => format!(
                "Put the metadata file back. If it is lost for good, write {found} into '{folder}/{VERSION_HINT}': the table is then what that version was."
            ),
        };
        Error::data(message).class(FlinkClass::ICEBERG_VALIDATION).hint(hint)
    }

    /// Returns what the hint tells.
    async fn hint(&self) -> Hint {
        let Ok(hint) = self.files.read(&format!("{}/{VERSION_HINT}", self.folder)).await else {
            return Hint::None;
        };
        let number = std::str::from_utf8(&hint).ok().and_then(|text| text.trim().parse().ok());
        number.map_or(Hint::Garbage, Hint::Version)
    }

    /// Returns a version, if there is a file of it.
    async fn version(&self, number: u64) -> Result<Option<Version>> {
        for extension in EXTENSIONS {
            let location = format!("{}/v{number}{extension}", self.folder);
            if self.files.exists(&location).await? {
                return Ok(Some(Version { number, location }));
            }
        }
        Ok(None)
    }

    /// Returns the highest version in the folder.
    async fn newest_listed(&self) -> Result<Option<Version>> {
        let entries = self.files.list(&self.folder).await?;
        let newest = entries
            .iter()
            .filter(|entry| !entry.is_folder())
            .filter_map(|entry| Some((version_of(&entry.name)?, &entry.name)))
            .max_by_key(|(number, _)| *number);
        Ok(newest.map(|(number, name)| Version { number, location: format!("{}/{name}", self.folder) }))
    }

    /// Takes the first version for a new table, and returns it; None if there is a table.
    ///
    /// # Errors
    /// Its metadata cannot be written.
    pub(super) async fn create(&self, bytes: Bytes) -> Result<Option<Version>> {
        let version = self.named(1, Codec::Plain);
        let created = match self.files.create(&version.location, bytes.clone()).await {
            Ok(created) => created,
            Err(error) => self.landed(&version, &bytes).await.ok().flatten().ok_or(error)?,
        };
        if !created {
            return Ok(None);
        }
        self.write_hint(1).await;
        Ok(Some(version))
    }

    /// Takes the version behind `base`, and returns it.
    ///
    /// # Errors
    /// `Conflict` if the version is taken, or was; `Failed` if its file is not there for any other reason, as that the table's folder
    /// is not there any more; `Unknown` if that cannot be found out.
    pub(super) async fn publish(
        &self,
        ident: &TableIdent,
        base: &Version,
        next: &Version,
        snapshots: &[i64],
        bytes: Bytes,
    ) -> Result<(), CommitError> {
        let number = next.number;
        let taken = || conflict(ident, format!("version {number} was committed by somebody else"), None);
        // A writer that paused is told here as a rule, before it makes a ghost.
        if !self.files.exists(&base.location).await.map_err(CommitError::Failed)?
            && self.files.folder_exists(&self.folder).await.map_err(CommitError::Failed)?
        {
            return Err(taken());
        }
        match self.files.create_in_folder(&next.location, bytes.clone()).await {
            Ok(true) => {}
            Ok(false) => return Err(taken()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(CommitError::Failed(no_table(ident).caused_by(error)));
            }
            Err(error) => match self.landed(next, &bytes).await {
                Ok(Some(true)) => {}
                Ok(Some(false)) => return Err(taken()),
                // It may have landed and be deleted again, if others have committed since.
                Ok(None) => match self.current().await {
                    Ok(current) if current.as_ref().is_none_or(|version| version.number < number) => {
                        return Err(CommitError::Failed(error));
                    }
                    _ => return Err(commit_unknown(ident, error)),
                },
                Err(_) => return Err(commit_unknown(ident, error)),
            },
        }
        self.settle(ident, base, next, snapshots).await
    }

    /// Finds out whether the version whose file we have just created is behind its base, or a ghost below newer ones: so many have
    /// been committed since the base was read that its file, and those behind it, were deleted.
    pub(super) async fn settle(
        &self,
        ident: &TableIdent,
        base: &Version,
        next: &Version,
        snapshots: &[i64],
    ) -> Result<(), CommitError> {
        let unknown = |error: Error| commit_unknown(ident, error);
        let has_base = self.files.exists(&base.location).await.map_err(unknown)?;
        let is_ahead = matches!(self.hint().await, Hint::Version(hinted) if hinted > next.number);
        if has_base && !is_ahead {
            self.write_hint(next.number).await;
            return Ok(());
        }
        let Some(newest) = self.newest_listed().await.map_err(unknown)? else {
            return Err(CommitError::Failed(no_table(ident)));
        };
        if newest.number <= next.number {
            return Ok(());
        }
        let metadata = read_metadata(self.files, &newest.location).await.map_err(unknown)?;
        let is_named = metadata.metadata_log().iter().any(|entry| entry.metadata_file == next.location)
            || snapshots.iter().any(|snapshot| metadata.snapshot_by_id(*snapshot).is_some());
        // Nobody deletes a ghost, since no log names it: what is gone had others behind it.
        if is_named || !self.files.exists(&next.location).await.map_err(unknown)? {
            return Ok(());
        }
        let reason = format!("version {} was committed by somebody else before", next.number);
        match (has_base, snapshots) {
            // The log is short, and the base would be gone if the version had been taken long ago.
            (true, []) => Ok(()),
            (false, [_, ..]) => {
                self.files.delete(&next.location).await.map_err(unknown)?;
                Err(conflict(ident, reason, None))
            }
            _ => Err(unknown(Error::unavailable(reason))),
        }
    }

    /// Returns whether the file of a version is the one that we tried to create; None if there is none.
    async fn landed(&self, version: &Version, ours: &Bytes) -> Result<Option<bool>> {
        match self.files.read(&version.location).await {
            Ok(found) => Ok(Some(found == ours)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns a version that is to be, under the name that follows from the codec of the one before it.
    pub(super) fn named(&self, number: u64, codec: Codec) -> Version {
        Version { number, location: format!("{}/v{number}{}", self.folder, codec.extension()) }
    }

    /// Writes the hint. Nobody needs it, so nothing fails without.
    async fn write_hint(&self, number: u64) {
        let location = format!("{}/{VERSION_HINT}", self.folder);
        if let Err(error) = self.files.write_into_folder(&location, Bytes::from(number.to_string())).await {
            tracing::warn!(error = %error, "the version hint stays old");
        }
    }
}

/// Returns the version in a metadata file's name.
pub(super) fn version_of(name: &str) -> Option<u64> {
    let name = name.strip_prefix('v')?;
    EXTENSIONS.iter().find_map(|extension| name.strip_suffix(extension)?.parse().ok())
}
