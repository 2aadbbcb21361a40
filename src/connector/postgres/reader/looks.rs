//! What the server is asked from time to time, since nothing tells of it: how much log the slot holds back, and whether all changes of all
//! tables still come.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::followed::check_followed;
use super::preparation::check_published;
use super::producer::Producer;
use super::read_plan::ReadPlan;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::slot::inspect_slot;
use crate::connector::postgres::table::PgTable;
use crate::error::Result;

/// How often the server is asked.
pub(super) const LOOKS: Duration = Duration::from_secs(5);

/// How long the answer to a small question may take.
const LOOK_WAIT: Duration = Duration::from_secs(10);

/// At which parts of `max_slot_wal_keep_size` the user is warned, in percent.
const WARNINGS: [i64; 2] = [80, 50];

/// Waits for the answer to small questions.
///
/// # Errors
/// Those of the answer; or it does not come in time: the connection may be dead, and nobody else watches it while a question is open.
pub(super) async fn answered<T>(plan: &ReadPlan, answer: impl Future<Output = Result<T>>) -> Result<T> {
    plan.server.in_time("looking at its tables and its log", LOOK_WAIT, Box::pin(answer)).await
}

/// Looks at the tables and at the publication. Returns whether anything is to be kept of it.
///
/// # Errors
/// Changes were lost, or will be; or the server cannot be asked.
pub(super) async fn look_at_tables(
    producer: &mut Producer,
    client: &Client,
    tables: &[Vec<PgTable>],
) -> Result<bool> {
    let plan = Arc::clone(&producer.plan);
    let has_changed = check_followed(producer, client).await?;
    let followed = &producer.position.followed;
    let is_gone = |table: &PgTable| followed.get(&table.oid).is_some_and(|followed| !followed.is_there());
    if !tables.iter().flatten().any(is_gone) {
        check_published(&plan, client, tables).await?;
        return Ok(has_changed);
    }
    // What becomes of those is told already.
    let there: Vec<Vec<PgTable>> = tables
        .iter()
        .map(|tables| tables.iter().filter(|table| !is_gone(table)).cloned().collect())
        .collect();
    check_published(&plan, client, &there).await?;
    Ok(has_changed)
}

/// Looks at the slot, if there is one.
///
/// # Errors
/// It is lost, or the server cannot be asked.
pub(super) async fn look_at_slot(producer: &mut Producer, client: &Client) -> Result<()> {
    let plan = Arc::clone(&producer.plan);
    let Some(slot) = inspect_slot(&plan.server, client, &plan.slot).await? else { return Ok(()) };
    slot.check_not_lost(&plan.server)?;
    if let (Some(restart), Some(retained)) = (slot.restart_lsn, slot.retained_bytes) {
        let written = Lsn(restart.0.saturating_add(retained.max(0).cast_unsigned()));
        producer.status.server(&slot, written);
    }
    warn_of_retention(producer, slot.retained_bytes, slot.safe_wal_size);
    Ok(())
}

/// Warns when the slot comes near to the most that the server keeps for it.
fn warn_of_retention(producer: &mut Producer, retained: Option<i64>, safe: Option<i64>) {
    let (Some(retained), Some(safe)) = (retained, safe) else { return };
    let allowed = retained.saturating_add(safe).max(1);
    let percent = retained.saturating_mul(100) / allowed;
    if let Some(reached) = WARNINGS.iter().find(|warning| percent >= **warning) {
        let text = format!(
            "Postgres '{}': replication slot {} holds back more than {reached} % of the log that the server keeps (max_slot_wal_keep_size): beyond it, changes are lost",
            producer.plan.server.name(),
            producer.plan.slot
        );
        producer.warn(&text);
    }
}
