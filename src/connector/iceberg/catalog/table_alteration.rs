//! ALTER TABLE as one commit: columns, properties, the current snapshot and the location, made anew while others commit in between.

use std::collections::HashMap;

use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};
use iceberg::{TableRequirement, TableUpdate};

use super::schema_update::SchemaUpdate;
use super::table_properties::{CONNECTOR, FORMAT_VERSION, LOCATION, check_settable, format_version};
use crate::catalog::TableChange;
use crate::connector::iceberg::commit::{MetadataChange, commit_updates};
use crate::connector::iceberg::snapshot_refs::snapshot_refs;
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
    updates.extend(snapshot_update(metadata, changes)?);
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
            TableUpdate::SetSnapshotRef { ref_name, .. } => {
                let snapshot_id = metadata.snapshot_for_ref(ref_name).map(|snapshot| snapshot.snapshot_id());
                let reference = ref_name.clone();
                requirements.push(TableRequirement::RefSnapshotIdMatch { r#ref: reference, snapshot_id });
            }
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

/// Returns the update that shows another snapshot.
fn snapshot_update(metadata: &TableMetadata, changes: &[TableChange]) -> Result<Option<TableUpdate>> {
    let snapshot_id = match (set_option(changes, CURRENT_SNAPSHOT), set_option(changes, CHERRY_PICK)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let message = "Cannot set the current snapshot ID and cherry-pick snapshot changes";
            return Err(Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT));
        }
        (Some(current), None) => rolled_back(metadata, current)?,
        (None, Some(picked)) => match picked_snapshot(metadata, picked)? {
            Some(snapshot_id) => snapshot_id,
            None => return Ok(None),
        },
    };
    if metadata.current_snapshot_id() == Some(snapshot_id) {
        return Ok(None);
    }
    Ok(Some(TableUpdate::SetSnapshotRef {
        ref_name: MAIN_BRANCH.to_owned(),
        reference: SnapshotReference { snapshot_id, retention: main_retention(metadata)? },
    }))
}

/// Returns how long the snapshots of the main branch are kept, which does not change.
fn main_retention(metadata: &TableMetadata) -> Result<SnapshotRetention> {
    let present = snapshot_refs(metadata)?.remove(MAIN_BRANCH);
    Ok(present.map_or(SnapshotRetention::branch(None, None, None), |reference| reference.retention))
}

/// Reads the id of a snapshot.
fn snapshot_id(text: &str) -> Result<i64> {
    text.trim().parse().map_err(|error| {
        Error::validation(format!("For input string: \"{text}\""))
            .class(FlinkClass::NUMBER_FORMAT)
            .caused_by(error)
            .hint("This is the id of a snapshot, as in the metadata table '$snapshots'.")
    })
}

fn rolled_back(metadata: &TableMetadata, text: &str) -> Result<i64> {
    let id = snapshot_id(text)?;
    if metadata.snapshot_by_id(id).is_none() {
        return Err(unknown_snapshot(format!("Cannot roll back to unknown snapshot id: {id}")));
    }
    Ok(id)
}

/// Returns the snapshot that is current once another one was picked; None if its changes are there already.
fn picked_snapshot(metadata: &TableMetadata, text: &str) -> Result<Option<i64>> {
    let id = snapshot_id(text)?;
    let Some(snapshot) = metadata.snapshot_by_id(id) else {
        return Err(unknown_snapshot(format!("Cannot cherry-pick unknown snapshot ID: {id}")));
    };
    let mut ancestor = metadata.current_snapshot();
    while let Some(present) = ancestor {
        if present.snapshot_id() == id {
            let message = format!("Cannot cherrypick snapshot {id}: already an ancestor");
            return Err(Error::validation(message).class(FlinkClass::ICEBERG_VALIDATION));
        }
        ancestor = present.parent_snapshot_id().and_then(|parent| metadata.snapshot_by_id(parent));
    }
    if snapshot.parent_snapshot_id() == metadata.current_snapshot_id() {
        return Ok(Some(id));
    }
    Err(Error::unsupported(format!(
        "snapshot {id} cannot be cherry-picked: others were committed after the one that it follows"
    ))
    .hint("Only a snapshot that directly follows the current one can be picked."))
}

fn unknown_snapshot(message: String) -> Error {
    Error::not_found(message)
        .class(FlinkClass::ICEBERG_VALIDATION)
        .hint("The metadata table '$snapshots' lists those there are.")
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
