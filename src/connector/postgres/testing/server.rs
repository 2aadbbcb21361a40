//! Settings of a server that nobody connects to.

use std::time::Duration;

use crate::connector::postgres::settings::{Password, ServerSettings};
use crate::connector::postgres_tls::{TlsMode, TlsSettings};

/// Returns settings for what needs some and no server.
pub(in crate::connector::postgres) fn server_settings() -> ServerSettings {
    ServerSettings {
        host: "h".to_owned(),
        port: 5432,
        user: "u".to_owned(),
        password: Password::new("p"),
        database: "d".to_owned(),
        tls: TlsSettings { mode: TlsMode::Disable, root_certificate: None },
        connect_timeout: Duration::from_secs(1),
        connect_retries: 0,
    }
}
