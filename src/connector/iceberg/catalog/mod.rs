//! Catalogs of Iceberg tables: where tables are found, and through which they change.

mod commit_catalog;
mod hadoop_catalog;
mod iceberg_catalogs;
mod metadata_commit;
mod metadata_file;
mod sql_catalog;
mod table_files;
#[cfg(test)]
mod testing;

pub(super) use commit_catalog::{CommitCatalog, CommitError};
pub(super) use hadoop_catalog::HadoopCatalog;
pub(in crate::connector) use iceberg_catalogs::IcebergCatalogs;
pub(super) use iceberg_catalogs::load_table;
pub(super) use sql_catalog::{SchemaVersion, SqlCatalog, SqlCatalogOptions};
