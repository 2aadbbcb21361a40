//! What comes before reading: it is checked that everything is there and allowed, then the publication and the slot are made if they
//! are not, and it is decided what is still to be read of which table.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::NOTHING;
use super::followed::check_followed;
use super::lost_position::give_up_what_is_lost;
use super::position::{ReaderPosition, StreamPosition, TableKey};
use super::producer::Producer;
use super::read_plan::ReadPlan;
use crate::connector::postgres::connection::{ANSWER_WAIT, ReplicationSession};
use crate::connector::postgres::copy_decoder::CopyPlan;
use crate::connector::postgres::options::StartupMode;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::preflight::{self, DeclaredTable, SlotUse};
use crate::connector::postgres::publication::{PublicationStep, prepare_publication};
use crate::connector::postgres::slot::{HeldSlot, NewSlot, SlotState, WAYS_PAST_A_CHANGE, create_slot};
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
}

/// Prepares reading from the producer's position on.
///
/// # Errors
/// Something is missing or not allowed, what comes next is lost, or the server cannot be reached (unavailable).
pub(super) async fn prepare(producer: &mut Producer) -> Result<Prepared> {
    let plan = Arc::clone(&producer.plan);
    let server = &plan.server;
    let client = server.connect().await?;
    if producer.position.stream.is_some() {
        // Nothing that a standby has or lacks says anything about the primary that it may become.
        preflight::check_primary(server, &client).await?;
    }
    let generated = match plan.is_snapshot_only() {
        true => GeneratedColumns::Selected,
        false => GeneratedColumns::PublishedBy(&plan.stream.publication),
    };
    let mut tables = Vec::with_capacity(plan.tables.len());
    for declared in &plan.tables {
        let loaded = load_tables(server, &client, &declared.settings.selection, generated);
        tables.push(server.in_time("looking at its tables", ANSWER_WAIT, loaded).await?);
    }
    let types = server.answer_within("reading its types", ANSWER_WAIT, PgTypes::load(&client)).await?;
    check_types(&plan, &tables, &types).map_err(|error| match producer.position.stream {
        Some(_) => with_ways_on(&error),
        None => error,
    })?;
    if producer.position.stream.is_some() {
        let checked = check_followed(producer, &client);
        server.in_time("looking at its tables again", ANSWER_WAIT, checked).await?;
    }
    let at_slot = format!("looking at replication slot {}", plan.slot);
    server.in_time(&at_slot, ANSWER_WAIT, give_up_what_is_lost(producer, &client)).await?;
    let followed = followed(producer, &tables);
    let declared = declared_tables(&plan, &tables, &followed);
    let checked = preflight::check(server, &client, &plan.stream, slot_use(producer, &plan), &declared);
    let checked = server.in_time("checking what reading needs", ANSWER_WAIT, checked).await?;
    for note in &checked.notes {
        producer.warn(note);
    }
    let mut prepared = Prepared { client, tables, types, held: None };
    if plan.is_snapshot_only() {
        note_tables(producer, &prepared.tables);
        return Ok(prepared);
    }
    if checked.publication != PublicationStep::Ready {
        producer.has_waited = false;
        let publication = &plan.stream.publication;
        let made = prepare_publication(server, &prepared.client, publication, &checked.publication);
        // It may have to wait for locks, as a slot for transactions.
        server.in_time(&format!("preparing publication {publication}"), SLOT_WAIT, made).await?;
    }
    prepare_slot(producer, &mut prepared, checked.slot).await?;
    note_tables(producer, &prepared.tables);
    wait_for_others(producer, &prepared.client).await?;
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

/// Says how a job goes on whose tables do not fit their declarations any more.
pub(super) fn with_ways_on(error: &Error) -> Error {
    let hint = error.hint_text().unwrap_or_default();
    Error::new(error.kind(), error.message().to_owned()).hint(format!("{hint} {WAYS_PAST_A_CHANGE}"))
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

fn slot_use<'a>(producer: &Producer, plan: &'a ReadPlan) -> SlotUse<'a> {
    match plan.stream.startup {
        StartupMode::Snapshot => SlotUse::None,
        _ if !plan.context.is_insert => SlotUse::Temporary,
        _ if producer.position.stream.is_some() => SlotUse::Restored(&plan.slot),
        // What the slot had is of no use to a job that goes on without it, nor to one that reads everything anew.
        StartupMode::CommittedOffset
            if !producer.has_given_up_position && plan.context.resume != JobResume::Resnapshot =>
        {
            SlotUse::Existing(&plan.slot)
        }
        _ => SlotUse::Permanent(&plan.slot),
    }
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
            producer.has_made_slot = plan.context.is_insert;
            begins
        }
        Some(slot) => {
            let publication = &plan.stream.publication;
            let session = ReplicationSession::open(server, &plan.slot, publication, NOTHING).await?;
            let identity = session.identity().clone();
            let lsn = match plan.stream.startup {
                StartupMode::LatestOffset => identity.flushed,
                // What it has of earlier changes is of no use, and may not fit the declared tables.
                _ if plan.context.resume == JobResume::Resnapshot => identity.flushed,
                _ => slot.confirmed_flush.unwrap_or(NOTHING),
            };
            (identity, lsn)
        }
    };
    producer.has_waited = false;
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
fn note_tables(producer: &mut Producer, tables: &[Vec<PgTable>]) {
    let plan = Arc::clone(&producer.plan);
    let is_new_job = producer.position.tables.is_empty();
    for (declared, tables) in plan.tables.iter().zip(tables) {
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
            // Somebody else may have added it to the publication just now.
            producer.has_waited &= !reads;
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

/// Waits until every transaction has ended that had begun before the slot was made or tables were added to the publication, if tables are
/// still to be read: the stream may lack its changes, and a snapshot that is taken now would not show them either.
async fn wait_for_others(producer: &mut Producer, client: &Client) -> Result<()> {
    if producer.has_waited || producer.position.tables.values().all(TableSnapshot::is_complete) {
        return Ok(());
    }
    let plan = Arc::clone(&producer.plan);
    wait_for_begun_transactions(&plan.server, client, |waiting| {
        producer.warn(&format!(
            "Postgres '{}': reading waits for transactions to end that had begun before: {}",
            plan.server.name(),
            waiting.transactions.join(", ")
        ));
    })
    .await?;
    producer.has_waited = true;
    Ok(())
}
