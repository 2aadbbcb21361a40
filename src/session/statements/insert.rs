//! INSERT and statement sets: jobs that write tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::Notify;

use crate::changelog::ChangelogBatch;
use crate::connector::OutputStream;
use crate::error::{Error, Result};
use crate::options::{DML_SYNC, JOB_RESUME, JobResume, PIPELINE_NAME};
use crate::plan::{PlannedInsert, Planner, insert_graph};
use crate::runtime::{JobHandle, JobOrigin, SinkInput, StopMode, run_sinks};
use crate::session::job_notes::{
    check_replaceable, failure_lines, is_endless, leftover_warnings, visibility_warning,
};
use crate::session::job_settings::memory_budget;
use crate::session::jobs::BatchRun;
use crate::session::{JobEnd, JobId, JobStatus, Session, StatementResult, StoppedJob};
use crate::sql::Insert;

impl Session {
    /// Runs an INSERT as a job.
    pub(in crate::session) async fn execute_insert(&mut self, insert: &Insert) -> Result<StatementResult> {
        let planned = Planner::new(&self.catalogs, &self.config)?.insert(insert).await?;
        self.submit(vec![planned]).await
    }

    /// Starts a job that writes one table or several, and waits for it where `table.dml-sync` says so.
    pub(in crate::session) async fn submit(
        &mut self,
        inserts: Vec<PlannedInsert>,
    ) -> Result<StatementResult> {
        let targets: Vec<String> =
            inserts.iter().map(|planned| planned.insert.table.identifier.to_string()).collect();
        let read: Vec<Vec<String>> = inserts.iter().map(PlannedInsert::snapshots).collect::<Result<_>>()?;
        self.tell_of_writers(&read.concat());
        let name = self.config.get_optional(&PIPELINE_NAME)?;
        let name = name.unwrap_or_else(|| format!("insert-into_{}", targets.join(",")));
        if inserts.iter().all(PlannedInsert::is_streaming) {
            // The next of this name would go on from where one has ended, and do nothing.
            let keeps_finished = self.config.get(&JOB_RESUME)?.goes_on();
            let name = self.jobs.free_name(name, keeps_finished);
            return self.submit_stream(name, &inserts, targets).await;
        }
        let name = self.jobs.free_name(name, false);
        // What may be refused comes before the job is one: nobody expects a job of a statement that failed.
        let (memory_budget, waits) = (memory_budget(&self.config)?, self.config.get(&DML_SYNC)?);
        let run = BatchRun::new(targets);
        let id = self.jobs.register(name.clone(), run.clone());
        let mut inputs = Vec::with_capacity(inserts.len());
        for (planned, (_, rows)) in inserts.into_iter().zip(&run.targets) {
            match prepare_sink(planned, &run.stop, Arc::clone(rows)).await {
                Ok(input) => inputs.push(input),
                Err(error) => {
                    self.jobs.set_status(id, JobStatus::Failed);
                    return Err(error);
                }
            }
        }
        let job = self.run_job(id, inputs, memory_budget);
        if waits {
            job.await?;
            return Ok(StatementResult::JobFinished(id));
        }
        self.run_in_background(id, name, job);
        Ok(StatementResult::JobSubmitted(id))
    }

    /// Starts a streaming job.
    async fn submit_stream(
        &mut self,
        name: String,
        inserts: &[PlannedInsert],
        targets: Vec<String>,
    ) -> Result<StatementResult> {
        let (graph, waits) = (insert_graph(inserts)?, self.config.get(&DML_SYNC)?);
        let settings = self.insert_settings(JobId::random(), name)?;
        check_replaceable(&graph, &settings)?;
        let warning = visibility_warning(&graph, &settings);
        let leftovers = leftover_warnings(&graph);
        let notes = self.start_notes(&settings)?;
        let unfinished = if is_endless(&graph) { Vec::new() } else { targets };
        let handle = JobHandle::start(graph, settings.clone(), Arc::clone(&self.output)).await?;
        let id = JobId(handle.id());
        self.jobs.add(handle.clone(), unfinished);
        self.tell_start(&handle, &settings, &notes);
        if let Some(warning) = warning {
            self.warn(&warning);
        }
        if matches!(handle.origin(), JobOrigin::Nothing { .. }) && settings.resume != JobResume::Resnapshot {
            leftovers.iter().for_each(|warning| self.warn(warning));
        }
        if waits {
            let waiting = StopOnDrop(handle);
            waiting.0.finished().await?;
            return Ok(StatementResult::JobFinished(id));
        }
        let name = handle.name().to_owned();
        self.run_in_background(id, name, async move { handle.finished().await.map(drop) });
        Ok(StatementResult::JobSubmitted(id))
    }

    /// Lets a job run, and reports it if it fails.
    fn run_in_background(
        &mut self,
        id: JobId,
        name: String,
        job: impl Future<Output = Result<()>> + Send + 'static,
    ) {
        let output = Arc::clone(&self.output);
        let running = tokio::spawn(async move {
            let ended = job.await;
            if let Err(error) = &ended {
                output.print(OutputStream::Err, &failure_lines(id, &name, error));
            }
            ended
        });
        self.running.push((id, running));
    }

    /// Makes the future that is a job: it writes all sinks and reports how it ended.
    fn run_job(
        &self,
        id: JobId,
        inputs: Vec<SinkInput>,
        memory_budget: usize,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let (jobs, output) = (Arc::clone(&self.jobs), Arc::clone(&self.output));
        async move {
            let ended = run_sinks(inputs, &output, memory_budget).await;
            let stopped = jobs.get(id).is_some_and(|job| job.status == JobStatus::Cancelling);
            jobs.set_status(
                id,
                match &ended {
                    Err(_) => JobStatus::Failed,
                    Ok(()) if stopped => JobStatus::Canceled,
                    Ok(()) => JobStatus::Finished,
                },
            );
            ended
        }
    }

    /// Waits for all jobs that were started. A call that is dropped stops none of them.
    ///
    /// # Errors
    /// A job failed: the first one of them. Each has reported itself when it did.
    pub async fn finish_jobs(&mut self) -> Result<()> {
        while !self.running.is_empty() {
            if let Err(error) = self.finish_job(0).await {
                self.failure.get_or_insert(error);
            }
        }
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Waits for one of the jobs in the background.
    ///
    /// # Errors
    /// It failed.
    pub(in crate::session) async fn finish_job(&mut self, at: usize) -> Result<()> {
        let Some((id, job)) = self.running.get_mut(at) else { return Ok(()) };
        let (id, ended) = (*id, job.await);
        self.running.remove(at);
        match ended {
            Ok(ended) => ended,
            Err(stopped) if stopped.is_cancelled() => Ok(()),
            Err(stopped) => Err(Error::internal(format!("job {id} panicked")).caused_by(stopped)),
        }
    }

    /// Stops all jobs that run, streaming ones with a last checkpoint, and says what became of each. A call that is dropped
    /// leaves them stopping.
    pub async fn stop_jobs(&mut self) -> Vec<StoppedJob> {
        let stops = self.jobs.live_handles().into_iter().map(|handle| async move {
            let end = match handle.stop(StopMode::Finish).await {
                Ok(Some(path)) => JobEnd::Resumable(path),
                Ok(None) if handle.status() == JobStatus::Failed => JobEnd::Failed,
                Ok(None) => JobEnd::Ended,
                Err(_) => JobEnd::Failed,
            };
            StoppedJob { name: handle.name().to_owned(), end }
        });
        let mut stopped = futures::future::join_all(stops).await;
        stopped.extend(self.drop_batch_jobs());
        stopped
    }

    /// Stops all jobs at once; what they have not committed is dropped.
    pub fn cancel_jobs(&mut self) {
        self.jobs.live_handles().iter().for_each(JobHandle::cancel);
        self.drop_batch_jobs();
    }

    /// Ends the batch jobs that run: half of a result is none.
    fn drop_batch_jobs(&self) -> Vec<StoppedJob> {
        let mut dropped = Vec::new();
        for (id, running) in &self.running {
            let live = self.jobs.get(*id).filter(|job| !job.status.is_final());
            if let Some(job) = live
                && self.jobs.handle(*id).is_none()
            {
                running.abort();
                self.jobs.set_status(*id, JobStatus::Canceled);
                dropped.push(StoppedJob { name: job.name, end: JobEnd::Dropped });
            }
        }
        dropped
    }
}

/// Stops a job that nobody waits for any more. One that has ended is left alone.
struct StopOnDrop(JobHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if !self.0.status().is_final() {
            self.0.request_stop(StopMode::Finish);
        }
    }
}

/// Makes the rows of an INSERT and its sink; the rows end when the job is stopped, so that what was written is committed.
async fn prepare_sink(
    planned: PlannedInsert,
    stop: &Arc<Notify>,
    count: Arc<AtomicU64>,
) -> Result<SinkInput> {
    let (query, sink, overwrite) = planned.prepare_batch().await?;
    let rows = query.execute()?.map(move |rows| {
        let rows = rows.map(ChangelogBatch::inserts)?;
        count.fetch_add(rows.row_count() as u64, Ordering::Relaxed);
        Ok(rows)
    });
    let rows = rows.boxed();
    Ok(SinkInput { sink, rows: until_stopped(rows, Arc::clone(stop)), overwrite })
}

/// Ends a stream when the signal is given.
fn until_stopped(
    rows: BoxStream<'static, Result<ChangelogBatch>>,
    stop: Arc<Notify>,
) -> BoxStream<'static, Result<ChangelogBatch>> {
    let stopped = async move {
        stop.notified().await;
        // The other sinks of the job wait for the same signal.
        stop.notify_one();
    };
    rows.take_until(Box::pin(stopped)).boxed()
}
