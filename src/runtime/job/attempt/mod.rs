//! One run of a job, from its start (or a restart) to its end or its first failure: one loop that forms epochs, takes reports and
//! starts checkpoints.

mod open;
mod patience;

pub(super) use open::{discard_unfinished, forget_commits, forget_readers};

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::Utc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use self::patience::Patience;
use super::blueprint::Blueprint;
use super::coordinator::{
    CheckpointOutcome, CheckpointPurpose, Cut, SharedStore, discard, open_savepoint_store,
};
use super::epoch::{Epoch, WorkerReport};
use super::intake::Intake;
use super::open_commit::OpenCommit;
use super::settings::{JobMetrics, JobSettings, StopMode};
use super::source_task::{SourceItem, SourceMessage};
use super::stops::Stops;
use super::team::{Order, Team};
use super::writer_task::WriterLives;
use crate::changelog::ChangelogBatch;
use crate::connector::{CheckpointId, OutputPort};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::NodeId;
use crate::runtime::checkpoint::CheckpointSummary;

/// How long the cause of a failure may take to tell of itself.
const CAUSE_WAIT: Duration = Duration::from_secs(1);

/// How long writers that are stopped may take to end what they are at.
const WRITER_WAIT: Duration = Duration::from_secs(10);

/// What stays the same over all runs of a job.
#[derive(Debug)]
pub(super) struct Job {
    /// The graph.
    pub(super) blueprint: Blueprint,
    /// The settings.
    pub(super) settings: JobSettings,
    /// Where connectors print.
    pub(super) output: Arc<dyn OutputPort>,
    /// The checkpoints.
    pub(super) store: Option<SharedStore>,
    /// What was done so far.
    pub(super) metrics: Arc<Mutex<JobMetrics>>,
    /// Whoever asked the query.
    pub(super) reader: Option<mpsc::Sender<Result<ChangelogBatch>>>,
    /// Whether rows were committed, or may have been, that no checkpoint covers.
    pub(super) is_beyond_checkpoints: Arc<AtomicBool>,
    /// Knows whether a commit is underway or may have landed.
    pub(super) open_commit: OpenCommit,
}

impl Job {
    /// Returns whether checkpoints are written from time to time.
    fn has_interval(&self) -> bool {
        self.settings.checkpoints.as_ref().is_some_and(|checkpoints| checkpoints.interval.is_some())
    }

    /// Changes the metrics.
    pub(super) fn update_metrics(&self, update: impl FnOnce(&mut JobMetrics)) {
        update(&mut self.metrics.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// How a run ended without failing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    /// The input ended, or nobody needs more.
    Finished,
    /// As it was asked to; with what was written last.
    Stopped(StopMode, Option<CheckpointSummary>),
}

/// A run of a job.
pub(super) struct Attempt<'a> {
    job: &'a Job,
    /// Where checkpoints are written; a job without any gets a store for its savepoint.
    store: Option<SharedStore>,
    team: Team,
    intake: Intake,
    items: mpsc::Receiver<SourceItem>,
    sources: BTreeMap<NodeId, mpsc::Sender<SourceMessage>>,
    /// Sources, writers, and the coordinator. One that fails ends the run.
    tasks: JoinSet<Result<()>>,
    /// Tells the writers to stop.
    writer_lives: WriterLives,
    cuts: mpsc::Sender<Cut>,
    outcomes: mpsc::Receiver<CheckpointOutcome>,
    /// The epoch that the workers run.
    running: Option<RunningEpoch>,
    /// The checkpoint that is being completed.
    in_flight: Option<InFlight>,
    /// How the job was asked to stop.
    stop: Option<StopMode>,
    /// How long a stop waits for the rest of what epochs have begun.
    patience: Patience,
    /// Whether the last epoch has been formed.
    is_ending: bool,
    /// Until when the first epoch waits for sources that have said nothing yet.
    first_by: Option<Instant>,
    next_timer: Option<i64>,
    next_number: CheckpointId,
    /// When the last checkpoint was started, and ended.
    last_checkpoint: (Instant, Instant),
    failed_checkpoints: u32,
    /// The bytes of state, by worker and node.
    state_bytes: Vec<Vec<usize>>,
    /// The bytes of state of the sinks' writers, by node.
    sink_bytes: BTreeMap<NodeId, usize>,
}

/// What is to be done after the epoch.
struct RunningEpoch {
    time_ms: i64,
    cut: Option<(CheckpointId, CheckpointPurpose)>,
}

/// A checkpoint that is being completed.
struct InFlight {
    began: Instant,
    /// When it counts as failed (once more).
    deadline: Instant,
    is_savepoint: bool,
}

impl Attempt<'_> {
    /// Runs until the end. `stops` says how the job is to stop; a savepoint that fails is answered there and the job goes on.
    ///
    /// # Errors
    /// A part of the job has failed.
    pub(super) async fn run(&mut self, stops: &mut Stops) -> Result<AttemptEnd> {
        loop {
            self.start_epoch();
            self.patience.note(self.waits_for_rest(), Instant::now());
            let wake = self.wake_at();
            tokio::select! {
                biased;
                mode = stops.next() => {
                    if self.stop(mode, stops).await {
                        return Ok(AttemptEnd::Stopped(StopMode::Cancel, None));
                    }
                }
                Some(ended) = self.tasks.join_next() => {
                    if let Err(error) = task_result(ended) {
                        return self.failed(error).await;
                    }
                }
                () = closed(self.job.reader.as_ref()) => {
                    return Ok(AttemptEnd::Stopped(StopMode::Cancel, None));
                }
                reports = self.team.reports(), if self.running.is_some() => match reports {
                    Ok(reports) => self.epoch_done(reports)?,
                    Err(error) => return self.failed(error).await,
                },
                Some(outcome) = self.outcomes.recv(), if self.in_flight.is_some() => {
                    if let Some(end) = self.checkpoint_done(outcome, stops)? {
                        return Ok(end);
                    }
                }
                Some(item) = self.items.recv(), if self.wants_items() => self.take(item),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    self.check_timeout()?;
                    if self.patience.is_over(Instant::now()) && self.give_up_rest(stops) {
                        // As one that is cancelled: what writers have of it is of no use.
                        return Ok(AttemptEnd::Stopped(StopMode::Cancel, None));
                    }
                }
            }
        }
    }

    /// Ends the run: all threads and tasks are gone when this returns. What was not prepared is dropped.
    pub(super) async fn close(mut self) {
        self.writer_lives.stop();
        self.team.disband().await;
        // What a writer is writing when it is aborted may be there a little later, when nobody looks for it any more.
        let _ = timeout(WRITER_WAIT, self.writer_lives.ended()).await;
        self.tasks.shutdown().await;
        if self.job.store.is_none()
            && let Some(store) = self.store.take()
            && let Some(store) = store.into_inner().await
        {
            // What the savepoint was made of is not needed any more.
            discard(store).await;
        }
    }

    /// Takes an item and all others that are there, until there is enough for an epoch.
    fn take(&mut self, item: SourceItem) {
        self.patience.heard();
        self.intake.take(item);
        while !self.intake.is_full()
            && let Ok(item) = self.items.try_recv()
        {
            self.intake.take(item);
        }
    }

    fn wants_items(&self) -> bool {
        !self.input_is_over() && !self.intake.is_full()
    }

    /// Returns whether no more frames are taken.
    fn input_is_over(&self) -> bool {
        // A stop waits for the rest of what epochs have begun.
        let is_stopped = self.stop.is_some() && self.intake.is_whole_at_end();
        self.is_ending || is_stopped || self.intake.has_ended()
    }

    /// Returns whether nothing but the rest of what epochs have begun keeps the job from stopping, and a source has to give it.
    fn waits_for_rest(&self) -> bool {
        self.stop.is_some() && self.wants_items() && self.intake.is_empty()
    }

    /// Gives up waiting for what a source does not give; returns whether the job ends. One that cannot be saved goes on.
    fn give_up_rest(&mut self, stops: &mut Stops) -> bool {
        let name = &self.job.settings.name;
        self.patience = Patience::default();
        if let Some(StopMode::Savepoint { .. }) = self.stop.take() {
            let error = Error::unavailable(format!(
                "job '{name}' cannot be saved now: it has read a part of a transaction, and the rest does not come"
            ));
            if !stops.is_to_end() {
                stops.refuse_savepoints(&error.hint("The job goes on. Ask once more when it has come."));
                return false;
            }
            stops.refuse_savepoints(&error);
        }
        let text = format!(
            "Job '{name}' was stopped within a transaction whose rest did not come: it ends at its last checkpoint, and what it has read since is read again by whoever goes on from there"
        );
        self.job.output.warn(&text);
        true
    }

    /// Takes the wish to stop; returns whether to stop at once.
    async fn stop(&mut self, mode: StopMode, stops: &mut Stops) -> bool {
        if mode == StopMode::Cancel {
            return true;
        }
        if let Some(before) = &self.stop {
            // One who wants the job to end gets that behind a savepoint, too, and instead of it if there is none.
            if let StopMode::Savepoint { .. } = &mode
                && *before != mode
            {
                let name = &self.job.settings.name;
                stops.refuse(&mode, &Error::unavailable(format!("job '{name}' is being stopped already")));
            }
            return false;
        }
        if self.is_ending {
            // The last checkpoint is underway: the job ends with it, and no other follows.
            return false;
        }
        if let StopMode::Savepoint { folder, .. } = &mode
            && self.store.is_none()
        {
            // The store is there before the cut, because what operators hand over for a cut they hand over once.
            match open_savepoint_store(&self.job.settings, folder).await {
                Ok(store) => {
                    self.next_number = store.lock().await.next_number();
                    self.store = Some(store);
                }
                Err(error) => {
                    stops.refuse_savepoints(&error);
                    return false;
                }
            }
        }
        // What was read is written, too.
        while let Ok(item) = self.items.try_recv() {
            self.intake.take(item);
        }
        self.intake.give_up_tail();
        self.stop = Some(mode);
        self.patience = Patience::from(Instant::now());
        false
    }

    /// Starts the next epoch if there is reason to.
    fn start_epoch(&mut self) {
        if self.running.is_some() || self.is_ending {
            return;
        }
        let now = Instant::now();
        let has_work = !self.intake.is_empty();
        let is_over = self.input_is_over() && !has_work && self.in_flight.is_none();
        // Within a transaction a cut waits for what is still to come of it.
        let can_cut = has_work || self.intake.is_whole();
        let is_due = (can_cut && self.cut_at().is_some_and(|at| at <= now))
            || self.timer_at(now).is_some_and(|at| at <= now);
        if !(is_over || is_due || (has_work && self.ready_at(now) <= now)) {
            return;
        }
        if self.first_by.take().is_some() {
            // What small tables show must not depend on which of them was read first.
            self.intake.sort_by_reader();
        }
        let time_ms = Utc::now().timestamp_millis();
        let mut epoch = Epoch::new(self.intake.next_frames(), time_ms);
        let cut = self.cut_after(now, &mut epoch);
        self.next_timer = None;
        self.team.order(&Order::Run(Arc::new(epoch)));
        self.running = Some(RunningEpoch { time_ms, cut });
    }

    /// Decides whether the epoch is the last one, and whether a checkpoint follows.
    fn cut_after(&mut self, now: Instant, epoch: &mut Epoch) -> Option<(CheckpointId, CheckpointPurpose)> {
        let is_possible = self.in_flight.is_none() && self.intake.is_whole();
        let is_last = self.input_is_over() && self.intake.is_empty() && is_possible;
        let is_due = is_possible && self.cut_at().is_some_and(|at| at <= now);
        if !is_last && !is_due {
            return None;
        }
        let purpose = match &self.stop {
            Some(StopMode::Savepoint { folder, .. }) if is_last => {
                CheckpointPurpose::Savepoint(folder.clone())
            }
            _ if self.job.has_interval() || self.job.settings.resume.goes_on() => CheckpointPurpose::Recovery,
            _ => CheckpointPurpose::Commit,
        };
        self.is_ending = is_last;
        epoch.is_last = is_last && matches!(self.stop, None | Some(StopMode::Savepoint { drain: true, .. }));
        epoch.checkpoint = Some(self.next_number);
        epoch.takes_state = purpose != CheckpointPurpose::Commit;
        Some((self.next_number, purpose))
    }

    /// Returns from when on the waiting frames make an epoch.
    fn ready_at(&self, now: Instant) -> Instant {
        let first_by = self.first_by.filter(|_| !self.intake.has_heard_all() && !self.input_is_over());
        let wait = self.job.settings.epoch_wait;
        let filled_by = match self.intake.since() {
            Some(since) if !self.intake.is_full() && !self.input_is_over() => since + wait,
            _ => now,
        };
        first_by.map_or(filled_by, |first_by| first_by.max(filled_by))
    }

    /// Returns when the next checkpoint is due.
    fn cut_at(&self) -> Option<Instant> {
        let checkpoints = self.job.settings.checkpoints.as_ref()?;
        let interval = checkpoints.interval.filter(|_| self.in_flight.is_none() && !self.is_ending)?;
        let (began, ended) = self.last_checkpoint;
        Some((began + interval).max(ended + checkpoints.min_pause))
    }

    /// Returns when the next timer is due.
    fn timer_at(&self, now: Instant) -> Option<Instant> {
        let left = self.next_timer? - Utc::now().timestamp_millis();
        Some(now + Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// Returns when the loop must look again even if nothing happens.
    fn wake_at(&self) -> Option<Instant> {
        let mut at = self.in_flight.as_ref().map(|in_flight| in_flight.deadline);
        at = [at, self.patience.until()].into_iter().flatten().min();
        let mut add = |other: Option<Instant>| at = [at, other].into_iter().flatten().min();
        if self.running.is_none() && !self.is_ending {
            let now = Instant::now();
            if !self.intake.is_empty() || self.intake.is_whole() {
                add(self.cut_at());
            }
            add(self.timer_at(now));
            if !self.intake.is_empty() {
                add(Some(self.ready_at(now)));
            }
        }
        at
    }

    /// Takes the reports on an epoch.
    fn epoch_done(&mut self, reports: Vec<WorkerReport>) -> Result<()> {
        self.count(&reports);
        self.check_memory()?;
        for source in reports.iter().flat_map(|report| &report.unneeded_sources) {
            if self.intake.close(*source)
                && let Some(task) = self.sources.get(source)
            {
                // A source that does not listen just now reads ahead as far as it may, and no further.
                let _ = task.try_send(SourceMessage::Stop);
            }
        }
        self.next_timer = reports.iter().filter_map(|report| report.next_timer).min();
        let running = self.running.take();
        if let Some(RunningEpoch { time_ms, cut: Some((number, purpose)) }) = running {
            self.start_checkpoint(number, time_ms, purpose, reports)?;
        }
        Ok(())
    }

    /// Hands a cut to the coordinator.
    fn start_checkpoint(
        &mut self,
        number: CheckpointId,
        time_ms: i64,
        purpose: CheckpointPurpose,
        reports: Vec<WorkerReport>,
    ) -> Result<()> {
        let (mut prepared, mut changes) = (Vec::new(), Vec::new());
        for report in reports {
            prepared.extend(report.prepared);
            changes.extend(report.changes);
        }
        let operators = match purpose {
            CheckpointPurpose::Commit => Vec::new(),
            _ => self.job.blueprint.operator_changes(changes),
        };
        let began = Instant::now();
        let timeout = self.job.settings.checkpoints.as_ref().map(|checkpoints| checkpoints.timeout);
        let deadline = began + timeout.unwrap_or(Duration::from_secs(24 * 60 * 60));
        let is_savepoint = matches!(purpose, CheckpointPurpose::Savepoint(_));
        let positions = self.intake.positions();
        let store = self.store.clone();
        let is_last = self.is_ending;
        let cut = Cut { number, time_ms, purpose, is_last, store, operators, positions, prepared };
        self.cuts.try_send(cut).map_err(|_| Error::internal("two checkpoints at the same time"))?;
        self.in_flight = Some(InFlight { began, deadline, is_savepoint });
        Ok(())
    }

    /// Takes the outcome of a checkpoint; returns the end if it was the last.
    fn checkpoint_done(
        &mut self,
        outcome: CheckpointOutcome,
        stops: &mut Stops,
    ) -> Result<Option<AttemptEnd>> {
        let Some(in_flight) = self.in_flight.take() else { return Ok(None) };
        let now = Instant::now();
        self.last_checkpoint = (in_flight.began, now);
        self.next_number = outcome.next_number;
        self.sink_bytes = self.writer_lives.state_bytes();
        self.job.update_metrics(|metrics| {
            for (node, bytes) in &self.sink_bytes {
                metrics.operators[*node].state_bytes = *bytes as u64;
            }
        });
        let summary = match outcome.result {
            Ok(summary) => summary,
            Err(error) if in_flight.is_savepoint && !self.is_draining() => {
                stops.refuse_savepoints(&error);
                self.is_ending = false;
                if stops.is_to_end() {
                    self.stop = Some(StopMode::Finish);
                } else {
                    // The job goes on as if it had not been asked.
                    self.stop = None;
                    self.intake.take_tail_back();
                }
                return Ok(None);
            }
            Err(error) if self.is_ending => return Err(error),
            Err(error) => {
                self.checkpoint_failed(&error)?;
                return Ok(None);
            }
        };
        self.failed_checkpoints = 0;
        if let Some(summary) = &summary {
            self.job.update_metrics(|metrics| {
                metrics.checkpoint_count += 1;
                metrics.last_checkpoint = Some(summary.number);
                metrics.last_checkpoint_time_ms = Some(Utc::now().timestamp_millis());
                metrics.last_checkpoint_duration = Some(now - in_flight.began);
                metrics.last_checkpoint_bytes = Some(summary.bytes);
            });
        }
        Ok(self.is_ending.then(|| match self.stop.clone() {
            Some(mode) => AttemptEnd::Stopped(mode, summary),
            None => AttemptEnd::Finished,
        }))
    }

    fn is_draining(&self) -> bool {
        matches!(self.stop, Some(StopMode::Savepoint { drain: true, .. }))
    }

    /// Counts a failed checkpoint, of which only so many are borne in a row.
    fn checkpoint_failed(&mut self, error: &Error) -> Result<()> {
        self.failed_checkpoints += 1;
        let tolerable =
            self.job.settings.checkpoints.as_ref().map_or(0, |checkpoints| checkpoints.tolerable_failures);
        if self.failed_checkpoints > tolerable {
            return Err(Error::unavailable("Exceeded checkpoint tolerable failure threshold.")
                .hint(format!("The last one failed so: {error}."))
                .caused_by(error.duplicate()));
        }
        Ok(())
    }

    /// Lets a checkpoint that takes too long count as failed. What it holds is not given up: it goes on.
    fn check_timeout(&mut self) -> Result<()> {
        let now = Instant::now();
        let Some(in_flight) = &mut self.in_flight else { return Ok(()) };
        if in_flight.deadline > now {
            return Ok(());
        }
        let timeout = in_flight.deadline - in_flight.began;
        in_flight.deadline = now + timeout;
        self.checkpoint_failed(&Error::unavailable(format!(
            "Checkpoint expired before completing: it has taken longer than {} ms",
            timeout.as_millis()
        )))
    }

    /// Adds up what the workers have done.
    fn count(&mut self, reports: &[WorkerReport]) {
        for (bytes, report) in self.state_bytes.iter_mut().zip(reports) {
            for (bytes, counters) in bytes.iter_mut().zip(&report.counters) {
                *bytes = counters.state_bytes;
            }
        }
        self.sink_bytes = self.writer_lives.state_bytes();
        let (state_bytes, sink_bytes) = (&self.state_bytes, &self.sink_bytes);
        self.job.update_metrics(|metrics| {
            for (node, operator) in metrics.operators.iter_mut().enumerate() {
                for counters in reports.iter().map(|report| &report.counters[node]) {
                    operator.rows_in += counters.rows_in;
                    operator.rows_out += counters.rows_out;
                    operator.bytes_in += counters.bytes_in;
                    operator.busy += counters.busy;
                    operator.back_pressured += counters.back_pressured;
                }
                let of_workers: usize = state_bytes.iter().map(|nodes| nodes[node]).sum();
                operator.state_bytes = (of_workers + sink_bytes.get(&node).unwrap_or(&0)) as u64;
            }
        });
    }

    /// Fails the job if its state has outgrown its budget.
    fn check_memory(&self) -> Result<()> {
        let of_sinks: usize = self.sink_bytes.values().sum();
        let total: usize = self.state_bytes.iter().flatten().sum::<usize>() + of_sinks;
        let budget = self.job.settings.memory_budget;
        if total <= budget {
            return Ok(());
        }
        let bytes_of = |node: usize| {
            let of_workers: usize = self.state_bytes.iter().map(|nodes| nodes[node]).sum();
            of_workers + self.sink_bytes.get(&node).unwrap_or(&0)
        };
        let mut nodes: Vec<NodeId> =
            (0..self.job.blueprint.node_count()).filter(|node| bytes_of(*node) > 0).collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(bytes_of(*node)));
        let largest: Vec<String> = nodes
            .iter()
            .take(3)
            .map(|node| format!("{} has {}", self.job.blueprint.name(*node), size_text(bytes_of(*node))))
            .collect();
        Err(Error::new(
            ErrorKind::State,
            format!(
                "the job's state takes {} and may take {}: {}",
                size_text(total),
                size_text(budget),
                largest.join(", ")
            ),
        )
        .hint("SET 'lakehead.state.memory-budget' to more before the job is started again."))
    }

    /// Finds out why the run has failed. A worker that was only stopped is not the reason, but a task, which says so in a moment;
    /// or the reader of the query has gone, which is no failure.
    async fn failed(&mut self, error: Error) -> Result<AttemptEnd> {
        if self.job.reader.as_ref().is_some_and(mpsc::Sender::is_closed) {
            return Ok(AttemptEnd::Stopped(StopMode::Cancel, None));
        }
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
        while let Ok(Some(ended)) = timeout(CAUSE_WAIT, self.tasks.join_next()).await {
            match task_result(ended) {
                Err(cause) if cause.kind() != ErrorKind::Interrupted => return Err(cause),
                _ => {}
            }
        }
        if self.running.is_some()
            && let Ok(Err(cause)) = timeout(CAUSE_WAIT, self.team.reports()).await
        {
            return Err(cause);
        }
        Err(error)
    }
}

/// Returns how a task ended.
fn task_result(ended: Result<Result<()>, tokio::task::JoinError>) -> Result<()> {
    ended.unwrap_or_else(|stopped| Err(Error::internal("a task of the job panicked").caused_by(stopped)))
}

/// Waits until the reader of a query has gone.
async fn closed(reader: Option<&mpsc::Sender<Result<ChangelogBatch>>>) {
    match reader {
        Some(reader) => reader.closed().await,
        None => std::future::pending().await,
    }
}

fn size_text(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{:.1} kB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / f64::from(1 << 20)),
    }
}
