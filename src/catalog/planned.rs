//! Catalog types that are known but not built yet: their required options are checked, and then they are refused by name.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Catalog, CatalogContext, CatalogFactory};
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef};

/// A catalog type of a later version.
pub(crate) struct PlannedCatalog {
    identifier: &'static str,
    doc: &'static str,
    options: &'static [&'static dyn OptionDef],
}

const BASE_URL: ConfigOption<String> = ConfigOption::required("base-url", "The server, without a database.");
const JDBC_DATABASE: ConfigOption<String> =
    ConfigOption::required("default-database", "The database to start with.");
const PASSWORD: ConfigOption<String> = ConfigOption::required("password", "The user's password.");
const USERNAME: ConfigOption<String> = ConfigOption::required("username", "The user.");

/// Tables of a database.
pub(crate) static JDBC: PlannedCatalog = PlannedCatalog {
    identifier: "jdbc",
    doc: "Shows the tables of a PostgreSQL or MySQL server. Not supported yet.",
    options: &[&BASE_URL, &JDBC_DATABASE, &PASSWORD, &USERNAME],
};

#[async_trait]
impl CatalogFactory for PlannedCatalog {
    fn identifier(&self) -> &'static str {
        self.identifier
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        self.options
    }

    async fn create(&self, ctx: CatalogContext) -> Result<Arc<dyn Catalog>> {
        Err(Error::unsupported(format!(
            "catalog '{}' cannot be created: type '{}' is not supported yet",
            ctx.name, self.identifier
        ))
        .hint("Create its tables one by one with CREATE TABLE in the default catalog."))
    }
}
