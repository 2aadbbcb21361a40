//! The task that completes checkpoints while the job goes on: it waits for what writers prepare, makes everything durable, commits
//! the sinks, and then lets sources release what lies before. Nothing is released or committed earlier.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard, mpsc, oneshot};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::exchange::aborted;
use super::open_commit::OpenCommit;
use super::settings::JobSettings;
use super::source_task::SourceMessage;
use super::writer_task::Prepared;
use crate::connector::{CheckpointId, Committable, Committer, CompletedCheckpoint, SourcePosition};
use crate::error::{Error, Result};
use crate::plan::NodeId;
use crate::runtime::checkpoint::{
    CheckpointData, CheckpointStore, CheckpointSummary, JobFolder, OperatorChanges,
};

/// A job's checkpoints on disk, shared by its runs.
#[derive(Debug, Clone)]
pub(super) struct SharedStore(Arc<Mutex<CheckpointStore>>);

impl SharedStore {
    /// Shares a store.
    pub(super) fn new(store: CheckpointStore) -> SharedStore {
        SharedStore(Arc::new(Mutex::new(store)))
    }

    /// Uses the store for something that takes no time.
    pub(super) async fn lock(&self) -> MutexGuard<'_, CheckpointStore> {
        self.0.lock().await
    }

    /// Uses the store for something that blocks. The store is taken first: what is done although nobody waits for it any more is done
    /// before the next user, the job's next run, has the store.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut CheckpointStore) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let mut store = Arc::clone(&self.0).lock_owned().await;
        spawn_blocking(move || run(&mut store))
            .await
            .map_err(|error| Error::internal("the store of checkpoints panicked").caused_by(error))?
    }

    /// Takes the store back if nobody else has it. A thread that is still at something comes first.
    pub(super) async fn into_inner(self) -> Option<CheckpointStore> {
        drop(self.lock().await);
        Arc::into_inner(self.0).map(Mutex::into_inner)
    }
}

/// Opens a store for the savepoint of a job that has no checkpoints: within the savepoint's folder, until the job has ended.
///
/// # Errors
/// The folder cannot be written.
pub(super) async fn open_savepoint_store(settings: &JobSettings, folder: &Path) -> Result<SharedStore> {
    let (folder, name, id) = (folder.to_owned(), settings.name.clone(), settings.id);
    let open = move || CheckpointStore::open(JobFolder::acquire(&folder, &name, id)?, 1);
    let opened = spawn_blocking(open).await;
    let store = opened
        .map_err(|error| Error::internal("opening a folder of savepoints panicked").caused_by(error))??;
    Ok(SharedStore::new(store))
}

/// Removes the checkpoints of a job that has ended.
pub(super) async fn discard(store: CheckpointStore) {
    let removed = spawn_blocking(move || store.discard()).await;
    if let Ok(Err(error)) = removed {
        warn!(%error, "the checkpoints of a job that has ended could not be removed");
    }
}

/// Returns the name under which a checkpoint keeps which place a sink writes.
pub(super) fn place_key(uid: &str) -> String {
    format!("place of sink '{uid}'")
}

/// What a checkpoint is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CheckpointPurpose {
    /// To go on from after a failure.
    Recovery,
    /// The same, and once more for itself in this folder.
    Savepoint(PathBuf),
    /// Only to commit the sinks: the job has no checkpoints.
    Commit,
}

/// A cut through the job that is to become a checkpoint.
#[derive(Debug)]
pub(super) struct Cut {
    /// The checkpoint's number.
    pub(super) number: CheckpointId,
    /// When the cut was made, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// What it is for.
    pub(super) purpose: CheckpointPurpose,
    /// Whether the job ends with it.
    pub(super) is_last: bool,
    /// What has changed in the operators, and where what has changed in the sinks is to be added.
    pub(super) operators: Vec<OperatorChanges>,
    /// How far each source has come.
    pub(super) positions: BTreeMap<NodeId, SourcePosition>,
    /// Where it is written; a job without checkpoints has a store only for a savepoint.
    pub(super) store: Option<SharedStore>,
    /// What each writer prepares, by the sink's node.
    pub(super) prepared: Vec<(NodeId, oneshot::Receiver<Prepared>)>,
}

/// How a checkpoint went.
#[derive(Debug)]
pub(super) struct CheckpointOutcome {
    /// What was written, if anything was; an error if it could not be, and the job may go on without.
    pub(super) result: Result<Option<CheckpointSummary>>,
    /// The number of the next checkpoint.
    pub(super) next_number: CheckpointId,
}

/// Completes checkpoints.
pub(super) struct Coordinator {
    /// The uids of the nodes.
    pub(super) uids: Arc<Vec<String>>,
    /// The committers, by the sink's node.
    pub(super) committers: BTreeMap<NodeId, Box<dyn Committer>>,
    /// The tasks of the sources.
    pub(super) sources: BTreeMap<NodeId, mpsc::Sender<SourceMessage>>,
    /// What was prepared for checkpoints that then could not be written.
    pub(super) uncommitted: BTreeMap<NodeId, Vec<Committable>>,
    /// Whether the job starts again from its checkpoints. The store of a mere savepoint is not looked at.
    pub(super) has_checkpoints: bool,
    /// Set before rows are committed that no checkpoint covers.
    pub(super) is_beyond_checkpoints: Arc<AtomicBool>,
    /// Knows whether a commit is underway.
    pub(super) open_commit: OpenCommit,
}

impl Coordinator {
    /// Completes one checkpoint after the other.
    ///
    /// # Errors
    /// A sink cannot be committed: the job must not go on.
    pub(super) async fn run(
        mut self,
        mut cuts: mpsc::Receiver<Cut>,
        outcomes: mpsc::Sender<CheckpointOutcome>,
    ) -> Result<()> {
        while let Some(cut) = cuts.recv().await {
            let (number, store) = (cut.number, cut.store.clone());
            // Behind the last one nobody has use for it, and the store is to be let go of.
            let merges = !cut.is_last && cut.purpose == CheckpointPurpose::Recovery;
            let result = self.complete(cut).await?;
            let next_number = match &store {
                Some(store) => store.lock().await.next_number(),
                None => number + 1,
            };
            if outcomes.send(CheckpointOutcome { result, next_number }).await.is_err() {
                break;
            }
            // The checkpoint is over: what merging takes is not its time.
            if let Some(store) = store.filter(|_| merges)
                && let Err(error) = store.with(CheckpointStore::compact).await
            {
                warn!(%error, "segments could not be merged");
            }
        }
        Ok(())
    }

    /// Completes a checkpoint. The outer error ends the job, the inner one only the checkpoint.
    async fn complete(&mut self, cut: Cut) -> Result<Result<Option<CheckpointSummary>>> {
        let Cut { number, time_ms, purpose, store, mut operators, positions, prepared, .. } = cut;
        for (sink, prepared) in prepared {
            // A writer that has failed says so itself.
            let Prepared { committables, changes } = prepared.await.map_err(|_| aborted())?;
            self.uncommitted.entry(sink).or_default().extend(committables);
            if let Some(state) = operators.iter_mut().find(|state| state.uid == self.uids[sink]) {
                state.workers.push(changes);
            }
        }
        let mut written = None;
        if let Some(store) = &store
            && purpose != CheckpointPurpose::Commit
        {
            let data = CheckpointData {
                number,
                time_ms,
                operators,
                sources: self.by_uid(&positions),
                committables: self.by_uid(&self.uncommitted),
                extra: self.places(),
            };
            match store.with(move |store| store.write_checkpoint(data)).await {
                Ok(summary) => written = Some(summary),
                Err(error) => return Ok(Err(error)),
            }
        }
        // What no checkpoint covers would come again if the job were started again.
        let is_covered = self.has_checkpoints && written.is_some();
        self.is_beyond_checkpoints.store(!is_covered, Ordering::Release);
        self.commit(CompletedCheckpoint { number, positions: self.by_uid(&positions) }).await?;
        if let (CheckpointPurpose::Savepoint(folder), Some(store)) = (&purpose, &store) {
            let folder = folder.clone();
            match store.with(move |store| store.write_savepoint(&folder)).await {
                Ok(savepoint) => written = Some(savepoint),
                // In a job without checkpoints nothing else would hold what sources let go of.
                Err(error) => return Ok(Err(error)),
            }
        }
        self.release(positions).await;
        Ok(Ok(written))
    }

    /// Commits all sinks.
    async fn commit(&mut self, checkpoint: CompletedCheckpoint) -> Result<()> {
        for (sink, committer) in &mut self.committers {
            let committables = self.uncommitted.remove(sink).unwrap_or_default();
            self.open_commit.run(committer.commit(&checkpoint, &committables)).await?;
        }
        Ok(())
    }

    /// Tells the sources what they may release, and waits until they have.
    async fn release(&mut self, positions: BTreeMap<NodeId, SourcePosition>) {
        for (source, position) in positions {
            let Some(task) = self.sources.get(&source) else { continue };
            let (released, hears) = oneshot::channel();
            // A source that is gone has failed, and its task says why.
            if task.send(SourceMessage::CheckpointComplete { position, released }).await.is_ok() {
                let _ = hears.await;
            }
        }
    }

    /// Returns which places the sinks write.
    fn places(&self) -> BTreeMap<String, String> {
        let mut places = BTreeMap::new();
        for (sink, committer) in &self.committers {
            places.extend(committer.place().map(|place| (place_key(&self.uids[*sink]), place)));
        }
        places
    }

    fn by_uid<T: Clone>(&self, by_node: &BTreeMap<NodeId, T>) -> BTreeMap<String, T> {
        by_node.iter().map(|(node, value)| (self.uids[*node].clone(), value.clone())).collect()
    }
}
