//! The tables and views that a statement names, looked up once before binding: the binder itself does no I/O.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast;

use crate::catalog::{CatalogManager, CatalogObject, CatalogTable, ObjectIdentifier};
use crate::connector::{FactoryContext, TableFactory, table_factory};
use crate::error::{Error, Result};
use crate::options::{DYNAMIC_TABLE_OPTIONS, SessionConfig, TableOptions, resolve_references};
use crate::schema::Column;
use crate::sql::{self, Hint, Query};

/// The option that names the connector.
const CONNECTOR: &str = "connector";

/// A table as a statement uses it.
#[derive(Debug, Clone)]
pub(crate) struct BoundTable {
    /// Its name in full.
    pub(crate) identifier: ObjectIdentifier,
    /// Its definition, hints merged into the options.
    pub(crate) table: Arc<CatalogTable>,
    /// The session's configuration.
    pub(crate) config: Arc<SessionConfig>,
}

/// A view with its query parsed.
#[derive(Debug)]
pub(crate) struct ResolvedView {
    /// Its name in full.
    pub(crate) identifier: ObjectIdentifier,
    /// Its query; the error says why it no longer parses.
    pub(crate) query: Result<Query>,
    /// Its columns.
    pub(crate) columns: Vec<Column>,
}

/// What a name in a query stands for.
pub(crate) enum ResolvedName<'a> {
    /// A table.
    Table(&'a BoundTable),
    /// A view.
    View(Arc<ResolvedView>),
    /// Nothing: the part of the name that is not there, and what is there instead.
    Missing {
        /// The part.
        object: &'a str,
        /// Names beside it.
        candidates: &'a [String],
    },
}

/// What was found for a name.
#[derive(Debug)]
enum Found {
    Table(BoundTable),
    View(Arc<ResolvedView>),
    Missing { object: String, candidates: Vec<String> },
}

/// Everything that the names of a statement stand for, views' own names included.
#[derive(Debug, Default)]
pub(crate) struct TableSet {
    names: HashMap<Vec<String>, Found>,
    /// The user's functions that can be seen, in small letters: stored, but never called.
    user_functions: Vec<String>,
}

impl TableSet {
    /// Looks up all names of the given queries, and those of the views among them.
    pub(crate) async fn load(
        queries: &[&ast::Query],
        catalogs: &CatalogManager,
        config: &Arc<SessionConfig>,
    ) -> Result<TableSet> {
        let functions = catalogs.functions().names(catalogs.current_catalog(), catalogs.current_database());
        let mut set = TableSet { user_functions: functions, ..TableSet::default() };
        let mut pending: Vec<Vec<String>> = queries.iter().flat_map(|query| relation_names(query)).collect();
        while let Some(parts) = pending.pop() {
            if set.names.contains_key(&parts) {
                continue;
            }
            let found = look_up(&parts, catalogs, config).await?;
            if let Found::View(view) = &found
                && let Ok(query) = &view.query
            {
                pending.extend(relation_names(query.body.as_ref()));
            }
            set.names.insert(parts, found);
        }
        Ok(set)
    }

    /// Returns whether a name is that of a function that the user has created.
    pub(crate) fn is_user_function(&self, name: &str) -> bool {
        let name = name.rsplit('.').next().unwrap_or(name);
        self.user_functions.iter().any(|function| function.eq_ignore_ascii_case(name))
    }

    /// Returns what a name stands for.
    pub(crate) fn get(&self, parts: &[String]) -> ResolvedName<'_> {
        match self.names.get(parts) {
            Some(Found::Table(table)) => ResolvedName::Table(table),
            Some(Found::View(view)) => ResolvedName::View(Arc::clone(view)),
            Some(Found::Missing { object, candidates }) => ResolvedName::Missing { object, candidates },
            None => ResolvedName::Missing { object: "", candidates: &[] },
        }
    }
}

impl BoundTable {
    /// Makes a table of a catalog's definition.
    pub(crate) fn new(
        identifier: ObjectIdentifier,
        table: CatalogTable,
        config: Arc<SessionConfig>,
    ) -> BoundTable {
        BoundTable { identifier, table: Arc::new(table), config }
    }

    /// Returns the table with the options of its hints in place of its own.
    pub(crate) fn with_hints(&self, hints: &[Hint]) -> Result<BoundTable> {
        let mut changed = self.clone();
        if hints.is_empty() {
            return Ok(changed);
        }
        if !self.config.get(&DYNAMIC_TABLE_OPTIONS)? {
            return Err(Error::validation(
                "The 'OPTIONS' hint is allowed only when the config option 'table.dynamic-table-options.enabled' is set to true.",
            ));
        }
        let table = Arc::make_mut(&mut changed.table);
        for option in hints.iter().flat_map(|hint| &hint.options) {
            if option.key.value == CONNECTOR {
                return Err(Error::validation("The OPTIONS hint cannot change the option 'connector'."));
            }
            table.options.insert(option.key.value.clone(), option.value.value.clone());
        }
        Ok(changed)
    }

    /// Returns the table as it was at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// The connector keeps no earlier versions, or the options name a time already.
    pub(crate) fn as_of(&self, millis: i64) -> Result<BoundTable> {
        let (factory, _) = self.factory()?;
        let Some(option) = factory.time_option() else {
            return Err(Error::unsupported(format!(
                "table '{}' cannot be read as of a time: connector '{}' knows only what it holds now",
                self.identifier,
                factory.identifier()
            )));
        };
        let mut changed = self.clone();
        let options = &mut Arc::make_mut(&mut changed.table).options;
        match options.insert(option.to_owned(), millis.to_string()) {
            None => Ok(changed),
            Some(_) => Err(Error::validation(format!(
                "the time of table '{}' is said twice: by FOR SYSTEM_TIME AS OF and by option '{option}'",
                self.identifier
            ))),
        }
    }

    /// Lets the connector load what it needs to know beyond the definition, unless the catalog has.
    ///
    /// # Errors
    /// Those of the connector. A table without one is refused where it is used.
    pub(crate) async fn load(mut self) -> Result<BoundTable> {
        if self.table.handle.is_empty() && self.table.options.contains_key(CONNECTOR) {
            let (factory, options) = self.factory()?;
            let handle = factory.load(&self.context(&self.identifier.to_string(), &options)).await?;
            if !handle.is_empty() {
                Arc::make_mut(&mut self.table).handle = handle;
            }
        }
        Ok(self)
    }

    /// Returns what a factory is told of the table: its name in full, and its options as `factory` has made them.
    pub(crate) fn context<'a>(&'a self, name: &'a str, options: &'a TableOptions) -> FactoryContext<'a> {
        FactoryContext {
            table: name,
            path: &self.identifier.path,
            schema: &self.table.schema,
            partition_keys: &self.table.partition_keys,
            options,
            config: &self.config,
            handle: &self.table.handle,
        }
    }

    /// Returns the connector and the options with references resolved; `connector` counts as read.
    pub(crate) fn factory(&self) -> Result<(&'static dyn TableFactory, TableOptions)> {
        let identifier = self.table.options.get(CONNECTOR).ok_or_else(|| {
            Error::validation(
                "Table options do not contain an option key 'connector' for discovering a connector.",
            )
            .hint(format!("Table '{}' has no connector: add one to its WITH clause.", self.identifier))
        })?;
        let factory = table_factory(identifier)?;
        let mut entries = BTreeMap::new();
        for (key, value) in &self.table.options {
            entries.insert(key.clone(), resolve_references(key, value)?);
        }
        let options = TableOptions::new(identifier.clone(), entries);
        options.raw(CONNECTOR);
        Ok((factory, options))
    }
}

/// Returns the parts of a name.
pub(crate) fn name_parts(name: &ast::ObjectName) -> Vec<String> {
    name.0
        .iter()
        .map(|part| match part {
            ast::ObjectNamePart::Identifier(ident) => ident.value.clone(),
            ast::ObjectNamePart::Function(function) => function.name.value.clone(),
        })
        .collect()
}

/// Returns the names of all relations of a query, named queries included: those that exist as tables are simply not used.
fn relation_names(query: &ast::Query) -> Vec<Vec<String>> {
    let mut names = Vec::new();
    // Nothing breaks out of the visit, so what it returns says nothing.
    let _: ControlFlow<()> = ast::visit_relations(query, |name| {
        names.push(name_parts(name));
        ControlFlow::Continue(())
    });
    names
}

/// Looks up one name.
async fn look_up(parts: &[String], catalogs: &CatalogManager, config: &Arc<SessionConfig>) -> Result<Found> {
    let identifier = catalogs.resolve(parts)?;
    if let Some(resolved) = catalogs.object(&identifier).await? {
        return Ok(match resolved.object.as_ref() {
            CatalogObject::Table(table) => {
                let table = BoundTable::new(resolved.identifier, table.clone(), Arc::clone(config));
                Found::Table(table.load().await?)
            }
            CatalogObject::View(view) => Found::View(Arc::new(ResolvedView {
                identifier: resolved.identifier,
                query: sql::parse_query(&view.expanded_query),
                columns: view.columns.clone(),
            })),
        });
    }
    let catalog_names = catalogs.catalog_names()?;
    if parts.len() == 3 && !catalog_names.contains(&identifier.catalog) {
        return Ok(Found::Missing { object: identifier.catalog, candidates: catalog_names });
    }
    // Candidates are for a hint: a catalog that does not list them has none.
    if parts.len() >= 2 && catalogs.database(&identifier.catalog, &identifier.path.database).await?.is_none()
    {
        let candidates = catalogs.database_names(&identifier.catalog).await.unwrap_or_default();
        return Ok(Found::Missing { object: identifier.path.database, candidates });
    }
    let candidates =
        catalogs.table_names(&identifier.catalog, &identifier.path.database).await.unwrap_or_default();
    Ok(Found::Missing { object: identifier.path.object, candidates })
}
