//! Names of objects: inside a catalog, and in full.

use std::fmt;

/// A table or view inside a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPath {
    /// The database.
    pub database: String,
    /// The table or view.
    pub object: String,
}

impl ObjectPath {
    /// Creates a path.
    pub fn new(database: impl Into<String>, object: impl Into<String>) -> ObjectPath {
        ObjectPath { database: database.into(), object: object.into() }
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.object)
    }
}

/// A table or view with its catalog: `catalog.database.object`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIdentifier {
    /// The catalog.
    pub catalog: String,
    /// Database and object.
    pub path: ObjectPath,
}

impl ObjectIdentifier {
    /// Creates an identifier of three parts.
    pub fn new(
        catalog: impl Into<String>,
        database: impl Into<String>,
        object: impl Into<String>,
    ) -> ObjectIdentifier {
        ObjectIdentifier { catalog: catalog.into(), path: ObjectPath::new(database, object) }
    }

    /// Returns the name with every part in back-ticks, as it can be pasted into SQL.
    pub fn quoted(&self) -> String {
        let quote = |part: &str| format!("`{}`", part.replace('`', "``"));
        format!("{}.{}.{}", quote(&self.catalog), quote(&self.path.database), quote(&self.path.object))
    }
}

impl fmt::Display for ObjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.catalog, self.path)
    }
}
