//! How a table definition becomes a source. No connection is made: planning reads nothing of the server.

use std::sync::Arc;

use super::options::{
    self, CHANGELOG_MODE, ChangelogMode, DECODING_PLUGIN_NAME, DecodingPlugin, READ_AS_APPEND_ONLY, TRUNCATE,
    TruncatePolicy,
};
use super::postgres_source::PostgresSource;
use super::settings::{PassedOn, ServerSettings, StreamSettings, TableSettings};
use crate::connector::{DynamicTableSource, FactoryContext, TableFactory};
use crate::error::{Error, FlinkClass, Result};
use crate::options::OptionDef;
use crate::schema::Column;

/// The connector `postgres-cdc`.
pub(crate) struct PostgresCdc;

impl TableFactory for PostgresCdc {
    fn identifier(&self) -> &'static str {
        "postgres-cdc"
    }

    fn doc(&self) -> &'static str {
        "Tables of PostgreSQL: what is in them, and then every change of it, exactly once."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        options::OPTIONS
    }

    fn key_patterns(&self) -> &'static [&'static str] {
        options::KEY_PATTERNS
    }

    fn create_source(&self, ctx: &FactoryContext<'_>) -> Result<Arc<dyn DynamicTableSource>> {
        Ok(Arc::new(source(ctx)?))
    }
}

/// Reads what a definition says.
fn source(ctx: &FactoryContext<'_>) -> Result<PostgresSource> {
    ctx.require(&PostgresCdc)?;
    ctx.accept(options::WITHOUT_EFFECT)?;
    let changelog_mode = ctx.options.get(&CHANGELOG_MODE)?;
    let key = ctx.schema.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default();
    if changelog_mode == ChangelogMode::Upsert && key.is_empty() {
        return Err(Error::validation("Primary key must be present when upsert mode is selected.")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Declare PRIMARY KEY (…) NOT ENFORCED with the columns of the table's key."));
    }
    let mut passed_on = PassedOn::read(ctx.options)?;
    let plugin = ctx.options.raw(DECODING_PLUGIN_NAME.key());
    if ctx.options.get(&DECODING_PLUGIN_NAME)? == DecodingPlugin::Other
        && let Some(plugin) = plugin
    {
        passed_on.notes.push(format!(
            "'{}' = '{plugin}': pgoutput is used, which is part of Postgres",
            DECODING_PLUGIN_NAME.key()
        ));
    }
    let source = PostgresSource {
        table: ctx.table.to_owned(),
        columns: ctx.schema.physical_columns().cloned().collect::<Vec<Column>>(),
        key,
        changelog_mode,
        is_append_only: ctx.options.get(&READ_AS_APPEND_ONLY)?,
        server: ServerSettings::read(ctx.options, &passed_on)?,
        stream: StreamSettings::read(ctx.options, &passed_on)?,
        settings: TableSettings::read(ctx.options)?,
        notes: passed_on.notes,
    };
    ctx.options.reject_unknown()?;
    check_truncate(&source)?;
    Ok(source)
}

/// Fails if a TRUNCATE is to delete rows that nobody could take back.
fn check_truncate(source: &PostgresSource) -> Result<()> {
    if source.settings.truncate != TruncatePolicy::Delete {
        return Ok(());
    }
    let refused = |why: &str| Error::validation(format!("'{}' = 'delete' {why}", TRUNCATE.key()));
    if source.is_append_only {
        return Err(refused(&format!("contradicts '{}'", READ_AS_APPEND_ONLY.key()))
            .hint("Leave one of them out: rows that are appended are never taken back."));
    }
    if source.key.is_empty() {
        return Err(refused("needs a primary key, by which the rows of a truncated table are known")
            .hint("Declare PRIMARY KEY (…) NOT ENFORCED with the columns of the table's key."));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
