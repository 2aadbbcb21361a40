//! What tests of connectors share: a table's context, a place for printed lines, and a small runtime.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use super::{
    CheckpointId, CompletedCheckpoint, FactoryContext, Frame, OperatorStatus, OutputPort, OutputStream,
    SourceEvent, SourceReader, WriterContext,
};
use crate::catalog::{ObjectPath, TableHandle};
use crate::changelog::ChangelogMode;
use crate::options::{SessionConfig, TableOptions};
use crate::schema::{Column, TableSchema};

/// Everything that a factory's context borrows.
pub(crate) struct Table {
    path: ObjectPath,
    pub(crate) schema: TableSchema,
    pub(crate) partition_keys: Vec<String>,
    options: TableOptions,
    pub(crate) config: SessionConfig,
    pub(crate) handle: TableHandle,
}

impl Table {
    pub(crate) fn new(connector: &str, columns: Vec<Column>, entries: &[(&str, &str)]) -> Table {
        let mut options: BTreeMap<String, String> =
            entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        options.insert("connector".to_owned(), connector.to_owned());
        Table {
            path: ObjectPath::new("default_database", "t"),
            schema: TableSchema::of_columns(columns),
            partition_keys: Vec::new(),
            options: TableOptions::new(connector, options),
            config: SessionConfig::default(),
            handle: TableHandle::default(),
        }
    }

    pub(crate) fn context(&self) -> FactoryContext<'_> {
        FactoryContext {
            table: "default_catalog.default_database.t",
            path: &self.path,
            schema: &self.schema,
            partition_keys: &self.partition_keys,
            options: &self.options,
            config: &self.config,
            handle: &self.handle,
        }
    }
}

/// Keeps what was printed.
#[derive(Debug, Default)]
pub(crate) struct Printed(Mutex<String>);

impl Printed {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl OutputPort for Printed {
    fn print(&self, stream: OutputStream, lines: &str) {
        let name = if stream == OutputStream::Out { "out" } else { "err" };
        self.0.lock().unwrap().push_str(&format!("{name}: {lines}"));
    }
}

pub(crate) fn writer_context(overwrite: bool) -> WriterContext {
    let output = Arc::new(Printed::default());
    let mode = ChangelogMode::INSERT_ONLY;
    WriterContext {
        sink_id: Arc::from("job-1"),
        writer: 0,
        writer_count: 1,
        output,
        overwrite,
        replaces_content: false,
        mode,
        status: OperatorStatus::default(),
    }
}

pub(crate) fn completed_checkpoint(number: CheckpointId) -> CompletedCheckpoint {
    CompletedCheckpoint { number, positions: BTreeMap::new() }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Reads all frames of a reader that ends.
pub(crate) async fn read_all(reader: &mut dyn SourceReader) -> crate::error::Result<Vec<Frame>> {
    let mut frames = Vec::new();
    while let SourceEvent::Frame(frame) = reader.next().await? {
        frames.push(frame);
    }
    Ok(frames)
}
