//! Modules: there is one, `core`, which holds the built-in functions. It is listed and unlisted as Flink does; the functions stay.

use crate::error::{Error, Result};

/// The modules that can be loaded.
const AVAILABLE: &[&str] = &["core"];

/// The loaded modules, in the order of resolution, and which of them are used.
#[derive(Debug, Clone)]
pub(super) struct Modules {
    loaded: Vec<String>,
    used: Vec<String>,
}

impl Default for Modules {
    fn default() -> Modules {
        Modules { loaded: vec!["core".to_owned()], used: vec!["core".to_owned()] }
    }
}

impl Modules {
    /// Returns the used modules in the order of resolution.
    pub(super) fn used(&self) -> &[String] {
        &self.used
    }

    /// Returns all loaded modules, the used ones first, each with whether it is used.
    pub(super) fn all(&self) -> Vec<(&str, bool)> {
        let unused = self.loaded.iter().filter(|name| !self.used.contains(name));
        let used = self.used.iter().map(|name| (name.as_str(), true));
        used.chain(unused.map(|name| (name.as_str(), false))).collect()
    }

    /// Loads a module.
    pub(super) fn load(&mut self, name: &str) -> Result<()> {
        if self.loaded.iter().any(|loaded| loaded == name) {
            return Err(Error::already_exists(format!("A module with name '{name}' already exists")));
        }
        if !AVAILABLE.contains(&name) {
            return Err(Error::validation(format!(
                "Could not find any factory for identifier '{name}' that implements 'org.apache.flink.table.factories.ModuleFactory' in the classpath.\n\nAvailable factory identifiers are:\n\n{}",
                AVAILABLE.join("\n")
            ))
            .hint("Modules are JVM libraries; the built-in functions of module 'core' are always there."));
        }
        self.loaded.push(name.to_owned());
        self.used.push(name.to_owned());
        Ok(())
    }

    /// Unloads a module.
    pub(super) fn unload(&mut self, name: &str) -> Result<()> {
        if !self.loaded.iter().any(|loaded| loaded == name) {
            return Err(missing(name));
        }
        self.loaded.retain(|loaded| loaded != name);
        self.used.retain(|used| used != name);
        Ok(())
    }

    /// Uses exactly these modules, in this order.
    pub(super) fn use_modules(&mut self, names: &[&str]) -> Result<()> {
        let mut used: Vec<String> = Vec::with_capacity(names.len());
        for name in names {
            if !self.loaded.iter().any(|loaded| loaded == name) {
                return Err(missing(name));
            }
            if used.iter().any(|seen| seen == name) {
                return Err(Error::validation(format!("Module '{name}' appears more than once")));
            }
            used.push((*name).to_owned());
        }
        self.used = used;
        Ok(())
    }
}

/// Builds Flink's error for a module that is not loaded.
fn missing(name: &str) -> Error {
    Error::not_found(format!("No module with name '{name}' exists"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_use_changes_nothing() {
        let mut modules = Modules::default();
        assert_eq!(modules.load("core").unwrap_err().message(), "A module with name 'core' already exists");
        assert!(modules.use_modules(&["core", "nope"]).is_err());
        assert!(modules.use_modules(&["core", "core"]).is_err());
        assert_eq!(modules.used(), ["core"]);
        modules.use_modules(&[]).unwrap();
        assert_eq!(modules.all(), [("core", false)]);
        modules.unload("core").unwrap();
        assert!(modules.all().is_empty());
    }
}
