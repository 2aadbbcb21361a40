//! Tables that one reader reads: every checkpoint shows them at the same moment, whatever the size of epochs.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::testing::*;
use super::{JobHandle, JobSettings, JobStatus, StopMode};
use crate::connector::testing::Printed;
use crate::connector::{
    Boundedness, DynamicTableSource, Frame, FrameDecoder, Projection, ReaderContext, SourceEvent,
    SourcePosition, SourceReader, TableRead,
};
use crate::error::{Error, Result};
use crate::plan::{Distribution, JobGraph, OperatorSpec, SourceTable};
use crate::runtime::operator::testing as text;

/// How many rows a transaction writes into each of both tables.
const ROWS: usize = 4;

/// One of two tables that are written together, in as many transactions as there may be so far.
#[derive(Debug)]
struct PairTable {
    pair: Pair,
    ends_at: Option<usize>,
}

/// What two tables have.
#[derive(Debug, Clone)]
struct Pair {
    /// How many transactions there are so far.
    transactions: watch::Sender<usize>,
    /// The one of which no more than half comes.
    halved: watch::Sender<Option<usize>>,
}

impl Pair {
    fn new(transactions: usize) -> Pair {
        Pair { transactions: watch::Sender::new(transactions), halved: watch::Sender::new(None) }
    }
}

impl DynamicTableSource for PairTable {
    fn summary(&self) -> String {
        "Pair".to_owned()
    }

    fn boundedness(&self) -> Boundedness {
        if self.ends_at.is_some() { Boundedness::Bounded } else { Boundedness::Unbounded }
    }

    fn open(&self, _: &Projection, _: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>> {
        Err(Error::internal("it is opened with its group"))
    }

    fn group(&self) -> Option<String> {
        Some("pair".to_owned())
    }

    fn open_group(
        &self,
        tables: &[TableRead<'_>],
        _: &ReaderContext,
        start: Option<&SourcePosition>,
    ) -> Result<Box<dyn SourceReader>> {
        assert_eq!(tables.len(), 2);
        let done = start.map_or(0, |position| position["transaction"].parse().unwrap());
        Ok(Box::new(PairReader {
            transactions: self.pair.transactions.subscribe(),
            halved: self.pair.halved.subscribe(),
            ends_at: self.ends_at,
            done,
            parts: 0,
        }))
    }

    fn decoder(&self, _: &Projection) -> Result<Box<dyn FrameDecoder>> {
        Ok(Box::new(Rows))
    }
}

struct PairReader {
    transactions: watch::Receiver<usize>,
    halved: watch::Receiver<Option<usize>>,
    ends_at: Option<usize>,
    done: usize,
    /// How many parts of the next transaction were given.
    parts: usize,
}

#[async_trait]
impl SourceReader for PairReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        if self.ends_at == Some(self.done) {
            return Ok(SourceEvent::EndOfInput);
        }
        let done = self.done;
        self.transactions.wait_for(|transactions| *transactions > done).await.unwrap();
        if self.parts == ROWS {
            self.halved.wait_for(|halved| *halved != Some(done)).await.unwrap();
        }
        if self.parts == 2 * ROWS {
            (self.done, self.parts) = (self.done + 1, 0);
            return Ok(SourceEvent::Boundary);
        }
        let (table, row) = (self.parts % 2, self.parts / 2);
        self.parts += 1;
        let frame = Frame::Rows(text::batch(&columns(), &[format!("+I {done} {row}")]));
        Ok(SourceEvent::Part { table, frame })
    }

    fn position(&self) -> SourcePosition {
        SourcePosition::from([("transaction".to_owned(), self.done.to_string())])
    }
}

struct Rows;

impl FrameDecoder for Rows {
    fn decode(&mut self, frame: &Frame) -> Result<Vec<crate::changelog::ChangelogBatch>> {
        let Frame::Rows(batch) = frame else { unreachable!("only rows are given") };
        Ok(vec![batch.clone()])
    }
}

/// Each table → a sink of its own.
fn copies(pair: &Pair, ends_at: Option<usize>, sinks: &[Arc<KeepingSink>; 2]) -> JobGraph {
    let mut graph = GraphBuilder::default();
    for sink in sinks {
        let source = Arc::new(PairTable { pair: pair.clone(), ends_at });
        let table = Box::new(SourceTable::of_source(source, columns()));
        let read = graph.node(OperatorSpec::Source { table, columns: vec![0, 1] }, &[]);
        let union = graph.node(OperatorSpec::Union, &[(read, Distribution::Forward)]);
        graph.sink(sink, &[], union);
    }
    graph.0
}

fn new_sinks() -> [Arc<KeepingSink>; 2] {
    [Arc::new(KeepingSink::new()), Arc::new(KeepingSink::new())]
}

/// Starts a job that has read four transactions and half of the fifth, and has a checkpoint behind the fourth.
async fn halved(
    pair: &Pair,
    settings: &JobSettings,
    sinks: &[Arc<KeepingSink>; 2],
) -> (JobHandle, Arc<Printed>) {
    pair.halved.send_replace(Some(4));
    let printed = Arc::new(Printed::default());
    let output = Arc::clone(&printed);
    let job = JobHandle::start(copies(pair, None, sinks), settings.clone(), output).await.unwrap();
    let mut commits = 0;
    while sinks[0].lines().len() < 4 * ROWS {
        commits += 1;
        sinks[0].wait_for_commits(commits).await;
    }
    pair.transactions.send_replace(5);
    sinks[0].wait_for_rows(4 * ROWS + ROWS / 2).await;
    (job, printed)
}

/// Checks that both sinks have the same whole transactions in each commit; returns how many rows each has.
fn check(sinks: &[Arc<KeepingSink>; 2]) -> usize {
    let [left, right] = [0, 1].map(|at: usize| sinks[at].by_commit());
    assert_eq!(left, right);
    assert!(left.values().all(|lines| lines.len() % ROWS == 0), "{left:?}");
    left.values().map(Vec::len).sum()
}

#[test]
fn every_checkpoint_shows_the_tables_of_a_reader_at_one_moment() {
    run(async {
        for (workers, rows) in [(1, 1), (1, 3), (2, 5), (3, 1_000)] {
            let folder = tempfile::tempdir().unwrap();
            let pair = Pair::new(50);
            let sinks = new_sinks();
            let settings = JobSettings { epoch_rows_max: rows, ..checkpointed(workers, folder.path(), true) };
            let graph = copies(&pair, Some(50), &sinks);
            let job = JobHandle::start(graph, settings, output()).await.unwrap();
            assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
            assert_eq!(check(&sinks), 50 * ROWS);
        }
    });
}

#[test]
fn a_job_that_is_stopped_has_whole_transactions_and_goes_on_behind_them() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let pair = Pair::new(20);
        let sinks = new_sinks();
        let settings = JobSettings { epoch_rows_max: 3, ..checkpointed(2, folder.path(), false) };
        let graph = copies(&pair, None, &sinks);
        let job = JobHandle::start(graph, settings.clone(), output()).await.unwrap();
        sinks[0].wait_for_rows(7).await;
        let mode = StopMode::Savepoint { folder: folder.path().join("savepoints"), drain: false };
        let savepoint = job.stop(mode).await.unwrap().unwrap();
        let first = check(&sinks);
        assert!(first > 0);
        let again = new_sinks();
        let settings = JobSettings { restore: Some(savepoint), id: 8, ..settings };
        let graph = copies(&pair, Some(30), &again);
        pair.transactions.send_replace(30);
        let job = JobHandle::start(graph, settings, output()).await.unwrap();
        assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
        assert_eq!(first + check(&again), 30 * ROWS);
    });
}

#[test]
fn nothing_is_lost_of_what_comes_between_two_wishes_to_stop() {
    run(async {
        for round in 0..40 {
            let folder = tempfile::tempdir().unwrap();
            let (pair, sinks) = (Pair::new(100), new_sinks());
            let settings = JobSettings { epoch_rows_max: 3, ..checkpointed(2, folder.path(), true) };
            let job =
                JobHandle::start(copies(&pair, None, &sinks), settings.clone(), output()).await.unwrap();
            sinks[0].wait_for_rows(round).await;
            // The path is that of the last checkpoint, whoever asks.
            let (checkpoint, ()) = tokio::join!(job.stop(StopMode::Finish), async {
                for _ in 0..20 {
                    job.request_stop(StopMode::Finish);
                    tokio::task::yield_now().await;
                }
            });
            let checkpoint = checkpoint.unwrap().unwrap();
            check(&sinks);
            let settings = JobSettings { restore: Some(checkpoint), id: 8, ..settings };
            let graph = copies(&pair, Some(100), &sinks);
            let job = JobHandle::start(graph, settings, output()).await.unwrap();
            assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
            assert_eq!(check(&sinks), 100 * ROWS);
        }
    });
}

#[test]
fn a_job_that_is_stopped_within_a_transaction_without_an_end_ends_at_its_last_checkpoint() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (pair, sinks) = (Pair::new(4), new_sinks());
        let settings = JobSettings { epoch_rows_max: 1, ..checkpointed(2, folder.path(), true) };
        let (job, printed) = halved(&pair, &settings, &sinks).await;
        let checkpoint = job.stop(StopMode::Finish).await.unwrap().unwrap();
        assert_eq!(job.status(), JobStatus::Canceled);
        assert_eq!(check(&sinks), 4 * ROWS);
        assert!(printed.text().contains("it ends at its last checkpoint"), "{}", printed.text());
        // Whoever goes on reads the transaction again.
        pair.halved.send_replace(None);
        let settings = JobSettings { restore: Some(checkpoint), id: 8, ..settings };
        let job = JobHandle::start(copies(&pair, Some(5), &sinks), settings, output()).await.unwrap();
        assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
        assert_eq!(check(&sinks), 5 * ROWS);
    });
}

#[test]
fn a_savepoint_within_a_transaction_without_an_end_is_refused_and_the_job_goes_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (pair, sinks) = (Pair::new(4), new_sinks());
        let settings = JobSettings { epoch_rows_max: 1, ..checkpointed(2, folder.path(), true) };
        let (job, _) = halved(&pair, &settings, &sinks).await;
        let mode = StopMode::Savepoint { folder: folder.path().join("savepoints"), drain: false };
        let refused = job.stop(mode.clone()).await.unwrap_err();
        assert!(refused.message().contains("cannot be saved now"), "{refused}");
        assert_eq!(job.status(), JobStatus::Running);
        pair.halved.send_replace(None);
        sinks[0].wait_for_rows(5 * ROWS).await;
        assert!(job.stop(mode).await.unwrap().is_some());
        assert_eq!(check(&sinks), 5 * ROWS);
    });
}
