//! Whole jobs over graphs built by hand.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::testing::*;
use super::{JobHandle, JobSettings, JobStatus, RestartStrategy, StopMode};
use crate::changelog::ChangelogMode;
use crate::error::{ErrorKind, Result};
use crate::plan::{Distribution, OperatorSpec};
use crate::runtime::operator::testing::lines;

/// Lines of rows that change: key, version.
fn changes(count: usize) -> Vec<String> {
    let line = |at: usize| match at % 3 {
        0 => format!("+I {} {at}", at / 3),
        1 => format!("-U {} {}", at / 3, at - 1),
        _ => format!("+U {} {at}", at / 3),
    };
    (0..count).map(line).collect()
}

/// Cuts lines into steps of a few rows each.
fn steps(lines: &[String], sizes: &[usize]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = lines;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*size).min(rest.len()));
        steps.push(rows(now));
        rest = later;
    }
    steps
}

/// Runs source → union → sink to its end.
async fn copy(
    source: &Arc<ScriptedSource>,
    sink: &Arc<KeepingSink>,
    settings: JobSettings,
) -> Result<JobStatus> {
    start_copy(source, sink, settings).await?.finished().await
}

#[test]
fn rows_that_change_reach_a_sink_in_the_order_of_the_input() {
    let lines = changes(300);
    for workers in [1, 2, 3] {
        for epoch_rows_max in [1, 2, 7, 64, 1_000] {
            let sink = Arc::new(KeepingSink::new());
            let source = ScriptedSource::new(steps(&lines, &[1, 5, 17, 2]), true, ChangelogMode::ALL);
            let settings = JobSettings { epoch_rows_max, ..settings(workers) };
            assert_eq!(run(copy(&source, &sink, settings)).unwrap(), JobStatus::Finished);
            assert_eq!(sink.lines(), lines, "{workers} workers, epochs of {epoch_rows_max}");
        }
    }
}

#[test]
fn a_sink_with_a_key_gets_the_changes_of_each_key_in_order_from_one_worker() {
    let lines = changes(300);
    for workers in [2, 3] {
        let sink = Arc::new(KeepingSink::new());
        let source = ScriptedSource::new(steps(&lines, &[3, 1, 20]), true, ChangelogMode::ALL);
        let mut graph = GraphBuilder::default();
        let read = graph.source(&source);
        graph.sink(&sink, &[0], read);
        run(async { JobHandle::start(graph.0, settings(workers), output()).await.unwrap().finished().await })
            .unwrap();
        let written = sink.by_writer();
        assert_eq!(written.len(), lines.len());
        let key = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
        for number in 0..100 {
            let number = number.to_string();
            let of_key: Vec<_> = written.iter().filter(|(_, line)| key(line) == number).collect();
            assert!(of_key.iter().all(|(writer, _)| *writer == of_key[0].0));
            let expected: Vec<_> = lines.iter().filter(|line| key(line) == number).collect();
            assert_eq!(of_key.iter().map(|(_, line)| line).collect::<Vec<_>>(), expected);
        }
        let writers: std::collections::BTreeSet<_> = written.iter().map(|(writer, _)| *writer).collect();
        assert_eq!(writers.len(), workers, "all workers have a share");
    }
}

#[test]
fn rows_go_through_several_exchanges_in_order_whatever_the_number_of_workers() {
    let lines = changes(200);
    let through = |workers: usize| {
        let sink = Arc::new(KeepingSink::new());
        let source = ScriptedSource::new(steps(&lines, &[4, 9]), true, ChangelogMode::ALL);
        let mut graph = GraphBuilder::default();
        let read = graph.source(&source);
        let by_key = graph.node(OperatorSpec::Union, &[(read, Distribution::Hash(vec![0]))]);
        let by_value = graph.node(OperatorSpec::Union, &[(by_key, Distribution::Hash(vec![1]))]);
        let first = graph.node(OperatorSpec::Union, &[(by_value, Distribution::Singleton)]);
        graph.sink(&sink, &[], first);
        run(async { JobHandle::start(graph.0, settings(workers), output()).await.unwrap().finished().await })
            .unwrap();
        let mut lines = sink.lines();
        // Rows of one chunk come from different workers; what is kept is the order of chunks.
        lines.sort_by_key(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap());
        lines
    };
    let alone = through(1);
    assert_eq!(alone.len(), 200);
    for workers in [2, 3] {
        let mut sorted = (alone.clone(), through(workers));
        sorted.0.sort();
        sorted.1.sort();
        assert_eq!(sorted.0, sorted.1, "{workers}");
    }
}

#[test]
fn a_source_that_two_read_is_read_once() {
    let lines = changes(30);
    let sinks = [Arc::new(KeepingSink::new()), Arc::new(KeepingSink::new())];
    let source = ScriptedSource::new(steps(&lines, &[10]), true, ChangelogMode::ALL);
    let mut graph = GraphBuilder::default();
    let read = graph.source(&source);
    for sink in &sinks {
        graph.sink(sink, &[], read);
    }
    run(async { JobHandle::start(graph.0, settings(2), output()).await.unwrap().finished().await }).unwrap();
    assert_eq!(source.read_count(), 3);
    for sink in &sinks {
        assert_eq!(sink.lines(), lines);
    }
}

#[test]
fn a_record_that_cannot_be_decoded_fails_the_job_and_nothing_is_committed() {
    for (step, kind, message) in [
        (Step::BadFrame, ErrorKind::Data, "a bad record"),
        (Step::Panic, ErrorKind::Internal, "a worker panicked: a decoder that cannot cope"),
    ] {
        for workers in [1, 3] {
            let sink = Arc::new(KeepingSink::new());
            let mut script = steps(&changes(60), &[6]);
            script.insert(7, step.clone());
            let source = ScriptedSource::new(script, false, ChangelogMode::ALL);
            let error = run(copy(&source, &sink, settings(workers))).unwrap_err();
            assert_eq!((error.kind(), error.message()), (kind, message));
            assert!(sink.commits().is_empty());
        }
    }
}

#[test]
fn a_sink_that_fails_says_why() {
    for workers in [1, 3] {
        let sink = Arc::new(KeepingSink::new().failing_at(40));
        let source = ScriptedSource::new(steps(&changes(6_000), &[6]), false, ChangelogMode::ALL);
        let error = run(copy(&source, &sink, settings(workers))).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Rejected, "the sink is full"));
    }
}

#[test]
fn a_slow_sink_holds_the_source_back() {
    const FRAMES: usize = 400;
    let sink = Arc::new(KeepingSink::new().closed());
    let script = (0..FRAMES).map(|_| Step::Bytes(1 << 20)).collect();
    let source = ScriptedSource::new(script, true, ChangelogMode::INSERT_ONLY);
    run(async {
        let job = start_copy(&source, &sink, settings(2)).await.unwrap();
        sink.blocked.notified().await;
        // All queues fill up, and then the source stands still.
        let read = || source.read_count();
        let (mut before, mut unchanged) = (0, 0);
        while unchanged < 100_000 {
            unchanged = if read() == before { unchanged + 1 } else { 0 };
            before = read();
            tokio::task::yield_now().await;
        }
        assert!(before < FRAMES / 2, "{before} frames of a megabyte were read ahead");
        sink.open_gate();
        job.finished().await.unwrap();
        let blocked = job.metrics().operators[2].back_pressured;
        assert!(blocked > Duration::ZERO);
    });
    assert_eq!(sink.lines().len(), FRAMES);
}

#[test]
fn a_job_can_be_cancelled_while_its_sink_is_stuck() {
    let sink = Arc::new(KeepingSink::new().closed());
    let script = (0..400).map(|_| Step::Bytes(1 << 20)).collect();
    let source = ScriptedSource::new(script, false, ChangelogMode::INSERT_ONLY);
    run(async {
        let job = start_copy(&source, &sink, settings(2)).await.unwrap();
        sink.blocked.notified().await;
        assert_eq!(job.stop(StopMode::Cancel).await.unwrap(), None);
        assert_eq!(job.finished().await.unwrap(), JobStatus::Canceled);
        assert_eq!(job.stop(StopMode::Cancel).await.unwrap(), None);
    });
    assert!(sink.commits().is_empty());
}

#[test]
fn a_job_that_is_asked_to_finish_commits_what_it_has_read() {
    let lines = changes(30);
    let sink = Arc::new(KeepingSink::new());
    let source = ScriptedSource::new(steps(&lines, &[5]), false, ChangelogMode::ALL);
    run(async {
        let job = start_copy(&source, &sink, settings(2)).await.unwrap();
        sink.wait_for_rows(30).await;
        assert!(sink.commits().is_empty());
        job.stop(StopMode::Finish).await.unwrap();
        assert_eq!(job.status(), JobStatus::Canceled);
    });
    assert_eq!(sink.lines(), lines);
    assert_eq!(source.released(), ["6"]);
}

#[test]
fn a_row_goes_through_by_itself() {
    let sink = Arc::new(KeepingSink::new());
    let source = ScriptedSource::new(Vec::new(), false, ChangelogMode::INSERT_ONLY);
    let idle = ScriptedSource::new(Vec::new(), false, ChangelogMode::INSERT_ONLY);
    let mut graph = GraphBuilder::default();
    let inputs = [graph.source(&source), graph.source(&idle)];
    let union = graph.node(OperatorSpec::Union, &inputs.map(|input| (input, Distribution::Hash(vec![0]))));
    graph.sink(&sink, &[], union);
    run(async {
        let job = JobHandle::start(graph.0, settings(2), output()).await.unwrap();
        for number in 0..200 {
            source.feed(rows(&[format!("+I {number} 0")]));
            sink.wait_for_rows(number + 1).await;
        }
        job.stop(StopMode::Cancel).await.unwrap();
    });
}

/// Starts source → operator → collect.
async fn start_query(
    source: &Arc<ScriptedSource>,
    spec: OperatorSpec,
    settings: JobSettings,
) -> (JobHandle, futures::stream::BoxStream<'static, Result<crate::changelog::ChangelogBatch>>) {
    let mut graph = GraphBuilder::default();
    let read = graph.source(source);
    let operator = graph.node(spec, &[(read, Distribution::Singleton)]);
    graph.node(OperatorSpec::Collect, &[(operator, Distribution::Forward)]);
    JobHandle::start_collect(graph.0, settings, output()).await.unwrap()
}

#[test]
fn a_query_ends_when_its_stream_is_dropped() {
    let source = ScriptedSource::new(steps(&changes(30), &[5]), false, ChangelogMode::ALL);
    for is_per_record in [true, false] {
        run(async {
            let settings = JobSettings { is_per_record, ..settings(1) };
            let (job, mut stream) = start_query(&source, OperatorSpec::Union, settings).await;
            assert!(stream.next().await.unwrap().unwrap().row_count() > 0);
            drop(stream);
            assert_eq!(job.finished().await.unwrap(), JobStatus::Canceled);
        });
    }
}

#[test]
fn a_query_can_be_cancelled_while_nobody_reads() {
    let source = ScriptedSource::new(steps(&changes(60_000), &[2_000]), false, ChangelogMode::ALL);
    run(async {
        let (job, stream) = start_query(&source, OperatorSpec::Union, settings(1)).await;
        job.stop(StopMode::Cancel).await.unwrap();
        assert_eq!(job.status(), JobStatus::Canceled);
        drop(stream);
    });
}

#[test]
fn a_query_shows_all_rows_one_by_one_and_the_rows_before_an_error() {
    let mut script = steps(&changes(30), &[7, 1]);
    script.push(Step::BadFrame);
    let source = ScriptedSource::new(script, false, ChangelogMode::ALL);
    run(async {
        let settings = JobSettings { is_per_record: true, ..settings(1) };
        let (job, mut stream) = start_query(&source, OperatorSpec::Union, settings).await;
        let mut seen = Vec::new();
        let error = loop {
            match stream.next().await.unwrap() {
                Ok(batch) => seen.extend(lines(&batch)),
                Err(error) => break error,
            }
        };
        assert_eq!(seen, changes(30));
        assert_eq!(error.message(), "a bad record");
        assert!(stream.next().await.is_none());
        assert_eq!(job.finished().await.unwrap_err().message(), "a bad record");
        assert_eq!(job.metrics().operators[1].rows_in, 0, "a failed epoch is not counted");
    });
}

#[test]
fn a_limit_ends_a_job_whose_source_goes_on() {
    for (workers, is_per_record) in [(1, true), (1, false), (3, false)] {
        let inserts: Vec<String> = (0..300).map(|at| format!("+I {} {at}", at / 3)).collect();
        let source = ScriptedSource::new(steps(&inserts, &[7]), false, ChangelogMode::INSERT_ONLY);
        run(async {
            let settings = JobSettings { is_per_record, ..settings(workers) };
            let limit = OperatorSpec::Limit { skip: 3, fetch: Some(20) };
            let (job, stream) = start_query(&source, limit, settings).await;
            let batches: Vec<_> = stream.map(|batch| lines(&batch.unwrap())).collect().await;
            assert_eq!(batches.concat(), inserts[3..23]);
            assert_eq!(job.finished().await.unwrap(), JobStatus::Finished);
        });
    }
}

#[test]
fn constant_rows_come_once_and_end() {
    use datafusion::prelude::lit;
    for (workers, is_per_record) in [(1, true), (3, false)] {
        let mut graph = GraphBuilder::default();
        let values =
            OperatorSpec::Values { rows: vec![vec![lit(1_i64), lit(2_i64)], vec![lit(3_i64), lit(4_i64)]] };
        let values = graph.node(values, &[]);
        graph.node(OperatorSpec::Collect, &[(values, Distribution::Forward)]);
        run(async {
            let settings = JobSettings { is_per_record, ..settings(workers) };
            let (_job, stream) = JobHandle::start_collect(graph.0, settings, output()).await.unwrap();
            let batches: Vec<_> = stream.map(|batch| lines(&batch.unwrap())).collect().await;
            assert_eq!(batches.concat(), ["+I 1 2", "+I 3 4"]);
        });
    }
}

#[test]
fn a_job_starts_again_after_an_outage_unless_it_has_written() {
    let lines = changes(30);
    let mut script = steps(&lines, &[5]);
    script.insert(3, Step::Outage);
    let fixed = RestartStrategy::FixedDelay { attempts: 1, delay: Duration::ZERO };
    let restarting = JobSettings { restart: fixed, ..settings(2) };
    for (settings, works) in [(restarting, true), (settings(2), false)] {
        let sink = Arc::new(KeepingSink::new());
        let source = ScriptedSource::new(script.clone(), true, ChangelogMode::ALL);
        let ended = run(copy(&source, &sink, settings));
        if works {
            assert_eq!(ended.unwrap(), JobStatus::Finished);
            assert_eq!(sink.lines(), lines);
        } else {
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::Unavailable);
        }
    }
}

#[test]
fn what_comes_of_one_frame_on_two_ways_stays_in_order_through_exchanges() {
    let frames = |at: usize| rows(&[format!("-U {} {at}", at % 7), format!("+U {} {at}", at % 7)]);
    for workers in [1, 2, 3] {
        let sink = Arc::new(KeepingSink::new());
        let source = ScriptedSource::new((0..200).map(frames).collect(), true, ChangelogMode::ALL);
        let mut graph = GraphBuilder::default();
        let read = graph.source(&source);
        let later = graph.node(OperatorSpec::DropUpdateBefore, &[(read, Distribution::Forward)]);
        let by_key = || Distribution::Hash(vec![0]);
        let both = graph.node(OperatorSpec::Union, &[(later, by_key()), (read, by_key())]);
        let by_value = graph.node(OperatorSpec::Union, &[(both, Distribution::Hash(vec![1]))]);
        graph.sink(&sink, &[1], by_value);
        // All frames make one epoch.
        let settings = JobSettings { epoch_wait: Duration::from_secs(30), ..settings(workers) };
        run(async { JobHandle::start(graph.0, settings, output()).await.unwrap().finished().await }).unwrap();
        let mut of_value = vec![String::new(); 200];
        for line in sink.lines() {
            let (kind, row) = line.split_once(' ').unwrap();
            let value: usize = row.split(' ').nth(1).unwrap().parse().unwrap();
            of_value[value].push_str(kind);
        }
        assert!(of_value.iter().all(|kinds| kinds == "+U-U+U"), "{workers} workers: {of_value:?}");
    }
}
