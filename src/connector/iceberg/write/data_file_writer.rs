//! Rows to data files: spread over the table's partitions, encoded as Parquet, ended at the target size.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::file_names::FileNames;
use super::write_settings::WriteSettings;
use crate::connector::iceberg::commit::TableFile;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::Result;

/// What the rows of one writer have in common beyond the table's settings.
#[derive(Debug, Clone, Default)]
pub(super) struct RowTraits {
    /// Columns, by name, that get a bloom filter unless a property says otherwise: the key of an upsert.
    pub(super) bloom_columns: Vec<String>,
    /// The table's sort order that the rows of every partition arrive in, if they do.
    pub(super) sort_order_id: Option<i32>,
}

/// Where a row was written: the number of its file among those that `finish` returns, and its position there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowPlace {
    /// The index of the file in the answer of `finish`.
    pub(super) file: u32,
    /// The position in the file, from 0.
    pub(super) position: u32,
}

/// Writes data files of one table as it was loaded.
pub(super) struct DataFileWriter {}

impl DataFileWriter {
    /// Makes a writer of rows with the given columns, in Flink's Arrow types, found in the table by their names.
    ///
    /// # Errors
    /// A column is not in the table or has another type there, or a required column of the table is missing.
    pub(super) fn new(
        _table: &IcebergTable,
        _columns: SchemaRef,
        _settings: Arc<WriteSettings>,
        _names: Arc<FileNames>,
        _traits: RowTraits,
    ) -> Result<DataFileWriter> {
        Ok(DataFileWriter {})
    }

    /// Writes rows. Those of one partition stay in their order.
    ///
    /// # Errors
    /// A value does not fit its column, or a file cannot be written.
    pub(super) async fn write(&mut self, _rows: RecordBatch) -> Result<()> {
        Ok(())
    }

    /// Writes rows, and says of each where it went, in the order of the rows.
    ///
    /// # Errors
    /// As `write`.
    pub(super) async fn write_placed(&mut self, _rows: RecordBatch) -> Result<Vec<RowPlace>> {
        Ok(Vec::new())
    }

    /// Ends all files and returns them, durable; the next row begins new ones, numbered from 0.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) async fn finish(&mut self) -> Result<Vec<TableFile>> {
        Ok(Vec::new())
    }

    /// Returns how many bytes rows and files hold that are not written yet.
    pub(super) fn memory_bytes(&self) -> usize {
        0
    }
}
