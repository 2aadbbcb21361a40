//! The writer of rows that only come: each becomes a row of a data file.

use std::sync::Arc;

use async_trait::async_trait;

use super::data_file_writer::{DataFileWriter, RowTraits};
use super::file_names::FileNames;
use super::file_schema::WrittenColumns;
use super::iceberg_committer::discard_files;
use super::last_rows::LastRows;
use super::position_delete_writer::PositionDeleteWriter;
use super::prepared_files::{PreparedFiles, Replaced};
use super::write_settings::WriteSettings;
use crate::changelog::ChangelogBatch;
use crate::connector::iceberg::commit::{check_row_deletes, lineage_of};
use crate::connector::iceberg::manifest::TableFile;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::{CheckpointId, Committable, SinkWriter};
use crate::error::Result;

/// Appends rows.
pub(super) struct AppendWriter {
    table: IcebergTable,
    columns: WrittenColumns,
    settings: Arc<WriteSettings>,
    names: Arc<FileNames>,
    writer: DataFileWriter,
    /// If of rows with one key only the last stays.
    last: Option<LastRows>,
    /// Whether it was seen that the table's format has deletes.
    takes_deletes: bool,
    lineage: String,
    replaced: Replaced,
}

impl AppendWriter {
    /// Opens a writer of a sink. With a key, only the last row of each stays of what is written before a checkpoint.
    ///
    /// # Errors
    /// The table cannot be written as its properties ask, or the columns do not fit it.
    pub(super) fn new(
        table: IcebergTable,
        columns: WrittenColumns,
        settings: WriteSettings,
        (sink_id, number): (&str, usize),
        unique_key: &[usize],
        replaced: Replaced,
    ) -> Result<AppendWriter> {
        let settings = Arc::new(settings);
        let names = Arc::new(FileNames::new(sink_id, number));
        let writer = DataFileWriter::new(
            &table,
            &columns,
            Arc::clone(&settings),
            Arc::clone(&names),
            RowTraits::default(),
        )?;
        let last = match unique_key {
            [] => None,
            key => Some(LastRows::new(columns.rows(), key)?),
        };
        let lineage = lineage_of(sink_id);
        Ok(AppendWriter {
            table,
            columns,
            settings,
            names,
            writer,
            last,
            takes_deletes: false,
            lineage,
            replaced,
        })
    }

    /// Writes deletes of the rows in files that later ones have replaced, and adds them to the files.
    async fn write_deletes(&mut self, files: &mut Vec<TableFile>) -> Result<()> {
        let Some(last) = self.last.as_mut().filter(|last| last.has_replaced()) else { return Ok(()) };
        let deleted = last.take_replaced(self.columns.rows(), files)?;
        let (settings, names) = (Arc::clone(&self.settings), Arc::clone(&self.names));
        PositionDeleteWriter::new(&self.table, settings, names)?.write(deleted, files).await
    }
}

#[async_trait]
impl SinkWriter for AppendWriter {
    /// Writes every row whatever its kind: others than inserts come only where that is what was asked for.
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        let rows = batch.rows();
        let Some(last) = &mut self.last else { return self.writer.write(rows).await };
        let places = self.writer.write_placed(rows).await?;
        last.note(rows, &places)?;
        // That a table's format has no deletes is said before all rows are written.
        if last.has_replaced() && !self.takes_deletes {
            check_row_deletes(self.table.metadata(), self.table.ident())?;
            self.takes_deletes = true;
        }
        Ok(())
    }

    async fn prepare_commit(&mut self, checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        let mut files = self.writer.finish().await?;
        if let Err(error) = self.write_deletes(&mut files).await {
            discard_files(&self.table, &files).await;
            return Err(error);
        }
        if files.is_empty() && self.replaced != Replaced::Everything {
            return Ok(Vec::new());
        }
        let table = self.table.metadata().uuid();
        let prepared = PreparedFiles::new(&self.lineage, table, checkpoint, self.replaced, &files)?;
        if self.replaced == Replaced::Everything {
            // What comes later is added.
            self.replaced = Replaced::Nothing;
        }
        Ok(vec![prepared.to_committable()?])
    }

    fn state_bytes(&self) -> usize {
        self.last.as_ref().map_or(0, LastRows::bytes)
    }
}
