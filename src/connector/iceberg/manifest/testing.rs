//! Manifests that Spark has written.

use std::fs;

/// Returns the manifests of data files of a table among the fixtures.
pub(super) fn manifests(table: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/tests/iceberg/fixtures/spark/{table}/metadata", env!("CARGO_MANIFEST_DIR"));
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let manifests = paths.filter(|path| path.to_str().unwrap().ends_with("-m0.avro"));
    manifests.map(|path| fs::read(path).unwrap()).collect()
}
