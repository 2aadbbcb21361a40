//! Which catalog options mean: those of `CREATE CATALOG … WITH ('type' = 'iceberg', …)`, and of tables that name their catalog
//! themselves.

use std::sync::{Arc, LazyLock};

use super::flink_catalog::FlinkCatalog;
use super::jdbc_options::{JDBC_OPTIONS, sql_catalog_options};
use super::{CommitCatalog, HadoopCatalog, SqlCatalog};
use crate::connector::iceberg::storage::FileStore;
use crate::error::{Error, FlinkClass, Result};
use crate::options::{ConfigOption, OptionDef, TableOptions, nearest};

const CATALOG_TYPE: ConfigOption<String> = ConfigOption::optional(
    "catalog-type",
    "Where tables are found: hadoop (folders) or jdbc (a database); 'catalog-impl' may say it instead.",
);
const CATALOG_IMPL: ConfigOption<String> =
    ConfigOption::optional("catalog-impl", "The Java class of a catalog, in the place of 'catalog-type'.");
const WAREHOUSE: ConfigOption<String> =
    ConfigOption::optional("warehouse", "The folder below which tables are stored.");
const DEFAULT_DATABASE: ConfigOption<String> = ConfigOption::with_default(
    "default-database",
    "default",
    "The database that USE CATALOG switches to, whether it exists or not.",
);
const BASE_NAMESPACE: ConfigOption<String> = ConfigOption::optional(
    "base-namespace",
    "The namespace whose children are the databases, its levels between dots.",
);
const CACHE_ENABLED: ConfigOption<bool> = ConfigOption::with_default(
    "cache-enabled",
    "true",
    "Checked without effect: every statement reads tables anew, and once.",
);
const CACHE_EXPIRATION: ConfigOption<i64> = ConfigOption::with_default(
    "cache.expiration-interval-ms",
    "-1",
    "Checked without effect, as 'cache-enabled'; 0 is refused.",
);
const IO_IMPL: ConfigOption<String> = ConfigOption::optional(
    "io-impl",
    "The Java class that reads and writes files; here the scheme of the location decides.",
);
/// The options of every catalog.
const COMMON_OPTIONS: &[&dyn OptionDef] = &[
    &CATALOG_TYPE,
    &CATALOG_IMPL,
    &WAREHOUSE,
    &DEFAULT_DATABASE,
    &BASE_NAMESPACE,
    &CACHE_ENABLED,
    &CACHE_EXPIRATION,
    &IO_IMPL,
];

/// The options of catalogs of all kinds.
static CATALOG_OPTIONS: LazyLock<Vec<&'static dyn OptionDef>> =
    LazyLock::new(|| [COMMON_OPTIONS, JDBC_OPTIONS].concat());

/// Returns the options of catalogs.
pub(in crate::connector::iceberg) fn catalog_options() -> &'static [&'static dyn OptionDef] {
    &CATALOG_OPTIONS
}

/// Keys and beginnings of keys that are a catalog's, and no property of a table, beside the options.
const CATALOG_KEYS: &[&str] = &[
    "type",
    "property-version",
    "clients",
    "hive-conf-dir",
    "hadoop-conf-dir",
    "credential",
    "token",
    "scope",
];
const CATALOG_PREFIXES: &[&str] =
    &["jdbc.", "s3.", "client.", "rest.", "header.", "oauth2-", "gcs.", "adls.", "hadoop.", "catalog-"];

/// Refuses keys of CREATE CATALOG that are nearly those of options: `default-databse` would silently be another database. What nobody
/// knows is taken, as in Flink.
///
/// # Errors
/// Names the option that was meant.
pub(super) fn check_names(name: &str, options: &TableOptions) -> Result<()> {
    // Any word may be a parameter of the database's driver.
    let is_free = |key: &str| key.starts_with("jdbc.") || key == "type" || CATALOG_KEYS.contains(&key);
    let known = || catalog_options().iter().map(|option| option.key());
    for key in options.keys().filter(|key| !is_free(key) && !known().any(|known| known == *key)) {
        if let Some(near) = nearest(&key.replace('_', "-"), known()) {
            return Err(Error::validation(format!("catalog '{name}' has no option '{key}'"))
                .hint(format!("Did you mean '{near}'?")));
        }
    }
    Ok(())
}

/// Returns whether an option belongs to a catalog.
pub(super) fn is_catalog_option(key: &str) -> bool {
    catalog_options().iter().any(|option| option.key() == key)
        || CATALOG_KEYS.contains(&key)
        || CATALOG_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Where a catalog keeps its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CatalogKind {
    Hadoop,
    Jdbc,
}

/// Which catalogs there are, by type and by class; None are those that are not built yet.
const KINDS: &[(&str, &str, Option<CatalogKind>)] = &[
    ("hadoop", "org.apache.iceberg.hadoop.HadoopCatalog", Some(CatalogKind::Hadoop)),
    ("jdbc", "org.apache.iceberg.jdbc.JdbcCatalog", Some(CatalogKind::Jdbc)),
    ("rest", "org.apache.iceberg.rest.RESTCatalog", None),
    ("nessie", "org.apache.iceberg.nessie.NessieCatalog", None),
    ("hive", "org.apache.iceberg.hive.HiveCatalog", None),
    ("glue", "org.apache.iceberg.aws.glue.GlueCatalog", None),
];

const SUPPORTED: &str =
    "Write 'catalog-type' = 'hadoop' with a 'warehouse', or 'jdbc' with 'uri' and 'warehouse'.";

/// Returns what kind of catalog the options ask for.
fn kind(name: &str, options: &TableOptions) -> Result<CatalogKind> {
    let (catalog_type, class) = (options.get_optional(&CATALOG_TYPE)?, options.get_optional(&CATALOG_IMPL)?);
    let (given, found) = match (&catalog_type, &class) {
        (Some(catalog_type), Some(class)) => {
            return Err(Error::validation(format!(
                "Cannot create catalog {name}, both catalog-type and catalog-impl are set: catalog-type={catalog_type}, catalog-impl={class}"
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Leave one of them out."));
        }
        (None, None) => {
            return Err(Error::validation(format!(
                "Cannot create catalog {name}, catalog-type is missing: it is hadoop or jdbc (hive, which Flink takes here, rest and nessie are not supported yet)"
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint(SUPPORTED));
        }
        (Some(given), None) => (given, KINDS.iter().find(|(kind, ..)| kind.eq_ignore_ascii_case(given))),
        (None, Some(given)) => (given, KINDS.iter().find(|(_, class, _)| class == given)),
    };
    match found {
        Some((_, _, Some(kind))) => Ok(*kind),
        Some((_, _, None)) => {
            Err(Error::unsupported(format!("Cannot create catalog {name}: '{given}' is not supported yet"))
                .hint(SUPPORTED))
        }
        None if class.is_some() => Err(Error::validation(format!(
            "Cannot find constructor for interface org.apache.iceberg.catalog.Catalog\n\tMissing {given} [java.lang.ClassNotFoundException: {given}]"
        ))
        .class(FlinkClass::NO_SUCH_METHOD)
        .hint(SUPPORTED)),
        None => Err(Error::unsupported(format!(
            "Unknown catalog-type: {given} (Must be 'hive', 'hadoop' or 'rest')"
        ))
        .hint(SUPPORTED)),
    }
}

/// Completes a warehouse that is a relative path: it is meant from where the process was started.
fn absolute(warehouse: String) -> Result<String> {
    if warehouse.is_empty() || warehouse.starts_with('/') || warehouse.contains(':') {
        return Ok(warehouse);
    }
    let path = std::path::absolute(&warehouse)
        .map_err(|error| Error::validation(format!("warehouse '{warehouse}' is no path")).caused_by(error))?;
    path.into_os_string().into_string().map_err(|path| {
        Error::validation(format!("warehouse '{}' is no text in UTF-8", path.to_string_lossy()))
    })
}

/// Opens the catalog that options describe. Those that nobody knows are taken without a word, as in Flink.
///
/// # Errors
/// The options contradict each other or miss one, or the catalog cannot be reached.
pub(super) async fn open_catalog(name: &str, options: &TableOptions) -> Result<FlinkCatalog> {
    let kind = kind(name, options)?;
    check_io(options)?;
    options.get(&CACHE_ENABLED)?;
    if options.get(&CACHE_EXPIRATION)? == 0 {
        return Err(Error::validation("cache.expiration-interval-ms is not allowed to be 0.")
            .class(FlinkClass::ILLEGAL_ARGUMENT));
    }
    let warehouse = absolute(options.get_optional(&WAREHOUSE)?.unwrap_or_default())?;
    let tables: Arc<dyn CommitCatalog> = match kind {
        CatalogKind::Hadoop => Arc::new(HadoopCatalog::new(&warehouse, FileStore::local())?),
        CatalogKind::Jdbc => {
            let options = sql_catalog_options(name, warehouse.clone(), options)?;
            Arc::new(SqlCatalog::open(options, FileStore::local()).await?)
        }
    };
    if tables.files().exists(&warehouse).await? {
        return Err(Error::validation(format!("warehouse '{warehouse}' of catalog '{name}' is a file"))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Name a folder: it is made with the first database."));
    }
    let mut elsewhere = options.with_prefix("");
    elsewhere.remove("type");
    elsewhere.insert("catalog-name".to_owned(), name.to_owned());
    let base_namespace = options.get_optional(&BASE_NAMESPACE)?.unwrap_or_default();
    Ok(FlinkCatalog {
        name: name.to_owned(),
        tables,
        default_database: options.get(&DEFAULT_DATABASE)?,
        base_namespace: base_namespace
            .split('.')
            .filter(|level| !level.is_empty())
            .map(str::to_owned)
            .collect(),
        options: elsewhere,
    })
}

/// Checks the class that reads and writes files: all we know go by the scheme of a location.
fn check_io(options: &TableOptions) -> Result<()> {
    let by_scheme = ["org.apache.iceberg.hadoop.HadoopFileIO", "org.apache.iceberg.io.ResolvingFileIO"];
    match options.get_optional(&IO_IMPL)? {
        Some(class) if !by_scheme.contains(&class.as_str()) => {
            Err(Error::unsupported(format!("'io-impl' = '{class}' is not supported yet"))
                .hint("Leave it out: local files are read and written by the scheme of their location."))
        }
        _ => Ok(()),
    }
}
