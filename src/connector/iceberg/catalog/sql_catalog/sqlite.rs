//! SQLite as the database of a catalog: a file beside the warehouse, or memory in tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params_from_iter};

use super::database::{Database, Row, Statement, WriteError};
use crate::error::{Error, ErrorKind, Result};

/// How long a transaction waits for those of others.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// A database in SQLite. Its calls wait for the disk, so they run on threads that may wait.
#[derive(Debug, Clone)]
pub(super) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
    /// As errors name it.
    path: Arc<str>,
}

impl Sqlite {
    /// Opens a database; the file is made, its folder is not.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn open(path: String) -> Result<Sqlite> {
        let name: Arc<str> = path.as_str().into();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = move || {
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            Ok(connection)
        };
        let connection = blocking(open).await?.map_err(|error| failure(&name, error))?;
        Ok(Sqlite { connection: Arc::new(Mutex::new(connection)), path: name })
    }

    /// Runs work on the connection.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<rusqlite::Result<T>> {
        let connection = Arc::clone(&self.connection);
        // Work that panicked has rolled back, so the connection is sound.
        blocking(move || work(&mut connection.lock().unwrap_or_else(std::sync::PoisonError::into_inner)))
            .await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let joined = tokio::task::spawn_blocking(work).await;
    joined.map_err(|error| Error::internal("a call of SQLite did not end").caused_by(error))
}

/// Returns the SQL with parameters as SQLite numbers them.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

#[async_trait]
impl Database for Sqlite {
    fn columns_query(&self) -> &'static str {
        "SELECT name FROM pragma_table_info($1)"
    }

    fn answers_are_final(&self) -> bool {
        true
    }

    async fn read(&self, query: Statement) -> Result<Vec<Row>> {
        let rows = self.with(move |connection| {
            let mut prepared = connection.prepare(&numbered(&query.sql))?;
            let width = prepared.column_count();
            let row = |row: &rusqlite::Row<'_>| (0..width).map(|at| row.get(at)).collect();
            prepared.query_map(params_from_iter(&query.parameters), row)?.collect()
        });
        rows.await?.map_err(|error| failure(&self.path, error))
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<u64>, WriteError> {
        let write = self.with(move |connection| {
            // A transaction that reads first and writes later would not wait for others, but fail.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let execute = |statement: &Statement| {
                let parameters = params_from_iter(&statement.parameters);
                Ok(transaction.execute(&numbered(&statement.sql), parameters)? as u64)
            };
            let counts = statements.iter().map(execute).collect::<rusqlite::Result<Vec<u64>>>()?;
            Ok((counts, transaction.commit()))
        });
        match write.await.map_err(WriteError::Unknown)? {
            Ok((counts, Ok(()))) => Ok(counts),
            Ok((_, Err(error))) => {
                let is_definite = is_definite(error.sqlite_error_code()) || has_journal(&self.path);
                let error = failure(&self.path, error);
                Err(if is_definite { WriteError::Failed(error) } else { WriteError::Unknown(error) })
            }
            // What fails before COMMIT is rolled back.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                Err(WriteError::Exists(failure(&self.path, error)))
            }
            Err(error) => Err(WriteError::Failed(failure(&self.path, error))),
        }
    }
}

/// Returns whether COMMIT has changed nothing when it fails so. Of a disk that is full or broken nobody knows.
fn is_definite(code: Option<ErrorCode>) -> bool {
    matches!(
        code,
        Some(
            ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::AuthorizationForStatementDenied
                | ErrorCode::NotADatabase
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ConstraintViolation
        )
    )
}

/// Returns whether a COMMIT that failed has left its journal: then the next who opens the database takes everything back.
fn has_journal(path: &str) -> bool {
    std::fs::metadata(format!("{path}-journal")).is_ok_and(|journal| journal.len() > 0)
}

/// Returns whether the file must not be written any more; SQLite does not tell that from other failures of the disk.
fn is_read_only(path: &str) -> bool {
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    opened.is_err_and(|error| {
        matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
    })
}

/// Converts an error of SQLite.
fn failure(path: &str, error: rusqlite::Error) -> Error {
    let (kind, hint) = match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if is_read_only(path) => (
            ErrorKind::Rejected,
            "The file is read-only now. Give the user who runs this the right to write there.",
        ),
        Some(ErrorCode::CannotOpen) => (
            ErrorKind::Rejected,
            "Its folder must exist, and the user who runs this must have the right to write there.",
        ),
        Some(
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied,
        ) => (ErrorKind::Rejected, "Give the user who runs this the right to write there."),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            (ErrorKind::Data, "The file is no SQLite database, or it is damaged.")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Unavailable, "Another program holds a transaction open in it.")
        }
        _ => (ErrorKind::Unavailable, ""),
    };
    let failed = Error::new(kind, format!("SQLite database '{path}': {error}"));
    let failed = if hint.is_empty() { failed } else { failed.hint(hint) };
    failed.caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_commit_says_of_itself() {
        for code in [ErrorCode::ReadOnly, ErrorCode::CannotOpen, ErrorCode::DatabaseCorrupt] {
            assert!(is_definite(Some(code)), "{code:?}");
        }
        for code in [ErrorCode::SystemIoFailure, ErrorCode::DiskFull] {
            assert!(!is_definite(Some(code)), "{code:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.db").display().to_string();
        assert!(!has_journal(&path));
        std::fs::write(format!("{path}-journal"), "").unwrap();
        assert!(!has_journal(&path), "it was cut off, which is a commit");
        std::fs::write(format!("{path}-journal"), "pages").unwrap();
        assert!(has_journal(&path));
    }
}
