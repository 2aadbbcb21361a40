//! Rules out manifests and files in which no row can fulfil a query's conditions: by the partitions, each file's by its own spec, and by
//! the bounds of its columns.

use std::collections::HashMap;

use iceberg::spec::{Datum, FieldSummary, ManifestFile, PrimitiveType, TableMetadata, Transform, Type};

use super::bounds::{BoundValue, Bounds, Test};
use super::condition::{ColumnTest, Condition};
use crate::connector::iceberg::field_history::field_of_any_schema;
use crate::connector::iceberg::manifest::TableFile;

/// The conditions of a scan, ready to be asked.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct Pruning {
    condition: Condition,
    specs: HashMap<i32, Vec<PartitionField>>,
}

/// A field of a partition spec.
#[derive(Debug)]
struct PartitionField {
    source_id: i32,
    transform: Transform,
    /// The type of the partition's values; None if the column is gone from all schemas.
    value: Option<PrimitiveType>,
}

impl Pruning {
    /// Prepares conditions for the files of a table.
    pub(in crate::connector::iceberg::scan) fn new(
        condition: Condition,
        metadata: &TableMetadata,
    ) -> Pruning {
        let fields = |spec: &iceberg::spec::PartitionSpecRef| {
            let field = |field: &iceberg::spec::PartitionField| {
                let source = field_of_any_schema(metadata, field.source_id);
                let value = source.and_then(|source| field.transform.result_type(&source.field_type).ok());
                let value = match value {
                    Some(Type::Primitive(value)) => Some(value),
                    _ => None,
                };
                PartitionField { source_id: field.source_id, transform: field.transform, value }
            };
            spec.fields().iter().map(field).collect()
        };
        let specs = metadata.partition_specs_iter().map(|spec| (spec.spec_id(), fields(spec))).collect();
        Pruning { condition, specs }
    }

    /// Returns whether a manifest may list files with wanted rows.
    pub(in crate::connector::iceberg::scan) fn may_match_manifest(&self, manifest: &ManifestFile) -> bool {
        let (Some(fields), Some(summaries)) =
            (self.specs.get(&manifest.partition_spec_id), &manifest.partitions)
        else {
            return true;
        };
        self.condition.may_hold(&|test| {
            fields
                .iter()
                .zip(summaries)
                .all(|(field, summary)| field.may_hold(test, |value| bounds_of_summary(summary, value)))
        })
    }

    /// Returns whether the partition of a file may hold wanted rows.
    pub(in crate::connector::iceberg::scan) fn may_match_partition(&self, file: &TableFile) -> bool {
        self.condition.may_hold(&|test| self.partition_may_hold(test, file))
    }

    /// Returns whether a data file may hold wanted rows.
    pub(in crate::connector::iceberg::scan) fn may_match_file(&self, file: &TableFile) -> bool {
        self.condition.may_hold(&|test| {
            self.partition_may_hold(test, file) && test.test.may_hold(&bounds_of_column(file, test))
        })
    }

    fn partition_may_hold(&self, test: &ColumnTest, file: &TableFile) -> bool {
        let Some(fields) = self.specs.get(&file.spec_id) else { return true };
        fields.iter().zip(file.file.partition().iter()).all(|(field, partition)| {
            field.may_hold(test, |_| match partition {
                None => Some(Bounds::NULL),
                Some(value) => {
                    let value = BoundValue::of_literal(&value.as_primitive_literal()?)?;
                    Some(Bounds::of_value(Some(value)))
                }
            })
        })
    }
}

impl PartitionField {
    /// Returns whether the test of a column can hold, given what is known of the partition's values.
    fn may_hold(&self, test: &ColumnTest, bounds: impl FnOnce(&PrimitiveType) -> Option<Bounds>) -> bool {
        if test.id != self.source_id {
            return true;
        }
        let (Some(projected), Some(value)) = (self.project(test), &self.value) else { return true };
        bounds(value).is_none_or(|bounds| projected.may_hold(&bounds))
    }

    fn project(&self, test: &ColumnTest) -> Option<Test> {
        super::projection::project(&self.transform, &test.column, &test.test)
    }
}

/// Reads what a manifest list says of one partition field. The type of an identity partition may have been widened since.
fn bounds_of_summary(summary: &FieldSummary, value: &PrimitiveType) -> Option<Bounds> {
    let bound = |bytes: Option<&[u8]>| {
        let datum = Datum::try_from_bytes(bytes?, value.clone()).ok()?;
        BoundValue::of_datum(&datum, value)
    };
    let (lower, upper) = (
        bound(summary.lower_bound.as_deref().map(Vec::as_slice)),
        bound(summary.upper_bound.as_deref().map(Vec::as_slice)),
    );
    let all_null = summary.contains_null
        && summary.contains_nan == Some(false)
        && summary.lower_bound.is_none()
        && summary.upper_bound.is_none();
    Some(Bounds { lower, upper, may_be_null: summary.contains_null, all_null })
}

/// Returns what a manifest says of a column of a file.
fn bounds_of_column(file: &TableFile, test: &ColumnTest) -> Bounds {
    let (file, id) = (&file.file, test.id);
    let bound = |bounds: &HashMap<i32, Datum>| {
        bounds.get(&id).and_then(|datum| BoundValue::of_datum(datum, &test.column))
    };
    let nulls = file.null_value_counts().get(&id).copied();
    let values = file.value_counts().get(&id).copied();
    Bounds {
        lower: bound(file.lower_bounds()),
        upper: bound(file.upper_bounds()),
        may_be_null: nulls != Some(0),
        all_null: nulls.is_some() && nulls == values && values != Some(0),
    }
}
