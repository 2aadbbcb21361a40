//! All files that belong to a table, for when it is dropped with them.

use std::collections::{BTreeMap, BTreeSet};

use iceberg::spec::{ManifestFile, TableMetadata};
use iceberg::table::Table;

use crate::connector::iceberg::manifest::ManifestReader;
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

/// The property that is `false` if a table's files may belong to others too.
const GC_ENABLED: &str = "gc.enabled";

/// Returns whether a table's files must stay when it is dropped.
pub(super) fn keeps_files(metadata: &TableMetadata) -> bool {
    metadata.properties().get(GC_ENABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("false"))
}

/// Returns whether an error says that the metadata of a table is gone or damaged, as opposed to: there is no table, or it cannot be
/// reached or understood now. Such a table can be dropped; what belongs to it nobody can tell.
pub(super) fn is_damage(error: &Error) -> bool {
    let is_lost = error.kind() == ErrorKind::NotFound && error.flink_class() == FlinkClass::ICEBERG_NOT_FOUND;
    is_lost || error.kind() == ErrorKind::Data
}

/// Returns the files of all snapshots that lie outside of a folder. What cannot be found because metadata is damaged stays: a
/// damaged table can be dropped.
pub(super) async fn files_outside(folder: &str, table: &Table, files: &FileStore) -> Vec<String> {
    let inside = format!("{folder}/");
    match files_of(table, files).await {
        Ok(found) => found.into_iter().filter(|file| !file.starts_with(&inside)).collect(),
        Err(error) => {
            tracing::warn!(error = %error, table = %table.identifier(), "files outside of the table's folder stay");
            Vec::new()
        }
    }
}

/// Returns the files of all snapshots: data, deletes, manifests, lists of manifests, statistics and metadata.
///
/// # Errors
/// A manifest or a list of manifests cannot be read.
pub(super) async fn files_of(table: &Table, files: &FileStore) -> Result<BTreeSet<String>> {
    let metadata = table.metadata();
    let mut found: BTreeSet<String> =
        metadata.metadata_log().iter().map(|log| log.metadata_file.clone()).collect();
    found.extend(metadata.statistics_iter().map(|file| file.statistics_path.clone()));
    found.extend(metadata.partition_statistics_iter().map(|file| file.statistics_path.clone()));
    found.extend(table.metadata_location().map(str::to_owned));
    let reader = ManifestReader::of_catalog(table, files);
    let mut manifests = BTreeMap::new();
    for snapshot in metadata.snapshots() {
        let list = reader.list(snapshot).await?;
        manifests.extend(list.into_iter().map(|manifest| (manifest.manifest_path.clone(), manifest)));
        found.insert(snapshot.manifest_list().to_owned());
    }
    let listed: Vec<&ManifestFile> = manifests.values().collect();
    let mut take = |location: &str| {
        found.insert(location.to_owned());
        Ok(())
    };
    reader.for_each_location(&listed, &mut take).await?;
    found.extend(manifests.into_keys());
    found.remove("");
    Ok(found)
}
