//! UPDATE, DELETE and TRUNCATE, which need a connector that changes rows in place, and ANALYZE.

use crate::catalog::{CatalogObject, CatalogTable, ObjectIdentifier};
use crate::connector::{FactoryContext, table_factory};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{RUNTIME_MODE, RuntimeMode, TableOptions, resolve_references};
use crate::session::{Session, StatementResult};
use crate::sql::ObjectName;

impl Session {
    /// Refuses UPDATE or DELETE with the reason that comes first in Flink: the table, its connector, the mode.
    pub(in crate::session) async fn change_rows(
        &self,
        keyword: &str,
        target: &ObjectName,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(target)?;
        let missing = || {
            let last = target.parts.last().map(String::as_str).unwrap_or_default();
            Error::not_found(format!("Object '{last}' not found"))
                .class(FlinkClass::SQL_VALIDATOR)
                .at(target.span)
        };
        let found = self.catalogs.object(&identifier).await?.ok_or_else(missing)?;
        let CatalogObject::Table(table) = found.object.as_ref() else {
            return Err(Error::validation(format!("{keyword} of view '{identifier}' is not possible"))
                .at(target.span));
        };
        self.check_source(&identifier, table).map_err(|error| error.at(target.span))?;
        if self.is_streaming()? {
            return Err(Error::unsupported(format!(
                "{keyword} statement is not supported for streaming mode now."
            ))
            .class(FlinkClass::TABLE));
        }
        let (verb, ability) = match keyword {
            "UPDATE" => ("update", "SupportsRowLevelUpdate"),
            _ => ("delete", "SupportsRowLevelDelete"),
        };
        Err(Error::unsupported(format!(
            "Can't perform {verb} operation of the table {identifier} because the corresponding dynamic table sink has not yet implemented org.apache.flink.table.connector.sink.abilities.{ability}."
        ))
        .at(target.span)
        .hint("No connector changes rows in place. INSERT OVERWRITE puts the rows that are to stay in place of those of the same partition, or of a table without partitions; a stream of changes that is inserted into a table with a key deletes rows by their keys."))
    }

    /// Makes the table's source, as Flink does before it looks at the statement itself.
    fn check_source(&self, identifier: &ObjectIdentifier, table: &CatalogTable) -> Result<()> {
        let connector = table.options.get("connector").ok_or_else(|| {
            Error::validation(
                "Table options do not contain an option key 'connector' for discovering a connector.",
            )
        })?;
        let resolved =
            table.options.iter().map(|(key, value)| Ok((key.clone(), resolve_references(key, value)?)));
        let options = TableOptions::new(connector, resolved.collect::<Result<_>>()?);
        options.raw("connector");
        let ctx = FactoryContext {
            table: &identifier.to_string(),
            path: &identifier.path,
            schema: &table.schema,
            partition_keys: &table.partition_keys,
            options: &options,
            config: &self.config,
            handle: &table.handle,
        };
        table_factory(connector)?.create_source(&ctx).map(drop)
    }

    /// Refuses TRUNCATE.
    pub(in crate::session) async fn truncate(&self, target: &ObjectName) -> Result<StatementResult> {
        let identifier = self.existing_table(target).await?;
        if self.is_streaming()? {
            return Err(Error::unsupported("TRUNCATE TABLE statement is not supported in streaming mode.")
                .class(FlinkClass::TABLE)
                .hint("SET 'execution.runtime-mode' = 'batch'; first."));
        }
        Err(Error::unsupported(format!(
            "TRUNCATE TABLE statement is not supported for the table {identifier} since the table hasn't implemented the interface org.apache.flink.table.connector.sink.abilities.SupportsTruncate."
        ))
        .class(FlinkClass::TABLE)
        .at(target.span)
        .hint("Drop the table and create it again."))
    }

    /// ANALYZE: there is nothing to do, because statistics are read when a query is planned.
    pub(in crate::session) async fn analyze(&self, table: &ObjectName) -> Result<StatementResult> {
        let identifier = self.existing_table(table).await?;
        if self.is_streaming()? {
            return Err(Error::unsupported("ANALYZE TABLE is not supported for streaming mode now")
                .class(FlinkClass::TABLE));
        }
        Ok(StatementResult::DoneWithNote(format!(
            "ANALYZE is not needed: statistics of '{identifier}' are read when a query is planned."
        )))
    }

    /// Returns the identifier of a table or view that must exist.
    async fn existing_table(&self, name: &ObjectName) -> Result<ObjectIdentifier> {
        let identifier = self.resolve(name)?;
        match self.catalogs.object(&identifier).await? {
            Some(_) => Ok(identifier),
            None => {
                let message = format!("Table {} doesn't exist.", identifier.quoted());
                Err(Error::not_found(message).at(name.span))
            }
        }
    }

    /// Returns whether statements run in streaming mode.
    pub(in crate::session) fn is_streaming(&self) -> Result<bool> {
        Ok(self.config.get(&RUNTIME_MODE)? == RuntimeMode::Streaming)
    }
}
