//! How a column in Flink's Arrow types becomes one in those of Iceberg's files, at every level of nesting.
//!
//! What a file has no NULL for loses its NULLs only where nothing can see them: kernels may leave them behind a NULL parent.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, make_array, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields, TimeUnit};

use crate::connector::iceberg::type_mapping::arrow_type_name;
use crate::error::{Error, Result};

/// How a column is converted.
#[derive(Debug, Clone)]
pub(super) enum ColumnConversion {
    /// It is what it should be.
    Same,
    /// Each value becomes one of another type.
    Cast(ArrowType),
    /// An array's elements are converted.
    List(FieldRef, Box<ColumnConversion>),
    /// A map's keys and values are converted.
    Map { entries: FieldRef, fields: Fields, key: Box<ColumnConversion>, value: Box<ColumnConversion> },
    /// The fields of a row, found by name; None for one that is not there.
    Struct(Fields, Vec<Option<(usize, ColumnConversion)>>),
}

impl ColumnConversion {
    /// Plans the conversion of a type to the one of a file's field; None if values of the one are not always values of the other.
    pub(super) fn new(from: &ArrowType, to: &Field) -> Option<ColumnConversion> {
        match (from, to.data_type()) {
            (ArrowType::List(from), ArrowType::List(to)) => {
                let element = ColumnConversion::new(from.data_type(), to)?;
                Some(ColumnConversion::List(Arc::clone(to), Box::new(element)))
            }
            (ArrowType::Map(from, _), ArrowType::Map(entries, _)) => {
                let (ArrowType::Struct(from), ArrowType::Struct(fields)) =
                    (from.data_type(), entries.data_type())
                else {
                    return None;
                };
                Some(ColumnConversion::Map {
                    key: Box::new(ColumnConversion::new(from.first()?.data_type(), fields.first()?)?),
                    value: Box::new(ColumnConversion::new(from.get(1)?.data_type(), fields.get(1)?)?),
                    entries: Arc::clone(entries),
                    fields: fields.clone(),
                })
            }
            (ArrowType::Struct(from), ArrowType::Struct(to)) => {
                let all_known = from.iter().all(|field| to.find(field.name()).is_some());
                let field = |to: &FieldRef| match from.find(to.name()) {
                    Some((at, from)) => Some(Some((at, ColumnConversion::new(from.data_type(), to)?))),
                    None => to.is_nullable().then_some(None),
                };
                let fields = to.iter().map(field).collect::<Option<_>>()?;
                all_known.then(|| ColumnConversion::Struct(to.clone(), fields))
            }
            (from, to) if from == to => Some(ColumnConversion::Same),
            (from, to) if is_widening(from, to) => Some(ColumnConversion::Cast(to.clone())),
            _ => None,
        }
    }

    /// Converts a column.
    ///
    /// # Errors
    /// A value does not fit.
    pub(super) fn apply(&self, column: &ArrayRef) -> Result<ArrayRef> {
        match self {
            ColumnConversion::Same => Ok(Arc::clone(column)),
            ColumnConversion::Cast(to) => {
                let options = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(column, to, &options).map_err(|error| {
                    Error::data(format!("a value does not fit {}", arrow_type_name(to))).caused_by(error)
                })
            }
            ColumnConversion::List(field, element) => {
                let list = column.as_list_opt::<i32>().ok_or_else(unexpected)?;
                let (offsets, values) = trimmed(list.offsets(), list.values());
                let values = element.apply(&values)?;
                let values = required(field, values, |row| is_seen(row, &offsets, list.nulls()))?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, list.nulls().cloned())?))
            }
            ColumnConversion::Map { entries, fields, key, value } => {
                let map = column.as_map_opt().ok_or_else(unexpected)?;
                let (offsets, keys) = trimmed(map.offsets(), map.keys());
                let (_, values) = trimmed(map.offsets(), map.values());
                let is_seen = |row| is_seen(row, &offsets, map.nulls());
                let keys = required(&fields[0], key.apply(&keys)?, is_seen)?;
                let values = required(&fields[1], value.apply(&values)?, is_seen)?;
                let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
                let (entries, nulls) = (Arc::clone(entries), map.nulls().cloned());
                Ok(Arc::new(MapArray::try_new(entries, offsets, pairs, nulls, false)?))
            }
            ColumnConversion::Struct(fields, sources) => {
                let row = column.as_struct_opt().ok_or_else(unexpected)?;
                let child = |(field, source): (&FieldRef, &Option<(usize, ColumnConversion)>)| match source {
                    Some((at, conversion)) => {
                        let converted = conversion.apply(row.column(*at))?;
                        required(field, converted, |at| row.is_valid(at))
                    }
                    None => Ok(new_null_array(field.data_type(), row.len())),
                };
                let children = fields.iter().zip(sources).map(child).collect::<Result<Vec<_>>>()?;
                let nulls = row.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), children, nulls, row.len())?))
            }
        }
    }
}

/// Returns whether every value of one type is a value of the other.
fn is_widening(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType as T;
    let is_finer = |from: &TimeUnit, to: &TimeUnit| from <= to;
    match (from, to) {
        (T::Null, _)
        | (T::Int8 | T::Int16, T::Int32 | T::Int64)
        | (T::Int32, T::Int64)
        | (T::Float32, T::Float64)
        | (T::Time32(TimeUnit::Millisecond), T::Time64(TimeUnit::Microsecond))
        | (T::Binary, T::LargeBinary | T::FixedSizeBinary(_)) => true,
        (T::Decimal128(from, from_scale), T::Decimal128(to, to_scale)) => {
            from <= to && from_scale == to_scale
        }
        (T::Timestamp(from, None), T::Timestamp(to, None))
        | (T::Timestamp(from, Some(_)), T::Timestamp(to, Some(_))) => is_finer(from, to),
        _ => false,
    }
}

fn unexpected() -> Error {
    Error::internal("a column does not have the type that was planned")
}

/// Returns the part of a child that its lists refer to, and their offsets in it.
fn trimmed(offsets: &OffsetBuffer<i32>, values: &ArrayRef) -> (OffsetBuffer<i32>, ArrayRef) {
    let (Some(first), Some(last)) = (offsets.first().copied(), offsets.last().copied()) else {
        return (offsets.clone(), Arc::clone(values));
    };
    if first == 0 && last as usize == values.len() {
        return (offsets.clone(), Arc::clone(values));
    }
    let moved: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    (OffsetBuffer::new(moved.into()), values.slice(first as usize, (last - first) as usize))
}

/// Returns whether an element is in a list that is not NULL.
fn is_seen(element: usize, offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>) -> bool {
    let list = offsets.partition_point(|offset| *offset as usize <= element) - 1;
    nulls.is_none_or(|nulls| nulls.is_valid(list))
}

/// Takes the NULLs from a column that has none to show.
fn required(field: &Field, column: ArrayRef, is_seen: impl Fn(usize) -> bool) -> Result<ArrayRef> {
    let Some(nulls) = column.nulls().filter(|nulls| !field.is_nullable() && nulls.null_count() > 0) else {
        return Ok(column);
    };
    if (0..column.len()).any(|row| nulls.is_null(row) && is_seen(row)) {
        return Err(Error::data(format!("'{}' is required and cannot be NULL", field.name())));
    }
    Ok(make_array(column.to_data().into_builder().nulls(None).build()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray, Time32MillisecondArray,
    };
    use arrow::datatypes::Int64Type;

    fn field(data_type: ArrowType) -> Field {
        Field::new("c", data_type, true)
    }

    fn convert(column: impl Array + 'static, to: &ArrowType) -> Result<ArrayRef> {
        let column: ArrayRef = Arc::new(column);
        let conversion = ColumnConversion::new(column.data_type(), &field(to.clone()));
        conversion.ok_or_else(unexpected)?.apply(&column)
    }

    fn list(element: Field) -> ArrowType {
        ArrowType::List(Arc::new(element))
    }

    #[test]
    fn values_are_widened_and_never_narrowed() {
        assert!(convert(Int32Array::from(vec![1]), &ArrowType::Int64).is_ok());
        assert!(convert(Int64Array::from(vec![1]), &ArrowType::Int32).is_err());
        let time = convert(
            Time32MillisecondArray::from(vec![Some(86_399_999), None]),
            &ArrowType::Time64(TimeUnit::Microsecond),
        );
        assert_eq!(time.unwrap().to_data().buffer::<i64>(0)[0], 86_399_999_000);
        let (wide, narrow) = (ArrowType::Decimal128(12, 2), ArrowType::Decimal128(10, 2));
        assert!(ColumnConversion::new(&narrow, &field(wide.clone())).is_some());
        assert!(ColumnConversion::new(&wide, &field(narrow.clone())).is_none());
        assert!(ColumnConversion::new(&ArrowType::Decimal128(10, 1), &field(narrow)).is_none());
        let timestamp = |unit, zone: Option<&str>| ArrowType::Timestamp(unit, zone.map(Into::into));
        let micros = || timestamp(TimeUnit::Microsecond, None);
        assert!(ColumnConversion::new(&timestamp(TimeUnit::Millisecond, None), &field(micros())).is_some());
        assert!(ColumnConversion::new(&timestamp(TimeUnit::Nanosecond, None), &field(micros())).is_none());
        assert!(
            ColumnConversion::new(&timestamp(TimeUnit::Microsecond, Some("UTC")), &field(micros())).is_none()
        );
    }

    #[test]
    fn bytes_of_another_length_do_not_become_null() {
        let fixed = ArrowType::FixedSizeBinary(2);
        let bytes = || BinaryArray::from_opt_vec(vec![Some(b"ab".as_slice()), None]);
        assert_eq!(convert(bytes(), &fixed).unwrap().null_count(), 1);
        let error = convert(BinaryArray::from_vec(vec![b"abc"]), &fixed).unwrap_err();
        assert_eq!(error.message(), "a value does not fit BINARY(2)");
    }

    #[test]
    fn elements_are_converted_and_only_those_of_the_slice() {
        let lists = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>(vec![
            Some(vec![Some(1), Some(2)]),
            Some(vec![Some(3)]),
            None,
            Some(vec![None]),
        ]);
        let to = list(Field::new("element", ArrowType::Int64, true));
        let converted = convert(lists.slice(1, 3), &to).unwrap();
        let converted = converted.as_list::<i32>();
        assert_eq!(converted.values().as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(3), None]));
        assert_eq!((converted.value_length(0), converted.is_null(1)), (1, true));
        let strict = list(Field::new("element", ArrowType::Int64, false));
        assert_eq!(
            convert(lists.clone(), &strict).unwrap_err().message(),
            "'element' is required and cannot be NULL"
        );
        assert!(convert(lists.slice(0, 3), &strict).is_ok());
    }

    #[test]
    fn a_null_behind_a_null_parent_is_nothing_to_complain_about() {
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let fields: Fields = vec![Field::new("x", ArrowType::Int32, true)].into();
        let rows = |valid: Vec<bool>| {
            StructArray::new(fields.clone(), vec![Arc::clone(&inner)], Some(NullBuffer::from(valid)))
        };
        let to = ArrowType::Struct(vec![Field::new("x", ArrowType::Int32, false)].into());
        assert!(convert(rows(vec![true, false]), &to).is_ok());
        assert!(convert(rows(vec![true, true]), &to).is_err());
    }

    #[test]
    fn fields_of_rows_are_found_by_name() {
        let (a, b): (ArrayRef, ArrayRef) =
            (Arc::new(Int32Array::from(vec![1])), Arc::new(StringArray::from(vec!["b"])));
        let rows: StructArray = RecordBatch::try_from_iter([("b", b), ("a", Arc::clone(&a))]).unwrap().into();
        let to = |names: &[(&str, bool)]| {
            let fields = names.iter().map(|(name, nullable)| {
                let data_type = if *name == "b" { ArrowType::Utf8 } else { ArrowType::Int64 };
                Field::new(*name, data_type, *nullable)
            });
            ArrowType::Struct(fields.collect())
        };
        let converted = convert(rows.clone(), &to(&[("a", true), ("b", true), ("new", true)])).unwrap();
        let converted = converted.as_struct();
        assert_eq!(converted.column(0).as_primitive::<Int64Type>().value(0), 1);
        assert_eq!(converted.column(2).null_count(), 1);
        assert!(convert(rows.clone(), &to(&[("a", true), ("b", true), ("new", false)])).is_err());
        assert!(convert(rows, &to(&[("a", true)])).is_err(), "a field that the table does not have");
    }
}
