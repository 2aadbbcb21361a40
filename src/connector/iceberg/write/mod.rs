//! The sink: rows become data files and position deletes, a checkpoint becomes a snapshot.

mod column_conversion;
mod data_file_writer;
mod file_metrics;
mod file_names;
mod file_schema;
mod metrics_config;
mod parquet_file;
mod parquet_format;
mod parquet_settings;
mod partition_path;
mod partition_splitter;
mod partition_transform;
mod position_delete_writer;
mod upsert;
mod write_settings;

use std::sync::Arc;

use super::table::IcebergTable;
use crate::connector::{DynamicTableSink, FactoryContext};
use crate::error::{Error, Result};

/// Makes the sink of a table.
///
/// # Errors
/// The options or the table's format do not fit.
pub(super) fn create_sink(
    _table: &Arc<IcebergTable>,
    ctx: &FactoryContext<'_>,
) -> Result<Arc<dyn DynamicTableSink>> {
    Err(Error::unsupported(format!("writing Iceberg table '{}' is not supported yet", ctx.table)))
}
