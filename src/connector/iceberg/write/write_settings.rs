//! How files are written: the table's properties, and over them the options of the statement.

use std::collections::BTreeMap;

use crate::error::Result;

/// How the files of one sink are written.
#[derive(Debug, Clone)]
pub(super) struct WriteSettings {}

impl WriteSettings {
    /// Reads properties, those of the table or what overrides them.
    ///
    /// # Errors
    /// A value does not parse or is not supported.
    pub(super) fn new(_properties: &BTreeMap<String, String>) -> Result<WriteSettings> {
        Ok(WriteSettings {})
    }
}
