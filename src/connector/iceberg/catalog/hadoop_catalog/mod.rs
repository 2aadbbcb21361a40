//! Tables in folders, as Hadoop's catalog lays them out: `<warehouse>/<database>/<table>/metadata/vN.metadata.json`. The folders
//! are the catalog; nothing is written down elsewhere.

mod versions;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{
    Catalog, Namespace, NamespaceIdent, TableCommit, TableCreation, TableIdent, TableRequirement, TableUpdate,
};

use super::commit_catalog::{CommitCatalog, CommitError};
use super::metadata_commit::{
    NextMetadata, delete_expired, loaded_table, no_namespace, no_table, table_exists,
};
use super::metadata_file::{Codec, METADATA_PATH, read_metadata};
use super::table_files::{files_outside, is_damage, keeps_files};
use crate::connector::iceberg::error::into_iceberg;
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, ErrorKind, FlinkClass, Result};
use versions::{VERSION_HINT, Version, Versions, version_of};

/// How often a table is looked for anew whose metadata file goes between finding and reading it.
const LOAD_ATTEMPTS: usize = 5;

/// The catalog of a warehouse.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct HadoopCatalog {
    name: Option<String>,
    /// As the user wrote it: locations of tables begin with it.
    warehouse: String,
    files: FileStore,
}

impl HadoopCatalog {
    /// Makes the catalog of a warehouse; its folder need not be there.
    ///
    /// # Errors
    /// The warehouse is no location that can be used.
    pub(in crate::connector::iceberg) fn new(warehouse: &str, files: FileStore) -> Result<HadoopCatalog> {
        if warehouse.is_empty() {
            let message = "Cannot initialize HadoopCatalog because warehousePath must not be null or empty";
            return Err(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT));
        }
        files.resolve(warehouse)?;
        let warehouse = match warehouse.trim_end_matches('/') {
            root if root.is_empty() || root.ends_with(':') => warehouse,
            folder => folder,
        };
        Ok(HadoopCatalog { name: None, warehouse: warehouse.to_owned(), files })
    }

    /// Names the catalog as the user does.
    pub(in crate::connector::iceberg) fn named(self, name: &str) -> HadoopCatalog {
        HadoopCatalog { name: Some(name.to_owned()), ..self }
    }

    /// Returns the folder of a database.
    fn namespace_folder(&self, namespace: &NamespaceIdent) -> Result<String> {
        match &namespace[..] {
            [name] => Ok(format!("{}/{}", self.warehouse, folder_name(name)?)),
            _ => Err(Error::unsupported(format!("namespace '{namespace}' has several levels"))
                .hint("A database of this catalog is one folder of its warehouse.")),
        }
    }

    /// Returns the folder of a table.
    fn table_folder(&self, ident: &TableIdent) -> Result<String> {
        Ok(format!("{}/{}", self.namespace_folder(ident.namespace())?, folder_name(ident.name())?))
    }

    async fn existing_namespace(&self, namespace: &NamespaceIdent) -> Result<String> {
        let folder = self.namespace_folder(namespace)?;
        if !self.files.folder_exists(&folder).await? || self.is_table(&folder).await? {
            self.existing_warehouse(&namespace.to_string()).await?;
            return Err(no_namespace(&namespace.to_string()));
        }
        Ok(folder)
    }

    /// Fails for a warehouse that is not there, as for a namespace in it.
    async fn existing_warehouse(&self, namespace: &str) -> Result<()> {
        if self.files.folder_exists(&self.warehouse).await? {
            return Ok(());
        }
        Err(no_namespace(namespace).hint(format!(
            "There is no folder '{}'. If it is the right warehouse, CREATE DATABASE makes it.",
            self.warehouse
        )))
    }

    /// Returns whether a folder is a table's, be it a damaged one.
    async fn is_table(&self, folder: &str) -> Result<bool> {
        let entries = self.files.list(&format!("{folder}/metadata")).await?;
        let is_version = |name: &str| name == VERSION_HINT || version_of(name).is_some();
        Ok(entries.iter().any(|entry| !entry.is_folder() && is_version(&entry.name)))
    }

    async fn namespaces(&self, parent: Option<&NamespaceIdent>) -> Result<Vec<NamespaceIdent>> {
        if let Some(parent) = parent {
            self.existing_namespace(parent).await?;
            return Ok(Vec::new());
        }
        self.existing_warehouse("").await?;
        let mut namespaces = Vec::new();
        for entry in self.files.list(&self.warehouse).await? {
            let folder = format!("{}/{}", self.warehouse, entry.name);
            if entry.is_folder() && folder_name(&entry.name).is_ok() && !self.is_table(&folder).await? {
                namespaces.push(NamespaceIdent::new(entry.name));
            }
        }
        Ok(namespaces)
    }

    async fn tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        let folder = self.existing_namespace(namespace).await?;
        let mut tables = Vec::new();
        for entry in self.files.list(&folder).await? {
            let is_candidate = entry.is_folder() && folder_name(&entry.name).is_ok();
            if is_candidate && self.is_table(&format!("{folder}/{}", entry.name)).await? {
                tables.push(TableIdent::new(namespace.clone(), entry.name));
            }
        }
        Ok(tables)
    }

    async fn make_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<Namespace> {
        let folder = self.namespace_folder(namespace)?;
        if !properties.is_empty() {
            return Err(Error::unsupported(format!(
                "Cannot create namespace {namespace}: metadata is not supported"
            ))
            .hint("A database of this catalog is a folder; leave its comment and properties away."));
        }
        if self.files.folder_exists(&folder).await? {
            return Err(Error::already_exists(format!("Namespace already exists: {namespace}"))
                .class(FlinkClass::ICEBERG_ALREADY_EXISTS));
        }
        self.files.create_folder(&folder).await?;
        Ok(Namespace::new(namespace.clone()))
    }

    async fn remove_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        let folder = self.existing_namespace(namespace).await?;
        if self.files.remove_empty_folder(&folder).await? {
            return Ok(());
        }
        Err(Error::validation(format!("Namespace {namespace} is not empty."))
            .class(FlinkClass::ICEBERG_NAMESPACE_NOT_EMPTY))
    }

    async fn load(&self, ident: &TableIdent) -> Result<(Version, Table)> {
        let folder = self.table_folder(ident)?;
        let versions = Versions::of(&self.files, &folder);
        let mut attempt = 1;
        loop {
            let Some(version) = versions.current().await? else { return Err(no_table(ident)) };
            match read_metadata(&self.files, &version.location).await {
                Ok(metadata) => {
                    let location = version.location.clone();
                    let table = loaded_table(ident, metadata, location, self.files.file_io())?;
                    return Ok((version, table));
                }
                // Others have committed so much since that this version was deleted, or the table was dropped.
                Err(error) if error.kind() == ErrorKind::NotFound && attempt < LOAD_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn make_table(&self, namespace: &NamespaceIdent, creation: TableCreation) -> Result<Table> {
        let ident = TableIdent::new(namespace.clone(), creation.name.clone());
        let folder = self.table_folder(&ident)?;
        if let Some(location) = creation.location.as_deref().filter(|location| *location != folder) {
            return Err(Error::validation(format!(
                "Cannot set a custom location for a path-based table. Expected {folder} but got {location}"
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT));
        }
        let versions = Versions::of(&self.files, &folder);
        if versions.current().await?.is_some() {
            return Err(table_exists(&ident));
        }
        let next = NextMetadata::of_new_table(creation, folder.clone())?;
        refuse_metadata_path(&next)?;
        // The codec is for the versions that follow, but a wrong one is to be told now.
        Codec::of(&next.metadata)?;
        let bytes = Codec::Plain.encode(&next.metadata)?;
        let version = versions.create(bytes).await?.ok_or_else(|| table_exists(&ident))?;
        next.into_table(&ident, version.location, self.files.file_io())
    }

    async fn commit(
        &self,
        ident: &TableIdent,
        requirements: &[TableRequirement],
        updates: Vec<TableUpdate>,
    ) -> Result<Table, CommitError> {
        let (current, base) = self.load(ident).await.map_err(CommitError::Failed)?;
        let Some(mut next) = NextMetadata::after(&base, requirements, updates)? else { return Ok(base) };
        if next.metadata.location() != base.metadata().location() {
            let message = "Hadoop path-based tables cannot be relocated";
            return Err(CommitError::Failed(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT)));
        }
        refuse_metadata_path(&next).map_err(CommitError::Failed)?;
        Codec::of(&next.metadata).map_err(CommitError::Failed)?;
        let codec = Codec::of(base.metadata()).map_err(CommitError::Failed)?;
        let bytes = codec.encode(&next.metadata).map_err(CommitError::Failed)?;
        let folder = self.table_folder(ident).map_err(CommitError::Failed)?;
        let versions = Versions::of(&self.files, &folder);
        let version = versions.named(current.number + 1, codec);
        let (expired, snapshots) = (next.take_expired(), next.take_snapshots());
        // Behind the commit nothing may fail any more.
        let table = next.into_table(ident, version.location.clone(), self.files.file_io());
        let table = table.map_err(CommitError::Failed)?;
        versions.publish(ident, &current, &version, &snapshots, bytes).await?;
        delete_expired(&self.files, expired).await;
        Ok(table)
    }

    /// Removes a table: its folder, and with `purge` also its files outside of that.
    async fn remove_table(&self, ident: &TableIdent, purge: bool) -> Result<()> {
        let folder = self.table_folder(ident)?;
        let table = match self.load(ident).await {
            Ok((_, table)) => table,
            Err(error) if is_damage(&error) => {
                tracing::warn!(error = %error, table = %ident, "a damaged table is dropped: its files outside of its folder stay");
                return self.files.remove_folder(&folder).await;
            }
            Err(error) => return Err(error),
        };
        if keeps_files(table.metadata()) {
            // Without its metadata the folder is no table any more.
            return self.files.remove_folder(&format!("{folder}/metadata")).await;
        }
        let outside = if purge { files_outside(&folder, &table, &self.files).await } else { Vec::new() };
        self.files.remove_folder(&folder).await?;
        if let Err(error) = self.files.delete_all(outside).await {
            tracing::warn!(error = %error, table = %ident, "files of a dropped table stay");
        }
        Ok(())
    }
}

/// Returns a name that can be that of a folder. Hidden ones are what is left of dropped tables.
///
/// # Errors
/// It cannot.
fn folder_name(name: &str) -> Result<&str> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') || name.chars().any(char::is_control) {
        return Err(Error::validation(format!("'{name}' cannot be the name of a database or table here"))
            .hint("Names are folders: they have no '/' and do not begin with a dot."));
    }
    Ok(name)
}

fn refuse_metadata_path(next: &NextMetadata) -> Result<()> {
    if next.metadata.properties().contains_key(METADATA_PATH) {
        return Err(Error::validation("Hadoop path-based tables cannot relocate metadata")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint(format!("Leave the property '{METADATA_PATH}' away.")));
    }
    Ok(())
}

#[async_trait]
impl CommitCatalog for HadoopCatalog {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
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
impl Catalog for HadoopCatalog {
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
        let folder = self.existing_namespace(namespace).await.map_err(into_iceberg)?;
        let properties = HashMap::from([("location".to_owned(), folder)]);
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        match self.existing_namespace(namespace).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(into_iceberg(error)),
        }
    }

    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        _properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        Err(into_iceberg(Error::unsupported(format!(
            "Cannot set namespace properties {namespace} : setProperties is not supported"
        ))))
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        self.remove_namespace(namespace).await.map_err(into_iceberg)
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        self.tables(namespace).await.map_err(into_iceberg)
    }

    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> iceberg::Result<Table> {
        self.make_table(namespace, creation).await.map_err(into_iceberg)
    }

    async fn load_table(&self, ident: &TableIdent) -> iceberg::Result<Table> {
        self.load(ident).await.map(|(_, table)| table).map_err(into_iceberg)
    }

    async fn drop_table(&self, ident: &TableIdent) -> iceberg::Result<()> {
        self.remove_table(ident, false).await.map_err(into_iceberg)
    }

    async fn purge_table(&self, ident: &TableIdent) -> iceberg::Result<()> {
        self.remove_table(ident, true).await.map_err(into_iceberg)
    }

    async fn table_exists(&self, ident: &TableIdent) -> iceberg::Result<bool> {
        let folder = self.table_folder(ident).map_err(into_iceberg)?;
        self.is_table(&folder).await.map_err(into_iceberg)
    }

    async fn rename_table(&self, _from: &TableIdent, _to: &TableIdent) -> iceberg::Result<()> {
        Err(into_iceberg(Error::unsupported("Cannot rename Hadoop tables")))
    }

    async fn register_table(&self, ident: &TableIdent, _metadata: String) -> iceberg::Result<Table> {
        Err(into_iceberg(Error::unsupported(format!(
            "table '{ident}' cannot be registered: the tables of a Hadoop catalog are its folders"
        ))))
    }

    async fn update_table(&self, mut commit: TableCommit) -> iceberg::Result<Table> {
        let (requirements, updates) = (commit.take_requirements(), commit.take_updates());
        let committed = self.commit(commit.identifier(), &requirements, updates).await;
        committed.map_err(|error| into_iceberg(error.into_error()))
    }
}
