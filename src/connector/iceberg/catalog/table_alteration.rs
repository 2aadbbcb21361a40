//! ALTER TABLE as one commit: columns, properties, the current snapshot and the location, made anew while others commit in between.

use std::collections::HashMap;

use iceberg::spec::TableMetadata;
use iceberg::{TableRequirement, TableUpdate};

use super::schema_update::SchemaUpdate;
use super::snapshot_choice::{current_is_unchanged, pick, roll_back};
use super::table_properties::{CONNECTOR, FORMAT_VERSION, LOCATION, check_settable, format_version};
use crate::catalog::TableChange;
use crate::connector::iceberg::commit::{MetadataChange, commit_updates};
use crate::connector::iceberg::known_properties::check_property;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, FlinkClass, Result};

/// Sets the snapshot that the table shows.
const CURRENT_SNAPSHOT: &str = "current-snapshot-id";
/// Takes over a snapshot that is not in the table's history.
const CHERRY_PICK: &str = "cherry-pick-snapshot-id";

/// Changes a table. Nothing is committed if nothing changes.
///
/// # Errors
/// A change does not fit what the table holds, or the commit fails.
pub(super) async fn alter_table(table: &IcebergTable, changes: &[TableChange]) -> Result<()> {
    // What cannot be done otherwise is said before anything is.
    updates(table.metadata(), changes)?;
    if let Some(picked) = set_option(changes, CHERRY_PICK) {
        pick(table, picked).await?;
    }
    let mut plan = |table: &IcebergTable| {
        let updates = updates(table.metadata(), changes)?;
        let requirements = requirements(table.metadata(), &updates);
        Ok((!updates.is_empty()).then_some(MetadataChange { requirements, updates }))
    };
    commit_updates(table, &mut plan).await.map(drop)
}

/// Returns what changes in the metadata.
fn updates(metadata: &TableMetadata, changes: &[TableChange]) -> Result<Vec<TableUpdate>> {
    let mut updates = Vec::new();
    updates.extend(version_update(metadata, changes)?);
    if let Some(current) = set_option(changes, CURRENT_SNAPSHOT) {
        // Which of the two came first would make a difference.
        if set_option(changes, CHERRY_PICK).is_some() {
            let message = "Cannot set the current snapshot ID and cherry-pick snapshot changes";
            return Err(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT));
        }
        updates.extend(roll_back(metadata, current)?);
    }
    let mut schema = SchemaUpdate::new(metadata);
    for change in changes {
        schema.apply(change)?;
    }
    if let Some(schema) = schema.finish()? {
        updates.push(TableUpdate::AddSchema { schema });
        updates.push(TableUpdate::SetCurrentSchema { schema_id: -1 });
    }
    updates.extend(property_updates(metadata, changes)?);
    Ok(updates)
}

/// Returns what must hold for the updates to mean what they were made for.
fn requirements(metadata: &TableMetadata, updates: &[TableUpdate]) -> Vec<TableRequirement> {
    let mut requirements = Vec::new();
    for update in updates {
        match update {
            TableUpdate::AddSchema { .. } => {
                let current_schema_id = metadata.current_schema_id();
                requirements.push(TableRequirement::CurrentSchemaIdMatch { current_schema_id });
                let last_assigned_field_id = metadata.last_column_id();
                requirements.push(TableRequirement::LastAssignedFieldIdMatch { last_assigned_field_id });
                // A column that partitions or sorts the table must not go, so neither may change meanwhile.
                let default_spec_id = metadata.default_partition_spec_id();
                requirements.push(TableRequirement::DefaultSpecIdMatch { default_spec_id });
                let default_sort_order_id = metadata.default_sort_order_id();
                requirements.push(TableRequirement::DefaultSortOrderIdMatch { default_sort_order_id });
            }
            TableUpdate::SetSnapshotRef { .. } => requirements.push(current_is_unchanged(metadata)),
            _ => {}
        }
    }
    requirements
}

/// Returns the value that an option is set to.
fn set_option<'a>(changes: &'a [TableChange], wanted: &str) -> Option<&'a str> {
    changes.iter().find_map(|change| match change {
        TableChange::SetOption { key, value } if key.eq_ignore_ascii_case(wanted) => Some(value.as_str()),
        _ => None,
    })
}

fn version_update(metadata: &TableMetadata, changes: &[TableChange]) -> Result<Option<TableUpdate>> {
    let Some(text) = set_option(changes, FORMAT_VERSION) else { return Ok(None) };
    let (wanted, present) = (format_version(text)?, metadata.format_version());
    if wanted < present {
        let message = format!("Cannot downgrade v{} table to v{}", present as u8, wanted as u8);
        return Err(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT));
    }
    Ok((wanted > present).then_some(TableUpdate::UpgradeFormatVersion { format_version: wanted }))
}

/// Returns what changes in properties and location.
fn property_updates(metadata: &TableMetadata, changes: &[TableChange]) -> Result<Vec<TableUpdate>> {
    let mut set = HashMap::new();
    let mut removed = Vec::new();
    let mut updates = Vec::new();
    for change in changes {
        match change {
            TableChange::SetOption { key, value } => {
                let special = [FORMAT_VERSION, CURRENT_SNAPSHOT, CHERRY_PICK];
                if key.eq_ignore_ascii_case(LOCATION) {
                    updates.push(TableUpdate::SetLocation { location: value.clone() });
                } else if !special.iter().any(|special| key.eq_ignore_ascii_case(special)) {
                    check_changeable(key)?;
                    check_property(key, value)?;
                    if metadata.properties().get(key) != Some(value) {
                        set.insert(key.clone(), value.clone());
                    }
                }
            }
            TableChange::ResetOption(key) => {
                check_changeable(key)?;
                if metadata.properties().contains_key(key) {
                    removed.push(key.clone());
                }
            }
            _ => {}
        }
    }
    if !set.is_empty() {
        updates.push(TableUpdate::SetProperties { updates: set });
    }
    if !removed.is_empty() {
        updates.push(TableUpdate::RemoveProperties { removals: removed });
    }
    Ok(updates)
}

/// Checks that SET and RESET may name a property.
fn check_changeable(key: &str) -> Result<()> {
    if key == CONNECTOR {
        return Err(Error::validation("the connector of an Iceberg table cannot be changed")
            .class(FlinkClass::ILLEGAL_ARGUMENT));
    }
    check_settable(key)
}
