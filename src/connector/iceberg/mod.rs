//! `iceberg`: tables in Iceberg's format, in catalogs of type `iceberg` and as tables of other catalogs.
//!
//! ```text
//! storage/   files by location, over object_store
//! catalog/   where tables are found and changed: CommitCatalog (Hadoop layout, SQL), and Flink's view of it
//! manifest/  manifests as they are read, and the files that they list
//! partition/ transforms, and the names and types of their values
//! commit/    the one way in which a snapshot comes to be
//! write/     data files, position deletes, the index of keys, the sink
//! scan/      what a query reads: pruned files, deletes applied, columns by field id
//! metadata_table/   `orders$snapshots` and its like
//! ```
//!
//! Of the crate `iceberg` we use metadata, manifests, transforms and types; its scan, its writers and its object IO are not used:
//! they lose rows or values in known cases (see `src/ARCHITECTURE.md`).

mod catalog;
mod commit;
mod dropped_partition_fields;
mod error;
mod field_history;
mod known_properties;
mod literal_value;
mod manifest;
mod metadata_table;
mod options;
mod partition;
mod partitions;
mod read_options;
mod read_target;
mod row_bytes;
mod scan;
mod snapshot_history;
mod snapshot_refs;
mod storage;
mod table;
mod type_mapping;
mod value_cast;
mod write;

use std::sync::Arc;

use async_trait::async_trait;

pub(super) use catalog::IcebergCatalogs;
use metadata_table::MetadataTable;
use table::IcebergTable;

use super::{DynamicTableSink, DynamicTableSource, FactoryContext, TableFactory};
use crate::catalog::TableHandle;
use crate::error::{Error, Result};
use crate::options::OptionDef;

/// The connector `iceberg`.
pub(crate) struct Iceberg;

#[async_trait]
impl TableFactory for Iceberg {
    fn identifier(&self) -> &'static str {
        "iceberg"
    }

    fn doc(&self) -> &'static str {
        "Iceberg tables: kept by continuous jobs exactly once, and queried in batch."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        options::table_options()
    }

    fn time_option(&self) -> Option<&'static str> {
        Some(read_options::TIME_OPTION)
    }

    async fn load(&self, ctx: &FactoryContext<'_>) -> Result<TableHandle> {
        catalog::load_table(ctx).await
    }

    fn create_source(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        match ctx.handle.get::<MetadataTable>() {
            Some(table) => table.create_source(ctx),
            None => scan::create_source(&loaded(ctx)?, ctx),
        }
    }

    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        match ctx.handle.get::<MetadataTable>() {
            Some(table) => Err(table.not_written(ctx.table)),
            None => write::create_sink(&loaded(ctx)?, ctx),
        }
    }
}

/// Returns the table that was loaded for the statement.
fn loaded(ctx: &FactoryContext<'_>) -> Result<Arc<IcebergTable>> {
    let missing = || Error::internal(format!("Iceberg table '{}' was not loaded before planning", ctx.table));
    ctx.handle.get::<IcebergTable>().ok_or_else(missing)
}
