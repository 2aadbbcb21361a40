//! What the rows of a table that is declared look like, whichever tables of the server they come from.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};

use super::options::Unrepresentable;
use crate::schema::{Column, DataType, TypeRoot};

/// The columns of a batch: physical ones, then metadata.
#[derive(Debug, Clone)]
pub(super) struct RowShape {
    /// `catalog.database.table`, for messages.
    pub(super) table: String,
    /// The physical columns that are read, found by their names in the server's tables.
    pub(super) physical: Vec<Column>,
    /// The positions of the declared primary key among them; empty if none is declared, or not all of it is read.
    pub(super) key: Vec<usize>,
    /// The metadata columns behind them.
    pub(super) metadata: Vec<Metadata>,
    /// The kinds of rows.
    pub(super) changes: Changes,
    /// Whether anybody reads `-U`. Rows that are all `+I` have those of earlier versions among them if it is set.
    pub(super) wants_update_before: bool,
    /// What becomes of a value that its declared type does not hold.
    pub(super) unrepresentable: Unrepresentable,
}

/// Which rows a change becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    /// `changelog-mode` = all: an update is `-U` and `+U`. The server must send whole old rows.
    All,
    /// `changelog-mode` = upsert: an update is `+U`, and a `-D` may hold no more than the key.
    Upsert,
    /// `scan.read-changelog-as-append-only.enabled`: every row is `+I`; the column `row_kind` tells what it was.
    AppendOnly,
}

/// What a metadata column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metadata {
    /// `op_ts`: when the transaction was committed; 1970 for rows of the snapshot. TIMESTAMP_LTZ(3), not null.
    CommitTime,
    /// `database_name`. STRING, not null.
    DatabaseName,
    /// `schema_name`. STRING, not null.
    SchemaName,
    /// `table_name`. STRING, not null.
    TableName,
    /// `row_kind`: `+I`, `-U`, `+U`, `-D`. STRING, not null.
    RowKind,
}

impl RowShape {
    /// Returns what batches look like in Arrow.
    pub(super) fn arrow_schema(&self) -> SchemaRef {
        let physical = self.physical.iter().map(|column| column.data_type.to_field(&column.name));
        let metadata = self.metadata.iter().map(|metadata| metadata.data_type().to_field(metadata.key()));
        Arc::new(Schema::new(physical.chain(metadata).collect::<Vec<_>>()))
    }
}

impl Metadata {
    /// All of them, in the order of the reference.
    pub(super) const ALL: [Metadata; 5] = [
        Metadata::CommitTime,
        Metadata::DatabaseName,
        Metadata::SchemaName,
        Metadata::TableName,
        Metadata::RowKind,
    ];

    /// Returns whether it tells of a change and not of a row.
    pub(super) fn is_of_change(self) -> bool {
        matches!(self, Metadata::CommitTime | Metadata::RowKind)
    }

    /// Returns the key that `METADATA FROM` names.
    pub(super) fn key(self) -> &'static str {
        match self {
            Metadata::CommitTime => "op_ts",
            Metadata::DatabaseName => "database_name",
            Metadata::SchemaName => "schema_name",
            Metadata::TableName => "table_name",
            Metadata::RowKind => "row_kind",
        }
    }

    /// Returns the type of its values.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Metadata::CommitTime => TypeRoot::TimestampLtz(3).not_null(),
            _ => TypeRoot::STRING.not_null(),
        }
    }
}
