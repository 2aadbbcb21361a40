//! Jobs that are asked to stop more than once, in several ways, or before they run.

use std::path::Path;
use std::sync::Arc;

use super::testing::*;
use super::{JobHandle, JobStatus, StopMode};
use crate::changelog::ChangelogMode;
use crate::error::Result;

/// Starts a job that makes checkpoints only when asked for, and has written a row.
async fn started(folder: &Path, sink: &Arc<KeepingSink>) -> JobHandle {
    let source = ScriptedSource::new(vec![rows(&["+I 1 1"])], false, ChangelogMode::INSERT_ONLY);
    let job = start_copy(&source, sink, checkpointed(1, folder, false)).await.unwrap();
    sink.wait_for_rows(1).await;
    job
}

fn savepoint(folder: &Path) -> StopMode {
    StopMode::Savepoint { folder: folder.join("savepoints"), drain: false }
}

#[test]
fn who_wants_the_end_gets_it_where_there_is_no_savepoint() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let sink = Arc::new(KeepingSink::new());
        let job = started(folder.path(), &sink).await;
        // A file is where savepoints should go.
        std::fs::write(folder.path().join("savepoints"), "").unwrap();
        let (saved, finished) = tokio::join!(job.stop(savepoint(folder.path())), job.stop(StopMode::Finish));
        assert!(saved.unwrap_err().message().contains("savepoints"));
        let checkpoint = finished.unwrap().unwrap();
        assert!(checkpoint.file_name().unwrap().to_string_lossy().starts_with("chk-"), "{checkpoint:?}");
        assert_eq!(job.status(), JobStatus::Canceled);
        assert_eq!(sink.lines(), ["+I 1 1"]);
    });
}

#[test]
fn a_savepoint_of_a_job_that_is_being_stopped_is_refused_and_not_another_checkpoint() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let sink = Arc::new(KeepingSink::new());
        let job = started(folder.path(), &sink).await;
        let (finished, saved) = tokio::join!(job.stop(StopMode::Finish), job.stop(savepoint(folder.path())));
        assert!(saved.unwrap_err().message().contains("is being stopped already"));
        finished.unwrap();
        assert_eq!((job.status(), sink.lines()), (JobStatus::Canceled, vec!["+I 1 1".to_owned()]));
    });
}

#[test]
fn all_who_ask_for_one_savepoint_get_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let sink = Arc::new(KeepingSink::new());
        let job = started(folder.path(), &sink).await;
        let (first, second, end) = tokio::join!(
            job.stop(savepoint(folder.path())),
            job.stop(savepoint(folder.path())),
            job.stop(StopMode::Finish)
        );
        let path = first.unwrap();
        assert!(
            path.as_ref().is_some_and(|path| path.starts_with(folder.path().join("savepoints"))),
            "{path:?}"
        );
        assert_eq!((second.unwrap(), end.unwrap()), (path.clone(), path));
    });
}

#[test]
fn a_job_whose_start_nobody_waits_for_any_more_is_cancelled() {
    run(async {
        let sink = Arc::new(KeepingSink::new().that_never_opens());
        let source = ScriptedSource::new(Vec::new(), false, ChangelogMode::INSERT_ONLY);
        let starting = start_copy(&source, &sink, settings(1));
        let dropped: Option<Result<JobHandle>> = tokio::select! {
            started = starting => Some(started),
            () = sink.wait_for_openings(1) => None,
        };
        assert!(dropped.is_none());
        sink.wait_for_openings(0).await;
    });
}
