//! What a query reads of a table: the files of a snapshot, without those that a condition rules out, with deletes applied and
//! columns found by field id.

mod appended_files;
mod bounds;
mod column_adapter;
mod condition;
mod conversion;
mod convert_expr;
mod delete_index;
mod equality_deletes;
mod file_columns;
mod file_groups;
mod iceberg_file_source;
mod iceberg_source;
mod key_reader;
mod listed_manifests;
mod live_files;
mod manifest_header;
mod manifests;
mod parquet_files;
mod partition_transform;
mod position_deletes;
mod provider;
mod pruning;
mod pushdown;
mod read_column;
mod read_error;
mod scan_file;
mod scan_target;
mod snapshot_reader;
mod statistics;
#[cfg(test)]
mod tests;
mod wanted_keys;
mod weighted_cache;

use std::sync::Arc;

pub(super) use delete_index::FileDeletes;
pub(super) use key_reader::read_keys;
pub(super) use listed_manifests::{manifested_files, snapshot_manifests};
pub(super) use live_files::{LiveFile, live_files};
pub(super) use manifests::ManifestedFile;
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
