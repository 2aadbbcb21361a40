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
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::{
    Boundedness, DynamicTableSource, FrameDecoder, Projection, SourcePosition, SourceReader,
};
use crate::error::{Error, Result};

/// The entry of a snapshot's summary that says how large its files are.
const TOTAL_FILE_SIZE: &str = "total-files-size";

/// What a snapshot counts as whose summary does not say how large it is: large.
const UNKNOWN_BYTES: u64 = 1 << 40;

/// A snapshot of a table.
#[derive(Debug)]
pub(super) struct IcebergSource {
    table: Arc<IcebergTable>,
    target: ScanTarget,
    provider: Arc<IcebergTableProvider>,
}

impl IcebergSource {
    /// Reads the declared columns of a snapshot.
    ///
    /// # Errors
    /// The Iceberg table does not have them.
    pub(super) fn new(
        table: Arc<IcebergTable>,
        target: ScanTarget,
        declared: Vec<Field>,
    ) -> Result<IcebergSource> {
        let provider = IcebergTableProvider::new(Arc::clone(&table), target.clone(), declared)?;
        Ok(IcebergSource { table, target, provider: Arc::new(provider) })
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
        Boundedness::Bounded
    }

    fn estimated_bytes(&self) -> Option<u64> {
        let Ok(Some(snapshot)) = self.target.snapshot(&self.table) else { return None };
        let said = snapshot.summary().additional_properties.get(TOTAL_FILE_SIZE);
        Some(said.and_then(|size| size.parse().ok()).unwrap_or(UNKNOWN_BYTES))
    }

    fn table_provider(&self) -> Option<Arc<dyn TableProvider>> {
        Some(Arc::clone(&self.provider) as _)
    }

    fn scan_summary<'a>(&'a self, filters: &'a [Expr]) -> BoxFuture<'a, Result<Option<String>>> {
        async move { Ok(Some(self.describe(filters).await?)) }.boxed()
    }

    fn open(&self, _: &Projection, _: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        Err(not_yet())
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Err(not_yet())
    }
}

fn not_yet() -> Error {
    Error::unsupported("reading Iceberg tables in streaming mode is not supported yet")
        .hint("SET 'execution.runtime-mode' = 'batch'.")
}
