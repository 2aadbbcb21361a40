//! Jobs in tests: a source that a test feeds, a sink that keeps what was committed, and graphs built by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::DFSchema;
use tokio::sync::{Notify, watch};

use super::JobHandle;
use super::settings::{CheckpointSettings, JobSettings, RestartStrategy};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::testing::Printed;
use crate::connector::{
    Boundedness, CheckpointId, Committable, Committer, CompletedCheckpoint, DynamicTableSink,
    DynamicTableSource, Frame, FrameDecoder, OutputPort, Projection, SinkWriter, SourceEvent, SourcePosition,
    SourceReader, WriterContext,
};
use crate::error::{Error, Result};
use crate::options::JobResume;
use crate::plan::{
    Distribution, GraphNode, InputEdge, JobGraph, NodeId, OperatorSpec, SinkSpec, SourceTable,
};
use crate::runtime::operator::testing::{self as text, lines};

/// What a source does next.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Gives rows.
    Rows(ChangelogBatch),
    /// Gives bytes, which stand for one row with their number.
    Bytes(usize),
    /// Says that the table has been emptied.
    Clear,
    /// Gives something whose decoding fails.
    BadFrame,
    /// Gives something whose decoding panics.
    Panic,
    /// Fails as if the outside were gone, once.
    Outage,
}

/// A source whose steps a test writes down, at the start or while the job runs.
#[derive(Debug)]
pub(super) struct ScriptedSource {
    steps: watch::Sender<Vec<Step>>,
    ends: bool,
    mode: ChangelogMode,
    /// Outages that have happened, by step.
    outages: Mutex<Vec<usize>>,
    /// The positions that were released.
    released: Mutex<Vec<String>>,
    /// How many steps were read, repeated ones included.
    read: AtomicUsize,
    /// The step behind the last one that was read.
    next: watch::Sender<usize>,
}

impl ScriptedSource {
    pub(super) fn new(steps: Vec<Step>, ends: bool, mode: ChangelogMode) -> Arc<ScriptedSource> {
        Arc::new(ScriptedSource {
            steps: watch::Sender::new(steps),
            ends,
            mode,
            outages: Mutex::default(),
            released: Mutex::default(),
            read: AtomicUsize::new(0),
            next: watch::Sender::new(0),
        })
    }

    /// Returns how many steps were read, repeated ones included.
    pub(super) fn read_count(&self) -> usize {
        self.read.load(Ordering::SeqCst)
    }

    /// Returns the positions that were released.
    pub(super) fn released(&self) -> Vec<String> {
        self.released.lock().unwrap().clone()
    }

    /// Waits until all steps were read and the job asks for more.
    pub(super) async fn wait_until_read(&self) {
        let steps = self.steps.borrow().len();
        self.next.subscribe().wait_for(|next| *next >= steps).await.unwrap();
    }

    /// Adds a step.
    pub(super) fn feed(&self, step: Step) {
        self.steps.send_modify(|steps| steps.push(step));
    }
}

/// The shared form of a source, as a table has it.
#[derive(Debug)]
struct Shared(Arc<ScriptedSource>);

impl DynamicTableSource for Shared {
    fn summary(&self) -> String {
        "Scripted".to_owned()
    }

    fn changelog_mode(&self) -> ChangelogMode {
        self.0.mode
    }

    fn boundedness(&self) -> Boundedness {
        if self.0.ends { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        let next = start.and_then(|position| position.get("0")).map_or(0, |next| next.parse().unwrap());
        let (source, steps) = (Arc::clone(&self.0), self.0.steps.subscribe());
        Ok(Box::new(ScriptedReader { source, steps, physical: projection.physical.clone(), next }))
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(ScriptedDecoder))
    }
}

struct ScriptedReader {
    source: Arc<ScriptedSource>,
    steps: watch::Receiver<Vec<Step>>,
    physical: Vec<usize>,
    next: usize,
}

#[async_trait]
impl SourceReader for ScriptedReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        let (next, ends) = (self.next, self.source.ends);
        self.source.next.send_replace(next);
        let step = {
            let steps = self.steps.wait_for(|steps| steps.len() > next || ends).await.unwrap();
            steps.get(next).cloned()
        };
        let Some(step) = step else { return Ok(SourceEvent::EndOfInput) };
        let bytes = |text: &'static [u8], repeat: usize| Frame::Bytes {
            data: Bytes::from(text.repeat(repeat)),
            origin: "script".into(),
            offset: next as u64,
        };
        let frame = match step {
            Step::Rows(batch) => Frame::Rows(batch.project(&self.physical)?),
            Step::Bytes(count) => bytes(b".", count),
            Step::Clear => Frame::Cleared,
            Step::BadFrame => bytes(b"bad", 1),
            Step::Panic => bytes(b"panic", 1),
            Step::Outage => {
                let mut outages = self.source.outages.lock().unwrap();
                if !outages.contains(&next) {
                    outages.push(next);
                    return Err(Error::unavailable("the outside is gone"));
                }
                bytes(b".", 0)
            }
        };
        self.next += 1;
        self.source.read.fetch_add(1, Ordering::SeqCst);
        Ok(SourceEvent::Frame(frame))
    }

    fn position(&self) -> SourcePosition {
        SourcePosition::from([("0".to_owned(), self.next.to_string())])
    }

    async fn on_checkpoint_complete(&mut self, position: &SourcePosition) -> Result<()> {
        self.source.released.lock().unwrap().push(position["0"].clone());
        Ok(())
    }
}

struct ScriptedDecoder;

impl FrameDecoder for ScriptedDecoder {
    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        match frame {
            Frame::Rows(batch) => Ok(vec![batch.clone()]),
            Frame::Bytes { data, offset, .. } => match &data[..] {
                b"bad" => Err(Error::data("a bad record")),
                b"panic" => panic!("a decoder that cannot cope"),
                b"" => Ok(Vec::new()),
                _ => Ok(vec![text::batch(&columns(), &[format!("+I {offset} 0")])]),
            },
            Frame::Generate { .. } | Frame::Cleared => unreachable!("no step gives such frames to decode"),
        }
    }
}

/// A sink that keeps what was committed, as lines.
#[derive(Debug)]
pub(super) struct KeepingSink {
    /// The lines of each checkpoint, in the order of commits, with the writer that wrote them.
    committed: Mutex<BTreeMap<CheckpointId, Vec<(usize, String)>>>,
    /// How many rows were written, committed or not.
    written: watch::Sender<usize>,
    /// Writers wait until this is true.
    is_open: watch::Sender<bool>,
    /// Told when a writer begins to wait.
    pub(super) blocked: Notify,
    /// The write that fails.
    fails_at: Option<usize>,
    /// How many commits are still to land and then be reported as failed.
    lost_commits: AtomicUsize,
    /// How many commits have landed, repeated ones included.
    commit_count: watch::Sender<usize>,
    /// How often writers have prepared.
    prepare_count: watch::Sender<usize>,
    /// What is written.
    place: Mutex<String>,
    /// The sinks whose unfinished work was to be removed.
    pub(super) discarded: Mutex<Vec<String>>,
    /// The number of the last checkpoint that it says was committed; 0 for none.
    newest_commit: AtomicU64,
    /// Whether writers are ever open.
    may_open: bool,
    /// How many writers are being opened.
    openings: watch::Sender<usize>,
}

impl KeepingSink {
    pub(super) fn new() -> KeepingSink {
        KeepingSink {
            committed: Mutex::default(),
            written: watch::Sender::new(0),
            is_open: watch::Sender::new(true),
            blocked: Notify::new(),
            fails_at: None,
            lost_commits: AtomicUsize::new(0),
            commit_count: watch::Sender::new(0),
            prepare_count: watch::Sender::new(0),
            place: Mutex::new("first".to_owned()),
            discarded: Mutex::default(),
            newest_commit: AtomicU64::new(0),
            may_open: true,
            openings: watch::Sender::new(0),
        }
    }

    /// Lets writers never be open.
    pub(super) fn that_never_opens(mut self) -> KeepingSink {
        self.may_open = false;
        self
    }

    /// Waits until so many writers are being opened.
    pub(super) async fn wait_for_openings(&self, count: usize) {
        self.openings.subscribe().wait_for(|openings| *openings == count).await.unwrap();
    }

    pub(super) fn closed(self) -> KeepingSink {
        self.is_open.send_replace(false);
        self
    }

    pub(super) fn failing_at(mut self, row: usize) -> KeepingSink {
        self.fails_at = Some(row);
        self
    }

    pub(super) fn losing_commits(self, count: usize) -> KeepingSink {
        self.lost_commits.store(count, Ordering::SeqCst);
        self
    }

    /// Puts another place where this one was.
    pub(super) fn replace(&self) {
        *self.place.lock().unwrap() = "second".to_owned();
    }

    /// Says that a checkpoint was committed.
    pub(super) fn claim_commit(&self, number: CheckpointId) {
        self.newest_commit.store(number, Ordering::SeqCst);
    }

    /// Waits until so many commits have landed.
    pub(super) async fn wait_for_commits(&self, count: usize) {
        self.commit_count.subscribe().wait_for(|commits| *commits >= count).await.unwrap();
    }

    /// Waits until writers have prepared so many times more.
    pub(super) async fn wait_for_prepared(&self, count: usize) {
        let wanted = *self.prepare_count.borrow() + count;
        self.prepare_count.subscribe().wait_for(|prepared| *prepared >= wanted).await.unwrap();
    }

    /// Lets writers write.
    pub(super) fn open_gate(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits until so many rows were written.
    pub(super) async fn wait_for_rows(&self, count: usize) {
        self.written.subscribe().wait_for(|written| *written >= count).await.unwrap();
    }

    /// Returns how many rows were written.
    pub(super) fn written(&self) -> usize {
        *self.written.borrow()
    }

    /// Returns what was committed, in order.
    pub(super) fn lines(&self) -> Vec<String> {
        self.by_writer().into_iter().map(|(_, line)| line).collect()
    }

    /// Returns what was committed, in order, with the writers.
    pub(super) fn by_writer(&self) -> Vec<(usize, String)> {
        self.committed.lock().unwrap().values().flatten().cloned().collect()
    }

    /// Returns the lines of each checkpoint.
    pub(super) fn by_commit(&self) -> BTreeMap<CheckpointId, Vec<String>> {
        let committed = self.committed.lock().unwrap();
        let lines = |lines: &[(usize, String)]| lines.iter().map(|(_, line)| line.clone()).collect();
        committed.iter().map(|(number, of)| (*number, lines(of))).collect()
    }

    /// Returns the numbers of the checkpoints that were committed.
    pub(super) fn commits(&self) -> Vec<CheckpointId> {
        self.committed.lock().unwrap().keys().copied().collect()
    }
}

#[derive(Debug)]
struct SharedSink(Arc<KeepingSink>);

#[async_trait]
impl DynamicTableSink for SharedSink {
    fn summary(&self) -> String {
        "Keeping".to_owned()
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested
    }

    fn newest_commit(&self, sink_id: &str) -> Option<CheckpointId> {
        assert!(sink_id.starts_with("00000000000000000000000000000007/"), "{sink_id}");
        Some(self.0.newest_commit.load(Ordering::SeqCst)).filter(|number| *number > 0)
    }

    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        let _opening = Opening::new(&self.0);
        if !self.0.may_open {
            std::future::pending::<()>().await;
        }
        Ok(Box::new(KeepingWriter { sink: Arc::clone(&self.0), number: ctx.writer, lines: Vec::new() }))
    }

    async fn open_committer(&self, _ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(KeepingCommitter(Arc::clone(&self.0))))
    }
}

/// A writer that is being opened.
struct Opening<'a>(&'a KeepingSink);

impl Opening<'_> {
    fn new(sink: &KeepingSink) -> Opening<'_> {
        sink.openings.send_modify(|openings| *openings += 1);
        Opening(sink)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.openings.send_modify(|openings| *openings -= 1);
    }
}

struct KeepingWriter {
    sink: Arc<KeepingSink>,
    number: usize,
    lines: Vec<String>,
}

#[async_trait]
impl SinkWriter for KeepingWriter {
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()> {
        let mut is_open = self.sink.is_open.subscribe();
        if !*is_open.borrow() {
            self.sink.blocked.notify_one();
        }
        is_open.wait_for(|is_open| *is_open).await.unwrap();
        self.lines.extend(lines(&batch));
        self.sink.written.send_modify(|written| *written += batch.row_count());
        match self.sink.fails_at {
            Some(row) if self.sink.written() > row => Err(Error::rejected("the sink is full")),
            _ => Ok(()),
        }
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        let lines = std::mem::take(&mut self.lines);
        self.sink.prepare_count.send_modify(|prepared| *prepared += 1);
        Ok(vec![Committable(format!("{}\n{}", self.number, lines.join("\n")).into_bytes())])
    }
}

struct KeepingCommitter(Arc<KeepingSink>);

#[async_trait]
impl Committer for KeepingCommitter {
    async fn commit(&mut self, checkpoint: &CompletedCheckpoint, committables: &[Committable]) -> Result<()> {
        let mut all = Vec::new();
        for committable in committables {
            let text = String::from_utf8(committable.0.clone()).unwrap();
            let (writer, lines) = text.split_once('\n').unwrap();
            let writer: usize = writer.parse().unwrap();
            all.extend(lines.lines().map(|line| (writer, line.to_owned())));
        }
        self.0.committed.lock().unwrap().insert(checkpoint.number, all);
        self.0.commit_count.send_modify(|commits| *commits += 1);
        let lost =
            self.0.lost_commits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |lost| lost.checked_sub(1));
        if lost.is_ok() { Err(Error::unavailable("the answer to a commit was lost")) } else { Ok(()) }
    }

    async fn discard_unfinished(&mut self, sink_id: &str, _kept: &[Committable]) -> Result<()> {
        self.0.discarded.lock().unwrap().push(sink_id.to_owned());
        Ok(())
    }

    fn place(&self) -> Option<String> {
        Some(self.0.place.lock().unwrap().clone())
    }

    fn check_place(&self, place: &str, checkpoint: CheckpointId) -> Result<()> {
        let is_same = self.place().as_deref() == Some(place);
        if is_same {
            Ok(())
        } else {
            Err(Error::rejected(format!("not the place of checkpoint {checkpoint}")))
        }
    }
}

/// The columns of all tables: `k BIGINT, v BIGINT`.
pub(super) fn columns() -> SchemaRef {
    text::schema(&[("k", DataType::Int64), ("v", DataType::Int64)])
}

/// Makes a step of lines.
pub(super) fn rows<S: AsRef<str>>(lines: &[S]) -> Step {
    Step::Rows(text::batch(&columns(), lines))
}

/// A graph built by hand.
#[derive(Default)]
pub(super) struct GraphBuilder(pub(super) JobGraph);

impl GraphBuilder {
    /// Adds a node whose columns are those of all tables.
    pub(super) fn node(&mut self, spec: OperatorSpec, inputs: &[(NodeId, Distribution)]) -> NodeId {
        let schema = Arc::new(DFSchema::try_from(columns().as_ref().clone()).unwrap());
        let mode = match &spec {
            OperatorSpec::Source { table, .. } => table.source.changelog_mode(),
            _ => inputs
                .iter()
                .fold(ChangelogMode::INSERT_ONLY, |mode, (input, _)| mode.union(self.0.nodes[*input].mode)),
        };
        let edges = inputs
            .iter()
            .map(|(node, distribution)| InputEdge { node: *node, distribution: distribution.clone() });
        self.0.add(GraphNode {
            spec,
            inputs: edges.collect(),
            schema,
            mode,
            unique_keys: Vec::new(),
            uid: format!("node-{}", self.0.nodes.len()),
        })
    }

    pub(super) fn source(&mut self, source: &Arc<ScriptedSource>) -> NodeId {
        let table = SourceTable::of_source(Arc::new(Shared(Arc::clone(source))), columns());
        self.node(OperatorSpec::Source { table: Box::new(table), columns: vec![0, 1] }, &[])
    }

    /// Adds a sink, with one writer if it has no key.
    pub(super) fn sink(&mut self, sink: &Arc<KeepingSink>, keys: &[usize], input: NodeId) {
        let sink = Arc::new(SharedSink(Arc::clone(sink)));
        let spec = SinkSpec { name: "s".to_owned(), sink, keys: keys.to_vec(), overwrite: false };
        let distribution =
            if keys.is_empty() { Distribution::Singleton } else { Distribution::Hash(keys.to_vec()) };
        self.node(OperatorSpec::Sink(spec), &[(input, distribution)]);
    }
}

/// Makes settings of a job without checkpoints.
pub(super) fn settings(workers: usize) -> JobSettings {
    JobSettings {
        id: 7,
        name: "job".to_owned(),
        workers,
        is_per_record: false,
        epoch_rows_max: 1_000,
        epoch_wait: Duration::ZERO,
        checkpoints: None,
        restore: None,
        ignores_unclaimed_state: false,
        resume: JobResume::None,
        restart: RestartStrategy::None,
        memory_budget: usize::MAX,
    }
}

/// Makes settings of a job with checkpoints below a folder, which are as frequent as they can be or made only when asked for.
pub(super) fn checkpointed(workers: usize, folder: &Path, is_frequent: bool) -> JobSettings {
    let checkpoints = CheckpointSettings {
        interval: is_frequent.then_some(Duration::from_millis(1)),
        min_pause: Duration::ZERO,
        timeout: Duration::from_secs(60),
        tolerable_failures: 0,
        folder: folder.to_owned(),
        retained: 1,
        delta_bytes_min: 0,
        is_kept_on_cancel: true,
    };
    JobSettings { checkpoints: Some(checkpoints), ..settings(workers) }
}

/// Makes a place for printed lines.
pub(super) fn output() -> Arc<dyn OutputPort> {
    Arc::new(Printed::default())
}

/// Runs a test on several threads, and lets it fail rather than hang.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), test).await };
    let done = runtime.block_on(limited).expect("the job hangs");
    runtime.shutdown_background();
    done
}

/// Starts source → union → sink.
pub(super) async fn start_copy(
    source: &Arc<ScriptedSource>,
    sink: &Arc<KeepingSink>,
    settings: JobSettings,
) -> Result<JobHandle> {
    let mut graph = GraphBuilder::default();
    let read = graph.source(source);
    let union = graph.node(OperatorSpec::Union, &[(read, Distribution::Forward)]);
    graph.sink(sink, &[], union);
    JobHandle::start(graph.0, settings, output()).await
}
