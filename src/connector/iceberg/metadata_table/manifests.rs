//! `$manifests`: the manifests of a snapshot; `$all_manifests`: those of all snapshots, with the snapshot that refers to each.

use iceberg::spec::{
    Datum, FieldSummary, ManifestContentType, ManifestFile, PrimitiveLiteral, TableMetadata,
};

use super::super::error::from_iceberg;
use super::super::partition::partition_text;
use super::super::partition::{PartitionColumn, spec_columns, spec_of};
use super::cell::Cell;
use super::schema::{list_of, optional, required};
use super::snapshots;
use super::table_reader::TableReader;
use crate::error::Result;
use crate::schema::{Column, Field, TypeRoot};

/// Returns the columns of `$manifests`.
pub(super) fn columns() -> Vec<Column> {
    let summary = summary_row(TypeRoot::Boolean.nullable());
    let mut columns = counts(required);
    columns.push(required("partition_summaries", list_of(summary)));
    columns
}

/// Returns the columns of `$all_manifests`.
pub(super) fn all_columns() -> Vec<Column> {
    let summary = summary_row(TypeRoot::Boolean.not_null());
    let mut columns = counts(optional);
    columns.push(optional("partition_summaries", list_of(summary)));
    columns.push(required("reference_snapshot_id", TypeRoot::BigInt));
    columns.push(optional("key_metadata", TypeRoot::BYTES));
    columns
}

/// The columns that both tables begin with; they differ in what may be NULL.
fn counts(some: fn(&str, TypeRoot) -> Column) -> Vec<Column> {
    vec![
        required("content", TypeRoot::Int),
        required("path", TypeRoot::STRING),
        required("length", TypeRoot::BigInt),
        some("partition_spec_id", TypeRoot::Int),
        some("added_snapshot_id", TypeRoot::BigInt),
        some("added_data_files_count", TypeRoot::Int),
        some("existing_data_files_count", TypeRoot::Int),
        some("deleted_data_files_count", TypeRoot::Int),
        required("added_delete_files_count", TypeRoot::Int),
        required("existing_delete_files_count", TypeRoot::Int),
        required("deleted_delete_files_count", TypeRoot::Int),
    ]
}

fn summary_row(contains_nan: crate::schema::DataType) -> TypeRoot {
    TypeRoot::Row(vec![
        Field::new("contains_null", TypeRoot::Boolean.not_null()),
        Field::new("contains_nan", contains_nan),
        Field::new("lower_bound", TypeRoot::STRING.nullable()),
        Field::new("upper_bound", TypeRoot::STRING.nullable()),
    ])
}

/// Returns the rows of `$manifests`.
pub(super) async fn rows(reader: &TableReader<'_>, snapshot: Option<i64>) -> Result<Vec<Vec<Cell>>> {
    let metadata = reader.metadata();
    let Some(snapshot) = snapshot.and_then(|id| metadata.snapshot_by_id(id)) else { return Ok(Vec::new()) };
    let manifests = reader.manifests(snapshot).await?;
    manifests.iter().map(|manifest| row(metadata, manifest, reader.name)).collect()
}

/// Returns the rows of `$all_manifests`.
pub(super) async fn all_rows(reader: &TableReader<'_>) -> Result<Vec<Vec<Cell>>> {
    let metadata = reader.metadata();
    let mut rows = Vec::new();
    for snapshot in snapshots::in_order(metadata) {
        for manifest in reader.manifests(snapshot).await? {
            let mut row = row(metadata, &manifest, reader.name)?;
            row.push(Cell::Long(snapshot.snapshot_id()));
            row.push(Cell::optional(manifest.key_metadata, Cell::Bytes));
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the cells that both tables have.
fn row(metadata: &TableMetadata, manifest: &ManifestFile, table: &str) -> Result<Vec<Cell>> {
    let is_data = manifest.content == ManifestContentType::Data;
    let count = |counts: bool, count: Option<u32>| {
        Cell::Int(if counts { count.map_or(0, |count| i32::try_from(count).unwrap_or(i32::MAX)) } else { 0 })
    };
    let counts = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
    let mut row = vec![
        Cell::Int(manifest.content as i32),
        Cell::text(&manifest.manifest_path),
        Cell::Long(manifest.manifest_length),
        Cell::Int(manifest.partition_spec_id),
        Cell::Long(manifest.added_snapshot_id),
    ];
    row.extend(counts.map(|files| count(is_data, files)));
    row.extend(counts.map(|files| count(!is_data, files)));
    let spec = spec_of(metadata, manifest.partition_spec_id, table)?;
    let fields = spec_columns(metadata, spec)?;
    let summaries = manifest.partitions.iter().flatten().zip(&fields);
    row.push(Cell::List(
        summaries.map(|(summary, field)| summary_cell(summary, field)).collect::<Result<_>>()?,
    ));
    Ok(row)
}

/// Returns the cell of a partition field's bounds.
fn summary_cell(summary: &FieldSummary, field: &PartitionColumn) -> Result<Cell> {
    let bound = |bytes: Option<&[u8]>| -> Result<Cell> {
        let value: Option<PrimitiveLiteral> = match bytes {
            Some(bytes) => Some(
                Datum::try_from_bytes(bytes, field.data_type.clone())
                    .map_err(from_iceberg)?
                    .literal()
                    .clone(),
            ),
            None => None,
        };
        Ok(Cell::text(partition_text(field.transform, &field.data_type, value.as_ref())))
    };
    Ok(Cell::Row(vec![
        Cell::Boolean(summary.contains_null),
        Cell::Boolean(summary.contains_nan.unwrap_or(false)),
        bound(summary.lower_bound.as_deref().map(AsRef::as_ref))?,
        bound(summary.upper_bound.as_deref().map(AsRef::as_ref))?,
    ]))
}
