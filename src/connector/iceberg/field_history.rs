//! Columns of a table through all its schemas: files, deletes and partition specs may be about one that was dropped.

use std::cmp::Reverse;

use iceberg::spec::{NestedFieldRef, SchemaRef, TableMetadata};

/// Returns the schemas that a table has had: the current one, and then the others, newest first.
pub(super) fn schemas_newest_first(metadata: &TableMetadata) -> impl Iterator<Item = &SchemaRef> {
    let mut schemas: Vec<&SchemaRef> = metadata.schemas_iter().collect();
    let current = metadata.current_schema_id();
    schemas.sort_by_key(|schema| (schema.schema_id() != current, Reverse(schema.schema_id())));
    schemas.into_iter()
}

/// Returns a column, or a field within one, as it is now; if it was dropped, as it was last.
pub(super) fn field_of_any_schema(metadata: &TableMetadata, id: i32) -> Option<&NestedFieldRef> {
    of_any_schema(metadata, |schema| schema.field_by_id(id))
}

/// Returns a column as it is now; if it was dropped, as it was last. Fields within columns are not looked at.
pub(super) fn column_of_any_schema(metadata: &TableMetadata, id: i32) -> Option<&NestedFieldRef> {
    of_any_schema(metadata, |schema| schema.as_struct().field_by_id(id))
}

fn of_any_schema<'a>(
    metadata: &'a TableMetadata,
    find: impl Fn(&'a SchemaRef) -> Option<&'a NestedFieldRef>,
) -> Option<&'a NestedFieldRef> {
    // Nearly always it is there now, and nothing is to be sorted.
    find(metadata.current_schema()).or_else(|| schemas_newest_first(metadata).find_map(find))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use iceberg::spec::{
        FormatVersion, NestedField, PartitionSpec, PrimitiveType, Schema, SortOrder, TableMetadataBuilder,
        Type,
    };

    use super::*;

    #[test]
    fn a_column_that_was_dropped_is_as_it_was_last() {
        let schema = |columns: &[(i32, &str, PrimitiveType)]| {
            let field = |(id, name, column): &(i32, &str, PrimitiveType)| {
                NestedField::optional(*id, *name, Type::Primitive(column.clone())).into()
            };
            Schema::builder().with_fields(columns.iter().map(field)).build().unwrap()
        };
        let (id, p) = ((1, "id", PrimitiveType::Int), |column| (2, "p", column));
        let first = schema(&[id.clone(), p(PrimitiveType::Int)]);
        let spec = PartitionSpec::unpartition_spec().into_unbound();
        let order = SortOrder::unsorted_order();
        let version = FormatVersion::V2;
        let mut builder =
            TableMetadataBuilder::new(first, spec, order, "t".to_owned(), version, HashMap::new()).unwrap();
        for columns in [&[id.clone(), p(PrimitiveType::Long)][..], std::slice::from_ref(&id)] {
            builder = builder.add_current_schema(schema(columns)).unwrap();
        }
        let metadata = builder.build().unwrap().metadata;
        let found = |id| field_of_any_schema(&metadata, id).map(|field| (*field.field_type).clone());
        assert_eq!(found(2), Some(Type::Primitive(PrimitiveType::Long)));
        assert_eq!(column_of_any_schema(&metadata, 2).map(|field| field.name.as_str()), Some("p"));
        assert_eq!(found(3), None);
    }
}
