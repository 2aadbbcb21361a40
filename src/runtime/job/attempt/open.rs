//! Starts a run of a job: state is restored, what was prepared is committed again, readers and writers are opened.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Duration, Instant};
use tracing::warn;

use super::{Attempt, Job, Patience};
use crate::connector::{
    Boundedness, CheckpointId, Committer, CompletedCheckpoint, Frame, OperatorStatus, ReaderContext,
    SourcePosition, WriterContext,
};
use crate::error::{Error, ErrorKind, Result};
use crate::options::JobResume;
use crate::plan::NodeId;
use crate::runtime::checkpoint::{Manifest, Restore};
use crate::runtime::job::blueprint::{Sink, Writers, sink_id};
use crate::runtime::job::coordinator::{Coordinator, place_key};
use crate::runtime::job::exchange::Exchange;
use crate::runtime::job::intake::{EpochLimits, Intake, OpenReader};
use crate::runtime::job::source_task::{FRAMES_AHEAD, SourceItem, SourceTask};
use crate::runtime::job::team::{Order, Team};
use crate::runtime::job::writer_task::{WRITER_QUEUE, WriterLives, run_writer};

/// The bytes of frames that an epoch takes, unless more workers need more to do.
const EPOCH_BYTES: usize = 8 << 20;

/// The bytes of frames that each worker has to do in an epoch.
const EPOCH_BYTES_PER_WORKER: usize = 4 << 20;

/// The rows that a worker gets at once where each is an epoch of its own.
const PER_RECORD_ROWS: usize = 8_192;

/// The only split of constant rows, whose position says that they were emitted.
const VALUES_SPLIT: &str = "0";

/// How long the first epoch waits for sources that have said nothing yet.
const FIRST_WAIT: Duration = Duration::from_millis(10);

/// How long it waits where all sources end, so that each will soon say something: what small tables show does not depend on how
/// busy the machine is.
const FIRST_WAIT_BOUNDED: Duration = Duration::from_secs(2);

/// The number of a job's only commit where it has no checkpoints.
const ONLY_COMMIT: CheckpointId = 1;

/// The sources of a run.
struct Sources {
    intake: Intake,
    items: mpsc::Receiver<SourceItem>,
    messages: BTreeMap<NodeId, mpsc::Sender<super::SourceMessage>>,
}

impl<'a> Attempt<'a> {
    /// Starts a run, from a checkpoint if one is given. `is_restart` says that the job has run before.
    ///
    /// # Errors
    /// The checkpoint does not fit or is damaged, or a source or sink cannot be opened.
    pub(in crate::runtime::job) async fn open(
        job: &'a Job,
        start: Option<&Path>,
        is_restart: bool,
    ) -> Result<Attempt<'a>> {
        let restore = match start {
            Some(path) => Some(restore(job, path).await?),
            None => {
                if let Some(store) = &job.store {
                    store.lock().await.start_anew();
                }
                None
            }
        };
        let manifest = restore.as_deref().map(Restore::manifest);
        let committers = open_committers(job, restore.as_deref(), is_restart).await?;
        let mut tasks = JoinSet::new();
        let sources = open_sources(job, manifest, &mut tasks)?;
        let mut writer_lives = WriterLives::new();
        let writers = open_writers(job, restore.as_ref(), &mut tasks, &mut writer_lives).await?;
        let exchange = Arc::new(Exchange::new(job.blueprint.workers()));
        let workers = job.blueprint.workers_for(&writers, job.reader.as_ref(), &exchange)?;
        // From here on only the workers hold the ways to the writers, which end with them.
        drop(writers);
        let mut team = Team::start(workers, exchange, &job.settings.name)?;
        if let Some(restore) = restore {
            team.order(&Order::Load(restore));
            team.reports().await?;
        }
        let next_number = match &job.store {
            Some(store) => store.lock().await.next_number(),
            None => ONLY_COMMIT,
        };
        let (cuts, requests) = mpsc::channel(1);
        let (report, outcomes) = mpsc::channel(1);
        let coordinator = Coordinator {
            uids: Arc::clone(job.blueprint.uids()),
            committers,
            sources: sources.messages.clone(),
            uncommitted: BTreeMap::new(),
            has_checkpoints: job.store.is_some(),
            is_beyond_checkpoints: Arc::clone(&job.is_beyond_checkpoints),
            open_commit: job.open_commit.clone(),
        };
        tasks.spawn(coordinator.run(requests, report));
        let mut tables = job.blueprint.sources().map(|(_, table, _)| table.source.boundedness());
        let is_bounded = tables.all(|boundedness| boundedness == Boundedness::Bounded);
        let first_wait = if is_bounded { FIRST_WAIT_BOUNDED } else { FIRST_WAIT };
        let now = Instant::now();
        Ok(Attempt {
            job,
            store: job.store.clone(),
            team,
            intake: sources.intake,
            items: sources.items,
            sources: sources.messages,
            tasks,
            writer_lives,
            cuts,
            outcomes,
            running: None,
            in_flight: None,
            stop: None,
            patience: Patience::default(),
            is_ending: false,
            first_by: Some(now + first_wait),
            next_timer: None,
            next_number,
            last_checkpoint: (now, now),
            failed_checkpoints: 0,
            state_bytes: vec![vec![0; job.blueprint.node_count()]; job.blueprint.workers()],
            sink_bytes: BTreeMap::new(),
        })
    }
}

/// Opens a checkpoint and checks that the job can go on with it.
async fn restore(job: &Job, path: &Path) -> Result<Arc<Restore>> {
    let (path, claims) = (path.to_owned(), job.blueprint.claims());
    let ignores_unclaimed = job.settings.ignores_unclaimed_state;
    let open = move || {
        let restore = Restore::open(&path)?;
        restore.check(&claims, ignores_unclaimed)?;
        Ok::<_, Error>(Arc::new(restore))
    };
    let opened = spawn_blocking(open).await;
    let restore = opened.map_err(|error| Error::internal("restoring panicked").caused_by(error))??;
    if let Some(store) = &job.store {
        let from = Arc::clone(&restore);
        store.with(move |store| store.continue_from(&from)).await?;
    }
    Ok(restore)
}

/// Opens the committers, commits what the checkpoint says was prepared (it may not have been, or not wholly), and removes what
/// earlier writers have left unfinished.
async fn open_committers(
    job: &Job,
    restore: Option<&Restore>,
    is_restart: bool,
) -> Result<BTreeMap<NodeId, Box<dyn Committer>>> {
    let manifest = restore.map(Restore::manifest);
    let is_over = match (&job.store, restore) {
        (Some(store), Some(restore)) => store.lock().await.has_locked(restore),
        _ => false,
    };
    let mut committers = BTreeMap::new();
    for sink in job.blueprint.sinks() {
        let uid = &job.blueprint.uids()[sink.node];
        let context = writer_context(job, &sink, 0);
        let own_id = Arc::clone(&context.sink_id);
        let mut committer = sink.spec.sink.open_committer(context).await?;
        let prepared = manifest.and_then(|manifest| manifest.committables.get(uid));
        let prepared = prepared.map_or(&[][..], Vec::as_slice);
        if let Some(manifest) = manifest {
            if let Some(place) = manifest.extra.get(&place_key(uid)) {
                committer.check_place(place, manifest.number)?;
            }
            if !prepared.is_empty() {
                let (number, positions) = (manifest.number, manifest.sources.clone());
                let checkpoint = CompletedCheckpoint { number, positions };
                job.open_commit.run(committer.commit_after_recovery(&checkpoint, prepared)).await?;
            }
            if is_over {
                committer.discard_unfinished(&sink_id(manifest.job_id, uid), prepared).await?;
            }
        }
        if is_restart {
            committer.discard_unfinished(&own_id, prepared).await?;
        }
        committers.insert(sink.node, committer);
    }
    Ok(committers)
}

/// Opens the writers, each with the state of its key groups.
async fn open_writers(
    job: &Job,
    restore: Option<&Arc<Restore>>,
    tasks: &mut JoinSet<Result<()>>,
    lives: &mut WriterLives,
) -> Result<Writers> {
    let mut writers = Writers::new();
    for sink in job.blueprint.sinks() {
        let uid = &job.blueprint.uids()[sink.node];
        for number in 0..sink.writer_count {
            let context = WriterContext {
                // Once there is a checkpoint, the content has been replaced, or will be by what it holds.
                replaces_content: job.settings.resume == JobResume::Resnapshot && restore.is_none(),
                ..writer_context(job, &sink, number)
            };
            let mut writer = sink.spec.sink.open_writer(context).await?;
            if let Some(restore) = restore {
                let layout = job.blueprint.layout();
                let owned: Vec<bool> =
                    (0..=u8::MAX).map(|group| layout.owns(sink.node, number, group)).collect();
                let tables = job.blueprint.state_tables(sink.node).to_vec();
                let (restore, uid) = (Arc::clone(restore), uid.clone());
                // Segments are read from disk, and an index of many keys is built.
                let load = move || {
                    let owns = |group: u8| owned[usize::from(group)];
                    for (at, table) in tables.iter().enumerate() {
                        restore.read(&uid, table, &owns, &mut |rows| writer.load(at, rows))?;
                    }
                    Ok::<_, Error>(writer)
                };
                let loaded = spawn_blocking(load).await;
                writer = loaded
                    .map_err(|error| Error::internal("restoring a sink panicked").caused_by(error))??;
            }
            let (sender, messages) = mpsc::channel(WRITER_QUEUE);
            tasks.spawn(run_writer(writer, messages, lives.begin(sink.node)));
            writers.entry(sink.node).or_default().push(sender);
        }
    }
    Ok(writers)
}

/// Returns what a writer or committer of a sink is told.
fn writer_context(job: &Job, sink: &Sink<'_>, writer: usize) -> WriterContext {
    WriterContext {
        sink_id: sink_id(job.settings.id, &job.blueprint.uids()[sink.node]).into(),
        writer,
        writer_count: sink.writer_count,
        output: Arc::clone(&job.output),
        overwrite: sink.spec.overwrite,
        replaces_content: false,
        mode: sink.mode,
        status: status_of(job, sink.node),
    }
}

/// Returns where an operator says what is shown of it beside its numbers.
fn status_of(job: &Job, node: NodeId) -> OperatorStatus {
    let metrics = Arc::clone(&job.metrics);
    OperatorStatus::new(move |values| {
        metrics.lock().unwrap_or_else(PoisonError::into_inner).operators[node].status = values;
    })
}

/// Tells the sinks of a job that has ended for good that nobody will ask what they have committed.
pub(in crate::runtime::job) async fn forget_commits(job: &Job) -> Result<()> {
    for sink in job.blueprint.sinks() {
        sink.spec.sink.open_committer(writer_context(job, &sink, 0)).await?.forget_commits().await?;
    }
    Ok(())
}

/// Removes what the readers of a job that has ended for good have made elsewhere, where the tables' options say so.
pub(in crate::runtime::job) async fn forget_readers(job: &Job) {
    for (sources, tables) in job.blueprint.readers() {
        let context = reader_context(job, sources[0]);
        if let Err(error) = tables[0].source.forget_job(&tables, &context).await {
            context.warn(&format!("What was made for job '{}' stays: {error}", job.settings.name));
        }
    }
}

/// Removes what the sinks of a job that has ended for good have written and not committed.
pub(in crate::runtime::job) async fn discard_unfinished(job: &Job) {
    for sink in job.blueprint.sinks() {
        let context = writer_context(job, &sink, 0);
        let id = Arc::clone(&context.sink_id);
        let discard =
            async || sink.spec.sink.open_committer(context).await?.discard_unfinished(&id, &[]).await;
        if let Err(error) = discard().await {
            // It is garbage, and not what the job has ended for.
            warn!(job = %job.settings.name, %error, "what a sink has written and not committed stays");
        }
    }
}

/// Opens the readers, each where the checkpoint says or where the options of its tables do.
fn open_sources(job: &Job, manifest: Option<&Manifest>, tasks: &mut JoinSet<Result<()>>) -> Result<Sources> {
    let bytes = EPOCH_BYTES.max(EPOCH_BYTES_PER_WORKER * job.blueprint.workers());
    // Rows that are epochs of their own anyway come to the worker many at a time.
    let rows = if job.settings.is_per_record { PER_RECORD_ROWS } else { job.settings.epoch_rows_max.max(1) };
    let limits = EpochLimits { bytes, rows };
    let (sender, items) = mpsc::channel(FRAMES_AHEAD);
    let (mut readers, mut messages) = (Vec::new(), BTreeMap::new());
    for (sources, tables) in job.blueprint.readers() {
        let start = reader_start(job, manifest, &sources)?;
        let first = sources[0];
        let context = reader_context(job, first);
        let reader = tables[0].source.open_group(&tables, &context, start)?;
        readers.push(OpenReader {
            tables: sources.clone(),
            position: start.cloned().unwrap_or_else(|| reader.position()),
            begins_whole: reader.begins_whole(),
        });
        // The next epoch is read while one is run.
        let room_max = bytes / 1024 + 1;
        let (message, receiver) = mpsc::channel(2);
        let task = SourceTask {
            sources,
            reader,
            items: sender.clone(),
            messages: receiver,
            room: Arc::new(Semaphore::new(room_max)),
            room_max,
        };
        tasks.spawn(task.run());
        messages.insert(first, message);
    }
    let mut intake = Intake::new(readers, limits);
    for (node, rows) in job.blueprint.values()? {
        let start = manifest.and_then(|manifest| manifest.sources.get(&job.blueprint.uids()[node]));
        let emitted = SourcePosition::from([(VALUES_SPLIT.to_owned(), rows.row_count().to_string())]);
        match start {
            Some(_) => intake.resume(node, emitted),
            None if rows.row_count() > 0 => intake.add(node, Frame::Rows(rows), emitted),
            None => {}
        }
    }
    Ok(Sources { intake, items, messages })
}

/// Returns where a reader begins: at the position that the checkpoint holds for each of its tables, once there is one.
fn reader_start<'a>(
    job: &Job,
    manifest: Option<&'a Manifest>,
    sources: &[NodeId],
) -> Result<Option<&'a SourcePosition>> {
    let Some(manifest) = manifest else { return Ok(None) };
    let known: Vec<&SourcePosition> =
        sources.iter().filter_map(|source| manifest.sources.get(&job.blueprint.uids()[*source])).collect();
    match known.iter().find(|position| **position != known[0]) {
        None => Ok(known.first().copied()),
        Some(_) => Err(Error::new(
            ErrorKind::State,
            "the checkpoint holds different positions for tables that are read together now",
        )
        .hint("Let them have the groups (for example the slots) again that they had when it was written.")),
    }
}

/// Returns what a reader is told of the job.
fn reader_context(job: &Job, first: NodeId) -> ReaderContext {
    ReaderContext {
        job: job.settings.name.as_str().into(),
        is_insert: job.reader.is_none(),
        has_checkpoints: job.has_interval(),
        workers: job.blueprint.workers(),
        resume: job.settings.resume,
        status: status_of(job, first),
        output: Some(Arc::clone(&job.output)),
    }
}
