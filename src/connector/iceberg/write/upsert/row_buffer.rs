//! Rows by number, in the order in which they came; what is too much for memory goes to temporary files.
//!
//! A file is unlinked as soon as it is open, so that nothing stays behind, however the process ends.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Seek, Write};
use std::path::PathBuf;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::connector::iceberg::row_bytes::{piece_rows, row_bytes};
use crate::error::{Error, ErrorKind, Result};

/// Rows by number.
#[derive(Debug)]
pub(super) struct RowBuffer {
    schema: SchemaRef,
    runs: Vec<SpilledRows>,
    memory: MemoryRows,
}

/// Rows that follow each other by number.
#[derive(Debug, Default, Clone)]
pub(super) struct MemoryRows {
    /// The number of the first row.
    first: u32,
    batches: Vec<RecordBatch>,
    /// Where each batch begins, counted from `first`.
    starts: Vec<u32>,
    row_count: u32,
    bytes: usize,
}

/// Rows in a file that has no name any more.
#[derive(Debug)]
struct SpilledRows {
    file: File,
    first: u32,
    row_count: u32,
}

/// A part of the rows that fits into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    run: Option<usize>,
    first: u32,
    row_count: u32,
}

impl Part {
    /// Returns whether a row is in this part.
    pub(super) fn holds(&self, number: u32) -> bool {
        number >= self.first && number - self.first < self.row_count
    }
}

impl RowBuffer {
    /// Makes an empty buffer.
    pub(super) fn new(schema: SchemaRef) -> RowBuffer {
        RowBuffer { schema, runs: Vec::new(), memory: MemoryRows::default() }
    }

    /// Returns the columns.
    pub(super) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// Adds rows and returns the number of the first.
    ///
    /// # Errors
    /// There are 4 billion rows.
    pub(super) fn push(&mut self, rows: RecordBatch) -> Result<u32> {
        self.memory.push(rows)
    }

    /// Returns how many rows there are.
    pub(super) fn row_count(&self) -> usize {
        (self.memory.first + self.memory.row_count) as usize
    }

    /// Returns how many rows are in files.
    pub(super) fn spilled_count(&self) -> usize {
        self.memory.first as usize
    }

    /// Returns how many bytes the rows in memory take.
    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Returns the parts, in the order of their rows.
    pub(super) fn parts(&self) -> Vec<Part> {
        let runs = self.runs.iter().enumerate();
        let runs = runs.map(|(at, run)| Part { run: Some(at), first: run.first, row_count: run.row_count });
        let memory = Part { run: None, first: self.memory.first, row_count: self.memory.row_count };
        runs.chain(Some(memory)).filter(|part| part.row_count > 0).collect()
    }

    /// Returns the rows of a part.
    ///
    /// # Errors
    /// The part cannot be read from its file.
    pub(super) async fn part(&self, part: Part) -> Result<Cow<'_, MemoryRows>> {
        match part.run {
            None => Ok(Cow::Borrowed(&self.memory)),
            Some(at) => Ok(Cow::Owned(self.runs[at].load(&self.schema).await?)),
        }
    }

    /// Keeps only these rows in memory, given in ascending order; they get the numbers from the first one in memory on.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn retain_in_memory(&mut self, numbers: &[u32]) -> Result<()> {
        let mut kept = MemoryRows { first: self.memory.first, ..MemoryRows::default() };
        for piece in self.memory.pieces(numbers) {
            kept.push(piece?)?;
        }
        self.memory = kept;
        Ok(())
    }

    /// Writes the rows in memory to a file. Their numbers stay.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) async fn spill(&mut self) -> Result<()> {
        if self.memory.row_count > 0 {
            let memory = std::mem::take(&mut self.memory);
            let next = memory.first + memory.row_count;
            self.runs.push(SpilledRows::write(&self.schema, memory).await?);
            self.memory.first = next;
        }
        Ok(())
    }

    /// Takes all rows that are in files out of the buffer, which then begins with the number 0 again. What is in memory must have been
    /// spilled.
    pub(super) fn take_spilled(&mut self) -> RowBuffer {
        let runs = std::mem::take(&mut self.runs);
        let first = std::mem::take(&mut self.memory.first);
        let memory = MemoryRows { first, ..MemoryRows::default() };
        RowBuffer { schema: SchemaRef::clone(&self.schema), runs, memory }
    }
}

impl MemoryRows {
    fn push(&mut self, rows: RecordBatch) -> Result<u32> {
        let number = self.first + self.row_count;
        let count = u32::try_from(rows.num_rows()).ok();
        // Two numbers are left for those who note what is not a row.
        let end = count.and_then(|count| number.checked_add(count)).filter(|end| *end < u32::MAX - 2);
        let end = end.ok_or_else(|| {
            Error::unsupported("more than 4 billion rows of one writer between two checkpoints")
                .hint("Let the job make checkpoints more often.")
        })?;
        self.bytes += row_bytes(&rows);
        self.starts.push(self.row_count);
        self.row_count = end - self.first;
        self.batches.push(rows);
        Ok(number)
    }

    /// Returns rows in the order of their numbers here, in pieces that are made one after the other.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn pieces<'a>(&'a self, numbers: &'a [u32]) -> impl Iterator<Item = Result<RecordBatch>> + 'a {
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        let place = |number: &u32| {
            let at = number - self.first;
            let batch = self.starts.partition_point(|start| *start <= at) - 1;
            (batch, (at - self.starts[batch]) as usize)
        };
        numbers.chunks(piece_rows(self.bytes, self.row_count as usize)).map(move |numbers| {
            let places: Vec<(usize, usize)> = numbers.iter().map(place).collect();
            Ok(interleave_record_batch(&batches, &places)?)
        })
    }
}

impl SpilledRows {
    async fn write(schema: &SchemaRef, rows: MemoryRows) -> Result<SpilledRows> {
        let schema = SchemaRef::clone(schema);
        blocking(move || {
            let file = nameless_file()?;
            let mut writer = StreamWriter::try_new(BufWriter::new(&file), &schema)?;
            for batch in &rows.batches {
                writer.write(batch)?;
            }
            writer.finish()?;
            let mut buffer = writer.into_inner()?;
            buffer.flush().map_err(|error| unspillable(&error))?;
            drop(buffer);
            Ok(SpilledRows { file, first: rows.first, row_count: rows.row_count })
        })
        .await
    }

    async fn load(&self, schema: &SchemaRef) -> Result<MemoryRows> {
        let mut file = self.file.try_clone().map_err(|error| unspillable(&error))?;
        let (first, schema) = (self.first, SchemaRef::clone(schema));
        blocking(move || {
            file.rewind().map_err(|error| unspillable(&error))?;
            let mut rows = MemoryRows { first, ..MemoryRows::default() };
            for batch in StreamReader::try_new_buffered(BufReader::new(file), None)? {
                rows.push(batch?.with_schema(SchemaRef::clone(&schema))?)?;
            }
            Ok(rows)
        })
        .await
    }
}

/// Creates a file that can be written and read as long as it is open, and by nobody else.
fn nameless_file() -> Result<File> {
    let path: PathBuf = std::env::temp_dir().join(format!("lakehead-upsert-{}", Uuid::new_v4().simple()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|error| unspillable(&error))?;
    fs::remove_file(&path).map_err(|error| unspillable(&error))?;
    Ok(file)
}

fn unspillable(error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("rows that wait for a checkpoint cannot be put into temporary files: {error}"),
    )
    .hint("Free space in the folder for temporary files, or set TMPDIR to another; more checkpoints need less of it.")
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Error::internal("spilling rows panicked").caused_by(error))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::testing::block_on;
    use arrow::array::{Int64Array, StringArray};
    use std::sync::Arc;

    fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
        let names: StringArray = ids.clone().map(|id| (id % 3 > 0).then(|| format!("n{id}"))).collect();
        let ids = Int64Array::from_iter_values(ids);
        let columns: [(&str, arrow::array::ArrayRef); 2] = [("id", Arc::new(ids)), ("name", Arc::new(names))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    fn ids(batches: &[RecordBatch]) -> Vec<i64> {
        let ids =
            |batch: &RecordBatch| batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().clone();
        batches.iter().flat_map(|batch| ids(batch).values().to_vec()).collect()
    }

    async fn read(rows: &RowBuffer, part: Part, numbers: &[u32]) -> Vec<RecordBatch> {
        rows.part(part).await.unwrap().pieces(numbers).map(Result::unwrap).collect()
    }

    #[test]
    fn rows_keep_their_numbers_in_memory_and_in_files() {
        block_on(async {
            let mut rows = RowBuffer::new(batch(0..0).schema());
            assert_eq!(rows.push(batch(0..4)).unwrap(), 0);
            assert_eq!(rows.push(batch(4..6)).unwrap(), 4);
            rows.spill().await.unwrap();
            assert_eq!(rows.push(batch(6..9)).unwrap(), 6);
            assert_eq!((rows.row_count(), rows.spilled_count()), (9, 6));
            let parts = rows.parts();
            assert_eq!(parts.len(), 2);
            assert!(parts[0].holds(5) && !parts[0].holds(6) && parts[1].holds(6) && !parts[1].holds(9));
            assert_eq!(ids(&read(&rows, parts[0], &[5, 0, 4]).await), [5, 0, 4]);
            assert_eq!(ids(&read(&rows, parts[0], &[1]).await), [1], "a file is read again");
            assert_eq!(read(&rows, parts[1], &[8]).await[0], batch(8..9));
            rows.retain_in_memory(&[7, 8]).unwrap();
            assert_eq!(ids(&read(&rows, rows.parts()[1], &[6, 7]).await), [7, 8]);
            rows.spill().await.unwrap();
            let spilled = rows.take_spilled();
            assert_eq!((rows.row_count(), spilled.row_count(), spilled.parts().len()), (0, 8, 2));
        });
    }

    #[test]
    fn bytes_are_those_of_the_rows_not_of_what_they_were_cut_from() {
        let mut rows = RowBuffer::new(batch(0..0).schema());
        rows.push(batch(0..10_000).slice(0, 10)).unwrap();
        assert!(rows.bytes() < 400, "{}", rows.bytes());
    }
}
