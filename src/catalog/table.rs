//! What a catalog stores: definitions, as resolved when they were created.

use std::collections::BTreeMap;

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
