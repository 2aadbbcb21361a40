//! Casts of arrays, maps and rows: the elements are cast, the shape stays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::datatypes::DataType as ArrowType;

use super::super::EvalContext;
use super::cast as cast_column;
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// Casts a nested column.
pub(super) fn cast(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
    try_cast: bool,
    context: &EvalContext,
) -> Result<ArrayRef> {
    let mismatch = || Error::internal(format!("a cast from {from} got {}", array.data_type()));
    match (&from.root, &to.root, to.to_arrow()) {
        (TypeRoot::Array(from), TypeRoot::Array(to), ArrowType::List(field)) => {
            let list = array.as_list_opt::<i32>().ok_or_else(mismatch)?;
            let values = cast_column(list.values(), from, to, try_cast, context)?;
            Ok(Arc::new(ListArray::try_new(field, list.offsets().clone(), values, list.nulls().cloned())?))
        }
        (
            TypeRoot::Map(from_key, from_value),
            TypeRoot::Map(to_key, to_value),
            ArrowType::Map(entries, is_sorted),
        ) => {
            let map = array.as_map_opt().ok_or_else(mismatch)?;
            let keys = cast_column(map.keys(), from_key, to_key, try_cast, context)?;
            let values = cast_column(map.values(), from_value, to_value, try_cast, context)?;
            let ArrowType::Struct(fields) = entries.data_type() else { return Err(mismatch()) };
            let columns = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Ok(Arc::new(MapArray::try_new(entries, offsets, columns, nulls, is_sorted)?))
        }
        (TypeRoot::Row(from), TypeRoot::Row(to), ArrowType::Struct(fields)) => {
            let row = array.as_struct_opt().ok_or_else(mismatch)?;
            if row.num_columns() != from.len() || from.len() != to.len() {
                return Err(mismatch());
            }
            let columns = row
                .columns()
                .iter()
                .zip(from.iter().zip(to))
                .map(|(column, (from, to))| {
                    cast_column(column, &from.data_type, &to.data_type, try_cast, context)
                })
                .collect::<Result<Vec<ArrayRef>>>()?;
            if columns.is_empty() {
                return Ok(Arc::new(StructArray::new_empty_fields(row.len(), row.nulls().cloned())));
            }
            Ok(Arc::new(StructArray::try_new(fields, columns, row.nulls().cloned())?))
        }
        _ => Err(mismatch()),
    }
}
