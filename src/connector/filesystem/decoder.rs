//! Decodes frames of files: the format gives the columns that are in the file, the path gives the others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};

use super::{FileTable, listing, path};
use crate::changelog::ChangelogBatch;
use crate::connector::{Frame, FrameDecoder};
use crate::error::{Error, Result};
use crate::format::{ColumnBuilder, FrameOrigin, RecordDecoder, TextParser};
use crate::schema::{DataType, TypeRoot};

/// Where a column comes from.
#[derive(Debug, Clone)]
pub(super) enum ColumnOrigin {
    /// Among the columns that the format decodes.
    File(usize),
    /// Among the partition keys.
    Partition(usize),
    /// A property of the file.
    Metadata(FileProperty),
}

/// A property of a file that a metadata column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileProperty {
    Path,
    Name,
    Size,
    ModificationTime,
}

impl FileProperty {
    /// Each property with its key and type.
    pub(super) fn all() -> [(&'static str, FileProperty, DataType); 4] {
        [
            ("file.path", FileProperty::Path, TypeRoot::STRING.not_null()),
            ("file.name", FileProperty::Name, TypeRoot::STRING.not_null()),
            ("file.size", FileProperty::Size, TypeRoot::BigInt.not_null()),
            ("file.modification-time", FileProperty::ModificationTime, TypeRoot::TimestampLtz(3).not_null()),
        ]
    }
}

/// A column to produce.
pub(super) struct OutputColumn {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) origin: ColumnOrigin,
}

/// Decodes frames; each worker has its own.
pub(super) struct FileDecoder {
    table: Arc<FileTable>,
    records: Box<dyn RecordDecoder>,
    columns: Vec<OutputColumn>,
    schema: SchemaRef,
    parser: TextParser,
}

impl FileDecoder {
    pub(super) fn new(
        table: Arc<FileTable>,
        records: Box<dyn RecordDecoder>,
        columns: Vec<OutputColumn>,
    ) -> FileDecoder {
        let fields: Vec<_> = columns.iter().map(|column| column.data_type.to_field(&column.name)).collect();
        let parser = TextParser::new(table.zone);
        FileDecoder { table, records, columns, schema: Arc::new(Schema::new(fields)), parser }
    }

    /// Adds the columns that are the same in every row of a file.
    fn complete(&mut self, batch: ChangelogBatch, file: &str) -> Result<ChangelogBatch> {
        let is_complete = self
            .columns
            .iter()
            .enumerate()
            .all(|(at, column)| matches!(column.origin, ColumnOrigin::File(i) if i == at));
        if is_complete && self.columns.len() == batch.rows().num_columns() {
            return Ok(batch);
        }
        let count = batch.row_count();
        let keys = self.table.partition_keys.iter().map(|key| key.name.as_str());
        let partitions = path::partition_values(&self.table.root, Path::new(file), keys);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let mut builder = ColumnBuilder::new(&column.data_type);
            match &column.origin {
                ColumnOrigin::File(at) => {
                    arrays.push(Arc::clone(batch.rows().column(*at)));
                    continue;
                }
                ColumnOrigin::Partition(at) => {
                    let value =
                        partitions[*at].as_deref().filter(|value| *value != self.table.default_partition);
                    fill(&mut self.parser, &mut builder, value, count, file, &column.name)?;
                }
                ColumnOrigin::Metadata(property) => {
                    let value = property_text(*property, file)?;
                    fill(&mut self.parser, &mut builder, Some(&value), count, file, &column.name)?;
                }
            }
            arrays.push(builder.finish()?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(batch.with_rows(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?))
    }
}

impl FrameDecoder for FileDecoder {
    fn ignore_update_before(&mut self) {
        self.records.ignore_update_before();
    }

    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        let Frame::Bytes { data, origin, offset } = frame else {
            return Err(Error::internal("a frame of another source came to the decoder of files"));
        };
        let lines_before = || listing::count_lines(origin, *offset);
        let batch = self
            .records
            .decode(data, FrameOrigin { name: origin, offset: *offset, lines_before: &lines_before })?;
        if batch.row_count() == 0 {
            return Ok(Vec::new());
        }
        Ok(vec![self.complete(batch, origin)?])
    }
}

/// Appends the same value for every row.
fn fill(
    parser: &mut TextParser,
    builder: &mut ColumnBuilder,
    value: Option<&str>,
    count: usize,
    file: &str,
    column: &str,
) -> Result<()> {
    for _ in 0..count {
        match value {
            None => builder.push_null(),
            Some(value) => parser.push(value.as_bytes(), builder).map_err(|fault| {
                let reason = fault.message(value.as_bytes(), builder.data_type());
                Error::data(format!("partition column '{column}' cannot have the value '{value}': {reason}"))
                    .hint(format!("The value is part of the path '{file}'."))
            })?,
        }
    }
    Ok(())
}

fn property_text(property: FileProperty, file: &str) -> Result<String> {
    let path = PathBuf::from(file);
    let metadata = || std::fs::metadata(&path).map_err(|error| listing::unreadable(&path, error));
    Ok(match property {
        FileProperty::Path => std::path::absolute(&path)?.display().to_string(),
        FileProperty::Name => {
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
        }
        FileProperty::Size => metadata()?.len().to_string(),
        FileProperty::ModificationTime => {
            let modified = metadata()?.modified()?;
            let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            let instant = chrono::DateTime::from_timestamp(since.as_secs() as i64, since.subsec_nanos())
                .unwrap_or_default();
            instant.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
        }
    })
}
