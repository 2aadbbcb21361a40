//! The partitions of a table whose partitioning has changed: one ROW with a field for every partition field there ever was.

use std::collections::BTreeMap;

use iceberg::spec::{PartitionField, PartitionSpec, PrimitiveType, Struct, TableMetadata, Transform, Type};

use crate::connector::iceberg::field_history::field_of_any_schema;
use crate::error::{Error, Result};

/// A field of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::iceberg) struct PartitionColumn {
    /// Its number, by which specs share it.
    pub(in crate::connector::iceberg) field_id: i32,
    /// Its name in the newest spec that has it.
    pub(in crate::connector::iceberg) name: String,
    /// What makes its values.
    pub(in crate::connector::iceberg) transform: Transform,
    /// The type of its values.
    pub(in crate::connector::iceberg) data_type: PrimitiveType,
}

/// Returns the fields that the partitions of any spec have, as far as the columns that they are made of are still there.
///
/// # Errors
/// A transform is not known, or a column was dropped from all schemas.
pub(in crate::connector::iceberg) fn partition_columns(
    metadata: &TableMetadata,
) -> Result<Vec<PartitionColumn>> {
    let mut specs: Vec<_> = metadata.partition_specs_iter().collect();
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id()));
    let mut columns: BTreeMap<i32, PartitionColumn> = BTreeMap::new();
    for spec in specs {
        for field in spec.fields() {
            if metadata.current_schema().field_by_id(field.source_id).is_none() {
                continue;
            }
            let column = partition_column(metadata, field)?;
            // What format v1 keeps of a field that was dropped has the transform void, and only older specs tell the type.
            let known = columns.entry(field.field_id).or_insert_with(|| column.clone());
            if known.transform == Transform::Void && column.transform != Transform::Void {
                known.transform = column.transform;
                known.data_type = column.data_type;
            }
        }
    }
    Ok(columns.into_values().collect())
}

/// Returns the fields of one spec, in its order.
///
/// # Errors
/// As `partition_columns`.
pub(in crate::connector::iceberg) fn spec_columns(
    metadata: &TableMetadata,
    spec: &PartitionSpec,
) -> Result<Vec<PartitionColumn>> {
    spec.fields().iter().map(|field| partition_column(metadata, field)).collect()
}

/// Returns the values of a partition of one spec in the order of `columns`.
pub(in crate::connector::iceberg) fn partition_values<'a>(
    columns: &'a [PartitionColumn],
    spec: &'a PartitionSpec,
    partition: &'a Struct,
) -> impl Iterator<Item = Option<&'a iceberg::spec::Literal>> {
    columns.iter().map(|column| {
        let at = spec.fields().iter().position(|field| field.field_id == column.field_id)?;
        partition.fields().get(at)?.as_ref()
    })
}

/// Returns a spec of a table.
///
/// # Errors
/// The metadata has none of this number.
pub(in crate::connector::iceberg) fn spec_of<'a>(
    metadata: &'a TableMetadata,
    id: i32,
    table: &str,
) -> Result<&'a PartitionSpec> {
    metadata.partition_spec_by_id(id).map(std::convert::AsRef::as_ref).ok_or_else(|| {
        Error::data(format!(
            "the metadata of table '{table}' has no partition spec {id}, which its files name"
        ))
    })
}

fn partition_column(metadata: &TableMetadata, field: &PartitionField) -> Result<PartitionColumn> {
    let (name, transform) = (field.name.clone(), field.transform);
    if transform == Transform::Unknown {
        return Err(Error::unsupported(format!(
            "partition field '{name}' of the Iceberg table at '{}' has a transform that is not known",
            metadata.location()
        ))
        .hint("A newer version of Iceberg has made it. Use the table with the engine that did."));
    }
    let source = field_of_any_schema(metadata, field.source_id).ok_or_else(|| {
        Error::data(format!(
            "no schema of the Iceberg table at '{}' has column {}, which partition field '{name}' is made of",
            metadata.location(),
            field.source_id
        ))
    })?;
    let result =
        transform.result_type(&source.field_type).map_err(crate::connector::iceberg::error::from_iceberg)?;
    match result {
        Type::Primitive(data_type) => {
            Ok(PartitionColumn { field_id: field.field_id, name, transform, data_type })
        }
        _ => Err(Error::data(format!(
            "partition field '{name}' of the Iceberg table at '{}' is made of a nested column",
            metadata.location()
        ))),
    }
}
