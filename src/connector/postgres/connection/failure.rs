//! What the server's refusals mean: whether they may pass by themselves, and what the user can do. SQLSTATEs decide; texts only choose
//! among hints.

use pgwire_replication::PgWireError;

use super::PgServer;
use crate::connector::postgres::settings::ServerSettings;
use crate::connector::postgres::table::quoted;
use crate::error::{Error, ErrorKind};

/// What to do with two jobs that read one slot.
pub(in crate::connector::postgres) const ONE_READER: &str = "Two readers of one slot would each miss what the other takes: give each job its own 'slot.name', or put their INSERTs into one statement set.";

/// Converts an error of an SQL session.
pub(super) fn of_sql(server: &PgServer, doing: &str, error: tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        if let Some(cause) = unreadable(&error) {
            let error = Error::new(ErrorKind::Rejected, told(server, doing, &format!("{error}: {cause}")));
            return error.hint(
                "It will be the same again. Where the database does not know the encoding of its texts (server_encoding is SQL_ASCII), the names of schemas, tables, columns and types have to be UTF-8.",
            );
        }
        let failed = match std::error::Error::source(&error) {
            Some(cause) => of_connection(server, doing, &format!("{error}: {cause}"), is_permanent(&error)),
            None => of_connection(server, doing, &error.to_string(), false),
        };
        return failed.caused_by(error);
    };
    let mut message = said.message().to_owned();
    if let Some(detail) = said.detail() {
        message = format!("{message}: {detail}");
    }
    refused(server, doing, said.code().code(), &message).caused_by(error)
}

/// Returns why an answer cannot be read that has come whole, which the library does not tell from a failure of the connection.
fn unreadable(error: &tokio_postgres::Error) -> Option<String> {
    let cause = std::error::Error::source(error)?;
    error.to_string().starts_with("error deserializing").then(|| cause.to_string())
}

/// Converts an error of a replication session, whose errors are texts that end with their SQLSTATE.
pub(super) fn of_stream(server: &PgServer, doing: &str, error: &PgWireError) -> Error {
    match error {
        PgWireError::Server(text) => match split_code(text) {
            Some((message, code)) => refused(server, doing, code, message),
            None => of_connection(server, doing, text, true),
        },
        PgWireError::Auth(text) => with_hint(
            Error::new(ErrorKind::Rejected, told(server, doing, text)),
            &login_hint(server.settings()),
        ),
        PgWireError::Tls(text) => of_connection(server, doing, text, !is_cut_off(text)),
        // The last is the session's end, where it was noticed by a call that was dropped meanwhile.
        PgWireError::Io(_) | PgWireError::Task(_) | PgWireError::Internal(_) => {
            of_connection(server, doing, &error.to_string(), false)
        }
        // What was sent is not what the protocol allows: a second attempt gets the same.
        _ => Error::new(ErrorKind::Rejected, told(server, doing, &error.to_string())),
    }
}

fn told(server: &PgServer, doing: &str, reason: &str) -> String {
    format!("Postgres '{}': {doing}: {reason}", server.name())
}

fn with_hint(error: Error, hint: &str) -> Error {
    if hint.is_empty() { error } else { error.hint(hint) }
}

/// Converts a failure below SQL: of the network or of TLS.
fn of_connection(server: &PgServer, doing: &str, reason: &str, is_permanent: bool) -> Error {
    if is_permanent {
        return Error::new(ErrorKind::Rejected, told(server, doing, reason)).hint(
            "'debezium.database.sslmode' chooses how far the server is trusted, and 'debezium.database.sslrootcert' names the certificates that it is verified by.",
        );
    }
    let error = Error::unavailable(told(server, doing, reason));
    if doing == "connecting" {
        return error.hint("Check 'hostname' and 'port', and whether the server runs.");
    }
    error
}

/// Returns whether a failure below SQL lies in what both sides want, and not in what stands between them.
fn is_permanent(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An I/O error hides what it wraps from `source`.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if wrapped.is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) {
            return true;
        }
        cause = error.source();
    }
    // Said by the client itself, before any certificate: one side wants TLS and the other does not have it.
    error.to_string().contains("TLS") && !has_io_cause(error)
}

fn has_io_cause(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Returns whether a handshake has failed because the connection ended in its midst, as when a server stops. Its errors are texts.
fn is_cut_off(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["eof", "os error", "reset by peer", "broken pipe", "timed out"].iter().any(|cause| text.contains(cause))
}

/// Splits `message (SQLSTATE 42704)`.
fn split_code(text: &str) -> Option<(&str, &str)> {
    let (message, code) = text.rsplit_once(" (SQLSTATE ")?;
    Some((message, code.strip_suffix(')')?))
}

/// Converts what the server itself says.
fn refused(server: &PgServer, doing: &str, code: &str, message: &str) -> Error {
    let error = Error::new(kind_of(code), told(server, doing, message));
    with_hint(error, &hint(server.settings(), code, message))
}

/// Returns what an SQLSTATE means for whoever would try again.
fn kind_of(code: &str) -> ErrorKind {
    match code {
        // The database is gone for good; a limit must be raised, or something dropped.
        "57P04" | "53400" => ErrorKind::Rejected,
        // A deadlock or a serialization failure; a lock, an object in use (a slot whose last reader has not been noticed to be gone); a
        // statement that an administrator has ended.
        "40001" | "40P01" | "55P03" | "55006" | "57014" => ErrorKind::Unavailable,
        // The connection; resources, such as too many connections; the server stops or starts; its disks.
        _ if ["08", "53", "57P", "58"].iter().any(|class| code.starts_with(class)) => ErrorKind::Unavailable,
        _ => ErrorKind::Rejected,
    }
}

fn login_hint(settings: &ServerSettings) -> String {
    format!(
        "Check 'username' and 'password', and that pg_hba.conf lets user '{}' into database '{}' from here.",
        settings.user, settings.database
    )
}

fn hint(settings: &ServerSettings, code: &str, message: &str) -> String {
    let user = quoted(&settings.user);
    match code {
        "28P01" | "28000" => login_hint(settings),
        "3D000" => "Check 'database-name'.".to_owned(),
        "53300" if message.contains("max_wal_senders") => {
            "All senders are in use. Raise it and restart the server: ALTER SYSTEM SET max_wal_senders = 20;".to_owned()
        }
        "53300" => "All connections are in use. End some, or raise max_connections.".to_owned(),
        "53400" => {
            "All slots are in use. Drop one that nobody reads: SELECT pg_drop_replication_slot('name'); or raise max_replication_slots and restart the server.".to_owned()
        }
        // It was not there a moment ago.
        "42710" if message.starts_with("replication slot") => ONE_READER.to_owned(),
        "42501" if message.contains("for database") => format!(
            "Run as its owner: GRANT CONNECT ON DATABASE {} TO {user};",
            quoted(&settings.database)
        ),
        // Worded in several ways by several versions.
        "42501" if message.contains("eplication") || message.contains("WAL sender") || message.contains("walsender") => {
            format!("Run as a superuser: ALTER ROLE {user} REPLICATION;")
        }
        "42501" if message.contains("row-level security") => format!(
            "Policies would hide rows from '{}'. Run as a superuser: ALTER ROLE {user} BYPASSRLS;",
            settings.user
        ),
        "42501" => match message.strip_prefix("permission denied for schema ") {
            Some(schema) => format!("Run as its owner: GRANT USAGE ON SCHEMA {} TO {user};", quoted(schema)),
            None => format!("Grant user '{}' what it says.", settings.user),
        },
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_by_itself_is_unavailable_and_all_else_is_refused() {
        for code in ["08006", "53300", "57P01", "57P02", "57P03", "55006", "40P01", "57P05"] {
            assert_eq!(kind_of(code), ErrorKind::Unavailable, "{code}");
        }
        for code in ["28P01", "3D000", "42704", "42501", "55000", "57P04", "53400", "42P01", "XX000", "22003"]
        {
            assert_eq!(kind_of(code), ErrorKind::Rejected, "{code}");
        }
    }

    #[test]
    fn a_handshake_that_is_cut_off_may_pass_by_itself() {
        for text in [
            "TLS handshake failed: tls handshake eof",
            "unexpected EOF",
            "Connection reset by peer (os error 104)",
        ] {
            assert!(is_cut_off(text), "{text}");
        }
        assert!(!is_cut_off("TLS handshake failed: invalid peer certificate: UnknownIssuer"));
    }

    #[test]
    fn the_code_behind_a_message_is_found() {
        let text = "replication slot \"a (SQLSTATE x)\" is active (SQLSTATE 55006)";
        assert_eq!(split_code(text), Some(("replication slot \"a (SQLSTATE x)\" is active", "55006")));
        assert_eq!(split_code("nothing"), None);
    }
}
