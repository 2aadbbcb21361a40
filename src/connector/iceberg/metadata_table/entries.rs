//! `$entries`: the entries of a snapshot's manifests, those of removed files included; `$all_entries`: of all snapshots.

use iceberg::spec::TableMetadata;

use super::super::partition::partition_columns;
use super::MetadataTableType;
use super::cell::Cell;
use super::files::{FileCells, file_fields};
use super::readable_metrics::ReadableMetrics;
use super::schema::{optional, required};
use super::table_reader::TableReader;
use crate::error::Result;
use crate::schema::{Column, TypeRoot};

/// Returns the columns.
///
/// # Errors
/// The table's partitioning cannot be understood.
pub(super) fn columns(metadata: &TableMetadata) -> Result<Vec<Column>> {
    Ok(vec![
        required("status", TypeRoot::Int),
        optional("snapshot_id", TypeRoot::BigInt),
        optional("sequence_number", TypeRoot::BigInt),
        optional("file_sequence_number", TypeRoot::BigInt),
        required("data_file", TypeRoot::Row(file_fields(&partition_columns(metadata)?))),
        optional("readable_metrics", ReadableMetrics::of(metadata.current_schema()).row_type()),
    ])
}

/// Returns the rows.
pub(super) async fn rows(
    reader: &TableReader<'_>,
    kind: MetadataTableType,
    snapshot: Option<i64>,
) -> Result<Vec<Vec<Cell>>> {
    let metadata = reader.metadata();
    let manifests = reader.manifests_of(kind, snapshot).await?;
    let files = FileCells::of(metadata, reader.name)?;
    let metrics = ReadableMetrics::of(metadata.current_schema());
    let mut rows = Vec::new();
    for listed in reader.files(&manifests).await?.iter().flat_map(|listed| listed.iter()) {
        rows.push(vec![
            Cell::Int(listed.status as i32),
            Cell::Long(listed.snapshot_id),
            Cell::Long(listed.data_sequence_number),
            Cell::Long(listed.file_sequence_number),
            Cell::Row(files.cells(&listed.file)?),
            metrics.cell(&listed.file.file),
        ]);
    }
    Ok(rows)
}
