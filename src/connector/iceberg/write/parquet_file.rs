//! A Parquet file on its way: rows are encoded on a thread that may compute for long, and bytes leave in parts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::file_metrics::FileMetrics;
use super::parquet_format::ParquetFormat;
use super::partition_splitter::source_column;
use crate::connector::iceberg::row_bytes::row_bytes;
use crate::connector::iceberg::storage::{FileStore, store_error};
use crate::error::{Error, Result};

/// How many bytes are sent at a time; a file that is smaller is written at once.
const PART_BYTES: usize = 8 << 20;

/// How many bytes of a file lie in one piece until they are sent: few enough that the allocator has them at hand, where a buffer that
/// grows with the file is copied, and touches new memory, again and again.
const BLOCK_BYTES: usize = 256 << 10;

/// How many blocks are sent at a time.
const PART_BLOCKS: usize = PART_BYTES / BLOCK_BYTES;

/// How many parts of a file may be on their way.
const PARTS_ON_THEIR_WAY: usize = 2;

/// How many bytes of rows wait for the encoder at most.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// A file that is being written. Nobody sees it before it is finished, and dropped, it leaves nothing.
pub(super) struct ParquetFile {
    location: String,
    files: FileStore,
    format: Arc<ParquetFormat>,
    /// How many rows wait before they are encoded.
    encoded_rows: usize,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
    waiting_bytes: usize,
    row_count: u64,
    stage: Stage,
    /// Size and memory of the encoder when it was last seen.
    size: usize,
    memory_bytes: usize,
    upload: Option<WriteMultipart>,
    sent_bytes: u64,
}

/// What the encoder does. While it encodes, the next rows are collected.
enum Stage {
    /// There is none: the first rows that it gets say how it encodes.
    New,
    Encoding(JoinHandle<Result<Box<Encoder>>>),
    Failed,
}

/// A file that has been written.
#[derive(Debug)]
pub(super) struct FinishedFile {
    /// Where it is.
    pub(super) location: String,
    /// How many bytes it has.
    pub(super) size: u64,
    /// What its manifest entry says of its columns.
    pub(super) metrics: FileMetrics,
}

impl ParquetFile {
    /// Begins a file. Nothing is written yet.
    pub(super) fn create(
        location: String,
        files: FileStore,
        format: &Arc<ParquetFormat>,
        encoded_rows: usize,
    ) -> ParquetFile {
        ParquetFile {
            location,
            files,
            stage: Stage::New,
            format: Arc::clone(format),
            encoded_rows,
            waiting: Vec::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
            row_count: 0,
            size: 0,
            memory_bytes: 0,
            upload: None,
            sent_bytes: 0,
        }
    }

    /// Returns how many rows it has been given.
    pub(super) fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Returns about how many bytes it has, those rows counted that have been encoded.
    pub(super) fn size(&self) -> u64 {
        self.size as u64
    }

    /// Returns about how many bytes it holds in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.waiting_bytes + self.memory_bytes
    }

    /// Adds rows, in the file's Arrow types.
    ///
    /// # Errors
    /// Earlier rows could not be encoded or written.
    pub(super) async fn write(&mut self, rows: RecordBatch) -> Result<()> {
        self.row_count += rows.num_rows() as u64;
        self.waiting_rows += rows.num_rows();
        self.waiting_bytes += row_bytes(&rows);
        self.waiting.push(rows);
        if self.waiting_rows >= self.encoded_rows || self.waiting_bytes >= WAITING_BYTES_MAX {
            let mut encoder = self.idle_encoder().await?;
            self.send(encoder.writer.full_parts()).await?;
            self.memory_bytes += self.waiting_bytes;
            let (rows, format) = (self.take_waiting(), Arc::clone(&self.format));
            self.stage = Stage::Encoding(spawn_blocking(move || {
                encoder.write_all(&rows, &format)?;
                Ok(encoder)
            }));
        }
        Ok(())
    }

    /// Ends the file; it lasts.
    ///
    /// # Errors
    /// It cannot be encoded or written.
    pub(super) async fn finish(mut self) -> Result<FinishedFile> {
        let mut encoder = self.idle_encoder().await?;
        let (rows, format) = (self.take_waiting(), Arc::clone(&self.format));
        let work = spawn_blocking(move || {
            encoder.write_all(&rows, &format)?;
            encoder.finish()
        });
        let (metadata, nan_counts, blocks) = work.await.map_err(panicked)??;
        let metrics = FileMetrics::new(&metadata, self.format.leaves(), &nan_counts)?;
        let size = self.sent_bytes + blocks.iter().map(|block| block.len() as u64).sum::<u64>();
        if self.upload.is_none() && size <= PART_BYTES as u64 {
            let (store, path) = self.files.resolve(&self.location)?;
            let written = store.put(&path, PutPayload::from_iter(blocks)).await;
            written.map_err(|error| self.unwritable(error))?;
        } else {
            self.send(blocks).await?;
            if let Some(upload) = self.upload.take() {
                upload.finish().await.map_err(|error| self.unwritable(error))?;
            }
        }
        Ok(FinishedFile { location: self.location, size, metrics })
    }

    fn take_waiting(&mut self) -> Vec<RecordBatch> {
        (self.waiting_rows, self.waiting_bytes) = (0, 0);
        std::mem::take(&mut self.waiting)
    }

    /// Takes the encoder once it has encoded what it was given.
    async fn idle_encoder(&mut self) -> Result<Box<Encoder>> {
        let encoder = match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::New => Box::new(Encoder::new(&self.format, &self.waiting, &self.location)?),
            Stage::Encoding(work) => work.await.map_err(panicked)??,
            Stage::Failed => return Err(Error::internal("a data file is written after it has failed")),
        };
        (self.size, self.memory_bytes) = (encoder.size(), encoder.memory_bytes());
        Ok(encoder)
    }

    /// Sends blocks on their way, which leave a part at a time.
    async fn send(&mut self, blocks: Vec<Bytes>) -> Result<()> {
        for block in blocks {
            let mut upload = match self.upload.take() {
                Some(upload) => upload,
                None => {
                    let (store, path) = self.files.resolve(&self.location)?;
                    let upload = store.put_multipart(&path).await.map_err(|error| self.unwritable(error))?;
                    WriteMultipart::new_with_chunk_size(upload, PART_BYTES)
                }
            };
            self.sent_bytes += block.len() as u64;
            let has_room = upload.wait_for_capacity(PARTS_ON_THEIR_WAY).await;
            has_room.map_err(|error| self.unwritable(error))?;
            upload.put(block);
            self.upload = Some(upload);
        }
        Ok(())
    }

    fn unwritable(&self, error: object_store::Error) -> Error {
        store_error("write", &self.location, error)
    }
}

/// The error of rows that Parquet does not take.
fn unencodable(location: &str, error: ParquetError) -> Error {
    Error::data(format!("rows cannot be encoded for file '{location}'")).caused_by(error)
}

/// The error of an encoder that has panicked.
fn panicked(error: JoinError) -> Error {
    Error::internal("encoding a file panicked").caused_by(error)
}

/// Encodes rows.
struct Encoder {
    writer: BlockWriter,
    nan_counts: HashMap<i32, u64>,
    /// The file, for errors.
    location: String,
}

impl Encoder {
    fn new(format: &ParquetFormat, first_rows: &[RecordBatch], location: &str) -> Result<Encoder> {
        let schema = Arc::clone(format.arrow());
        let writer =
            ArrowWriter::try_new_with_options(Blocks::default(), schema, format.options(first_rows)?);
        let writer = writer.map_err(|error| unencodable(location, error))?;
        let nan_counts = format.floats().iter().map(|float| (float.id, 0)).collect();
        Ok(Encoder { writer: BlockWriter(writer), nan_counts, location: location.to_owned() })
    }

    fn write_all(&mut self, rows: &[RecordBatch], format: &ParquetFormat) -> Result<()> {
        rows.iter().try_for_each(|rows| self.write(rows, format))
    }

    fn write(&mut self, rows: &RecordBatch, format: &ParquetFormat) -> Result<()> {
        for float in format.floats() {
            let count = nan_count(source_column(rows, &float.path)?.as_ref());
            *self.nan_counts.entry(float.id).or_default() += count;
        }
        self.writer.0.write(rows).map_err(|error| unencodable(&self.location, error))
    }

    /// Ends the file: what it says of itself, its NaNs by field id, and its last blocks.
    fn finish(mut self) -> Result<(ParquetMetaData, HashMap<i32, u64>, Vec<Bytes>)> {
        let metadata = self.writer.0.finish().map_err(|error| unencodable(&self.location, error))?;
        Ok((metadata, self.nan_counts, self.writer.into_blocks()))
    }

    fn size(&self) -> usize {
        self.writer.0.bytes_written() + self.writer.0.in_progress_size()
    }

    fn memory_bytes(&self) -> usize {
        self.writer.0.memory_size() + self.writer.0.inner().bytes()
    }
}

/// Returns how many values of a column are NaN.
fn nan_count(column: &dyn Array) -> u64 {
    /// Counts NaNs, of which those behind a NULL are none.
    macro_rules! count {
        ($type:ty) => {{
            let values = column.as_primitive::<$type>();
            match values.null_count() {
                0 => values.values().iter().filter(|value| value.is_nan()).count(),
                _ => values.iter().flatten().filter(|value| value.is_nan()).count(),
            }
        }};
    }
    match column.data_type() {
        ArrowType::Float32 => count!(Float32Type) as u64,
        ArrowType::Float64 => count!(Float64Type) as u64,
        _ => 0,
    }
}

/// The Parquet crate's writer into blocks.
struct BlockWriter(ArrowWriter<Blocks>);

impl BlockWriter {
    /// Takes the blocks of whole parts; what an upload would only keep until there is a part stays, and counts as memory.
    fn full_parts(&mut self) -> Vec<Bytes> {
        let full = &mut self.0.inner_mut().full;
        full.drain(..full.len() / PART_BLOCKS * PART_BLOCKS).collect()
    }

    /// Takes all blocks.
    fn into_blocks(mut self) -> Vec<Bytes> {
        let Blocks { mut full, last } = std::mem::take(self.0.inner_mut());
        full.push(last.into());
        full
    }
}

/// Bytes in blocks, of which all but the last are full.
#[derive(Debug, Default)]
struct Blocks {
    full: Vec<Bytes>,
    last: Vec<u8>,
}

impl Blocks {
    fn bytes(&self) -> usize {
        self.full.len() * BLOCK_BYTES + self.last.capacity()
    }
}

impl io::Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == BLOCK_BYTES {
            let full = std::mem::replace(&mut self.last, Vec::with_capacity(BLOCK_BYTES));
            self.full.push(full.into());
        }
        let taken = bytes.len().min(BLOCK_BYTES - self.last.len());
        self.last.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
