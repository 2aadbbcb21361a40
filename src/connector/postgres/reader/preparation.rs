//! What comes before reading: it is checked that everything is there and allowed, then the publication and the slot are made if they
//! are not, and it is decided what is still to be read of which table.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::NOTHING;
use super::followed::check_followed;
use super::position::{ReaderPosition, StreamPosition, TableKey};
use super::producer::Producer;
use super::read_plan::ReadPlan;
use crate::connector::postgres::connection::{ReplicationSession, SystemIdentity};
use crate::connector::postgres::copy_decoder::CopyPlan;
use crate::connector::postgres::options::StartupMode;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::preflight::{self, DeclaredTable, SlotUse};
use crate::connector::postgres::publication::prepare_publication;
use crate::connector::postgres::slot::{
    HeldSlot, NewSlot, SlotState, WAYS_ON, create_slot, drop_slot, inspect_slot,
};
use crate::connector::postgres::snapshot::{TableSnapshot, wait_for_begun_transactions};
use crate::connector::postgres::table::PgTable;
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::error::{Error, Result};
use crate::options::JobResume;

/// How long a new slot may wait for transactions that run.
const SLOT_WAIT: Duration = Duration::from_secs(600);

/// What reading needs.
pub(super) struct Prepared {
    pub(super) client: Client,
    /// The tables of each declared table.
    pub(super) tables: Vec<Vec<PgTable>>,
    pub(super) types: PgTypes,
    /// A slot that was made, with its session.
    pub(super) held: Option<HeldSlot>,
    /// Whether tables are to be read from their beginning that a job which goes on did not know.
    pub(super) has_new_tables: bool,
}

/// Prepares reading from the producer's position on.
///
/// # Errors
/// Something is missing or not allowed, what comes next is lost, or the server cannot be reached (unavailable).
pub(super) async fn prepare(producer: &mut Producer) -> Result<Prepared> {
    let plan = Arc::clone(&producer.plan);
    let server = &plan.server;
    let client = server.connect().await?;
    let generated = match plan.is_snapshot_only() {
        true => GeneratedColumns::Selected,
        false => GeneratedColumns::PublishedBy(&plan.stream.publication),
    };
    let mut tables = Vec::with_capacity(plan.tables.len());
    for declared in &plan.tables {
        tables.push(load_tables(server, &client, &declared.settings.selection, generated).await?);
    }
    let types = PgTypes::load(&client).await.map_err(|error| server.sql_error("reading its types", error))?;
    check_types(&plan, &tables, &types)?;
    if producer.position.stream.is_some() {
        check_followed(producer, &client).await?;
    }
    if forgets_slot(producer, &client).await? {
        drop_slot(server, &client, &plan.slot).await?;
    }
    let followed = followed(producer, &tables);
    let declared = declared_tables(&plan, &tables, &followed);
    let checked = preflight::check(
        server,
        &client,
        &plan.stream,
        slot_use(&plan, producer.position.stream.is_some()),
        &declared,
    )
    .await?;
    for note in &checked.notes {
        producer.warn(note);
    }
    let mut prepared = Prepared { client, tables, types, held: None, has_new_tables: false };
    if !plan.is_snapshot_only() {
        prepare_publication(server, &prepared.client, &plan.stream.publication, &checked.publication).await?;
        prepare_slot(producer, &mut prepared, checked.slot).await?;
    }
    note_tables(producer, &mut prepared);
    Ok(prepared)
}

/// Checks that all tables have the declared columns, in types that can be read as the declared ones.
fn check_types(plan: &ReadPlan, tables: &[Vec<PgTable>], types: &PgTypes) -> Result<()> {
    let database = &plan.server.settings().database;
    for (declared, tables) in plan.tables.iter().zip(tables) {
        for table in tables {
            CopyPlan::new(&declared.shape, table, types, database)?;
        }
    }
    Ok(())
}

/// Returns the tables whose changes the job has read up to its position, by declared table.
fn followed(producer: &Producer, tables: &[Vec<PgTable>]) -> Vec<Vec<u32>> {
    let goes_on = producer.position.stream.is_some();
    let known = |reader: &str, table: &PgTable| {
        let key = TableKey { oid: table.oid, reader: reader.to_owned() };
        goes_on && producer.position.tables.contains_key(&key)
    };
    let declared = producer.plan.tables.iter().zip(tables);
    declared
        .map(|(declared, tables)| {
            tables.iter().filter(|table| known(&declared.name, table)).map(|table| table.oid).collect()
        })
        .collect()
}

/// Returns the declared tables as the preflight looks at them.
fn declared_tables<'a>(
    plan: &'a ReadPlan,
    tables: &'a [Vec<PgTable>],
    followed: &'a [Vec<u32>],
) -> Vec<DeclaredTable<'a>> {
    let declared = plan.tables.iter().zip(tables).zip(followed);
    declared
        .map(|((declared, tables), followed)| DeclaredTable {
            shape: &declared.shape,
            key: &declared.key,
            truncate: declared.settings.truncate,
            tables,
            followed,
        })
        .collect()
}

/// Fails if changes of a table do not come any more, of which a stream says nothing.
///
/// # Errors
/// They do not, or the server cannot be asked.
pub(super) async fn check_published(plan: &ReadPlan, client: &Client, tables: &[Vec<PgTable>]) -> Result<()> {
    let followed: Vec<Vec<u32>> =
        tables.iter().map(|tables| tables.iter().map(|table| table.oid).collect()).collect();
    let declared = declared_tables(plan, tables, &followed);
    preflight::check_still_published(&plan.server, client, &plan.stream.publication, &declared).await
}

fn slot_use(plan: &ReadPlan, goes_on: bool) -> SlotUse<'_> {
    match plan.stream.startup {
        StartupMode::Snapshot => SlotUse::None,
        _ if !plan.context.is_insert => SlotUse::Temporary,
        _ if goes_on => SlotUse::Restored(&plan.slot),
        StartupMode::CommittedOffset => SlotUse::Existing(&plan.slot),
        StartupMode::Initial | StartupMode::LatestOffset => SlotUse::Permanent(&plan.slot),
    }
}

/// Returns whether the user wants to go on without what a slot has lost: then it is of no use, nor is the position in it.
async fn forgets_slot(producer: &mut Producer, client: &Client) -> Result<bool> {
    let plan = Arc::clone(&producer.plan);
    let is_asked_for = match plan.context.resume {
        JobResume::Skip => producer.is_resuming,
        JobResume::Resnapshot => !producer.output.has_begun() && producer.position.stream.is_none(),
        JobResume::None | JobResume::Latest => false,
    };
    if !is_asked_for || plan.is_snapshot_only() || !plan.context.is_insert {
        return Ok(false);
    }
    let slot = inspect_slot(&plan.server, client, &plan.slot).await?;
    let position = producer.position.stream.as_ref().map(|stream| stream.lsn);
    let is_lost = match &slot {
        None => position.is_some(),
        Some(slot) => {
            slot.is_lost() || position.is_some_and(|lsn| slot.check_not_ahead_of(&plan.server, lsn).is_err())
        }
    };
    if is_lost && let Some(lsn) = position {
        producer.warn(&format!(
            "Postgres '{}': the job goes on from now: what changed since {lsn} and is lost stays missing",
            plan.server.name()
        ));
        producer.position.stream = None;
        producer.is_resuming = false;
        // What was not read of the tables is read now, and what was counts as it is.
        for snapshot in producer.position.tables.values_mut().filter(|snapshot| snapshot.is_complete()) {
            *snapshot = TableSnapshot::Pure;
        }
    }
    Ok(is_lost && slot.is_some())
}

/// Makes the slot if the job begins, and checks that it has what comes next if the job goes on.
async fn prepare_slot(
    producer: &mut Producer,
    prepared: &mut Prepared,
    found: Option<SlotState>,
) -> Result<()> {
    let plan = Arc::clone(&producer.plan);
    let server = &plan.server;
    producer.status.slot(&plan.slot);
    if let Some(stream) = &producer.position.stream {
        if stream.slot != plan.slot {
            return Err(Error::validation(format!(
                "the checkpoint was made with replication slot {}, and the tables name {}",
                stream.slot, plan.slot
            ))
            .hint("Let 'slot.name' be what it was: positions of one slot mean nothing to another."));
        }
        let Some(slot) = found else { return Err(SlotState::missing(server, &plan.slot)) };
        return slot.check_not_ahead_of(server, stream.lsn);
    }
    if plan.context.is_insert {
        producer.tell(&format!(
            "Job '{}' reads replication slot {} of Postgres '{}'",
            plan.context.job,
            plan.slot,
            server.name()
        ));
    }
    let (identity, lsn) = match found {
        None => {
            let new = NewSlot {
                name: &plan.slot,
                publication: &plan.stream.publication,
                temporary: !plan.context.is_insert,
                failover: plan.stream.failover,
                wait_max: SLOT_WAIT,
            };
            let held = create_slot(server, &new).await?;
            let begins = (held.identity().clone(), held.consistent_point());
            prepared.held = Some(held);
            begins
        }
        Some(slot) => {
            let publication = &plan.stream.publication;
            let session = ReplicationSession::open(server, &plan.slot, publication, NOTHING).await?;
            let identity = session.identity().clone();
            let lsn = match plan.stream.startup {
                StartupMode::LatestOffset => identity.flushed,
                _ => slot.confirmed_flush.unwrap_or(NOTHING),
            };
            (identity, lsn)
        }
    };
    if plan.reads_snapshot() {
        let name = server.name().to_owned();
        let context = plan.context.clone();
        wait_for_begun_transactions(server, &prepared.client, move |waiting| {
            context.warn(&format!(
                "Postgres '{name}': reading waits for transactions to end that had begun before: {}",
                waiting.transactions.join(", ")
            ));
        })
        .await?;
    }
    producer.position.stream = Some(StreamPosition {
        system: identity.system_id,
        timeline: identity.timeline,
        slot: plan.slot.clone(),
        lsn,
        within: None,
    });
    Ok(())
}

/// Notes what is to be read of tables that the position does not know. A job that begins reads what they hold, if its options say so; one
/// that goes on takes them for tables that were made meanwhile, whose changes are all in the stream.
fn note_tables(producer: &mut Producer, prepared: &mut Prepared) {
    let plan = Arc::clone(&producer.plan);
    let is_new_job = producer.position.tables.is_empty();
    for (declared, tables) in plan.tables.iter().zip(&prepared.tables) {
        for table in tables {
            let key = TableKey { oid: table.oid, reader: declared.name.clone() };
            if producer.position.tables.contains_key(&key) {
                continue;
            }
            let mut reads =
                if is_new_job { plan.reads_snapshot() } else { declared.settings.reads_new_tables };
            if is_former_partition(&producer.position, &declared.name, table.oid) {
                reads = false;
            } else if !is_new_job && !reads {
                producer.warn(&comes_later(&table.label(), &declared.name));
            }
            prepared.has_new_tables |= reads && !is_new_job;
            let snapshot = if reads { TableSnapshot::Pending } else { TableSnapshot::Pure };
            producer.position.tables.insert(key, snapshot);
        }
    }
}

/// Says that a table is read from now on, and not from its beginning.
pub(super) fn comes_later(table: &str, reader: &str) -> String {
    format!(
        "Table {table} matches '{reader}' now: its changes are read from here on, and what it held before is not. To read that as well: SET 'lakehead.job.resume' = 'resnapshot' and start the job again; for tables to come, 'scan.newly-added-table.enabled' = 'true'"
    )
}

/// Returns whether a table was a partition of one that is read, by the same declared table: then what it holds has been read.
pub(super) fn is_former_partition(position: &ReaderPosition, reader: &str, oid: u32) -> bool {
    let mut tables = position.tables.keys().filter(|key| key.reader == reader);
    tables.any(|key| position.followed.get(&key.oid).is_some_and(|table| table.has_had_partition(oid)))
}

/// Fails if a server is not the one that a position belongs to, or has not got as far.
///
/// # Errors
/// The position means nothing there.
pub(super) fn check_identity(
    plan: &ReadPlan,
    stream: &StreamPosition,
    identity: &SystemIdentity,
) -> Result<()> {
    let server = plan.server.name();
    if stream.system != identity.system_id {
        return Err(Error::rejected(format!(
            "Postgres '{server}' is another server than the one that the job has read: its system identifier is {}, and was {}",
            identity.system_id, stream.system
        ))
        .hint(WAYS_ON));
    }
    if identity.flushed < stream.lsn {
        return Err(Error::rejected(format!(
            "Postgres '{server}' has lost transactions that the job has read: its log ends at {}, and the job has read up to {}",
            identity.flushed, stream.lsn
        ))
        .hint(WAYS_ON));
    }
    Ok(())
}
