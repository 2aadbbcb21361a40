//! `CREATE CATALOG … WITH ('type' = 'iceberg', …)`.

use std::sync::Arc;

use async_trait::async_trait;

use super::catalog_options::{catalog_options, check_names, open_catalog};
use crate::catalog::{Catalog, CatalogContext, CatalogFactory};
use crate::error::Result;
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
        catalog_options()
    }

    async fn create(&self, ctx: CatalogContext) -> Result<Arc<dyn Catalog>> {
        check_names(&ctx.name, &ctx.options)?;
        Ok(Arc::new(open_catalog(&ctx.name, &ctx.options).await?))
    }
}
