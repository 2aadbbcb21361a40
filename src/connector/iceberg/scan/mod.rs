//! What a query reads of a table: the files of a snapshot, without those that a condition rules out, with deletes applied and
//! columns found by field id.

mod appended_files;
mod columns;
mod deletes;
mod file_groups;
mod iceberg_file_source;
mod iceberg_source;
mod key_reader;
mod live_files;
mod parquet_files;
mod provider;
mod prune;
mod pushdown;
mod scan_file;
mod scan_target;
mod snapshot_reader;
#[cfg(test)]
mod tests;
mod wanted_keys;

use std::sync::Arc;

pub(super) use deletes::FileDeletes;
pub(super) use key_reader::read_keys;
pub(super) use live_files::{LiveFile, live_files};
pub(super) use scan_target::ScanTarget;

use iceberg_source::IcebergSource;

use super::read_options::ReadOptions;
use super::read_target::ReadTarget;
use super::table::IcebergTable;
use crate::connector::{DynamicTableSource, FactoryContext};
use crate::error::Result;

/// Makes the source of a table.
///
/// # Errors
/// The options do not fit.
pub(super) fn create_source(
    table: &Arc<IcebergTable>,
    ctx: &FactoryContext<'_>,
) -> Result<Arc<dyn DynamicTableSource>> {
    let declared =
        ctx.schema.physical_columns().map(|column| column.data_type.to_field(&column.name)).collect();
    let options = ReadOptions::parse(ctx)?;
    let rows = ReadTarget::choose(&options, table.metadata(), ctx.table)?;
    let target = ScanTarget::new(table, rows);
    Ok(Arc::new(IcebergSource::new(Arc::clone(table), target, declared, &options)?))
}
