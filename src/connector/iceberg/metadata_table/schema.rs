//! Short ways to write the columns of metadata tables.

use super::super::partition::PartitionColumn;
use super::super::type_mapping::to_flink;
use crate::schema::{Column, DataType, Field, TypeRoot};

/// A column that is never NULL.
pub(super) fn required(name: &str, root: TypeRoot) -> Column {
    Column::physical(name, root.not_null())
}

/// A column that may be NULL.
pub(super) fn optional(name: &str, root: TypeRoot) -> Column {
    Column::physical(name, root.nullable())
}

/// An instant.
pub(super) const INSTANT: TypeRoot = TypeRoot::TimestampLtz(6);

/// `MAP<key NOT NULL, value NOT NULL>`.
pub(super) fn map_of(key: TypeRoot, value: TypeRoot) -> TypeRoot {
    TypeRoot::Map(Box::new(key.not_null()), Box::new(value.not_null()))
}

/// `ARRAY<item NOT NULL>`.
pub(super) fn list_of(item: TypeRoot) -> TypeRoot {
    TypeRoot::Array(Box::new(item.not_null()))
}

/// A field of a ROW with what it means.
pub(super) fn field(name: impl Into<String>, data_type: DataType, comment: impl Into<String>) -> Field {
    Field { name: name.into(), data_type, comment: Some(comment.into()) }
}

/// The ROW of partitions; None for a table that never had any, since an empty ROW is of no use.
pub(super) fn partition_row(columns: &[PartitionColumn]) -> Option<TypeRoot> {
    let fields = columns.iter().map(|column| {
        let data_type = to_flink(&iceberg::spec::Type::Primitive(column.data_type.clone()), false);
        Field::new(column.name.clone(), data_type)
    });
    (!columns.is_empty()).then(|| TypeRoot::Row(fields.collect()))
}
