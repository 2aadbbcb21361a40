//! Catalogs of Iceberg tables: where tables are found, and through which they change.

mod commit_catalog;
mod iceberg_catalogs;

pub(super) use commit_catalog::{CommitCatalog, CommitError};
pub(in crate::connector) use iceberg_catalogs::IcebergCatalogs;
pub(super) use iceberg_catalogs::load_table;
