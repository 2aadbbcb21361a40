//! What a query reads of a table.

use std::sync::Arc;

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
