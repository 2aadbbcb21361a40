//! `blackhole`: swallows every row, for measuring what comes before it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    CheckpointId, Committable, Committer, DynamicTableSink, FactoryContext, NoCommitter, SinkWriter,
    TableFactory, WriterContext,
};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::Result;
use crate::options::{ConfigOption, OptionDef};

const PROPERTY_VERSION: ConfigOption<i32> =
    ConfigOption::optional("property-version", "A version that older scripts give; it changes nothing.");

/// The connector `blackhole`.
pub(crate) struct Blackhole;

impl TableFactory for Blackhole {
    fn identifier(&self) -> &'static str {
        "blackhole"
    }

    fn doc(&self) -> &'static str {
        "Swallows every row."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[&PROPERTY_VERSION]
    }

    fn create_sink(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        ctx.require(self)?;
        ctx.accept(self.options())?;
        ctx.options.reject_unknown()?;
        Ok(Arc::new(BlackholeSink))
    }
}

#[derive(Debug)]
struct BlackholeSink;

#[async_trait]
impl DynamicTableSink for BlackholeSink {
    fn summary(&self) -> String {
        "BlackHole".to_owned()
    }

    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode {
        requested
    }

    async fn open_writer(&self, _ctx: WriterContext) -> Result<Box<dyn SinkWriter>> {
        Ok(Box::new(BlackholeSink))
    }

    async fn open_committer(&self, _ctx: WriterContext) -> Result<Box<dyn Committer>> {
        Ok(Box::new(NoCommitter))
    }
}

#[async_trait]
impl SinkWriter for BlackholeSink {
    async fn write(&mut self, _batch: ChangelogBatch) -> Result<()> {
        Ok(())
    }

    async fn prepare_commit(&mut self, _checkpoint: CheckpointId) -> Result<Vec<Committable>> {
        Ok(Vec::new())
    }
}
