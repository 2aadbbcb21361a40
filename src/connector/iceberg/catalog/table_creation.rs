//! From a definition of Flink's to a new Iceberg table: schema, partitions, properties, and what is refused.

use std::collections::HashMap;

use iceberg::TableCreation;
use iceberg::spec::FormatVersion;

use super::partition_fields::partition_spec;
use super::table_properties::{COMMENT, FORMAT_VERSION, LOCATION, check_settable, format_version};
use super::table_schema::{check_types, new_schema};
use crate::catalog::CatalogTable;
use crate::connector::iceberg::known_properties::check_property;
use crate::error::{Error, Result};

/// Properties of tables that we make, unless the user sets them. Old metadata files would be kept for ever otherwise: a job that
/// commits every second makes 86 400 a day.
const DEFAULT_PROPERTIES: &[(&str, &str)] = &[
    ("write.metadata.delete-after-commit.enabled", "true"),
    ("write.metadata.previous-versions-max", "20"),
    ("write.parquet.compression-codec", "zstd"),
];

/// Makes what a catalog needs to create a table.
///
/// # Errors
/// The definition holds what an Iceberg table cannot have.
pub(super) fn table_creation(name: &str, table: &CatalogTable) -> Result<TableCreation> {
    check_definition(table)?;
    let version = match table.options.get(FORMAT_VERSION) {
        Some(version) => format_version(version)?,
        None => FormatVersion::V2,
    };
    let schema = new_schema(&table.schema)?;
    check_types(&schema, version)?;
    let spec = partition_spec(&table.partition_keys, &schema)?;
    Ok(TableCreation::builder()
        .name(name.to_owned())
        .location_opt(table.options.get(LOCATION).cloned())
        .schema(schema)
        .partition_spec(spec)
        .properties(properties(table)?)
        .format_version(version)
        .build())
}

/// Checks that a definition holds nothing but what Iceberg can store.
///
/// # Errors
/// Computed and metadata columns, watermarks, buckets.
pub(super) fn check_definition(table: &CatalogTable) -> Result<()> {
    let unsupported =
        |what: &str| Error::unsupported(format!("Creating table with {what} is not supported yet."));
    if table.schema.columns.iter().any(|column| !column.is_physical()) {
        return Err(unsupported("computed columns").hint(
            "Compute the column in a view, or in a table of another catalog: CREATE TABLE default_catalog.… (…) LIKE this one.",
        ));
    }
    if table.schema.watermark.is_some() {
        return Err(unsupported("watermark specs")
            .hint("Declare it in a table of another catalog: CREATE TABLE default_catalog.… (WATERMARK …) LIKE this one."));
    }
    if table.distribution.is_some() {
        return Err(Error::unsupported("Iceberg tables have no DISTRIBUTED BY")
            .hint("Write PARTITIONED BY (bucket(16, id)) for tables in buckets."));
    }
    Ok(())
}

/// Returns the properties of a new table.
fn properties(table: &CatalogTable) -> Result<HashMap<String, String>> {
    let mut properties: HashMap<String, String> =
        DEFAULT_PROPERTIES.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    for (key, value) in &table.options {
        if matches!(key.as_str(), LOCATION | FORMAT_VERSION) {
            continue;
        }
        check_settable(key)?;
        check_property(key, value)?;
        properties.insert(key.clone(), value.clone());
    }
    if let Some(comment) = table.comment.as_ref().filter(|comment| !comment.is_empty()) {
        properties.insert(COMMENT.to_owned(), comment.clone());
    }
    Ok(properties)
}
