//! The sink: rows become data files and position deletes, a checkpoint becomes a snapshot.

mod append_writer;
mod column_conversion;
mod data_file_writer;
mod file_metrics;
mod file_names;
mod file_record;
mod file_schema;
mod iceberg_committer;
mod iceberg_sink;
mod last_rows;
mod metrics_config;
mod orphan_files;
mod parquet_file;
mod parquet_format;
mod parquet_settings;
mod partition_splitter;
mod position_delete_writer;
mod prepared_files;
mod upsert;
mod write_options;
mod write_settings;

#[cfg(test)]
mod sink_tests;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use iceberg_sink::IcebergSink;
pub(super) use write_options::WRITE_OPTIONS;

use super::table::IcebergTable;
use crate::connector::{DynamicTableSink, FactoryContext};
use crate::error::Result;

/// Makes the sink of a table.
///
/// # Errors
/// The options or the table's format do not fit.
pub(super) fn create_sink(
    table: &Arc<IcebergTable>,
    ctx: &FactoryContext<'_>,
) -> Result<Arc<dyn DynamicTableSink>> {
    Ok(Arc::new(IcebergSink::new(table, ctx)?))
}
