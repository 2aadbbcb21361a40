//! Tables that one reader reads: every checkpoint shows them at the same moment, whatever the size of epochs.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;

use super::testing::*;
use super::{JobHandle, JobSettings, JobStatus, StopMode};
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
    transactions: watch::Receiver<usize>,
    ends_at: Option<usize>,
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
            transactions: self.transactions.clone(),
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
fn copies(
    transactions: &watch::Sender<usize>,
    ends_at: Option<usize>,
    sinks: &[Arc<KeepingSink>; 2],
) -> JobGraph {
    let mut graph = GraphBuilder::default();
    for sink in sinks {
        let source = Arc::new(PairTable { transactions: transactions.subscribe(), ends_at });
        let table = Box::new(SourceTable::of_source(source, columns()));
        let read = graph.node(OperatorSpec::Source { table, columns: vec![0, 1] }, &[]);
        let union = graph.node(OperatorSpec::Union, &[(read, Distribution::Forward)]);
        graph.sink(sink, &[], union);
    }
    graph.0
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
            let transactions = watch::Sender::new(50);
            let sinks = [Arc::new(KeepingSink::new()), Arc::new(KeepingSink::new())];
            let settings = JobSettings { epoch_rows_max: rows, ..checkpointed(workers, folder.path(), true) };
            let graph = copies(&transactions, Some(50), &sinks);
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
        let transactions = watch::Sender::new(20);
        let sinks = [Arc::new(KeepingSink::new()), Arc::new(KeepingSink::new())];
        let settings = JobSettings { epoch_rows_max: 3, ..checkpointed(2, folder.path(), false) };
        let graph = copies(&transactions, None, &sinks);
        let job = JobHandle::start(graph, settings.clone(), output()).await.unwrap();
        sinks[0].wait_for_rows(7).await;
        let mode = StopMode::Savepoint { folder: folder.path().join("savepoints"), drain: false };
        let savepoint = job.stop(mode).await.unwrap().unwrap();
        let first = check(&sinks);
        assert!(first > 0);
        let again = [Arc::new(KeepingSink::new()), Arc::new(KeepingSink::new())];
        let settings = JobSettings { restore: Some(savepoint), id: 8, ..settings };
        let graph = copies(&transactions, Some(30), &again);
        transactions.send_replace(30);
        let job = JobHandle::start(graph, settings, output()).await.unwrap();
        assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
        assert_eq!(first + check(&again), 30 * ROWS);
    });
}
