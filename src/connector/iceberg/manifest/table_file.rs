//! A file of a table, as writers make it and as manifests list it.

use std::sync::Arc;

use iceberg::spec::{DataContentType, DataFile, Datum, ManifestStatus, PrimitiveLiteral};

use super::PartitionKey;

/// The field id of the column `file_path` in position delete files.
pub(in crate::connector::iceberg) const DELETE_FILE_PATH_ID: i32 = 2_147_483_546;

/// The field id of the column `pos` in position delete files.
pub(in crate::connector::iceberg) const DELETE_FILE_POS_ID: i32 = 2_147_483_545;

/// A data or delete file with its partition spec, which `DataFile` does not tell.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct TableFile {
    /// The partition spec.
    pub(in crate::connector::iceberg) spec_id: i32,
    /// The file.
    pub(in crate::connector::iceberg) file: DataFile,
}

impl TableFile {
    /// Returns the partition that the file lies in.
    pub(in crate::connector::iceberg) fn partition_key(&self) -> PartitionKey {
        PartitionKey::of(self.spec_id, self.file.partition())
    }

    /// Returns the data file that all rows of a file of position deletes are for, if there is one such file.
    pub(in crate::connector::iceberg) fn referenced_data_file(&self) -> Option<String> {
        referenced_data_file(&self.file)
    }

    /// Returns whether a file of position deletes may name a data file.
    pub(in crate::connector::iceberg) fn may_name(&self, path: &str) -> bool {
        let (lower, upper) = path_bounds(&self.file);
        lower.is_none_or(|lower| lower <= path) && upper.is_none_or(|upper| path <= upper)
    }
}

/// Returns the data file that all rows of a file of position deletes are for, if there is one such file: it is named, or it is both
/// bounds of the paths in it.
pub(in crate::connector::iceberg) fn referenced_data_file(file: &DataFile) -> Option<String> {
    if file.content_type() != DataContentType::PositionDeletes {
        return None;
    }
    file.referenced_data_file().or_else(|| match path_bounds(file) {
        // A bound that was cut would differ: the upper one is then rounded up.
        (Some(lower), Some(upper)) if lower == upper => Some(lower.to_owned()),
        _ => None,
    })
}

/// Returns the bounds of the paths in a file of position deletes.
fn path_bounds(file: &DataFile) -> (Option<&str>, Option<&str>) {
    fn text(bound: Option<&Datum>) -> Option<&str> {
        match bound?.literal() {
            PrimitiveLiteral::String(text) => Some(text),
            _ => None,
        }
    }
    let (lower, upper) = (file.lower_bounds(), file.upper_bounds());
    (text(lower.get(&DELETE_FILE_PATH_ID)), text(upper.get(&DELETE_FILE_PATH_ID)))
}

/// A file as a manifest lists it, with what its entry inherits.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct ManifestedFile {
    /// Whether it came with this manifest, was there before, or left.
    pub(in crate::connector::iceberg) status: ManifestStatus,
    /// The snapshot with which it came, or left.
    pub(in crate::connector::iceberg) snapshot_id: i64,
    /// The sequence number of its rows.
    pub(in crate::connector::iceberg) data_sequence_number: i64,
    /// The sequence number of the snapshot that added the file.
    pub(in crate::connector::iceberg) file_sequence_number: i64,
    /// The file.
    pub(in crate::connector::iceberg) file: Arc<TableFile>,
}
