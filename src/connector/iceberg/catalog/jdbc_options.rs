//! The options of catalogs in a SQL database, as Java's JdbcCatalog names them.

use super::{SchemaVersion, SqlCatalogOptions};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{ConfigOption, EnumValue, OptionDef, TableOptions};

const URI: ConfigOption<String> = ConfigOption::optional(
    "uri",
    "The database of a jdbc catalog: jdbc:sqlite:/path or jdbc:postgresql://host/database.",
);
const USER: ConfigOption<String> = ConfigOption::optional("jdbc.user", "The user of the database.");
const PASSWORD: ConfigOption<String> = ConfigOption::optional("jdbc.password", "The user's password.");
const SCHEMA_VERSION: ConfigOption<SchemaVersion> = ConfigOption::with_default(
    "jdbc.schema-version",
    "V0",
    "The layout of the catalog's tables in the database: V0, or V1, which has views.",
);
const MAKE_TABLES: ConfigOption<bool> = ConfigOption::with_default(
    "jdbc.init-catalog-tables",
    "true",
    "Whether the catalog's tables are made in the database where they are missing.",
);
const STRICT: ConfigOption<bool> = ConfigOption::with_default(
    "jdbc.strict-mode",
    "false",
    "Whether a table can be made only in a database that was created before.",
);

/// The options of a jdbc catalog; other keys that begin with `jdbc.` are parameters of the connection.
pub(super) const JDBC_OPTIONS: &[&dyn OptionDef] =
    &[&URI, &USER, &PASSWORD, &SCHEMA_VERSION, &MAKE_TABLES, &STRICT];

/// What connection parameters begin with.
const PREFIX: &str = "jdbc.";

impl EnumValue for SchemaVersion {
    const CLASS: &'static str = "org.apache.iceberg.jdbc.JdbcUtil.SchemaVersion";
    const VALUES: &'static [(&'static str, SchemaVersion)] =
        &[("V0", SchemaVersion::V0), ("V1", SchemaVersion::V1)];
}

/// Reads what makes a catalog in a SQL database.
///
/// # Errors
/// An option is missing or does not parse.
pub(super) fn sql_catalog_options(
    name: &str,
    warehouse: String,
    options: &TableOptions,
) -> Result<SqlCatalogOptions> {
    let uri = options.get_optional(&URI)?.ok_or_else(|| {
        Error::validation("JDBC connection URI is required")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Write 'uri' = 'jdbc:sqlite:/path/to/catalog.db' or 'jdbc:postgresql://host/database'.")
    })?;
    let mut parameters = options.with_prefix(PREFIX);
    for option in JDBC_OPTIONS {
        if let Some(known) = option.key().strip_prefix(PREFIX) {
            parameters.remove(known);
        }
    }
    Ok(SqlCatalogOptions {
        name: name.to_owned(),
        uri,
        warehouse,
        user: options.get_optional(&USER)?,
        password: options.get_optional(&PASSWORD)?,
        parameters: parameters.into_iter().collect(),
        schema_version: options.get(&SCHEMA_VERSION)?,
        make_tables: options.get(&MAKE_TABLES)?,
        is_strict: options.get(&STRICT)?,
    })
}
