//! What the Parquet files of one writer have in common: columns with field ids, encoding, and which figures are kept.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use iceberg::spec::{PrimitiveType, Schema, SortOrder};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};

use super::file_metrics::{LeafColumn, leaf_columns};
use super::metrics_config::{MetricsConfig, MetricsMode};
use super::parquet_settings::ParquetSettings;
use super::partition_splitter::path_to;
use crate::connector::iceberg::row_bytes::column_bytes;
use crate::error::{Error, Result};
use crate::state::hash_rows;

/// The name of a file's root, as Java writes it.
const ROOT: &str = "table";

/// How many rows say whether a column's values repeat.
const SAMPLE_ROWS: usize = 1024;

/// Fewer rows than this say nothing.
const SAMPLE_ROWS_MIN: usize = 64;

/// How many values of a column are encoded before it is seen whether a page is full.
const ENCODED_VALUES: usize = 1024;

/// What files have in common.
#[derive(Debug)]
pub(super) struct ParquetFormat {
    arrow: SchemaRef,
    columns: SchemaDescriptor,
    properties: WriterProperties,
    leaves: Vec<LeafColumn>,
    floats: Vec<FloatColumn>,
    /// About how many bytes a page has.
    page_bytes: usize,
}

/// A column whose NaNs are counted.
#[derive(Debug, Clone)]
pub(super) struct FloatColumn {
    /// The field id.
    pub(super) id: i32,
    /// Where it is: its place at each level of structs.
    pub(super) path: Vec<usize>,
}

impl ParquetFormat {
    /// Plans files of a schema, `arrow` being its columns in Arrow.
    ///
    /// # Errors
    /// A type cannot be in a Parquet file.
    pub(super) fn new(
        schema: &Schema,
        arrow: SchemaRef,
        order: &SortOrder,
        settings: &ParquetSettings,
        metrics: &MetricsConfig,
        bloom_columns: &[String],
        rows_max: Option<u64>,
    ) -> Result<ParquetFormat> {
        let leaves = leaf_columns(schema, order, metrics);
        let columns = ArrowSchemaConverter::new().schema_root(ROOT).convert(&arrow).map_err(unencodable)?;
        let columns = SchemaDescriptor::new(Arc::new(with_uuids(columns.root_schema(), &leaves)?));
        let properties =
            settings.writer_properties(schema, &columns, bloom_columns, rows_max, statistics_bytes(&leaves));
        let is_float = |leaf: &&LeafColumn| {
            matches!(leaf.data_type, PrimitiveType::Float | PrimitiveType::Double) && !leaf.is_repeated
        };
        let float = |leaf: &LeafColumn| {
            Some(FloatColumn { id: leaf.id, path: path_to(schema.as_struct(), leaf.id)? })
        };
        let floats = leaves.iter().filter(is_float).filter_map(float).collect();
        Ok(ParquetFormat { arrow, columns, properties, leaves, floats, page_bytes: settings.page_bytes() })
    }

    /// Returns the columns in Arrow.
    pub(super) fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Returns what the encoder of a file is made with that begins with these rows.
    ///
    /// # Errors
    /// The rows have other columns.
    pub(super) fn options(&self, first_rows: &[RecordBatch]) -> Result<ArrowWriterOptions> {
        let mut properties = self.properties.clone().into_builder();
        for (at, field) in self.arrow.fields().iter().enumerate() {
            let columns = || first_rows.iter().map(|rows| rows.column(at));
            if !field.data_type().is_nested() && are_mostly_distinct(columns)? {
                let path = ColumnPath::new(vec![field.name().clone()]);
                properties = properties.set_column_dictionary_enabled(path, false);
            }
        }
        // Large values fill a page long before a thousand of them have come, which readers would have to hold as well.
        let bytes = |at: usize| first_rows.iter().map(|rows| column_bytes(rows.column(at))).sum::<usize>();
        let widest = (0..self.arrow.fields().len()).map(bytes).max().unwrap_or_default();
        let value_bytes = widest / first_rows.iter().map(RecordBatch::num_rows).sum::<usize>().max(1);
        let values = (self.page_bytes / value_bytes.max(1)).clamp(1, ENCODED_VALUES);
        properties = properties.set_write_batch_size(values);
        // Arrow's own schema is left out: Iceberg's says what the columns are, and many small files would carry it.
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_parquet_schema(self.columns.clone())
            .with_skip_arrow_metadata(true);
        Ok(options)
    }

    /// Returns the columns that hold values, in Parquet's order.
    pub(super) fn leaves(&self) -> &[LeafColumn] {
        &self.leaves
    }

    /// Returns the columns whose NaNs are counted.
    pub(super) fn floats(&self) -> &[FloatColumn] {
        &self.floats
    }
}

/// Returns whether hardly two values of a column are equal. Its dictionary would be as long as the column, and takes longer to make
/// than all else.
fn are_mostly_distinct<'a, C: Iterator<Item = &'a ArrayRef>>(columns: impl Fn() -> C) -> Result<bool> {
    let row_count: usize = columns().map(|column| column.len()).sum();
    if row_count < SAMPLE_ROWS_MIN {
        return Ok(false);
    }
    // Rows side by side may be alike where the column is not.
    let step = (row_count / SAMPLE_ROWS).max(1);
    let mut distinct = HashSet::with_capacity(SAMPLE_ROWS);
    let mut hashes = Vec::new();
    let (mut next, mut sampled) = (0, 0);
    for column in columns() {
        let chosen: UInt32Array = (next..column.len()).step_by(step).map(|row| row as u32).collect();
        next = next + chosen.len() * step - column.len();
        sampled += chosen.len();
        if hash_rows(&[take(column, &chosen, None)?], chosen.len(), &mut hashes).is_err() {
            // Of a type that cannot be hashed it is not known.
            return Ok(false);
        }
        distinct.extend(hashes.drain(..));
    }
    Ok(distinct.len() >= sampled.min(SAMPLE_ROWS) * 9 / 10)
}

/// Returns how many bytes of a value the statistics of row groups need; None for all.
fn statistics_bytes(leaves: &[LeafColumn]) -> Option<usize> {
    let bytes = |leaf: &LeafColumn| match leaf.mode {
        MetricsMode::Full => None,
        // A character has at most four bytes.
        MetricsMode::Truncate(length) => Some(length.saturating_mul(4)),
        MetricsMode::Nothing | MetricsMode::Counts => Some(0),
    };
    leaves.iter().map(bytes).try_fold(0, |most, bytes| Some(most.max(bytes?)))
}

/// Says of UUIDs that they are: Arrow has no type for them, and other readers rely on it.
fn with_uuids(node: &Type, leaves: &[LeafColumn]) -> Result<Type> {
    let info = node.get_basic_info();
    let id = info.has_id().then(|| info.id());
    match node {
        Type::PrimitiveType { .. } => {
            let mut leaves = leaves.iter().filter(|leaf| Some(leaf.id) == id);
            if !leaves.any(|leaf| leaf.data_type == PrimitiveType::Uuid) {
                return Ok(node.clone());
            }
            let uuid = Type::primitive_type_builder(node.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
                .with_length(16)
                .with_logical_type(Some(LogicalType::Uuid))
                .with_repetition(info.repetition())
                .with_id(id);
            uuid.build().map_err(unencodable)
        }
        Type::GroupType { fields, .. } => {
            let field = |field: &Arc<Type>| Ok(Arc::new(with_uuids(field, leaves)?));
            let mut group = Type::group_type_builder(node.name())
                .with_fields(fields.iter().map(field).collect::<Result<_>>()?)
                .with_logical_type(info.logical_type_ref().cloned())
                .with_converted_type(info.converted_type())
                .with_id(id);
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            group.build().map_err(unencodable)
        }
    }
}

/// The error of columns that Parquet does not take.
fn unencodable(error: ParquetError) -> Error {
    Error::data("the table's columns cannot be in a Parquet file").caused_by(error)
}
