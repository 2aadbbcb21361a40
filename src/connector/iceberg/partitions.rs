//! The partitions that a table has now, for SHOW PARTITIONS: as texts, sorted by their values.

use std::cmp::Ordering;

use iceberg::spec::{Literal, PrimitiveLiteral};

use super::partition_text::partition_text;
use super::partition_type::{spec_columns, spec_of};
use super::scan::{LiveFile, live_files};
use super::table::IcebergTable;
use crate::catalog::PartitionName;
use crate::error::Result;

/// The values of a partition.
type Values = Vec<Option<PrimitiveLiteral>>;

/// Returns the partitions that hold files. Dates are dates here, where Flink shows the number of the day.
///
/// # Errors
/// The table's manifests cannot be read.
pub(super) async fn list_partitions(table: &IcebergTable) -> Result<Vec<PartitionName>> {
    let metadata = table.metadata();
    let name = table.ident().to_string();
    let mut partitions: Vec<(i32, Values)> = Vec::new();
    // Files that were written before the table was partitioned are in none.
    let is_partitioned = |file: &LiveFile| !file.data.file.partition().fields().is_empty();
    for file in live_files(table, None).await?.iter().filter(|file| is_partitioned(file)) {
        let values = file.data.file.partition().fields().iter();
        let values = values.map(|value| value.as_ref().and_then(Literal::as_primitive_literal)).collect();
        partitions.push((file.data.spec_id, values));
    }
    partitions.sort_by(|left, right| left.0.cmp(&right.0).then_with(|| compare(&left.1, &right.1)));
    partitions.dedup();
    let mut names = Vec::with_capacity(partitions.len());
    for (spec_id, values) in partitions {
        let columns = spec_columns(metadata, spec_of(metadata, spec_id, &name)?)?;
        let text = |(column, value): (&super::partition_type::PartitionColumn, &Option<PrimitiveLiteral>)| {
            (column.name.clone(), partition_text(column.transform, &column.data_type, value.as_ref()))
        };
        names.push(columns.iter().zip(&values).map(text).collect());
    }
    Ok(names)
}

/// Compares values one after the other; NULL comes first.
fn compare(left: &Values, right: &Values) -> Ordering {
    left.partial_cmp(right).unwrap_or(Ordering::Equal)
}
