//! A table as one statement sees it: its metadata, loaded once, and the catalog through which it changes.

use std::sync::Arc;

use iceberg::TableIdent;
use iceberg::io::FileIO;
use iceberg::spec::TableMetadata;
use iceberg::table::Table;

use super::catalog::CommitCatalog;
use super::error::from_iceberg;
use super::storage::FileStore;
use crate::error::Result;

/// A loaded table.
#[derive(Debug, Clone)]
pub(super) struct IcebergTable {
    catalog: Arc<dyn CommitCatalog>,
    table: Table,
}

impl IcebergTable {
    /// Wraps what a catalog has loaded.
    pub(super) fn new(catalog: Arc<dyn CommitCatalog>, table: Table) -> IcebergTable {
        IcebergTable { catalog, table }
    }

    /// Returns the catalog that holds the table.
    pub(super) fn catalog(&self) -> &Arc<dyn CommitCatalog> {
        &self.catalog
    }

    /// Returns the table as the crate knows it.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns namespace and name.
    pub(super) fn ident(&self) -> &TableIdent {
        self.table.identifier()
    }

    /// Returns the metadata table of its snapshots, as a query names it.
    pub(super) fn snapshots_name(&self) -> String {
        let levels = self.ident().namespace().iter().map(String::as_str);
        let path: String =
            self.catalog.name().into_iter().chain(levels).map(|level| format!("`{level}`.")).collect();
        format!("{path}`{}$snapshots`", self.ident().name())
    }

    /// Returns the metadata.
    pub(super) fn metadata(&self) -> &TableMetadata {
        self.table.metadata()
    }

    /// Returns how the crate reads and writes metadata files.
    pub(super) fn file_io(&self) -> &FileIO {
        self.table.file_io()
    }

    /// Returns where the table's files are.
    pub(super) fn files(&self) -> &FileStore {
        self.catalog.files()
    }

    /// Loads the table anew.
    ///
    /// # Errors
    /// It is gone, or its metadata cannot be read.
    pub(super) async fn reload(&self) -> Result<IcebergTable> {
        let table = self.catalog.load_table(self.ident()).await.map_err(from_iceberg)?;
        Ok(IcebergTable { catalog: Arc::clone(&self.catalog), table })
    }
}
