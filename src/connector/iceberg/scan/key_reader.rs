//! Keys of data files with the positions of their rows: what the sink's index is built from, and resolved by after others have
//! written.

use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::live_files::LiveFile;
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

/// What of the files is wanted.
#[derive(Debug, Clone, Default)]
pub(in crate::connector::iceberg) struct KeyReadOptions {
    /// The keys that are looked for: columns as in `KeyRows::keys`. Files and row groups that hold none of them are passed over by
    /// their bounds and bloom filters; of the others all rows come. None: everything is wanted.
    pub(in crate::connector::iceberg) wanted: Option<RecordBatch>,
    /// How many files are read at the same time; 0 means as many as there are cores.
    pub(in crate::connector::iceberg) concurrency: usize,
}

/// Reads the key columns (field ids of the table's current schema) of data files, without the rows that are deleted. Batches of
/// one file come in the order of its rows, those of different files in any order.
///
/// # Errors
/// The stream ends with an error if a file is missing or damaged.
pub(in crate::connector::iceberg) fn read_keys(
    table: &IcebergTable,
    files: Arc<[LiveFile]>,
    key_field_ids: &[i32],
    _options: KeyReadOptions,
) -> BoxStream<'static, Result<KeyRows>> {
    let (table, ids) = (table.clone(), key_field_ids.to_vec());
    let numbers: Vec<usize> = (0..files.len()).collect();
    Box::pin(stream::iter(numbers).then(move |number| {
        let (table, files, ids) = (table.clone(), Arc::clone(&files), ids.clone());
        async move {
            let (keys, positions) = read_file(&table, &files[number], &ids).await?;
            Ok(KeyRows { file: number, keys, positions })
        }
    }))
}

/// STAND-IN until the reader of keys is merged.
async fn read_file(table: &IcebergTable, file: &LiveFile, ids: &[i32]) -> Result<(RecordBatch, Int64Array)> {
    use arrow::array::{ArrayRef, AsArray, BooleanArray};
    use std::collections::HashSet;
    let path = file.data.file.file_path();
    let rows = read_parquet(table, path).await?;
    let mut deleted: HashSet<i64> = HashSet::new();
    for delete in &file.deletes.positions {
        let deletes = read_parquet(table, delete.file.file.file_path()).await?;
        let paths = arrow::compute::cast(deletes.column(0), &arrow::datatypes::DataType::Utf8)?;
        let positions = deletes.column(1).as_primitive::<arrow::datatypes::Int64Type>().clone();
        for (of, position) in paths.as_string::<i32>().iter().zip(positions.values()) {
            if of == Some(path) {
                deleted.insert(*position);
            }
        }
    }
    let schema = table.metadata().current_schema();
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for id in ids {
        let field = schema.field_by_id(*id).ok_or_else(|| Error::internal("no such column"))?;
        let data_type =
            crate::connector::iceberg::types::to_flink(&field.field_type, field.required).to_arrow();
        let at = rows.schema().fields().iter().position(|field| {
            field.metadata().get("PARQUET:field_id").map(String::as_str) == Some(id.to_string().as_str())
        });
        let column = match at {
            Some(at) => arrow::compute::cast(rows.column(at), &data_type)?,
            None => arrow::array::new_null_array(&data_type, rows.num_rows()),
        };
        columns.push((field.name.clone(), column));
    }
    let keys = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )?;
    let mask: BooleanArray = (0..rows.num_rows() as i64).map(|row| Some(!deleted.contains(&row))).collect();
    let positions = Int64Array::from_iter_values(0..rows.num_rows() as i64);
    let positions = arrow::compute::filter(&positions, &mask)?;
    let positions = positions.as_primitive::<arrow::datatypes::Int64Type>().clone();
    Ok((arrow::compute::filter_record_batch(&keys, &mask)?, positions))
}

async fn read_parquet(table: &IcebergTable, path: &str) -> Result<RecordBatch> {
    let bytes = table.files().read(path).await?;
    let other = |error: parquet::errors::ParquetError| Error::data(error.to_string());
    let builder =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(other)?;
    let schema = Arc::clone(builder.schema());
    let batches = builder.build().map_err(other)?.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(arrow::compute::concat_batches(&schema, &batches)?)
}
