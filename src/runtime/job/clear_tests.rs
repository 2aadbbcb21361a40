//! Tables that are emptied: all rows go exactly once, whatever the size of epochs, the number of workers and the cuts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::testing::*;
use super::{JobHandle, JobSettings, JobStatus, RestartStrategy, StopMode};
use crate::changelog::ChangelogMode;
use crate::plan::{ChangelogNormalizeSpec, Distribution, JobGraph, OperatorSpec};
use crate::runtime::operator::testing::{Multiset, Random, fold};

/// Source → ChangelogNormalize → sink.
fn remembered(source: &Arc<ScriptedSource>, sink: &Arc<KeepingSink>) -> JobGraph {
    let mut graph = GraphBuilder::default();
    let read = graph.source(source);
    // Other readers of the table do not matter, nor does what only picks columns.
    let picked = graph
        .node(OperatorSpec::Calc { condition: None, projection: None }, &[(read, Distribution::Forward)]);
    let spec = ChangelogNormalizeSpec { keys: vec![0], condition: None, emits_update_before: true };
    let rows = graph.node(OperatorSpec::ChangelogNormalize(spec), &[(picked, Distribution::Hash(vec![0]))]);
    graph.sink(sink, &[0], rows);
    graph.0
}

/// Writes a script of upserts, deletes and clearings, with what is there at its end.
fn script(random: &mut Random, outages: bool) -> (Vec<Step>, Multiset) {
    let (mut steps, mut there) = (Vec::new(), BTreeMap::new());
    for _ in 0..120 {
        match random.below(10) {
            0 => {
                there.clear();
                steps.push(Step::Clear);
            }
            1 if outages => steps.push(Step::Outage),
            _ => {
                let mut lines = Vec::new();
                for _ in 0..1 + random.below(4) {
                    let (key, value) = (random.below(12), random.below(3));
                    if random.chance(25) {
                        there.remove(&key);
                        lines.push(format!("-D {key} NULL"));
                    } else {
                        there.insert(key, value);
                        lines.push(format!("+U {key} {value}"));
                    }
                }
                steps.push(rows(&lines));
            }
        }
    }
    let rows = there.into_iter().map(|(key, value)| (format!("{key} {value}"), 1));
    (steps, rows.collect())
}

#[test]
fn all_rows_of_a_table_that_is_emptied_go_once_whatever_the_epochs() {
    let mut random = Random::new(3);
    for workers in [1, 2, 3] {
        for epoch_rows_max in [1, 3, 1_000] {
            for (outages, is_per_record) in [(false, workers == 1), (false, false), (true, false)] {
                let folder = tempfile::tempdir().unwrap();
                let (steps, expected) = script(&mut random, outages);
                let source = ScriptedSource::new(steps, true, ChangelogMode::ALL);
                let sink = Arc::new(KeepingSink::new());
                let settings = JobSettings {
                    epoch_rows_max,
                    is_per_record,
                    restart: RestartStrategy::FixedDelay { attempts: u32::MAX, delay: Duration::ZERO },
                    ..checkpointed(workers, folder.path(), true)
                };
                run(async {
                    let job = JobHandle::start(remembered(&source, &sink), settings, output()).await.unwrap();
                    assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
                });
                let place = format!("{workers} workers, {epoch_rows_max} rows, {outages}, {is_per_record}");
                assert_eq!(fold(&sink.lines()), expected, "{place}");
            }
        }
    }
}

#[test]
fn what_is_taken_one_by_one_goes_one_by_one_at_its_place() {
    let steps = vec![
        rows(&["+I 1 1", "+I 2 2"]),
        Step::Clear,
        rows(&["+I 2 2"]),
        Step::Clear,
        Step::Clear,
        rows(&["+I 3 3"]),
        rows(&["-D 3 3"]),
    ];
    let source = ScriptedSource::new(steps, true, ChangelogMode::ALL);
    let sink = Arc::new(KeepingSink::new());
    let settings = JobSettings { is_per_record: true, ..settings(1) };
    run(async {
        let job = JobHandle::start(remembered(&source, &sink), settings, output()).await.unwrap();
        job.finished().await.unwrap();
    });
    let expected = ["+I 1 1", "+I 2 2", "-D 1 1", "-D 2 2", "+I 2 2", "-D 2 2", "+I 3 3", "-D 3 3"];
    assert_eq!(sink.lines(), expected);
}

#[test]
fn a_job_goes_on_from_right_behind_a_clearing() {
    run(async {
        for (before, after) in [(1, 3), (3, 2), (2, 1)] {
            let folder = tempfile::tempdir().unwrap();
            let lines: Vec<String> = (0..20).map(|key| format!("+I {key} 0")).collect();
            let source = ScriptedSource::new(vec![rows(&lines)], false, ChangelogMode::ALL);
            let sink = Arc::new(KeepingSink::new());
            let settings = checkpointed(before, folder.path(), true);
            let graph = remembered(&source, &sink);
            let job = JobHandle::start(graph, settings.clone(), output()).await.unwrap();
            // A checkpoint that has the rows comes first, so that the next one must say that they have gone.
            loop {
                let next = sink.commits().len() + 1;
                if sink.lines().len() == 20 {
                    break;
                }
                sink.wait_for_commits(next).await;
            }
            source.feed(Step::Clear);
            sink.wait_for_rows(40).await;
            let mode = StopMode::Savepoint { folder: folder.path().join("savepoints"), drain: false };
            let savepoint = job.stop(mode).await.unwrap().unwrap();
            assert_eq!(fold(&sink.lines()), Multiset::new());

            source.feed(rows(&["+U 1 5", "-D 2 0", "+U 1 6"]));
            source.feed(Step::Clear);
            source.feed(rows(&["+U 1 6", "+U 7 7"]));
            let again = Arc::new(KeepingSink::new());
            let settings = JobSettings { workers: after, restore: Some(savepoint), id: 8, ..settings };
            let graph = remembered(&source, &again);
            let job = JobHandle::start(graph, settings, output()).await.unwrap();
            source.wait_until_read().await;
            let mode = StopMode::Savepoint { folder: folder.path().join("more"), drain: false };
            job.stop(mode).await.unwrap();
            let there = ["1 6", "7 7"].map(|row| (row.to_owned(), 1));
            assert_eq!(fold(&again.lines()), Multiset::from(there));
            assert!(again.lines().iter().all(|line| !line.starts_with("-U")), "{:?}", again.lines());
        }
    });
}

#[test]
fn a_table_whose_rows_nobody_remembers_is_not_cleared_in_silence() {
    run(async {
        let source = ScriptedSource::new(vec![rows(&["+I 1 1"]), Step::Clear], true, ChangelogMode::ALL);
        let sink = Arc::new(KeepingSink::new());
        let job = start_copy(&source, &sink, settings(2)).await.unwrap();
        let error = job.finished().await.unwrap_err();
        assert_eq!(error.message(), "a table is cleared whose rows nobody remembers");
    });
}
