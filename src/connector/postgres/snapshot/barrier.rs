//! Questions to the server about transactions that are under way, on which it hangs what may be read and what may be forgotten.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use crate::connector::postgres::connection::PgServer;
use crate::connector::postgres::pgoutput::Lsn;
use crate::error::{Error, Result};

/// How long to wait between two questions, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// After how long a wait is reported for the first time, and then again and again.
const REPORTS_EVERY: Duration = Duration::from_secs(5);

/// What is done, for messages.
const ASKING: &str = "asking for the transactions in progress";

/// What keeps a barrier from opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct Waiting {
    /// For how long it has been waited.
    pub(in crate::connector::postgres) since: Duration,
    /// The transactions that are waited for, as a user finds them on the server: `process 4711`, `prepared transaction 'x'`.
    pub(in crate::connector::postgres) transactions: Vec<String>,
}

/// Waits until every transaction that had begun has ended for all who look, after a slot was made and before anything is read.
///
/// The log may hold a commit before the slot's consistent point, so that the slot does not stream it, whose session has yet to take
/// its transaction off the list of those in progress: a snapshot taken now would not show it either, and it would be lost.
///
/// Calls `report` every few seconds while it waits. May be dropped at any time.
///
/// # Errors
/// The server cannot be asked.
pub(in crate::connector::postgres) async fn wait_for_begun_transactions(
    server: &PgServer,
    client: &Client,
    mut report: impl FnMut(&Waiting) + Send,
) -> Result<()> {
    let (_, begun) = transactions(server, client).await?;
    let start = Instant::now();
    let (mut pause, longest) = PAUSES;
    let mut next_report = REPORTS_EVERY;
    while transactions(server, client).await?.0 < begun {
        if start.elapsed() >= next_report {
            report(&Waiting {
                since: start.elapsed(),
                transactions: in_progress(server, client, begun).await?,
            });
            next_report = start.elapsed() + REPORTS_EVERY;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
    Ok(())
}

/// Returns where the log stands after all transactions below a number have ended; None if one of them is still under way.
/// When the stream has passed that position, it has passed all their changes.
///
/// # Errors
/// The server cannot be asked.
pub(in crate::connector::postgres) async fn all_ended_by(
    server: &PgServer,
    client: &Client,
    xid_max: u64,
) -> Result<Option<Lsn>> {
    // The snapshot of a statement is taken before its functions are called: the position is the later of the two.
    let query = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
    let row = server.answer(ASKING, client.query_typed_one(query, &[])).await?;
    let oldest: u64 = number(row.try_get(0).ok())?;
    let position: i64 =
        row.try_get(1).map_err(|error| server.sql_error("asking for the position of the log", error))?;
    Ok((oldest >= xid_max).then(|| Lsn(position.cast_unsigned())))
}

/// Returns the whole number that the next transaction gets: the stream leaves the upper halves out.
///
/// # Errors
/// The server cannot be asked.
pub(in crate::connector::postgres) async fn next_transaction(
    server: &PgServer,
    client: &Client,
) -> Result<u64> {
    Ok(transactions(server, client).await?.1)
}

/// Returns the oldest transaction in progress, and the number that the next one gets.
async fn transactions(server: &PgServer, client: &Client) -> Result<(u64, u64)> {
    let query =
        "SELECT pg_snapshot_xmin(pg_current_snapshot())::text, pg_snapshot_xmax(pg_current_snapshot())::text";
    let row = server.answer(ASKING, client.query_typed_one(query, &[])).await?;
    Ok((number(row.try_get(0).ok())?, number(row.try_get(1).ok())?))
}

fn number(text: Option<&str>) -> Result<u64> {
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::data("the server's number of a transaction is not a number"))
}

/// Returns the transactions below a number that are under way. Their locks on themselves tell, which everybody may see.
async fn in_progress(server: &PgServer, client: &Client, below: u64) -> Result<Vec<String>> {
    // Locks name them without the upper half; ages count back from the next number.
    let query = "SELECT DISTINCT coalesce('prepared transaction ' || quote_literal(p.gid), 'process ' || l.pid) AS holder \
        FROM pg_locks l LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid \
        WHERE l.locktype = 'transactionid' AND l.granted \
        AND pg_snapshot_xmax(pg_current_snapshot())::text::bigint - age(l.transactionid) < $1 ORDER BY holder";
    let below = below.cast_signed();
    let rows = server.answer(ASKING, client.query_typed(query, &[(&below, Type::INT8)])).await?;
    Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
}
