//! A job without a driver: a test says which frames make an epoch, and when the state is saved to disk and loaded again.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::blueprint::{Blueprint, Writers};
use super::epoch::{Epoch, SourceFrame};
use super::exchange::Exchange;
use super::settings::{JobSettings, RestartStrategy};
use super::team::{Order, Team};
use crate::changelog::ChangelogBatch;
use crate::connector::{Frame, SourceEvent};
use crate::error::{Error, Result};
use crate::options::JobResume;
use crate::plan::{JobGraph, NodeId};
use crate::runtime::checkpoint::{CheckpointData, CheckpointStore, JobFolder, Restore};

/// How many batches one epoch of a test may emit.
const BATCHES_MAX: usize = 1 << 16;

/// A query's workers, which take epochs from a test.
pub(crate) struct Lockstep {
    graph: JobGraph,
    blueprint: Blueprint,
    team: Team,
    rows: mpsc::Receiver<Result<ChangelogBatch>>,
    /// Constant rows, which go with the first epoch of a fresh start.
    values: Vec<(NodeId, ChangelogBatch)>,
    /// Where cuts are written, from the first one on.
    store: Option<CheckpointStore>,
}

impl Lockstep {
    /// Starts a graph that ends in a Collect node.
    ///
    /// # Errors
    /// An operator does not exist yet, or cannot be built.
    pub(crate) fn start(graph: JobGraph, workers: usize) -> Result<Lockstep> {
        let settings = JobSettings {
            id: 1,
            name: "lockstep".to_owned(),
            workers,
            is_per_record: false,
            epoch_rows_max: usize::MAX,
            epoch_wait: std::time::Duration::ZERO,
            checkpoints: None,
            restore: None,
            ignores_unclaimed_state: false,
            resume: JobResume::None,
            restart: RestartStrategy::None,
            memory_budget: usize::MAX,
        };
        let blueprint = Blueprint::new(graph.clone(), &settings)?;
        let exchange = Arc::new(Exchange::new(workers));
        let (reader, rows) = mpsc::channel(BATCHES_MAX);
        let workers = blueprint.workers_for(&Writers::new(), Some(&reader), &exchange)?;
        let team = Team::start(workers, exchange, "lockstep")?;
        let values = blueprint.values()?;
        Ok(Lockstep { graph, blueprint, team, rows, values, store: None })
    }

    /// Returns the sources with the names of their tables.
    pub(crate) fn sources(&self) -> Vec<(NodeId, String)> {
        self.blueprint.sources().map(|(node, table, _)| (node, table.name.clone())).collect()
    }

    /// Reads all rows of a source that holds them in one frame.
    ///
    /// # Errors
    /// The source cannot be read.
    pub(crate) async fn all_rows(&self, source: NodeId) -> Result<Option<ChangelogBatch>> {
        let found = self.blueprint.sources().find(|(node, ..)| *node == source);
        let (_, table, projection) = found.ok_or_else(|| Error::internal("there is no such source"))?;
        match table.source.open(&projection, None)?.next().await? {
            SourceEvent::Frame(Frame::Rows(rows)) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }

    /// Runs an epoch and returns what it emits.
    ///
    /// # Errors
    /// A worker fails.
    pub(crate) async fn epoch(
        &mut self,
        rows: Vec<(NodeId, ChangelogBatch)>,
        is_last: bool,
    ) -> Result<Vec<ChangelogBatch>> {
        let mut frames = std::mem::take(&mut self.values);
        frames.extend(rows);
        let epoch = epoch(frames, false, is_last);
        self.team.order(&Order::Run(Arc::new(epoch)));
        self.team.reports().await?;
        let mut emitted = Vec::new();
        while let Ok(batch) = self.rows.try_recv() {
            emitted.push(batch?);
        }
        Ok(emitted)
    }

    /// Saves the state into a folder, loads it into new operators on `workers` workers, and goes on with them.
    ///
    /// # Errors
    /// The state cannot be written or read.
    pub(crate) async fn cut(self, folder: &Path, workers: usize) -> Result<Lockstep> {
        let Lockstep { graph, blueprint, mut team, values, store, .. } = self;
        team.order(&Order::Run(Arc::new(epoch(Vec::new(), true, false))));
        let reports = team.reports().await?;
        let operators = blueprint.operator_changes(reports.into_iter().flat_map(|report| report.changes));
        team.disband().await;
        let mut store = match store {
            Some(store) => store,
            None => CheckpointStore::open(JobFolder::acquire(folder, "lockstep", 1)?, 1)?,
        };
        let number = store.next_number();
        let summary =
            store.write_checkpoint(CheckpointData { number, operators, ..CheckpointData::default() })?;
        let restore = Restore::open(&summary.path)?;
        let mut next = Lockstep::start(graph, workers)?;
        restore.check(&next.blueprint.claims(), false)?;
        store.continue_from(&restore)?;
        (next.values, next.store) = (values, Some(store));
        next.team.order(&Order::Load(Arc::new(restore)));
        next.team.reports().await?;
        Ok(next)
    }

    /// Stops the workers.
    pub(crate) async fn stop(self) {
        self.team.disband().await;
    }
}

/// Makes an epoch.
fn epoch(rows: Vec<(NodeId, ChangelogBatch)>, takes_state: bool, is_last: bool) -> Epoch {
    let frame = |(source, batch)| SourceFrame { source, frame: Frame::Rows(batch) };
    let mut epoch = Epoch::new(rows.into_iter().map(frame).collect(), 0);
    epoch.takes_state = takes_state;
    epoch.is_last = is_last;
    epoch
}
