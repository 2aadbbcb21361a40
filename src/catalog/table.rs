//! What a catalog stores: definitions, as resolved when they were created.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::schema::{Column, TableSchema};

/// A database's comment and properties.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogDatabase {
    /// The comment.
    pub comment: Option<String>,
    /// The properties.
    pub properties: BTreeMap<String, String>,
}

/// How a table is spread over buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// `HASH`, `RANGE` or none.
    pub kind: Option<String>,
    /// The columns.
    pub columns: Vec<String>,
    /// How many buckets.
    pub buckets: Option<u32>,
}

/// A table's definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogTable {
    /// Columns, key and watermark, types resolved and expressions expanded.
    pub schema: TableSchema,
    /// The comment.
    pub comment: Option<String>,
    /// PARTITIONED BY: columns, or transforms in their text form such as `bucket(16, id)`.
    pub partition_keys: Vec<String>,
    /// DISTRIBUTED BY.
    pub distribution: Option<Distribution>,
    /// WITH, as written: `${env:X}` is resolved where it is used.
    pub options: BTreeMap<String, String>,
    /// What its catalog or its connector has loaded of it for one statement.
    pub handle: TableHandle,
}

/// Returns the column of an entry of PARTITIONED BY, which may stand in a transform.
pub fn partition_column(key: &str) -> &str {
    let Some((transform, arguments)) = key.strip_suffix(')').and_then(|key| key.split_once('(')) else {
        return key;
    };
    match transform {
        "bucket" | "truncate" => arguments.split_once(", ").map_or(arguments, |(_, column)| column),
        "years" | "months" | "days" | "hours" => arguments,
        _ => key,
    }
}

/// What is known of a table beyond its definition, loaded when a statement looks the table up, for the connector that reads and
/// writes it. Opaque to everyone else, and no part of the definition: two tables are equal whatever their handles.
#[derive(Clone, Default)]
pub struct TableHandle(Option<Arc<dyn Any + Send + Sync>>);

impl TableHandle {
    /// Wraps what was loaded.
    pub fn new(loaded: Arc<dyn Any + Send + Sync>) -> TableHandle {
        TableHandle(Some(loaded))
    }

    /// Returns whether nothing was loaded.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns what was loaded, if it is of this type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }
}

impl PartialEq for TableHandle {
    fn eq(&self, _: &TableHandle) -> bool {
        true
    }
}

impl Eq for TableHandle {}

impl fmt::Debug for TableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "loaded" })
    }
}

/// A view's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogView {
    /// The query as the user wrote it.
    pub original_query: String,
    /// The query with every name in full and in back-ticks, `FROM` on a line of its own.
    pub expanded_query: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The comment.
    pub comment: Option<String>,
}

/// A table or a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogObject {
    /// A table.
    Table(CatalogTable),
    /// A view.
    View(CatalogView),
}

impl CatalogObject {
    /// Returns whether this is a view.
    pub fn is_view(&self) -> bool {
        matches!(self, CatalogObject::View(_))
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[Column] {
        match self {
            CatalogObject::Table(table) => &table.schema.columns,
            CatalogObject::View(view) => &view.columns,
        }
    }
}

/// A user function: stored and listed, but not executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogFunction {
    /// The class or the body behind AS.
    pub class_name: String,
    /// JAVA, SCALA, SQL or PYTHON.
    pub language: String,
    /// USING JAR or ARTIFACT.
    pub resources: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_names_its_column() {
        assert_eq!(partition_column("bucket(16, id)"), "id");
        assert_eq!(partition_column("days(ts)"), "ts");
        assert_eq!(partition_column("truncate(4, a, b)"), "a, b");
        assert_eq!(partition_column("dt"), "dt");
        assert_eq!(partition_column("price (net)"), "price (net)");
    }
}
