//! Rows to data files: spread over the table's partitions, encoded as Parquet, ended at the target size.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use futures::{StreamExt, stream};
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, Struct};
use tracing::warn;

use super::file_names::FileNames;
use super::file_schema::{FileSchema, WrittenColumns};
use super::parquet_file::{FinishedFile, ParquetFile};
use super::parquet_format::ParquetFormat;
use super::partition_splitter::{Partition, PartitionSplitter};
use super::write_settings::WriteSettings;
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::row_bytes::{piece_rows, row_bytes};
use crate::connector::iceberg::storage::FileStore;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};
use crate::state::ABSENT;

/// How many rows are encoded at a time: after that many it is seen whether a file has its size.
const ENCODED_ROWS: usize = 8192;

/// The same for small target sizes, of which so many rows could be a multiple.
const ENCODED_ROWS_OF_SMALL_FILES: usize = 512;
const SMALL_TARGET_BYTES: u64 = 4 << 20;

/// How many files are ended at a time.
const FINISHED_AT_A_TIME: usize = 4;

/// Limit: how many partitions are remembered from one checkpoint to the next.
const KNOWN_PARTITIONS_MAX: usize = 10_000;

/// What the rows of one writer have in common beyond the table's settings.
#[derive(Debug, Clone, Default)]
pub(super) struct RowTraits {
    /// Columns, by name, that get a bloom filter unless a property says otherwise: the key of an upsert.
    pub(super) bloom_columns: Vec<String>,
    /// How many rows a file has at most, if that is known: a bloom filter need not hold more.
    pub(super) rows_max: Option<u64>,
    /// The table's sort order that the rows of every partition arrive in, if they do.
    pub(super) sort_order_id: Option<i32>,
}

/// Where a row was written: the number of its file among those that `finish` returns, and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenRow {
    /// The index of the file in the answer of `finish`.
    pub(super) file: u32,
    /// The position in the file, from 0.
    pub(super) position: u32,
}

/// Writes data files of one table as it was loaded.
pub(super) struct DataFileWriter {
    table: IcebergTable,
    files: FileStore,
    names: Arc<FileNames>,
    settings: Arc<WriteSettings>,
    traits: RowTraits,
    schema: FileSchema,
    format: Arc<ParquetFormat>,
    spec_id: i32,
    /// None for a table without partitions.
    splitter: Option<PartitionSplitter>,
    /// While rows are split, by the splitter's number: the place of the partition among those of the batch. `ABSENT` in between.
    part_of: Vec<u32>,
    /// The open file of each partition, by the splitter's number.
    open: HashMap<u32, OpenFile>,
    /// The files since the last `finish`; None for one that is open.
    written: Vec<Option<TableFile>>,
    open_bytes_max: usize,
}

struct OpenFile {
    file: ParquetFile,
    partition: Struct,
    /// Its index in `written`.
    number: u32,
}

impl DataFileWriter {
    /// Makes a writer of the given columns of a table.
    ///
    /// # Errors
    /// A column is not in the table or has another type there, a required column of the table is missing, or the table cannot be
    /// written as its properties ask.
    pub(super) fn new(
        table: &IcebergTable,
        columns: &WrittenColumns,
        settings: Arc<WriteSettings>,
        names: Arc<FileNames>,
        traits: RowTraits,
    ) -> Result<DataFileWriter> {
        let metadata = table.metadata();
        let schema = FileSchema::new(columns, metadata.current_schema(), &table.ident().to_string())?;
        let format = ParquetFormat::new(
            schema.schema(),
            Arc::clone(schema.arrow()),
            metadata.default_sort_order(),
            &settings.parquet,
            &settings.metrics,
            &traits.bloom_columns,
            traits.rows_max,
        )?;
        let spec = metadata.default_partition_spec();
        let splitter = match spec.fields().is_empty() {
            true => None,
            false => Some(PartitionSplitter::new(spec, schema.schema())?),
        };
        let open_bytes_max = settings.open_bytes_max;
        Ok(DataFileWriter {
            files: table.files().clone(),
            table: table.clone(),
            names,
            settings,
            traits,
            schema,
            format: Arc::new(format),
            spec_id: spec.spec_id(),
            splitter,
            part_of: Vec::new(),
            open: HashMap::new(),
            written: Vec::new(),
            open_bytes_max,
        })
    }

    /// Writes rows. Those of one partition stay in their order.
    ///
    /// # Errors
    /// A value does not fit its column, or a file cannot be written.
    pub(super) async fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.write_to(rows, None).await
    }

    /// Writes rows, and says of each where it went, in the order of the rows.
    ///
    /// # Errors
    /// As `write`.
    pub(super) async fn write_placed(&mut self, rows: &RecordBatch) -> Result<Vec<WrittenRow>> {
        let mut places = vec![WrittenRow { file: 0, position: 0 }; rows.num_rows()];
        self.write_to(rows, Some(&mut places)).await?;
        Ok(places)
    }

    async fn write_to(&mut self, rows: &RecordBatch, mut places: Option<&mut Vec<WrittenRow>>) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let rows = self.schema.convert(rows)?;
        for (partition, chosen) in self.split(&rows)? {
            let part = match &chosen {
                Some(chosen) => take_record_batch(&rows, chosen)?,
                None => rows.clone(),
            };
            let step = self.encoded_rows().min(piece_rows(row_bytes(&part), part.num_rows()));
            for start in (0..part.num_rows()).step_by(step) {
                let count = step.min(part.num_rows() - start);
                let (file, first) = self.write_part(partition, part.slice(start, count)).await?;
                let Some(places) = places.as_mut() else { continue };
                for at in 0..count {
                    let row = chosen.as_ref().map_or(start + at, |chosen| chosen.value(start + at) as usize);
                    places[row] = WrittenRow { file, position: first + at as u32 };
                }
            }
        }
        self.bound_memory().await
    }

    /// Ends all files and returns them, durable; the next row begins new ones, numbered from 0.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) async fn finish(&mut self) -> Result<Vec<TableFile>> {
        let open: Vec<OpenFile> = self.open.drain().map(|(_, file)| file).collect();
        let finished = open
            .into_iter()
            .map(|open| async move { (open.number, open.partition, open.file.finish().await) });
        let finished: Vec<_> = stream::iter(finished).buffer_unordered(FINISHED_AT_A_TIME).collect().await;
        let mut failure = None;
        for (number, partition, file) in finished {
            match file.and_then(|file| self.entry(file, partition)) {
                Ok(entry) => self.written[number as usize] = Some(entry),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if let Some(splitter) =
            self.splitter.as_mut().filter(|of| of.partition_count() > KNOWN_PARTITIONS_MAX)
        {
            *splitter =
                PartitionSplitter::new(self.table.metadata().default_partition_spec(), self.schema.schema())?;
        }
        Ok(std::mem::take(&mut self.written).into_iter().flatten().collect())
    }

    /// Returns how many bytes rows and files hold that are not written yet.
    pub(super) fn memory_bytes(&self) -> usize {
        self.open.values().map(|open| open.file.memory_bytes()).sum()
    }

    fn encoded_rows(&self) -> usize {
        if self.settings.target_file_size < SMALL_TARGET_BYTES {
            ENCODED_ROWS_OF_SMALL_FILES
        } else {
            ENCODED_ROWS
        }
    }

    /// Returns the rows of each partition; None for all of them.
    fn split(&mut self, rows: &RecordBatch) -> Result<Vec<(u32, Option<UInt32Array>)>> {
        let Some(splitter) = &mut self.splitter else { return Ok(vec![(0, None)]) };
        let numbers = splitter.split(rows)?;
        let first = numbers.first().copied().unwrap_or_default();
        if numbers.iter().all(|number| *number == first) {
            return Ok(vec![(first, None)]);
        }
        let mut parts: Vec<(u32, Vec<u32>)> = Vec::new();
        // Numbers have no gaps, so the part of each is found by it.
        let part_count = numbers.iter().max().map_or(0, |max| *max as usize + 1);
        self.part_of.resize(self.part_of.len().max(part_count), ABSENT);
        for (row, number) in numbers.iter().enumerate() {
            let part = &mut self.part_of[*number as usize];
            if *part == ABSENT {
                *part = parts.len() as u32;
                parts.push((*number, Vec::new()));
            }
            parts[*part as usize].1.push(row as u32);
        }
        parts.iter().for_each(|(number, _)| self.part_of[*number as usize] = ABSENT);
        Ok(parts.into_iter().map(|(number, rows)| (number, Some(UInt32Array::from(rows)))).collect())
    }

    /// Writes rows of one partition, and returns their file's number and the position of the first of them.
    async fn write_part(&mut self, partition: u32, rows: RecordBatch) -> Result<(u32, u32)> {
        let mut open = match self.open.remove(&partition) {
            Some(open) => open,
            None => self.create(partition)?,
        };
        let first = u32::try_from(open.file.row_count())
            .map_err(|_| Error::internal("a data file has more than 4 billion rows"))?;
        let number = open.number;
        open.file.write(rows).await?;
        // Limit: positions are kept in 32 bits.
        let is_full = open.file.size() >= self.settings.target_file_size
            || open.file.row_count() > u64::from(u32::MAX / 2);
        if is_full {
            self.end(open).await?;
        } else {
            self.open.insert(partition, open);
        }
        Ok((number, first))
    }

    fn create(&mut self, partition: u32) -> Result<OpenFile> {
        let partition = match &self.splitter {
            Some(splitter) => splitter.partition(partition).clone(),
            None => Partition { values: Struct::empty(), path: String::new() },
        };
        let (folder, name) = (&self.settings.data_folder, self.names.next_data_file());
        let location = match partition.path.is_empty() {
            true => format!("{folder}/{name}"),
            false => format!("{folder}/{}/{name}", partition.path),
        };
        let file = ParquetFile::create(location, self.files.clone(), &self.format, self.encoded_rows());
        let number = self.written.len() as u32;
        self.written.push(None);
        Ok(OpenFile { file, partition: partition.values, number })
    }

    async fn end(&mut self, open: OpenFile) -> Result<()> {
        let finished = open.file.finish().await?;
        self.written[open.number as usize] = Some(self.entry(finished, open.partition)?);
        Ok(())
    }

    /// Ends the largest files while there is too much in memory.
    async fn bound_memory(&mut self) -> Result<()> {
        while self.open.len() > 1 && self.memory_bytes() > self.open_bytes_max {
            let largest = self.open.iter().max_by_key(|(_, open)| open.file.memory_bytes());
            let Some(open) = largest.map(|(number, _)| *number).and_then(|number| self.open.remove(&number))
            else {
                break;
            };
            self.end(open).await?;
        }
        Ok(())
    }

    /// Returns the manifest entry of a file.
    fn entry(&self, finished: FinishedFile, partition: Struct) -> Result<TableFile> {
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::Data)
            .file_path(finished.location)
            .file_format(DataFileFormat::Parquet)
            .partition(partition)
            .partition_spec_id(self.spec_id)
            .file_size_in_bytes(finished.size);
        if let Some(id) = self.traits.sort_order_id {
            file.sort_order_id(id);
        }
        finished.metrics.fill(&mut file);
        let file =
            file.build().map_err(|error| Error::internal("a data file has no entry").caused_by(error))?;
        Ok(TableFile { spec_id: self.spec_id, file })
    }
}

impl Drop for DataFileWriter {
    /// Removes files that were ended and not handed out: nobody else knows of them.
    fn drop(&mut self) {
        let written = std::mem::take(&mut self.written).into_iter().flatten();
        let locations: Vec<String> = written.map(|written| written.file.file_path().to_owned()).collect();
        if let (false, Ok(runtime)) = (locations.is_empty(), tokio::runtime::Handle::try_current()) {
            let files = self.files.clone();
            runtime.spawn(async move {
                if let Err(error) = files.delete_all(locations).await {
                    warn!(%error, "data files of a writer that has failed stay");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
