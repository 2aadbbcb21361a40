//! Metadata tables: ``SELECT * FROM `orders$snapshots` `` shows what Iceberg keeps about a table as rows. One file per table.
//!
//! They are tables of their catalog only by name: they are not listed, nothing can be written to them, and their rows are made anew
//! for every query, of the metadata as the query has found it.

mod cell;
mod entries;
mod files;
mod history;
mod manifests;
mod metadata_log_entries;
mod partitions;
mod readable_metrics;
mod refs;
mod schema;
mod snapshots;
mod source;
mod table_reader;

use std::fmt;
use std::sync::Arc;

use super::read_options::illegal;
use super::table::IcebergTable;
use crate::catalog::{CatalogTable, TableHandle};
use crate::connector::{DynamicTableSource, FactoryContext};
use crate::error::{Error, Result};
use crate::schema::TableSchema;

/// What stands between a table's name and that of a metadata table.
const SEPARATOR: char = '$';

/// Which metadata table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub(super) enum MetadataTableType {
    Snapshots,
    History,
    MetadataLogEntries,
    Refs,
    Manifests,
    Partitions,
    Files,
    DataFiles,
    DeleteFiles,
    Entries,
    PositionDeletes,
    AllFiles,
    AllDataFiles,
    AllDeleteFiles,
    AllManifests,
    AllEntries,
}

impl MetadataTableType {
    const NAMES: &[(&str, MetadataTableType)] = &[
        ("SNAPSHOTS", MetadataTableType::Snapshots),
        ("HISTORY", MetadataTableType::History),
        ("METADATA_LOG_ENTRIES", MetadataTableType::MetadataLogEntries),
        ("REFS", MetadataTableType::Refs),
        ("MANIFESTS", MetadataTableType::Manifests),
        ("PARTITIONS", MetadataTableType::Partitions),
        ("FILES", MetadataTableType::Files),
        ("DATA_FILES", MetadataTableType::DataFiles),
        ("DELETE_FILES", MetadataTableType::DeleteFiles),
        ("ENTRIES", MetadataTableType::Entries),
        ("POSITION_DELETES", MetadataTableType::PositionDeletes),
        ("ALL_FILES", MetadataTableType::AllFiles),
        ("ALL_DATA_FILES", MetadataTableType::AllDataFiles),
        ("ALL_DELETE_FILES", MetadataTableType::AllDeleteFiles),
        ("ALL_MANIFESTS", MetadataTableType::AllManifests),
        ("ALL_ENTRIES", MetadataTableType::AllEntries),
    ];

    /// Returns the metadata table of a name, in any case.
    fn of_name(name: &str) -> Option<MetadataTableType> {
        Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, table)| *table)
    }

    /// Returns whether its rows are about all snapshots, so that none can be chosen.
    fn is_of_all_snapshots(self) -> bool {
        use MetadataTableType::{AllDataFiles, AllDeleteFiles, AllEntries, AllFiles, AllManifests};
        matches!(self, AllFiles | AllDataFiles | AllDeleteFiles | AllManifests | AllEntries)
    }
}

impl fmt::Display for MetadataTableType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(_, table)| table == self).map_or("", |(name, _)| name))
    }
}

/// A name that has a metadata table in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetadataName {
    /// The table that it is about.
    pub(super) table: String,
    /// Which metadata table.
    pub(super) kind: MetadataTableType,
}

impl MetadataName {
    /// Takes a table's name apart; None if it is that of a plain table.
    ///
    /// # Errors
    /// There is no such metadata table, or the name has more than two parts.
    pub(super) fn parse(name: &str) -> Result<Option<MetadataName>> {
        let Some((table, kind)) = name.split_once(SEPARATOR) else { return Ok(None) };
        match MetadataTableType::of_name(kind) {
            Some(kind) => Ok(Some(MetadataName { table: table.to_owned(), kind })),
            None => {
                let names: Vec<String> = MetadataTableType::NAMES
                    .iter()
                    .map(|(name, _)| format!("${}", name.to_lowercase()))
                    .collect();
                Err(illegal(format!("Illegal table name:{name}"))
                    .hint(format!("The metadata tables of a table are {}.", names.join(", "))))
            }
        }
    }
}

/// A metadata table, loaded for a statement: the handle of its catalog table.
#[derive(Debug)]
pub(super) struct MetadataTable {
    table: IcebergTable,
    kind: MetadataTableType,
}

impl MetadataTable {
    /// Returns the definition of a metadata table of a loaded table.
    ///
    /// # Errors
    /// It is one that is not supported, or the table's partitioning cannot be understood.
    pub(super) fn describe(table: IcebergTable, kind: MetadataTableType) -> Result<CatalogTable> {
        let schema = schema_of(&table, kind)?;
        let options = [("connector".to_owned(), "iceberg".to_owned())].into();
        let handle = TableHandle::new(Arc::new(MetadataTable { table, kind }));
        Ok(CatalogTable { schema, options, handle, ..CatalogTable::default() })
    }

    /// Makes the source of the table.
    ///
    /// # Errors
    /// The options do not fit.
    pub(super) fn create_source(
        self: &Arc<Self>,
        ctx: &FactoryContext<'_>,
    ) -> Result<Arc<dyn DynamicTableSource>> {
        source::create_source(self, ctx)
    }

    /// Makes the error for a write.
    pub(super) fn not_written(&self, table: &str) -> Error {
        Error::unsupported(format!("metadata table '{table}' cannot be written")).hint(format!(
            "Write to table '{}': its metadata follows.",
            table.rsplit_once('$').map_or(table, |(table, _)| table)
        ))
    }
}

/// Returns the columns of a metadata table.
fn schema_of(table: &IcebergTable, kind: MetadataTableType) -> Result<TableSchema> {
    let metadata = table.metadata();
    let columns = match kind {
        MetadataTableType::Snapshots => snapshots::columns(),
        MetadataTableType::History => history::columns(),
        MetadataTableType::MetadataLogEntries => metadata_log_entries::columns(),
        MetadataTableType::Refs => refs::columns(),
        MetadataTableType::Manifests => manifests::columns(),
        MetadataTableType::AllManifests => manifests::all_columns(),
        MetadataTableType::Partitions => partitions::columns(metadata)?,
        MetadataTableType::Files
        | MetadataTableType::DataFiles
        | MetadataTableType::DeleteFiles
        | MetadataTableType::AllFiles
        | MetadataTableType::AllDataFiles
        | MetadataTableType::AllDeleteFiles => files::columns(metadata)?,
        MetadataTableType::Entries | MetadataTableType::AllEntries => entries::columns(metadata)?,
        MetadataTableType::PositionDeletes => {
            return Err(Error::unsupported(format!(
                "metadata table '{}$position_deletes' is not supported yet",
                table.ident().name()
            ))
            .hint(
                "`$delete_files` shows the files that hold the deletes, with the number of rows in each.",
            ));
        }
    };
    Ok(TableSchema::of_columns(columns))
}

#[cfg(test)]
mod tests;
