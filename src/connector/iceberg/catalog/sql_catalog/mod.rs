//! Tables in a SQL database, as Java's JdbcCatalog and PyIceberg's SqlCatalog keep them: a row says where a table's metadata is, and
//! a commit replaces that if nobody else has.

mod catalog_tables;
mod commit;
mod database;
mod database_url;
mod metadata_names;
mod namespaces;
mod postgres;
mod sqlite;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};

use super::commit_catalog::{CommitCatalog, CommitError};
use super::metadata_commit::{NextMetadata, loaded_table, no_namespace, no_table, table_exists};
use super::metadata_file::{Codec, read_metadata};
use super::table_files::{files_of, is_damage, keeps_files};
use crate::connector::iceberg::error::into_iceberg;
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, ErrorKind, FlinkClass, Result};
use catalog_tables::CatalogTables;
use database::{Database, WriteError};
use database_url::DatabaseUrl;
use metadata_names::next_location;

pub(in crate::connector::iceberg) use catalog_tables::SchemaVersion;

/// The property of a namespace that says where its tables go.
const LOCATION: &str = "location";

/// What makes a SQL catalog.
#[derive(Clone)]
pub(in crate::connector::iceberg) struct SqlCatalogOptions {
    /// The catalog's name: several may be in one database.
    pub(in crate::connector::iceberg) name: String,
    /// The database, `jdbc:sqlite:…` or `jdbc:postgresql:…`.
    pub(in crate::connector::iceberg) uri: String,
    /// The folder below which tables are stored.
    pub(in crate::connector::iceberg) warehouse: String,
    /// `jdbc.user`.
    pub(in crate::connector::iceberg) user: Option<String>,
    /// `jdbc.password`.
    pub(in crate::connector::iceberg) password: Option<String>,
    /// Other options that begin with `jdbc.`, without that: parameters as in the URI.
    pub(in crate::connector::iceberg) parameters: Vec<(String, String)>,
    /// `jdbc.schema-version`.
    pub(in crate::connector::iceberg) schema_version: SchemaVersion,
    /// `jdbc.init-catalog-tables`.
    pub(in crate::connector::iceberg) make_tables: bool,
    /// `jdbc.strict-mode`: a table can be made only in a namespace that is there.
    pub(in crate::connector::iceberg) is_strict: bool,
}

impl fmt::Debug for SqlCatalogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URI, password and parameters may be secrets.
        f.debug_struct("SqlCatalogOptions")
            .field("name", &self.name)
            .field("warehouse", &self.warehouse)
            .finish_non_exhaustive()
    }
}

/// A catalog in a database.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct SqlCatalog {
    database: Arc<dyn Database>,
    tables: CatalogTables,
    warehouse: String,
    is_strict: bool,
    files: FileStore,
}

impl SqlCatalog {
    /// Opens a catalog; its tables in the database are made if need be.
    ///
    /// # Errors
    /// The warehouse is no location, or the database cannot be reached or used.
    pub(in crate::connector::iceberg) async fn open(
        options: SqlCatalogOptions,
        files: FileStore,
    ) -> Result<SqlCatalog> {
        if options.warehouse.is_empty() {
            let message = "Cannot initialize JDBCCatalog because warehousePath must not be null or empty";
            return Err(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT));
        }
        files.resolve(&options.warehouse)?;
        let (user, password) = (options.user.as_deref(), options.password.as_deref());
        let url = DatabaseUrl::parse(&options.uri, user, password, &options.parameters)?;
        let database = url.open().await?;
        let (version, make_tables) = (options.schema_version, options.make_tables);
        let tables = CatalogTables::open(database.as_ref(), &options.name, version, make_tables).await?;
        let warehouse = options.warehouse.trim_end_matches('/').to_owned();
        Ok(SqlCatalog { database, tables, warehouse, is_strict: options.is_strict, files })
    }

    /// Returns where a table's current metadata is; None if there is no table.
    async fn metadata_location(&self, ident: &TableIdent) -> Result<Option<String>> {
        let rows = self.database.read(self.tables.select_table(ident)).await?;
        let Some(row) = rows.into_iter().next() else { return Ok(None) };
        let location = row.into_iter().next().flatten();
        location
            .map(Some)
            .ok_or_else(|| Error::data(format!("table '{ident}' has no metadata in its catalog")))
    }

    async fn load(&self, ident: &TableIdent) -> Result<Table> {
        let mut location = self.metadata_location(ident).await?.ok_or_else(|| no_table(ident))?;
        loop {
            let error = match read_metadata(&self.files, &location).await {
                Ok(metadata) => return loaded_table(ident, metadata, location, self.files.file_io()),
                Err(error) => error,
            };
            // Others may have committed so much since that this file was deleted.
            match self.metadata_location(ident).await? {
                Some(current) if error.kind() == ErrorKind::NotFound && current != location => {
                    location = current;
                }
                _ => return Err(error),
            }
        }
    }

    /// Returns where a new table goes.
    async fn default_location(&self, ident: &TableIdent) -> Result<String> {
        let properties = self.properties(ident.namespace()).await?;
        let folder = match properties.get(LOCATION) {
            Some(location) => location.trim_end_matches('/').to_owned(),
            None => format!("{}/{}", self.warehouse, ident.namespace().join("/")),
        };
        Ok(format!("{folder}/{}", ident.name()))
    }

    async fn make_table(&self, namespace: &NamespaceIdent, creation: TableCreation) -> Result<Table> {
        let ident = TableIdent::new(namespace.clone(), creation.name.clone());
        if self.is_strict && !self.has_namespace(namespace).await? {
            return Err(no_namespace(&namespace.to_string()).hint("Create the database first."));
        }
        if self.metadata_location(&ident).await?.is_some() {
            return Err(table_exists(&ident));
        }
        let location = match &creation.location {
            Some(location) => location.clone(),
            None => self.default_location(&ident).await?,
        };
        self.files.resolve(&location)?;
        let next = NextMetadata::of_new_table(creation, location)?;
        let location = self.write_metadata(&next, None).await?;
        self.insert(&ident, &location).await.inspect_err(|error| {
            tracing::debug!(error = %error, "a table was not created");
        })?;
        next.into_table(&ident, location, self.files.file_io())
    }

    /// Writes metadata to a new file, and returns where it is.
    async fn write_metadata(&self, next: &NextMetadata, base: Option<&str>) -> Result<String> {
        let location = next_location(&next.metadata, base)?;
        let bytes = Codec::of(&next.metadata)?.encode(&next.metadata)?;
        self.files.write(&location, bytes).await?;
        Ok(location)
    }

    /// Adds a table whose metadata was just written; if it does not come to be, the metadata goes.
    async fn insert(&self, ident: &TableIdent, location: &str) -> Result<()> {
        let error = match self.database.write(vec![self.tables.insert_table(ident, location)]).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Unknown(error)) => {
                match self.metadata_location(ident).await {
                    Ok(Some(found)) if found == location => return Ok(()),
                    Ok(Some(_)) => table_exists(ident).caused_by(error),
                    // It may still come to be: the file must stay.
                    _ => return Err(error),
                }
            }
            Err(WriteError::Exists(error)) => table_exists(ident).caused_by(error),
            Err(error) => error.into_error(),
        };
        self.forget(location).await;
        Err(error)
    }

    /// Deletes a metadata file that nobody will ask for.
    async fn forget(&self, location: &str) {
        if let Err(error) = self.files.delete(location).await {
            tracing::warn!(error = %error, "a metadata file of no table stays");
        }
    }

    /// Removes a table, and with `purge` its files.
    async fn remove_table(&self, ident: &TableIdent, purge: bool) -> Result<()> {
        let table = match self.load(ident).await {
            Ok(table) => Some(table),
            Err(error) if is_damage(&error) => {
                tracing::warn!(error = %error, table = %ident, "a damaged table is dropped: its files stay");
                None
            }
            Err(error) => return Err(error),
        };
        // Manifests are read before anything is gone.
        let doomed = match &table {
            Some(table) if purge && !keeps_files(table.metadata()) => {
                match files_of(table, &self.files).await {
                    Ok(doomed) => doomed,
                    Err(error) => {
                        tracing::warn!(error = %error, table = %ident, "the files of a dropped table stay");
                        BTreeSet::new()
                    }
                }
            }
            _ => BTreeSet::new(),
        };
        let removed = self.database.write(vec![self.tables.delete_table(ident)]).await;
        if removed.map_err(WriteError::into_error)? == [0] {
            return Err(no_table(ident));
        }
        if let Some(table) = table.filter(|_| !doomed.is_empty()) {
            let deleted = self.files.delete_all(doomed).await;
            let emptied = self.files.remove_empty_folders(table.metadata().location()).await;
            for error in [deleted, emptied].into_iter().filter_map(Result::err) {
                tracing::warn!(error = %error, table = %ident, "files of a dropped table stay");
            }
        }
        Ok(())
    }

    async fn rename(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        if from == to {
            return Ok(());
        }
        if self.metadata_location(from).await?.is_none() {
            return Err(no_table(from));
        }
        self.require_namespace(to.namespace()).await?;
        if self.metadata_location(to).await?.is_some() {
            return Err(table_exists(to));
        }
        match self.database.write(vec![self.tables.rename_table(from, to)]).await {
            Ok(counts) if counts == [0] => Err(no_table(from)),
            Ok(_) => Ok(()),
            Err(WriteError::Exists(error)) => Err(table_exists(to).caused_by(error)),
            Err(error) => Err(error.into_error()),
        }
    }

    async fn register(&self, ident: &TableIdent, location: String) -> Result<Table> {
        if self.metadata_location(ident).await?.is_some() {
            return Err(table_exists(ident));
        }
        let metadata = read_metadata(&self.files, &location).await?;
        match self.database.write(vec![self.tables.insert_table(ident, &location)]).await {
            Ok(_) => loaded_table(ident, metadata, location, self.files.file_io()),
            Err(WriteError::Exists(error)) => Err(table_exists(ident).caused_by(error)),
            Err(error) => Err(error.into_error()),
        }
    }
}

#[async_trait]
impl CommitCatalog for SqlCatalog {
    fn name(&self) -> Option<&str> {
        Some(self.tables.catalog())
    }

    fn files(&self) -> &FileStore {
        &self.files
    }

    async fn commit_table(
        &self,
        ident: &TableIdent,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        self.commit(ident, &requirements, updates).await
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    async fn list_namespaces(&self, parent: Option<&NamespaceIdent>) -> iceberg::Result<Vec<NamespaceIdent>> {
        self.namespaces(parent).await.map_err(into_iceberg)
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        self.make_namespace(namespace, properties).await.map_err(into_iceberg)
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<Namespace> {
        self.require_namespace(namespace).await.map_err(into_iceberg)?;
        let properties = self.properties(namespace).await.map_err(into_iceberg)?;
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        self.has_namespace(namespace).await.map_err(into_iceberg)
    }

    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        self.replace_properties(namespace, &properties).await.map_err(into_iceberg)
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        self.remove_namespace(namespace).await.map_err(into_iceberg)
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        self.tables_of(namespace).await.map_err(into_iceberg)
    }

    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> iceberg::Result<Table> {
        self.make_table(namespace, creation).await.map_err(into_iceberg)
    }

    async fn load_table(&self, ident: &TableIdent) -> iceberg::Result<Table> {
        self.load(ident).await.map_err(into_iceberg)
    }

    async fn drop_table(&self, ident: &TableIdent) -> iceberg::Result<()> {
        self.remove_table(ident, false).await.map_err(into_iceberg)
    }

    async fn purge_table(&self, ident: &TableIdent) -> iceberg::Result<()> {
        self.remove_table(ident, true).await.map_err(into_iceberg)
    }

    async fn table_exists(&self, ident: &TableIdent) -> iceberg::Result<bool> {
        let location = self.metadata_location(ident).await.map_err(into_iceberg)?;
        Ok(location.is_some())
    }

    async fn rename_table(&self, from: &TableIdent, to: &TableIdent) -> iceberg::Result<()> {
        self.rename(from, to).await.map_err(into_iceberg)
    }

    async fn register_table(&self, ident: &TableIdent, location: String) -> iceberg::Result<Table> {
        self.register(ident, location).await.map_err(into_iceberg)
    }

    async fn update_table(&self, mut commit: TableCommit) -> iceberg::Result<Table> {
        let (requirements, updates) = (commit.take_requirements(), commit.take_updates());
        let committed = self.commit(commit.identifier(), &requirements, updates).await;
        committed.map_err(|error| into_iceberg(error.into_error()))
    }
}
