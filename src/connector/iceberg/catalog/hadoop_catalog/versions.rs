//! The metadata files of a table in Hadoop's layout: `v1.metadata.json`, `v2.metadata.json` …, the highest of which counts.
//!
//! `version-hint.text` saves looking for it, and nothing more: it may be old, missing or garbage. A version is taken by creating its
//! file where there is none. That file could have one of three names, by compression; so that two writers cannot take one version
//! under two names, the name follows from the version before: a change of the codec counts from the version behind it.

use bytes::Bytes;
use iceberg::TableIdent;

use crate::connector::iceberg::catalog::commit_catalog::CommitError;
use crate::connector::iceberg::catalog::metadata_commit::{commit_unknown, conflict, no_table};
use crate::connector::iceberg::catalog::metadata_file::Codec;
use crate::connector::iceberg::storage::FileStore;
use crate::error::{ErrorKind, Result};

/// The file that tells a version near the newest.
const VERSION_HINT: &str = "version-hint.text";

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

impl<'a> Versions<'a> {
    /// Looks at the table in a folder.
    pub(super) fn of(files: &'a FileStore, table_folder: &str) -> Versions<'a> {
        Versions { files, folder: format!("{table_folder}/metadata") }
    }

    /// Returns the newest version; None if there is no table.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) async fn current(&self) -> Result<Option<Version>> {
        let hinted = match self.hint().await {
            Some(number) => self.version(number).await?,
            None => None,
        };
        let Some(mut newest) = (match hinted {
            Some(version) => Some(version),
            None => self.newest_listed().await?,
        }) else {
            return Ok(None);
        };
        while let Some(next) = self.version(newest.number + 1).await? {
            newest = next;
        }
        Ok(Some(newest))
    }

    /// Returns the version that the hint tells, if it tells one.
    async fn hint(&self) -> Option<u64> {
        let hint = self.files.read(&format!("{}/{VERSION_HINT}", self.folder)).await.ok()?;
        std::str::from_utf8(&hint).ok()?.trim().parse().ok()
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

    /// Takes a version for a table that was at the version before it, and returns it.
    ///
    /// # Errors
    /// `Conflict` if the version is taken; `Failed` if its file is not there for any other reason, as that the table's folder is
    /// not there any more; `Unknown` if that cannot be found out.
    pub(super) async fn publish(
        &self,
        ident: &TableIdent,
        number: u64,
        codec: Codec,
        bytes: Bytes,
    ) -> Result<Version, CommitError> {
        let version = self.named(number, codec);
        let taken = || conflict(ident, format!("version {number} was committed by somebody else"), None);
        match self.files.create_in_folder(&version.location, bytes.clone()).await {
            Ok(true) => {}
            Ok(false) => return Err(taken()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(CommitError::Failed(no_table(ident).caused_by(error)));
            }
            Err(error) => match self.landed(&version, &bytes).await {
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
        self.write_hint(number).await;
        Ok(version)
    }

    /// Returns whether the file of a version is the one that we tried to create; None if there is none.
    async fn landed(&self, version: &Version, ours: &Bytes) -> Result<Option<bool>> {
        match self.files.read(&version.location).await {
            Ok(found) => Ok(Some(found == ours)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn named(&self, number: u64, codec: Codec) -> Version {
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
