//! Writes streams into sinks: every row through one writer, then prepare and commit once, at the end of the input.
//!
//! Several sinks of one job are committed only when all have prepared, so that of a job which fails before that nothing is visible. A
//! job that fails takes away what its sinks have prepared, unless a commit may have landed of which nobody knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::BoxStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::warn;

use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::{
    Committable, CompletedCheckpoint, DynamicTableSink, OperatorStatus, OutputPort, WriterContext,
    may_have_landed,
};
use crate::error::{Error, ErrorKind, Result};

/// The checkpoint that the end of a bounded job is.
const END_OF_INPUT: u64 = 1;

/// What a sink is to write.
pub(crate) struct SinkInput {
    /// The sink.
    pub(crate) sink: Arc<dyn DynamicTableSink>,
    /// The rows: the table's persisted columns.
    pub(crate) rows: BoxStream<'static, Result<ChangelogBatch>>,
    /// Whether they replace what is there.
    pub(crate) overwrite: bool,
}

/// Runs sinks to the end of their inputs, each of which may remember so many bytes. Dropping the future leaves nothing visible, unless
/// it is being committed.
///
/// # Errors
/// An input fails, or a sink cannot be written. If a sink cannot be committed, those before it are.
pub(crate) async fn run_sinks(
    inputs: Vec<SinkInput>,
    output: &Arc<dyn OutputPort>,
    memory_budget: usize,
) -> Result<()> {
    let (mut sinks, mut rows) = (Vec::new(), Vec::new());
    for input in inputs {
        sinks.push(BatchSink::new(input.sink, input.overwrite, output));
        rows.push(input.rows);
    }
    let mut unfinished = Unfinished(sinks.clone());
    let has_failed = watch::Sender::new(false);
    let prepared = sinks.iter().zip(rows).map(async |(sink, rows)| {
        let prepared = sink.prepare(rows, memory_budget, has_failed.subscribe()).await;
        if prepared.is_err() {
            has_failed.send_replace(true);
        }
        prepared
    });
    let (mut committables, mut failure) = (Vec::new(), None);
    for prepared in join_all(prepared).await {
        match prepared {
            Ok(prepared) => committables.push(prepared),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    if failure.is_some() {
        committables.clear();
    }
    let mut committables = committables.into_iter();
    for sink in sinks {
        unfinished.0.remove(0);
        let committed = match (&failure, committables.next()) {
            (None, Some(prepared)) => sink.commit(&prepared.unwrap_or_default()).await,
            _ => {
                sink.discard().await;
                continue;
            }
        };
        if let Err(error) = committed {
            if !may_have_landed(&error) {
                sink.discard().await;
            }
            failure = Some(error);
        }
    }
    failure.map_or(Ok(()), Err)
}

/// A sink with its only writer.
#[derive(Debug, Clone)]
struct BatchSink {
    sink: Arc<dyn DynamicTableSink>,
    ctx: WriterContext,
}

impl BatchSink {
    fn new(sink: Arc<dyn DynamicTableSink>, overwrite: bool, output: &Arc<dyn OutputPort>) -> BatchSink {
        // Such a job is never restored; its sink is like no other all the same.
        let sink_id = Arc::from(uuid::Uuid::new_v4().simple().to_string());
        let (output, mode) = (Arc::clone(output), ChangelogMode::INSERT_ONLY);
        BatchSink {
            sink,
            ctx: WriterContext {
                sink_id,
                writer: 0,
                writer_count: 1,
                output,
                overwrite,
                replaces_content: false,
                mode,
                status: OperatorStatus::default(),
            },
        }
    }

    /// Writes all rows; None if it was given up because another sink has failed.
    async fn prepare(
        &self,
        mut rows: BoxStream<'static, Result<ChangelogBatch>>,
        memory_budget: usize,
        mut has_failed: watch::Receiver<bool>,
    ) -> Result<Option<Vec<Committable>>> {
        let mut writer = self.sink.open_writer(self.ctx.clone()).await?;
        loop {
            // What is being written is written, so that it can be found and removed.
            let batch = tokio::select! {
                biased;
                Ok(_) = has_failed.wait_for(|has_failed| *has_failed) => return Ok(None),
                batch = rows.next() => batch,
            };
            match batch {
                Some(batch) => {
                    writer.write(batch?).await?;
                    check_memory(writer.state_bytes(), memory_budget)?;
                }
                None => return writer.prepare_commit(END_OF_INPUT).await.map(Some),
            }
        }
    }

    async fn commit(&self, committables: &[Committable]) -> Result<()> {
        let mut committer = self.sink.open_committer(self.ctx.clone()).await?;
        let checkpoint = CompletedCheckpoint { number: END_OF_INPUT, positions: BTreeMap::new() };
        committer.commit(&checkpoint, committables).await?;
        if let Err(error) = committer.forget_commits().await {
            // The rows are there; only a trace of the commit stays.
            warn!(%error, "a sink could not be told that its job has ended");
        }
        Ok(())
    }

    /// Removes what was written. What stays behind is garbage, and not what the job has failed of.
    async fn discard(&self) {
        let discard = async || {
            let mut committer = self.sink.open_committer(self.ctx.clone()).await?;
            committer.discard_unfinished(&self.ctx.sink_id, &[]).await
        };
        let discarded: Result<(), Error> = discard().await;
        if let Err(error) = discarded {
            warn!(%error, "what a sink has written and not committed stays");
        }
    }
}

/// Fails the job if what a writer remembers has outgrown the job's budget.
fn check_memory(bytes: usize, budget: usize) -> Result<()> {
    if bytes <= budget {
        return Ok(());
    }
    let message = format!("the keys that a sink has to remember take {bytes} bytes and may take {budget}");
    Err(Error::new(ErrorKind::State, message).hint("SET 'lakehead.state.memory-budget' to more."))
}

/// Sinks that have neither been committed nor cleared. Dropped with the job, they are cleared by the way.
struct Unfinished(Vec<BatchSink>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let sinks = std::mem::take(&mut self.0);
        if let (false, Ok(runtime)) = (sinks.is_empty(), Handle::try_current()) {
            runtime.spawn(async move {
                for sink in sinks {
                    sink.discard().await;
                }
            });
        }
    }
}
