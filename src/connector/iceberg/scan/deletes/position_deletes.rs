//! Positions that were deleted from data files: read from position delete files and deletion vectors, each once per scan.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::DataFileFormat;
use object_store::ObjectStoreExt;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use roaring::RoaringTreemap;
use tokio::sync::OnceCell;

use super::super::parquet_files::ParquetFiles;
use super::CONCURRENT_READS;
use super::delete_index::{DeleteFile, FileDeletes};
use crate::connector::iceberg::manifest::{DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID, FileRole, read_all};
use crate::error::{Error, Result};

/// What begins the body of a deletion vector.
const VECTOR_MAGIC: [u8; 4] = [0xD1, 0xD3, 0x39, 0x64];

/// What one delete file deletes.
#[derive(Debug)]
enum Deleted {
    /// Positions of the one file that it is for.
    OneFile(RoaringTreemap),
    /// Positions by path.
    Files(HashMap<String, RoaringTreemap>),
}

/// Reads position deletes for a scan, and keeps them: several data files share them, or several ranges of one file.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct PositionDeletes {
    files: ParquetFiles,
    shared: Mutex<HashMap<String, Arc<OnceCell<Deleted>>>>,
}

impl PositionDeletes {
    /// Reads nothing yet.
    pub(in crate::connector::iceberg::scan) fn new(files: ParquetFiles) -> PositionDeletes {
        PositionDeletes { files, shared: Mutex::new(HashMap::new()) }
    }

    /// Returns the positions that were deleted from a data file.
    ///
    /// # Errors
    /// A delete file is missing or damaged.
    pub(in crate::connector::iceberg::scan) async fn of_file(
        &self,
        path: &str,
        deletes: &FileDeletes,
    ) -> Result<RoaringTreemap> {
        if let Some(vector) = &deletes.vector {
            return self.read_vector(vector).await;
        }
        let reads = stream::iter(deletes.positions.iter().map(Arc::clone))
            .map(|delete| async move { self.add_positions(path, &delete).await })
            .buffer_unordered(CONCURRENT_READS);
        reads
            .try_fold(RoaringTreemap::new(), |mut all, positions| async move {
                all |= positions;
                Ok(all)
            })
            .await
    }

    /// Returns what one delete file says of a data file.
    async fn add_positions(&self, path: &str, delete: &DeleteFile) -> Result<RoaringTreemap> {
        let cell = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(shared.entry(delete.file.file.file_path().to_owned()).or_default())
        };
        let is_for_one_file = delete.file.referenced_data_file().is_some();
        let deleted = cell.get_or_try_init(|| self.read_positions(delete, is_for_one_file)).await?;
        Ok(match deleted {
            Deleted::OneFile(positions) => positions.clone(),
            Deleted::Files(files) => files.get(path).cloned().unwrap_or_default(),
        })
    }

    /// Reads a position delete file.
    async fn read_positions(&self, delete: &DeleteFile, is_for_one_file: bool) -> Result<Deleted> {
        let (role, file) = (FileRole::PositionDeletes, &delete.file.file);
        let (context, location) = (self.files.context(), file.file_path());
        if file.file_format() != DataFileFormat::Parquet {
            let why = format!("is in format {}", file.file_format());
            let hint = "Only delete files in Parquet are read: rewrite them with the engine that wrote them.";
            return Err(context.unsupported(role, location, &why, hint));
        }
        let bytes = read_all(self.files.files(), context, role, location).await?;
        decode_positions(bytes, is_for_one_file).map_err(|error| context.damaged(role, location, error))
    }

    /// Reads a deletion vector: a blob in a Puffin file, whose place the manifest knows.
    async fn read_vector(&self, vector: &DeleteFile) -> Result<RoaringTreemap> {
        let (role, file) = (FileRole::DeletionVector, &vector.file.file);
        let (context, location) = (self.files.context(), file.file_path());
        let damaged = |why: &str| context.damaged(role, location, Error::data(why));
        let place = (file.content_offset(), file.content_size_in_bytes());
        let (Some(offset), Some(size)) = (place.0, place.1) else {
            return Err(damaged("the manifest does not say where in the file it lies"));
        };
        let (Ok(offset), Ok(size)) = (u64::try_from(offset), u64::try_from(size)) else {
            return Err(damaged("its place in the file is negative"));
        };
        let (store, path) = self.files.files().resolve(location)?;
        let blob = store
            .get_range(&path, offset..offset.saturating_add(size))
            .await
            .map_err(|error| context.not_read(role, location, error))?;
        let positions = decode_vector(&blob).map_err(damaged)?;
        if positions.len() != file.record_count() {
            return Err(damaged("it has another number of positions than the manifest says"));
        }
        Ok(positions)
    }
}

/// Decodes a deletion vector: length, magic number, 64-bit Roaring bitmap, checksum.
fn decode_vector(blob: &[u8]) -> Result<RoaringTreemap, &'static str> {
    let (length, rest) = blob.split_first_chunk::<4>().ok_or("it is cut off")?;
    let length = u32::from_be_bytes(*length) as usize;
    let (body, checksum) = rest.split_at_checked(length).ok_or("it is cut off")?;
    let checksum = checksum.first_chunk::<4>().ok_or("it is cut off")?;
    if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    let bitmap = body.strip_prefix(&VECTOR_MAGIC).ok_or("it does not begin as a deletion vector")?;
    RoaringTreemap::deserialize_from(bitmap).map_err(|_| "its bitmap cannot be read")
}

/// Decodes a position delete file. Of one that is for one data file only the positions are looked at.
fn decode_positions(bytes: Bytes, is_for_one_file: bool) -> Result<Deleted> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(other)?;
    let schema = builder.parquet_schema();
    let column = |id: i32, name: &str| {
        let fields = schema.root_schema().get_fields();
        let by_id = |field: &parquet::schema::types::TypePtr| {
            let info = field.get_basic_info();
            info.has_id() && info.id() == id
        };
        fields.iter().position(by_id).or_else(|| fields.iter().position(|field| field.name() == name))
    };
    let (Some(path), Some(pos)) =
        (column(DELETE_FILE_PATH_ID, "file_path"), column(DELETE_FILE_POS_ID, "pos"))
    else {
        return Err(Error::data("it has no columns 'file_path' and 'pos'"));
    };
    if is_for_one_file {
        let mask = ProjectionMask::roots(schema, [pos]);
        let mut positions = RoaringTreemap::new();
        for batch in builder.with_projection(mask).build().map_err(other)? {
            add_all(&mut positions, &batch?, 0)?;
        }
        return Ok(Deleted::OneFile(positions));
    }
    let mask = ProjectionMask::roots(schema, [path, pos]);
    let (path, pos) = if path < pos { (0, 1) } else { (1, 0) };
    let mut files: HashMap<String, RoaringTreemap> = HashMap::new();
    for batch in builder.with_projection(mask).build().map_err(other)? {
        add_by_path(&mut files, &batch?, path, pos)?;
    }
    Ok(Deleted::Files(files))
}

fn other(error: parquet::errors::ParquetError) -> Error {
    Error::data(error.to_string())
}

fn add_all(positions: &mut RoaringTreemap, batch: &RecordBatch, pos: usize) -> Result<()> {
    let values = positions_of(batch, pos)?;
    for value in values.as_primitive::<Int64Type>().values() {
        insert(positions, *value)?;
    }
    Ok(())
}

/// Adds rows; they are sorted by path, so the map is looked up once per file and batch.
fn add_by_path(
    files: &mut HashMap<String, RoaringTreemap>,
    batch: &RecordBatch,
    path: usize,
    pos: usize,
) -> Result<()> {
    let paths = cast(batch.column(path), &ArrowType::Utf8)?;
    let paths = paths.as_string::<i32>();
    let values = positions_of(batch, pos)?;
    let values = values.as_primitive::<Int64Type>().values();
    let mut row = 0;
    while row < batch.num_rows() {
        if paths.is_null(row) {
            return Err(Error::data("a path in it is NULL"));
        }
        let path = paths.value(row);
        let positions = files.entry(path.to_owned()).or_default();
        while row < batch.num_rows() && paths.is_valid(row) && paths.value(row) == path {
            insert(positions, values[row])?;
            row += 1;
        }
    }
    Ok(())
}

fn positions_of(batch: &RecordBatch, pos: usize) -> Result<ArrayRef> {
    let values = cast(batch.column(pos), &ArrowType::Int64)?;
    if values.null_count() > 0 {
        return Err(Error::data("a position in it is NULL"));
    }
    Ok(values)
}

fn insert(positions: &mut RoaringTreemap, value: i64) -> Result<()> {
    let value =
        u64::try_from(value).map_err(|_| Error::data(format!("position {value} in it is negative")))?;
    // Positions are sorted, and appending is cheaper; what is not in order is inserted.
    if positions.try_push(value).is_err() {
        positions.insert(value);
    }
    Ok(())
}
