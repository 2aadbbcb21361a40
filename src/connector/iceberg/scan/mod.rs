//! What a query reads of a table: the files of a snapshot, without those that a condition rules out, with deletes applied and
//! columns found by field id.

#![expect(dead_code, unused_imports, reason = "the sink and metadata tables use it in the next step")]

mod delete_index;
mod key_reader;
mod live_files;
mod manifests;
mod read_error;
mod weighted_cache;

use std::sync::Arc;

pub(super) use delete_index::{DeleteFile, EqualityGroup, FileDeletes};
pub(super) use key_reader::{KeyReadOptions, KeyRows, read_keys};
pub(super) use live_files::{LiveFile, live_files, snapshot_to_read};

use super::table::IcebergTable;
use crate::connector::{DynamicTableSource, FactoryContext};
use crate::error::{Error, Result};

/// Makes the source of a table.
///
/// # Errors
/// The options do not fit.
pub(super) fn create_source(
    _table: &Arc<IcebergTable>,
    ctx: &FactoryContext<'_>,
) -> Result<Arc<dyn DynamicTableSource>> {
    Err(Error::unsupported(format!("reading Iceberg table '{}' is not supported yet", ctx.table)))
}
