//! The partitions that a table has now, for SHOW PARTITIONS: as texts, sorted by their values.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{Literal, PrimitiveLiteral, Struct};

use super::manifest::{PartitionKey, TableFile};
use super::partition::{PartitionColumn, partition_text, spec_columns, spec_of};
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
    let mut partitions: HashMap<PartitionKey, Arc<TableFile>> = HashMap::new();
    // Files that were written before the table was partitioned are in none.
    let is_partitioned = |file: &LiveFile| !file.data.file.partition().fields().is_empty();
    for file in live_files(table, None).await?.into_iter().filter(is_partitioned) {
        partitions.entry(file.data.partition_key()).or_insert(file.data);
    }
    let mut partitions: Vec<(Values, Arc<TableFile>)> =
        partitions.into_iter().map(|(key, file)| (values_of(key.values()), file)).collect();
    partitions
        .sort_by(|left, right| left.1.spec_id.cmp(&right.1.spec_id).then_with(|| compare(&left.0, &right.0)));
    let mut names = Vec::with_capacity(partitions.len());
    for (_, file) in partitions {
        let columns = spec_columns(metadata, spec_of(metadata, file.spec_id, &name)?)?;
        let text = |(column, value): (&PartitionColumn, &Option<PrimitiveLiteral>)| {
            (column.name.clone(), partition_text(column.transform, &column.data_type, value.as_ref()))
        };
        names.push(columns.iter().zip(&values_of(file.file.partition())).map(text).collect());
    }
    Ok(names)
}

fn values_of(partition: &Struct) -> Values {
    partition.fields().iter().map(|value| value.as_ref().and_then(Literal::as_primitive_literal)).collect()
}

/// Compares values one after the other; NULL comes first.
fn compare(left: &Values, right: &Values) -> Ordering {
    left.partial_cmp(right).unwrap_or(Ordering::Equal)
}
