//! The columns of a table as declared, its primary key and its watermark.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::DataType;

/// How a column gets its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// Stored in the table.
    Physical,
    /// Read from, and unless virtual written to, the connector's metadata.
    Metadata {
        /// The connector's name for it; the column's name if None.
        key: Option<String>,
        /// Whether INSERT leaves it out.
        is_virtual: bool,
    },
    /// Computed after reading.
    Computed {
        /// The expression in Flink's expanded text: every identifier quoted.
        expression: String,
    },
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name, case preserved.
    pub name: String,
    /// The type.
    pub data_type: DataType,
    /// Where its values come from.
    pub kind: ColumnKind,
    /// The comment.
    pub comment: Option<String>,
}

impl Column {
    /// Creates a physical column.
    pub fn physical(name: impl Into<String>, data_type: DataType) -> Column {
        Column { name: name.into(), data_type, kind: ColumnKind::Physical, comment: None }
    }

    /// Returns whether INSERT writes the column.
    pub fn is_persisted(&self) -> bool {
        match &self.kind {
            ColumnKind::Physical => true,
            ColumnKind::Metadata { is_virtual, .. } => !is_virtual,
            ColumnKind::Computed { .. } => false,
        }
    }

    /// Returns whether the column is stored in the table itself.
    pub fn is_physical(&self) -> bool {
        self.kind == ColumnKind::Physical
    }
}

/// A primary key that nobody enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryKey {
    /// The constraint's name.
    pub name: String,
    /// Its columns in the order of the constraint.
    pub columns: Vec<String>,
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermark {
    /// The row-time column, or the path to a nested field.
    pub column: Vec<String>,
    /// The expression in expanded text.
    pub expression: String,
    /// The expression's type.
    pub data_type: DataType,
}

/// Columns, key and watermark of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableSchema {
    /// All columns in the order of declaration.
    pub columns: Vec<Column>,
    /// The primary key, if there is one.
    pub primary_key: Option<PrimaryKey>,
    /// The watermark, if there is one.
    pub watermark: Option<Watermark>,
}

impl TableSchema {
    /// Creates a schema of physical columns.
    pub fn of_columns(columns: Vec<Column>) -> TableSchema {
        TableSchema { columns, primary_key: None, watermark: None }
    }

    /// Returns a column by name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Returns the columns that the connector stores, in order.
    pub fn physical_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_physical())
    }

    /// Returns the columns that INSERT writes, in order.
    pub fn sink_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_persisted())
    }

    /// Returns the Arrow schema of the physical columns.
    pub fn physical_arrow(&self) -> SchemaRef {
        arrow_schema(self.physical_columns())
    }

    /// Returns the Arrow schema of all columns.
    pub fn to_arrow(&self) -> SchemaRef {
        arrow_schema(self.columns.iter())
    }
}

/// Returns the Arrow schema of the given columns.
fn arrow_schema<'a>(columns: impl Iterator<Item = &'a Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.map(|column| column.data_type.to_field(&column.name)).collect::<Vec<_>>()))
}
