//! A session that the server treats as a receiver of changes. It takes SQL and replication commands until it is told to start.

use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use pgwire_replication::client::QueryRow;
use pgwire_replication::{ReplicationClient, ReplicationConfig, SslMode, TlsConfig};

use super::PgServer;
use super::pg_server::{APPLICATION_NAME, SESSION_SETTINGS};
use super::socket_thread::SocketThread;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::settings::ServerSettings;
use crate::connector::postgres::table::quoted;
use crate::connector::postgres_tls::TlsMode;
use crate::error::{Error, Result};

/// How often the server is told what it may forget, at most; also how often it hears of us while nobody takes what it sends.
const STATUS_INTERVAL: Duration = Duration::from_millis(500);

/// How long the library waits for the server before it says something by itself. That would be worse than nothing: the server asks for a
/// sign of life when it has not heard of us for half of its own time-out, and its question is all that an idle server ever says. So this
/// is longer than any time-out can be.
const WORD_BY_ITSELF: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How many messages the client reads ahead. Each may be a row of many megabytes, so few; the socket's buffer holds more small ones.
const MESSAGES_MAX: usize = 64;

/// What the server believes of a receiver when its own time-out is off: without one it never says that it is still there.
const SENDER_TIMEOUT_INSTEAD_OF_NONE: Duration = Duration::from_secs(60);

/// Which server this is: a position means something only there, and only on one line of its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct SystemIdentity {
    pub(in crate::connector::postgres) system_id: String,
    pub(in crate::connector::postgres) timeline: u32,
    /// How far the log had been written when it was asked.
    pub(in crate::connector::postgres) flushed: Lsn,
}

/// A session that has not started.
pub(in crate::connector::postgres) struct ReplicationSession {
    server: PgServer,
    client: ReplicationClient,
    /// On which the client lives.
    thread: SocketThread,
    identity: SystemIdentity,
    /// After how much silence of a receiver the server gives it up; it says something itself in half of that.
    sender_timeout: Duration,
}

impl ReplicationSession {
    /// Connects. What the session is for must be known by now: when it starts, it reads `slot` from `from` on (from where the slot is
    /// if 0), as far as `publication` has it.
    ///
    /// # Errors
    /// The server cannot be reached (unavailable) or refuses.
    pub(in crate::connector::postgres) async fn open(
        server: &PgServer,
        slot: &str,
        publication: &str,
        from: Lsn,
    ) -> Result<ReplicationSession> {
        install_crypto_provider();
        let settings = server.settings();
        let other_name = server.other_name().await?;
        let config = config(settings, other_name, slot, publication, from)?;
        let refused = |error| server.stream_error("connecting", &error);
        let thread = SocketThread::start()?;
        // The client's task is one of the runtime in which it is made.
        let connecting = thread.runtime().spawn(ReplicationClient::connect_gated(config)).await;
        let connecting =
            connecting.map_err(|error| Error::internal("a stream's client is gone").caused_by(error))?;
        let mut client = connecting.map_err(refused)?;
        // The connection is made by the first command.
        let identified = tokio::time::timeout(settings.connect_timeout, client.identify_system()).await;
        let Ok(identified) = identified else {
            client.abort();
            return Err(server.slow_to_connect());
        };
        let identified = identified.map_err(refused)?;
        let mut session = ReplicationSession {
            server: server.clone(),
            client,
            thread,
            identity: SystemIdentity {
                system_id: identified.system_id,
                timeline: identified.timeline,
                flushed: Lsn(identified.xlogpos.into()),
            },
            sender_timeout: SENDER_TIMEOUT_INSTEAD_OF_NONE,
        };
        session.agree_on_timeouts().await?;
        session.agree_on_encoding().await?;
        Ok(session)
    }

    /// Lets a server that does not know the encoding of its texts send them as they are. It would refuse to send what is not UTF-8, also of
    /// columns that nobody reads, and not say where that is.
    async fn agree_on_encoding(&mut self) -> Result<()> {
        let raw = "SELECT set_config('client_encoding', 'SQL_ASCII', false) WHERE current_setting('server_encoding') = 'SQL_ASCII'";
        self.query("agreeing on an encoding", raw).await.map(drop)
    }

    async fn agree_on_timeouts(&mut self) -> Result<()> {
        const DOING: &str = "reading its time-outs";
        // Known since version 14, and made for people who forget to log out.
        self.query(
            DOING,
            "SELECT set_config('idle_session_timeout', '0', false) WHERE current_setting('server_version_num')::int >= 140000",
        )
        .await?;
        let rows =
            self.query(DOING, "SELECT setting FROM pg_settings WHERE name = 'wal_sender_timeout'").await?;
        let millis = text(&rows, 0).and_then(|text| text.parse().ok()).unwrap_or_default();
        if millis > 0 {
            self.sender_timeout = Duration::from_millis(millis);
        } else {
            let millis = self.sender_timeout.as_millis();
            self.query(DOING, &format!("SET wal_sender_timeout = {millis}")).await?;
        }
        Ok(())
    }

    pub(in crate::connector::postgres) fn server(&self) -> &PgServer {
        &self.server
    }

    pub(in crate::connector::postgres) fn identity(&self) -> &SystemIdentity {
        &self.identity
    }

    /// Returns after how much silence of a receiver the server gives it up.
    pub(in crate::connector::postgres) fn sender_timeout(&self) -> Duration {
        self.sender_timeout
    }

    /// Runs SQL or a replication command that takes the server no time.
    ///
    /// # Errors
    /// The server refuses, the connection is lost, or no answer comes (unavailable): then the session is over.
    pub(in crate::connector::postgres) async fn query(
        &mut self,
        doing: &str,
        command: &str,
    ) -> Result<Vec<QueryRow>> {
        let limit = self.server.settings().connect_timeout;
        match tokio::time::timeout(limit, self.query_without_limit(doing, command)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.abort();
                Err(self.server.no_answer(doing))
            }
        }
    }

    /// Runs a command that may take any time, and whose caller looks whether it still runs.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub(in crate::connector::postgres) async fn query_without_limit(
        &mut self,
        doing: &str,
        command: &str,
    ) -> Result<Vec<QueryRow>> {
        self.client.simple_query(command).await.map_err(|error| self.server.stream_error(doing, &error))
    }

    /// Starts: from here on the server sends.
    ///
    /// # Errors
    /// The slot is not there, is in use (unavailable) or lost, or the connection is.
    pub(in crate::connector::postgres) async fn start(
        mut self,
        slot: &str,
    ) -> Result<(ReplicationClient, SocketThread)> {
        let doing = format!("reading replication slot {slot}");
        let limit = self.server.settings().connect_timeout;
        let started = async {
            self.client.start().await?;
            self.client.wait_started().await
        };
        match tokio::time::timeout(limit, started).await {
            Ok(Ok(())) => Ok((self.client, self.thread)),
            Ok(Err(error)) => Err(self.server.stream_error(&doing, &error)),
            Err(_) => {
                self.client.abort();
                Err(self.server.no_answer(&doing))
            }
        }
    }

    /// Ends the session at once, also while a command runs.
    pub(in crate::connector::postgres) fn abort(&mut self) {
        self.client.abort();
    }
}

/// Returns a column of the first row as text.
pub(in crate::connector::postgres) fn text(rows: &[QueryRow], column: usize) -> Option<String> {
    let value = rows.first()?.get(column)?.as_ref()?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Chooses what encrypts for libraries that ask for the process's default, of which there may be only one.
fn install_crypto_provider() {
    static INSTALLED: Once = Once::new();
    // An error says that somebody else has chosen, which is as good.
    INSTALLED.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// Returns how the library connects, and how it behaves.
fn config(
    settings: &ServerSettings,
    other_name: Option<String>,
    slot: &str,
    publication: &str,
    from: Lsn,
) -> Result<ReplicationConfig> {
    Ok(ReplicationConfig::new(
        &settings.host,
        &settings.user,
        settings.password.expose(),
        &settings.database,
        // Both are put into a command as they are; names that are not quoted could not begin with a digit, and would be made small.
        quoted(slot),
        quoted(publication),
    )
    .with_port(settings.port)
    .with_tls(tls_config(settings, other_name)?)
    .with_options(SESSION_SETTINGS)
    .with_application_name(APPLICATION_NAME)
    .with_start_lsn(pgwire_replication::Lsn::from(from.0))
    // Nothing is acknowledged by starting: earlier checkpoints may still be needed.
    .with_ack_lsn(pgwire_replication::Lsn::ZERO)
    .with_status_interval(STATUS_INTERVAL)
    .with_wakeup_interval(WORD_BY_ITSELF)
    .with_buffer_size(MESSAGES_MAX))
}

/// Returns what encrypts the session, as it does those for SQL. The library verifies a name also where none is to be verified; one that
/// the certificate has is as good there.
fn tls_config(settings: &ServerSettings, other_name: Option<String>) -> Result<TlsConfig> {
    let mode = match settings.tls.mode {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require => SslMode::Require,
        TlsMode::VerifyCa => SslMode::VerifyCa,
        TlsMode::VerifyFull => SslMode::VerifyFull,
    };
    let authorities = mode.verifies_certificate().then(|| settings.tls.authorities()).transpose()?;
    // A certificate may be made out for an address; the library wants to be told that this is meant.
    let address = settings.host.parse::<IpAddr>().is_ok().then(|| settings.host.clone());
    Ok(TlsConfig {
        mode,
        ca_pem_path: authorities,
        sni_hostname: other_name.or(address),
        ..TlsConfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::postgres::testing::server_settings;

    #[test]
    fn an_idle_server_is_left_to_ask_for_a_sign_of_life_whatever_its_time_out() {
        let config = config(&server_settings(), None, "s", "p", Lsn(0)).unwrap();
        // The longest wal_sender_timeout that can be set.
        assert!(config.idle_wakeup_interval > Duration::from_millis(i32::MAX.unsigned_abs().into()));
    }
}
