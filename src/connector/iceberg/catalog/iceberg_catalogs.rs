//! `CREATE CATALOG … WITH ('type' = 'iceberg', …)`.

use std::sync::Arc;

use async_trait::async_trait;

use crate::catalog::{Catalog, CatalogContext, CatalogFactory, TableHandle};
use crate::connector::FactoryContext;
use crate::error::{Error, Result};
use crate::options::OptionDef;

/// Makes catalogs of Iceberg tables.
#[derive(Debug)]
pub(in crate::connector) struct IcebergCatalogs;

#[async_trait]
impl CatalogFactory for IcebergCatalogs {
    fn identifier(&self) -> &'static str {
        "iceberg"
    }

    fn doc(&self) -> &'static str {
        "Holds Iceberg tables."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[]
    }

    async fn create(&self, ctx: CatalogContext) -> Result<Arc<dyn Catalog>> {
        Err(Error::unsupported(format!(
            "catalog '{}' cannot be created: type 'iceberg' is not supported yet",
            ctx.name
        )))
    }
}

/// Loads the Iceberg table behind a table of another catalog, and creates it if there is none.
///
/// # Errors
/// The options do not name a catalog, or the table cannot be loaded.
pub(in crate::connector::iceberg) async fn load_table(ctx: &FactoryContext<'_>) -> Result<TableHandle> {
    Err(Error::unsupported(format!(
        "table '{}' cannot be used: connector 'iceberg' is not supported yet",
        ctx.table
    )))
}
