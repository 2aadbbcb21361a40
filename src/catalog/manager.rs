//! All catalogs of a session: the current one, resolution of names, temporary objects, and Flink's errors for what is missing
//! or there already.
//!
//! A catalog whose definition comes from the store is opened when it is first used, also by a mere look-up; hence the lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::factory::{TYPE, find_factory, resolve_options};
use super::memory::{database_not_empty, database_not_exist, table_already_exist};
use super::{
    Catalog, CatalogContext, CatalogDatabase, CatalogDescriptor, CatalogFactory, CatalogObject, CatalogStore,
    FunctionRegistry, InMemoryCatalog, MemoryCatalogStore, ObjectIdentifier, ObjectPath,
};
use crate::error::{Error, FlinkClass, Result};

/// What a manager starts with.
#[derive(Debug)]
pub struct ManagerSettings {
    /// The catalog that is there from the start.
    pub builtin_catalog: String,
    /// Its database.
    pub builtin_database: String,
    /// Where definitions of further catalogs are kept.
    pub store: Box<dyn CatalogStore>,
}

impl Default for ManagerSettings {
    fn default() -> ManagerSettings {
        ManagerSettings {
            builtin_catalog: "default_catalog".to_owned(),
            builtin_database: "default_database".to_owned(),
            store: Box::new(MemoryCatalogStore::default()),
        }
    }
}

/// A table or view that was found.
#[derive(Debug, Clone)]
pub struct ResolvedObject {
    /// Its name in full.
    pub identifier: ObjectIdentifier,
    /// Its definition.
    pub object: Arc<CatalogObject>,
    /// Whether it is temporary.
    pub is_temporary: bool,
}

/// All catalogs of a session.
pub struct CatalogManager {
    factories: &'static [&'static dyn CatalogFactory],
    store: Box<dyn CatalogStore>,
    builtin: BTreeMap<String, CatalogDescriptor>,
    opened: Mutex<BTreeMap<String, Arc<dyn Catalog>>>,
    temporary: BTreeMap<ObjectIdentifier, Arc<CatalogObject>>,
    functions: FunctionRegistry,
    current_catalog: String,
    current_database: String,
}

impl std::fmt::Debug for CatalogManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let current = (&self.current_catalog, &self.current_database);
        f.debug_struct("CatalogManager").field("current", &current).finish_non_exhaustive()
    }
}

impl CatalogManager {
    /// Creates a manager with the built-in catalog in memory. `factories` are the catalog types that CREATE CATALOG knows.
    pub fn new(
        factories: &'static [&'static dyn CatalogFactory],
        settings: ManagerSettings,
    ) -> CatalogManager {
        let ManagerSettings { builtin_catalog, builtin_database, store } = settings;
        let catalog: Arc<dyn Catalog> = Arc::new(InMemoryCatalog::new(&builtin_catalog, &builtin_database));
        let options = [(TYPE, "generic_in_memory"), ("default-database", builtin_database.as_str())];
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        CatalogManager {
            factories,
            store,
            builtin: BTreeMap::from([(
                builtin_catalog.clone(),
                CatalogDescriptor { options, comment: None },
            )]),
            opened: Mutex::new(BTreeMap::from([(builtin_catalog.clone(), catalog)])),
            temporary: BTreeMap::new(),
            functions: FunctionRegistry::default(),
            current_catalog: builtin_catalog,
            current_database: builtin_database,
        }
    }

    /// Returns the current catalog's name.
    pub fn current_catalog(&self) -> &str {
        &self.current_catalog
    }

    /// Returns the current database's name.
    pub fn current_database(&self) -> &str {
        &self.current_database
    }

    /// Returns the user's functions.
    pub fn functions(&self) -> &FunctionRegistry {
        &self.functions
    }

    /// Returns the user's functions, to be changed.
    pub fn functions_mut(&mut self) -> &mut FunctionRegistry {
        &mut self.functions
    }

    /// Completes a name of one to three parts.
    ///
    /// # Errors
    /// There are more parts, or none.
    pub fn resolve(&self, parts: &[String]) -> Result<ObjectIdentifier> {
        match parts {
            [object] => Ok(ObjectIdentifier::new(&self.current_catalog, &self.current_database, object)),
            [database, object] => Ok(ObjectIdentifier::new(&self.current_catalog, database, object)),
            [catalog, database, object] => Ok(ObjectIdentifier::new(catalog, database, object)),
            _ => Err(Error::validation("Object identifier must consist of 1 to 3 parts.")),
        }
    }

    /// Completes the name of a database: one or two parts, as catalog and database.
    ///
    /// # Errors
    /// There are more parts, or none.
    pub fn resolve_database(&self, parts: &[String]) -> Result<(String, String)> {
        match parts {
            [database] => Ok((self.current_catalog.clone(), database.clone())),
            [catalog, database] => Ok((catalog.clone(), database.clone())),
            _ => Err(Error::validation("Database identifier must consist of 1 to 2 parts.")),
        }
    }

    /// Returns a table or view, or None where it, its database or its catalog does not exist. Temporary ones come first.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn object(&self, identifier: &ObjectIdentifier) -> Result<Option<ResolvedObject>> {
        if let Some(object) = self.temporary.get(identifier) {
            return Ok(Some(ResolvedObject {
                identifier: identifier.clone(),
                object: Arc::clone(object),
                is_temporary: true,
            }));
        }
        let object = self.permanent_object(identifier).await?;
        Ok(object.map(|object| ResolvedObject {
            identifier: identifier.clone(),
            object,
            is_temporary: false,
        }))
    }

    /// Returns a table or view that is not temporary.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn permanent_object(
        &self,
        identifier: &ObjectIdentifier,
    ) -> Result<Option<Arc<CatalogObject>>> {
        match self.catalog(&identifier.catalog).await? {
            Some(catalog) => catalog.object(&identifier.path).await,
            None => Ok(None),
        }
    }

    /// Returns a temporary table or view.
    pub fn temporary_object(&self, identifier: &ObjectIdentifier) -> Option<&Arc<CatalogObject>> {
        self.temporary.get(identifier)
    }

    /// Returns the tables and views of a database, temporary ones among them, sorted. An unknown database has none.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn table_names(&self, catalog: &str, database: &str) -> Result<Vec<String>> {
        let mut names = match self.existing_database(catalog, database).await? {
            Some(catalog) => catalog.list_objects(database).await?,
            None => Vec::new(),
        };
        self.add_temporary(&mut names, catalog, database, |_| true);
        Ok(names)
    }

    /// Returns the views of a database, temporary ones among them, sorted. An unknown database has none.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn view_names(&self, catalog: &str, database: &str) -> Result<Vec<String>> {
        let mut names = match self.existing_database(catalog, database).await? {
            Some(catalog) => catalog.list_views(database).await?,
            None => Vec::new(),
        };
        // A temporary table hides the view below it.
        names.retain(|name| !self.temporary.contains_key(&ObjectIdentifier::new(catalog, database, name)));
        self.add_temporary(&mut names, catalog, database, CatalogObject::is_view);
        Ok(names)
    }

    /// Adds the temporary objects of a database to a list of names, and sorts it.
    fn add_temporary(
        &self,
        names: &mut Vec<String>,
        catalog: &str,
        database: &str,
        wanted: fn(&CatalogObject) -> bool,
    ) {
        let of_database = self.temporary.iter().filter(|(identifier, object)| {
            identifier.catalog == catalog && identifier.path.database == database && wanted(object)
        });
        names.extend(of_database.map(|(identifier, _)| identifier.path.object.clone()));
        names.sort_unstable();
        names.dedup();
    }

    /// Returns the catalog if both it and the database exist.
    async fn existing_database(&self, catalog: &str, database: &str) -> Result<Option<Arc<dyn Catalog>>> {
        let Some(catalog) = self.catalog(catalog).await? else { return Ok(None) };
        Ok(catalog.database(database).await?.map(|_| catalog))
    }

    /// Creates a table or view.
    ///
    /// # Errors
    /// The name is taken and `if_not_exists` is false, the database does not exist, or the catalog refuses.
    pub async fn create_object(
        &mut self,
        identifier: &ObjectIdentifier,
        object: CatalogObject,
        if_not_exists: bool,
    ) -> Result<()> {
        let catalog = self.existing_catalog(&identifier.catalog).await?;
        if catalog.object(&identifier.path).await?.is_some() {
            return if if_not_exists {
                Ok(())
            } else {
                Err(table_already_exist(&identifier.path, &identifier.catalog))
            };
        }
        if catalog.database(&identifier.path.database).await?.is_none() {
            return Err(database_not_exist(&identifier.path.database, &identifier.catalog));
        }
        catalog.create_object(&identifier.path, object).await
    }

    /// Creates a temporary table or view, which hides a permanent one of the same name.
    ///
    /// # Errors
    /// There is a temporary one of this name already and `if_not_exists` is false.
    pub fn create_temporary(
        &mut self,
        identifier: &ObjectIdentifier,
        object: CatalogObject,
        if_not_exists: bool,
    ) -> Result<()> {
        if self.temporary.contains_key(identifier) {
            let exists =
                Error::already_exists(format!("Temporary table '{}' already exists", identifier.quoted()));
            return if if_not_exists { Ok(()) } else { Err(exists) };
        }
        self.temporary.insert(identifier.clone(), Arc::new(object));
        Ok(())
    }

    /// Replaces a table or view.
    ///
    /// # Errors
    /// The catalog refuses.
    pub async fn alter_object(&mut self, identifier: &ObjectIdentifier, object: CatalogObject) -> Result<()> {
        self.existing_catalog(&identifier.catalog).await?.alter_object(&identifier.path, object).await
    }

    /// Renames a table or view within its database.
    ///
    /// # Errors
    /// The new name is taken, or the catalog refuses.
    pub async fn rename_object(&mut self, identifier: &ObjectIdentifier, new_name: &str) -> Result<()> {
        let catalog = self.existing_catalog(&identifier.catalog).await?;
        let new_path = ObjectPath::new(&identifier.path.database, new_name);
        if catalog.object(&new_path).await?.is_some() {
            return Err(table_already_exist(&new_path, &identifier.catalog));
        }
        catalog.rename_object(&identifier.path, new_name).await
    }

    /// Drops a permanent table (or view, if `view`).
    ///
    /// # Errors
    /// There is none of this kind and `if_exists` is false, or a temporary one hides it.
    pub async fn drop_object(
        &mut self,
        identifier: &ObjectIdentifier,
        view: bool,
        if_exists: bool,
    ) -> Result<()> {
        let (kind, title) = if view { ("view", "View") } else { ("table", "Table") };
        if self.temporary.get(identifier).is_some_and(|object| object.is_view() == view) {
            let name = identifier.quoted();
            return Err(Error::validation(format!(
                "Temporary {kind} with identifier '{name}' exists. Drop it first before removing the permanent {kind}."
            )));
        }
        let found = self.permanent_object(identifier).await?.filter(|object| object.is_view() == view);
        match found {
            Some(_) => self.existing_catalog(&identifier.catalog).await?.drop_object(&identifier.path).await,
            None if if_exists => Ok(()),
            None => Err(Error::not_found(format!("{title} with identifier '{identifier}' does not exist."))),
        }
    }

    /// Drops a temporary table (or view, if `view`).
    ///
    /// # Errors
    /// There is none of this kind and `if_exists` is false.
    pub fn drop_temporary(
        &mut self,
        identifier: &ObjectIdentifier,
        view: bool,
        if_exists: bool,
    ) -> Result<()> {
        if self.temporary.get(identifier).is_some_and(|object| object.is_view() == view) {
            self.temporary.remove(identifier);
            return Ok(());
        }
        let kind = if view { "view" } else { "table" };
        let missing =
            || Error::not_found(format!("Temporary {kind} with identifier '{identifier}' does not exist."));
        if if_exists { Ok(()) } else { Err(missing()) }
    }
}

/// Catalogs.
impl CatalogManager {
    /// Returns the names of all catalogs, sorted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn catalog_names(&self) -> Result<Vec<String>> {
        let mut names = self.store.names()?;
        names.extend(self.builtin.keys().cloned());
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// Returns how a catalog was made, or None if there is none of this name.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn descriptor(&self, name: &str) -> Result<Option<CatalogDescriptor>> {
        match self.builtin.get(name) {
            Some(descriptor) => Ok(Some(descriptor.clone())),
            None => self.store.get(name),
        }
    }

    /// Returns a catalog, opened, or None if there is none of this name.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn catalog(&self, name: &str) -> Result<Option<Arc<dyn Catalog>>> {
        let mut opened = self.opened.lock().await;
        if let Some(catalog) = opened.get(name) {
            return Ok(Some(Arc::clone(catalog)));
        }
        let Some(descriptor) = self.descriptor(name)? else { return Ok(None) };
        let catalog = self.open(name, &descriptor).await?;
        opened.insert(name.to_owned(), Arc::clone(&catalog));
        Ok(Some(catalog))
    }

    /// Makes the catalog that a descriptor describes.
    async fn open(&self, name: &str, descriptor: &CatalogDescriptor) -> Result<Arc<dyn Catalog>> {
        let factory = find_factory(self.factories, &descriptor.options)?;
        let options = resolve_options(factory.identifier(), &descriptor.options)?;
        options.declare(factory.options());
        options.require(factory.options())?;
        factory.create(CatalogContext { name: name.to_owned(), options }).await
    }

    /// Returns a catalog that must exist.
    async fn existing_catalog(&self, name: &str) -> Result<Arc<dyn Catalog>> {
        self.catalog(name).await?.ok_or_else(|| Error::not_found(format!("Catalog {name} does not exist.")))
    }

    /// Creates and opens a catalog.
    ///
    /// # Errors
    /// The name is taken and `if_not_exists` is false, the options do not fit, or the place cannot be reached.
    pub async fn create_catalog(
        &mut self,
        name: &str,
        descriptor: CatalogDescriptor,
        if_not_exists: bool,
    ) -> Result<()> {
        if name.trim().is_empty() {
            return Err(Error::validation("Catalog name cannot be null or empty."));
        }
        if self.descriptor(name)?.is_some() {
            let exists =
                Error::already_exists(format!("Catalog {name} already exists.")).class(FlinkClass::CATALOG);
            return if if_not_exists { Ok(()) } else { Err(exists) };
        }
        let catalog = self.open(name, &descriptor).await?;
        self.store.put(name, &descriptor)?;
        self.opened.lock().await.insert(name.to_owned(), catalog);
        Ok(())
    }

    /// Changes how a catalog is made, and makes it anew unless that would lose its tables.
    ///
    /// # Errors
    /// There is no such catalog, or the changed options do not fit.
    pub async fn alter_catalog(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut CatalogDescriptor),
    ) -> Result<()> {
        let missing = || {
            Error::not_found(format!("Catalog {name} does not exist in the catalog store."))
                .class(FlinkClass::CATALOG)
        };
        let mut descriptor = self.descriptor(name)?.ok_or_else(missing)?;
        let options_before = descriptor.options.clone();
        change(&mut descriptor);
        if descriptor.options != options_before {
            let reopened = self.open(name, &descriptor).await?;
            // Flink differs: it makes an in-memory catalog anew as well, and all its tables are gone.
            if !find_factory(self.factories, &descriptor.options)?.is_only_copy() {
                self.opened.lock().await.insert(name.to_owned(), reopened);
            }
        }
        match self.builtin.get_mut(name) {
            Some(builtin) => *builtin = descriptor,
            None => self.store.put(name, &descriptor)?,
        }
        Ok(())
    }

    /// Drops a catalog's definition; what it holds stays where it is.
    ///
    /// # Errors
    /// It is the current one, or does not exist and `if_exists` is false.
    pub async fn drop_catalog(&mut self, name: &str, if_exists: bool) -> Result<()> {
        // A definition that cannot be read can still be dropped.
        let exists = self.builtin.contains_key(name) || self.store.names()?.iter().any(|known| known == name);
        if !exists {
            let missing =
                Error::not_found(format!("Catalog {name} does not exist.")).class(FlinkClass::CATALOG);
            return if if_exists { Ok(()) } else { Err(missing) };
        }
        if name == self.current_catalog {
            return Err(Error::validation("Cannot drop a catalog which is currently in use.")
                .class(FlinkClass::CATALOG)
                .hint("Switch to another one with USE CATALOG first."));
        }
        if self.builtin.remove(name).is_none() {
            self.store.remove(name)?;
        }
        self.opened.lock().await.remove(name);
        self.functions.forget(name, None);
        Ok(())
    }

    /// Makes a catalog and its default database the current ones.
    ///
    /// # Errors
    /// There is no such catalog, or it cannot be opened.
    pub async fn use_catalog(&mut self, name: &str) -> Result<()> {
        let missing = || {
            Error::not_found(format!("A catalog with name [{name}] does not exist."))
                .class(FlinkClass::CATALOG)
        };
        let catalog = self.catalog(name).await?.ok_or_else(missing)?;
        if self.current_catalog != name {
            name.clone_into(&mut self.current_catalog);
            catalog.default_database().clone_into(&mut self.current_database);
        }
        Ok(())
    }
}

/// Databases.
impl CatalogManager {
    /// Returns the databases of a catalog, sorted.
    ///
    /// # Errors
    /// There is no such catalog, or it cannot be reached.
    pub async fn database_names(&self, catalog: &str) -> Result<Vec<String>> {
        let mut names = self.existing_catalog(catalog).await?.list_databases().await?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns a database, or None where it or its catalog does not exist.
    ///
    /// # Errors
    /// The catalog cannot be reached.
    pub async fn database(&self, catalog: &str, name: &str) -> Result<Option<CatalogDatabase>> {
        match self.catalog(catalog).await? {
            Some(catalog) => catalog.database(name).await,
            None => Ok(None),
        }
    }

    /// Creates a database.
    ///
    /// # Errors
    /// The name is taken and `if_not_exists` is false, or the catalog refuses.
    pub async fn create_database(
        &mut self,
        catalog: &str,
        name: &str,
        database: CatalogDatabase,
        if_not_exists: bool,
    ) -> Result<()> {
        let existing = self.existing_catalog(catalog).await?;
        if existing.database(name).await?.is_some() {
            let exists =
                Error::already_exists(format!("Database {name} already exists in Catalog {catalog}."));
            return if if_not_exists {
                Ok(())
            } else {
                Err(exists.class(FlinkClass::DATABASE_ALREADY_EXIST))
            };
        }
        existing.create_database(name, database).await
    }

    /// Adds to a database's properties.
    ///
    /// # Errors
    /// There is no such database.
    pub async fn alter_database(
        &mut self,
        catalog: &str,
        name: &str,
        properties: BTreeMap<String, String>,
    ) -> Result<()> {
        let existing = self.existing_catalog(catalog).await?;
        let database = existing.database(name).await?;
        let mut database = database.ok_or_else(|| database_not_exist(name, catalog))?;
        database.properties.extend(properties);
        existing.alter_database(name, database).await
    }

    /// Drops a database.
    ///
    /// # Errors
    /// It is the current one, is not empty and `cascade` is false, or does not exist and `if_exists` is false.
    pub async fn drop_database(
        &mut self,
        catalog: &str,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        if catalog == self.current_catalog && name == self.current_database {
            return Err(Error::validation("Cannot drop a database which is currently in use.")
                .hint("Switch to another one with USE first."));
        }
        let existing = self.existing_catalog(catalog).await?;
        if existing.database(name).await?.is_none() {
            return if if_exists { Ok(()) } else { Err(database_not_exist(name, catalog)) };
        }
        if !cascade && !existing.list_objects(name).await?.is_empty() {
            return Err(database_not_empty(name, catalog));
        }
        existing.drop_database(name, cascade).await?;
        self.functions.forget(catalog, Some(name));
        Ok(())
    }

    /// Makes a database, and its catalog, the current ones.
    ///
    /// # Errors
    /// There is no such catalog or database.
    pub async fn use_database(&mut self, catalog: &str, name: &str) -> Result<()> {
        let missing = || {
            Error::not_found(format!("A catalog with name [{catalog}] does not exist."))
                .class(FlinkClass::CATALOG)
        };
        let existing = self.catalog(catalog).await?.ok_or_else(missing)?;
        if existing.database(name).await?.is_none() {
            let message =
                format!("A database with name [{name}] does not exist in the catalog: [{catalog}].");
            return Err(Error::not_found(message).class(FlinkClass::CATALOG));
        }
        catalog.clone_into(&mut self.current_catalog);
        name.clone_into(&mut self.current_database);
        Ok(())
    }
}
