//! Jobs with state: any number of workers, any size of epochs, cut and started again at any place, give the same answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::lit;

use super::testing::*;
use super::{JobHandle, JobOrigin, JobSettings, JobStatus, RestartStrategy, StopMode};
use crate::changelog::ChangelogMode;
use crate::error::{ErrorKind, Result};
use crate::options::{AggregatePhaseStrategy, JobResume};
use crate::plan::{
    AggregateCall, AggregateFunction, Distribution, GroupAggregateSpec, JobGraph, OperatorSpec,
};
use crate::runtime::operator::testing::{Multiset, fold};
use crate::schema::TypeRoot;

/// Rows that come and go under a few keys, with versions.
fn changes(from: usize, to: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for number in from..to {
        let key = number * 7 % 23;
        lines.push(format!("+I {key} {number}"));
        if number % 3 == 0 && number > 0 {
            lines.push(format!("-D {} {}", (number - 1) * 7 % 23, number - 1));
        }
    }
    lines
}

fn feed(source: &ScriptedSource, lines: &[String]) {
    lines.chunks(5).for_each(|chunk| source.feed(rows(chunk)));
}

/// Makes a source that has changes to give, and then ends or stays open.
fn fed(lines: &[String], ends: bool) -> Arc<ScriptedSource> {
    let source = ScriptedSource::new(Vec::new(), ends, ChangelogMode::ALL);
    feed(&source, lines);
    source
}

/// Source and two constant rows → COUNT(*) of each key → how many keys have each count → sink.
fn counting(source: &Arc<ScriptedSource>, sink: &Arc<KeepingSink>) -> JobGraph {
    let mut graph = GraphBuilder::default();
    let read = graph.source(source);
    let values = vec![vec![lit(1_i64), lit(0_i64)], vec![lit(99_i64), lit(0_i64)]];
    let values = graph.node(OperatorSpec::Values { rows: values }, &[]);
    let union =
        graph.node(OperatorSpec::Union, &[(read, Distribution::Forward), (values, Distribution::Forward)]);
    let by_key = graph.node(count_by(0), &[(union, Distribution::Hash(vec![0]))]);
    let by_count = graph.node(count_by(1), &[(by_key, Distribution::Hash(vec![1]))]);
    graph.sink(sink, &[0], by_count);
    graph.0
}

fn count_by(key: usize) -> OperatorSpec {
    OperatorSpec::GroupAggregate(GroupAggregateSpec {
        keys: vec![key],
        calls: vec![AggregateCall {
            function: AggregateFunction::Count,
            arguments: Vec::new(),
            argument_type: None,
            filter: None,
            is_distinct: false,
            result_type: TypeRoot::BigInt.nullable(),
        }],
        input_retracts: true,
        emits_update_before: true,
        phase_strategy: AggregatePhaseStrategy::Auto,
    })
}

/// Computes what `counting` comes to.
fn expected(lines: &[String]) -> Multiset {
    let mut alive = fold(lines);
    for row in ["1 0", "99 0"] {
        *alive.entry(row.to_owned()).or_default() += 1;
    }
    let mut by_key = std::collections::BTreeMap::<&str, i64>::new();
    for (row, count) in &alive {
        *by_key.entry(row.split(' ').next().unwrap()).or_default() += count;
    }
    let mut by_count = std::collections::BTreeMap::<i64, i64>::new();
    by_key.values().for_each(|count| *by_count.entry(*count).or_default() += 1);
    by_count.into_iter().map(|(count, keys)| (format!("{count} {keys}"), 1)).collect()
}

async fn start(
    source: &Arc<ScriptedSource>,
    sink: &Arc<KeepingSink>,
    settings: JobSettings,
) -> Result<JobHandle> {
    JobHandle::start(counting(source, sink), settings, output()).await
}

fn from(settings: JobSettings, path: PathBuf) -> JobSettings {
    JobSettings { restore: Some(path), ..settings }
}

#[test]
fn the_answer_depends_on_neither_workers_nor_epochs() {
    let lines = changes(0, 120);
    for workers in [1, 2, 3] {
        for epoch_rows_max in [1, 2, 7, 64, 10_000] {
            let sink = Arc::new(KeepingSink::new());
            let source = fed(&lines, true);
            let settings = JobSettings { epoch_rows_max, ..settings(workers) };
            run(async { start(&source, &sink, settings).await.unwrap().finished().await }).unwrap();
            assert_eq!(
                fold(&sink.lines()),
                expected(&lines),
                "{workers} workers, epochs of {epoch_rows_max}"
            );
        }
    }
}

#[test]
fn a_job_goes_on_from_a_savepoint_with_another_number_of_workers() {
    let (first, second) = (changes(0, 60), changes(60, 120));
    for (before, after) in [(1, 3), (3, 1), (2, 3)] {
        let folder = tempfile::tempdir().unwrap();
        let sink = Arc::new(KeepingSink::new());
        let source = fed(&first, false);
        run(async {
            let job = start(&source, &sink, checkpointed(before, folder.path(), false)).await.unwrap();
            sink.wait_for_rows(1).await;
            let mode = StopMode::Savepoint { folder: folder.path().join("save"), drain: false };
            let path = job.stop(mode).await.unwrap().unwrap();
            assert!(path.starts_with(folder.path().join("save")), "{}", path.display());
            assert_eq!(job.status(), JobStatus::Finished);
            feed(&source, &second);
            let settings = from(checkpointed(after, folder.path(), false), path);
            let job = start(&source, &sink, settings).await.unwrap();
            source.wait_until_read().await;
            job.stop(StopMode::Finish).await.unwrap();
        });
        let all = [first.clone(), second.clone()].concat();
        assert_eq!(fold(&sink.lines()), expected(&all), "{before} workers, then {after}");
    }
}

#[test]
fn after_an_outage_a_job_goes_on_from_its_last_checkpoint_and_writes_everything_once() {
    let lines = changes(0, 200);
    let restart = RestartStrategy::FixedDelay { attempts: 3, delay: Duration::ZERO };
    for workers in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let sink = Arc::new(KeepingSink::new());
        let source = ScriptedSource::new(Vec::new(), false, ChangelogMode::ALL);
        run(async {
            let settings =
                JobSettings { restart: restart.clone(), ..checkpointed(workers, folder.path(), true) };
            let job = start(&source, &sink, settings).await.unwrap();
            for (number, part) in lines.chunks(60).enumerate() {
                feed(&source, part);
                sink.wait_for_commits(3 * (number + 1)).await;
                if number < 3 {
                    source.feed(Step::Outage);
                }
            }
            source.wait_until_read().await;
            let path = job.stop(StopMode::Finish).await.unwrap().unwrap();
            assert!(path.join("_metadata").exists());
            assert_eq!((job.status(), job.metrics().restart_count), (JobStatus::Canceled, 3));
            assert!(job.metrics().last_checkpoint_bytes.unwrap() > 0);
        });
        assert_eq!(fold(&sink.lines()), expected(&lines), "{workers} workers");
        // Nothing was released before it was committed.
        let released: Vec<usize> = source.released().iter().map(|at| at.parse().unwrap()).collect();
        assert!(released.is_sorted(), "{released:?}");
    }
}

#[test]
fn a_commit_that_landed_but_was_reported_failed_is_repeated_without_effect() {
    let lines = changes(0, 50);
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(KeepingSink::new().losing_commits(1));
    let source = fed(&lines, true);
    let restart = RestartStrategy::FixedDelay { attempts: 1, delay: Duration::ZERO };
    let settings = JobSettings { restart, ..checkpointed(2, folder.path(), true) };
    let job = run(async {
        let job = start(&source, &sink, settings).await.unwrap();
        job.finished().await.unwrap();
        job
    });
    assert_eq!((job.status(), job.metrics().restart_count), (JobStatus::Finished, 1));
    assert_eq!(fold(&sink.lines()), expected(&lines));
}

#[test]
fn what_failed_checkpoints_hold_is_in_the_next_one() {
    let lines = changes(0, 120);
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(KeepingSink::new());
    let source = ScriptedSource::new(Vec::new(), false, ChangelogMode::ALL);
    let mut settings = checkpointed(1, folder.path(), true);
    settings.checkpoints.as_mut().unwrap().tolerable_failures = u32::MAX;
    let job_folder = folder.path().join("job").join(format!("{:032x}", settings.id));
    run(async {
        let job = start(&source, &sink, settings).await.unwrap();
        feed(&source, &lines[..40]);
        sink.wait_for_commits(2).await;
        // Folders in the way of their manifests fail some checkpoints that come soon.
        let blocked = job.metrics().last_checkpoint.unwrap() + 20;
        let blocked = blocked..blocked + 20;
        let in_the_way = |number| job_folder.join(format!("chk-{number}")).join("_metadata.tmp");
        blocked.clone().for_each(|number| std::fs::create_dir_all(in_the_way(number)).unwrap());
        for line in &lines[40..] {
            feed(&source, std::slice::from_ref(line));
            sink.wait_for_prepared(1).await;
        }
        let commits = sink.commits();
        assert!(commits.last().unwrap() > &blocked.end);
        let committed = commits.iter().filter(|number| blocked.contains(number)).count();
        assert!(committed < 10, "{committed} of 20 checkpoints that cannot be written were committed");
        blocked.for_each(|number| std::fs::remove_dir_all(in_the_way(number)).unwrap());
        source.wait_until_read().await;
        let path = job.stop(StopMode::Finish).await.unwrap().unwrap();
        assert_eq!(job.metrics().restart_count, 0);
        assert_eq!(fold(&sink.lines()), expected(&lines));
        // The state is whole, too.
        let settings = from(checkpointed(2, folder.path(), true), path);
        let job = start(&source, &sink, settings).await.unwrap();
        feed(&source, &changes(120, 150));
        source.wait_until_read().await;
        job.stop(StopMode::Finish).await.unwrap();
    });
    assert_eq!(fold(&sink.lines()), expected(&[lines, changes(120, 150)].concat()));
}

#[test]
fn a_job_does_not_go_on_where_another_place_has_come_for_that_of_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(KeepingSink::new());
    let source = fed(&changes(0, 20), false);
    run(async {
        let job = start(&source, &sink, checkpointed(1, folder.path(), false)).await.unwrap();
        sink.wait_for_rows(1).await;
        let mode = StopMode::Savepoint { folder: folder.path().join("save"), drain: false };
        // It holds nothing that is still to be committed.
        let path = job.stop(mode).await.unwrap().unwrap();
        let goes_on = from(checkpointed(1, folder.path(), false), path);
        let job = start(&source, &sink, goes_on.clone()).await.unwrap();
        job.stop(StopMode::Cancel).await.unwrap();
        sink.replace();
        let error = start(&source, &sink, goes_on).await.err().unwrap();
        assert!(error.message().starts_with("not the place of checkpoint "), "{error}");
    });
}

#[test]
fn a_job_whose_sink_has_later_commits_than_its_folder_goes_on_under_a_new_number() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(KeepingSink::new());
    let source = fed(&changes(0, 20), false);
    run(async {
        let job = start(&source, &sink, checkpointed(1, folder.path(), true)).await.unwrap();
        sink.wait_for_commits(2).await;
        let mut newest = job.stop(StopMode::Finish).await.unwrap().unwrap();
        for (later, expected) in [(0, 7), (1_000_000, 8)] {
            sink.claim_commit(later);
            let settings = checkpointed(1, folder.path(), true);
            let settings = JobSettings { id: 8, resume: JobResume::Latest, ..settings };
            let job = start(&source, &sink, settings).await.unwrap();
            assert_eq!(job.id(), expected);
            assert_eq!(*job.origin(), JobOrigin::Checkpoint(newest));
            newest = job.stop(StopMode::Finish).await.unwrap().unwrap();
        }
    });
}

#[test]
fn what_a_run_has_left_is_removed_only_if_its_folder_is_locked() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sink = Arc::new(KeepingSink::new());
    let source = fed(&changes(0, 20), false);
    run(async {
        let job = start(&source, &sink, checkpointed(1, folder.path(), true)).await.unwrap();
        sink.wait_for_commits(2).await;
        let path = job.stop(StopMode::Finish).await.unwrap().unwrap();
        for (place, is_locked) in [(&other, false), (&folder, true)] {
            let settings = JobSettings { id: 8, ..checkpointed(1, place.path(), false) };
            let job = start(&source, &sink, from(settings, path.clone())).await.unwrap();
            // By its name it could be the one that wrote the checkpoint.
            assert_eq!(job.name(), "job");
            let discarded = std::mem::take(&mut *sink.discarded.lock().unwrap());
            assert_eq!(discarded.iter().any(|id| id.starts_with(&format!("{:032x}/", 7))), is_locked);
            job.stop(StopMode::Cancel).await.unwrap();
            sink.discarded.lock().unwrap().clear();
        }
    });
}

#[test]
fn a_job_that_ends_leaves_no_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let sink = Arc::new(KeepingSink::new());
    let source = fed(&changes(0, 20), true);
    let settings = checkpointed(2, folder.path(), true);
    run(async { start(&source, &sink, settings).await.unwrap().finished().await }).unwrap();
    let left = walk(folder.path());
    assert!(left.iter().all(|path| !path.ends_with("_metadata")), "{left:?}");
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        found.push(entry.path());
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        }
    }
    found
}

#[test]
fn a_savepoint_that_cannot_be_written_is_refused_and_the_job_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    let sink = Arc::new(KeepingSink::new());
    let source = ScriptedSource::new(Vec::new(), false, ChangelogMode::ALL);
    run(async {
        let job = start(&source, &sink, settings(1)).await.unwrap();
        let mode = StopMode::Savepoint { folder: in_the_way.join("save"), drain: false };
        let error = job.stop(mode).await.unwrap_err();
        assert!(error.message().contains(&in_the_way.display().to_string()), "{error}");
        assert_eq!(job.status(), JobStatus::Running);
        feed(&source, &changes(0, 3));
        sink.wait_for_rows(1).await;
        job.stop(StopMode::Cancel).await.unwrap();
    });
}

#[test]
fn state_beyond_the_budget_fails_the_job_and_names_the_largest() {
    let sink = Arc::new(KeepingSink::new());
    let source = fed(&changes(0, 100), false);
    let settings = JobSettings { memory_budget: 100, ..settings(2) };
    let error = run(async { start(&source, &sink, settings).await?.finished().await }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.message().contains("GroupAggregate has "), "{error}");
    assert!(error.hint_text().unwrap().contains("lakehead.state.memory-budget"));
}

#[test]
fn a_savepoint_that_is_asked_for_while_the_job_ends_is_there_or_is_not_promised() {
    let folder = tempfile::tempdir().unwrap();
    // The last checkpoint waits for the sink.
    let sink = Arc::new(KeepingSink::new().closed());
    let source = fed(&changes(0, 20), true);
    let mut settings = checkpointed(2, folder.path(), true);
    settings.checkpoints.iter_mut().for_each(|checkpoints| checkpoints.interval = Some(Duration::MAX / 4));
    run(async {
        let job = start(&source, &sink, settings).await.unwrap();
        sink.blocked.notified().await;
        let mode = StopMode::Savepoint { folder: folder.path().join("save"), drain: false };
        let (path, ()) = tokio::join!(job.stop(mode), async { sink.open_gate() });
        let path = path.unwrap();
        assert!(path.as_ref().is_none_or(|path| path.join("_metadata").exists()), "{path:?}");
        assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
    });
    assert_eq!(fold(&sink.lines()), expected(&changes(0, 20)));
}
