//! The stream: the same query over the tables' histories, epoch by epoch, folded and compared with the batch answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::history::{Changes, Table};
use super::oracle::{answer, execute, row_texts, session};
use super::query::Mode;
use super::{Case, Outcome, Variation};
use crate::changelog::ChangelogBatch;
use crate::error::{ErrorKind, Result};
use crate::plan::{NodeId, Planner};
use crate::runtime::Lockstep;
use crate::schema::DataType;
use crate::sql::{Statement, parse_statement};

/// Merges joins on one key.
pub(super) const MERGES_JOINS: &str = "SET 'table.optimizer.multi-join.enabled' = 'true'";

/// A table's changes as a node of the graph reads them.
struct Feed {
    node: NodeId,
    table: usize,
    rows: Option<ChangelogBatch>,
    /// How many changes have been given.
    given: usize,
}

/// Rows with how often they are there.
#[derive(Default)]
struct Folded(BTreeMap<String, i64>);

impl Folded {
    /// Takes changes; None if a row was taken away more often than it was there at the end of an epoch.
    fn take(&mut self, types: &[DataType], batches: &[ChangelogBatch]) -> std::result::Result<(), String> {
        for batch in batches {
            for (row, text) in row_texts(types, batch).into_iter().enumerate() {
                let sign = if batch.kind(row).is_retraction() { -1 } else { 1 };
                *self.0.entry(text).or_default() += sign;
            }
        }
        self.0.retain(|_, count| *count != 0);
        match self.0.iter().find(|(_, count)| **count < 0) {
            Some((row, count)) => {
                Err(format!("the stream takes away a row that is not there: {row} ({count})"))
            }
            None => Ok(()),
        }
    }

    fn rows(&self) -> Vec<String> {
        self.0.iter().flat_map(|(row, count)| std::iter::repeat_n(row.clone(), *count as usize)).collect()
    }
}

/// Runs a case in a variation and compares at all its points.
pub(super) fn compare(case: &Case, variation: Variation) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match runtime.block_on(run(case, variation)) {
        Ok(outcome) => outcome,
        Err(error) if error.kind() == ErrorKind::Unsupported => Outcome::Refused(error.message().to_owned()),
        Err(error) => Outcome::Wrong(format!("{error:?}")),
    }
}

async fn run(case: &Case, variation: Variation) -> Result<Outcome> {
    let (mut job, types) = start(case, variation.workers).await?;
    let mut feeds = feeds(case, &job).await?;
    let mut folded = Folded::default();
    let place = tempfile::tempdir_in(scratch()).unwrap();
    let mut workers = variation.workers;
    for (number, share) in case.checks.iter().enumerate() {
        let until: Vec<usize> = case.tables.iter().map(|table| table.events.len() * share / 1_000).collect();
        let is_end = number + 1 == case.checks.len();
        loop {
            let rows = next_rows(&mut feeds, &until, variation.epoch);
            let is_done = feeds.iter().all(|feed| feed.given >= until[feed.table]);
            let emitted = job.epoch(rows, is_done && is_end).await?;
            if let Err(wrong) = folded.take(&types, &emitted) {
                return Ok(Outcome::Wrong(wrong));
            }
            if is_done {
                break;
            }
        }
        let expected = answer(&case.tables, &case.query, &until).await?;
        let mut ours = folded.rows();
        ours.sort_unstable();
        if ours != expected {
            let what = difference(&expected, &ours);
            return Ok(Outcome::Wrong(format!("after {until:?} changes:\n{what}")));
        }
        if variation.is_cut && !is_end {
            workers = workers % 3 + 1;
            job = job.cut(place.path(), workers).await?;
        }
    }
    job.stop().await;
    Ok(Outcome::Equal)
}

/// Where state is saved: in memory where the machine has such a place, because thousands of cuts wait for the disk otherwise.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Plans the query as a stream and starts it.
async fn start(case: &Case, workers: usize) -> Result<(Lockstep, Vec<DataType>)> {
    let mut session = session(Mode::Streaming);
    if case.merges_joins {
        execute(&mut session, MERGES_JOINS).await?;
    }
    for table in &case.tables {
        execute(&mut session, &table.changing_table()).await?;
    }
    let Statement::Query(query) = parse_statement(&case.query.sql(Mode::Streaming))? else {
        panic!("a query is a query");
    };
    let planned = Planner::new(session.catalogs(), session.config())?.query(&query).await?;
    let types = planned.columns().map(|(_, data_type)| data_type.clone()).collect();
    Ok((Lockstep::start(planned.job_graph()?, workers)?, types))
}

async fn feeds(case: &Case, job: &Lockstep) -> Result<Vec<Feed>> {
    let mut feeds = Vec::new();
    for (node, name) in job.sources() {
        let is_named = |table: &Table| name.ends_with(&format!(".{}", table.name));
        let table = case.tables.iter().position(is_named).expect("a source is one of the tables");
        feeds.push(Feed { node, table, rows: job.all_rows(node).await?, given: 0 });
    }
    Ok(feeds)
}

/// Takes the rows of the next epoch: those of the tables in turn, so that an epoch may hold changes of several.
fn next_rows(feeds: &mut [Feed], until: &[usize], size: Option<usize>) -> Vec<(NodeId, ChangelogBatch)> {
    let mut left = size.unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    for feed in feeds.iter_mut() {
        let count = (until[feed.table] - feed.given).min(left);
        if count == 0 {
            continue;
        }
        if let Some(batch) = &feed.rows {
            rows.push((feed.node, batch.slice(feed.given, count)));
        }
        feed.given += count;
        left -= count;
    }
    // The next epoch begins with another table.
    feeds.rotate_left(1.min(feeds.len()));
    rows
}

fn difference(expected: &[String], ours: &[String]) -> String {
    let missing: Vec<&String> = expected.iter().filter(|row| !ours.contains(row)).collect();
    let extra: Vec<&String> = ours.iter().filter(|row| !expected.contains(row)).collect();
    format!(
        "batch has {} rows, the stream {}\n  only in batch: {missing:?}\n  only in the stream: {extra:?}",
        expected.len(),
        ours.len()
    )
}

#[test]
fn upserts_hide_what_they_replace() {
    let table = Table {
        name: "t0".to_owned(),
        types: vec![super::history::Type::Int; 2],
        has_key: true,
        changes: Changes::Upsert,
        events: [("+I", "1", "1"), ("+U", "1", "2"), ("+I", "2", "1"), ("-D", "2", "null")]
            .map(|(kind, key, value)| super::history::Event {
                kind,
                row: vec![key.to_owned(), value.to_owned()],
            })
            .to_vec(),
    };
    assert_eq!(table.rows_after(3).len(), 2);
    assert_eq!(table.rows_after(4), [["1".to_owned(), "2".to_owned()]]);
}
