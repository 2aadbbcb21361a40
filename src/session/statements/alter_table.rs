//! ALTER TABLE.

use crate::catalog::{self, CatalogObject, CatalogTable, ChangeKind, ObjectIdentifier};
use crate::error::{Error, Result};
use crate::session::schema_change::{SchemaChange, failed};
use crate::session::table_definition::{DefinitionReader, option_map};
use crate::session::{Session, StatementResult};
use crate::sql::{AlterTable, RefKind, Spanned, TableChange};

impl Session {
    /// Changes a table's definition.
    pub(in crate::session) async fn alter_table(
        &mut self,
        alter: &AlterTable,
        text: &str,
    ) -> Result<StatementResult> {
        let identifier = self.resolve(&alter.name)?;
        let found = self.alterable(&alter.name, &identifier, "Table", alter.if_exists).await?;
        let Some(object) = found else { return Ok(StatementResult::Done) };
        let CatalogObject::Table(table) = object.as_ref() else {
            return Err(Error::validation("ALTER TABLE for a view is not allowed").at(alter.name.span));
        };
        if let TableChange::RenameTable(new_name) = &alter.change {
            self.rename_object(&identifier, new_name).await?;
            return Ok(StatementResult::Done);
        }
        let reader = DefinitionReader { config: &self.config, text };
        let changed = match &alter.change {
            TableChange::DropPartitions { .. } if self.gives_connector(&identifier).await? => {
                // Whoever deletes files of a table that has a list of them destroys it.
                let hint = "Leave the files alone: the table has a list of them. INSERT OVERWRITE replaces the rows of a partition; another engine's DELETE takes them away.";
                Err(unsupported(&identifier, "ALTER TABLE DROP PARTITION").hint(hint))
            }
            change => changed_table(&identifier, table.clone(), reader, change),
        };
        let (changed, steps) = changed.map_err(|error| error.at(alter.name.span))?;
        let before = self.caution(&identifier, table).await?;
        let caution = self.caution(&identifier, &changed).await?.filter(|_| before.is_none());
        let altered = self.catalogs.alter_table(&identifier, changed, &steps).await;
        altered.map_err(|error| error.at(alter.name.span))?;
        Ok(caution.map_or(StatementResult::Done, StatementResult::DoneWithNote))
    }
}

/// Applies a change to a table's definition, and says in which steps.
fn changed_table(
    identifier: &ObjectIdentifier,
    table: CatalogTable,
    reader: DefinitionReader<'_>,
    change: &TableChange,
) -> Result<(CatalogTable, Vec<catalog::TableChange>)> {
    let mut changing = SchemaChange { reader, table, steps: Vec::new() };
    match change {
        TableChange::RenameTable(_) => {}
        TableChange::RenameColumn { from, to } => changing.rename_column(from, to)?,
        TableChange::SetOptions(options) => {
            for (key, value) in option_map(options)? {
                changing.table.options.insert(key.clone(), value.clone());
                changing.steps.push(catalog::TableChange::SetOption { key, value });
            }
        }
        TableChange::ResetOptions(keys) => {
            reset_options(&mut changing.table, keys)?;
            let keys = keys.iter().map(|key| key.value.clone());
            changing.steps.extend(keys.map(catalog::TableChange::ResetOption));
        }
        TableChange::Add(elements) => changing.add(elements)?,
        TableChange::Modify(elements) => changing.modify(elements)?,
        TableChange::DropColumns(names) => changing.drop_columns(names)?,
        TableChange::DropPrimaryKey => changing.drop_primary_key(None)?,
        TableChange::DropConstraint(name) => changing.drop_primary_key(Some(name))?,
        TableChange::DropWatermark => changing.drop_watermark()?,
        TableChange::AddDistribution(clause) => {
            if changing.table.distribution.is_some() {
                let reason = "The base table has already defined the distribution. You can modify it or drop it before adding a new one.";
                return Err(failed(reason));
            }
            changing.set_distribution(clause, ChangeKind::Add)?;
        }
        TableChange::ModifyDistribution(clause) => {
            if changing.table.distribution.is_none() {
                let reason =
                    "The base table does not define any distribution. You might want to add a new one.";
                return Err(failed(reason));
            }
            changing.set_distribution(clause, ChangeKind::Modify)?;
        }
        TableChange::DropDistribution => {
            if changing.table.distribution.take().is_none() {
                let message = format!("Table {} does not have a distribution to drop.", identifier.quoted());
                return Err(Error::validation(message));
            }
            changing.steps.push(catalog::TableChange::Distribution(ChangeKind::Drop));
        }
        TableChange::AddPartitions { .. }
        | TableChange::DropPartitions { .. }
        | TableChange::AddPartitionField(_)
        | TableChange::DropPartitionField(_)
        | TableChange::ReplacePartitionField { .. }
        | TableChange::WriteOrderedBy(_)
        | TableChange::CreateRef(_)
        | TableChange::DropRef { .. } => return Err(refused(identifier, change)),
    }
    Ok((changing.table, changing.steps))
}

/// RESET of options.
fn reset_options(table: &mut CatalogTable, keys: &[Spanned<String>]) -> Result<()> {
    if keys.is_empty() {
        return Err(Error::validation("ALTER TABLE RESET does not support empty key"));
    }
    if let Some(key) = keys.iter().find(|key| key.value == "connector") {
        return Err(Error::validation("ALTER TABLE RESET does not support changing 'connector'").at(key.span));
    }
    table.options.retain(|option, _| !keys.iter().any(|key| key.value == *option));
    Ok(())
}

/// Builds the error for a change that the catalog of the table cannot make.
fn refused(identifier: &ObjectIdentifier, change: &TableChange) -> Error {
    let (what, hint) = match change {
        TableChange::AddPartitions { .. } => {
            ("ALTER TABLE ADD PARTITION", "Partitions come into being when rows are inserted.")
        }
        TableChange::DropPartitions { .. } => {
            ("ALTER TABLE DROP PARTITION", "Delete the partition's files where they are stored.")
        }
        TableChange::AddPartitionField(_) => ("ALTER TABLE ADD PARTITION FIELD", ICEBERG_ONLY),
        TableChange::DropPartitionField(_) => ("ALTER TABLE DROP PARTITION FIELD", ICEBERG_ONLY),
        TableChange::ReplacePartitionField { .. } => ("ALTER TABLE REPLACE PARTITION FIELD", ICEBERG_ONLY),
        TableChange::WriteOrderedBy(_) => ("ALTER TABLE WRITE ORDERED BY", ICEBERG_ONLY),
        TableChange::CreateRef(create) => match create.kind {
            RefKind::Branch => ("ALTER TABLE CREATE BRANCH", ICEBERG_ONLY),
            RefKind::Tag => ("ALTER TABLE CREATE TAG", ICEBERG_ONLY),
        },
        TableChange::DropRef { kind: RefKind::Branch, .. } => ("ALTER TABLE DROP BRANCH", ICEBERG_ONLY),
        TableChange::DropRef { kind: RefKind::Tag, .. } => ("ALTER TABLE DROP TAG", ICEBERG_ONLY),
        _ => ("this change", ICEBERG_ONLY),
    };
    unsupported(identifier, what).hint(hint)
}

fn unsupported(identifier: &ObjectIdentifier, what: &str) -> Error {
    Error::unsupported(format!("{what} is not supported for table '{identifier}'"))
}

const ICEBERG_ONLY: &str = "Such changes are for Iceberg tables, and not built yet.";
