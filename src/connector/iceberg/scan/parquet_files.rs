//! Parquet files of a table, for DataFusion's reader and our own: footers are kept for the next query, small files are read at once,
//! and an error names the file.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};

use crate::connector::iceberg::manifest::{FileRole, ReadContext, WeightedCache};
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, ErrorKind, Result};

/// What all footers that are kept may take in memory.
const FOOTER_CACHE_BYTES: usize = 32 << 20;

/// How much of a file's end is read for its footer. A file that is not larger is read whole, once.
const FOOTER_READ_BYTES: u64 = 64 << 10;

static FOOTERS: LazyLock<WeightedCache<ParquetMetaData>> =
    LazyLock::new(|| WeightedCache::new(FOOTER_CACHE_BYTES));

/// Opens Parquet files.
#[derive(Debug, Clone)]
pub(super) struct ParquetFiles {
    files: FileStore,
    context: ReadContext,
}

impl ParquetFiles {
    /// Reads files of a table's store.
    pub(super) fn new(files: FileStore, context: ReadContext) -> ParquetFiles {
        ParquetFiles { files, context }
    }

    /// Returns what errors say of the read.
    pub(super) fn context(&self) -> &ReadContext {
        &self.context
    }

    /// Returns where the files are.
    pub(super) fn files(&self) -> &FileStore {
        &self.files
    }

    /// Opens a file of a known size; reads nothing yet.
    ///
    /// # Errors
    /// The location is of no store that we know.
    pub(super) fn open(&self, role: FileRole, location: &str, size: u64) -> Result<ParquetFile> {
        let (store, path) = self.files.resolve(location)?;
        let context = self.context.clone();
        Ok(ParquetFile {
            store,
            path,
            location: location.into(),
            size,
            role,
            context,
            whole: None,
            metrics: None,
        })
    }

    /// Names the file in an error of reading it. Our own errors are about something else, or name it already.
    pub(super) fn error_of(&self, role: FileRole, location: &str, error: DataFusionError) -> Error {
        if let DataFusionError::ParquetError(inner) = error {
            return match *inner {
                ParquetError::External(cause) => match cause.downcast::<Error>() {
                    Ok(own) => *own,
                    Err(cause) => Error::below(cause.as_ref())
                        .unwrap_or_else(|| self.context.damaged(role, location, cause)),
                },
                other => self.context.damaged(role, location, other),
            };
        }
        if let Some(own) = Error::below(&error) {
            return own;
        }
        let is_foreign = matches!(&error, DataFusionError::ArrowError(..) | DataFusionError::Execution(_));
        let error = Error::from(error);
        match error.kind() {
            ErrorKind::Internal => self.context.damaged(role, location, error),
            ErrorKind::Data if is_foreign => self.context.damaged(role, location, error),
            _ => error,
        }
    }
}

/// A Parquet file.
pub(super) struct ParquetFile {
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: Arc<str>,
    size: u64,
    role: FileRole,
    context: ReadContext,
    /// All of it, once a small file was read.
    whole: Option<Bytes>,
    metrics: Option<ParquetFileMetrics>,
}

impl ParquetFile {
    /// Returns the footer.
    pub(super) async fn footer(&mut self) -> ParquetResult<Arc<ParquetMetaData>> {
        let size = self.size;
        // A table that was dropped and made anew may have another file under the same name.
        let key = format!("{} of {size} bytes", self.location);
        if let Some(known) = FOOTERS.get(&key) {
            return Ok(known);
        }
        let hint = usize::try_from(FOOTER_READ_BYTES.min(size)).ok();
        let footer =
            ParquetMetaDataReader::new().with_prefetch_hint(hint).load_and_finish(&mut *self, size).await?;
        check_places(&footer, size)?;
        let footer = Arc::new(without_arrow_schema(footer));
        FOOTERS.insert(&key, Arc::clone(&footer), footer.memory_size());
        Ok(footer)
    }

    async fn read(&mut self, ranges: Vec<Range<u64>>) -> ParquetResult<Vec<Bytes>> {
        if let Some(metrics) = &self.metrics {
            let total: u64 = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
            metrics.bytes_scanned.add(usize::try_from(total).unwrap_or(usize::MAX));
        }
        if self.size <= FOOTER_READ_BYTES {
            let whole = self.read_whole().await?;
            return ranges.iter().map(|range| self.slice(&whole, range)).collect();
        }
        let read = match ranges.as_slice() {
            [range] => self.store.get_range(&self.path, range.clone()).await.map(|bytes| vec![bytes]),
            ranges => self.store.get_ranges(&self.path, ranges).await,
        };
        read.map_err(|error| self.not_read(error))
    }

    async fn read_whole(&mut self) -> ParquetResult<Bytes> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let read = async { self.store.get(&self.path).await?.bytes().await };
        let whole = read.await.map_err(|error| self.not_read(error))?;
        self.whole = Some(whole.clone());
        Ok(whole)
    }

    fn slice(&self, whole: &Bytes, range: &Range<u64>) -> ParquetResult<Bytes> {
        let (start, end) = (usize::try_from(range.start).ok(), usize::try_from(range.end).ok());
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= whole.len() => Ok(whole.slice(start..end)),
            _ => Err(ParquetError::EOF(format!(
                "bytes {} to {} of a file of {} bytes",
                range.start,
                range.end,
                whole.len()
            ))),
        }
    }

    fn not_read(&self, error: object_store::Error) -> ParquetError {
        ParquetError::External(Box::new(self.context.not_read(self.role, &self.location, error)))
    }
}

/// Checks that all columns lie within the file: the reader takes the footer's word for it, and panics where it is wrong.
fn check_places(footer: &ParquetMetaData, size: u64) -> ParquetResult<()> {
    let is_within = |start: i64, length: i64| {
        let end = u64::try_from(start).ok().zip(u64::try_from(length).ok());
        end.and_then(|(start, length)| start.checked_add(length)).is_some_and(|end| end <= size)
    };
    for column in footer.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        if !is_within(start, column.compressed_size()) || !is_within(column.data_page_offset(), 0) {
            let path = column.column_path();
            return Err(ParquetError::General(format!("column {path} lies outside of the file")));
        }
    }
    Ok(())
}

/// Drops the Arrow schema that some writers leave in a footer: the same Parquet types then give the same Arrow types, whoever wrote
/// them.
fn without_arrow_schema(footer: ParquetMetaData) -> ParquetMetaData {
    let file = footer.file_metadata();
    let Some(entries) = file.key_value_metadata() else { return footer };
    if entries.iter().all(|entry| entry.key != ARROW_SCHEMA_META_KEY) {
        return footer;
    }
    let kept: Vec<_> = entries.iter().filter(|entry| entry.key != ARROW_SCHEMA_META_KEY).cloned().collect();
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        (!kept.is_empty()).then_some(kept),
        file.schema_descr_ptr(),
        file.column_orders().cloned(),
    );
    let row_groups = footer.into_builder().take_row_groups();
    ParquetMetaData::new(file, row_groups)
}

impl AsyncFileReader for ParquetFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        async move {
            let mut read = self.read(vec![range]).await?;
            read.pop().ok_or_else(|| ParquetError::General("nothing was read".to_owned()))
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.read(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        self.footer().boxed()
    }
}

/// Opens data files for DataFusion's reader.
pub(super) struct DataFileReaders {
    pub(super) files: ParquetFiles,
    pub(super) location: Arc<str>,
}

impl fmt::Debug for DataFileReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataFileReaders").field("location", &self.location).finish()
    }
}

impl ParquetFileReaderFactory for DataFileReaders {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> DataFusionResult<Box<dyn AsyncFileReader + Send>> {
        let mut reader = self.files.open(FileRole::DataFile, &self.location, file.object_meta.size)?;
        reader.metrics = Some(ParquetFileMetrics::new(partition, &self.location, metrics));
        Ok(Box::new(reader))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_that_points_out_of_its_file_is_damaged() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/iceberg/fixtures/flink/overwritten/data");
        let files = walkdir(std::path::Path::new(folder));
        let bytes = Bytes::from(std::fs::read(files.first().unwrap()).unwrap());
        let size = bytes.len() as u64;
        let footer = ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
        check_places(&footer, size).unwrap();
        let error = check_places(&footer, size / 8).unwrap_err();
        assert!(error.to_string().contains("lies outside of the file"), "{error}");
    }

    fn walkdir(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.flat_map(|path| if path.is_dir() { walkdir(&path) } else { vec![path] });
        files.filter(|path| path.extension().is_some_and(|of| of == "parquet")).collect()
    }
}
