//! What a writer has finished for a checkpoint: the committable of all kinds of writers.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::file_record::FileRecord;
use super::upsert::{Lookup, LookupRecord};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::{CheckpointId, Committable};
use crate::error::{Error, ErrorKind, Result};

/// The version of the form in which committables are kept.
const VERSION: u32 = 1;

/// What leaves the table when the files come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Replaced {
    /// Nothing.
    Nothing,
    /// All rows of the partitions that the files are in; in a table without partitions all rows, if there are files.
    TouchedPartitions,
    /// All rows of the table, also if there are no files.
    Everything,
}

/// Files that a writer has finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PreparedFiles {
    version: u32,
    /// Tells this committable from all others, so that it is committed once.
    pub(super) id: String,
    /// Which run of which sink has prepared it.
    pub(super) lineage: String,
    /// The table that the files are for.
    pub(super) table: Uuid,
    /// The checkpoint.
    pub(super) checkpoint: CheckpointId,
    /// What leaves the table.
    pub(super) replaced: Replaced,
    files: Vec<FileRecord>,
    /// Where the rows were looked up that the files replace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lookup: Option<LookupRecord>,
}

impl PreparedFiles {
    /// Describes files of a checkpoint.
    ///
    /// # Errors
    /// A file is of a kind that we do not write.
    pub(super) fn new(
        lineage: &str,
        table: Uuid,
        checkpoint: CheckpointId,
        replaced: Replaced,
        files: &[TableFile],
    ) -> Result<PreparedFiles> {
        Ok(PreparedFiles {
            version: VERSION,
            id: Uuid::new_v4().simple().to_string(),
            lineage: lineage.to_owned(),
            table,
            checkpoint,
            replaced,
            files: files.iter().map(FileRecord::new).collect::<Result<_>>()?,
            lookup: None,
        })
    }

    /// Adds where the rows were looked up that the files replace.
    ///
    /// # Errors
    /// They cannot be written down.
    pub(super) fn with_lookup(self, lookup: &Lookup) -> Result<PreparedFiles> {
        Ok(PreparedFiles { lookup: Some(lookup.to_record()?), ..self })
    }

    /// Returns where the rows were looked up that the files replace; None if they only add rows.
    ///
    /// # Errors
    /// It is damaged.
    pub(super) fn lookup(&self) -> Result<Option<Lookup>> {
        self.lookup.as_ref().map(Lookup::from_record).transpose()
    }

    /// Returns where the files are.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(FileRecord::path)
    }

    /// Returns the files.
    ///
    /// # Errors
    /// They are damaged.
    pub(super) fn files(&self) -> Result<Vec<TableFile>> {
        self.files.iter().map(FileRecord::to_file).collect()
    }

    /// Writes the committable.
    ///
    /// # Errors
    /// A path is no text.
    pub(super) fn to_committable(&self) -> Result<Committable> {
        let bytes = serde_json::to_vec(self)
            .map_err(|error| Error::internal("the files of a checkpoint cannot be kept").caused_by(error))?;
        Ok(Committable(bytes))
    }

    /// Reads a committable.
    ///
    /// # Errors
    /// It is damaged, or of another version.
    pub(super) fn from_committable(committable: &Committable) -> Result<PreparedFiles> {
        let damaged = || Error::new(ErrorKind::State, "the files of a checkpoint cannot be read");
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let versioned: Versioned =
            serde_json::from_slice(&committable.0).map_err(|error| damaged().caused_by(error))?;
        if versioned.version != VERSION {
            return Err(damaged().hint(format!(
                "They are kept in version {} of their form, and this program knows version {VERSION}.",
                versioned.version
            )));
        }
        serde_json::from_slice(&committable.0).map_err(|error| damaged().caused_by(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_committable_is_read_again_and_another_version_is_refused() {
        let prepared =
            PreparedFiles::new("job~2fsink", Uuid::new_v4(), 7, Replaced::TouchedPartitions, &[]).unwrap();
        let mut committable = prepared.to_committable().unwrap();
        assert_eq!(PreparedFiles::from_committable(&committable).unwrap(), prepared);
        let text = String::from_utf8(committable.0).unwrap();
        committable = Committable(text.replace("\"version\":1", "\"version\":9").into_bytes());
        let error = PreparedFiles::from_committable(&committable).unwrap_err();
        assert!(error.hint_text().unwrap().contains("version 9"));
        assert!(PreparedFiles::from_committable(&Committable(b"{}".to_vec())).is_err());
    }
}
