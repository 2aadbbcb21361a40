//! How `CREATE CATALOG … WITH ('type' = …)` becomes a catalog. To add a type, implement `CatalogFactory` and add one line to
//! `connector::CATALOG_FACTORIES`, the list that the session gives to the manager.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Catalog, InMemoryCatalog};
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, TableOptions, nearest, resolve_references};

/// The option that picks the factory.
pub(super) const TYPE: &str = "type";

/// What a factory knows of the catalog that it makes.
#[derive(Debug)]
pub struct CatalogContext {
    /// The catalog's name.
    pub name: String,
    /// The options, references resolved. The entry `type` is marked as read.
    pub options: TableOptions,
}

/// Makes catalogs of one type.
#[async_trait]
pub trait CatalogFactory: Sync {
    /// Returns the value of option `type`.
    fn identifier(&self) -> &'static str;

    /// Returns one sentence on what the catalog is for.
    fn doc(&self) -> &'static str;

    /// Returns the options with fixed keys, `type` left out.
    fn options(&self) -> &'static [&'static dyn OptionDef];

    /// Returns whether the catalog is all there is of its tables, so that changing its options must not make a new one.
    fn is_only_copy(&self) -> bool {
        false
    }

    /// Creates and opens the catalog: where there is a server, it is reached now.
    ///
    /// # Errors
    /// The options do not fit, or the place cannot be reached.
    async fn create(&self, ctx: CatalogContext) -> Result<Arc<dyn Catalog>>;
}

/// `generic_in_memory`.
#[derive(Debug)]
pub struct GenericInMemory;

const DEFAULT_DATABASE: ConfigOption<String> = ConfigOption::with_default(
    "default-database",
    "default",
    "The database that the catalog starts with and that USE CATALOG switches to.",
);

#[async_trait]
impl CatalogFactory for GenericInMemory {
    fn identifier(&self) -> &'static str {
        "generic_in_memory"
    }

    fn doc(&self) -> &'static str {
        "Keeps tables and views in the session's memory."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&DEFAULT_DATABASE]
    }

    fn is_only_copy(&self) -> bool {
        true
    }

    async fn create(&self, ctx: CatalogContext) -> Result<Arc<dyn Catalog>> {
        let default_database = ctx.options.get(&DEFAULT_DATABASE)?;
        ctx.options.reject_unknown()?;
        if default_database.trim().is_empty() {
            return Err(Error::validation("defaultDatabase cannot be null or empty"));
        }
        Ok(Arc::new(InMemoryCatalog::new(ctx.name, default_database)))
    }
}

/// Returns the factory that the options name.
///
/// # Errors
/// Option `type` is missing or names nothing; Flink's text with all identifiers, and the nearest one as a hint.
pub(super) fn find_factory(
    factories: &'static [&'static dyn CatalogFactory],
    options: &std::collections::BTreeMap<String, String>,
) -> Result<&'static dyn CatalogFactory> {
    let Some(identifier) = options.get(TYPE) else {
        return Err(Error::validation(
            "Catalog options do not contain an option key 'type' for discovering a catalog.",
        ));
    };
    factories.iter().copied().find(|factory| factory.identifier() == identifier).ok_or_else(|| {
        let mut available: Vec<&str> = factories.iter().map(|factory| factory.identifier()).collect();
        available.sort_unstable();
        let error = Error::validation(format!(
            "Could not find any factory for identifier '{identifier}' that implements 'org.apache.flink.table.factories.CatalogFactory' in the classpath.\n\nAvailable factory identifiers are:\n\n{}",
            available.join("\n")
        ));
        match nearest(identifier, available.iter().copied()) {
            Some(near) => error.hint(format!("Did you mean '{near}'?")),
            None => error,
        }
    })
}

/// Resolves the references in a catalog's options and marks `type` as read.
pub(super) fn resolve_options(
    identifier: &str,
    options: &std::collections::BTreeMap<String, String>,
) -> Result<TableOptions> {
    let resolved = options.iter().map(|(key, value)| Ok((key.clone(), resolve_references(key, value)?)));
    let options = TableOptions::new(identifier, resolved.collect::<Result<_>>()?);
    options.raw(TYPE);
    options.raw("property-version");
    Ok(options)
}
