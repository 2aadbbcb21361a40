//! How a job goes on whose position leads nowhere any more, if the user has said that it is to go on.

use std::sync::Arc;

use tokio_postgres::Client;

use super::NOTHING;
use super::identity::check_identity;
use super::position::StreamPosition;
use super::producer::Producer;
use super::read_plan::ReadPlan;
use crate::connector::postgres::connection::ReplicationSession;
use crate::connector::postgres::slot::{drop_slot, inspect_slot};
use crate::connector::postgres::snapshot::TableSnapshot;
use crate::error::{ErrorKind, Result};
use crate::options::JobResume;

/// Drops a slot that is of no use, if the user wants to go on without what it has lost, and gives the position in it up.
///
/// # Errors
/// The server cannot be asked, or the slot is in use (unavailable).
pub(super) async fn give_up_what_is_lost(producer: &mut Producer, client: &Client) -> Result<()> {
    let plan = Arc::clone(&producer.plan);
    let position = producer.position.stream.clone();
    let is_asked_for = match (plan.context.resume, &position) {
        (JobResume::Skip, Some(_)) => producer.is_resuming(),
        (JobResume::Resnapshot, None) => !producer.output.has_begun(),
        _ => false,
    };
    if !is_asked_for || plan.is_snapshot_only() || !plan.context.is_insert {
        return Ok(());
    }
    let is_lost = match (inspect_slot(&plan.server, client, &plan.slot).await?, &position) {
        (None, position) => position.is_some(),
        (Some(slot), None) => slot.is_lost(),
        (Some(slot), Some(stream)) => {
            slot.is_lost()
                || slot.check_not_ahead_of(&plan.server, stream.lsn).is_err()
                || !means_something(&plan, stream.clone()).await?
        }
    };
    if !is_lost {
        return Ok(());
    }
    // Nothing has changed yet if this fails for a time.
    drop_slot(&plan.server, client, &plan.slot).await?;
    if let Some(stream) = position {
        producer.warn(&format!(
            "Postgres '{}': the job goes on from now: what changed since {} and is lost stays missing",
            plan.server.name(),
            stream.lsn
        ));
        producer.position.stream = None;
        producer.has_given_up_position = true;
        // What was not read of the tables is read now, and what was counts as it is.
        for snapshot in producer.position.tables.values_mut().filter(|snapshot| snapshot.is_complete()) {
            *snapshot = TableSnapshot::Pure;
        }
    }
    Ok(())
}

/// Returns whether a position can be gone on from on this server. Where that cannot be found out, others say why.
///
/// # Errors
/// The server cannot be reached (unavailable).
async fn means_something(plan: &ReadPlan, mut stream: StreamPosition) -> Result<bool> {
    let session = ReplicationSession::open(&plan.server, &plan.slot, &plan.stream.publication, NOTHING).await;
    let mut session = match session {
        Ok(session) => session,
        Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
        Err(_) => return Ok(true),
    };
    match check_identity(plan, &mut stream, &mut session).await {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        Err(_) => Ok(false),
    }
}
