//! The session's configuration: defaults from files and flags below, what SET said above.

use std::collections::BTreeMap;

use super::{ConfigOption, OptionDef, OptionValue};
use crate::error::Result;

/// Keys and values in two layers. RESET takes away the upper one.
#[derive(Debug, Clone, Default)]
pub struct SessionConfig {
    defaults: BTreeMap<String, String>,
    set: BTreeMap<String, String>,
}

impl SessionConfig {
    /// Creates a configuration over the given defaults.
    pub fn new(defaults: BTreeMap<String, String>) -> SessionConfig {
        SessionConfig { defaults, set: BTreeMap::new() }
    }

    /// Sets a key; checking is the caller's.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.set.insert(key.into(), value.into());
    }

    /// Takes back what SET said of a key.
    pub fn reset(&mut self, key: &str) {
        self.set.remove(key);
    }

    /// Takes back all that SET said.
    pub fn reset_all(&mut self) {
        self.set.clear();
    }

    /// Returns the text of a key, from SET or from the defaults.
    pub fn raw(&self, key: &str) -> Option<&str> {
        self.set.get(key).or_else(|| self.defaults.get(key)).map(String::as_str)
    }

    /// Returns the value of an option; its old names count where the new one is not given.
    ///
    /// # Errors
    /// The text does not parse.
    pub fn get_optional<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<Option<T>> {
        let given = std::iter::once(&option.key()).chain(option.old_keys()).find_map(|key| self.raw(key));
        given.or(option.default_text()).map(|text| option.parse(text)).transpose()
    }

    /// Returns whether an option was given a value, by its name or an old one.
    pub fn is_given<T: OptionValue>(&self, option: &ConfigOption<T>) -> bool {
        std::iter::once(&option.key()).chain(option.old_keys()).any(|key| self.raw(key).is_some())
    }

    /// Returns the value of an option that has a default.
    ///
    /// # Errors
    /// The text does not parse, or the option has neither value nor default.
    pub fn get<T: OptionValue>(&self, option: &ConfigOption<T>) -> Result<T> {
        self.get_optional(option)?
            .ok_or_else(|| crate::error::Error::validation(format!("option '{}' has no value", option.key())))
    }

    /// Returns all keys with values, sorted.
    pub fn entries(&self) -> BTreeMap<&str, &str> {
        self.defaults.iter().chain(&self.set).map(|(key, value)| (key.as_str(), value.as_str())).collect()
    }
}
