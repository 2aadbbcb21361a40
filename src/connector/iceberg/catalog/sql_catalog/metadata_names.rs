//! Names of metadata files in catalogs that say themselves which one counts: `<location>/metadata/00007-<uuid>.metadata.json`.

use iceberg::spec::TableMetadata;
use uuid::Uuid;

use crate::connector::iceberg::catalog::metadata_file::{Codec, metadata_folder};
use crate::error::Result;

/// Returns a new place for a table's metadata, behind the one that it was made from.
///
/// # Errors
/// The table names a codec that there is not.
pub(super) fn next_location(metadata: &TableMetadata, base: Option<&str>) -> Result<String> {
    let folder = metadata_folder(metadata);
    // As Java counts: on from a name that has no number it is 0.
    let version = base.and_then(version_of).map_or(0, |version| version + 1);
    let extension = Codec::of(metadata)?.extension();
    Ok(format!("{folder}/{version:05}-{}{extension}", Uuid::new_v4()))
}

/// Returns the number in the name of a metadata file.
fn version_of(location: &str) -> Option<u64> {
    let name = location.rsplit('/').next()?;
    name.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_counted_on_as_in_java() {
        assert_eq!(version_of("file:/w/db/t/metadata/00007-1b4e.metadata.json"), Some(7));
        assert_eq!(version_of("/w/t/metadata/100000-1b4e.gz.metadata.json"), Some(100_000));
        assert_eq!(version_of("/w/t/metadata/v3.metadata.json"), None);
    }
}
