//! User functions: kept by name so that scripts which create them run on. None of them can be called.

use std::collections::BTreeMap;

use super::{CatalogFunction, ObjectIdentifier};
use crate::error::{Error, FlinkClass, Result};

/// A user function with what kind it is.
#[derive(Debug, Clone, Copy)]
pub struct StoredFunction<'a> {
    /// The definition.
    pub function: &'a CatalogFunction,
    /// TEMPORARY SYSTEM.
    pub is_system: bool,
    /// TEMPORARY.
    pub is_temporary: bool,
}

/// The functions of all catalogs. Names are kept in small letters, as Flink does.
#[derive(Debug, Default)]
pub struct FunctionRegistry {
    permanent: BTreeMap<ObjectIdentifier, CatalogFunction>,
    temporary: BTreeMap<ObjectIdentifier, CatalogFunction>,
    temporary_system: BTreeMap<String, CatalogFunction>,
}

/// Returns the identifier as functions are kept.
fn normalized(identifier: &ObjectIdentifier) -> ObjectIdentifier {
    ObjectIdentifier::new(
        &identifier.catalog,
        &identifier.path.database,
        identifier.path.object.to_lowercase(),
    )
}

impl FunctionRegistry {
    /// Finds a function: temporary system ones by a name of one part, then temporary, then permanent ones.
    pub fn find(
        &self,
        system_name: Option<&str>,
        identifier: &ObjectIdentifier,
    ) -> Option<StoredFunction<'_>> {
        let system = system_name.and_then(|name| self.temporary_system.get(&name.to_lowercase()));
        let key = normalized(identifier);
        let stored = |function, is_system, is_temporary| StoredFunction { function, is_system, is_temporary };
        system
            .map(|function| stored(function, true, true))
            .or_else(|| self.temporary.get(&key).map(|function| stored(function, false, true)))
            .or_else(|| self.permanent.get(&key).map(|function| stored(function, false, false)))
    }

    /// Returns the names of the user's functions that can be seen from a database.
    pub fn names(&self, catalog: &str, database: &str) -> Vec<String> {
        let visible = |identifier: &&ObjectIdentifier| {
            identifier.catalog == catalog && identifier.path.database == database
        };
        let of_catalog = self.permanent.keys().chain(self.temporary.keys()).filter(visible);
        let mut names: Vec<String> = of_catalog.map(|identifier| identifier.path.object.clone()).collect();
        names.extend(self.temporary_system.keys().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Stores a catalog function.
    ///
    /// # Errors
    /// It exists and `if_not_exists` is false.
    pub fn create(
        &mut self,
        identifier: &ObjectIdentifier,
        function: CatalogFunction,
        if_not_exists: bool,
    ) -> Result<()> {
        let key = normalized(identifier);
        if self.permanent.contains_key(&key) {
            let exists = Error::already_exists(format!(
                "Function {} already exists in Catalog {}.",
                key.path, key.catalog
            ));
            return if if_not_exists {
                Ok(())
            } else {
                Err(exists.class(FlinkClass::FUNCTION_ALREADY_EXIST))
            };
        }
        self.permanent.insert(key, function);
        Ok(())
    }

    /// Stores a temporary function.
    ///
    /// # Errors
    /// It exists and `if_not_exists` is false.
    pub fn create_temporary(
        &mut self,
        identifier: &ObjectIdentifier,
        function: CatalogFunction,
        if_not_exists: bool,
    ) -> Result<()> {
        let key = normalized(identifier);
        if self.temporary.contains_key(&key) {
            let name = &key.path.object;
            let exists = format!(
                "Could not register temporary catalog function. A function '{name}' does already exist."
            );
            return if if_not_exists { Ok(()) } else { Err(Error::already_exists(exists)) };
        }
        self.temporary.insert(key, function);
        Ok(())
    }

    /// Stores a temporary system function.
    ///
    /// # Errors
    /// It exists and `if_not_exists` is false.
    pub fn create_system(
        &mut self,
        name: &str,
        function: CatalogFunction,
        if_not_exists: bool,
    ) -> Result<()> {
        let key = name.to_lowercase();
        if self.temporary_system.contains_key(&key) {
            let exists = format!(
                "Could not register temporary system function. A function named '{name}' does already exist."
            );
            return if if_not_exists { Ok(()) } else { Err(Error::already_exists(exists)) };
        }
        self.temporary_system.insert(key, function);
        Ok(())
    }

    /// Replaces a catalog function.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is false.
    pub fn alter(
        &mut self,
        identifier: &ObjectIdentifier,
        function: CatalogFunction,
        if_exists: bool,
    ) -> Result<()> {
        match self.permanent.get_mut(&normalized(identifier)) {
            Some(existing) => *existing = function,
            None if if_exists => {}
            None => return Err(not_exist(identifier)),
        }
        Ok(())
    }

    /// Drops a catalog function.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is false.
    pub fn drop(&mut self, identifier: &ObjectIdentifier, if_exists: bool) -> Result<()> {
        let dropped = self.permanent.remove(&normalized(identifier));
        if dropped.is_some() || if_exists { Ok(()) } else { Err(not_exist(identifier)) }
    }

    /// Drops a temporary function.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is false.
    pub fn drop_temporary(&mut self, identifier: &ObjectIdentifier, if_exists: bool) -> Result<()> {
        let key = normalized(identifier);
        let dropped = self.temporary.remove(&key);
        let missing =
            || Error::not_found(format!("Temporary catalog function {} doesn't exist", key.quoted()));
        if dropped.is_some() || if_exists { Ok(()) } else { Err(missing()) }
    }

    /// Drops a temporary system function.
    ///
    /// # Errors
    /// It does not exist and `if_exists` is false.
    pub fn drop_system(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let dropped = self.temporary_system.remove(&name.to_lowercase());
        let missing = || {
            Error::not_found(format!(
                "Could not drop temporary system function. A function named '{name}' doesn't exist."
            ))
        };
        if dropped.is_some() || if_exists { Ok(()) } else { Err(missing()) }
    }

    /// Forgets the permanent functions of a catalog, or of one of its databases.
    pub fn forget(&mut self, catalog: &str, database: Option<&str>) {
        self.permanent.retain(|key, _| {
            key.catalog != catalog || database.is_some_and(|database| key.path.database != database)
        });
    }
}

/// Builds Flink's error for a function that is not there.
fn not_exist(identifier: &ObjectIdentifier) -> Error {
    let key = normalized(identifier);
    Error::not_found(format!("Function {} does not exist in Catalog {}.", key.path, key.catalog))
        .class(FlinkClass::FUNCTION_NOT_EXIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> CatalogFunction {
        CatalogFunction {
            class_name: "com.example.F".to_owned(),
            language: "JAVA".to_owned(),
            resources: Vec::new(),
        }
    }

    #[test]
    fn names_are_small_letters_and_temporary_ones_come_first() {
        let mut functions = FunctionRegistry::default();
        let identifier = ObjectIdentifier::new("c", "d", "Fn");
        functions.create(&identifier, function(), false).unwrap();
        let error = functions.create(&identifier, function(), false).unwrap_err();
        assert_eq!(error.message(), "Function d.fn already exists in Catalog c.");
        functions.create(&identifier, function(), true).unwrap();
        assert!(!functions.find(Some("fn"), &identifier).unwrap().is_temporary);
        functions.create_system("FN", function(), false).unwrap();
        assert!(functions.find(Some("fn"), &identifier).unwrap().is_system);
        assert_eq!(functions.names("c", "d"), ["fn"]);
        functions.drop(&identifier, false).unwrap();
        assert_eq!(
            functions.drop(&identifier, false).unwrap_err().message(),
            "Function d.fn does not exist in Catalog c."
        );
    }
}
