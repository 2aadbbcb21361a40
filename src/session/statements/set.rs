//! SET and RESET.

use crate::error::{Result, redact_value};
use crate::session::result_table::{AnswerColumn, answer};
use crate::session::{Session, StatementResult};
use crate::sql::{SetCommand, Spanned};

impl Session {
    /// Sets an option or lists the options.
    pub(in crate::session) fn execute_set(&mut self, command: &SetCommand) -> Result<StatementResult> {
        match command {
            SetCommand::List | SetCommand::ListAll => {
                let entries = self.config.entries();
                answer(vec![
                    AnswerColumn::texts("key", entries.keys().map(|key| Some(*key))),
                    AnswerColumn::texts(
                        "value",
                        entries.iter().map(|(key, value)| Some(redact_value(key, value))),
                    ),
                ])
            }
            SetCommand::Assign(option) => {
                self.config.set(&option.key.value, &option.value.value);
                Ok(StatementResult::Done)
            }
        }
    }

    /// Takes one option or all of them back to what the session started with.
    pub(in crate::session) fn execute_reset(
        &mut self,
        key: Option<&Spanned<String>>,
    ) -> Result<StatementResult> {
        match key {
            Some(key) => self.config.reset(&key.value),
            None => self.config.reset_all(),
        }
        Ok(StatementResult::Done)
    }
}
