//! Iceberg's catalogs as Flink sees them: namespaces are databases, fields are columns, properties are options.
//!
//! Nothing is cached: each look-up reads the table's metadata, so that a statement sees what others have committed before it.
//! `cache-enabled` is Flink's way to read less often; a table that is a minute old is not what anybody asks for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableIdent};

use super::CommitCatalog;
use super::partition_fields::partition_texts;
use super::table_alteration::alter_table;
use super::table_creation::{check_definition, table_creation};
use super::table_files::is_damage;
use super::table_properties::{COMMENT, CONNECTOR, ICEBERG, shown_options};
use super::table_schema::flink_schema;
use crate::catalog::{
    Catalog, CatalogDatabase, CatalogObject, CatalogTable, CatalogView, ObjectPath, PartitionName,
    TableChange, TableHandle,
};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::metadata_table::{MetadataName, MetadataTable};
use crate::connector::iceberg::partitions::list_partitions;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

/// A catalog of Iceberg tables.
#[derive(Debug)]
pub(super) struct FlinkCatalog {
    /// Its name, for messages.
    pub(super) name: String,
    /// Where the tables are.
    pub(super) tables: Arc<dyn CommitCatalog>,
    /// The database that USE CATALOG switches to, whether it exists or not.
    pub(super) default_database: String,
    /// The namespace whose children are the databases; empty for the topmost ones.
    pub(super) base_namespace: Vec<String>,
    /// The options by which tables of other catalogs find this one.
    pub(super) options: BTreeMap<String, String>,
}

impl FlinkCatalog {
    /// Returns the namespace that is a database.
    fn namespace(&self, database: &str) -> Result<NamespaceIdent> {
        let levels = self.base_namespace.iter().map(String::as_str).chain([database]);
        NamespaceIdent::from_strs(levels).map_err(from_iceberg)
    }

    fn ident(&self, database: &str, table: &str) -> Result<TableIdent> {
        Ok(TableIdent::new(self.namespace(database)?, table.to_owned()))
    }

    /// Loads a table, or None.
    pub(super) async fn load(&self, database: &str, table: &str) -> Result<Option<Arc<IcebergTable>>> {
        match self.tables.load_table(&self.ident(database, table)?).await {
            Ok(table) => Ok(Some(Arc::new(IcebergTable::new(Arc::clone(&self.tables), table)))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.not_loaded(database, table, from_iceberg(error))),
        }
    }

    /// Names the table whose metadata cannot be used, and the ways out.
    fn not_loaded(&self, database: &str, table: &str, error: Error) -> Error {
        if !is_damage(&error) && error.kind() != ErrorKind::Unsupported {
            return error;
        }
        let named = Error::new(
            error.kind(),
            format!("table '{}.{database}.{table}' cannot be loaded: {}", self.name, error.message()),
        )
        .class(error.flink_class());
        let repair = error.hint_text().unwrap_or("Put the file back.").to_owned();
        let hint = match is_damage(&error) {
            true => format!("{repair} DROP TABLE `{}`.`{database}`.`{table}` gives the table up.", self.name),
            false => repair,
        };
        named.hint(hint).caused_by(error)
    }

    /// Checks that no table stands in the way of dropping all of a database: one that others understand and we do not, or that cannot be
    /// reached now. Damaged ones do not.
    async fn check_droppable(&self, database: &str, tables: &[TableIdent]) -> Result<()> {
        for table in tables {
            match self.tables.load_table(table).await.map_err(from_iceberg) {
                Ok(_) => {}
                Err(error) if is_damage(&error) || error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(self.not_loaded(database, table.name(), error)),
            }
        }
        Ok(())
    }

    /// Creates a table.
    pub(super) async fn create(&self, path: &ObjectPath, table: &CatalogTable) -> Result<Table> {
        let name = table_name(&path.object)?;
        let namespace = self.namespace(&path.database)?;
        let created = self.tables.create_table(&namespace, table_creation(name, table)?).await;
        created.map_err(from_iceberg)
    }
}

/// Returns whether an error says that a table or its namespace is not there.
fn is_missing(error: &iceberg::Error) -> bool {
    matches!(error.kind(), iceberg::ErrorKind::TableNotFound | iceberg::ErrorKind::NamespaceNotFound)
}

/// Returns the name of a table that can be created, changed and dropped.
///
/// # Errors
/// It is a metadata table's.
fn table_name(name: &str) -> Result<&str> {
    match MetadataName::parse(name)? {
        None => Ok(name),
        // Flink differs: DROP TABLE of a metadata table answers that it was dropped.
        Some(_) => Err(Error::unsupported(format!("'{name}' is a metadata table: it can only be read"))),
    }
}

/// Returns the definition of a loaded table.
fn definition(table: &Arc<IcebergTable>) -> CatalogTable {
    let metadata = table.metadata();
    let schema = metadata.current_schema();
    CatalogTable {
        schema: flink_schema(schema),
        comment: metadata.properties().get(COMMENT).cloned(),
        partition_keys: partition_texts(metadata.default_partition_spec(), schema),
        distribution: None,
        options: shown_options(metadata),
        handle: TableHandle::new(Arc::clone(table) as _),
    }
}

/// Builds the error for a view, which these catalogs cannot hold.
fn no_views() -> Error {
    Error::validation("table should be resolved")
        .class(FlinkClass::ILLEGAL_ARGUMENT)
        .hint("Iceberg catalogs hold no views yet: create it in default_catalog, or as a TEMPORARY VIEW.")
}

#[async_trait]
impl Catalog for FlinkCatalog {
    fn default_database(&self) -> &str {
        &self.default_database
    }

    fn class_name(&self) -> &'static str {
        "class org.apache.iceberg.flink.FlinkCatalog"
    }

    fn supports_partition_transforms(&self) -> bool {
        true
    }

    fn connector(&self) -> Option<&'static str> {
        Some(ICEBERG)
    }

    fn caution(&self, table: &CatalogTable) -> Option<String> {
        let option = |key: &str| table.options.get(key).map(String::as_str);
        if let Some(other) = option("connector").filter(|connector| *connector != ICEBERG) {
            return Some(format!(
                "'connector' = '{other}' has no effect: all tables of this catalog are Iceberg tables. CREATE TEMPORARY TABLE makes one of another connector."
            ));
        }
        if option("format-version") == Some("3") && table.schema.primary_key.is_some() {
            return Some(
                "Rows of a table of format version 3 can only be added yet: jobs that change or delete rows need 'format-version' = '2'."
                    .to_owned(),
            );
        }
        None
    }

    fn options_elsewhere(&self, path: &ObjectPath) -> BTreeMap<String, String> {
        let mut options = self.options.clone();
        options.insert("catalog-database".to_owned(), path.database.clone());
        options.insert("catalog-table".to_owned(), path.object.clone());
        options
    }

    async fn list_databases(&self) -> Result<Vec<String>> {
        let parent = match self.base_namespace.as_slice() {
            [] => None,
            levels => Some(NamespaceIdent::from_strs(levels).map_err(from_iceberg)?),
        };
        let children = self.tables.list_namespaces(parent.as_ref()).await.map_err(from_iceberg)?;
        let level = self.base_namespace.len();
        Ok(children.into_iter().filter_map(|child| child.inner().into_iter().nth(level)).collect())
    }

    async fn database(&self, name: &str) -> Result<Option<CatalogDatabase>> {
        match self.tables.get_namespace(&self.namespace(name)?).await {
            Ok(namespace) => {
                let mut properties: BTreeMap<String, String> =
                    namespace.properties().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                Ok(Some(CatalogDatabase { comment: properties.remove(COMMENT), properties }))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(from_iceberg(error)),
        }
    }

    async fn create_database(&self, name: &str, database: CatalogDatabase) -> Result<()> {
        let properties = namespace_properties(database);
        let created = self.tables.create_namespace(&self.namespace(name)?, properties).await;
        created.map(drop).map_err(from_iceberg)
    }

    async fn alter_database(&self, name: &str, database: CatalogDatabase) -> Result<()> {
        let properties = namespace_properties(database);
        self.tables.update_namespace(&self.namespace(name)?, properties).await.map_err(from_iceberg)
    }

    async fn drop_database(&self, name: &str, cascade: bool) -> Result<()> {
        let namespace = self.namespace(name)?;
        // Flink differs: it refuses to drop a database that holds tables, with CASCADE too.
        if cascade {
            let tables = self.tables.list_tables(&namespace).await.map_err(from_iceberg)?;
            self.check_droppable(name, &tables).await?;
            for table in tables {
                match self.tables.purge_table(&table).await {
                    Err(error) if !is_missing(&error) => return Err(from_iceberg(error)),
                    _ => {}
                }
            }
        }
        self.tables.drop_namespace(&namespace).await.map_err(from_iceberg)
    }

    async fn list_objects(&self, database: &str) -> Result<Vec<String>> {
        let tables = self.tables.list_tables(&self.namespace(database)?).await.map_err(from_iceberg)?;
        Ok(tables.into_iter().map(|table| table.name).collect())
    }

    async fn list_views(&self, _database: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    async fn object(&self, path: &ObjectPath) -> Result<Option<Arc<CatalogObject>>> {
        let metadata = MetadataName::parse(&path.object)?;
        let name = metadata.as_ref().map_or(&path.object, |metadata| &metadata.table);
        let Some(table) = self.load(&path.database, name).await? else { return Ok(None) };
        let table = match metadata {
            None => definition(&table),
            Some(metadata) => MetadataTable::describe(Arc::unwrap_or_clone(table), metadata.kind)?,
        };
        Ok(Some(Arc::new(CatalogObject::Table(table))))
    }

    async fn has_object(&self, path: &ObjectPath, is_view: bool) -> Result<bool> {
        if is_view {
            return Ok(false);
        }
        if MetadataName::parse(&path.object)?.is_some() {
            return Ok(self.object(path).await?.is_some());
        }
        let found = self.tables.table_exists(&self.ident(&path.database, &path.object)?).await;
        found.map_err(from_iceberg)
    }

    async fn create_object(&self, path: &ObjectPath, object: CatalogObject) -> Result<()> {
        let CatalogObject::Table(table) = object else { return Err(no_views()) };
        if table.options.get(CONNECTOR).is_some_and(|connector| connector == ICEBERG) {
            return Err(Error::validation(
                "Cannot create the table with 'connector'='iceberg' table property in an iceberg catalog, Please create table with 'connector'='iceberg' property in a non-iceberg catalog or create table without 'connector'='iceberg' related properties in an iceberg table.",
            )
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Leave 'connector' out: all tables of this catalog are Iceberg tables."));
        }
        self.create(path, &table).await.map(drop)
    }

    async fn alter_table(
        &self,
        path: &ObjectPath,
        table: CatalogTable,
        changes: &[TableChange],
    ) -> Result<()> {
        let name = table_name(&path.object)?;
        // A distribution is refused as the change that it is.
        check_definition(&CatalogTable { distribution: None, ..table })?;
        let loaded = self.load(&path.database, name).await?;
        let loaded = loaded.ok_or_else(|| {
            Error::not_found(format!("Table does not exist: {path}")).class(FlinkClass::ICEBERG_NO_SUCH_TABLE)
        })?;
        alter_table(&loaded, changes).await
    }

    async fn alter_view(&self, _path: &ObjectPath, _view: CatalogView) -> Result<()> {
        Err(no_views())
    }

    async fn list_partitions(&self, table: &CatalogTable) -> Result<Vec<PartitionName>> {
        match table.handle.get::<IcebergTable>() {
            Some(table) => list_partitions(&table).await,
            None => Ok(Vec::new()),
        }
    }

    async fn rename_object(&self, path: &ObjectPath, new_name: &str) -> Result<()> {
        let from = self.ident(&path.database, table_name(&path.object)?)?;
        let to = self.ident(&path.database, table_name(new_name)?)?;
        self.tables.rename_table(&from, &to).await.map_err(from_iceberg)
    }

    async fn drop_object(&self, path: &ObjectPath) -> Result<()> {
        let ident = self.ident(&path.database, table_name(&path.object)?)?;
        self.tables.purge_table(&ident).await.map_err(from_iceberg)
    }
}

/// Returns the properties that keep a database's comment as well.
fn namespace_properties(database: CatalogDatabase) -> HashMap<String, String> {
    let comment = database.comment.map(|comment| (COMMENT.to_owned(), comment));
    database.properties.into_iter().chain(comment).collect()
}
