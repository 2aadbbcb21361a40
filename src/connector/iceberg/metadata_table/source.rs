//! Reads a metadata table: one frame with all its rows, in both modes. It ends by itself in streaming mode, too.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;

use super::super::read_options::{ReadOptions, not_continuously};
use super::super::read_target::ReadTarget;
use super::cell::columns;
use super::table_reader::TableReader;
use super::{
    MetadataTable, MetadataTableType, entries, files, history, manifests, metadata_log_entries, partitions,
    refs, schema_of, snapshots,
};
use crate::changelog::ChangelogBatch;
use crate::connector::rows_decoder::RowsDecoder;
use crate::connector::{
    Boundedness, DynamicTableSource, FactoryContext, Frame, FrameDecoder, Projection, SourceEvent,
    SourcePosition, SourceReader,
};
use crate::error::{Error, FlinkClass, Result};

/// The only split, and its position behind the rows.
const SPLIT: &str = "0";
const END: &str = "end";

/// Makes the source of a metadata table.
pub(super) fn create_source(
    table: &Arc<MetadataTable>,
    ctx: &FactoryContext<'_>,
) -> Result<Arc<dyn DynamicTableSource>> {
    let options = ReadOptions::parse(ctx)?;
    if options.is_streaming {
        return Err(not_continuously(ctx.table));
    }
    if options.is_range() {
        return Err(Error::unsupported(format!(
            "metadata table '{}' has no rows of a range of snapshots",
            ctx.table
        ))
        .hint("Choose one snapshot with 'snapshot-id'."));
    }
    if table.kind.is_of_all_snapshots()
        && options != (ReadOptions { limit: options.limit, ..ReadOptions::default() })
    {
        return Err(Error::unsupported(format!("Cannot select snapshot in table: {}", table.kind))
            .class(FlinkClass::UNSUPPORTED_OPERATION)
            .hint("Its rows are about all snapshots."));
    }
    let snapshot = match ReadTarget::choose(&options, table.table.metadata(), ctx.table)? {
        ReadTarget::Snapshot(id) => Some(id),
        ReadTarget::Nothing | ReadTarget::Appends(_) => None,
    };
    let (table, name) = (Arc::clone(table), ctx.table.to_owned());
    Ok(Arc::new(MetadataSource(Arc::new(Rows { table, name, snapshot, limit: options.limit }))))
}

/// The source of a metadata table.
struct MetadataSource(Arc<Rows>);

/// Whose rows are read.
struct Rows {
    table: Arc<MetadataTable>,
    name: String,
    /// The snapshot that is read about; None if the table has none.
    snapshot: Option<i64>,
    limit: Option<usize>,
}

impl fmt::Debug for MetadataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MetadataSource").field(&self.0.name).finish()
    }
}

impl DynamicTableSource for MetadataSource {
    fn summary(&self) -> String {
        format!("IcebergMetadata({})", self.0.table.kind)
    }

    fn boundedness(&self) -> Boundedness {
        Boundedness::Bounded
    }

    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        let is_read = start.is_some_and(|position| position.get(SPLIT).is_some_and(|at| at == END));
        let columns = projection.physical.clone();
        Ok(Box::new(MetadataTableReader { rows: Arc::clone(&self.0), columns, is_read }))
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(RowsDecoder))
    }
}

/// Reads the rows at once: a position is before or behind all of them, so that a restored job never sees a part of a table that
/// has changed meanwhile.
struct MetadataTableReader {
    rows: Arc<Rows>,
    columns: Vec<usize>,
    is_read: bool,
}

#[async_trait]
impl SourceReader for MetadataTableReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        if self.is_read {
            return Ok(SourceEvent::EndOfInput);
        }
        let rows = self.rows.read().await?.project(&self.columns)?;
        self.is_read = true;
        Ok(SourceEvent::Frame(Frame::Rows(ChangelogBatch::inserts(rows))))
    }

    fn position(&self) -> SourcePosition {
        if self.is_read {
            SourcePosition::from([(SPLIT.to_owned(), END.to_owned())])
        } else {
            SourcePosition::new()
        }
    }
}

impl Rows {
    /// Makes the rows.
    async fn read(&self) -> Result<RecordBatch> {
        let table = &self.table.table;
        let reader = TableReader::new(table, &self.name);
        let (metadata, kind, snapshot) = (table.metadata(), self.table.kind, self.snapshot);
        let mut rows = match kind {
            MetadataTableType::Snapshots => snapshots::rows(metadata),
            MetadataTableType::History => history::rows(metadata),
            MetadataTableType::MetadataLogEntries => metadata_log_entries::rows(table.table()),
            MetadataTableType::Refs => refs::rows(metadata)?,
            MetadataTableType::Manifests => manifests::rows(&reader, snapshot).await?,
            MetadataTableType::AllManifests => manifests::all_rows(&reader).await?,
            MetadataTableType::Partitions => partitions::rows(&reader, snapshot).await?,
            MetadataTableType::Entries | MetadataTableType::AllEntries => {
                entries::rows(&reader, kind, snapshot).await?
            }
            _ => files::rows(&reader, kind, snapshot).await?,
        };
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        columns(&schema_of(&self.table.table, kind)?, rows)
    }
}
