//! Names: catalogs hold databases, databases hold tables and views; the manager resolves what a statement says.

mod factory;
mod functions;
mod manager;
mod memory;
mod object_path;
mod planned;
mod store;
mod table;
mod table_change;

pub use factory::{CatalogContext, CatalogFactory, GenericInMemory};
pub use functions::{FunctionRegistry, StoredFunction};
pub use manager::{CatalogManager, ManagerSettings, ResolvedObject};
pub use memory::InMemoryCatalog;
pub use object_path::{ObjectIdentifier, ObjectPath};
pub(crate) use planned::JDBC;
pub use store::{CatalogDescriptor, CatalogStore, FileCatalogStore, MemoryCatalogStore};
pub use table::{
    CatalogDatabase, CatalogFunction, CatalogObject, CatalogTable, CatalogView, Distribution, TableHandle,
    partition_column,
};
pub use table_change::{ChangeKind, ColumnPosition, TableChange};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, FlinkClass, Result};
use crate::schema::DataType;

/// A procedure that CALL runs: named, typed arguments and the columns of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Procedure {
    /// `namespace.name`.
    pub name: String,
    /// Arguments in order; the flag says whether one may be left out.
    pub arguments: Vec<(String, DataType, bool)>,
    /// Columns of the result.
    pub result: Vec<(String, DataType)>,
}

/// A partition: its keys in order, each with its value as a text.
pub type PartitionName = Vec<(String, String)>;

/// A place that holds databases with tables and views. Every call may do I/O; answers are never cached by callers beyond one
/// statement. What exists already, or does not exist, is for the catalog to say, in its own words.
#[async_trait]
pub trait Catalog: Send + Sync + fmt::Debug {
    /// Returns the database that USE CATALOG switches to.
    fn default_database(&self) -> &str;

    /// Returns the databases' names, in any order.
    async fn list_databases(&self) -> Result<Vec<String>>;

    /// Returns a database, or None.
    async fn database(&self, name: &str) -> Result<Option<CatalogDatabase>>;

    /// Creates a database. One of that name is an error of kind `AlreadyExists`.
    async fn create_database(&self, name: &str, database: CatalogDatabase) -> Result<()>;

    /// Replaces a database's comment and properties.
    async fn alter_database(&self, name: &str, database: CatalogDatabase) -> Result<()>;

    /// Drops a database; without `cascade` it must be empty.
    async fn drop_database(&self, name: &str, cascade: bool) -> Result<()>;

    /// Returns the names of a database's tables and views, in any order.
    async fn list_objects(&self, database: &str) -> Result<Vec<String>>;

    /// Returns the names of a database's views, in any order.
    async fn list_views(&self, database: &str) -> Result<Vec<String>> {
        let mut views = Vec::new();
        for name in self.list_objects(database).await? {
            let object = self.object(&ObjectPath::new(database, &name)).await?;
            if object.is_some_and(|object| object.is_view()) {
                views.push(name);
            }
        }
        Ok(views)
    }

    /// Returns a table or view, or None.
    async fn object(&self, path: &ObjectPath) -> Result<Option<Arc<CatalogObject>>>;

    /// Returns whether there is a table, or a view, of this name; a table that is too damaged to be an `object` is one: it can be dropped.
    async fn has_object(&self, path: &ObjectPath, is_view: bool) -> Result<bool> {
        Ok(self.object(path).await?.is_some_and(|object| object.is_view() == is_view))
    }

    /// Creates a table or view. One of that name is an error of kind `AlreadyExists`; whether its database must exist is the
    /// catalog's affair.
    async fn create_object(&self, path: &ObjectPath, object: CatalogObject) -> Result<()>;

    /// Changes a table: `table` is what becomes of it, `changes` are the steps that lead there.
    async fn alter_table(
        &self,
        path: &ObjectPath,
        table: CatalogTable,
        changes: &[TableChange],
    ) -> Result<()>;

    /// Replaces a view with a changed one.
    async fn alter_view(&self, path: &ObjectPath, view: CatalogView) -> Result<()>;

    /// Renames a table or view within its database.
    async fn rename_object(&self, path: &ObjectPath, new_name: &str) -> Result<()>;

    /// Drops a table or view.
    async fn drop_object(&self, path: &ObjectPath) -> Result<()>;

    /// Returns what Flink's messages call the catalog.
    fn class_name(&self) -> &'static str {
        "this catalog"
    }

    /// Returns whether PARTITIONED BY may hold transforms such as `bucket(16, id)`.
    fn supports_partition_transforms(&self) -> bool {
        false
    }

    /// Returns the connector of all its tables, where the catalog gives it and CREATE TABLE does not name it. The definitions of such
    /// a catalog show it, and come with what it has loaded of them.
    fn connector(&self) -> Option<&'static str> {
        None
    }

    /// Returns what whoever created a table so, or changed it to that, should know before they use it.
    fn caution(&self, _table: &CatalogTable) -> Option<String> {
        None
    }

    /// Returns the options by which a table of another catalog means one of a catalog with a `connector`: what LIKE takes over.
    fn options_elsewhere(&self, _path: &ObjectPath) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Returns the partitions of a table that `object` has returned, sorted by their values; none where tables keep no list of them.
    async fn list_partitions(&self, _table: &CatalogTable) -> Result<Vec<PartitionName>> {
        Ok(Vec::new())
    }

    /// Returns the procedures that CALL can run.
    ///
    /// # Errors
    /// The catalog has none at all, as Flink's in-memory catalog.
    fn procedures(&self) -> Result<Vec<Procedure>> {
        let message = format!("listProcedures is not implemented for {}.", self.class_name());
        Err(Error::unsupported(message).class(FlinkClass::UNSUPPORTED_OPERATION))
    }
}
