//! Reads what tables hold, and hands it on in pieces between which checkpoints may come.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::looks::{LOOKS, answered, look_at_slot, look_at_tables};
use super::position::TableKey;
use super::preparation::Prepared;
use super::producer::Producer;
use crate::connector::postgres::copy_decoder::CopyPlan;
use crate::connector::postgres::snapshot::{SnapshotPiece, SnapshotReader, SnapshotTable, TableSnapshot};
use crate::error::Result;

/// How many connections read a table; a job with more workers uses as many.
const READERS_MIN: usize = 2;

/// Reads what is left to read.
///
/// # Errors
/// The server refuses or cannot be reached (unavailable), or a value cannot be read.
pub(super) async fn read_snapshots(producer: &mut Producer, prepared: &Prepared) -> Result<()> {
    let plan = Arc::clone(&producer.plan);
    let database = &plan.server.settings().database;
    let (mut keys, mut to_read) = (Vec::new(), Vec::new());
    for (number, (declared, tables)) in plan.tables.iter().zip(&prepared.tables).enumerate() {
        for table in tables {
            let key = TableKey { oid: table.oid, reader: declared.name.clone() };
            let state = producer.position.tables.get(&key).cloned().unwrap_or(TableSnapshot::Pending);
            if state.is_complete() {
                continue;
            }
            to_read.push(SnapshotTable {
                table: table.clone(),
                copy: CopyPlan::new(&declared.shape, table, &prepared.types, database)?,
                state,
                chunks: declared.settings.chunks.clone(),
            });
            keys.push((number, key));
        }
    }
    if keys.is_empty() {
        producer.output.end_piece();
        return Ok(());
    }
    let mut next_look = Instant::now();
    let mut reader = SnapshotReader::new(&plan.server, to_read, plan.context.workers.max(READERS_MIN))?;
    while let Some(piece) = next_piece(&mut reader, producer, prepared, &mut next_look).await? {
        let (declared, key) = &keys[piece.table];
        producer.output.rows(*declared, piece.batch).await?;
        if piece.ends_chunk {
            producer.position.tables.insert(key.clone(), reader.states()[piece.table].clone());
            producer.output.boundary(&producer.position).await?;
            producer.status.snapshot(reader.progress());
            producer.connected();
        }
    }
    // Tables without rows may have had no pieces.
    for ((_, key), state) in keys.iter().zip(reader.states()) {
        producer.position.tables.insert(key.clone(), state.clone());
    }
    producer.output.end_piece();
    producer.output.boundary(&producer.position).await
}

/// Waits for the next piece, and looks at the server meanwhile: reading may take hours, in which the slot holds back all that is written,
/// and changes may be lost that are to be read then.
async fn next_piece(
    reader: &mut SnapshotReader,
    producer: &mut Producer,
    prepared: &Prepared,
    next_look: &mut Instant,
) -> Result<Option<SnapshotPiece>> {
    let plan = Arc::clone(&producer.plan);
    let mut next = pin!(reader.next());
    loop {
        tokio::select! {
            // A look that is due comes first, or pieces that are always there would keep it from coming.
            biased;
            () = sleep_until(*next_look), if !plan.is_snapshot_only() => {}
            piece = &mut next => return piece,
        }
        let looks = async {
            look_at_tables(producer, &prepared.client, &prepared.tables).await?;
            look_at_slot(producer, &prepared.client).await
        };
        answered(&plan, looks).await?;
        *next_look = Instant::now() + LOOKS;
    }
}
