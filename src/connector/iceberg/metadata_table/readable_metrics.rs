//! The column `readable_metrics`: what is known of each column of a file, with bounds in the column's own type.

use iceberg::spec::{DataFile, PrimitiveType, Schema, Type};

use super::super::type_mapping::to_flink;
use super::cell::Cell;
use super::schema::field;
use crate::schema::{Field, TypeRoot};

/// The metrics of a table's columns.
pub(super) struct ReadableMetrics {
    /// Full name, number and type of each column that is not nested itself, in the order of the names.
    columns: Vec<(String, i32, PrimitiveType)>,
}

impl ReadableMetrics {
    /// Returns the metrics of a schema's columns.
    pub(super) fn of(schema: &Schema) -> ReadableMetrics {
        let mut columns = Vec::new();
        for id in 1..=schema.highest_field_id() {
            if let (Some(field), Some(name)) = (schema.field_by_id(id), schema.name_by_field_id(id))
                && let Type::Primitive(data_type) = field.field_type.as_ref()
            {
                columns.push((name.to_owned(), id, data_type.clone()));
            }
        }
        columns.sort_by(|left, right| left.0.cmp(&right.0));
        ReadableMetrics { columns }
    }

    /// Returns the type of the column.
    pub(super) fn row_type(&self) -> TypeRoot {
        let columns = self.columns.iter().map(|(name, _, data_type)| {
            let count = |name, comment| field(name, TypeRoot::BigInt.nullable(), comment);
            let bound = to_flink(&Type::Primitive(data_type.clone()), false);
            let metrics: Vec<Field> = vec![
                count("column_size", "Total size on disk"),
                count("value_count", "Total count, including null and NaN"),
                count("null_value_count", "Null value count"),
                count("nan_value_count", "NaN value count"),
                field("lower_bound", bound.clone(), "Lower bound"),
                field("upper_bound", bound, "Upper bound"),
            ];
            field(name, TypeRoot::Row(metrics).nullable(), format!("Metrics for column {name}"))
        });
        TypeRoot::Row(columns.collect())
    }

    /// Returns the metrics of a file.
    pub(super) fn cell(&self, file: &DataFile) -> Cell {
        let of_column = |(_, id, data_type): &(String, i32, PrimitiveType)| {
            let count = |counts: &std::collections::HashMap<i32, u64>| {
                Cell::optional(counts.get(id), |count| Cell::count(*count))
            };
            let bound = |bounds: &std::collections::HashMap<i32, iceberg::spec::Datum>| {
                Cell::optional(bounds.get(id), |bound| Cell::primitive(bound.literal(), data_type))
            };
            Cell::Row(vec![
                count(file.column_sizes()),
                count(file.value_counts()),
                count(file.null_value_counts()),
                count(file.nan_value_counts()),
                bound(file.lower_bounds()),
                bound(file.upper_bounds()),
            ])
        };
        Cell::Row(self.columns.iter().map(of_column).collect())
    }
}
