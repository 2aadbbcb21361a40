//! LOAD, UNLOAD and USE of modules.

use crate::error::{Error, Result};
use crate::session::{Session, StatementResult};
use crate::sql::{Spanned, SqlOption};

impl Session {
    /// Loads a module.
    pub(in crate::session) fn load_module(
        &mut self,
        name: &Spanned<String>,
        options: &[SqlOption],
    ) -> Result<StatementResult> {
        self.modules.load(&name.value).map_err(|error| error.at(name.span))?;
        if let Some(option) = options.first() {
            self.modules.unload(&name.value)?;
            return Err(Error::validation(format!(
                "Unsupported options found for '{}'.\n\nUnsupported options:\n\n{}",
                name.value, option.key.value
            ))
            .at(option.key.span));
        }
        Ok(StatementResult::Done)
    }

    /// Unloads a module.
    pub(in crate::session) fn unload_module(&mut self, name: &Spanned<String>) -> Result<StatementResult> {
        self.modules.unload(&name.value).map_err(|error| error.at(name.span))?;
        Ok(StatementResult::Done)
    }

    /// Uses exactly these modules.
    pub(in crate::session) fn use_modules(&mut self, names: &[Spanned<String>]) -> Result<StatementResult> {
        let names: Vec<&str> = names.iter().map(|name| name.value.as_str()).collect();
        self.modules.use_modules(&names)?;
        Ok(StatementResult::Done)
    }
}
