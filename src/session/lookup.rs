//! What there is by name, for completion. A catalog that cannot be reached offers nothing: completion never fails.

use super::Session;
use crate::function::{FUNCTIONS, aggregate_names};

impl Session {
    /// Returns the names of all catalogs.
    pub fn catalog_names(&self) -> Vec<String> {
        self.catalogs.catalog_names().unwrap_or_default()
    }

    /// Returns the databases of a catalog, or of the current one.
    pub async fn database_names(&self, catalog: Option<&str>) -> Vec<String> {
        let catalog = catalog.unwrap_or(self.catalogs.current_catalog());
        self.catalogs.database_names(catalog).await.unwrap_or_default()
    }

    /// Returns the tables and views of `[[catalog.]database]`; of the current database without parts.
    pub async fn table_names(&self, database: &[String]) -> Vec<String> {
        let (catalog, database) = match database {
            [] => (self.catalogs.current_catalog().to_owned(), self.catalogs.current_database().to_owned()),
            parts => match self.catalogs.resolve_database(parts) {
                Ok(names) => names,
                Err(_) => return Vec::new(),
            },
        };
        self.catalogs.table_names(&catalog, &database).await.unwrap_or_default()
    }

    /// Returns the columns of a table or view.
    pub async fn column_names(&self, table: &[String]) -> Vec<String> {
        let Ok(identifier) = self.catalogs.resolve(table) else { return Vec::new() };
        match self.catalogs.object(&identifier).await {
            Ok(Some(found)) => found.object.columns().iter().map(|column| column.name.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the names of all functions: built-in ones in capitals, the user's in small letters.
    pub fn function_names(&self) -> Vec<String> {
        let builtin = FUNCTIONS.iter().flat_map(|function| {
            std::iter::once(function.name()).chain(function.aliases().iter().copied()).map(str::to_owned)
        });
        let user = self
            .catalogs
            .functions()
            .names(self.catalogs.current_catalog(), self.catalogs.current_database());
        builtin.chain(aggregate_names().map(str::to_owned)).chain(user).collect()
    }

    /// Returns the loaded modules.
    pub fn module_names(&self) -> Vec<String> {
        self.modules.all().into_iter().map(|(name, _)| name.to_owned()).collect()
    }
}
