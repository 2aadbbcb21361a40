//! Making a slot. The server waits until every transaction that runs has ended, which may take as long as the longest of them; so the
//! wait has a limit, says whom it waits for, and leaves no slot behind when it is given up.

use std::time::Duration;

use tokio_postgres::Client;

use crate::connector::postgres::connection::{PgServer, ReplicationSession, SystemIdentity, text};
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::table::quoted;
use crate::connector::postgres::wal_stream::PgWalStream;
use crate::error::{Error, Result};

/// How often it is looked whom the server waits for.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// What is made.
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) struct NewSlot<'a> {
    pub(in crate::connector::postgres) name: &'a str,
    pub(in crate::connector::postgres) publication: &'a str,
    /// Whether it goes with the session that makes it.
    pub(in crate::connector::postgres) temporary: bool,
    /// Whether standbys keep it as well.
    pub(in crate::connector::postgres) failover: bool,
    /// How long the transactions that run may take to end.
    pub(in crate::connector::postgres) wait_max: Duration,
}

/// A slot that was made, with the session that made it.
pub(in crate::connector::postgres) struct HeldSlot {
    session: ReplicationSession,
    name: String,
    consistent_point: Lsn,
}

impl HeldSlot {
    /// Returns the position behind which everything that commits is sent.
    pub(in crate::connector::postgres) fn consistent_point(&self) -> Lsn {
        self.consistent_point
    }

    pub(in crate::connector::postgres) fn identity(&self) -> &SystemIdentity {
        self.session.identity()
    }

    /// Reads the slot from its beginning.
    ///
    /// # Errors
    /// The connection is lost, or somebody else reads the slot.
    pub(in crate::connector::postgres) async fn start(self) -> Result<PgWalStream> {
        PgWalStream::of_session(self.session, &self.name).await
    }
}

/// Makes a slot.
///
/// # Errors
/// There is one of that name, there are too many, the role may not, or a transaction does not end (unavailable).
pub(in crate::connector::postgres) async fn create_slot(
    server: &PgServer,
    slot: &NewSlot<'_>,
) -> Result<HeldSlot> {
    let doing = format!("making replication slot {}", slot.name);
    let watcher = server.connect().await?;
    let mut session = ReplicationSession::open(server, slot.name, slot.publication, Lsn(0)).await?;
    let pid = text(&session.query(&doing, "SELECT pg_backend_pid()").await?, 0);
    let version = text(&session.query(&doing, "SHOW server_version_num").await?, 0);
    let missing = |what: &str| Error::internal(format!("Postgres '{}': {doing}: no {what}", server.name()));
    let pid = pid.and_then(|pid| pid.parse().ok()).ok_or_else(|| missing("process"))?;
    let version = version.and_then(|version| version.parse().ok()).ok_or_else(|| missing("version"))?;
    let mut waiting = Waiting { watcher: Some(watcher), pid };
    let command = command(slot, version);
    let rows = waiting.run(&mut session, &doing, &command, slot).await?;
    waiting.watcher = None;
    let point = text(&rows, 1).and_then(|text| pgwire_replication::Lsn::parse(&text).ok());
    let point = point.ok_or_else(|| missing("position"))?;
    Ok(HeldSlot { session, name: slot.name.to_owned(), consistent_point: Lsn(point.into()) })
}

/// Returns the command that makes a slot. No snapshot is exported: which rows a reader saw is known by their transactions.
fn command(slot: &NewSlot<'_>, version: u32) -> String {
    let temporary = if slot.temporary { " TEMPORARY" } else { "" };
    let options = match version {
        ..150_000 => "NOEXPORT_SNAPSHOT",
        _ if slot.failover => "(SNAPSHOT 'nothing', FAILOVER true)",
        _ => "(SNAPSHOT 'nothing')",
    };
    format!("CREATE_REPLICATION_SLOT {}{temporary} LOGICAL pgoutput {options}", quoted(slot.name))
}

/// A server's process that waits for transactions on our behalf. It does not notice that we are gone, and would make the slot when they
/// have ended: whoever gives up must end it.
struct Waiting {
    watcher: Option<Client>,
    pid: i32,
}

impl Waiting {
    async fn run(
        &mut self,
        session: &mut ReplicationSession,
        doing: &str,
        command: &str,
        slot: &NewSlot<'_>,
    ) -> Result<Vec<pgwire_replication::client::QueryRow>> {
        let server = session.server().clone();
        let started = tokio::time::Instant::now();
        let mut said = String::new();
        let ended = {
            let mut made = std::pin::pin!(session.query_without_limit(doing, command));
            loop {
                tokio::select! {
                    made = &mut made => return made,
                    () = tokio::time::sleep(LOOK_INTERVAL.min(slot.wait_max)) => {}
                }
                let blocking = match self.blocking(&server, doing).await {
                    Ok(blocking) => blocking,
                    Err(error) => break Err(error),
                };
                if started.elapsed() >= slot.wait_max {
                    said = blocking;
                    break Ok(());
                }
                if !blocking.is_empty() && blocking != said {
                    tracing::warn!("Postgres '{}': {doing}: waiting for {blocking} to end", server.name());
                    said = blocking;
                }
            }
        };
        session.abort();
        ended?;
        let whom = if said.is_empty() { "the server".to_owned() } else { said };
        let pids: Vec<&str> =
            whom.split(|c: char| !c.is_ascii_digit()).filter(|pid| !pid.is_empty()).collect();
        Err(Error::unavailable(format!(
            "Postgres '{}': {doing}: waited {} s for {whom} to end",
            server.name(),
            started.elapsed().as_secs()
        ))
        .hint(format!(
            "A slot begins when every transaction that ran before it has ended. Commit it, or end it: SELECT pg_terminate_backend({});",
            pids.first().unwrap_or(&"pid")
        )))
    }

    /// Returns the transactions that the server waits for.
    async fn blocking(&self, server: &PgServer, doing: &str) -> Result<String> {
        let Some(watcher) = &self.watcher else { return Ok(String::new()) };
        // The limit of the wait is looked at between these questions only.
        let query = "SELECT coalesce(string_agg(pid::text, ', '), '') FROM unnest(pg_blocking_pids($1)) pid";
        let row = server.answer(doing, watcher.query_one(query, &[&self.pid])).await?;
        let pids: String = row.try_get(0).map_err(|error| server.sql_error(doing, error))?;
        Ok(match pids.contains(',') {
            _ if pids.is_empty() => pids,
            true => format!("the transactions of processes {pids}"),
            false => format!("the transaction of process {pids}"),
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pid = self.pid;
        runtime.spawn(async move { drop(watcher.execute("SELECT pg_terminate_backend($1)", &[&pid]).await) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_asked_for_as_the_version_takes_it() {
        let slot = |temporary, failover| NewSlot {
            name: "s",
            publication: "p",
            temporary,
            failover,
            wait_max: Duration::from_secs(1),
        };
        assert_eq!(
            command(&slot(false, false), 140_005),
            "CREATE_REPLICATION_SLOT \"s\" LOGICAL pgoutput NOEXPORT_SNAPSHOT"
        );
        assert_eq!(
            command(&slot(true, false), 150_018),
            "CREATE_REPLICATION_SLOT \"s\" TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')"
        );
        assert_eq!(
            command(&slot(false, true), 170_000),
            "CREATE_REPLICATION_SLOT \"s\" LOGICAL pgoutput (SNAPSHOT 'nothing', FAILOVER true)"
        );
    }
}
