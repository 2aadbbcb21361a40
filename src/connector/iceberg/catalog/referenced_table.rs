//! `'connector' = 'iceberg'` in a catalog of another kind: the definition there names an Iceberg table, and makes it when it is first
//! read or written.

use iceberg::spec::{Schema, TableMetadata};

use super::catalog_options::{is_catalog_option, open_catalog};
use super::flink_catalog::FlinkCatalog;
use super::partition_fields::partition_texts;
use super::table_properties::CONNECTOR;
use super::table_schema::is_same_type;
use crate::catalog::{Catalog, CatalogDatabase, CatalogTable, ObjectPath, TableHandle};
use crate::connector::FactoryContext;
use crate::connector::iceberg::read_options::check_names;
use crate::connector::iceberg::type_mapping::{to_flink, to_iceberg};
use crate::error::{Error, ErrorKind, FlinkClass, Result};
use crate::options::{ConfigOption, OptionDef};
use crate::schema::TableSchema;

const CATALOG_NAME: ConfigOption<String> = ConfigOption::optional(
    "catalog-name",
    "The Iceberg catalog's own name, for a table outside of an Iceberg catalog, which must have it.",
);
const CATALOG_DATABASE: ConfigOption<String> =
    ConfigOption::optional("catalog-database", "The database in it; by default that of the table.");
const CATALOG_TABLE: ConfigOption<String> =
    ConfigOption::optional("catalog-table", "The table in it; by default the table's own name.");

/// The options by which a table names an Iceberg table; those of its catalog stand beside them.
pub(in crate::connector::iceberg) const REFERENCE_OPTIONS: &[&dyn OptionDef] =
    &[&CATALOG_NAME, &CATALOG_DATABASE, &CATALOG_TABLE];

/// Loads the Iceberg table behind a table of another catalog, and creates it if there is none.
///
/// # Errors
/// The options do not name a catalog, the table cannot be loaded, or its columns are not those that were declared.
pub(in crate::connector::iceberg) async fn load_table(ctx: &FactoryContext<'_>) -> Result<TableHandle> {
    let name = ctx.options.get_optional(&CATALOG_NAME)?.ok_or_else(|| {
        Error::validation(
            "Invalid catalog name: null. Set Key: 'catalog-name' , default: null (fallback keys: []) create table option.",
        )
        .class(FlinkClass::ILLEGAL_ARGUMENT)
        .hint("The table is in no Iceberg catalog: its WITH names one by 'catalog-name', 'catalog-type' and 'warehouse'.")
    })?;
    // A typing error would name another table, and make it.
    check_names(ctx)?;
    let catalog = open_catalog(&name, ctx.options).await?;
    let path = ObjectPath {
        database: ctx.options.get_optional(&CATALOG_DATABASE)?.unwrap_or_else(|| ctx.path.database.clone()),
        object: ctx.options.get_optional(&CATALOG_TABLE)?.unwrap_or_else(|| ctx.path.object.clone()),
    };
    let table = match catalog.load(&path.database, &path.object).await? {
        Some(table) => table,
        None => {
            create(&catalog, &path, ctx).await?;
            catalog.load(&path.database, &path.object).await?.ok_or_else(|| {
                Error::not_found(format!("table '{path}' was dropped while '{}' was looked up", ctx.table))
            })?
        }
    };
    check_columns(ctx.schema, table.metadata().current_schema()).map_err(|reason| {
        Error::validation(format!("table '{}' does not fit '{path}': {reason}", ctx.table))
    })?;
    Ok(TableHandle::new(table))
}

/// Creates the table, and its database. That others do it at the same time is well.
async fn create(catalog: &FlinkCatalog, path: &ObjectPath, ctx: &FactoryContext<'_>) -> Result<()> {
    let unless_exists = |created: Result<()>| match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created,
    };
    if catalog.database(&path.database).await?.is_none() {
        unless_exists(catalog.create_database(&path.database, CatalogDatabase::default()).await)?;
    }
    let properties = ctx.options.with_prefix("").into_iter();
    let table = CatalogTable {
        schema: ctx.schema.clone(),
        partition_keys: ctx.partition_keys.to_vec(),
        options: properties.filter(|(key, _)| key != CONNECTOR && !is_catalog_option(key)).collect(),
        ..CatalogTable::default()
    };
    unless_exists(catalog.create(path, &table).await.map(drop))
}

/// Checks that what a definition calls partitions are some: PARTITION (column = …) and OVERWRITE would else replace other rows than those
/// that it names. The definitions of Iceberg catalogs are made of the table, and always fit.
///
/// # Errors
/// A declared partition is none of the table's.
pub(in crate::connector::iceberg) fn check_partition_keys(
    ctx: &FactoryContext<'_>,
    metadata: &TableMetadata,
) -> Result<()> {
    let found = partition_texts(metadata.default_partition_spec(), metadata.current_schema());
    match ctx.partition_keys.iter().find(|key| !found.contains(key)) {
        None => Ok(()),
        Some(key) => Err(Error::validation(format!(
            "table '{}' is declared PARTITIONED BY ({key}), but the Iceberg table is partitioned by [{}]",
            ctx.table,
            found.join(", ")
        ))
        .hint("Declare the partitions that the table has, or leave PARTITIONED BY out.")),
    }
}

/// Checks that every declared column is in the table, with the type that it would have if we had made the table.
fn check_columns(declared: &TableSchema, schema: &Schema) -> Result<(), String> {
    for column in declared.physical_columns() {
        let Some(field) = schema.field_by_name(&column.name) else {
            return Err(format!("there is no column '{}'", column.name));
        };
        let wanted = to_iceberg(&column.data_type, &mut || 0).map_err(|error| error.message().to_owned())?;
        if !is_same_type(&wanted, &field.field_type) {
            return Err(format!(
                "column '{}' is {} there, not {}",
                column.name,
                to_flink(&field.field_type, false).summary(),
                column.data_type.summary()
            ));
        }
    }
    Ok(())
}
