//! Creating, opening, changing and dropping catalogs. A definition that cannot be read or opened can still be dropped.

use std::sync::Arc;

use super::CatalogManager;
use crate::catalog::factory::{find_factory, resolve_options};
use crate::catalog::{Catalog, CatalogContext, CatalogDescriptor};
use crate::error::{Error, FlinkClass, Result};

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
    pub(super) async fn existing_catalog(&self, name: &str) -> Result<Arc<dyn Catalog>> {
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
