//! Tables for tests, in folders of their own: rows are written as lines of text, one `|` between columns.
//!
//! Files are made with the writers of the crates, so that what is read here was not written by our own sink.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Field, Schema as ArrowSchema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, FormatVersion, Literal, MAIN_BRANCH,
    ManifestContentType, ManifestFile, ManifestListWriter, ManifestWriterBuilder, NestedField, Operation,
    PrimitiveType, Schema, Snapshot, SnapshotReference, SnapshotRetention, SortOrder, Struct, Summary,
    TableMetadata, TableMetadataBuilder, Type, UnboundPartitionSpec,
};
use iceberg::table::Table;
use iceberg::{Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent};
use iceberg::{TableRequirement, TableUpdate};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use roaring::RoaringTreemap;
use tempfile::TempDir;

use crate::connector::iceberg::catalog::{CommitCatalog, CommitError};
use crate::connector::iceberg::manifest::{DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID, TableFile};
use crate::connector::iceberg::scan::provider::IcebergTableProvider;
use crate::connector::iceberg::scan::scan_target::ScanTarget;
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::type_mapping::to_flink;

/// A table in a folder that goes with it.
pub(super) struct TestTable {
    folder: TempDir,
    metadata: TableMetadata,
    files: usize,
}

/// How a data file is written.
#[derive(Clone)]
pub(super) struct DataOptions {
    pub(super) properties: WriterPropertiesBuilder,
    /// Whether columns carry field ids.
    pub(super) ids: bool,
    /// The partition, under the table's default spec.
    pub(super) partition: Struct,
    /// Columns of the schema that are left out of the file.
    pub(super) without: Vec<&'static str>,
    /// After how many characters bounds of texts are cut.
    pub(super) bound_length: usize,
}

impl Default for DataOptions {
    fn default() -> DataOptions {
        DataOptions {
            properties: WriterProperties::builder(),
            ids: true,
            partition: Struct::empty(),
            without: Vec::new(),
            bound_length: 16,
        }
    }
}

impl DataOptions {
    pub(super) fn partition(values: Vec<Option<Literal>>) -> DataOptions {
        DataOptions { partition: Struct::from_iter(values), ..DataOptions::default() }
    }
}

/// A schema of optional columns of primitive types.
pub(super) fn schema(columns: &[(&str, PrimitiveType)]) -> Schema {
    let field = |(place, (name, column)): (usize, &(&str, PrimitiveType))| {
        let id = i32::try_from(place + 1).unwrap();
        Arc::new(NestedField::optional(id, name, Type::Primitive(column.clone())))
    };
    Schema::builder().with_fields(columns.iter().enumerate().map(field)).build().unwrap()
}

impl TestTable {
    pub(super) fn new(version: FormatVersion, schema: Schema) -> TestTable {
        TestTable::partitioned(version, schema, UnboundPartitionSpec::builder().build())
    }

    pub(super) fn partitioned(
        version: FormatVersion,
        schema: Schema,
        spec: UnboundPartitionSpec,
    ) -> TestTable {
        let folder = TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("data")).unwrap();
        fs::create_dir_all(folder.path().join("metadata")).unwrap();
        let location = folder.path().to_str().unwrap().to_owned();
        let order = SortOrder::unsorted_order();
        let builder =
            TableMetadataBuilder::new(schema, spec, order, location, version, HashMap::new()).unwrap();
        TestTable { metadata: builder.build().unwrap().metadata, folder, files: 0 }
    }

    /// Changes the metadata.
    pub(super) fn change(
        &mut self,
        change: impl FnOnce(TableMetadataBuilder) -> iceberg::Result<TableMetadataBuilder>,
    ) {
        let builder = self.metadata.clone().into_builder(None);
        self.metadata = change(builder).unwrap().build().unwrap().metadata;
    }

    /// Replaces the current schema by one of these fields.
    pub(super) fn evolve(&mut self, fields: Vec<NestedField>) {
        let schema = Schema::builder().with_fields(fields.into_iter().map(Arc::new)).build().unwrap();
        self.change(|builder| builder.add_current_schema(schema));
    }

    pub(super) fn metadata(&self) -> &TableMetadata {
        &self.metadata
    }

    pub(super) fn field(&self, name: &str) -> NestedField {
        self.metadata.current_schema().field_by_name(name).unwrap().as_ref().clone()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the table as the connector knows it.
    pub(super) fn table(&self) -> Arc<IcebergTable> {
        let files = FileStore::local();
        let table = Table::builder()
            .file_io(files.file_io())
            .metadata(self.metadata.clone())
            .identifier(TableIdent::from_strs(["db", "t"]).unwrap())
            .runtime(iceberg::Runtime::try_current().unwrap())
            .build()
            .unwrap();
        Arc::new(IcebergTable::new(Arc::new(NoCatalog(files)), table))
    }

    fn next_path(&mut self, kind: &str, extension: &str) -> PathBuf {
        self.files += 1;
        self.path(&format!("data/{kind}-{}.{extension}", self.files))
    }

    /// Returns columns of lines of text, in the types of the Iceberg schema.
    pub(super) fn batch(&self, lines: &str) -> RecordBatch {
        parse(Arc::new(schema_to_arrow_schema(self.metadata.current_schema()).unwrap()), lines)
    }

    /// Writes a data file of lines of text.
    pub(super) fn data(&mut self, lines: &str, options: &DataOptions) -> TableFile {
        let batch = self.batch(lines);
        self.data_of(&batch, options)
    }

    /// Writes a data file of columns in the types of the Iceberg schema.
    pub(super) fn data_of(&mut self, batch: &RecordBatch, options: &DataOptions) -> TableFile {
        let path = self.next_path("data", "parquet");
        let kept: Vec<usize> = (0..batch.num_columns())
            .filter(|place| !options.without.contains(&batch.schema().field(*place).name().as_str()))
            .collect();
        let mut batch = batch.project(&kept).unwrap();
        if !options.ids {
            let fields: Vec<Field> = batch
                .schema()
                .fields()
                .iter()
                .map(|field| field.as_ref().clone().with_metadata(HashMap::new()))
                .collect();
            batch =
                RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), batch.columns().to_vec()).unwrap();
        }
        let offsets = write_parquet(&path, &batch, options.properties.clone());
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::Data)
            .file_path(path.to_str().unwrap().to_owned())
            .file_format(DataFileFormat::Parquet)
            .file_size_in_bytes(fs::metadata(&path).unwrap().len())
            .record_count(batch.num_rows() as u64)
            .partition(options.partition.clone())
            .partition_spec_id(self.metadata.default_partition_spec_id())
            .split_offsets(Some(offsets));
        self.add_metrics(&mut file, &batch, options.bound_length);
        TableFile { spec_id: self.metadata.default_partition_spec_id(), file: file.build().unwrap() }
    }

    fn add_metrics(&self, file: &mut DataFileBuilder, batch: &RecordBatch, bound_length: usize) {
        let (mut values, mut nulls, mut nans) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (mut lower, mut upper) = (HashMap::new(), HashMap::new());
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let field = self.field(field.name());
            let Type::Primitive(primitive) = field.field_type.as_ref() else { continue };
            values.insert(field.id, column.len() as u64);
            nulls.insert(field.id, column.null_count() as u64);
            let scalars: Vec<ScalarValue> =
                (0..column.len()).map(|row| ScalarValue::try_from_array(column, row).unwrap()).collect();
            let is_nan = |value: &&ScalarValue| match value {
                ScalarValue::Float32(Some(value)) => value.is_nan(),
                ScalarValue::Float64(Some(value)) => value.is_nan(),
                _ => false,
            };
            if column.data_type().is_floating() {
                nans.insert(field.id, scalars.iter().filter(is_nan).count() as u64);
            }
            let ordered = || scalars.iter().filter(|value| !value.is_null() && !is_nan(value));
            let compare = |left: &&ScalarValue, right: &&ScalarValue| left.partial_cmp(right).unwrap();
            if let (Some(least), Some(greatest)) = (ordered().min_by(compare), ordered().max_by(compare))
                && let Some((least, greatest)) = datum(least, primitive, bound_length, false).zip(datum(
                    greatest,
                    primitive,
                    bound_length,
                    true,
                ))
            {
                lower.insert(field.id, least);
                upper.insert(field.id, greatest);
            }
        }
        file.value_counts(values).null_value_counts(nulls).nan_value_counts(nans);
        file.lower_bounds(lower).upper_bounds(upper);
    }

    /// Writes position deletes; of one data file they say so in the manifest.
    pub(super) fn position_deletes(
        &mut self,
        deleted: &[(&TableFile, &[u64])],
        is_scoped: bool,
    ) -> TableFile {
        let path = self.next_path("pos", "parquet");
        let mut rows: Vec<(&str, i64)> = deleted
            .iter()
            .flat_map(|(file, positions)| {
                positions.iter().map(|position| (file.file.file_path(), position.cast_signed()))
            })
            .collect();
        rows.sort_unstable();
        let field = |name: &str, data_type, id: i32| {
            let id = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
            Field::new(name, data_type, false).with_metadata(id)
        };
        let fields = vec![
            field("file_path", ArrowType::Utf8, DELETE_FILE_PATH_ID),
            field("pos", ArrowType::Int64, DELETE_FILE_POS_ID),
        ];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|(path, _)| Some(*path)).collect::<StringArray>()),
            Arc::new(rows.iter().map(|(_, pos)| Some(*pos)).collect::<arrow::array::Int64Array>()),
        ];
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap();
        write_parquet(&path, &batch, WriterProperties::builder());
        let first = deleted[0].0;
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::PositionDeletes)
            .file_path(path.to_str().unwrap().to_owned())
            .file_format(DataFileFormat::Parquet)
            .file_size_in_bytes(fs::metadata(&path).unwrap().len())
            .record_count(rows.len() as u64)
            .partition(first.file.partition().clone())
            .partition_spec_id(first.spec_id);
        if is_scoped {
            file.referenced_data_file(Some(first.file.file_path().to_owned()));
        }
        TableFile { spec_id: first.spec_id, file: file.build().unwrap() }
    }

    /// Writes a deletion vector.
    pub(super) fn deletion_vector(&mut self, of: &TableFile, positions: &[u64]) -> TableFile {
        let path = self.next_path("dv", "puffin");
        let bitmap: RoaringTreemap = positions.iter().copied().collect();
        let mut body = vec![0xD1, 0xD3, 0x39, 0x64];
        bitmap.serialize_into(&mut body).unwrap();
        let mut blob = (body.len() as u32).to_be_bytes().to_vec();
        blob.extend_from_slice(&body);
        blob.extend_from_slice(&crc32fast::hash(&body).to_be_bytes());
        // A reader goes by the manifest, so that what stands around the blob is of no interest.
        let content = [b"PFA1".as_slice(), &blob].concat();
        fs::write(&path, &content).unwrap();
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::PositionDeletes)
            .file_path(path.to_str().unwrap().to_owned())
            .file_format(DataFileFormat::Puffin)
            .file_size_in_bytes(content.len() as u64)
            .record_count(bitmap.len())
            .partition(of.file.partition().clone())
            .partition_spec_id(of.spec_id)
            .referenced_data_file(Some(of.file.file_path().to_owned()))
            .content_offset(Some(4))
            .content_size_in_bytes(Some(blob.len() as i64));
        TableFile { spec_id: of.spec_id, file: file.build().unwrap() }
    }

    /// Writes equality deletes: lines of the named columns of the current schema.
    pub(super) fn equality_deletes(
        &mut self,
        columns: &[&str],
        lines: &str,
        scope: Option<&TableFile>,
    ) -> TableFile {
        self.equality_deletes_of(columns, scope, |arrow| parse(Arc::new(arrow), lines))
    }

    /// Writes equality deletes of columns that are made for an Arrow schema.
    pub(super) fn equality_deletes_of(
        &mut self,
        columns: &[&str],
        scope: Option<&TableFile>,
        batch: impl FnOnce(ArrowSchema) -> RecordBatch,
    ) -> TableFile {
        let fields: Vec<_> = columns.iter().map(|name| Arc::new(self.field(name))).collect();
        let ids: Vec<i32> = fields.iter().map(|field| field.id).collect();
        let keys = Schema::builder().with_fields(fields).build().unwrap();
        let batch = batch(schema_to_arrow_schema(&keys).unwrap());
        let path = self.next_path("eq", "parquet");
        write_parquet(&path, &batch, WriterProperties::builder());
        let (spec_id, partition) = match scope {
            Some(file) => (file.spec_id, file.file.partition().clone()),
            None => (self.metadata.default_partition_spec_id(), Struct::empty()),
        };
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::EqualityDeletes)
            .file_path(path.to_str().unwrap().to_owned())
            .file_format(DataFileFormat::Parquet)
            .file_size_in_bytes(fs::metadata(&path).unwrap().len())
            .record_count(batch.num_rows() as u64)
            .partition(partition)
            .partition_spec_id(spec_id)
            .equality_ids(Some(ids));
        self.add_metrics(&mut file, &batch, 16);
        TableFile { spec_id, file: file.build().unwrap() }
    }

    /// Writes a data file and commits it.
    pub(super) async fn append(&mut self, lines: &str) -> TableFile {
        self.append_with(lines, &DataOptions::default()).await
    }

    pub(super) async fn append_with(&mut self, lines: &str, options: &DataOptions) -> TableFile {
        let file = self.data(lines, options);
        self.commit(vec![file.clone()], Vec::new()).await;
        file
    }

    /// Makes a snapshot that adds files; each kind and spec has a manifest of its own.
    pub(super) async fn commit(&mut self, data: Vec<TableFile>, deletes: Vec<TableFile>) {
        let io = FileStore::local().file_io();
        let snapshot_id = i64::try_from(self.metadata.snapshots().len()).unwrap() + 1000;
        let mut manifests: Vec<ManifestFile> = Vec::new();
        if let Some(current) = self.metadata.current_snapshot() {
            let bytes = fs::read(current.manifest_list()).unwrap();
            let list =
                iceberg::spec::ManifestList::parse_with_version(&bytes, self.metadata.format_version())
                    .unwrap();
            manifests.extend(list.entries().iter().cloned());
        }
        for (files, content) in [(data, ManifestContentType::Data), (deletes, ManifestContentType::Deletes)] {
            let mut specs: Vec<i32> = files.iter().map(|file| file.spec_id).collect();
            specs.sort_unstable();
            specs.dedup();
            for spec in specs {
                let of_spec = files.iter().filter(|file| file.spec_id == spec).cloned().collect();
                manifests.push(self.write_manifest(&io, snapshot_id, content, spec, of_spec).await);
            }
        }
        let parent = self.metadata.current_snapshot_id();
        let sequence_number = self.metadata.next_sequence_number();
        let list = self.path(&format!("metadata/snap-{snapshot_id}.avro")).to_str().unwrap().to_owned();
        let output = io.new_output(&list).unwrap().writer().await.unwrap();
        let first_row_id = self.metadata.next_row_id();
        let is_v3 = self.metadata.format_version() == FormatVersion::V3;
        let mut writer = if is_v3 {
            ManifestListWriter::v3(output, snapshot_id, parent, sequence_number, Some(first_row_id))
        } else {
            ManifestListWriter::v2(output, snapshot_id, parent, sequence_number)
        };
        writer.add_manifests(manifests.into_iter()).unwrap();
        let next_row_id = writer.next_row_id();
        writer.close().await.unwrap();
        let snapshot = Snapshot::builder()
            .with_manifest_list(list)
            .with_snapshot_id(snapshot_id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence_number)
            .with_summary(Summary { operation: Operation::Append, additional_properties: HashMap::new() })
            .with_schema_id(self.metadata.current_schema_id())
            .with_timestamp_ms(self.metadata.last_updated_ms());
        let snapshot = match next_row_id {
            Some(next) => snapshot.with_row_range(first_row_id, next - first_row_id).build(),
            None => snapshot.build(),
        };
        let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
        self.change(|builder| builder.add_snapshot(snapshot)?.set_ref(MAIN_BRANCH, reference));
    }

    async fn write_manifest(
        &mut self,
        io: &FileIO,
        snapshot_id: i64,
        content: ManifestContentType,
        spec: i32,
        files: Vec<TableFile>,
    ) -> ManifestFile {
        self.files += 1;
        let path = self.path(&format!("metadata/m{}.avro", self.files)).to_str().unwrap().to_owned();
        let spec = self.metadata.partition_spec_by_id(spec).unwrap().as_ref().clone();
        let builder = ManifestWriterBuilder::new(
            io.new_output(path).unwrap(),
            Some(snapshot_id),
            Arc::clone(self.metadata.current_schema()),
            spec,
        );
        let mut writer = match (self.metadata.format_version(), content) {
            (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
            (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
            (_, ManifestContentType::Data) => builder.build_v2_data(),
            (_, ManifestContentType::Deletes) => builder.build_v2_deletes(),
        };
        for file in files {
            writer.add_file(file.file, iceberg::spec::UNASSIGNED_SEQUENCE_NUMBER).unwrap();
        }
        writer.write_manifest_file().await.unwrap()
    }

    /// Returns the provider of all columns.
    pub(super) fn provider(&self) -> Arc<IcebergTableProvider> {
        let table = self.table();
        let target = ScanTarget::current(&table);
        let declared = target
            .schema
            .as_struct()
            .fields()
            .iter()
            .map(|field| to_flink(&field.field_type, field.required).to_field(&field.name))
            .collect();
        Arc::new(IcebergTableProvider::new(table, target, declared).unwrap())
    }

    /// Returns the table as DataFusion queries it.
    pub(super) fn frame(&self, partitions: usize) -> DataFrame {
        let config = SessionConfig::new().with_target_partitions(partitions);
        SessionContext::new_with_config(config).read_table(self.provider()).unwrap()
    }

    /// Returns all rows, sorted.
    pub(super) async fn rows(&self) -> Vec<String> {
        sorted(&self.frame(2).collect().await.unwrap())
    }

    /// Returns the rows that fulfil a condition, sorted.
    pub(super) async fn rows_where(&self, condition: Expr) -> Vec<String> {
        sorted(&self.frame(2).filter(condition).unwrap().collect().await.unwrap())
    }
}

/// Parses lines of text, one `|` between columns.
fn parse(schema: Arc<ArrowSchema>, lines: &str) -> RecordBatch {
    let rows: Vec<Vec<&str>> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split('|').collect())
        .collect();
    let column = |(place, field): (usize, &Arc<Field>)| {
        let cells: StringArray =
            rows.iter().map(|row| Some(row[place]).filter(|cell| *cell != "NULL")).collect();
        let options = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&cells, field.data_type(), &options).unwrap()
    };
    let columns: Vec<ArrayRef> = schema.fields().iter().enumerate().map(column).collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

/// Writes a file and returns where its row groups begin.
fn write_parquet(path: &PathBuf, batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<i64> {
    let file = fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    let footer = writer.close().unwrap();
    let start = |row_group: &parquet::file::metadata::RowGroupMetaData| {
        let column = row_group.column(0);
        column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset())
    };
    footer.row_groups().iter().map(start).collect()
}

/// Returns a bound of the metadata; None if the type has none here.
fn datum(value: &ScalarValue, primitive: &PrimitiveType, length: usize, is_upper: bool) -> Option<Datum> {
    Some(match (value, primitive) {
        (ScalarValue::Boolean(Some(value)), _) => Datum::bool(*value),
        (ScalarValue::Int32(Some(value)), _) => Datum::int(*value),
        (ScalarValue::Int64(Some(value)), _) => Datum::long(*value),
        (ScalarValue::Float32(Some(value)), _) => Datum::float(*value),
        (ScalarValue::Float64(Some(value)), _) => Datum::double(*value),
        (ScalarValue::Date32(Some(value)), _) => Datum::date(*value),
        (ScalarValue::TimestampMicrosecond(Some(value), None), _) => Datum::timestamp_micros(*value),
        (ScalarValue::TimestampMicrosecond(Some(value), Some(_)), _) => Datum::timestamptz_micros(*value),
        (ScalarValue::Utf8(Some(value)), _) => {
            let mut letters: Vec<char> = value.chars().take(length).collect();
            if is_upper && value.chars().count() > length {
                let last = letters.pop()?;
                letters.push(char::from_u32(last as u32 + 1)?);
            }
            Datum::string(letters.into_iter().collect::<String>())
        }
        (ScalarValue::Decimal128(Some(value), ..), PrimitiveType::Decimal { .. }) => {
            Datum::try_from_bytes(&value.to_be_bytes(), primitive.clone()).ok()?
        }
        _ => return None,
    })
}

/// Returns rows as lines, sorted.
pub(super) fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = lines(batches);
    lines.sort();
    lines
}

/// Returns rows as lines.
pub(super) fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let options = FormatOptions::default().with_null("NULL");
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            lines.push(cells.join("|"));
        }
    }
    lines
}

/// A catalog that holds nothing: tables here are made without one.
#[derive(Debug)]
struct NoCatalog(FileStore);

fn nothing<T>() -> iceberg::Result<T> {
    Err(iceberg::Error::new(iceberg::ErrorKind::FeatureUnsupported, "there is no catalog"))
}

#[async_trait::async_trait]
impl Catalog for NoCatalog {
    async fn list_namespaces(&self, _: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        nothing()
    }
    async fn create_namespace(
        &self,
        _: &NamespaceIdent,
        _: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        nothing()
    }
    async fn get_namespace(&self, _: &NamespaceIdent) -> iceberg::Result<Namespace> {
        nothing()
    }
    async fn namespace_exists(&self, _: &NamespaceIdent) -> iceberg::Result<bool> {
        nothing()
    }
    async fn update_namespace(&self, _: &NamespaceIdent, _: HashMap<String, String>) -> iceberg::Result<()> {
        nothing()
    }
    async fn drop_namespace(&self, _: &NamespaceIdent) -> iceberg::Result<()> {
        nothing()
    }
    async fn list_tables(&self, _: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        nothing()
    }
    async fn create_table(&self, _: &NamespaceIdent, _: TableCreation) -> iceberg::Result<Table> {
        nothing()
    }
    async fn load_table(&self, _: &TableIdent) -> iceberg::Result<Table> {
        nothing()
    }
    async fn drop_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        nothing()
    }
    async fn purge_table(&self, _: &TableIdent) -> iceberg::Result<()> {
        nothing()
    }
    async fn table_exists(&self, _: &TableIdent) -> iceberg::Result<bool> {
        nothing()
    }
    async fn rename_table(&self, _: &TableIdent, _: &TableIdent) -> iceberg::Result<()> {
        nothing()
    }
    async fn register_table(&self, _: &TableIdent, _: String) -> iceberg::Result<Table> {
        nothing()
    }
    async fn update_table(&self, _: TableCommit) -> iceberg::Result<Table> {
        nothing()
    }
}

#[async_trait::async_trait]
impl CommitCatalog for NoCatalog {
    fn files(&self) -> &FileStore {
        &self.0
    }

    async fn commit_table(
        &self,
        _: &TableIdent,
        _: Vec<TableRequirement>,
        _: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        Err(CommitError::Failed(crate::error::Error::internal("there is no catalog")))
    }
}
