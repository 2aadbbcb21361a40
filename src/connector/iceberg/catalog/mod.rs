//! Catalogs of Iceberg tables: where tables are found, and through which they change.

mod catalog_options;
mod commit_catalog;
mod flink_catalog;
mod hadoop_catalog;
mod iceberg_catalogs;
mod jdbc_options;
mod metadata_commit;
mod metadata_file;
mod partition_fields;
mod referenced_table;
mod schema_update;
mod snapshot_choice;
mod sql_catalog;
mod table_alteration;
mod table_creation;
mod table_files;
mod table_properties;
mod table_schema;
#[cfg(test)]
mod testing;
mod unsupported_metadata;

pub(super) use catalog_options::catalog_options;
pub(super) use commit_catalog::{CommitCatalog, CommitError};
pub(super) use hadoop_catalog::HadoopCatalog;
pub(in crate::connector) use iceberg_catalogs::IcebergCatalogs;
pub(super) use metadata_file::metadata_folder;
pub(super) use referenced_table::{REFERENCE_OPTIONS, check_partition_keys, load_table};
use sql_catalog::{SchemaVersion, SqlCatalog, SqlCatalogOptions};
