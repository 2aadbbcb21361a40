//! Postgres as the database of a catalog.

use async_trait::async_trait;
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls};

use super::database::{Database, Row, Statement, WriteError};
use crate::connector::postgres_tls::{TlsSettings, connector};
use crate::error::{Error, ErrorKind, Result};

/// A database in Postgres, on one connection that is made anew when it is lost.
pub(super) struct Postgres {
    config: Config,
    tls: TlsSettings,
    client: Mutex<Option<Client>>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("server", &self.server()).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub(super) async fn open(config: Config, tls: TlsSettings) -> Result<Postgres> {
        let postgres = Postgres { config, tls, client: Mutex::new(None) };
        drop(postgres.connected().await?);
        Ok(postgres)
    }

    /// Returns the server and database as errors name them.
    fn server(&self) -> String {
        use tokio_postgres::config::Host;
        let hosts = self
            .config
            .get_hosts()
            .iter()
            .zip(self.config.get_ports().iter().chain(std::iter::repeat(&5432)));
        let named = hosts.map(|(host, port)| match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}/{database}", named.collect::<Vec<_>>().join(","))
    }

    /// Returns the connection, made anew if it was lost.
    async fn connected(&self) -> Result<MutexGuard<'_, Option<Client>>> {
        let mut client = self.client.lock().await;
        if client.as_ref().is_none_or(Client::is_closed) {
            *client = None;
            *client = Some(self.connect().await?);
        }
        Ok(client)
    }

    async fn connect(&self) -> Result<Client> {
        let failed = |error| failure(&self.server(), error);
        if self.config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.config.connect(NoTls).await.map_err(failed)?;
            tokio::spawn(connection);
            return Ok(client);
        }
        let (client, connection) = self.config.connect(connector(&self.tls)?).await.map_err(failed)?;
        // Ends with the client; what goes wrong meanwhile is told to who asks.
        tokio::spawn(connection);
        Ok(client)
    }

    async fn read_once(&self, query: &Statement) -> Result<Result<Vec<Row>, tokio_postgres::Error>> {
        let client = self.connected().await?;
        let Some(client) = client.as_ref() else { return Ok(Ok(Vec::new())) };
        Ok(client.query_typed(&query.sql, &typed(query)).await.and_then(|rows| {
            rows.iter().map(|row| (0..row.len()).map(|at| row.try_get(at)).collect()).collect()
        }))
    }

    async fn write_once(
        client: &mut Client,
        statements: &[Statement],
    ) -> Result<Vec<u64>, tokio_postgres::Error> {
        if let [statement] = statements {
            // A transaction by itself, in one round trip.
            return Ok(vec![client.execute_typed(&statement.sql, &typed(statement)).await?]);
        }
        let transaction = client.transaction().await?;
        let mut counts = Vec::with_capacity(statements.len());
        for statement in statements {
            counts.push(transaction.execute_typed(&statement.sql, &typed(statement)).await?);
        }
        transaction.commit().await?;
        Ok(counts)
    }
}

/// Returns parameters with their type. Without it the server would be asked for it under a name, which poolers of connections lose.
fn typed(statement: &Statement) -> Vec<(&(dyn ToSql + Sync), Type)> {
    statement.parameters.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect()
}

#[async_trait]
impl Database for Postgres {
    fn columns_query(&self) -> &'static str {
        "SELECT column_name::text FROM information_schema.columns WHERE table_name = $1 AND table_schema = ANY (current_schemas(false)::text[])"
    }

    async fn read(&self, query: Statement) -> Result<Vec<Row>> {
        let mut rows = self.read_once(&query).await?;
        if rows.as_ref().is_err_and(|error| error.as_db_error().is_none()) {
            // The connection was lost while nobody used it.
            *self.client.lock().await = None;
            rows = self.read_once(&query).await?;
        }
        rows.map_err(|error| failure(&self.server(), error))
    }

    async fn write(&self, statements: Vec<Statement>) -> Result<Vec<u64>, WriteError> {
        let mut client = self.connected().await.map_err(WriteError::Failed)?;
        let Some(client) = client.as_mut() else { return Ok(Vec::new()) };
        Self::write_once(client, &statements).await.map_err(|error| {
            let code = error.code().cloned();
            let error = failure(&self.server(), error);
            match code {
                Some(code) if code == SqlState::UNIQUE_VIOLATION => WriteError::Exists(error),
                Some(code)
                    if code == SqlState::T_R_SERIALIZATION_FAILURE
                        || code == SqlState::T_R_DEADLOCK_DETECTED =>
                {
                    WriteError::Raced(error)
                }
                // The connection breaks, or the server stops.
                Some(code) if code.code().starts_with("08") || code.code().starts_with("57P") => {
                    WriteError::Unknown(error)
                }
                Some(_) => WriteError::Failed(error),
                None => WriteError::Unknown(error),
            }
        })
    }
}

/// Converts an error of Postgres. Its texts hold no password.
fn failure(server: &str, error: tokio_postgres::Error) -> Error {
    let told = |reason: &str| format!("Postgres database '{server}': {reason}");
    let Some(database) = error.as_db_error() else {
        let mut reason = error.to_string();
        if let Some(cause) = std::error::Error::source(&error) {
            reason = format!("{reason}: {cause}");
        }
        return Error::unavailable(told(&reason)).caused_by(error);
    };
    let (kind, hint) = match &database.code().code()[..2] {
        "28" => (
            ErrorKind::Rejected,
            "Check 'jdbc.user' and 'jdbc.password', and which users the server lets in.",
        ),
        "3D" => (ErrorKind::Rejected, "Create the database first."),
        "42" if *database.code() == SqlState::INSUFFICIENT_PRIVILEGE => {
            (ErrorKind::Rejected, "Give the user the right to read and write the catalog's tables.")
        }
        "22" | "23" | "42" => (ErrorKind::Rejected, ""),
        _ => (ErrorKind::Unavailable, ""),
    };
    let failed = Error::new(kind, told(database.message()));
    let failed = if hint.is_empty() { failed } else { failed.hint(hint) };
    failed.caused_by(error)
}
