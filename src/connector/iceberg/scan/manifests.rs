//! Manifest lists and manifests: read through the table's store, so that what is wrong is known by file, and parsed by the crate.
//!
//! A manifest never changes, so what it holds is kept for the next query of whatever table and session. What an entry inherits
//! from the manifest list is the same in every list that names the manifest.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use iceberg::spec::{
    DataFile, FormatVersion, Manifest, ManifestEntry, ManifestFile, ManifestList, ManifestStatus,
    PrimitiveLiteral, Snapshot,
};

use super::manifest_header::without_void_fields;
use super::read_error::{FileRole, ReadContext};
use super::weighted_cache::WeightedCache;
use crate::connector::iceberg::commit::TableFile;
use crate::connector::iceberg::storage::FileStore;
use crate::error::Result;

/// What all parsed manifests may take in memory.
const CACHE_BYTES: usize = 64 << 20;

static MANIFESTS: LazyLock<WeightedCache<Vec<ManifestedFile>>> =
    LazyLock::new(|| WeightedCache::new(CACHE_BYTES));

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

/// Reads a whole file.
pub(super) async fn read_all(
    files: &FileStore,
    context: &ReadContext,
    role: FileRole,
    location: &str,
) -> Result<Bytes> {
    let (store, path) = files.resolve(location)?;
    let read = async { store.get_opts(&path, Default::default()).await?.bytes().await };
    read.await.map_err(|error| context.not_read(role, location, error))
}

/// Reads the manifest list of a snapshot.
///
/// # Errors
/// It is missing or damaged.
pub(in crate::connector::iceberg::scan) async fn manifest_list(
    files: &FileStore,
    context: &ReadContext,
    snapshot: &Snapshot,
    version: FormatVersion,
) -> Result<ManifestList> {
    let (role, location) = (FileRole::ManifestList, snapshot.manifest_list());
    if snapshot.encryption_key_id().is_some() {
        return Err(encrypted(context, role, location));
    }
    let bytes = read_all(files, context, role, location).await?;
    ManifestList::parse_with_version(&bytes, version).map_err(|error| context.damaged(role, location, error))
}

/// Reads the files that a manifest lists, those that have left included.
///
/// # Errors
/// It is missing or damaged.
pub(in crate::connector::iceberg::scan) async fn manifest_files(
    files: &FileStore,
    context: &ReadContext,
    manifest: &ManifestFile,
) -> Result<Arc<Vec<ManifestedFile>>> {
    let (role, location) = (FileRole::Manifest, manifest.manifest_path.as_str());
    if let Some(known) = MANIFESTS.get(location) {
        return Ok(known);
    }
    if manifest.key_metadata.is_some() {
        return Err(encrypted(context, role, location));
    }
    let bytes = read_all(files, context, role, location).await?;
    let parsed = match Manifest::parse_avro(&bytes) {
        Ok(parsed) => parsed,
        Err(error) => without_void_fields(&bytes)
            .and_then(|changed| Manifest::parse_avro(&changed).ok())
            .ok_or_else(|| context.damaged(role, location, error))?,
    };
    let (entries, _) = parsed.into_parts();
    let listed: Vec<ManifestedFile> = entries
        .into_iter()
        .map(|entry| {
            let entry = Arc::try_unwrap(entry).unwrap_or_else(|shared| ManifestEntry::clone(&shared));
            inherit(entry, manifest)
        })
        .collect();
    let weight = listed.iter().map(weight).sum();
    let listed = Arc::new(listed);
    MANIFESTS.insert(location, Arc::clone(&listed), weight);
    Ok(listed)
}

fn encrypted(context: &ReadContext, role: FileRole, location: &str) -> crate::error::Error {
    context.unsupported(role, location, "is encrypted", "Encrypted Iceberg tables are not supported.")
}

/// Fills in what an entry leaves to the manifest list.
fn inherit(entry: ManifestEntry, manifest: &ManifestFile) -> ManifestedFile {
    let inherited = match entry.status {
        ManifestStatus::Added => manifest.sequence_number,
        // Only format 1 leaves these out, where every number is 0.
        _ => 0,
    };
    ManifestedFile {
        status: entry.status,
        snapshot_id: entry.snapshot_id.unwrap_or(manifest.added_snapshot_id),
        data_sequence_number: entry.sequence_number.unwrap_or(inherited),
        file_sequence_number: entry.file_sequence_number.unwrap_or(inherited),
        file: Arc::new(TableFile { spec_id: manifest.partition_spec_id, file: entry.data_file }),
    }
}

/// Returns about how many bytes an entry takes, its maps by their capacity.
fn weight(listed: &ManifestedFile) -> usize {
    let file = &listed.file.file;
    let counts =
        [file.column_sizes(), file.value_counts(), file.null_value_counts(), file.nan_value_counts()];
    // A hash map takes a byte more for each place, and has up to twice as many places as entries.
    let counts: usize = counts.iter().map(|map| map.capacity() * (size_of::<(i32, u64)>() + 1)).sum();
    let bounds: usize = [file.lower_bounds(), file.upper_bounds()]
        .iter()
        .map(|map| {
            let places = map.capacity() * (size_of::<(i32, iceberg::spec::Datum)>() + 1);
            places + map.values().map(|bound| heap_bytes(bound.literal())).sum::<usize>()
        })
        .sum();
    let lists = file.split_offsets().map_or(0, size_of_val);
    size_of::<ManifestedFile>()
        + size_of::<DataFile>()
        + file.file_path().len()
        + std::mem::size_of_val(file.partition().fields())
        + counts
        + bounds
        + lists
}

fn heap_bytes(literal: &PrimitiveLiteral) -> usize {
    match literal {
        PrimitiveLiteral::String(text) => text.capacity(),
        PrimitiveLiteral::Binary(bytes) => bytes.capacity(),
        _ => 0,
    }
}
