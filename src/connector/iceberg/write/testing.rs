//! What tests of writers share: tables in a warehouse of their own, and what is in them, read without our own scan.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array,
    Float64Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StructArray,
    Time32MillisecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType};
use arrow::util::display::array_value_to_string;
use iceberg::spec::{
    DataContentType, DataFile, FormatVersion, NestedField, NestedFieldRef, PrimitiveType, Schema, Transform,
    Type, UnboundPartitionSpec,
};
use iceberg::{NamespaceIdent, TableCreation, TableIdent, TableRequirement, TableUpdate};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::Rng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::iceberg_sink::IcebergSink;
use crate::catalog::TableHandle;
use crate::connector::iceberg::catalog::{CommitCatalog, HadoopCatalog};
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::storage::testing::FailingStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::type_mapping;
use crate::connector::testing;
use crate::schema::{Column, PrimaryKey};

/// A warehouse of one table.
pub(super) struct Warehouse {
    pub(super) folder: TempDir,
    pub(super) faults: FailingStore,
    pub(super) table: IcebergTable,
}

/// How a table is made.
#[derive(Default)]
pub(super) struct Making<'a> {
    pub(super) partition: &'a [(i32, &'a str, Transform)],
    pub(super) properties: &'a [(&'a str, &'a str)],
    pub(super) version: Option<FormatVersion>,
}

pub(super) fn optional(id: i32, name: &str, of: PrimitiveType) -> NestedFieldRef {
    Arc::new(NestedField::optional(id, name, Type::Primitive(of)))
}

/// The columns `id BIGINT, name STRING`.
pub(super) fn id_and_name() -> Vec<NestedFieldRef> {
    vec![optional(1, "id", PrimitiveType::Long), optional(2, "name", PrimitiveType::String)]
}

impl Warehouse {
    pub(super) async fn new(fields: Vec<NestedFieldRef>, making: Making<'_>) -> Warehouse {
        let folder = TempDir::new().unwrap();
        let faults = FailingStore::new();
        let location = format!("file:{}", folder.path().display());
        let catalog: Arc<dyn CommitCatalog> =
            Arc::new(HadoopCatalog::new(&location, faults.files()).unwrap());
        let schema = Schema::builder().with_fields(fields).build().unwrap();
        let mut spec = UnboundPartitionSpec::builder().with_spec_id(0);
        for (source, name, transform) in making.partition {
            spec = spec.add_partition_field(*source, *name, *transform).unwrap();
        }
        let properties =
            making.properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .schema(schema)
            .partition_spec(spec.build())
            .properties(properties)
            .format_version(making.version.unwrap_or(FormatVersion::V2))
            .build();
        let namespace = NamespaceIdent::new("db".to_owned());
        catalog.create_namespace(&namespace, std::collections::HashMap::new()).await.unwrap();
        let table = catalog.create_table(&namespace, creation).await.unwrap();
        Warehouse { folder, faults, table: IcebergTable::new(catalog, table) }
    }

    /// Returns another session's view of the same table.
    pub(super) async fn other(&self) -> IcebergTable {
        let location = format!("file:{}", self.folder.path().display());
        let catalog: Arc<dyn CommitCatalog> =
            Arc::new(HadoopCatalog::new(&location, FileStore::local()).unwrap());
        let table = catalog.load_table(&TableIdent::from_strs(["db", "t"]).unwrap()).await.unwrap();
        IcebergTable::new(catalog, table)
    }

    /// Changes the table as another session does.
    pub(super) async fn alter(&self, updates: Vec<TableUpdate>) {
        let table = self.other().await;
        let uuid = TableRequirement::UuidMatch { uuid: table.metadata().uuid() };
        table.catalog().commit_table(table.ident(), vec![uuid], updates).await.unwrap();
    }

    /// Gives the table other columns.
    pub(super) async fn set_schema(&self, fields: Vec<NestedFieldRef>) {
        let schema = Schema::builder().with_fields(fields).build().unwrap();
        let change = [TableUpdate::AddSchema { schema }, TableUpdate::SetCurrentSchema { schema_id: -1 }];
        self.alter(change.into()).await;
    }

    /// Returns what the planner knows of the table.
    pub(super) async fn planned(&self, key: &[&str], options: &[(&str, &str)]) -> testing::Table {
        let table = self.other().await;
        let fields = table.metadata().current_schema().as_struct().fields().iter();
        let columns = fields.map(|field| {
            Column::physical(&field.name, type_mapping::to_flink(&field.field_type, field.required))
        });
        let mut planned = testing::Table::new("iceberg", columns.collect(), options);
        if !key.is_empty() {
            let columns = key.iter().map(|name| (*name).to_owned()).collect();
            planned.schema.primary_key = Some(PrimaryKey { name: "PK".to_owned(), columns });
        }
        let handle = IcebergTable::new(Arc::clone(self.table.catalog()), table.table().clone());
        planned.handle = TableHandle::new(Arc::new(handle));
        planned
    }

    /// Makes a sink as a statement does.
    pub(super) async fn sink(&self, key: &[&str], options: &[(&str, &str)], is_batch: bool) -> IcebergSink {
        self.try_sink(key, options, is_batch).await.unwrap()
    }

    pub(super) async fn try_sink(
        &self,
        key: &[&str],
        options: &[(&str, &str)],
        is_batch: bool,
    ) -> crate::error::Result<IcebergSink> {
        let mut planned = self.planned(key, options).await;
        if is_batch {
            planned.config.set("execution.runtime-mode", "batch");
        }
        let handle = planned.handle.get::<IcebergTable>().unwrap();
        IcebergSink::new(&handle, &planned.context())
    }

    /// Returns the live files of a branch, data files first.
    pub(super) async fn files_of(&self, branch: &str) -> Vec<DataFile> {
        let table = self.other().await;
        let Some(snapshot) = table.metadata().snapshot_for_ref(branch) else { return Vec::new() };
        let list = table.table().manifest_list_reader(snapshot).load().await.unwrap();
        let mut files = Vec::new();
        for manifest in list.entries() {
            let manifest = manifest.load_manifest(table.file_io()).await.unwrap();
            files.extend(
                manifest
                    .entries()
                    .iter()
                    .filter(|entry| entry.is_alive())
                    .map(|entry| entry.data_file().clone()),
            );
        }
        files.sort_by_key(|file| (file.content_type() as i32, file.file_path().to_owned()));
        files
    }

    pub(super) async fn files(&self) -> Vec<DataFile> {
        self.files_of("main").await
    }

    /// Returns the visible rows as texts, sorted: columns joined by commas.
    pub(super) async fn rows(&self) -> Vec<String> {
        self.rows_of("main").await
    }

    pub(super) async fn rows_of(&self, branch: &str) -> Vec<String> {
        let mut deleted: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let mut rows = Vec::new();
        let files = self.files_of(branch).await;
        for file in files.iter().filter(|file| file.content_type() == DataContentType::PositionDeletes) {
            for batch in read(file.file_path()) {
                let paths = arrow::compute::cast(batch.column(0), &DataType::Utf8).unwrap();
                let positions = batch.column(1).as_primitive::<Int64Type>();
                for (path, position) in paths.as_string::<i32>().iter().zip(positions.values()) {
                    deleted.entry(path.unwrap().to_owned()).or_default().insert(*position as usize);
                }
            }
        }
        for file in files.iter().filter(|file| file.content_type() == DataContentType::Data) {
            let gone = deleted.remove(file.file_path()).unwrap_or_default();
            let batches = read(file.file_path());
            let all = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| text(batch, row)));
            rows.extend(all.enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, row)| row));
        }
        assert!(deleted.is_empty(), "deletes of files that are not there: {deleted:?}");
        rows.sort();
        rows
    }

    /// Returns the Parquet files that lie in the table's folder, committed or not.
    pub(super) fn parquet_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "parquet") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }
}

/// Returns random values of a type in Flink's Arrow form, some of them NULL and some on the edge.
#[expect(clippy::too_many_lines, reason = "a line or two for each type")]
pub(super) fn random_column(of: &DataType, rng: &mut StdRng, count: usize) -> ArrayRef {
    let nulls: Vec<bool> = (0..count).map(|_| rng.random_ratio(4, 5)).collect();
    let nulls = NullBuffer::from(nulls);
    macro_rules! numbers {
        ($array:ty, $value:expr) => {{
            let values = (0..count).map(|_| $value).collect::<Vec<_>>();
            Arc::new(<$array>::new(values.into(), Some(nulls))) as ArrayRef
        }};
    }
    let edge = |rng: &mut StdRng, low: i64, high: i64| match rng.random_range(0..8) {
        0 => low,
        1 => high,
        2 => rng.random_range(-2_i64..2).clamp(low, high),
        _ => rng.random_range(low..=high),
    };
    match of {
        DataType::Boolean => {
            let values: BooleanBuffer = (0..count).map(|_| rng.random_bool(0.5)).collect();
            Arc::new(BooleanArray::new(values, Some(nulls)))
        }
        DataType::Int32 => {
            numbers!(Int32Array, edge(rng, i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
        }
        DataType::Int64 => numbers!(Int64Array, edge(rng, i64::MIN, i64::MAX)),
        DataType::Date32 => numbers!(Date32Array, edge(rng, -700_000, 2_900_000) as i32),
        DataType::Time32(_) => numbers!(Time32MillisecondArray, edge(rng, 0, 86_399_999) as i32),
        DataType::Float32 => numbers!(Float32Array, random_float(rng) as f32),
        DataType::Float64 => numbers!(Float64Array, random_float(rng)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let limit = 200_000_000_000_000_000;
            let array = numbers!(TimestampMicrosecondArray, edge(rng, -limit, limit));
            Arc::new(array.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(_, zone) => {
            let array = numbers!(TimestampNanosecondArray, edge(rng, i64::MIN, i64::MAX));
            Arc::new(array.as_primitive::<TimestampNanosecondType>().clone().with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, _) => {
            let limit = 10_i128.pow(u32::from(*precision)) - 1;
            let value = |rng: &mut StdRng| match rng.random_range(0..8) {
                0 => limit,
                1 => -limit,
                2 => 0,
                _ => {
                    rng.random_range(-limit..=limit) / 10_i128.pow(rng.random_range(0..u32::from(*precision)))
                }
            };
            let values: Vec<i128> = (0..count).map(|_| value(rng)).collect();
            Arc::new(Decimal128Array::new(values.into(), Some(nulls)).with_data_type(of.clone()))
        }
        DataType::Utf8 => {
            let texts = (0..count).map(|row| nulls.is_valid(row).then(|| random_text(rng)));
            Arc::new(texts.collect::<StringArray>())
        }
        DataType::Binary => {
            let value = |rng: &mut StdRng| {
                let length = rng.random_range(0..40);
                let byte = |_| if rng.random_ratio(1, 3) { 255 } else { rng.random::<u8>() };
                (0..length).map(byte).collect::<Vec<u8>>()
            };
            let values = (0..count).map(|row| nulls.is_valid(row).then(|| value(rng)));
            Arc::new(values.collect::<BinaryArray>())
        }
        DataType::List(field) => {
            let lengths: Vec<usize> = (0..count).map(|_| rng.random_range(0..4)).collect();
            let values = random_column(field.data_type(), rng, lengths.iter().sum());
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(ListArray::new(Arc::clone(field), offsets, values, Some(nulls)))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { unreachable!() };
            let lengths: Vec<usize> = (0..count).map(|_| rng.random_range(0..3)).collect();
            let total = lengths.iter().sum();
            let keys = Arc::new((0..total).map(|at| Some(format!("k{at}"))).collect::<StringArray>());
            let values = random_column(fields[1].data_type(), rng, total);
            let pairs = StructArray::new(fields.clone(), vec![keys, values], None);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::new(Arc::clone(entries), offsets, pairs, Some(nulls), false))
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|field| random_column(field.data_type(), rng, count)).collect();
            Arc::new(StructArray::new(fields.clone(), children, Some(nulls)))
        }
        other => unreachable!("{other}"),
    }
}

/// Returns random bytes of a fixed length.
pub(super) fn random_fixed(length: usize, rng: &mut StdRng, count: usize) -> ArrayRef {
    let value = |rng: &mut StdRng| {
        rng.random_ratio(4, 5).then(|| {
            (0..length)
                .map(|_| rng.random::<u8>() | (0xf0 * u8::from(rng.random_bool(0.3))))
                .collect::<Vec<u8>>()
        })
    };
    Arc::new((0..count).map(|_| value(rng)).collect::<BinaryArray>())
}

fn random_float(rng: &mut StdRng) -> f64 {
    match rng.random_range(0..10) {
        0 => f64::NAN,
        1 => -f64::NAN,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 => 0.0,
        5 => -0.0,
        _ => rng.random_range(-1000.0..1000.0),
    }
}

/// Returns a text of up to forty characters, often of those that are hard to round up.
fn random_text(rng: &mut StdRng) -> String {
    let hard = ['\u{10ffff}', '\u{d7ff}', '\u{7f}', '\u{7ff}', '\u{ffff}', 'a', 'z', 'ä', '€', '😀', '\0'];
    let length = rng.random_range(0..40);
    let lead = hard[rng.random_range(0..hard.len())];
    let character = |_| match rng.random_range(0..3) {
        0 => lead,
        1 => hard[rng.random_range(0..hard.len())],
        _ => rng.random::<char>(),
    };
    (0..length).map(character).collect()
}

/// Reads a local Parquet file.
pub(super) fn read(location: &str) -> Vec<RecordBatch> {
    let file = File::open(location.trim_start_matches("file:")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

fn text(batch: &RecordBatch, row: usize) -> String {
    let cell = |column: &Arc<dyn Array>| match column.is_null(row) {
        true => "NULL".to_owned(),
        false => array_value_to_string(column, row).unwrap(),
    };
    batch.columns().iter().map(cell).collect::<Vec<_>>().join(",")
}
