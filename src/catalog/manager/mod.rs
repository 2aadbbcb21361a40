//! All catalogs of a session: the current one, resolution of names, temporary objects, and Flink's errors for what is missing
//! or there already.
//!
//! A catalog whose definition comes from the store is opened when it is first used, also by a mere look-up; hence the lock.

mod catalogs;
mod databases;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::factory::TYPE;
use super::{
    Catalog, CatalogDescriptor, CatalogFactory, CatalogObject, CatalogStore, CatalogTable, CatalogView,
    FunctionRegistry, InMemoryCatalog, MemoryCatalogStore, ObjectIdentifier, TableChange,
};
use crate::error::{Error, ErrorKind, Result};

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

    /// Returns the tables and views of a database, temporary ones among them, sorted. An unknown catalog has none.
    ///
    /// # Errors
    /// The database does not exist, or the catalog cannot be reached.
    pub async fn table_names(&self, catalog: &str, database: &str) -> Result<Vec<String>> {
        let mut names = match self.catalog(catalog).await? {
            Some(catalog) => catalog.list_objects(database).await?,
            None => Vec::new(),
        };
        self.add_temporary(&mut names, catalog, database, |_| true);
        Ok(names)
    }

    /// Returns the views of a database, temporary ones among them, sorted. An unknown catalog has none.
    ///
    /// # Errors
    /// The database does not exist, or the catalog cannot be reached.
    pub async fn view_names(&self, catalog: &str, database: &str) -> Result<Vec<String>> {
        let mut names = match self.catalog(catalog).await? {
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

    /// Creates a table or view.
    ///
    /// # Errors
    /// The name is taken and `if_not_exists` is false, or the catalog refuses.
    pub async fn create_object(
        &mut self,
        identifier: &ObjectIdentifier,
        object: CatalogObject,
        if_not_exists: bool,
    ) -> Result<()> {
        let catalog = self.existing_catalog(&identifier.catalog).await?;
        if if_not_exists && catalog.object(&identifier.path).await?.is_some() {
            return Ok(());
        }
        match catalog.create_object(&identifier.path, object).await {
            Err(error) if if_not_exists && error.kind() == ErrorKind::AlreadyExists => Ok(()),
            created => created,
        }
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

    /// Changes a table; `table` is what becomes of it, `changes` are the steps that lead there.
    ///
    /// # Errors
    /// The catalog refuses.
    pub async fn alter_table(
        &mut self,
        identifier: &ObjectIdentifier,
        table: CatalogTable,
        changes: &[TableChange],
    ) -> Result<()> {
        self.existing_catalog(&identifier.catalog).await?.alter_table(&identifier.path, table, changes).await
    }

    /// Replaces a view.
    ///
    /// # Errors
    /// The catalog refuses.
    pub async fn alter_view(&mut self, identifier: &ObjectIdentifier, view: CatalogView) -> Result<()> {
        self.existing_catalog(&identifier.catalog).await?.alter_view(&identifier.path, view).await
    }

    /// Renames a table or view within its database.
    ///
    /// # Errors
    /// The new name is taken, or the catalog refuses.
    pub async fn rename_object(&mut self, identifier: &ObjectIdentifier, new_name: &str) -> Result<()> {
        self.existing_catalog(&identifier.catalog).await?.rename_object(&identifier.path, new_name).await
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
        let catalog = self.catalog(&identifier.catalog).await?;
        let found = match catalog {
            Some(catalog) if catalog.has_object(&identifier.path, view).await? => Some(catalog),
            _ => None,
        };
        match found {
            Some(catalog) => catalog.drop_object(&identifier.path).await,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        CatalogDatabase, CatalogTable, CatalogView, FileCatalogStore, GenericInMemory, JDBC,
    };

    static FACTORIES: &[&dyn CatalogFactory] = &[&GenericInMemory, &JDBC];

    fn manager() -> CatalogManager {
        CatalogManager::new(FACTORIES, ManagerSettings::default())
    }

    fn table() -> CatalogObject {
        CatalogObject::Table(CatalogTable::default())
    }

    fn view() -> CatalogObject {
        CatalogObject::View(CatalogView {
            original_query: "SELECT 1".to_owned(),
            expanded_query: "SELECT 1".to_owned(),
            columns: Vec::new(),
            comment: None,
        })
    }

    fn descriptor(options: &[(&str, &str)]) -> CatalogDescriptor {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        CatalogDescriptor { options, comment: None }
    }

    fn parts(name: &str) -> Vec<String> {
        name.split('.').map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_temporary_object_hides_a_permanent_one_until_it_is_dropped() {
        let mut catalogs = manager();
        let name = catalogs.resolve(&parts("t")).unwrap();
        catalogs.create_object(&name, table(), false).await.unwrap();
        catalogs.create_temporary(&name, view(), false).unwrap();
        assert!(catalogs.object(&name).await.unwrap().unwrap().object.is_view());
        assert_eq!(catalogs.table_names("default_catalog", "default_database").await.unwrap(), ["t"]);
        assert_eq!(catalogs.view_names("default_catalog", "default_database").await.unwrap(), ["t"]);
        let error = catalogs.create_temporary(&name, table(), false).unwrap_err();
        assert_eq!(
            error.message(),
            "Temporary table '`default_catalog`.`default_database`.`t`' already exists"
        );
        catalogs.drop_temporary(&name, true, false).unwrap();
        assert!(!catalogs.object(&name).await.unwrap().unwrap().object.is_view());
        catalogs.create_temporary(&name, table(), false).unwrap();
        let error = catalogs.drop_object(&name, false, true).await.unwrap_err();
        assert!(
            error.message().starts_with("Temporary table with identifier '`default_catalog`."),
            "{error}"
        );
    }

    #[tokio::test]
    async fn names_have_one_to_three_parts() {
        let mut catalogs = manager();
        catalogs.create_catalog("c", descriptor(&[("type", "generic_in_memory")]), false).await.unwrap();
        catalogs.use_catalog("c").await.unwrap();
        assert_eq!(catalogs.resolve(&parts("t")).unwrap().to_string(), "c.default.t");
        assert_eq!(catalogs.resolve(&parts("d.t")).unwrap().to_string(), "c.d.t");
        assert_eq!(catalogs.resolve(&parts("x.d.t")).unwrap().to_string(), "x.d.t");
        let error = catalogs.resolve(&parts("a.b.c.d")).unwrap_err();
        assert_eq!(error.message(), "Object identifier must consist of 1 to 3 parts.");
        let unknown = catalogs.resolve(&parts("x.d.t")).unwrap();
        assert!(catalogs.object(&unknown).await.unwrap().is_none());
        assert!(catalogs.create_object(&unknown, table(), false).await.is_err());
    }

    #[tokio::test]
    async fn using_the_current_catalog_again_keeps_the_database() {
        let mut catalogs = manager();
        catalogs.create_database("default_catalog", "d", CatalogDatabase::default(), false).await.unwrap();
        catalogs.use_database("default_catalog", "d").await.unwrap();
        catalogs.use_catalog("default_catalog").await.unwrap();
        assert_eq!(catalogs.current_database(), "d");
        assert!(catalogs.drop_database("default_catalog", "d", false, true).await.is_err());
    }

    #[tokio::test]
    async fn a_stored_catalog_opens_at_its_first_use_in_another_session() {
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            let store = Box::new(FileCatalogStore::new(directory.path().to_str().unwrap()));
            CatalogManager::new(FACTORIES, ManagerSettings { store, ..ManagerSettings::default() })
        };
        let options = descriptor(&[("type", "generic_in_memory"), ("default-database", "d0")]);
        start().create_catalog("c", options, false).await.unwrap();
        std::fs::write(directory.path().join("broken.yaml"), "type: nope\n").unwrap();
        let mut catalogs = start();
        assert_eq!(catalogs.catalog_names().unwrap(), ["broken", "c", "default_catalog"]);
        assert_eq!(catalogs.database_names("c").await.unwrap(), ["d0"]);
        assert!(catalogs.use_catalog("broken").await.is_err());
        catalogs.drop_catalog("broken", false).await.unwrap();
        catalogs.drop_catalog("c", false).await.unwrap();
        assert_eq!(start().catalog_names().unwrap(), ["default_catalog"]);
    }

    #[tokio::test]
    async fn altering_an_in_memory_catalog_keeps_its_tables() {
        let mut catalogs = manager();
        let name = catalogs.resolve(&parts("t")).unwrap();
        catalogs.create_object(&name, table(), false).await.unwrap();
        let set = |value: &'static str| {
            move |descriptor: &mut CatalogDescriptor| {
                descriptor.options.insert("default-database".to_owned(), value.to_owned());
            }
        };
        catalogs.alter_catalog("default_catalog", set("other")).await.unwrap();
        assert!(catalogs.object(&name).await.unwrap().is_some());
        assert!(catalogs.alter_catalog("default_catalog", set("")).await.is_err());
        assert_eq!(
            catalogs.descriptor("default_catalog").unwrap().unwrap().options["default-database"],
            "other"
        );
        assert!(catalogs.alter_catalog("nope", set("x")).await.is_err());
    }

    #[tokio::test]
    async fn an_unknown_catalog_type_lists_those_there_are() {
        let mut catalogs = manager();
        let error = catalogs.create_catalog("x", descriptor(&[("type", "jdb")]), false).await.unwrap_err();
        assert!(error.message().ends_with("Available factory identifiers are:\n\ngeneric_in_memory\njdbc"));
        assert_eq!(error.hint_text(), Some("Did you mean 'jdbc'?"));
        let error = catalogs.create_catalog("x", descriptor(&[("type", "jdbc")]), false).await.unwrap_err();
        assert!(error.message().ends_with("\n\nbase-url\ndefault-database\npassword\nusername"));
        assert!(catalogs.create_catalog("x", descriptor(&[("k", "v")]), false).await.is_err());
        assert_eq!(catalogs.catalog_names().unwrap(), ["default_catalog"]);
    }
}
