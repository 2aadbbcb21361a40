//! Manifest lists and manifests: read through the table's store, so that what is wrong is known by file, and parsed by the crate.
//!
//! A manifest never changes, so what it holds is kept for the next query of whatever table and session. What an entry inherits
//! from the manifest list is the same in every list that names the manifest. Who writes entries anew reads them past the cache, as
//! they are: with their maps of metrics they may be taken apart.

use std::panic::catch_unwind;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use datafusion::common::runtime::SpawnedTask;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{
    DataFile, FormatVersion, Manifest, ManifestEntry, ManifestFile, ManifestList, ManifestStatus,
    PrimitiveLiteral, SchemaRef, Snapshot,
};
use iceberg::table::Table;

use super::manifest_header::with_plain_header;
use super::{FileRole, ManifestedFile, ReadContext, TableFile, WeightedCache};
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// What all parsed manifests may take in memory.
const CACHE_BYTES: usize = 64 << 20;

/// How many manifests are read at the same time.
const CONCURRENT_READS: usize = 16;

static MANIFESTS: LazyLock<WeightedCache<Vec<ManifestedFile>>> =
    LazyLock::new(|| WeightedCache::new(CACHE_BYTES));

/// Reads the manifests of a table.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct ManifestReader {
    files: FileStore,
    context: ReadContext,
    version: FormatVersion,
}

/// A manifest whose entries are written anew.
#[derive(Debug)]
pub(in crate::connector::iceberg) struct RewrittenManifest {
    /// The schema in its header, which binds the partition spec even where columns have been dropped since.
    pub(in crate::connector::iceberg) schema: SchemaRef,
    /// Its entries, with what they inherit.
    pub(in crate::connector::iceberg) entries: Vec<ManifestEntry>,
}

impl ManifestReader {
    /// Reads manifests of a snapshot, if one is given: errors name it.
    pub(in crate::connector::iceberg) fn new(
        table: &IcebergTable,
        snapshot_id: Option<i64>,
    ) -> ManifestReader {
        ManifestReader {
            context: ReadContext::new(table, snapshot_id),
            ..ManifestReader::of_catalog(table.table(), table.files())
        }
    }

    /// Reads manifests of a table as catalogs know it.
    pub(in crate::connector::iceberg) fn of_catalog(table: &Table, files: &FileStore) -> ManifestReader {
        ManifestReader {
            files: files.clone(),
            context: ReadContext::of_table(table.identifier()),
            version: table.metadata().format_version(),
        }
    }

    /// Reads manifests of a snapshot of the same table.
    pub(in crate::connector::iceberg) fn of_snapshot(&self, snapshot_id: i64) -> ManifestReader {
        ManifestReader { context: self.context.of_snapshot(snapshot_id), ..self.clone() }
    }

    /// Says that a manifest holds something else than it should.
    pub(in crate::connector::iceberg) fn damaged(
        &self,
        manifest: &ManifestFile,
        cause: iceberg::Error,
    ) -> Error {
        self.context.damaged(FileRole::Manifest, &manifest.manifest_path, cause)
    }

    /// Returns the manifests of a snapshot.
    ///
    /// # Errors
    /// The manifest list is missing or damaged.
    pub(in crate::connector::iceberg) async fn list(&self, snapshot: &Snapshot) -> Result<Vec<ManifestFile>> {
        let context = self.context.of_snapshot(snapshot.snapshot_id());
        let (role, location) = (FileRole::ManifestList, snapshot.manifest_list());
        if snapshot.encryption_key_id().is_some() {
            return Err(encrypted(&context, role, location));
        }
        let bytes = read_all(&self.files, &context, role, location).await?;
        let list = ManifestList::parse_with_version(&bytes, self.version)
            .map_err(|error| context.damaged(role, location, error))?;
        Ok(list.consume_entries().into_iter().collect())
    }

    /// Returns what each manifest lists, files that have left included.
    ///
    /// # Errors
    /// A manifest is missing or damaged.
    pub(in crate::connector::iceberg) async fn files<'a>(
        &self,
        manifests: impl IntoIterator<Item = &'a ManifestFile>,
    ) -> Result<Vec<Arc<Vec<ManifestedFile>>>> {
        let tasks: Vec<_> = manifests.into_iter().map(|manifest| (self.clone(), manifest.clone())).collect();
        stream::iter(tasks)
            .map(|(reader, manifest)| async move {
                // Parsing takes longer than reading: a task each, so that all cores take part.
                let task = SpawnedTask::spawn(async move { reader.files_of(&manifest).await });
                task.join_unwind()
                    .await
                    .map_err(|error| Error::internal("a reader stopped").caused_by(error))?
            })
            .buffered(CONCURRENT_READS)
            .try_collect()
            .await
    }

    /// Hands out the location of every file that manifests list, files that have left included. Few manifests are held at a time,
    /// however many there are.
    ///
    /// # Errors
    /// A manifest is missing or damaged, or `each` fails.
    pub(in crate::connector::iceberg) async fn for_each_location(
        &self,
        manifests: &[&ManifestFile],
        mut each: impl FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        for some in manifests.chunks(CONCURRENT_READS) {
            let read = self.files(some.iter().copied()).await?;
            for listed in read.iter().flat_map(|listed| listed.iter()) {
                each(listed.file.file.file_path())?;
            }
        }
        Ok(())
    }

    /// Returns the entries of a manifest, to be written anew.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub(in crate::connector::iceberg) async fn for_rewrite(
        &self,
        manifest: &ManifestFile,
    ) -> Result<RewrittenManifest> {
        let (mut entries, schema) = self.parse(manifest).await?;
        for entry in &mut entries {
            let inherited = inherited_sequence_number(entry, manifest);
            entry.snapshot_id.get_or_insert(manifest.added_snapshot_id);
            entry.sequence_number = entry.sequence_number.or(Some(inherited));
            entry.file_sequence_number = entry.file_sequence_number.or(Some(inherited));
        }
        Ok(RewrittenManifest { schema, entries })
    }

    async fn files_of(&self, manifest: &ManifestFile) -> Result<Arc<Vec<ManifestedFile>>> {
        // A table that was made anew, or put back from a copy, may have another manifest under the same name.
        let (location, snapshot) = (manifest.manifest_path.as_str(), manifest.added_snapshot_id);
        let key = format!("{location} of {} bytes, snapshot {snapshot}", manifest.manifest_length);
        if let Some(known) = MANIFESTS.get(&key) {
            return Ok(known);
        }
        let (entries, _) = self.parse(manifest).await?;
        let listed: Vec<ManifestedFile> =
            entries.into_iter().map(|entry| manifested(entry, manifest)).collect();
        let weight = listed.iter().map(weight).sum();
        let listed = Arc::new(listed);
        MANIFESTS.insert(&key, Arc::clone(&listed), weight);
        Ok(listed)
    }

    /// Returns the entries of a manifest as they stand in it, and the schema in its header.
    async fn parse(&self, manifest: &ManifestFile) -> Result<(Vec<ManifestEntry>, SchemaRef)> {
        let (role, location) = (FileRole::Manifest, manifest.manifest_path.as_str());
        if manifest.key_metadata.is_some() {
            return Err(encrypted(&self.context, role, location));
        }
        let bytes = read_all(&self.files, &self.context, role, location).await?;
        // Not only where the crate refuses a header: under another name it finds no value, and takes the partition for NULL.
        let plain = with_plain_header(&bytes);
        let parsed = parsed(plain.as_deref().unwrap_or(&bytes));
        let parsed = parsed.map_err(|error| self.context.damaged(role, location, error))?;
        let (entries, header) = parsed.into_parts();
        Ok((entries.into_iter().map(Arc::unwrap_or_clone).collect(), header.schema))
    }
}

/// Parses a manifest. On some damaged headers the crate's Avro reader panics, where it means an error.
fn parsed(bytes: &[u8]) -> iceberg::Result<Manifest> {
    catch_unwind(|| Manifest::parse_avro(bytes)).unwrap_or_else(|_| {
        Err(iceberg::Error::new(iceberg::ErrorKind::DataInvalid, "the header is not that of a manifest"))
    })
}

/// Reads a whole file.
///
/// # Errors
/// It is missing, or the store does not give it.
pub(in crate::connector::iceberg) async fn read_all(
    files: &FileStore,
    context: &ReadContext,
    role: FileRole,
    location: &str,
) -> Result<Bytes> {
    let (store, path) = files.resolve(location)?;
    let read = async { store.get_opts(&path, Default::default()).await?.bytes().await };
    read.await.map_err(|error| context.not_read(role, location, error))
}

fn encrypted(context: &ReadContext, role: FileRole, location: &str) -> Error {
    context.unsupported(role, location, "is encrypted", "Encrypted Iceberg tables are not supported.")
}

/// Returns the sequence number that an entry takes from the manifest list if it has none.
fn inherited_sequence_number(entry: &ManifestEntry, manifest: &ManifestFile) -> i64 {
    match entry.status {
        ManifestStatus::Added => manifest.sequence_number,
        // Only format 1 leaves these out, where every number is 0.
        _ => 0,
    }
}

/// Fills in what an entry leaves to the manifest list.
fn manifested(entry: ManifestEntry, manifest: &ManifestFile) -> ManifestedFile {
    let inherited = inherited_sequence_number(&entry, manifest);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::iceberg::manifest::testing::manifests;

    #[test]
    fn a_manifest_with_another_byte_is_read_or_refused_and_never_a_panic() {
        let bytes = manifests("identity").remove(0);
        assert!(parsed(&bytes).is_ok());
        let mut refused = 0;
        for at in (0..bytes.len()).step_by(11) {
            let mut bytes = bytes.clone();
            bytes[at] = 0x7F;
            refused += usize::from(parsed(&bytes).is_err());
        }
        assert!(refused > 0);
    }
}
