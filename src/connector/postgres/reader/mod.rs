//! Reads the tables of a slot: first what they hold, then their changes.
//!
//! ```text
//! producer: prepares ─ snapshot phase ─ stream phase ─events→ PostgresReader ─→ job
//!              ↑────────── lost connection ──────┘                 └─released positions→ producer
//! ```
//!
//! A task of its own does the work, because a job asks its readers in calls that it may drop at any time.

mod backoff;
mod followed;
mod identity;
mod looks;
mod lost_position;
mod output;
mod position;
mod preparation;
mod producer;
mod read_plan;
mod releases;
mod snapshot_phase;
mod status;
mod stream_phase;
mod table_routes;
#[cfg(test)]
mod tests;
mod transaction;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::output::{Event, Output};
use self::position::ReaderPosition;
use self::producer::Producer;
pub(super) use self::read_plan::ReadPlan;
use self::releases::Releases;
use self::status::Status;
use super::pgoutput::Lsn;
use super::slot::SlotClaim;
use super::snapshot::TableSnapshot;
use crate::connector::{SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, Result};
use crate::options::JobResume;

/// How many events wait for the job; it reads ahead by itself.
const EVENTS_MAX: usize = 8;

/// The reader of the tables of a slot.
pub(super) struct PostgresReader {
    events: mpsc::Receiver<Event>,
    /// The task that makes the events; it ends when this is dropped.
    task: JoinSet<Result<()>>,
    position: SourcePosition,
    releases: Releases,
    status: Arc<Status>,
    /// Whether what the tables hold takes the place of what was written before: then it goes out as one.
    replaces_content: bool,
    /// While the job writes into tables, and so reads a slot that stays.
    _claim: Option<SlotClaim>,
}

impl PostgresReader {
    /// Begins to read, at a position if one is given.
    ///
    /// # Errors
    /// The position is not one of this connector, or another job reads the slot.
    pub(super) fn new(plan: ReadPlan, start: Option<&SourcePosition>) -> Result<PostgresReader> {
        let position = start.map(ReaderPosition::parse).transpose()?.unwrap_or_default();
        let claim = match plan.context.is_insert && !plan.is_snapshot_only() {
            true => Some(SlotClaim::new(&plan.server, &plan.slot, &plan.context.job)?),
            false => None,
        };
        let status = Arc::new(Status::new(plan.context.status.clone()));
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let (releases, released) = Releases::new(plan.stream.checkpoints_delay);
        let replaces_content = plan.context.resume == JobResume::Resnapshot && start.is_none();
        let output = Output::new(sender, replaces_content);
        let producer = Producer::new(Arc::new(plan), position, output, released, Arc::clone(&status));
        let mut task = JoinSet::new();
        task.spawn(producer.run());
        let position = start.cloned().unwrap_or_default();
        Ok(PostgresReader { events, task, position, releases, status, replaces_content, _claim: claim })
    }
}

#[async_trait]
impl SourceReader for PostgresReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        if let Some(event) = self.events.recv().await {
            return Ok(match event {
                Event::Rows(table, frame) => SourceEvent::Part { table, frame },
                Event::Boundary(position) => {
                    self.position = position;
                    SourceEvent::Boundary
                }
            });
        }
        match self.task.join_next().await {
            Some(Ok(ended)) => ended.map(|()| SourceEvent::EndOfInput),
            Some(Err(error)) => {
                Err(Error::internal("the task that reads from Postgres has crashed").caused_by(error))
            }
            None => Ok(SourceEvent::EndOfInput),
        }
    }

    fn position(&self) -> SourcePosition {
        self.position.clone()
    }

    fn begins_whole(&self) -> bool {
        !self.replaces_content
    }

    async fn on_checkpoint_complete(&mut self, position: &SourcePosition) -> Result<()> {
        let ReaderPosition { stream, tables, .. } = ReaderPosition::parse(position)?;
        // Before the slot is made there is nothing to release.
        let Some(stream) = stream else { return Ok(()) };
        self.releases.checkpointed(stream.lsn);
        self.status.found_checkpoint();
        // What is shown is how much of the database there is, and while tables are copied it is not all of it.
        if tables.values().all(TableSnapshot::is_complete) {
            self.status.checkpointed(stream.lsn);
        }
        Ok(())
    }
}

/// Returns what is before every position.
const NOTHING: Lsn = Lsn(0);
