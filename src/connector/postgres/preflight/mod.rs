//! What is checked before anything on the server is touched. Every check names all that is wrong of its kind, and the statements that
//! put it right.

mod columns;
mod identities;
mod problems;
mod published;
mod rights;
mod server_state;
mod table_facts;
#[cfg(test)]
mod tests;
mod truncation;

use tokio_postgres::Client;

use super::connection::PgServer;
use super::options::TruncatePolicy;
use super::publication::PublicationStep;
use super::row_shape::{Changes, RowShape};
use super::settings::StreamSettings;
use super::slot::{SlotState, inspect_slot};
use super::table::PgTable;
use crate::error::{Error, ErrorKind, Result};
use problems::Report;
use server_state::ServerState;
use table_facts::TableFacts;
pub(super) use truncation::check_truncates_one;

/// A declared table, and what it is on the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredTable<'a> {
    pub(super) shape: &'a RowShape,
    /// The columns of the declared primary key; none if there is none.
    pub(super) key: &'a [String],
    pub(super) truncate: TruncatePolicy,
    /// The tables that it matches.
    pub(super) tables: &'a [PgTable],
    /// Those of them whose changes the job has followed so far: what is not published of them is lost.
    pub(super) followed: &'a [u32],
}

impl DeclaredTable<'_> {
    /// Returns whether an update or a delete must say all of the earlier row.
    fn needs_old_rows(&self) -> bool {
        match self.shape.changes {
            Changes::All => true,
            Changes::Upsert => false,
            Changes::AppendOnly => self.shape.wants_update_before,
        }
    }
}

/// What a job wants of the server beside the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotUse<'a> {
    /// No changes: only the tables are read.
    None,
    /// A slot that is made, and goes with its session.
    Temporary,
    /// A slot that is made if it is not there.
    Permanent(&'a str),
    /// A slot that somebody has made.
    Existing(&'a str),
    /// The slot that a job has a position in.
    Restored(&'a str),
}

/// What was found, and what is still to be done.
#[derive(Debug)]
pub(super) struct Preflight {
    pub(super) publication: PublicationStep,
    /// The slot, if it is there already.
    pub(super) slot: Option<SlotState>,
    /// What the user should know.
    pub(super) notes: Vec<String>,
}

/// Checks that changes still come while a job reads them: a table that is taken out of a publication is silent, and so is, from version
/// 18 on, one whose publication is dropped.
///
/// # Errors
/// Changes of a table that is there do not come any more, or not all of them.
pub(super) async fn check_still_published(
    server: &PgServer,
    client: &Client,
    publication: &str,
    declared: &[DeclaredTable<'_>],
) -> Result<()> {
    published::check_kept(server, client, publication, declared).await
}

/// Checks that a job that goes on has met the server that writes. In a failover it may meet a standby for a while.
///
/// # Errors
/// It is a standby, or the server cannot be asked (both unavailable).
pub(super) async fn check_primary(server: &PgServer, client: &Client) -> Result<()> {
    const DOING: &str = "asking whether it is a standby";
    let row = server.answer(DOING, client.query_typed_one("SELECT pg_is_in_recovery()", &[])).await?;
    if !row.try_get::<_, bool>(0).map_err(|error| server.sql_error(DOING, error))? {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "Postgres '{}': it is a standby, which is not promoted yet",
        server.name()
    ))
    .hint("If it is to stay one, set 'hostname' and 'port' to the primary server."))
}

/// Checks everything that would fail later, in the order in which a user would put it right. Touches nothing.
///
/// # Errors
/// Something is missing; the hint has the statements that put it right.
pub(super) async fn check(
    server: &PgServer,
    client: &Client,
    stream: &StreamSettings,
    slot: SlotUse<'_>,
    declared: &[DeclaredTable<'_>],
) -> Result<Preflight> {
    let state = ServerState::read(server, client).await?;
    state.check_version(server)?;
    let facts = TableFacts::read(server, client, declared).await?;
    let reads_changes = slot != SlotUse::None;
    let mut report = Report::default();
    if reads_changes {
        report.take(state.check_decodes(server));
    }
    report.take(rights::check(server, &state, &facts, reads_changes));
    let publication = reads_changes.then_some(&stream.publication);
    report.take(columns::check(server, client, declared, &state, publication).await);
    let notes = identities::notes(declared);
    let mut preflight = Preflight { publication: PublicationStep::Ready, slot: None, notes };
    if reads_changes {
        identities::check(server, declared, &facts, &mut report);
        for declared in declared {
            let (name, policy) = (&declared.shape.table, declared.truncate);
            report.take(check_truncates_one(server, name, policy, declared.tables));
        }
        let step = published::check(server, client, &state, stream, declared, &facts).await;
        preflight.publication = report.take(step).unwrap_or(PublicationStep::Ready);
        let found = check_slot(server, client, &state, stream, slot).await;
        preflight.slot = report.take(found).flatten();
    }
    report.finish(server)?;
    Ok(preflight)
}

async fn check_slot(
    server: &PgServer,
    client: &Client,
    state: &ServerState,
    stream: &StreamSettings,
    slot: SlotUse<'_>,
) -> Result<Option<SlotState>> {
    let name = match slot {
        SlotUse::None => return Ok(None),
        SlotUse::Temporary => {
            state.check_free_slot(server)?;
            state.check_free_sender(server)?;
            return Ok(None);
        }
        SlotUse::Permanent(name) | SlotUse::Existing(name) | SlotUse::Restored(name) => name,
    };
    let found = inspect_slot(server, client, name).await?;
    match (&found, slot) {
        (Some(found), _) => found.check_usable(server)?,
        (None, SlotUse::Restored(_)) => return Err(SlotState::missing(server, name)),
        (None, SlotUse::Existing(_)) => {
            return Err(Error::new(
                ErrorKind::Rejected,
                format!("Postgres '{}': replication slot {name} does not exist, and 'scan.startup.mode' = 'committed-offset' reads one that does", server.name()),
            )
            .hint(format!(
                "Make it, and it begins now: SELECT pg_create_logical_replication_slot('{name}', 'pgoutput'); or choose another mode."
            )));
        }
        (None, _) => {
            state.check_failover(server, stream)?;
            state.check_free_slot(server)?;
        }
    }
    state.check_free_sender(server)?;
    Ok(found)
}
