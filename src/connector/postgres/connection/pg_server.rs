//! A database of a server: connects to it, and says what goes wrong there in the same words everywhere.

use std::sync::Arc;
use std::time::Duration;

use pgwire_replication::PgWireError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{Client, Config, Connection, NoTls, Socket};

use super::failure;
use crate::connector::postgres::settings::ServerSettings;
use crate::connector::postgres_tls::{PresentedName, TlsMode, connector_that_learns};
use crate::error::{Error, Result};

/// What sessions must agree on whatever the role, the database or the server has set: values are written the same way in the snapshot
/// and in the stream, names in them have their schema, no policy hides rows in silence, and no limit that is meant for people cuts off
/// a long copy.
pub(super) const SESSION_SETTINGS: &str = "-c datestyle=ISO -c intervalstyle=iso_8601 -c timezone=UTC -c bytea_output=hex -c extra_float_digits=3 -c lc_monetary=C -c search_path=pg_catalog -c row_security=off -c statement_timeout=0 -c idle_in_transaction_session_timeout=0";

/// Who the server shows as connected.
pub(super) const APPLICATION_NAME: &str = "lakehead";

/// How soon a peer that has vanished is noticed: after three probes, ten seconds apart, in half a minute of silence.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// How soon it is noticed while it owes us the receipt of a question: then no probes are sent, and the question is sent again and again
/// instead, for a quarter of an hour if nothing else is said.
const RECEIPT_WAIT: Duration = Duration::from_secs(60);

/// How long the server may take over what nobody watches meanwhile: a connection that is dead would never be noticed.
pub(in crate::connector::postgres) const ANSWER_WAIT: Duration =
    if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(60) };

/// A database of a server. Clones are cheap.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct PgServer {
    settings: Arc<ServerSettings>,
    name: Arc<str>,
}

impl PgServer {
    pub(in crate::connector::postgres) fn new(settings: ServerSettings) -> PgServer {
        let name = settings.name().into();
        PgServer { settings: Arc::new(settings), name }
    }

    pub(in crate::connector::postgres) fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// Returns `host:port/database`.
    pub(in crate::connector::postgres) fn name(&self) -> &str {
        &self.name
    }

    /// Connects once. The connection ends with the client.
    ///
    /// # Errors
    /// The server cannot be reached (unavailable) or refuses.
    pub(in crate::connector::postgres) async fn connect(&self) -> Result<Client> {
        self.connect_and_learn(&PresentedName::default()).await
    }

    /// Returns a name that the server's certificate has, if it has not the one by which it is asked for, and need not have it.
    ///
    /// # Errors
    /// As `connect`.
    pub(super) async fn other_name(&self) -> Result<Option<String>> {
        if self.settings.tls.mode != TlsMode::VerifyCa {
            return Ok(None);
        }
        let presented = PresentedName::default();
        drop(self.connect_and_learn(&presented).await?);
        Ok(presented.get().map(str::to_owned))
    }

    async fn connect_and_learn(&self, presented: &PresentedName) -> Result<Client> {
        let limit = self.settings.connect_timeout;
        match tokio::time::timeout(limit, Box::pin(self.connect_once(presented))).await {
            Ok(connected) => connected,
            Err(_) => Err(self.slow_to_connect()),
        }
    }

    async fn connect_once(&self, presented: &PresentedName) -> Result<Client> {
        let failed = |error| self.sql_error("connecting", error);
        let config = self.config();
        if self.settings.tls.mode == TlsMode::Disable {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            return self.begin(client, connection).await;
        }
        let connector = connector_that_learns(&self.settings.tls, presented)?;
        let (client, connection) = config.connect(connector).await.map_err(failed)?;
        self.begin(client, connection).await
    }

    async fn begin<S>(&self, client: Client, connection: Connection<Socket, S>) -> Result<Client>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let knows_encoding = connection.parameter("server_encoding") != Some("SQL_ASCII");
        // What goes wrong meanwhile is told to who asks.
        tokio::spawn(connection);
        if !knows_encoding {
            // Or it would refuse to send what is not UTF-8, and not say where that is.
            let raw = client.batch_execute("SET client_encoding = 'SQL_ASCII'").await;
            raw.map_err(|error| self.sql_error("connecting", error))?;
        }
        Ok(client)
    }

    fn config(&self) -> Config {
        let settings = &*self.settings;
        let mut config = Config::new();
        config
            .host(&settings.host)
            .port(settings.port)
            .user(&settings.user)
            .password(settings.password.expose())
            .dbname(&settings.database)
            .ssl_mode(settings.tls.mode.ssl_mode())
            .application_name(APPLICATION_NAME)
            .options(SESSION_SETTINGS)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(RECEIPT_WAIT);
        config
    }

    /// Says that the server took too long to let us in.
    pub(super) fn slow_to_connect(&self) -> Error {
        let limit = self.settings.connect_timeout.as_secs_f64();
        Error::unavailable(format!("Postgres '{}': connecting took longer than {limit} s", self.name))
            .hint("Check 'hostname' and 'port', and what stands between; 'connect.timeout' is how long it may take.")
    }

    /// Waits for the answer to a question that takes the server no time: as long as it may take to let us in.
    ///
    /// # Errors
    /// The server refuses, the connection is lost, or no answer comes (unavailable).
    pub(in crate::connector::postgres) async fn answer<T>(
        &self,
        doing: &str,
        question: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.answer_within(doing, self.settings.connect_timeout, question).await
    }

    /// Says that the server took too long to answer.
    pub(super) fn no_answer(&self, doing: &str) -> Error {
        self.no_answer_within(doing, self.settings.connect_timeout)
    }

    /// Waits for the answer to a question, which has so much time: a connection that is dead has none, and says nothing of that.
    ///
    /// # Errors
    /// The server refuses, or has not answered in time (unavailable).
    pub(in crate::connector::postgres) async fn answer_within<T>(
        &self,
        doing: &str,
        limit: Duration,
        answer: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        self.in_time(doing, limit, async { answer.await.map_err(|error| self.sql_error(doing, error)) }).await
    }

    /// Waits likewise for what takes several questions.
    ///
    /// # Errors
    /// Those of what is waited for; or it has not come in time (unavailable).
    pub(in crate::connector::postgres) async fn in_time<T>(
        &self,
        doing: &str,
        limit: Duration,
        answer: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match tokio::time::timeout(limit, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.no_answer_within(doing, limit)),
        }
    }

    fn no_answer_within(&self, doing: &str, limit: Duration) -> Error {
        Error::unavailable(format!("Postgres '{}': {doing}: no answer in {} s", self.name, limit.as_secs_f64()))
            .hint("The connection may be dead; or the server lets it wait, as for a table that somebody has locked.")
    }

    /// Converts an error of SQL. `doing` says what was tried, such as `reading table public.orders`.
    pub(in crate::connector::postgres) fn sql_error(
        &self,
        doing: &str,
        error: tokio_postgres::Error,
    ) -> Error {
        failure::of_sql(self, doing, error)
    }

    /// Converts an error of a replication session likewise.
    pub(in crate::connector::postgres) fn stream_error(&self, doing: &str, error: &PgWireError) -> Error {
        failure::of_stream(self, doing, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::postgres::testing::server_settings;

    #[test]
    fn a_peer_that_has_vanished_is_noticed_within_a_minute_with_or_without_a_question() {
        let server = PgServer::new(server_settings());
        let config = server.config();
        let minute = Duration::from_secs(60);
        assert!(config.get_tcp_user_timeout().is_some_and(|wait| *wait <= minute));
        let probes = config.get_keepalives_retries().unwrap_or_default();
        let interval = config.get_keepalives_interval().unwrap_or_default();
        assert!(probes > 0 && config.get_keepalives_idle() + interval * probes <= minute);
    }
}
