//! `$files`, `$data_files`, `$delete_files`: the files of a snapshot; `$all_files` and its like: those of all snapshots.

use std::collections::HashMap;

use iceberg::spec::{DataFileFormat, Datum, ManifestContentType, ManifestStatus, TableMetadata};

use super::super::error::from_iceberg;
use super::super::manifest::TableFile;
use super::super::partition::{PartitionColumn, partition_columns, partition_values, spec_of};
use super::MetadataTableType;
use super::cell::Cell;
use super::readable_metrics::ReadableMetrics;
use super::schema::{field, list_of, map_of, optional, partition_row};
use super::table_reader::TableReader;
use crate::error::Result;
use crate::schema::{Column, DataType, Field, TypeRoot};

/// Returns the columns.
///
/// # Errors
/// The table's partitioning cannot be understood.
pub(super) fn columns(metadata: &TableMetadata) -> Result<Vec<Column>> {
    let fields = file_fields(&partition_columns(metadata)?);
    let mut columns: Vec<Column> =
        fields.into_iter().map(|field| Column::physical(field.name, field.data_type)).collect();
    columns.push(optional("readable_metrics", ReadableMetrics::of(metadata.current_schema()).row_type()));
    Ok(columns)
}

/// Returns what is known of a file, as fields of a ROW.
pub(super) fn file_fields(partition: &[PartitionColumn]) -> Vec<Field> {
    let counts = || map_of(TypeRoot::Int, TypeRoot::BigInt).nullable();
    let bounds = || map_of(TypeRoot::Int, TypeRoot::BYTES).nullable();
    let (int, long) = (|| TypeRoot::Int.nullable(), || TypeRoot::BigInt.nullable());
    let text = || TypeRoot::STRING.not_null();
    let partition: Option<DataType> = partition_row(partition).map(TypeRoot::not_null);
    let mut fields = vec![
        field("content", int(), "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"),
        field("file_path", text(), "Location URI with FS scheme"),
        field("file_format", text(), "File format name: avro, orc, or parquet"),
        field("spec_id", int(), "Partition spec ID"),
    ];
    fields.extend(
        partition
            .map(|row| field("partition", row, "Partition data tuple, schema based on the partition spec")),
    );
    fields.extend([
        field("record_count", TypeRoot::BigInt.not_null(), "Number of records in the file"),
        field("file_size_in_bytes", TypeRoot::BigInt.not_null(), "Total file size in bytes"),
        field("column_sizes", counts(), "Map of column id to total size on disk"),
        field("value_counts", counts(), "Map of column id to total count, including null and NaN"),
        field("null_value_counts", counts(), "Map of column id to null value count"),
        field("nan_value_counts", counts(), "Map of column id to number of NaN values in the column"),
        field("lower_bounds", bounds(), "Map of column id to lower bound"),
        field("upper_bounds", bounds(), "Map of column id to upper bound"),
        field("key_metadata", TypeRoot::BYTES.nullable(), "Encryption key metadata blob"),
        field("split_offsets", list_of(TypeRoot::BigInt).nullable(), "Splittable offsets"),
        field("equality_ids", list_of(TypeRoot::Int).nullable(), "Equality comparison field IDs"),
        field("sort_order_id", int(), "Sort order ID"),
        field("first_row_id", long(), "The first row ID assigned to the first row in the data file"),
        field(
            "referenced_data_file",
            TypeRoot::STRING.nullable(),
            "Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
        ),
        field("content_offset", long(), "The offset in the file where the content starts"),
        field("content_size_in_bytes", long(), "The length of referenced content stored in the file"),
    ]);
    fields
}

/// Returns the rows: the files that are there, of one snapshot or of all.
pub(super) async fn rows(
    reader: &TableReader<'_>,
    kind: MetadataTableType,
    snapshot: Option<i64>,
) -> Result<Vec<Vec<Cell>>> {
    use MetadataTableType::{AllDataFiles, AllDeleteFiles, DataFiles, DeleteFiles};
    let metadata = reader.metadata();
    let mut manifests = reader.manifests_of(kind, snapshot).await?;
    match kind {
        DataFiles | AllDataFiles => {
            manifests.retain(|manifest| manifest.content == ManifestContentType::Data);
        }
        DeleteFiles | AllDeleteFiles => {
            manifests.retain(|manifest| manifest.content == ManifestContentType::Deletes);
        }
        _ => {}
    }
    let files = FileCells::of(metadata, reader.name)?;
    let metrics = ReadableMetrics::of(metadata.current_schema());
    let mut rows = Vec::new();
    for listed in reader.files(&manifests).await?.iter().flat_map(|listed| listed.iter()) {
        if listed.status != ManifestStatus::Deleted {
            let mut row = files.cells(&listed.file)?;
            row.push(metrics.cell(&listed.file.file));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Makes cells of a table's files.
pub(super) struct FileCells<'a> {
    metadata: &'a TableMetadata,
    table: &'a str,
    partition: Vec<PartitionColumn>,
}

impl<'a> FileCells<'a> {
    /// Prepares for the files of a table.
    pub(super) fn of(metadata: &'a TableMetadata, table: &'a str) -> Result<FileCells<'a>> {
        Ok(FileCells { metadata, table, partition: partition_columns(metadata)? })
    }

    /// Returns the fields of partitions.
    pub(super) fn partition_columns(&self) -> &[PartitionColumn] {
        &self.partition
    }

    /// Returns the partition of a file.
    pub(super) fn partition(&self, file: &TableFile) -> Result<Vec<Cell>> {
        let spec = spec_of(self.metadata, file.spec_id, self.table)?;
        let values = partition_values(&self.partition, spec, file.file.partition()).zip(&self.partition);
        Ok(values.map(|(value, column)| Cell::literal(value, &column.data_type)).collect())
    }

    /// Returns what is known of a file.
    pub(super) fn cells(&self, table_file: &TableFile) -> Result<Vec<Cell>> {
        let file = &table_file.file;
        let mut row = vec![
            Cell::Int(file.content_type() as i32),
            Cell::text(file.file_path()),
            Cell::text(format_name(file.file_format())),
            Cell::Int(table_file.spec_id),
        ];
        if !self.partition.is_empty() {
            row.push(Cell::Row(self.partition(table_file)?));
        }
        let longs = |values: &[i64]| Cell::List(values.iter().map(|value| Cell::Long(*value)).collect());
        let ints = |values: Vec<i32>| Cell::List(values.into_iter().map(Cell::Int).collect());
        row.extend([
            Cell::count(file.record_count()),
            Cell::count(file.file_size_in_bytes()),
            counts(file.column_sizes()),
            counts(file.value_counts()),
            counts(file.null_value_counts()),
            counts(file.nan_value_counts()),
            bounds(file.lower_bounds())?,
            bounds(file.upper_bounds())?,
            Cell::optional(file.key_metadata(), |key| Cell::Bytes(key.to_vec())),
            Cell::optional(file.split_offsets(), longs),
            Cell::optional(file.equality_ids(), ints),
            Cell::optional(file.sort_order_id(), Cell::Int),
            Cell::optional(file.first_row_id(), Cell::Long),
            Cell::optional(file.referenced_data_file(), Cell::text),
            Cell::optional(file.content_offset(), Cell::Long),
            Cell::optional(file.content_size_in_bytes(), Cell::Long),
        ]);
        Ok(row)
    }
}

fn format_name(format: DataFileFormat) -> &'static str {
    match format {
        DataFileFormat::Avro => "AVRO",
        DataFileFormat::Orc => "ORC",
        DataFileFormat::Parquet => "PARQUET",
        DataFileFormat::Puffin => "PUFFIN",
    }
}

/// Makes a map by column. The crate does not tell a map that is empty from one that is not there, which is by far the commoner.
fn counts(counts: &HashMap<i32, u64>) -> Cell {
    by_column(counts.iter().map(|(id, count)| (*id, Cell::count(*count))).collect())
}

fn bounds(bounds: &HashMap<i32, Datum>) -> Result<Cell> {
    let bound = |(id, bound): (&i32, &Datum)| {
        let bytes = bound.to_bytes().map_err(from_iceberg)?;
        Ok((*id, Cell::Bytes(bytes.into_vec())))
    };
    Ok(by_column(bounds.iter().map(bound).collect::<Result<_>>()?))
}

fn by_column(mut entries: Vec<(i32, Cell)>) -> Cell {
    if entries.is_empty() {
        return Cell::Null;
    }
    entries.sort_by_key(|(id, _)| *id);
    Cell::Map(entries.into_iter().map(|(id, value)| (Cell::Int(id), value)).collect())
}
