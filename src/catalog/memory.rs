//! The catalog that lives in the session's memory. Nothing in it outlives the session, and no call waits for anything.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use super::{Catalog, CatalogDatabase, CatalogObject, CatalogTable, CatalogView, ObjectPath, TableChange};
use crate::error::{Error, FlinkClass, Result};

/// A database with its objects.
#[derive(Debug, Default)]
struct Database {
    definition: CatalogDatabase,
    objects: BTreeMap<String, Arc<CatalogObject>>,
}

/// Databases, tables and views in memory.
#[derive(Debug)]
pub struct InMemoryCatalog {
    name: String,
    default_database: String,
    databases: RwLock<BTreeMap<String, Database>>,
}

impl InMemoryCatalog {
    /// Creates a catalog that holds one empty database.
    pub fn new(name: impl Into<String>, default_database: impl Into<String>) -> InMemoryCatalog {
        let default_database = default_database.into();
        let databases = BTreeMap::from([(default_database.clone(), Database::default())]);
        InMemoryCatalog { name: name.into(), default_database, databases: RwLock::new(databases) }
    }

    /// Runs `read` on all databases.
    fn read<T>(&self, read: impl FnOnce(&BTreeMap<String, Database>) -> T) -> T {
        read(&self.databases.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs `change` on one database.
    fn change<T>(&self, database: &str, change: impl FnOnce(&mut Database) -> Result<T>) -> Result<T> {
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        change(databases.get_mut(database).ok_or_else(|| database_not_exist(database, &self.name))?)
    }

    /// Puts a changed object in the place of one that is there.
    fn replace(&self, path: &ObjectPath, object: CatalogObject) -> Result<()> {
        self.change(&path.database, |database| {
            let existing =
                database.objects.get_mut(&path.object).ok_or_else(|| self.table_not_exist(path))?;
            *existing = Arc::new(object);
            Ok(())
        })
    }

    /// Builds Flink's error for a table that is not there.
    fn table_not_exist(&self, path: &ObjectPath) -> Error {
        Error::not_found(format!("Table (or view) {path} does not exist in Catalog {}.", self.name))
            .class(FlinkClass::TABLE_NOT_EXIST)
    }
}

/// Builds Flink's error for a database that is not there.
pub(super) fn database_not_exist(database: &str, catalog: &str) -> Error {
    Error::not_found(format!("Database {database} does not exist in Catalog {catalog}."))
        .class(FlinkClass::DATABASE_NOT_EXIST)
}

/// Builds Flink's error for a name that a database has already.
fn database_already_exist(database: &str, catalog: &str) -> Error {
    Error::already_exists(format!("Database {database} already exists in Catalog {catalog}."))
        .class(FlinkClass::DATABASE_ALREADY_EXIST)
}

/// Builds Flink's error for a name that a table or view has already.
fn table_already_exist(path: &ObjectPath, catalog: &str) -> Error {
    Error::already_exists(format!("Table (or view) {path} already exists in Catalog {catalog}."))
        .class(FlinkClass::TABLE_ALREADY_EXIST)
}

/// Builds Flink's error for a database that still holds something.
fn database_not_empty(database: &str, catalog: &str) -> Error {
    Error::validation(format!("Database {database} in catalog {catalog} is not empty."))
        .class(FlinkClass::DATABASE_NOT_EMPTY)
        .hint(format!("Drop its tables first, or write DROP DATABASE {database} CASCADE."))
}

#[async_trait]
impl Catalog for InMemoryCatalog {
    fn default_database(&self) -> &str {
        &self.default_database
    }

    fn class_name(&self) -> &'static str {
        "class org.apache.flink.table.catalog.GenericInMemoryCatalog"
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        Ok(self.read(|databases| databases.keys().cloned().collect()))
    }

    async fn database(&self, name: &str) -> Result<Option<CatalogDatabase>> {
        Ok(self.read(|databases| databases.get(name).map(|database| database.definition.clone())))
    }

    async fn create_database(&self, name: &str, database: CatalogDatabase) -> Result<()> {
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        if databases.contains_key(name) {
            return Err(database_already_exist(name, &self.name));
        }
        databases.insert(name.to_owned(), Database { definition: database, objects: BTreeMap::new() });
        Ok(())
    }

    async fn alter_database(&self, name: &str, database: CatalogDatabase) -> Result<()> {
        self.change(name, |existing| {
            existing.definition = database;
            Ok(())
        })
    }

    async fn drop_database(&self, name: &str, cascade: bool) -> Result<()> {
        let mut databases = self.databases.write().unwrap_or_else(PoisonError::into_inner);
        match databases.get(name) {
            None => Err(database_not_exist(name, &self.name)),
            Some(database) if !cascade && !database.objects.is_empty() => {
                Err(database_not_empty(name, &self.name))
            }
            Some(_) => {
                databases.remove(name);
                Ok(())
            }
        }
    }

    async fn list_objects(&self, database: &str) -> Result<Vec<String>> {
        let names = self.read(|databases| Some(databases.get(database)?.objects.keys().cloned().collect()));
        names.ok_or_else(|| database_not_exist(database, &self.name))
    }

    async fn object(&self, path: &ObjectPath) -> Result<Option<Arc<CatalogObject>>> {
        Ok(self.read(|databases| databases.get(&path.database)?.objects.get(&path.object).map(Arc::clone)))
    }

    async fn create_object(&self, path: &ObjectPath, object: CatalogObject) -> Result<()> {
        self.change(&path.database, |database| {
            if database.objects.contains_key(&path.object) {
                return Err(table_already_exist(path, &self.name));
            }
            database.objects.insert(path.object.clone(), Arc::new(object));
            Ok(())
        })
    }

    async fn alter_table(
        &self,
        path: &ObjectPath,
        table: CatalogTable,
        _changes: &[TableChange],
    ) -> Result<()> {
        self.replace(path, CatalogObject::Table(table))
    }

    async fn alter_view(&self, path: &ObjectPath, view: CatalogView) -> Result<()> {
        self.replace(path, CatalogObject::View(view))
    }

    async fn rename_object(&self, path: &ObjectPath, new_name: &str) -> Result<()> {
        self.change(&path.database, |database| {
            if database.objects.contains_key(new_name) {
                return Err(table_already_exist(&ObjectPath::new(&path.database, new_name), &self.name));
            }
            let object = database.objects.remove(&path.object).ok_or_else(|| self.table_not_exist(path))?;
            database.objects.insert(new_name.to_owned(), object);
            Ok(())
        })
    }

    async fn drop_object(&self, path: &ObjectPath) -> Result<()> {
        self.change(&path.database, |database| {
            database.objects.remove(&path.object).map(drop).ok_or_else(|| self.table_not_exist(path))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_with_tables_is_dropped_only_with_cascade() {
        let catalog = InMemoryCatalog::new("c", "d");
        catalog.create_database("e", CatalogDatabase::default()).await.unwrap();
        let path = ObjectPath::new("e", "t");
        catalog.create_object(&path, CatalogObject::Table(CatalogTable::default())).await.unwrap();
        let error = catalog.drop_database("e", false).await.unwrap_err();
        assert_eq!(error.message(), "Database e in catalog c is not empty.");
        catalog.drop_database("e", true).await.unwrap();
        assert_eq!(catalog.list_databases().await.unwrap(), ["d"]);
    }

    #[tokio::test]
    async fn renaming_onto_an_existing_table_fails_and_keeps_both() {
        let catalog = InMemoryCatalog::new("c", "d");
        for name in ["a", "b"] {
            let table = CatalogObject::Table(CatalogTable::default());
            catalog.create_object(&ObjectPath::new("d", name), table).await.unwrap();
        }
        let error = catalog.rename_object(&ObjectPath::new("d", "a"), "b").await.unwrap_err();
        assert_eq!(error.message(), "Table (or view) d.b already exists in Catalog c.");
        assert_eq!(catalog.list_objects("d").await.unwrap(), ["a", "b"]);
    }
}
