//! `uri` of a SQL catalog: as JDBC writes it (`jdbc:postgresql://host/db?sslmode=require`, `jdbc:sqlite:/path`), or as Python does
//! (`postgresql://user:password@host/db`, `sqlite:////path`).
//!
//! A URI may hold a password, so no error shows it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::database::Database;
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use crate::connector::postgres_tls::{TlsMode, TlsSettings};
use crate::error::{Error, Result};

/// How long a server may take to answer, unless the URI says it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A URI taken apart.
#[derive(Debug, PartialEq)]
pub(super) enum DatabaseUrl {
    /// A file, as SQLite opens it.
    Sqlite(String),
    /// A server.
    Postgres(Box<Config>, TlsSettings),
}

impl DatabaseUrl {
    /// Takes a URI apart. `parameters` count as if they stood in it; user and password go before those in it.
    ///
    /// # Errors
    /// There is no such database, or a parameter is not known.
    pub(super) fn parse(
        uri: &str,
        user: Option<&str>,
        password: Option<&str>,
        parameters: &[(String, String)],
    ) -> Result<DatabaseUrl> {
        let (is_jdbc, rest) = match uri.strip_prefix("jdbc:") {
            Some(rest) => (true, rest),
            None => (false, uri),
        };
        let (scheme, rest) = rest.split_once(':').unwrap_or((rest, ""));
        match scheme {
            "sqlite" => sqlite(rest, is_jdbc, parameters),
            "postgresql" | "postgres" => postgres(rest, user, password, parameters),
            _ if uri.is_empty() => {
                Err(Error::validation("option 'uri' of the catalog is missing").hint(SUPPORTED))
            }
            other => {
                let shown: String = other.chars().take_while(char::is_ascii_alphanumeric).collect();
                Err(Error::unsupported(format!("databases of kind '{shown}' are not supported in 'uri'"))
                    .hint(SUPPORTED))
            }
        }
    }

    /// Opens the database.
    ///
    /// # Errors
    /// It cannot be reached or refuses.
    pub(super) async fn open(self) -> Result<Arc<dyn Database>> {
        match self {
            DatabaseUrl::Sqlite(path) => Ok(Arc::new(Sqlite::open(path).await?)),
            DatabaseUrl::Postgres(config, tls) => Ok(Arc::new(Postgres::open(*config, tls).await?)),
        }
    }
}

const SUPPORTED: &str = "Write 'jdbc:sqlite:/path' or 'jdbc:postgresql://host:5432/database'.";

fn sqlite(path: &str, is_jdbc: bool, parameters: &[(String, String)]) -> Result<DatabaseUrl> {
    // SQLAlchemy writes three slashes and then the path, which has a slash of its own if it is absolute.
    let path = if is_jdbc { path } else { path.strip_prefix("///").unwrap_or(path) };
    let (plain, query) = match path.split_once('?') {
        // SQLite itself reads what stands behind a file: URI.
        Some((file, query)) if !file.starts_with("file:") => (file, query),
        _ => (path, ""),
    };
    let names = query.split('&').filter_map(|parameter| parameter.split('=').next());
    let given = names.filter(|name| !name.is_empty()).chain(parameters.iter().map(|(name, _)| name.as_str()));
    if let Some(name) = given.into_iter().next() {
        return Err(Error::unsupported(format!("parameter '{name}' of a SQLite database is not supported"))
            .hint("Leave it out of 'uri' and of the options that begin with 'jdbc.'."));
    }
    if plain.is_empty() {
        return Err(Error::validation("'uri' names no SQLite file").hint(SUPPORTED));
    }
    Ok(DatabaseUrl::Sqlite(plain.to_owned()))
}

fn postgres(
    rest: &str,
    user: Option<&str>,
    password: Option<&str>,
    parameters: &[(String, String)],
) -> Result<DatabaseUrl> {
    let unusable = |error: tokio_postgres::Error| {
        let reason = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        Error::validation(format!("'uri' names no Postgres database: {reason}")).hint(SUPPORTED)
    };
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let base = match base.strip_prefix("//") {
        Some(base) if base.is_empty() || base.starts_with('/') => format!("localhost{base}"),
        Some(base) => base.to_owned(),
        None => format!("localhost/{}", base.trim_start_matches('/')),
    };
    let mut config: Config = format!("postgresql://{base}").parse().map_err(unusable)?;
    config.ssl_mode(SslMode::Prefer).connect_timeout(CONNECT_TIMEOUT).application_name("lakehead");
    let mut tls = TlsSettings { mode: TlsMode::Prefer, root_certificate: None };
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        set_parameter(&mut config, &mut tls, name, &decoded(value))?;
    }
    for (name, value) in parameters {
        set_parameter(&mut config, &mut tls, name, value)?;
    }
    if let Some(user) = user {
        config.user(user);
    }
    if let Some(password) = password {
        config.password(password);
    }
    if config.get_user().is_none() {
        return Err(Error::validation("no user for the Postgres database is given")
            .hint("Set 'jdbc.user' and 'jdbc.password'."));
    }
    Ok(DatabaseUrl::Postgres(Box::new(config), tls))
}

/// Sets what a parameter says, by its name in JDBC or in Postgres's own client.
fn set_parameter(config: &mut Config, tls: &mut TlsSettings, name: &str, value: &str) -> Result<()> {
    let wrong = || Error::validation(format!("parameter '{name}' of 'uri' cannot be '{value}'"));
    let seconds = || value.parse().map(Duration::from_secs).map_err(|_| wrong());
    match name {
        "user" => drop(config.user(value)),
        "password" => drop(config.password(value)),
        "sslmode" => {
            tls.mode =
                TlsMode::parse(value).ok_or_else(|| wrong().hint(format!("It is {}.", TlsMode::CHOICES)))?;
            config.ssl_mode(tls.mode.ssl_mode());
        }
        // JDBC's way to say verify-full.
        "ssl" if value.is_empty() || value == "true" => {
            tls.mode = TlsMode::VerifyFull;
            config.ssl_mode(tls.mode.ssl_mode());
        }
        "ssl" if value == "false" => {}
        "sslrootcert" if value == "system" => {}
        "sslrootcert" => tls.root_certificate = Some(PathBuf::from(value)),
        "currentSchema" => drop(config.options(format!("-c search_path={}", value.replace(' ', "\\ ")))),
        "options" => drop(config.options(value)),
        "ApplicationName" | "application_name" => drop(config.application_name(value)),
        "connectTimeout" | "loginTimeout" | "connect_timeout" => drop(config.connect_timeout(seconds()?)),
        "socketTimeout" => drop(config.tcp_user_timeout(seconds()?)),
        _ => {
            return Err(Error::unsupported(format!("parameter '{name}' of a Postgres database is not supported"))
                .hint("Known are user, password, sslmode, sslrootcert, ssl, currentSchema, options, ApplicationName, connectTimeout and socketTimeout."));
        }
    }
    Ok(())
}

/// Replaces `%XX` by what it stands for.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let hex = |digit: u8| char::from(digit).to_digit(16);
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                let value = hex(*high).unwrap_or_default() * 16 + hex(*low).unwrap_or_default();
                bytes.push(value as u8);
                rest = behind;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn parse(uri: &str) -> Result<DatabaseUrl> {
        DatabaseUrl::parse(uri, None, None, &[])
    }

    fn parse_postgres(uri: &str) -> (Config, TlsSettings) {
        match DatabaseUrl::parse(uri, Some("u"), None, &[]).unwrap() {
            DatabaseUrl::Postgres(config, tls) => (*config, tls),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sqlite_files_are_found_in_every_spelling() {
        for (uri, path) in [
            ("jdbc:sqlite:/a/b.db", "/a/b.db"),
            ("jdbc:sqlite:b.db", "b.db"),
            ("jdbc:sqlite::memory:", ":memory:"),
            ("jdbc:sqlite:file:/a?mode=ro", "file:/a?mode=ro"),
            ("sqlite:/a/b.db", "/a/b.db"),
            ("sqlite:////a/b.db", "/a/b.db"),
            ("sqlite:///b.db", "b.db"),
        ] {
            assert_eq!(parse(uri).unwrap(), DatabaseUrl::Sqlite(path.into()), "{uri}");
        }
        assert!(parse("jdbc:sqlite:").is_err());
        assert!(parse("jdbc:sqlite:/a?journal_mode=WAL").unwrap_err().message().contains("'journal_mode'"));
    }

    #[test]
    fn postgres_servers_are_found_in_every_spelling() {
        use tokio_postgres::config::Host;
        for (uri, host, port, database) in [
            ("jdbc:postgresql://h:5433/d", "h", 5433, Some("d")),
            ("jdbc:postgresql://h/d", "h", 5432, Some("d")),
            ("jdbc:postgresql:d", "localhost", 5432, Some("d")),
            ("jdbc:postgresql:///d", "localhost", 5432, Some("d")),
            ("postgres://h", "h", 5432, None),
        ] {
            let (config, _) = parse_postgres(uri);
            assert_eq!(config.get_hosts(), [Host::Tcp(host.into())], "{uri}");
            assert_eq!((config.get_ports(), config.get_dbname()), (&[port][..], database), "{uri}");
        }
        let uri = "postgresql://me:p%40ss@h/d?currentSchema=s&connectTimeout=3";
        let DatabaseUrl::Postgres(config, _) = parse(uri).unwrap() else { panic!() };
        assert_eq!((config.get_user(), config.get_password()), (Some("me"), Some(&b"p@ss"[..])));
        assert_eq!(config.get_options(), Some("-c search_path=s"));
        assert_eq!(config.get_connect_timeout(), Some(&Duration::from_secs(3)));
        let given = DatabaseUrl::parse("jdbc:postgresql://h/d?user=a&password=b", Some("c"), Some("e"), &[]);
        let DatabaseUrl::Postgres(config, _) = given.unwrap() else { panic!() };
        assert_eq!((config.get_user(), config.get_password()), (Some("c"), Some(&b"e"[..])));
    }

    #[test]
    fn encryption_is_as_the_parameters_say() {
        for (query, ssl_mode, mode) in [
            ("", SslMode::Prefer, TlsMode::Prefer),
            ("?sslmode=disable", SslMode::Disable, TlsMode::Disable),
            ("?sslmode=require", SslMode::Require, TlsMode::Require),
            ("?sslmode=verify-ca", SslMode::Require, TlsMode::VerifyCa),
            ("?sslmode=verify-full", SslMode::Require, TlsMode::VerifyFull),
            ("?ssl=true", SslMode::Require, TlsMode::VerifyFull),
        ] {
            let (config, tls) = parse_postgres(&format!("jdbc:postgresql://h/d{query}"));
            assert_eq!((config.get_ssl_mode(), tls.mode), (ssl_mode, mode), "{query}");
        }
        let (_, tls) = parse_postgres("jdbc:postgresql://h/d?sslmode=verify-full&sslrootcert=/a%20b.pem");
        assert_eq!(tls.root_certificate, Some(PathBuf::from("/a b.pem")));
    }

    #[test]
    fn no_error_tells_a_password() {
        for uri in [
            "mysql://u:hidden@h/d",
            "jdbc:mysql://h/d?password=hidden",
            "postgresql://u:hidden@h:port/d",
            "postgresql://u:hidden@h/d?nope=1",
            "jdbc:postgresql://h/d?password=hidden&sslmode=nope",
            "hidden",
            "",
        ] {
            let error = parse(uri).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Validation | ErrorKind::Unsupported), "{error}");
            assert!(uri == "hidden" || !format!("{error:?}").contains("hidden"), "{error:?}");
            assert!(error.hint_text().is_some());
        }
        assert!(parse("jdbc:postgresql://h/d").unwrap_err().message().contains("no user"));
    }
}
