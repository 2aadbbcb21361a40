//! Names: catalogs hold databases, databases hold tables and views; the manager resolves what a statement says.

mod object_path;
mod table;

pub use object_path::{ObjectIdentifier, ObjectPath};
pub use table::{CatalogDatabase, CatalogFunction, CatalogObject, CatalogTable, CatalogView, Distribution};

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

/// A place that holds databases with tables and views. Every call may do I/O; answers are never cached by callers beyond one
/// statement.
#[async_trait]
pub trait Catalog: Send + Sync + fmt::Debug {
    /// Returns the database that USE CATALOG switches to.
    fn default_database(&self) -> &str;

    /// Returns the databases' names, in any order.
    async fn list_databases(&self) -> Result<Vec<String>>;

    /// Returns a database, or None.
    async fn database(&self, name: &str) -> Result<Option<CatalogDatabase>>;

    /// Creates a database that does not exist; the manager has checked.
    async fn create_database(&self, name: &str, database: CatalogDatabase) -> Result<()>;

    /// Replaces a database's comment and properties.
    async fn alter_database(&self, name: &str, database: CatalogDatabase) -> Result<()>;

    /// Drops a database; without `cascade` it must be empty.
    async fn drop_database(&self, name: &str, cascade: bool) -> Result<()>;

    /// Returns the names of a database's tables and views, in any order.
    async fn list_objects(&self, database: &str) -> Result<Vec<String>>;

    /// Returns a table or view, or None.
    async fn object(&self, path: &ObjectPath) -> Result<Option<Arc<CatalogObject>>>;

    /// Creates a table or view that does not exist.
    async fn create_object(&self, path: &ObjectPath, object: CatalogObject) -> Result<()>;

    /// Replaces a table or view with a changed one of the same kind.
    async fn alter_object(&self, path: &ObjectPath, object: CatalogObject) -> Result<()>;

    /// Renames a table or view within its database.
    async fn rename_object(&self, path: &ObjectPath, new_name: &str) -> Result<()>;

    /// Drops a table or view.
    async fn drop_object(&self, path: &ObjectPath) -> Result<()>;

    /// Returns the procedures that CALL can run.
    ///
    /// # Errors
    /// The catalog has none at all, as Flink's in-memory catalog.
    fn procedures(&self) -> Result<Vec<Procedure>> {
        Err(Error::unsupported("listProcedures is not implemented for this catalog")
            .class(FlinkClass::UNSUPPORTED_OPERATION))
    }
}
