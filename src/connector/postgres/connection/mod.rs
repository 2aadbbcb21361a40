//! Connections to a server: for SQL, and for the stream of changes.

mod failure;
mod pg_server;
mod replication_session;
mod socket_thread;
mod statement_watch;
#[cfg(test)]
mod tests;

pub(super) use failure::ONE_READER;
pub(super) use pg_server::{ANSWER_WAIT, PgServer};
pub(super) use replication_session::{ReplicationSession, SystemIdentity, text};
pub(super) use socket_thread::SocketThread;
pub(super) use statement_watch::StatementWatch;
