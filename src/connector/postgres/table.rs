//! A table as its server describes it, which may be ahead of what a stream says of the same table.

use super::pgoutput::ReplicaIdentity;

/// A table that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgTable {
    /// Its number, which stays when it is renamed.
    pub(super) oid: u32,
    /// The schema that it is in.
    pub(super) schema: String,
    /// Its name.
    pub(super) name: String,
    /// Its columns, in order, those left out that a stream never carries (generated ones, unless they are published).
    pub(super) columns: Vec<PgColumn>,
    /// The positions of the primary key's columns, in the order of the key; empty if there is none.
    pub(super) key: Vec<usize>,
    /// What the log says of a row that is updated or deleted.
    pub(super) identity: ReplicaIdentity,
    /// Whether its rows are in partitions.
    pub(super) is_partitioned: bool,
    /// About how many rows it has; None if nobody has counted.
    pub(super) row_estimate: Option<u64>,
    /// How many pages it has now; 0 where it is partitioned.
    pub(super) pages: u64,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgColumn {
    /// Its name.
    pub(super) name: String,
    /// The number of its type.
    pub(super) type_oid: u32,
    /// What the type is declared with: lengths, precision and scale; -1 if nothing.
    pub(super) type_modifier: i32,
}

impl PgTable {
    /// Returns schema and name as messages show them.
    pub(super) fn label(&self) -> String {
        format!("{}.{}", self.schema, self.name)
    }

    /// Returns schema and name as SQL takes them.
    pub(super) fn sql(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.name))
    }

    /// Returns what FROM takes to read its own rows: those of tables that inherit from it are not published as its own.
    pub(super) fn own_rows(&self) -> String {
        if self.is_partitioned { self.sql() } else { format!("ONLY {}", self.sql()) }
    }
}

/// Returns a name as SQL takes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
