//! Writes a stream into a sink: every row through one writer, then prepare and commit once, at the end of the input.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;

use crate::changelog::ChangelogBatch;
use crate::connector::{DynamicTableSink, OutputPort, WriterContext};
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
    // Such a job is never restored, so that its files need no owner.
    let ctx = WriterContext { sink_id: Arc::from(""), writer: 0, writer_count: 1, output, overwrite };
    let mut writer = sink.open_writer(ctx.clone()).await?;
    while let Some(batch) = rows.next().await {
        writer.write(batch?).await?;
    }
    let committables = writer.prepare_commit(END_OF_INPUT).await?;
    let mut committer = sink.open_committer(ctx).await?;
    committer.commit(END_OF_INPUT, &committables).await
}
