//! A table as a source: what the planner asks of it before it reads.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::Expr;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::live_files::row_groups;
use super::provider::IcebergTableProvider;
use super::scan_target::ScanTarget;
use super::snapshot_reader::SnapshotReader;
use crate::connector::iceberg::read_options::ReadOptions;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::rows_decoder::RowsDecoder;
use crate::connector::{
    Boundedness, DynamicTableSource, FrameDecoder, Projection, SourcePosition, SourceReader,
};
use crate::error::{Error, Result};

/// What a snapshot counts as whose summary does not say how large it is: large.
const UNKNOWN_BYTES: u64 = 1 << 40;

/// A snapshot of a table.
#[derive(Debug)]
pub(super) struct IcebergSource {
    table: Arc<IcebergTable>,
    target: ScanTarget,
    provider: Arc<IcebergTableProvider>,
    limit: Option<usize>,
    /// Whether it is to be read continuously, which the planner refuses in batch mode; in streaming mode the options have been refused.
    is_continuous: bool,
}

impl IcebergSource {
    /// Reads the declared columns of the rows that the options choose.
    ///
    /// # Errors
    /// The Iceberg table does not have them.
    pub(super) fn new(
        table: Arc<IcebergTable>,
        target: ScanTarget,
        declared: Vec<Field>,
        options: &ReadOptions,
    ) -> Result<IcebergSource> {
        let provider = IcebergTableProvider::new(Arc::clone(&table), target.clone(), declared)?;
        let (limit, is_continuous) = (options.limit, options.is_streaming);
        let provider = Arc::new(provider.with_limit(limit));
        Ok(IcebergSource { table, target, provider, limit, is_continuous })
    }

    async fn describe(&self, filters: &[Expr]) -> Result<String> {
        let planned = self.provider.plan(filters).await?;
        let read: usize = planned.files.iter().map(|live| row_groups(&live.data)).sum();
        let of_total = planned.row_groups_total.map_or(String::new(), |total| format!(" of {total}"));
        let mut parts = vec![
            format!("files=[{} of {}]", planned.files.len(), planned.files_total),
            format!("rowGroups=[{read}{of_total}]"),
        ];
        let deletes = planned.delete_counts();
        for (name, count) in [
            ("positionDeletes", deletes.positions),
            ("deletionVectors", deletes.vectors),
            ("equalityDeletes", deletes.equality),
        ] {
            if count > 0 {
                parts.push(format!("{name}=[{count}]"));
            }
        }
        Ok(parts.join(", "))
    }
}

impl DynamicTableSource for IcebergSource {
    fn summary(&self) -> String {
        "IcebergTableSource".to_owned()
    }

    fn boundedness(&self) -> Boundedness {
        if self.is_continuous { Boundedness::Unbounded } else { Boundedness::Bounded }
    }

    fn estimated_bytes(&self) -> Option<u64> {
        Some(self.target.file_bytes(&self.table)?.unwrap_or(UNKNOWN_BYTES))
    }

    fn table_provider(&self) -> Option<Arc<dyn TableProvider>> {
        Some(Arc::clone(&self.provider) as _)
    }

    fn scan_summary<'a>(&'a self, filters: &'a [Expr]) -> BoxFuture<'a, Result<Option<String>>> {
        async move { Ok(Some(self.describe(filters).await?)) }.boxed()
    }

    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        if !projection.metadata.is_empty() {
            return Err(Error::internal("Iceberg tables have no metadata columns"));
        }
        Ok(Box::new(SnapshotReader::new(&self.provider, &projection.physical, self.limit, start)?))
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(RowsDecoder))
    }
}
