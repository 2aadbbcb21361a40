//! Options: how one is declared, how its text is parsed, and the maps that hold them.
//!
//! An option is a constant of type `ConfigOption<T>`; lists of `&dyn OptionDef` are what look-ups, completion, reference
//! tables and tests work from. Keys are Flink's; those of our own start with `lakehead.`.

mod config;
mod config_file;
mod session;
mod table;
mod time_zone;
mod value;

pub use config::SessionConfig;
pub use config_file::{ConfigSources, load_defaults};
pub use session::*;
pub use table::{TableOptions, nearest, nearest_within, resolve_references};
pub use time_zone::time_zone;
pub use value::{EnumValue, MemorySize, OptionValue, parse_duration};

use std::fmt;
use std::marker::PhantomData;

use crate::error::Result;

/// A declared option of type `T`.
pub struct ConfigOption<T> {
    key: &'static str,
    doc: &'static str,
    default: Option<&'static str>,
    required: bool,
    old_keys: &'static [&'static str],
    value: PhantomData<fn() -> T>,
}

impl<T: OptionValue> ConfigOption<T> {
    /// Declares an option that must be given.
    pub const fn required(key: &'static str, doc: &'static str) -> Self {
        ConfigOption { key, doc, default: None, required: true, old_keys: &[], value: PhantomData }
    }

    /// Declares an option that may be missing and then has no value.
    pub const fn optional(key: &'static str, doc: &'static str) -> Self {
        ConfigOption { key, doc, default: None, required: false, old_keys: &[], value: PhantomData }
    }

    /// Declares an option with a default, written as a user would.
    pub const fn with_default(key: &'static str, default: &'static str, doc: &'static str) -> Self {
        ConfigOption { key, doc, default: Some(default), required: false, old_keys: &[], value: PhantomData }
    }

    /// Adds the names that older versions had.
    #[must_use]
    pub const fn old_keys(mut self, old_keys: &'static [&'static str]) -> Self {
        self.old_keys = old_keys;
        self
    }

    /// Parses a text as a value of this option; the error names the key.
    pub fn parse(&self, text: &str) -> Result<T> {
        T::parse(text).map_err(|error| {
            error.hint(format!("This is the value of option '{}', which takes {}.", self.key, T::describe()))
        })
    }
}

/// What is known of an option without its type.
pub trait OptionDef: Sync {
    /// Returns the key.
    fn key(&self) -> &'static str;
    /// Returns one or two sentences, the last one ending with a period.
    fn doc(&self) -> &'static str;
    /// Returns the default as a user would write it.
    fn default_text(&self) -> Option<&'static str>;
    /// Returns whether it must be given.
    fn is_required(&self) -> bool;
    /// Returns its names in older versions.
    fn old_keys(&self) -> &'static [&'static str];
    /// Returns what values look like, for example `a duration such as 10 s`.
    fn describe_value(&self) -> String;
    /// Returns the values, when they are few enough to be listed.
    fn known_values(&self) -> Vec<&'static str>;
    /// Returns whether the text is a value.
    fn check(&self, text: &str) -> Result<()>;
}

impl<T: OptionValue> OptionDef for ConfigOption<T> {
    fn key(&self) -> &'static str {
        self.key
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn default_text(&self) -> Option<&'static str> {
        self.default
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn old_keys(&self) -> &'static [&'static str] {
        self.old_keys
    }

    fn describe_value(&self) -> String {
        T::describe()
    }

    fn known_values(&self) -> Vec<&'static str> {
        T::known_values()
    }

    fn check(&self, text: &str) -> Result<()> {
        self.parse(text).map(drop)
    }
}

impl<T> fmt::Debug for ConfigOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConfigOption").field(&self.key).finish()
    }
}
