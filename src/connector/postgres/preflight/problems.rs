//! What is wrong: everything of one kind as one error, and all kinds as one.

use crate::connector::postgres::connection::PgServer;
use crate::error::{Error, ErrorKind, Result};

/// What is wrong of one kind, and the statements that put it right.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<String>,
    statements: Vec<String>,
}

impl Problems {
    /// Adds a problem and the statement that puts it right; one that several problems need stands once.
    pub(super) fn add(&mut self, found: impl Into<String>, statement: impl Into<String>) {
        let (found, statement) = (found.into(), statement.into());
        if !self.found.contains(&found) {
            self.found.push(found);
        }
        if !self.statements.contains(&statement) {
            self.statements.push(statement);
        }
    }

    /// Fails if there is a problem. `what` begins the message; `who` begins the hint, such as `Run as a superuser`; `or_else` is another
    /// way out, behind the statements.
    ///
    /// # Errors
    /// There is one.
    pub(super) fn finish(self, server: &PgServer, what: &str, who: &str, or_else: &str) -> Result<()> {
        if self.found.is_empty() {
            return Ok(());
        }
        let message = format!("{}{what}{}", prefix(server), self.found.join("; "));
        let hint = format!("{who}: {}{or_else}", self.statements.join(" "));
        Err(Error::new(ErrorKind::Rejected, message).hint(hint))
    }
}

/// All that is wrong, so that the user need not find out one after the other.
#[derive(Debug, Default)]
pub(super) struct Report {
    errors: Vec<Error>,
}

impl Report {
    /// Keeps what failed; returns what did not.
    pub(super) fn take<T>(&mut self, checked: Result<T>) -> Option<T> {
        checked.map_err(|error| self.errors.push(error)).ok()
    }

    /// Fails if anything did.
    ///
    /// # Errors
    /// The one thing that is wrong, or a list of all. What may pass by itself is told only if there is nothing else.
    pub(super) fn finish(mut self, server: &PgServer) -> Result<()> {
        let passes = |error: &Error| error.kind() == ErrorKind::Unavailable;
        if self.errors.iter().all(passes) {
            // A list of them would be something that does not pass.
            self.errors.truncate(1);
        } else {
            self.errors.retain(|error| !passes(error));
        }
        if self.errors.len() < 2 {
            return self.errors.pop().map_or(Ok(()), Err);
        }
        let prefix = prefix(server);
        let mut message = format!("Postgres '{}' is not ready for the job:", server.name());
        for error in &self.errors {
            let text = error.message();
            message.push_str("\n  - ");
            message.push_str(text.strip_prefix(&prefix).unwrap_or(text));
        }
        let hints: Vec<&str> = self.errors.iter().filter_map(Error::hint_text).collect();
        Err(Error::new(ErrorKind::Rejected, message).hint(hints.join("\n")))
    }
}

fn prefix(server: &PgServer) -> String {
    format!("Postgres '{}': ", server.name())
}
