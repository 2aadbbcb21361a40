//! Failures of jobs: what is tried again, how often, and what never is.

use std::sync::Arc;
use std::time::Duration;

use super::testing::*;
use super::{JobSettings, JobStatus, RestartStrategy, StopMode};
use crate::changelog::ChangelogMode;
use crate::error::ErrorKind;

const LONG: Duration = Duration::from_secs(3_600);

/// Rows with outages of the source between them.
fn script(outages: usize) -> Vec<Step> {
    let mut steps = vec![rows(&["+I 1 1"])];
    for outage in 0..outages {
        steps.push(Step::Outage);
        steps.push(rows(&[format!("+I 2 {outage}")]));
    }
    steps
}

fn expected(outages: usize) -> Vec<String> {
    let later = (0..outages).map(|outage| format!("+I 2 {outage}"));
    std::iter::once("+I 1 1".to_owned()).chain(later).collect()
}

fn exponential(attempts: Option<u32>) -> RestartStrategy {
    RestartStrategy::ExponentialDelay {
        initial: Duration::from_micros(10),
        max: Duration::from_micros(100),
        multiplier: 2.0,
        reset_after: LONG,
        jitter: 0.1,
        attempts,
    }
}

#[test]
fn an_outage_is_met_with_as_many_restarts_as_the_strategy_allows() {
    let strategies = [
        (RestartStrategy::None, Some(0)),
        (RestartStrategy::FixedDelay { attempts: 2, delay: Duration::ZERO }, Some(2)),
        (RestartStrategy::FailureRate { failures_max: 3, interval: LONG, delay: Duration::ZERO }, Some(3)),
        (exponential(Some(4)), Some(4)),
        (exponential(None), None),
    ];
    for (strategy, allowed) in strategies {
        for outages in [0, 1, 2, 3, 4, 5, 12] {
            let sink = Arc::new(KeepingSink::new());
            let source = ScriptedSource::new(script(outages), true, ChangelogMode::INSERT_ONLY);
            let settings = JobSettings { restart: strategy.clone(), ..settings(1) };
            let (ended, job) = run(async {
                let job = start_copy(&source, &sink, settings).await.unwrap();
                (job.finished().await, job)
            });
            let place = format!("{outages} outages with {strategy:?}");
            let restarts = job.metrics().restart_count as usize;
            if allowed.is_none_or(|allowed| outages <= allowed) {
                assert_eq!((ended.unwrap(), restarts), (JobStatus::Finished, outages), "{place}");
                assert_eq!(sink.lines(), expected(outages), "{place}");
            } else {
                let error = ended.unwrap_err();
                assert_eq!(
                    (error.kind(), error.message()),
                    (ErrorKind::Unavailable, "the outside is gone"),
                    "{place}"
                );
                assert_eq!((job.status(), restarts), (JobStatus::Failed, allowed.unwrap()), "{place}");
                assert!(sink.lines().is_empty(), "{place}: what was not committed is not there");
            }
        }
    }
}

#[test]
fn failures_within_an_interval_count_and_older_ones_do_not() {
    let source = ScriptedSource::new(script(4), true, ChangelogMode::INSERT_ONLY);
    let sink = Arc::new(KeepingSink::new());
    // Each failure is older than the interval by the time the next one comes.
    let restart = RestartStrategy::FailureRate {
        failures_max: 1,
        interval: Duration::ZERO,
        delay: Duration::from_millis(2),
    };
    let settings = JobSettings { restart, ..settings(1) };
    run(async { start_copy(&source, &sink, settings).await.unwrap().finished().await }).unwrap();
    assert_eq!(sink.lines(), expected(4));
}

#[test]
fn a_failure_that_would_come_again_ends_the_job_at_once() {
    let restart = RestartStrategy::FixedDelay { attempts: u32::MAX, delay: LONG };
    let cases = [(Step::BadFrame, usize::MAX, "a bad record"), (rows(&["+I 2 2"]), 1, "the sink is full")];
    for (step, room, message) in cases {
        for workers in [1, 2] {
            let folder = tempfile::tempdir().unwrap();
            let steps = vec![rows(&["+I 1 1"]), step.clone(), rows(&["+I 3 3"])];
            let source = ScriptedSource::new(steps, false, ChangelogMode::INSERT_ONLY);
            let sink = Arc::new(KeepingSink::new().failing_at(room));
            let settings =
                JobSettings { restart: restart.clone(), ..checkpointed(workers, folder.path(), false) };
            let (error, job) = run(async {
                let job = start_copy(&source, &sink, settings).await.unwrap();
                (job.finished().await.unwrap_err(), job)
            });
            assert_eq!(error.message(), message);
            assert_eq!((job.status(), job.metrics().restart_count), (JobStatus::Failed, 0));
            assert!(source.read_count() <= 3, "nothing is read twice");
            assert!(sink.lines().is_empty(), "what was not committed is not there");
        }
    }
}

#[test]
fn a_job_is_not_started_again_once_it_has_committed_what_no_checkpoint_covers() {
    let restart = RestartStrategy::FixedDelay { attempts: 5, delay: Duration::ZERO };
    let folder = tempfile::tempdir().unwrap();
    // With a folder for savepoints, but without an interval.
    let with_folder = checkpointed(1, folder.path(), false);
    for settings in [settings(1), with_folder] {
        let source = ScriptedSource::new(script(0), true, ChangelogMode::INSERT_ONLY);
        let sink = Arc::new(KeepingSink::new().losing_commits(1));
        let settings = JobSettings { restart: restart.clone(), ..settings };
        let (error, job) = run(async {
            let job = start_copy(&source, &sink, settings).await.unwrap();
            (job.finished().await.unwrap_err(), job)
        });
        assert_eq!(error.message(), "the answer to a commit was lost");
        assert!(error.hint_text().unwrap().contains("has written what no checkpoint covers"));
        assert_eq!((job.status(), job.metrics().restart_count), (JobStatus::Failed, 0));
        assert_eq!(sink.lines(), expected(0), "what has landed is there once");
    }
}

#[test]
fn a_job_that_waits_for_its_restart_can_be_stopped() {
    let restart = RestartStrategy::FixedDelay { attempts: 1, delay: LONG };
    for mode in [StopMode::Cancel, StopMode::Finish] {
        let source = ScriptedSource::new(script(1), false, ChangelogMode::INSERT_ONLY);
        let sink = Arc::new(KeepingSink::new());
        let settings = JobSettings { restart: restart.clone(), ..settings(1) };
        run(async {
            let job = start_copy(&source, &sink, settings).await.unwrap();
            while job.status() != JobStatus::Restarting {
                tokio::task::yield_now().await;
            }
            let reason = job.metrics().last_failure.unwrap();
            if mode == StopMode::Cancel {
                job.stop(mode).await.unwrap();
                assert_eq!(job.finished().await.unwrap(), JobStatus::Canceled);
            } else {
                // What it had read is not written, and that is no success.
                assert_eq!(job.stop(mode).await.unwrap_err().to_string(), reason);
                assert_eq!(job.finished().await.unwrap_err().to_string(), reason);
                assert_eq!(job.status(), JobStatus::Failed);
            }
        });
        assert!(sink.lines().is_empty());
    }
}

#[test]
fn a_savepoint_is_refused_while_a_job_waits_for_its_restart() {
    let restart = RestartStrategy::FixedDelay { attempts: 1, delay: LONG };
    let folder = tempfile::tempdir().unwrap();
    let source = ScriptedSource::new(script(1), false, ChangelogMode::INSERT_ONLY);
    let settings = JobSettings { restart, ..settings(1) };
    run(async {
        let job = start_copy(&source, &Arc::new(KeepingSink::new()), settings).await.unwrap();
        while job.status() != JobStatus::Restarting {
            tokio::task::yield_now().await;
        }
        let mode = StopMode::Savepoint { folder: folder.path().join("save"), drain: false };
        let error = job.stop(mode).await.unwrap_err();
        assert!(error.message().contains("no state to save"), "{error}");
        assert_eq!(job.status(), JobStatus::Restarting, "the job is left alone");
        job.stop(StopMode::Cancel).await.unwrap();
    });
}

#[test]
fn a_failure_during_a_savepoint_refuses_it_and_one_during_a_stop_ends_the_job() {
    for with_savepoint in [true, false] {
        let restart = RestartStrategy::FixedDelay { attempts: 1, delay: LONG };
        let folder = tempfile::tempdir().unwrap();
        let source = ScriptedSource::new(vec![rows(&["+I 1 1"])], false, ChangelogMode::INSERT_ONLY);
        // What was read cannot be written, so that the savepoint waits.
        let sink = Arc::new(KeepingSink::new().closed());
        let settings = JobSettings { restart, ..settings(1) };
        run(async {
            let job = start_copy(&source, &sink, settings).await.unwrap();
            sink.blocked.notified().await;
            let savepoint = StopMode::Savepoint { folder: folder.path().join("save"), drain: false };
            let mode = if with_savepoint { savepoint } else { StopMode::Finish };
            let (stopped, ()) = tokio::join!(job.stop(mode), async { source.feed(Step::Outage) });
            assert_eq!(stopped.unwrap_err().message(), "the outside is gone");
            if with_savepoint {
                assert!(!job.status().is_final(), "the job starts again");
                job.stop(StopMode::Cancel).await.unwrap();
            } else {
                assert!(job.finished().await.is_err());
                assert_eq!((job.status(), job.metrics().restart_count), (JobStatus::Failed, 0));
            }
        });
    }
}
