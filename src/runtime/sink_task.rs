//! Writes a stream into a sink: every row through one writer, then prepare and commit once, at the end of the input.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use tracing::warn;

use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::connector::{CompletedCheckpoint, DynamicTableSink, OutputPort, WriterContext};
use crate::error::Result;

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

/// Runs a sink to the end of its input. Dropping the future leaves nothing visible.
///
/// # Errors
/// The input fails, or the sink cannot be written.
pub(crate) async fn run_sink(input: SinkInput, output: Arc<dyn OutputPort>) -> Result<()> {
    let SinkInput { sink, mut rows, overwrite } = input;
    // Such a job is never restored; its sink is like no other all the same.
    let sink_id = Arc::from(uuid::Uuid::new_v4().simple().to_string());
    let mode = ChangelogMode::INSERT_ONLY;
    let ctx = WriterContext { sink_id, writer: 0, writer_count: 1, output, overwrite, mode };
    let mut writer = sink.open_writer(ctx.clone()).await?;
    while let Some(batch) = rows.next().await {
        writer.write(batch?).await?;
    }
    let committables = writer.prepare_commit(END_OF_INPUT).await?;
    let mut committer = sink.open_committer(ctx).await?;
    let checkpoint = CompletedCheckpoint { number: END_OF_INPUT, positions: BTreeMap::new() };
    committer.commit(&checkpoint, &committables).await?;
    if let Err(error) = committer.forget_commits().await {
        // The rows are there; only a trace of the commit stays.
        warn!(%error, "a sink could not be told that its job has ended");
    }
    Ok(())
}
