//! Keys that are looked for, against what is known of a file or a row group before it is read.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::compute::{and_kleene, is_not_null};
use arrow::datatypes::{DataType as ArrowType, Date32Type, Int32Type, Int64Type, TimestampMicrosecondType};
use iceberg::spec::Type;
use parquet::bloom_filter::Sbbf;

use super::columns::ReadColumn;
use super::prune::BoundValue;
use crate::connector::iceberg::literal_value::scalar;
use crate::connector::iceberg::manifest::TableFile;
use crate::error::Result;

/// The least and the greatest value of a key column, one row each; None if they are not known.
pub(super) type KeyBounds = Option<(ArrayRef, ArrayRef)>;

/// Returns which of the keys lie between the bounds of all columns; a key with NULL may always be there.
///
/// # Errors
/// Bounds are of another type than keys.
pub(super) fn between(keys: &RecordBatch, bounds: &[KeyBounds]) -> Result<BooleanArray> {
    let mut inside = BooleanArray::from(vec![true; keys.num_rows()]);
    for (column, bounds) in keys.columns().iter().zip(bounds) {
        // FLOAT and DOUBLE are no keys, and their bounds leave NaN out.
        let (Some((least, greatest)), false) = (bounds, column.data_type().is_floating()) else { continue };
        if least.is_valid(0) {
            inside = and_kleene(&inside, &gt_eq(column, &Scalar::new(ArrayRef::clone(least)))?)?;
        }
        if greatest.is_valid(0) {
            inside = and_kleene(&inside, &lt_eq(column, &Scalar::new(ArrayRef::clone(greatest)))?)?;
        }
    }
    if inside.null_count() > 0 {
        let known = is_not_null(&inside)?;
        let all = (0..inside.len()).map(|row| !known.value(row) || inside.value(row)).collect::<Vec<_>>();
        inside = BooleanArray::from(all);
    }
    Ok(inside)
}

/// Returns the bounds of key columns that a manifest knows of a file.
pub(super) fn bounds_of_file(file: &TableFile, columns: &[ReadColumn]) -> Vec<KeyBounds> {
    let bound = |column: &ReadColumn, upper: bool| {
        let bounds = if upper { file.file.upper_bounds() } else { file.file.lower_bounds() };
        let (bound, Type::Primitive(primitive)) = (bounds.get(&column.id)?, &column.iceberg) else {
            return None;
        };
        // Some bounds are in an order that writers do not agree on.
        BoundValue::of_datum(bound, primitive)?;
        let value = scalar(bound.literal(), &column.iceberg, column.field.data_type()).ok()?;
        value.to_array().ok()
    };
    columns.iter().map(|column| Some((bound(column, false)?, bound(column, true)?))).collect()
}

/// Returns whether one of the candidates may be in a row group, by the filters of its columns; None where there is no filter.
pub(super) fn may_contain(keys: &RecordBatch, candidates: &BooleanArray, filters: &[Option<Sbbf>]) -> bool {
    let mut rows = (0..keys.num_rows()).filter(|row| candidates.value(*row));
    rows.any(|row| {
        let mut columns = keys.columns().iter().zip(filters);
        columns.all(|(column, filter)| filter.as_ref().is_none_or(|filter| may_hold(filter, column, row)))
    })
}

/// Asks a filter for one value; of types that it is not asked for it says yes.
fn may_hold(filter: &Sbbf, column: &ArrayRef, row: usize) -> bool {
    if column.is_null(row) {
        return true;
    }
    match column.data_type() {
        ArrowType::Int32 => filter.check(&column.as_primitive::<Int32Type>().value(row)),
        ArrowType::Int64 => filter.check(&column.as_primitive::<Int64Type>().value(row)),
        ArrowType::Date32 => filter.check(&column.as_primitive::<Date32Type>().value(row)),
        ArrowType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => {
            filter.check(&column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        ArrowType::Utf8 => filter.check(column.as_string::<i32>().value(row)),
        ArrowType::Binary => filter.check(column.as_binary::<i32>().value(row)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use iceberg::spec::{
        DataContentType, DataFileBuilder, DataFileFormat, Datum, NestedField, PrimitiveType, Struct,
    };

    use super::*;

    #[test]
    fn bounds_of_uuids_are_not_believed() {
        let bound = |number: u128| {
            let bound = Datum::uuid(uuid::Uuid::from_u128(number));
            HashMap::from([(1, bound), (2, Datum::long(7))])
        };
        let mut file = DataFileBuilder::default();
        file.content(DataContentType::Data)
            .file_path("f".to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .record_count(2)
            .file_size_in_bytes(1)
            // Java takes the half above for a negative number.
            .lower_bounds(bound(1 << 127))
            .upper_bounds(bound(1));
        let file = TableFile { spec_id: 0, file: file.build().unwrap() };
        let column = |id, column| {
            ReadColumn::of_field(&NestedField::optional(id, "k", Type::Primitive(column))).unwrap()
        };
        let bounds = bounds_of_file(&file, &[column(1, PrimitiveType::Uuid), column(2, PrimitiveType::Long)]);
        assert_eq!((bounds[0].is_none(), bounds[1].is_some()), (true, true));
    }

    #[test]
    fn keys_outside_of_the_bounds_of_one_column_are_not_there() {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(5), None, Some(5)]));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["b", "z", "b", "b"]));
        let keys = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
        let numbers = |value: i64| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let texts = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value])) };
        let bounds = [Some((numbers(3), numbers(9))), Some((texts("a"), texts("c")))];
        let inside: Vec<bool> = between(&keys, &bounds).unwrap().iter().flatten().collect();
        assert_eq!(inside, [false, false, true, true]);
        let inside: Vec<bool> = between(&keys, &[None, None]).unwrap().iter().flatten().collect();
        assert_eq!(inside, [true; 4]);
    }
}
