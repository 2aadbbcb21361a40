//! What the session holds of a job: its status, its metrics, and the way to stop it. The job goes on without it.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::attempt::Job;
use super::blueprint::{Blueprint, sink_id};
use super::coordinator::SharedStore;
use super::driver::Driver;
use super::open_commit::OpenCommit;
use super::settings::{JobMetrics, JobOrigin, JobSettings, JobStatus, OperatorMetrics, StopMode};
use super::stops::{StopRequest, Stops};
use crate::changelog::ChangelogBatch;
use crate::connector::{DynamicTableSink, OutputPort};
use crate::error::{Error, Result};
use crate::plan::{JobGraph, NodeId};
use crate::runtime::checkpoint::{CheckpointStore, JobFolder, LatestCheckpoint};

/// How many batches wait for the reader of a query.
const READER_QUEUE: usize = 4;

/// A job that was started. Copies speak of the same job.
#[derive(Clone)]
pub(crate) struct JobHandle {
    id: u128,
    name: Arc<str>,
    origin: Arc<JobOrigin>,
    stops: mpsc::UnboundedSender<StopRequest>,
    progress: Progress,
    metrics: Arc<Mutex<JobMetrics>>,
}

/// The status of a job, as the job tells it.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    status: watch::Sender<JobStatus>,
    failure: Arc<OnceLock<Error>>,
}

impl Progress {
    fn new() -> Progress {
        Progress { status: watch::Sender::new(JobStatus::Created), failure: Arc::default() }
    }

    /// Tells a status.
    pub(super) fn set(&self, status: JobStatus) {
        self.status.send_replace(status);
    }

    /// Tells how the job has ended.
    pub(super) fn end(&self, status: JobStatus, failure: Option<Error>) {
        if let Some(failure) = failure {
            self.failure.get_or_init(|| failure);
        }
        self.status.send_replace(status);
    }
}

impl JobHandle {
    /// Starts a job, and waits until it runs.
    ///
    /// # Errors
    /// It cannot be started: an operator does not exist, a source or sink cannot be opened, a checkpoint does not fit.
    pub(crate) async fn start(
        graph: JobGraph,
        settings: JobSettings,
        output: Arc<dyn OutputPort>,
    ) -> Result<JobHandle> {
        start(graph, settings, output, None).await
    }

    /// Starts a job whose rows come out of the returned stream. Dropping the stream stops the job.
    ///
    /// # Errors
    /// As for `start`.
    pub(crate) async fn start_collect(
        graph: JobGraph,
        settings: JobSettings,
        output: Arc<dyn OutputPort>,
    ) -> Result<(JobHandle, BoxStream<'static, Result<ChangelogBatch>>)> {
        let (reader, rows) = mpsc::channel(READER_QUEUE);
        let handle = start(graph, settings, output, Some(reader)).await?;
        let rows = stream::unfold(rows, |mut rows| async move { Some((rows.recv().await?, rows)) });
        Ok((handle, rows.boxed()))
    }

    /// Returns the name that the job has got: the one that was wanted, or with a number behind it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number that the job has got: the one that was wanted, or that of the run from which it goes on.
    pub(crate) fn id(&self) -> u128 {
        self.id
    }

    /// Returns what the job has started from.
    pub(crate) fn origin(&self) -> &JobOrigin {
        &self.origin
    }

    /// Returns what the job is doing.
    pub(crate) fn status(&self) -> JobStatus {
        *self.progress.status.borrow()
    }

    /// Waits until the job has ended, for any number of callers.
    ///
    /// # Errors
    /// Why it failed.
    pub(crate) async fn finished(&self) -> Result<JobStatus> {
        let mut status = self.progress.status.subscribe();
        let ended = status.wait_for(|status| status.is_final()).await.map(|status| *status);
        match self.progress.failure.get() {
            Some(failure) => Err(failure.duplicate()),
            None => ended.map_err(|error| Error::internal("a job was lost").caused_by(error)),
        }
    }

    /// Stops the job and waits until it has ended; returns the savepoint, or the last checkpoint if that stays. A job that has
    /// ended is left alone.
    ///
    /// # Errors
    /// The job failed meanwhile, or a savepoint cannot be written and the job goes on.
    pub(crate) async fn stop(&self, mode: StopMode) -> Result<Option<PathBuf>> {
        let (answer, path) = oneshot::channel();
        if self.status().is_final() || self.stops.send(StopRequest { mode, answer: Some(answer) }).is_err() {
            return Ok(None);
        }
        // A job that ended at the same moment does not answer.
        path.await.unwrap_or(Ok(None))
    }

    /// Asks the job to stop, without waiting.
    pub(crate) fn request_stop(&self, mode: StopMode) {
        self.progress.status.send_if_modified(|status| {
            let is_running = !status.is_final();
            if is_running {
                *status = JobStatus::Cancelling;
            }
            is_running
        });
        // A job that has ended hears nothing.
        let _ = self.stops.send(StopRequest { mode, answer: None });
    }

    /// Asks the job to stop at once, without waiting.
    pub(crate) fn cancel(&self) {
        self.request_stop(StopMode::Cancel);
    }

    /// Returns what the job has done so far.
    pub(crate) fn metrics(&self) -> JobMetrics {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle")
            .field("name", &self.name)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Starts a job and waits until it runs.
async fn start(
    graph: JobGraph,
    mut settings: JobSettings,
    output: Arc<dyn OutputPort>,
    reader: Option<mpsc::Sender<Result<ChangelogBatch>>>,
) -> Result<JobHandle> {
    let blueprint = Blueprint::new(graph, &settings)?;
    let (store, origin) = open_store(&mut settings, &blueprint).await?;
    let sources: BTreeSet<NodeId> = blueprint.sources().map(|(node, ..)| node).collect();
    let operators = (0..blueprint.node_count()).map(|node| OperatorMetrics {
        name: blueprint.name(node),
        is_source: sources.contains(&node),
        ..OperatorMetrics::default()
    });
    let operators = operators.collect();
    let metrics = Arc::new(Mutex::new(JobMetrics { operators, ..JobMetrics::default() }));
    let (sender, stops) = Stops::new();
    let (ready, is_ready) = oneshot::channel();
    let handle = JobHandle {
        id: settings.id,
        name: settings.name.as_str().into(),
        origin: Arc::new(origin),
        stops: sender,
        progress: Progress::new(),
        metrics: Arc::clone(&metrics),
    };
    let is_beyond_checkpoints = Arc::new(AtomicBool::new(false));
    let job = Job {
        blueprint,
        settings,
        output,
        store,
        metrics,
        reader,
        is_beyond_checkpoints,
        open_commit: OpenCommit::default(),
    };
    let driver = Driver { job, progress: handle.progress.clone(), stops, ready: Some(ready) };
    tokio::spawn(driver.run());
    let mut starting = Starting(Some(handle));
    is_ready.await.map_err(|error| Error::internal("a job was lost").caused_by(error))??;
    starting.0.take().ok_or_else(|| Error::internal("a job was lost"))
}

/// A job that nobody knows yet: if nobody waits for it any more, it is cancelled.
struct Starting(Option<JobHandle>);

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.cancel();
        }
    }
}

/// Returns whether a run has committed checkpoints that came after the newest that is there: the folder is an old copy. Further ones
/// would get the numbers of those, and what these have written would be taken for known.
fn is_outrun(latest: &LatestCheckpoint, sinks: &[(Arc<dyn DynamicTableSink>, String)]) -> bool {
    let newest =
        |(sink, uid): &(Arc<dyn DynamicTableSink>, String)| sink.newest_commit(&sink_id(latest.job_id, uid));
    sinks.iter().filter_map(newest).any(|newest| newest > latest.number)
}

/// Locks the job's folder of checkpoints, if it has one, and looks there for what to start from. The job's name may get a number
/// behind it; its number may become that of the run from which it goes on.
async fn open_store(
    settings: &mut JobSettings,
    blueprint: &Blueprint,
) -> Result<(Option<SharedStore>, JobOrigin)> {
    let origin =
        settings.restore.clone().map_or(JobOrigin::Nothing { left_alone: None }, JobOrigin::Checkpoint);
    let Some(checkpoints) = &settings.checkpoints else { return Ok((None, origin)) };
    let (folder, retained) = (checkpoints.folder.clone(), checkpoints.retained);
    let delta_bytes_min = checkpoints.delta_bytes_min;
    let (name, id, resumes) = (settings.name.clone(), settings.id, settings.resume.goes_on());
    let sinks = blueprint.sinks();
    let sinks: Vec<_> =
        sinks.map(|sink| (Arc::clone(&sink.spec.sink), blueprint.uids()[sink.node].clone())).collect();
    let open = move || {
        let mut folder = JobFolder::acquire(&folder, &name, id)?;
        let latest =
            if origin == (JobOrigin::Nothing { left_alone: None }) { folder.latest()? } else { None };
        let origin = match latest {
            Some(latest) if resumes => {
                if is_outrun(&latest, &sinks) {
                    warn!(
                        job = name,
                        checkpoint = latest.number,
                        "a sink has commits of later checkpoints, which are gone: the job goes on under a new number"
                    );
                } else {
                    folder = folder.resume_as(latest.job_id)?;
                }
                JobOrigin::Checkpoint(latest.path)
            }
            Some(latest) => JobOrigin::Nothing { left_alone: Some(latest.path) },
            None => origin,
        };
        let (name, id) = (folder.name().to_owned(), folder.id());
        let store = CheckpointStore::open(folder, retained)?.with_delta_bytes_min(delta_bytes_min);
        Ok::<_, Error>((name, id, origin, store))
    };
    let opened = spawn_blocking(open).await;
    let (name, id, origin, store) =
        opened.map_err(|error| Error::internal("opening checkpoints panicked").caused_by(error))??;
    settings.name = name;
    settings.id = id;
    if let JobOrigin::Checkpoint(path) = &origin {
        settings.restore = Some(path.clone());
    }
    Ok((Some(SharedStore::new(store)), origin))
}
