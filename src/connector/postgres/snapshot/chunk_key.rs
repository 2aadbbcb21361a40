//! By which column a table is cut.
//!
//! Where its key is one column whose order is the same everywhere, ranges of it may be read each under a snapshot of its own, so that
//! a restart goes on behind those that were read. Any other table is read page by page, and because rows move between pages, under
//! one snapshot from the first page to the last.

use super::key_value::KeyType;
use crate::connector::postgres::pgoutput::ReplicaIdentity;
use crate::connector::postgres::table::PgTable;
use crate::error::{Error, Result};

/// The column of a key by which a table is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkKey {
    pub(super) column: String,
    pub(super) key_type: KeyType,
}

impl ChunkKey {
    /// Chooses the column, or none: the table is then read by its pages.
    ///
    /// # Errors
    /// `wanted`, which the user has named, is not there or will not do.
    pub(super) fn choose(table: &PgTable, wanted: Option<&str>) -> Result<Option<ChunkKey>> {
        let position = match (wanted, table.key.as_slice()) {
            (Some(wanted), _) => match table.columns.iter().position(|column| column.name == wanted) {
                Some(position) => position,
                None => {
                    let hint = format!("Name another column, or {WITHOUT}");
                    return Err(unfit(table, wanted, "it has no such column").hint(hint));
                }
            },
            (None, [position]) => *position,
            (None, _) => return Ok(None),
        };
        let Some(column) = table.columns.get(position) else { return Ok(None) };
        // The stream must tell the old value when it changes, or nobody knows which range the row was in.
        let is_told = match table.identity {
            ReplicaIdentity::Full => true,
            ReplicaIdentity::Default | ReplicaIdentity::Nothing => table.key.contains(&position),
            ReplicaIdentity::Index => false,
        };
        match KeyType::of(column.type_oid) {
            Some(key_type) if is_told => Ok(Some(ChunkKey { column: column.name.clone(), key_type })),
            _ if wanted.is_none() => Ok(None),
            Some(_) => {
                Err(unfit(table, &column.name, "the log does not tell its old value when a row is updated")
                    .hint(format!(
                        "Run ALTER TABLE {} REPLICA IDENTITY FULL; on the server, or {WITHOUT}",
                        table.sql()
                    )))
            }
            None => Err(unfit(
                table,
                &column.name,
                "its type is none whose order is the same on every server",
            )
            .hint(format!(
                "Those are smallint, integer, bigint, numeric, uuid, date and timestamp. Otherwise {WITHOUT}"
            ))),
        }
    }
}

/// What to do about an option that names the wrong column.
const WITHOUT: &str = "leave 'scan.incremental.snapshot.chunk.key-column' out: tables are cut by their primary keys, or read page by page.";

/// The error of an option that names the wrong column.
fn unfit(table: &PgTable, column: &str, why: &str) -> Error {
    Error::validation(format!(
        "table '{}' cannot be read in ranges of column '{column}': {why}",
        table.label()
    ))
}

/// Returns a table as LOCK and FROM take it: with its partitions, but without tables that inherit from it.
pub(super) fn source(table: &PgTable) -> String {
    if table.is_partitioned { table.sql() } else { format!("ONLY {}", table.sql()) }
}
