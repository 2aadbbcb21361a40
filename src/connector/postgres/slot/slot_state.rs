//! What the server says of a slot, and whether a job can go on from it.

use tokio_postgres::Client;
use tokio_postgres::types::PgLsn;

use crate::connector::postgres::connection::{ONE_READER, PgServer};
use crate::connector::postgres::pgoutput::Lsn;
use crate::error::{Error, ErrorKind, Result};

/// The only plugin whose output is read.
const PLUGIN: &str = "pgoutput";

/// Whether the log that a slot needs is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum WalStatus {
    /// Within `max_wal_size`.
    Reserved,
    /// Beyond it, and kept.
    Extended,
    /// No longer kept: it goes at the next checkpoint of the server unless the slot moves.
    Unreserved,
    /// Gone.
    Lost,
}

/// A slot as `pg_replication_slots` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct SlotState {
    pub(in crate::connector::postgres) name: String,
    /// None if it is a physical one.
    pub(in crate::connector::postgres) plugin: Option<String>,
    pub(in crate::connector::postgres) database: Option<String>,
    pub(in crate::connector::postgres) temporary: bool,
    /// Who reads it now.
    pub(in crate::connector::postgres) active_pid: Option<i32>,
    /// From where on the log is kept.
    pub(in crate::connector::postgres) restart_lsn: Option<Lsn>,
    /// Up to where everything has been acknowledged: what lies before is never sent again.
    pub(in crate::connector::postgres) confirmed_flush: Option<Lsn>,
    pub(in crate::connector::postgres) wal_status: Option<WalStatus>,
    /// How many bytes may still be written before the slot is in danger; None if there is no limit.
    pub(in crate::connector::postgres) safe_wal_size: Option<i64>,
    /// How many bytes of log it holds back.
    pub(in crate::connector::postgres) retained_bytes: Option<i64>,
}

/// Looks at a slot; None if there is none of that name.
///
/// # Errors
/// The server cannot be asked.
pub(in crate::connector::postgres) async fn inspect_slot(
    server: &PgServer,
    client: &Client,
    name: &str,
) -> Result<Option<SlotState>> {
    // On a standby there is no position to write at; the one that was replayed is what it knows.
    const QUERY: &str = "SELECT s.plugin::text, s.database::text, s.temporary, s.active_pid, s.restart_lsn, s.confirmed_flush_lsn, s.wal_status, s.safe_wal_size, \
         pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, s.restart_lsn)::int8 \
         FROM pg_replication_slots s WHERE s.slot_name = $1::text::name";
    let doing = format!("looking at replication slot {name}");
    let failed = |error| server.sql_error(&doing, error);
    let Some(row) = client.query_opt(QUERY, &[&name]).await.map_err(failed)? else { return Ok(None) };
    let lsn = |at| -> Result<Option<Lsn>> {
        let value: Option<PgLsn> = row.try_get(at).map_err(failed)?;
        Ok(value.map(|lsn| Lsn(lsn.into())))
    };
    let status: Option<String> = row.try_get(6).map_err(failed)?;
    Ok(Some(SlotState {
        name: name.to_owned(),
        plugin: row.try_get(0).map_err(failed)?,
        database: row.try_get(1).map_err(failed)?,
        temporary: row.try_get(2).map_err(failed)?,
        active_pid: row.try_get(3).map_err(failed)?,
        restart_lsn: lsn(4)?,
        confirmed_flush: lsn(5)?,
        wal_status: status.as_deref().and_then(wal_status),
        safe_wal_size: row.try_get(7).map_err(failed)?,
        retained_bytes: row.try_get(8).map_err(failed)?,
    }))
}

fn wal_status(text: &str) -> Option<WalStatus> {
    match text {
        "reserved" => Some(WalStatus::Reserved),
        "extended" => Some(WalStatus::Extended),
        "unreserved" => Some(WalStatus::Unreserved),
        "lost" => Some(WalStatus::Lost),
        _ => None,
    }
}

impl SlotState {
    /// Fails if this slot cannot be read by anybody, or not by us.
    ///
    /// # Errors
    /// It is of another kind, plugin or database; it is lost; it is read by somebody else (unavailable).
    pub(in crate::connector::postgres) fn check_usable(&self, server: &PgServer) -> Result<()> {
        let told =
            |what: String| format!("Postgres '{}': replication slot {} {what}", server.name(), self.name);
        let another = format!(
            "Set 'slot.name' to another name, or drop it if nobody needs it: SELECT pg_drop_replication_slot('{}');",
            self.name
        );
        let refused = |what: String| Error::new(ErrorKind::Rejected, told(what)).hint(another.clone());
        match self.plugin.as_deref() {
            None => return Err(refused("is a physical one".to_owned())),
            Some(PLUGIN) => {}
            Some(plugin) => {
                return Err(refused(format!("was made for plugin '{plugin}', and only {PLUGIN} is read")));
            }
        }
        let database = self.database.as_deref().unwrap_or_default();
        if database != server.settings().database {
            return Err(refused(format!("belongs to database '{database}'")));
        }
        if self.is_lost() {
            return Err(self.lost(server));
        }
        if let Some(pid) = self.active_pid {
            return Err(Error::unavailable(told(format!("is active for PID {pid}")))
                .hint(format!(
                    "{ONE_READER} If that reader is one that was cut off, the server notices it within wal_sender_timeout; to end it: SELECT pg_terminate_backend({pid});"
                )));
        }
        Ok(())
    }

    /// Returns whether the server has thrown away what the slot needs.
    pub(in crate::connector::postgres) fn is_lost(&self) -> bool {
        self.wal_status == Some(WalStatus::Lost)
    }

    /// Fails if the server has thrown away what the slot needs.
    ///
    /// # Errors
    /// It has.
    pub(in crate::connector::postgres) fn check_not_lost(&self, server: &PgServer) -> Result<()> {
        if self.is_lost() { Err(self.lost(server)) } else { Ok(()) }
    }

    /// Fails if the slot is ahead of a position: what lies between has been acknowledged, and the server would go on behind it without
    /// a word.
    ///
    /// # Errors
    /// It is ahead.
    pub(in crate::connector::postgres) fn check_not_ahead_of(
        &self,
        server: &PgServer,
        position: Lsn,
    ) -> Result<()> {
        match self.confirmed_flush {
            Some(confirmed) if confirmed > position => Err(Error::new(
                ErrorKind::Rejected,
                format!(
                    "Postgres '{}': replication slot {} has gone on to {confirmed}, behind the job's position {position}: the changes between them are not sent again",
                    server.name(),
                    self.name
                ),
            )
            .hint(format!("It was read by somebody else, or the checkpoint is too old. {WAYS_ON}"))),
            _ => Ok(()),
        }
    }

    fn lost(&self, server: &PgServer) -> Error {
        Error::new(
            ErrorKind::Rejected,
            format!(
                "Postgres '{}': replication slot {} is lost: the server has removed the log that it needs, so changes since {} are gone",
                server.name(),
                self.name,
                self.confirmed_flush.map_or_else(|| "its position".to_owned(), |lsn| lsn.to_string())
            ),
        )
        .hint(format!(
            "Drop it: SELECT pg_drop_replication_slot('{}'); and raise max_slot_wal_keep_size. {WAYS_ON}",
            self.name
        ))
    }

    /// Says that a slot is not there although a job has read it.
    pub(in crate::connector::postgres) fn missing(server: &PgServer, name: &str) -> Error {
        Error::new(
            ErrorKind::Rejected,
            format!(
                "Postgres '{}': replication slot {name} does not exist: changes since the job's last checkpoint are gone",
                server.name()
            ),
        )
        .hint(WAYS_ON)
    }
}

/// How a job goes on whose changes are lost.
pub(in crate::connector::postgres) const WAYS_ON: &str = "Then start the job again: with SET 'lakehead.job.resume' = 'resnapshot' it reads the tables anew and replaces what it has written, with SET 'lakehead.job.resume' = 'skip' it goes on from now, and what changed meanwhile is missing.";

/// How a job goes on that has changes before it which do not fit the declared table.
pub(in crate::connector::postgres) const WAYS_PAST_A_CHANGE: &str = "Then start the job again: with SET 'lakehead.job.resume' = 'resnapshot' it reads the tables anew and replaces what it has written, with SET 'lakehead.job.resume' = 'skip' it leaves those changes out that were made before and do not fit. Where a column was only dropped, 'latest' is enough: it goes on where it was.";

/// Drops a slot; one that is not there is none to be dropped.
///
/// # Errors
/// It is in use (unavailable), or the server refuses.
pub(in crate::connector::postgres) async fn drop_slot(
    server: &PgServer,
    client: &Client,
    name: &str,
) -> Result<()> {
    let query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1::text::name";
    let dropped = client.execute(query, &[&name]).await;
    match dropped {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(&tokio_postgres::error::SqlState::UNDEFINED_OBJECT) => Ok(()),
        Err(error) => Err(server.sql_error(&format!("dropping replication slot {name}"), error)),
    }
}
