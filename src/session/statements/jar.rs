//! ADD JAR and REMOVE JAR: the list is kept so that scripts which manage it run on; nothing is loaded.

use crate::error::{Error, FlinkClass, Result};
use crate::session::{Session, StatementResult};
use crate::sql::Spanned;

impl Session {
    /// Adds a JAR to the list, whether the file is there or not.
    pub(in crate::session) fn add_jar(&mut self, path: &Spanned<String>) -> Result<StatementResult> {
        if !self.jars.contains(&path.value) {
            self.jars.push(path.value.clone());
        }
        Ok(StatementResult::DoneWithNote(format!(
            "JAR '{}' is not needed and was not loaded: connectors, formats and catalogs are built in.",
            path.value
        )))
    }

    /// Takes a JAR off the list.
    pub(in crate::session) fn remove_jar(&mut self, path: &Spanned<String>) -> Result<StatementResult> {
        let before = self.jars.len();
        self.jars.retain(|jar| *jar != path.value);
        if self.jars.len() == before {
            return Err(Error::not_found(format!("jar or artifact resource [{}] not found.", path.value))
                .class(FlinkClass::FILE_NOT_FOUND)
                .at(path.span)
                .hint("SHOW JARS lists what was added."));
        }
        Ok(StatementResult::Done)
    }
}
