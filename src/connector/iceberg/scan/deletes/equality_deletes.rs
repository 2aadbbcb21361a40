//! Equality deletes of other engines: a hash table per group, from a key to the newest sequence number with which it was deleted. A row
//! is gone if its file is older than that, so all files of a group cost one look-up per row, however many there are.
//!
//! Keys are equal as Iceberg's own readers have it: NULL equals NULL, NaN equals NaN, and -0.0 differs from 0.0.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type, SchemaRef};
use arrow::row::{RowConverter, Rows, SortField};
use datafusion::error::DataFusionError;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use hashbrown::HashTable;
use iceberg::spec::{DataFileFormat, NameMapping, Schema};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use tokio::sync::OnceCell;
use xxhash_rust::xxh3::xxh3_64;

use super::super::columns::{ColumnSource, Conversion, FileColumns, ReadColumn};
use super::super::parquet_files::ParquetFiles;
use super::CONCURRENT_READS;
use super::delete_index::{DeleteFile, EqualityGroup};
use crate::connector::iceberg::field_history::column_of_any_schema;
use crate::connector::iceberg::manifest::FileRole;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// The keys that a group deletes.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct DeletedKeys {
    converter: RowConverter,
    batches: Vec<Rows>,
    keys: HashTable<DeletedKey>,
}

/// A key in `DeletedKeys::batches`.
#[derive(Debug)]
struct DeletedKey {
    batch: u32,
    row: u32,
    sequence_number: i64,
}

/// Returns the field ids of all groups, each once.
pub(in crate::connector::iceberg::scan) fn key_ids<'a>(
    groups: impl IntoIterator<Item = &'a Arc<EqualityGroup>>,
) -> Vec<i32> {
    let mut ids: Vec<i32> = groups.into_iter().flat_map(|group| group.field_ids.iter().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Returns the columns that groups compare, as Iceberg has them: those of a schema, or else of any that the table has had. A column that no
/// schema knows is reported where the deletes are read.
///
/// # Errors
/// A group compares what lies within a column.
pub(in crate::connector::iceberg::scan) fn key_columns<'a>(
    table: &IcebergTable,
    schema: &Schema,
    groups: impl IntoIterator<Item = &'a Arc<EqualityGroup>>,
) -> Result<Vec<ReadColumn>> {
    let metadata = table.metadata();
    let mut columns = Vec::new();
    for id in key_ids(groups) {
        let of_schema = schema.as_struct().field_by_id(id);
        if let Some(field) = of_schema.or_else(|| column_of_any_schema(metadata, id)) {
            columns.push(ReadColumn::of_key(field)?);
        } else if let Some(name) = metadata.schemas_iter().find_map(|schema| schema.name_by_field_id(id)) {
            return Err(Error::unsupported(format!(
                "equality deletes of table '{}' compare field '{name}', which lies within a column",
                table.ident()
            ))
            .hint("Let the engine that wrote them rewrite the table's deletes."));
        }
    }
    Ok(columns)
}

/// Reads equality deletes for a scan; each group once.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct EqualityDeletes {
    files: ParquetFiles,
    mapping: Option<Arc<NameMapping>>,
    /// The key columns of all groups, by field id.
    columns: HashMap<i32, ReadColumn>,
    /// By the address of the group, which lives as long as the scan.
    groups: Mutex<HashMap<usize, Arc<OnceCell<DeletedKeys>>>>,
}

impl EqualityDeletes {
    /// Reads nothing yet. `columns` holds the key columns of every group.
    pub(in crate::connector::iceberg::scan) fn new(
        files: ParquetFiles,
        mapping: Option<Arc<NameMapping>>,
        columns: HashMap<i32, ReadColumn>,
    ) -> EqualityDeletes {
        EqualityDeletes { files, mapping, columns, groups: Mutex::new(HashMap::new()) }
    }

    /// Returns the keys of a group.
    ///
    /// # Errors
    /// A delete file is missing or damaged.
    pub(in crate::connector::iceberg::scan) async fn keys_of(
        &self,
        group: &Arc<EqualityGroup>,
    ) -> Result<Arc<OnceCell<DeletedKeys>>> {
        let cell = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(groups.entry(Arc::as_ptr(group) as usize).or_default())
        };
        cell.get_or_try_init(|| self.read_group(group)).await?;
        Ok(cell)
    }

    async fn read_group(&self, group: &EqualityGroup) -> Result<DeletedKeys> {
        let columns: Vec<&ReadColumn> =
            group.field_ids.iter().map(|id| self.column(*id, group)).collect::<Result<_>>()?;
        let fields = columns.iter().map(|column| SortField::new(column.field.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let mut keys = DeletedKeys { converter, batches: Vec::new(), keys: HashTable::new() };
        // In order, because of several equal keys the newest counts.
        let reads: Vec<_> =
            group.files.iter().map(|delete| self.read_file(delete, &columns).boxed()).collect();
        let mut read = stream::iter(reads).buffered(CONCURRENT_READS);
        for delete in &group.files {
            for batch in read.try_next().await?.into_iter().flatten() {
                keys.insert(&batch, delete.sequence_number)?;
            }
        }
        Ok(keys)
    }

    fn column(&self, id: i32, group: &EqualityGroup) -> Result<&ReadColumn> {
        self.columns.get(&id).ok_or_else(|| {
            let location = group.files.first().map_or("", |delete| delete.file.file.file_path());
            let cause = Error::data(format!("its key column {id} is in no schema of the table"));
            self.files.context().damaged(FileRole::EqualityDeletes, location, cause)
        })
    }

    /// Returns the keys of a file, batch by batch.
    async fn read_file(&self, delete: &DeleteFile, columns: &[&ReadColumn]) -> Result<Vec<Vec<ArrayRef>>> {
        let (role, file) = (FileRole::EqualityDeletes, &delete.file.file);
        let (context, location) = (self.files.context(), file.file_path());
        if file.file_format() != DataFileFormat::Parquet {
            let why = format!("is in format {}", file.file_format());
            let hint = "Only delete files in Parquet are read: rewrite them with the engine that wrote them.";
            return Err(context.unsupported(role, location, &why, hint));
        }
        let error_of = |error: DataFusionError| self.files.error_of(role, location, error);
        let reader = self.files.open(role, location, file.file_size_in_bytes())?;
        let builder =
            ParquetRecordBatchStreamBuilder::new(reader).await.map_err(|error| error_of(error.into()))?;
        let (roots, conversions) = self
            .key_columns(builder.schema(), columns)
            .map_err(|error| context.damaged(role, location, error))?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        // Columns come in the order of the file, each once.
        let mut places = roots.clone();
        places.sort_unstable();
        let mut stream = builder.with_projection(mask).build().map_err(|error| error_of(error.into()))?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.try_next().await.map_err(|error| error_of(error.into()))? {
            let converted = roots.iter().zip(&conversions).map(|(root, conversion)| {
                let place = places.iter().position(|place| place == root).unwrap_or_default();
                conversion.apply(batch.column(place))
            });
            let converted: Vec<ArrayRef> = converted
                .collect::<Result<_, _>>()
                .map_err(|error| context.damaged(role, location, error))?;
            batches.push(converted);
        }
        Ok(batches)
    }

    /// Returns where in a delete file its key columns are.
    fn key_columns(
        &self,
        schema: &SchemaRef,
        columns: &[&ReadColumn],
    ) -> Result<(Vec<usize>, Vec<Conversion>)> {
        let file = FileColumns::new(schema.fields(), self.mapping.as_deref());
        let found = columns.iter().map(|column| match file.source_of(column)? {
            ColumnSource::File(index, conversion) => Ok((index, conversion)),
            ColumnSource::Missing => Err(Error::data(format!(
                "it has no column '{}', which is part of its key",
                column.field.name()
            ))),
        });
        found.collect::<Result<Vec<_>>>().map(|found| found.into_iter().unzip())
    }
}

impl DeletedKeys {
    /// Adds keys; those that are known take the greater sequence number.
    fn insert(&mut self, columns: &[ArrayRef], sequence_number: i64) -> Result<()> {
        let rows = self.converter.convert_columns(&normalised(columns))?;
        let too_many = || Error::data("there are too many equality deletes");
        let batch = u32::try_from(self.batches.len()).map_err(|_| too_many())?;
        let mut has_new = false;
        for (row, key) in rows.iter().enumerate() {
            let hash = xxh3_64(key.as_ref());
            let batches = &self.batches;
            let is_same = |known: &DeletedKey| {
                let known = if known.batch == batch {
                    rows.row(known.row as usize)
                } else {
                    batches[known.batch as usize].row(known.row as usize)
                };
                known == key
            };
            if let Some(known) = self.keys.find_mut(hash, is_same) {
                known.sequence_number = known.sequence_number.max(sequence_number);
                continue;
            }
            has_new = true;
            let row = u32::try_from(row).map_err(|_| too_many())?;
            let hash_of = |known: &DeletedKey| {
                let rows = if known.batch == batch { &rows } else { &batches[known.batch as usize] };
                xxh3_64(rows.row(known.row as usize).as_ref())
            };
            self.keys.insert_unique(hash, DeletedKey { batch, row, sequence_number }, hash_of);
        }
        if has_new {
            self.batches.push(rows);
        }
        Ok(())
    }

    /// Says which rows of a file with this sequence number are left.
    ///
    /// # Errors
    /// The columns are not those of the group.
    pub(in crate::connector::iceberg::scan) fn left(
        &self,
        columns: &[ArrayRef],
        sequence_number: i64,
    ) -> Result<BooleanArray> {
        let rows = self.converter.convert_columns(&normalised(columns))?;
        let left = rows.iter().map(|key| {
            let is_same =
                |known: &DeletedKey| self.batches[known.batch as usize].row(known.row as usize) == key;
            let known = self.keys.find(xxh3_64(key.as_ref()), is_same);
            known.is_none_or(|known| known.sequence_number <= sequence_number)
        });
        Ok(BooleanArray::from(left.collect::<Vec<bool>>()))
    }
}

/// Makes all NaN the same.
fn normalised(columns: &[ArrayRef]) -> Vec<ArrayRef> {
    let column = |column: &ArrayRef| -> ArrayRef {
        match column.data_type() {
            ArrowType::Float32 => Arc::new(
                column
                    .as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(|value| if value.is_nan() { f32::NAN } else { value }),
            ),
            ArrowType::Float64 => Arc::new(
                column
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(|value| if value.is_nan() { f64::NAN } else { value }),
            ),
            _ => Arc::clone(column),
        }
    };
    columns.iter().map(column).collect()
}
