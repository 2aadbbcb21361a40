//! The manifests of one attempt: those of the table are read, new ones are written, and every file is noted before it is written.
//!
//! In format 3 a data file has a first row id, its own or inherited from its place in the manifest; the crate does not pass it on. An
//! entry that moves to another manifest must take it along, or its rows would be numbered anew: so it is worked out when a manifest
//! is read. A manifest whose entries all have their ids takes no new ones.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{
    DataFile, DataFileBuilder, Datum, FormatVersion, Literal, ManifestContentType, ManifestEntry,
    ManifestFile, ManifestListWriter, ManifestStatus, ManifestWriter, ManifestWriterBuilder, NestedFieldRef,
    PrimitiveLiteral, PrimitiveType, SchemaRef, SnapshotRef, Struct, StructType, Type,
    UNASSIGNED_SEQUENCE_NUMBER,
};
use uuid::Uuid;

use crate::connector::iceberg::catalog::metadata_folder;
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::field_history::schemas_newest_first;
use crate::connector::iceberg::manifest::{ManifestReader, RewrittenManifest, TableFile};
use crate::connector::iceberg::partition::{avro_spec, spec_of};
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// A manifest of the new snapshot.
#[derive(Debug, Clone)]
pub(super) struct SnapshotManifest {
    pub(super) file: ManifestFile,
    /// Rows of live files without a first row id.
    unassigned_rows: u64,
    /// The lowest first row id in it.
    first_row_id: Option<u64>,
}

impl SnapshotManifest {
    /// Takes a manifest of the snapshot before.
    pub(super) fn kept(file: ManifestFile) -> SnapshotManifest {
        let unassigned_rows = file.existing_rows_count.unwrap_or(0) + file.added_rows_count.unwrap_or(0);
        SnapshotManifest { file, unassigned_rows, first_row_id: None }
    }
}

/// Reads and writes the manifests of one attempt.
pub(super) struct ManifestStore<'a> {
    table: &'a IcebergTable,
    snapshot_id: i64,
    folder: String,
    commit: Uuid,
    reader: ManifestReader,
    written: &'a mut Vec<String>,
}

impl<'a> ManifestStore<'a> {
    pub(super) fn new(
        table: &'a IcebergTable,
        snapshot_id: i64,
        written: &'a mut Vec<String>,
    ) -> ManifestStore<'a> {
        let folder = metadata_folder(table.metadata());
        let reader = ManifestReader::new(table, None);
        ManifestStore { table, snapshot_id, folder, commit: Uuid::new_v4(), reader, written }
    }

    /// Reads which manifests a snapshot has.
    pub(super) async fn list(&self, snapshot: &SnapshotRef) -> Result<Vec<ManifestFile>> {
        self.reader.list(snapshot).await
    }

    /// Reads a manifest: its entries know their sequence numbers and first row ids.
    pub(super) async fn read(&self, manifest: &ManifestFile) -> Result<RewrittenManifest> {
        let reader = self.reader.of_snapshot(manifest.added_snapshot_id);
        let mut read = reader.for_rewrite(manifest).await?;
        if manifest.content == ManifestContentType::Data && self.format_version() == FormatVersion::V3 {
            let damaged = |error| reader.damaged(manifest, error);
            inherit_first_row_ids(manifest, &mut read.entries).map_err(damaged)?;
        }
        Ok(read)
    }

    /// Begins a manifest for files of a partition spec that come with this snapshot.
    pub(super) fn create(&mut self, spec_id: i32, content: ManifestContentType) -> Result<NewManifest> {
        let metadata = self.table.metadata();
        let spec = spec_of(metadata, spec_id, &self.table.ident().to_string())?;
        // The column of an old spec may have been dropped since: the newest schema that still has it binds the spec.
        let schema = schemas_newest_first(metadata).find(|schema| spec.partition_type(schema).is_ok());
        let schema = Arc::clone(schema.unwrap_or(metadata.current_schema()));
        self.create_with(schema, spec_id, content)
    }

    /// Begins a manifest that holds entries of others, under the schema of the newest of them.
    pub(super) fn create_with(
        &mut self,
        schema: SchemaRef,
        spec_id: i32,
        content: ManifestContentType,
    ) -> Result<NewManifest> {
        // Not the spec in the header of a manifest: what stands there of a dropped field may have been changed to be read.
        let spec = spec_of(self.table.metadata(), spec_id, &self.table.ident().to_string())?.clone();
        let path = format!("{}/{}-m{}.avro", self.folder, self.commit, self.written.len());
        self.written.push(path.clone());
        let partition_type = spec.partition_type(&schema).map_err(from_iceberg)?;
        let output = self.table.file_io().new_output(&path).map_err(from_iceberg)?;
        let spec = avro_spec(&spec).map_err(from_iceberg)?;
        let builder = ManifestWriterBuilder::new(output, Some(self.snapshot_id), Arc::clone(&schema), spec);
        let writer = match (self.format_version(), content) {
            (FormatVersion::V1, ManifestContentType::Data) => builder.build_v1(),
            (FormatVersion::V1, ManifestContentType::Deletes) => {
                return Err(Error::internal(format!("delete files in a v1 table: '{}'", self.table.ident())));
            }
            (FormatVersion::V2, ManifestContentType::Data) => builder.build_v2_data(),
            (FormatVersion::V2, ManifestContentType::Deletes) => builder.build_v2_deletes(),
            (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
            (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
        };
        Ok(NewManifest { writer, schema, partition_type, path, unassigned_rows: 0, first_row_id: None })
    }

    /// Writes the manifest list, and returns its path and which row ids the snapshot takes: the first one, and how many.
    pub(super) async fn write_list(
        &mut self,
        parent: Option<i64>,
        manifests: Vec<SnapshotManifest>,
    ) -> Result<(String, (u64, u64))> {
        let metadata = self.table.metadata();
        let (snapshot_id, sequence_number) = (self.snapshot_id, metadata.next_sequence_number());
        let path = format!("{}/snap-{snapshot_id}-0-{}.avro", self.folder, self.commit);
        self.written.push(path.clone());

        let first_row_id = metadata.next_row_id();
        let mut next_row_id = first_row_id;
        let manifests = manifests.into_iter().map(|mut manifest| {
            if manifest.file.content == ManifestContentType::Data && manifest.file.first_row_id.is_none() {
                let inherited = manifest.first_row_id.filter(|_| manifest.unassigned_rows == 0);
                manifest.file.first_row_id = Some(inherited.unwrap_or(next_row_id));
                next_row_id += manifest.unassigned_rows;
            }
            manifest.file
        });
        let manifests: Vec<ManifestFile> = match self.format_version() {
            FormatVersion::V3 => manifests.collect(),
            _ => manifests.map(|manifest| ManifestFile { first_row_id: None, ..manifest }).collect(),
        };
        let write = async {
            let output = self.table.file_io().new_output(&path)?.writer().await?;
            let mut list = match self.format_version() {
                FormatVersion::V1 => ManifestListWriter::v1(output, snapshot_id, parent),
                FormatVersion::V2 => ManifestListWriter::v2(output, snapshot_id, parent, sequence_number),
                FormatVersion::V3 => {
                    ManifestListWriter::v3(output, snapshot_id, parent, sequence_number, Some(first_row_id))
                }
            };
            list.add_manifests(manifests.into_iter())?;
            list.close().await
        };
        write.await.map_err(|error| unwritable(&path, error))?;
        Ok((path, (first_row_id, next_row_id - first_row_id)))
    }

    fn format_version(&self) -> FormatVersion {
        self.table.metadata().format_version()
    }
}

fn unwritable(path: &str, error: iceberg::Error) -> Error {
    let error = from_iceberg(error);
    if error.message().contains(path) {
        error
    } else {
        with_context(&format!("'{path}' cannot be written"), error)
    }
}

/// Says of an error what could not be done, and leaves kind, class and hint as they are.
pub(super) fn with_context(context: &str, error: Error) -> Error {
    let named = Error::new(error.kind(), format!("{context}: {error}")).class(error.flink_class());
    let named = match error.hint_text() {
        Some(hint) => named.hint(hint.to_owned()),
        None => named,
    };
    named.caused_by(error)
}

/// A manifest that is being written.
pub(super) struct NewManifest {
    writer: ManifestWriter,
    schema: SchemaRef,
    partition_type: StructType,
    path: String,
    unassigned_rows: u64,
    first_row_id: Option<u64>,
}

impl NewManifest {
    /// Adds a file that comes with this snapshot, under an older sequence number if one is given.
    pub(super) fn add(&mut self, file: &TableFile, sequence_number: Option<i64>) -> Result<()> {
        let file = self.fitted(&file.file)?.unwrap_or_else(|| file.file.clone());
        self.count(&file);
        let sequence_number = sequence_number.unwrap_or(UNASSIGNED_SEQUENCE_NUMBER);
        self.writer.add_file(file, sequence_number).map_err(|error| unwritable(&self.path, error))
    }

    /// Adds an entry that stays.
    pub(super) fn keep(&mut self, entry: ManifestEntry) -> Result<()> {
        let file = self.fitted(&entry.data_file)?.unwrap_or(entry.data_file);
        self.count(&file);
        let added_by = entry.snapshot_id.unwrap_or_default();
        let sequence_number = entry.sequence_number.unwrap_or_default();
        let added =
            self.writer.add_existing_file(file, added_by, sequence_number, entry.file_sequence_number);
        added.map_err(|error| unwritable(&self.path, error))
    }

    /// Adds an entry that goes with this snapshot.
    pub(super) fn remove(&mut self, entry: ManifestEntry) -> Result<()> {
        let sequence_number = entry.sequence_number.unwrap_or_default();
        let removed =
            self.writer.add_delete_file(entry.data_file, sequence_number, entry.file_sequence_number);
        removed.map_err(|error| unwritable(&self.path, error))
    }

    /// Writes the manifest.
    pub(super) async fn finish(self) -> Result<SnapshotManifest> {
        let NewManifest { writer, path, unassigned_rows, first_row_id, .. } = self;
        let file = writer.write_manifest_file().await.map_err(|error| unwritable(&path, error))?;
        Ok(SnapshotManifest { file, unassigned_rows, first_row_id })
    }

    fn count(&mut self, file: &DataFile) {
        match file.first_row_id().and_then(|id| u64::try_from(id).ok()) {
            Some(id) => self.first_row_id = Some(self.first_row_id.map_or(id, |first| first.min(id))),
            None => self.unassigned_rows += file.record_count(),
        }
    }

    /// Makes the entry of a file fit the schema of this manifest, where a column has had another type when the file was written. None
    /// if it fits as it is.
    ///
    /// Partition values take the wider type, as readers would do. Bounds stay, as readers know promoted ones by their width; one that
    /// they could not read is left out.
    fn fitted(&self, file: &DataFile) -> Result<Option<DataFile>> {
        let partition = self.fitted_partition(file)?;
        let is_readable = |(id, bound): (&i32, &Datum)| {
            use PrimitiveType::{Decimal, Double, Float, Int, Long};
            match self.schema.field_by_id(*id).map(|field| &*field.field_type) {
                Some(Type::Primitive(now)) if bound.data_type() != now => matches!(
                    (bound.data_type(), now),
                    (Int, Long) | (Float, Double) | (Decimal { .. }, Decimal { .. })
                ),
                _ => true,
            }
        };
        let are_readable = |bounds: &HashMap<i32, Datum>| bounds.iter().all(is_readable);
        if &partition == file.partition()
            && are_readable(file.lower_bounds())
            && are_readable(file.upper_bounds())
        {
            return Ok(None);
        }
        let readable = |bounds: &HashMap<i32, Datum>| {
            bounds
                .iter()
                .filter(|bound| is_readable(*bound))
                .map(|(id, bound)| (*id, bound.clone()))
                .collect()
        };
        let (lower, upper) = (readable(file.lower_bounds()), readable(file.upper_bounds()));
        let fitted = rebuilt(file, |builder| {
            builder.partition(partition).lower_bounds(lower).upper_bounds(upper);
        });
        fitted.map(Some).map_err(|error| unwritable(&self.path, error))
    }

    fn fitted_partition(&self, file: &DataFile) -> Result<Struct> {
        let (values, fields) = (file.partition().fields(), self.partition_type.fields());
        if values.len() != fields.len() {
            return Err(Error::internal(format!(
                "file '{}' has {} partition values, and its spec {} fields",
                file.file_path(),
                values.len(),
                fields.len()
            )));
        }
        let fit = |(value, field): (&Option<Literal>, &NestedFieldRef)| match (value, &*field.field_type) {
            (
                Some(Literal::Primitive(PrimitiveLiteral::Int(value))),
                Type::Primitive(PrimitiveType::Long),
            ) => Some(Literal::long(*value)),
            (
                Some(Literal::Primitive(PrimitiveLiteral::Float(value))),
                Type::Primitive(PrimitiveType::Double),
            ) => Some(Literal::double(value.0)),
            _ => value.clone(),
        };
        Ok(values.iter().zip(fields).map(fit).collect())
    }
}

/// Gives each live entry the first row id that its place in the manifest says.
fn inherit_first_row_ids(manifest: &ManifestFile, entries: &mut [ManifestEntry]) -> iceberg::Result<()> {
    let Some(mut next) = manifest.first_row_id else { return Ok(()) };
    for entry in entries {
        let is_live = entry.status != ManifestStatus::Deleted;
        if !is_live || entry.data_file.first_row_id().is_some() {
            continue;
        }
        let first = i64::try_from(next).ok();
        next += entry.data_file.record_count();
        entry.data_file = rebuilt(&entry.data_file, |builder| {
            builder.first_row_id(first);
        })?;
    }
    Ok(())
}

/// Copies a file with some fields changed. The builder is the only way to change one.
fn rebuilt(file: &DataFile, change: impl FnOnce(&mut DataFileBuilder)) -> iceberg::Result<DataFile> {
    let mut builder = DataFileBuilder::default();
    builder
        .content(file.content_type())
        .file_path(file.file_path().to_owned())
        .file_format(file.file_format())
        .partition(file.partition().clone())
        .record_count(file.record_count())
        .file_size_in_bytes(file.file_size_in_bytes())
        .column_sizes(file.column_sizes().clone())
        .value_counts(file.value_counts().clone())
        .null_value_counts(file.null_value_counts().clone())
        .nan_value_counts(file.nan_value_counts().clone())
        .lower_bounds(file.lower_bounds().clone())
        .upper_bounds(file.upper_bounds().clone())
        .key_metadata(file.key_metadata().map(<[u8]>::to_vec))
        .split_offsets(file.split_offsets().map(<[i64]>::to_vec))
        .equality_ids(file.equality_ids())
        .first_row_id(file.first_row_id())
        .referenced_data_file(file.referenced_data_file())
        .content_offset(file.content_offset())
        .content_size_in_bytes(file.content_size_in_bytes());
    if let Some(order) = file.sort_order_id() {
        builder.sort_order_id(order);
    }
    change(&mut builder);
    builder.build().map_err(|error| {
        iceberg::Error::new(
            iceberg::ErrorKind::DataInvalid,
            format!("entry of file '{}': {error}", file.file_path()),
        )
    })
}
