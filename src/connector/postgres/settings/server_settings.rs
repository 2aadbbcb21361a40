//! Which server and database, who reads, and how the connection is protected.

use std::fmt;
use std::time::Duration;

use super::PassedOn;
use crate::connector::postgres::options::{
    CONNECT_MAX_RETRIES, CONNECT_TIMEOUT, DATABASE_NAME, HOSTNAME, PASSWORD, PORT, USERNAME,
};
use crate::connector::postgres_tls::TlsSettings;
use crate::error::{Error, REDACTED, Result};
use crate::options::{OptionDef, TableOptions};

/// A password, which no text ever shows.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct Password(String);

impl Password {
    pub(in crate::connector::postgres) fn new(text: impl Into<String>) -> Password {
        Password(text.into())
    }

    /// Returns the password itself, for the connection and for nothing else.
    pub(in crate::connector::postgres) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// A database of a server, and how to get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct ServerSettings {
    pub(in crate::connector::postgres) host: String,
    pub(in crate::connector::postgres) port: u16,
    pub(in crate::connector::postgres) user: String,
    pub(in crate::connector::postgres) password: Password,
    pub(in crate::connector::postgres) database: String,
    pub(in crate::connector::postgres) tls: TlsSettings,
    /// How long the server may take to let us in.
    pub(in crate::connector::postgres) connect_timeout: Duration,
    /// How often a job that begins tries again.
    pub(in crate::connector::postgres) connect_retries: u32,
}

impl ServerSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// An option is missing or wrong.
    pub(in crate::connector::postgres) fn read(
        options: &TableOptions,
        passed_on: &PassedOn,
    ) -> Result<ServerSettings> {
        let given = |option| -> Result<String> {
            let text: String = options.get(option)?;
            if text.is_empty() {
                return Err(Error::validation(format!("option '{}' is empty", option.key())));
            }
            Ok(text)
        };
        let port = options.get(&PORT)?;
        let port = u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| {
            Error::validation(format!("option '{}' is no port: {port}", PORT.key()))
                .hint("A port is a number from 1 to 65535.")
        })?;
        Ok(ServerSettings {
            host: given(&HOSTNAME)?,
            port,
            user: given(&USERNAME)?,
            password: Password::new(options.get(&PASSWORD)?),
            database: given(&DATABASE_NAME)?,
            tls: passed_on.tls.clone(),
            connect_timeout: passed_on.connect_timeout.map_or_else(|| options.get(&CONNECT_TIMEOUT), Ok)?,
            connect_retries: options.get(&CONNECT_MAX_RETRIES)?,
        })
    }

    /// Returns the server and its database as messages name them.
    pub(in crate::connector::postgres) fn name(&self) -> String {
        // An IPv6 address has colons of its own.
        let brackets = self.host.contains(':');
        let host = if brackets { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}/{}", self.port, self.database)
    }
}
