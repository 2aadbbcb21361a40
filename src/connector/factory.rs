//! How a table definition becomes a source or a sink.

use std::sync::Arc;

use async_trait::async_trait;

use super::{DynamicTableSink, DynamicTableSource};
use crate::catalog::{ObjectPath, TableHandle};
use crate::error::{Error, Result};
use crate::options::{OptionDef, SessionConfig, TableOptions};
use crate::schema::TableSchema;

/// What a factory knows of the table that is used.
#[derive(Debug)]
pub struct FactoryContext<'a> {
    /// `catalog.database.table`, for messages.
    pub table: &'a str,
    /// The table within its catalog.
    pub path: &'a ObjectPath,
    /// All declared columns, the key and the watermark.
    pub schema: &'a TableSchema,
    /// Columns of PARTITIONED BY.
    pub partition_keys: &'a [String],
    /// The options, hints merged in and references resolved. The entry `connector` is marked as read.
    pub options: &'a TableOptions,
    /// The session's configuration.
    pub config: &'a SessionConfig,
    /// What was loaded of the table for this statement.
    pub handle: &'a TableHandle,
}

/// The option that names the connector; it stands in every factory's list of supported options.
const CONNECTOR: &str = "connector";

impl FactoryContext<'_> {
    /// Marks a factory's options as supported and fails where a required one is missing. `reject_unknown` comes last.
    ///
    /// # Errors
    /// A required option is missing.
    pub(crate) fn require(&self, factory: &dyn TableFactory) -> Result<()> {
        self.options.declare_key(CONNECTOR);
        self.options.raw(CONNECTOR);
        self.options.declare(factory.options());
        self.options.require(factory.options())
    }

    /// Reads options whose values nothing depends on here, so that they are checked and known.
    ///
    /// # Errors
    /// A value does not parse.
    pub(crate) fn accept(&self, options: &[&'static dyn OptionDef]) -> Result<()> {
        for option in options {
            if let Some(text) = self.options.raw(option.key()) {
                option.check(text)?;
            }
        }
        Ok(())
    }
}

/// Makes sources and sinks of one connector.
#[async_trait]
pub trait TableFactory: Sync {
    /// Returns the value of option `connector`.
    fn identifier(&self) -> &'static str;

    /// Returns one sentence on what the connector is for.
    fn doc(&self) -> &'static str;

    /// Returns the options with fixed keys; they appear in errors, completion and the reference.
    fn options(&self) -> &'static [&'static dyn OptionDef];

    /// Returns the shapes of keys that are not fixed, for example `fields.#.kind`.
    fn key_patterns(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the option that takes the time of FOR SYSTEM_TIME AS OF, in milliseconds since 1970; None if there is only the present.
    fn time_option(&self) -> Option<&'static str> {
        None
    }

    /// Loads what sources and sinks of a table need to know beyond its definition. This is the only step that may wait, and it runs
    /// when a statement looks the table up, unless the table's catalog has loaded it.
    ///
    /// # Errors
    /// The options do not fit, or what they name cannot be reached.
    async fn load(&self, _ctx: &FactoryContext<'_>) -> Result<TableHandle> {
        Ok(TableHandle::default())
    }

    /// Creates a source. Opens no connection: planning reads no data.
    ///
    /// # Errors
    /// The options do not fit, or the connector cannot be read.
    fn create_source(&self, _ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        Err(Error::validation(format!(
            "Connector '{}' can only be used as a sink. It cannot be used as a source.",
            self.identifier()
        )))
    }

    /// Creates a sink. Opens no connection: planning writes no data.
    ///
    /// # Errors
    /// The options do not fit, or the connector cannot be written.
    fn create_sink(&self, _ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSink>> {
        Err(Error::validation(format!(
            "Connector '{}' can only be used as a source. It cannot be used as a sink.",
            self.identifier()
        )))
    }
}
