//! What every source and every sink must do, so that a job is exactly once: the kit, and each connector put through it.
//!
//! To put a connector through it, give it a way to make the table anew and, for a sink, a way to read what is visible.

mod iceberg_table;
mod sink;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lakehead::catalog::{ObjectPath, TableHandle};
use lakehead::changelog::ChangelogMode;
use lakehead::connector::{
    CompletedCheckpoint, DynamicTableSink, DynamicTableSource, FactoryContext, OperatorStatus, OutputPort,
    OutputStream, WriterContext, table_factory,
};
use lakehead::options::{SessionConfig, TableOptions};
use lakehead::schema::{Column, TableSchema, TypeRoot};

/// Drops what connectors print.
#[derive(Debug, Default)]
struct Lines(Mutex<String>);

impl OutputPort for Lines {
    fn print(&self, _: OutputStream, lines: &str) {
        self.0.lock().unwrap().push_str(lines);
    }
}

/// A table `(id BIGINT, name STRING)` of a connector.
struct Table {
    connector: &'static str,
    path: ObjectPath,
    schema: TableSchema,
    options: TableOptions,
    config: SessionConfig,
    handle: TableHandle,
}

impl Table {
    fn new(connector: &'static str, entries: &[(&str, &str)]) -> Table {
        let mut options: BTreeMap<String, String> =
            entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        options.insert("connector".to_owned(), connector.to_owned());
        Table {
            connector,
            path: ObjectPath::new("default_database", "t"),
            schema: TableSchema::of_columns(vec![
                Column::physical("id", TypeRoot::BigInt.nullable()),
                Column::physical("name", TypeRoot::STRING.nullable()),
            ]),
            options: TableOptions::new(connector, options),
            config: SessionConfig::default(),
            handle: TableHandle::default(),
        }
    }

    fn context(&self) -> FactoryContext<'_> {
        FactoryContext {
            table: "default_catalog.default_database.t",
            path: &self.path,
            schema: &self.schema,
            partition_keys: &[],
            options: &self.options,
            config: &self.config,
            handle: &self.handle,
        }
    }

    /// Loads what a connector must know of a table before it can be used.
    async fn load(&mut self) {
        self.handle = table_factory(self.connector).ok().unwrap().load(&self.context()).await.unwrap();
    }

    fn sink(&self) -> Arc<dyn DynamicTableSink> {
        table_factory(self.connector).ok().unwrap().create_sink(&self.context()).unwrap()
    }

    fn source(&self) -> Arc<dyn DynamicTableSource> {
        table_factory(self.connector).ok().unwrap().create_source(&self.context()).unwrap()
    }
}

fn writer_context(writer: usize, writer_count: usize) -> WriterContext {
    let output = Arc::new(Lines::default());
    let mode = ChangelogMode::INSERT_ONLY;
    WriterContext {
        sink_id: Arc::from("job-1"),
        writer,
        writer_count,
        output,
        overwrite: false,
        replaces_content: false,
        mode,
        status: OperatorStatus::default(),
    }
}

fn completed(number: u64) -> CompletedCheckpoint {
    CompletedCheckpoint { number, positions: BTreeMap::new() }
}
