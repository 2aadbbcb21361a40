//! Databases of any catalog, and which one is the current one.

use std::collections::BTreeMap;

use super::CatalogManager;
use crate::catalog::CatalogDatabase;
use crate::catalog::memory::database_not_exist;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

impl CatalogManager {
    /// Returns the databases of a catalog, sorted.
    ///
    /// # Errors
    /// There is no such catalog, or it cannot be reached.
    pub async fn database_names(&self, catalog: &str) -> Result<Vec<String>> {
        let mut names = self.existing_catalog(catalog).await?.list_databases().await?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns a database, or None where it or its catalog does not exist.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn database(&self, catalog: &str, name: &str) -> Result<Option<CatalogDatabase>> {
        match self.catalog(catalog).await? {
            Some(catalog) => catalog.database(name).await,
            None => Ok(None),
        }
    }

    /// Creates a database.
    ///
    /// # Errors
    /// The name is taken and `if_not_exists` is false, or the catalog refuses.
    pub async fn create_database(
        &mut self,
        catalog: &str,
        name: &str,
        database: CatalogDatabase,
        if_not_exists: bool,
    ) -> Result<()> {
        let existing = self.existing_catalog(catalog).await?;
        if if_not_exists && existing.database(name).await?.is_some() {
            return Ok(());
        }
        match existing.create_database(name, database).await {
            Err(error) if if_not_exists && error.kind() == ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
    }

    /// Adds to a database's properties.
    ///
    /// # Errors
    /// There is no such database.
    pub async fn alter_database(
        &mut self,
        catalog: &str,
        name: &str,
        properties: BTreeMap<String, String>,
    ) -> Result<()> {
        let existing = self.existing_catalog(catalog).await?;
        let database = existing.database(name).await?;
        let mut database = database.ok_or_else(|| database_not_exist(name, catalog))?;
        database.properties.extend(properties);
        existing.alter_database(name, database).await
    }

    /// Drops a database.
    ///
    /// # Errors
    /// It is the current one, is not empty and `cascade` is false, or does not exist and `if_exists` is false.
    pub async fn drop_database(
        &mut self,
        catalog: &str,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        if catalog == self.current_catalog && name == self.current_database {
            return Err(Error::validation("Cannot drop a database which is currently in use.")
                .hint("Switch to another one with USE first."));
        }
        let existing = self.existing_catalog(catalog).await?;
        if existing.database(name).await?.is_none() {
            return if if_exists { Ok(()) } else { Err(database_not_exist(name, catalog)) };
        }
        existing.drop_database(name, cascade).await?;
        self.functions.forget(catalog, Some(name));
        Ok(())
    }

    /// Makes a database, and its catalog, the current ones.
    ///
    /// # Errors
    /// There is no such catalog or database.
    pub async fn use_database(&mut self, catalog: &str, name: &str) -> Result<()> {
        let missing = || {
            Error::not_found(format!("A catalog with name [{catalog}] does not exist."))
                .class(FlinkClass::CATALOG)
        };
        let existing = self.catalog(catalog).await?.ok_or_else(missing)?;
        if existing.database(name).await?.is_none() {
            let message =
                format!("A database with name [{name}] does not exist in the catalog: [{catalog}].");
            return Err(Error::not_found(message).class(FlinkClass::CATALOG));
        }
        catalog.clone_into(&mut self.current_catalog);
        name.clone_into(&mut self.current_database);
        Ok(())
    }
}
