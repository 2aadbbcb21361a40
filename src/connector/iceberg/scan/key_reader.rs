//! Keys of data files with the positions of their rows: what the sink's index is built from, and resolved by after others have
//! written.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, Int64Array, RecordBatch};
use arrow::compute::{and, filter, filter_record_batch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use iceberg::spec::NameMapping;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::types::SchemaDescriptor;
use roaring::RoaringTreemap;
use tokio::sync::{OnceCell, mpsc};

use super::columns::{ColumnSource, Conversion, FileColumns, ReadColumn, name_mapping, value_of_missing};
use super::deletes::{DeletedKeys, EqualityDeletes, PositionDeletes, key_columns};
use super::live_files::LiveFile;
use super::parquet_files::ParquetFiles;
use super::scan_file::{check_format, partition_constants};
use super::wanted_keys::{KeyBounds, between, bounds_of_file, may_contain};
use crate::connector::iceberg::manifest::{FileRole, ReadContext};
use crate::connector::iceberg::row_bytes::piece_rows;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

/// Rows of one data file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg) struct KeyRows {
    /// The place of the file among those asked for.
    pub(in crate::connector::iceberg) file: usize,
    /// The key columns, in the order asked for, in the Arrow types of Flink's types, named as in the table's current schema.
    pub(in crate::connector::iceberg) keys: RecordBatch,
    /// Where each row lies in its file, from 0; ascending within a batch.
    pub(in crate::connector::iceberg) positions: Int64Array,
}

/// Reads the key columns (field ids of the table's current schema) of data files, without the rows that are deleted. Batches of
/// one file come in the order of its rows, those of different files in any order. Dropping the stream stops the reads.
///
/// With `wanted`, keys that are looked for (columns as in `KeyRows::keys`), files and row groups that hold none of them are passed over
/// by their bounds and bloom filters; of the others all rows come.
///
/// # Errors
/// The stream ends with an error if a file is missing or damaged.
pub(in crate::connector::iceberg) fn read_keys(
    table: &IcebergTable,
    files: Arc<[LiveFile]>,
    key_field_ids: &[i32],
    wanted: Option<RecordBatch>,
) -> BoxStream<'static, Result<KeyRows>> {
    let concurrency = std::thread::available_parallelism().map_or(1, usize::from);
    let read = match KeyRead::new(table, Arc::clone(&files), key_field_ids, wanted) {
        Ok(read) => Arc::new(read),
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let (sender, receiver) = mpsc::channel(concurrency * 2);
    let driver = SpawnedTask::spawn(async move {
        let tasks = stream::iter(0..files.len()).map(Ok::<usize, ()>);
        let outcome = tasks.try_for_each_concurrent(concurrency, |file| {
            let (read, sender) = (Arc::clone(&read), sender.clone());
            async move {
                let task = SpawnedTask::spawn(async move {
                    match read.file(file, &sender).await {
                        Ok(is_wanted) => is_wanted,
                        // The first error ends the stream: who gets it stops reading.
                        Err(error) => sender.send(Err(error)).await.is_err(),
                    }
                });
                if matches!(task.join_unwind().await, Ok(true)) { Ok(()) } else { Err(()) }
            }
        });
        let _: Result<(), ()> = outcome.await;
    });
    // The driver lives as long as the stream, and with it all its tasks. Whether it came to its end is asked last: a stream that is
    // cut off must not look like one that is complete.
    let rows = stream::unfold((receiver, Some(driver)), |(mut receiver, driver)| async move {
        if let Some(rows) = receiver.recv().await {
            return Some((rows, (receiver, driver)));
        }
        match driver?.join_unwind().await {
            Ok(()) => None,
            Err(error) => {
                Some((Err(Error::internal("a reader of keys stopped").caused_by(error)), (receiver, None)))
            }
        }
    });
    rows.boxed()
}

/// Returns how many rows of a row group are read at a time: without a key all columns are read, and many batches are on their way.
fn batch_rows(rows: &RowGroupMetaData, schema: &SchemaDescriptor, mask: &ProjectionMask) -> usize {
    let read = (0..schema.num_columns()).filter(|leaf| mask.leaf_included(*leaf));
    let bytes: i64 = read.map(|leaf| rows.column(leaf).uncompressed_size()).sum();
    piece_rows(usize::try_from(bytes).unwrap_or(0), usize::try_from(rows.num_rows()).unwrap_or(0))
}

/// A read of keys.
struct KeyRead {
    files: Arc<[LiveFile]>,
    parquet: ParquetFiles,
    columns: Vec<ReadColumn>,
    schema: SchemaRef,
    wanted: Option<RecordBatch>,
    mapping: Option<Arc<NameMapping>>,
    positions: PositionDeletes,
    equality: EqualityDeletes,
    /// Columns of equality deletes, by field id.
    other_columns: HashMap<i32, ReadColumn>,
    table: IcebergTable,
}

/// Where a column of one file comes from.
enum Place {
    /// A column of the file, by its position among those that are read.
    Read(usize, Conversion),
    Constant(ScalarValue),
}

/// What is read of one file.
struct FilePlan {
    /// The file's columns that are read, ascending.
    roots: Vec<usize>,
    keys: Vec<Place>,
    groups: Vec<(Arc<OnceCell<DeletedKeys>>, Vec<Place>)>,
    deleted: RoaringTreemap,
}

impl KeyRead {
    fn new(
        table: &IcebergTable,
        files: Arc<[LiveFile]>,
        key_field_ids: &[i32],
        wanted: Option<RecordBatch>,
    ) -> Result<KeyRead> {
        let metadata = table.metadata();
        let column = |id: &i32| match metadata.current_schema().as_struct().field_by_id(*id) {
            Some(field) => ReadColumn::of_field(field),
            None => {
                Err(Error::internal(format!("field {id} is no column of Iceberg table '{}'", table.ident())))
            }
        };
        let columns = key_field_ids.iter().map(column).collect::<Result<Vec<_>>>()?;
        let groups = files.iter().flat_map(|live| &live.deletes.equality);
        let others = key_columns(table, metadata.current_schema(), groups)?;
        let other_columns: HashMap<i32, ReadColumn> =
            others.into_iter().map(|column| (column.id, column)).collect();
        let schema = Schema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>());
        let parquet = ParquetFiles::new(table.files().clone(), ReadContext::new(table, None));
        let mapping = name_mapping(table)?;
        Ok(KeyRead {
            files,
            columns,
            schema: Arc::new(schema),
            wanted,
            positions: PositionDeletes::new(parquet.clone()),
            equality: EqualityDeletes::new(parquet.clone(), mapping.clone(), other_columns.clone()),
            parquet,
            mapping,
            other_columns,
            table: table.clone(),
        })
    }

    /// Reads one file. Returns whether anybody still listens.
    async fn file(&self, file: usize, sender: &mpsc::Sender<Result<KeyRows>>) -> Result<bool> {
        let live = &self.files[file];
        check_format(&live.data, self.parquet.context())?;
        if let Some(wanted) = &self.wanted
            && !between(wanted, &bounds_of_file(&live.data, &self.columns))?.has_true()
        {
            return Ok(true);
        }
        let (location, size) = (live.data.file.file_path(), live.data.file.file_size_in_bytes());
        let error_of = |error: DataFusionError| self.parquet.error_of(FileRole::DataFile, location, error);
        let footer = self
            .parquet
            .open(FileRole::DataFile, location, size)?
            .footer()
            .await
            .map_err(|error| error_of(error.into()))?;
        let metadata = ArrowReaderMetadata::try_new(footer, ArrowReaderOptions::new())
            .map_err(|error| error_of(error.into()))?;
        let plan = self.plan(live, &metadata).await?;
        let mut start = 0_u64;
        for (row_group, rows) in metadata.metadata().row_groups().iter().enumerate() {
            let end = start + u64::try_from(rows.num_rows()).unwrap_or_default();
            let first = std::mem::replace(&mut start, end);
            if plan.deleted.range_cardinality(first..end) == end - first {
                continue;
            }
            let reader = self.parquet.open(FileRole::DataFile, location, size)?;
            let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(reader, metadata.clone());
            if !self.may_be_wanted(&mut builder, row_group, &plan).await? {
                continue;
            }
            let mask = ProjectionMask::roots(builder.parquet_schema(), plan.roots.iter().copied());
            let batch_rows = batch_rows(rows, builder.parquet_schema(), &mask);
            let builder =
                builder.with_row_groups(vec![row_group]).with_projection(mask).with_batch_size(batch_rows);
            let mut batches = builder.build().map_err(|error| error_of(error.into()))?;
            let mut at = first;
            while let Some(batch) = batches.try_next().await.map_err(|error| error_of(error.into()))? {
                let rows = self.rows(file, &batch, at, &plan)?;
                at += batch.num_rows() as u64;
                if rows.positions.is_empty() {
                    continue;
                }
                if sender.send(Ok(rows)).await.is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Finds the columns of a file and what was deleted from it.
    async fn plan(&self, live: &LiveFile, metadata: &ArrowReaderMetadata) -> Result<FilePlan> {
        let file = FileColumns::new(metadata.schema().fields(), self.mapping.as_deref());
        let all: Vec<ReadColumn> = self.columns.iter().chain(self.other_columns.values()).cloned().collect();
        let constants = partition_constants(&live.data, self.table.metadata(), &all)?;
        let location = live.data.file.file_path();
        let mut roots = Vec::new();
        let mut source =
            |column: &ReadColumn| -> Result<(Option<usize>, Option<Conversion>, Option<ScalarValue>)> {
                let damaged = |error| self.parquet.context().damaged(FileRole::DataFile, location, error);
                Ok(match file.source_of(column).map_err(damaged)? {
                    ColumnSource::File(index, conversion) => {
                        roots.push(index);
                        (Some(index), Some(conversion), None)
                    }
                    ColumnSource::Missing => {
                        let damaged =
                            |error| self.parquet.context().damaged(FileRole::DataFile, location, error);
                        (None, None, Some(value_of_missing(column, &constants).map_err(damaged)?))
                    }
                })
            };
        let keys = self.columns.iter().map(&mut source).collect::<Result<Vec<_>>>()?;
        let mut groups = Vec::new();
        for group in &live.deletes.equality {
            let keys = self.equality.keys_of(group).await?;
            let columns = group.field_ids.iter().filter_map(|id| self.other_columns.get(id));
            groups.push((keys, columns.map(&mut source).collect::<Result<Vec<_>>>()?));
        }
        roots.sort_unstable();
        roots.dedup();
        let place =
            |(root, conversion, constant): (Option<usize>, Option<Conversion>, Option<ScalarValue>)| match (
                root.and_then(|root| roots.binary_search(&root).ok()),
                conversion,
                constant,
            ) {
                (Some(place), Some(conversion), _) => Place::Read(place, conversion),
                (_, _, constant) => Place::Constant(constant.unwrap_or(ScalarValue::Null)),
            };
        let keys = keys.into_iter().map(place).collect();
        let groups = groups
            .into_iter()
            .map(|(keys, columns)| (keys, columns.into_iter().map(place).collect()))
            .collect();
        let deleted = self.positions.of_file(location, &live.deletes).await?;
        Ok(FilePlan { roots, keys, groups, deleted })
    }

    /// Returns whether a row group may hold one of the wanted keys.
    async fn may_be_wanted(
        &self,
        builder: &mut ParquetRecordBatchStreamBuilder<super::parquet_files::ParquetFile>,
        row_group: usize,
        plan: &FilePlan,
    ) -> Result<bool> {
        let Some(wanted) = &self.wanted else { return Ok(true) };
        let bounds: Vec<KeyBounds> =
            plan.keys.iter().map(|place| row_group_bounds(builder, row_group, place, plan)).collect();
        let candidates = between(wanted, &bounds)?;
        if !candidates.has_true() {
            return Ok(false);
        }
        let mut filters = Vec::with_capacity(plan.keys.len());
        for place in &plan.keys {
            let leaf = match place {
                // A filter knows the values as they lie in the file.
                Place::Read(place, conversion) if conversion.is_identity() => {
                    let schema = builder.parquet_schema();
                    let root = plan.roots[*place];
                    (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == root)
                }
                _ => None,
            };
            filters.push(match leaf {
                // A filter that cannot be read says nothing; the rows will tell.
                Some(leaf) => builder.get_row_group_column_bloom_filter(row_group, leaf).await.ok().flatten(),
                None => None,
            });
        }
        Ok(may_contain(wanted, &candidates, &filters))
    }

    /// Converts a batch and leaves out what is deleted. `first` is the position of its first row.
    fn rows(&self, file: usize, batch: &RecordBatch, first: u64, plan: &FilePlan) -> Result<KeyRows> {
        let live = &self.files[file];
        let count = batch.num_rows();
        let columns = |places: &[Place]| {
            let column = |place: &Place| -> Result<ArrayRef> {
                match place {
                    Place::Read(place, conversion) => {
                        conversion.apply(batch.column(*place)).map_err(|error| {
                            self.parquet.context().damaged(
                                FileRole::DataFile,
                                live.data.file.file_path(),
                                error,
                            )
                        })
                    }
                    Place::Constant(value) => Ok(value.to_array_of_size(count)?),
                }
            };
            places.iter().map(column).collect::<Result<Vec<_>>>()
        };
        let mut left = left_by_position(&plan.deleted, first, count);
        for (keys, places) in &plan.groups {
            let Some(keys) = keys.get() else {
                return Err(Error::internal("equality deletes are not there"));
            };
            let of_group = keys.left(&columns(places)?, live.data_sequence_number)?;
            left = Some(match left {
                Some(left) => and(&left, &of_group)?,
                None => of_group,
            });
        }
        let positions = Int64Array::from_iter_values((first..first + count as u64).map(u64::cast_signed));
        let keys = RecordBatch::try_new(Arc::clone(&self.schema), columns(&plan.keys)?)?;
        Ok(match left {
            Some(left) if left.has_false() => KeyRows {
                file,
                keys: filter_record_batch(&keys, &left)?,
                positions: Int64Array::from(filter(&positions, &left)?.to_data()),
            },
            _ => KeyRows { file, keys, positions },
        })
    }
}

/// Says which rows are left of a batch; None if all are.
fn left_by_position(deleted: &RoaringTreemap, first: u64, count: usize) -> Option<BooleanArray> {
    let end = first + count as u64;
    if deleted.range_cardinality(first..end) == 0 {
        return None;
    }
    let mut left = BooleanBufferBuilder::new(count);
    left.append_n(count, true);
    let mut positions = deleted.iter();
    positions.advance_to(first);
    for position in positions.take_while(|position| *position < end) {
        left.set_bit(usize::try_from(position - first).unwrap_or_default(), false);
    }
    Some(BooleanArray::new(left.finish(), None))
}

/// Returns the bounds of a key column in a row group.
fn row_group_bounds(
    builder: &ParquetRecordBatchStreamBuilder<super::parquet_files::ParquetFile>,
    row_group: usize,
    place: &Place,
    plan: &FilePlan,
) -> KeyBounds {
    match place {
        Place::Constant(value) => {
            let value = value.to_array().ok()?;
            Some((Arc::clone(&value), value))
        }
        Place::Read(place, conversion) => {
            let name = builder.schema().field(plan.roots[*place]).name();
            let converter =
                StatisticsConverter::try_new(name, builder.schema(), builder.parquet_schema()).ok()?;
            let row_groups = [builder.metadata().row_group(row_group)];
            let least = converter.row_group_mins(row_groups).ok()?;
            let greatest = converter.row_group_maxes(row_groups).ok()?;
            Some((conversion.apply(&least).ok()?, conversion.apply(&greatest).ok()?))
        }
    }
}
