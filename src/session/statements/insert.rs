//! INSERT and statement sets: jobs that write tables.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::sync::Notify;

use crate::changelog::ChangelogBatch;
use crate::connector::OutputStream;
use crate::error::{Error, Result};
use crate::options::{DML_SYNC, PIPELINE_NAME};
use crate::plan::{PlannedInsert, Planner, insert_graph};
use crate::runtime::{JobHandle, SinkInput, run_sink};
use crate::session::{JobId, JobStatus, Session, StatementResult};
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
        let name = self.config.get_optional(&PIPELINE_NAME)?;
        let name = name.unwrap_or_else(|| format!("insert-into_{}", targets.join(",")));
        if inserts.iter().all(PlannedInsert::is_streaming) {
            return self.submit_stream(name, &inserts).await;
        }
        let (id, stop) = self.jobs.register(name);
        let mut inputs = Vec::with_capacity(inserts.len());
        for planned in inserts {
            match prepare_sink(planned, &stop).await {
                Ok(input) => inputs.push(input),
                Err(error) => {
                    self.jobs.set_status(id, JobStatus::Failed);
                    return Err(error);
                }
            }
        }
        let job = self.run_job(id, inputs);
        if self.config.get(&DML_SYNC)? {
            job.await?;
            return Ok(StatementResult::JobFinished(id));
        }
        self.run_in_background(id, job);
        Ok(StatementResult::JobSubmitted(id))
    }

    /// Starts a streaming job.
    async fn submit_stream(&mut self, name: String, inserts: &[PlannedInsert]) -> Result<StatementResult> {
        let id = JobId::random();
        let graph = insert_graph(inserts)?;
        let settings = self.insert_settings(id, name)?;
        let handle = JobHandle::start(graph, settings, Arc::clone(&self.output)).await?;
        self.jobs.add(id, handle.clone());
        if self.config.get(&DML_SYNC)? {
            let waiting = CancelOnDrop(handle);
            waiting.0.finished().await?;
            return Ok(StatementResult::JobFinished(id));
        }
        self.run_in_background(id, async move { handle.finished().await.map(drop) });
        Ok(StatementResult::JobSubmitted(id))
    }

    /// Lets a job run, and reports it if it fails.
    fn run_in_background(&mut self, id: JobId, job: impl Future<Output = Result<()>> + Send + 'static) {
        let output = Arc::clone(&self.output);
        let running = tokio::spawn(async move {
            let ended = job.await;
            if let Err(error) = &ended {
                output.print(OutputStream::Err, &format!("Job {id} failed: {error}\n"));
            }
            ended
        });
        self.running.push((id, running));
    }

    /// Makes the future that is a job: it writes all sinks and reports how it ended.
    fn run_job(&self, id: JobId, inputs: Vec<SinkInput>) -> impl Future<Output = Result<()>> + Send + use<> {
        let (jobs, output) = (Arc::clone(&self.jobs), Arc::clone(&self.output));
        async move {
            let sinks = inputs.into_iter().map(|input| run_sink(input, Arc::clone(&output)));
            let ended = futures::future::try_join_all(sinks).await.map(drop);
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
        while let Some((id, job)) = self.running.last_mut() {
            let (id, ended) = (*id, job.await);
            self.running.pop();
            ended.map_err(|stopped| Error::internal(format!("job {id} panicked")).caused_by(stopped))??;
        }
        Ok(())
    }
}

/// Stops a job that nobody waits for any more. One that has ended is left alone.
struct CancelOnDrop(JobHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Makes the rows of an INSERT and its sink; the rows end when the job is stopped, so that what was written is committed.
async fn prepare_sink(planned: PlannedInsert, stop: &Arc<Notify>) -> Result<SinkInput> {
    let (query, sink, overwrite) = planned.prepare_batch().await?;
    let rows = query.execute()?.map(|rows| rows.map(ChangelogBatch::inserts)).boxed();
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
