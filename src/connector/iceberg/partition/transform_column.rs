//! Partition transforms over whole columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int32Array, LargeBinaryArray, PrimitiveArray, StringArray,
    new_null_array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, Float32Type, Float64Type,
    Int32Type, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use iceberg::spec::{Literal, PrimitiveType, Transform};
use uuid::Uuid;

use super::transform::{
    bucket_of_bytes, bucket_of_decimal, bucket_of_long, bucket_of_nanos, bytes_prefix, days_of_hours,
    hours_of_days, hours_of_micros, hours_of_nanos, months_of_hours, text_prefix, truncated_decimal,
    truncated_long, years_of_hours,
};
use crate::connector::iceberg::type_mapping::arrow_type_name;
use crate::error::{Error, Result};

/// Applies a transform to a column, whose Arrow type is that of the table's files.
///
/// # Errors
/// The transform is unknown, or takes no values of this type.
pub(in crate::connector::iceberg) fn transform_column(
    transform: Transform,
    column: &ArrayRef,
) -> Result<ArrayRef> {
    let transformed = match transform {
        Transform::Identity => Some(Arc::clone(column)),
        Transform::Void => Some(new_null_array(column.data_type(), column.len())),
        Transform::Bucket(count) => bucket_column(column, count),
        Transform::Truncate(width) => truncate_column(column, width),
        Transform::Year => per_hour(column, years_of_hours),
        Transform::Month => per_hour(column, months_of_hours),
        Transform::Day => per_hour(column, days_of_hours).map(|days| {
            Arc::new(days.as_primitive::<Int32Type>().reinterpret_cast::<Date32Type>()) as ArrayRef
        }),
        Transform::Hour if column.data_type() == &ArrowType::Date32 => None,
        Transform::Hour => per_hour(column, |hours| hours as i32),
        Transform::Unknown => {
            return Err(Error::unsupported("the partition spec has a transform that is not known")
                .hint("Another version of Iceberg has made it. Write the table with the engine that did."));
        }
    };
    transformed.ok_or_else(|| {
        let column = arrow_type_name(column.data_type());
        Error::unsupported(format!("partition transform {transform} takes no {column}"))
            .hint("Partition the table by another column, or by another transform of it.")
    })
}

/// Computes a number from the hours since 1970 of every date or timestamp; None for other columns.
fn per_hour(column: &ArrayRef, of: impl Fn(i64) -> i32) -> Option<ArrayRef> {
    let numbers: Int32Array = match column.data_type() {
        ArrowType::Date32 => column.as_primitive::<Date32Type>().unary(|days| of(hours_of_days(days))),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().unary(|micros| of(hours_of_micros(micros)))
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            column.as_primitive::<TimestampNanosecondType>().unary(|nanos| of(hours_of_nanos(nanos)))
        }
        _ => return None,
    };
    Some(Arc::new(numbers))
}

fn truncate_column(column: &ArrayRef, width: u32) -> Option<ArrayRef> {
    Some(match column.data_type() {
        ArrowType::Int32 => {
            let truncated = |value: i32| truncated_long(i64::from(value), width) as i32;
            Arc::new(column.as_primitive::<Int32Type>().unary::<_, Int32Type>(truncated))
        }
        ArrowType::Int64 => {
            let truncated = |value: i64| truncated_long(value, width);
            Arc::new(column.as_primitive::<Int64Type>().unary::<_, Int64Type>(truncated))
        }
        data_type @ ArrowType::Decimal128(..) => {
            let truncated = |value: i128| truncated_decimal(value, width);
            let values = column.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(truncated);
            Arc::new(values.with_data_type(data_type.clone()))
        }
        ArrowType::Utf8 => {
            let texts = column.as_string::<i32>().iter();
            Arc::new(texts.map(|text| text.map(|text| text_prefix(text, width))).collect::<StringArray>())
        }
        ArrowType::Binary => {
            let values = column.as_binary::<i32>().iter();
            let truncated = values.map(|value| value.map(|value| bytes_prefix(value, width)));
            Arc::new(truncated.collect::<BinaryArray>())
        }
        ArrowType::LargeBinary => {
            let values = column.as_binary::<i64>().iter();
            let truncated = values.map(|value| value.map(|value| bytes_prefix(value, width)));
            Arc::new(truncated.collect::<LargeBinaryArray>())
        }
        _ => return None,
    })
}

fn bucket_column(column: &ArrayRef, count: u32) -> Option<ArrayRef> {
    let of_long = |value: i64| bucket_of_long(value, count);
    let of_bytes = |value: Option<&[u8]>| value.map(|value| bucket_of_bytes(value, count));
    let buckets: Int32Array = match column.data_type() {
        ArrowType::Int32 => unary::<Int32Type>(column, |value| of_long(i64::from(value))),
        ArrowType::Date32 => unary::<Date32Type>(column, |value| of_long(i64::from(value))),
        ArrowType::Int64 => unary::<Int64Type>(column, of_long),
        ArrowType::Time64(TimeUnit::Microsecond) => unary::<Time64MicrosecondType>(column, of_long),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => unary::<TimestampMicrosecondType>(column, of_long),
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            unary::<TimestampNanosecondType>(column, |nanos| bucket_of_nanos(nanos, count))
        }
        ArrowType::Decimal128(..) => unary::<Decimal128Type>(column, |value| bucket_of_decimal(value, count)),
        ArrowType::Utf8 => {
            column.as_string::<i32>().iter().map(|text| of_bytes(text.map(str::as_bytes))).collect()
        }
        ArrowType::Binary => column.as_binary::<i32>().iter().map(of_bytes).collect(),
        ArrowType::LargeBinary => column.as_binary::<i64>().iter().map(of_bytes).collect(),
        ArrowType::FixedSizeBinary(_) => column.as_fixed_size_binary().iter().map(of_bytes).collect(),
        _ => return None,
    };
    Some(Arc::new(buckets))
}

fn unary<T: ArrowPrimitiveType>(column: &ArrayRef, of: impl Fn(T::Native) -> i32) -> Int32Array {
    column.as_primitive::<T>().unary(of)
}

/// Returns the value in a row of a transformed column as the crate has it; None for NULL.
///
/// # Errors
/// The column is not of this type.
pub(in crate::connector::iceberg) fn literal_at(
    column: &ArrayRef,
    row: usize,
    data_type: &PrimitiveType,
) -> Result<Option<Literal>> {
    if column.is_null(row) {
        return Ok(None);
    }
    let wrong =
        || Error::internal(format!("a partition value of type {data_type} is a {}", column.data_type()));
    let literal = match column.data_type() {
        ArrowType::Boolean => Literal::bool(column.as_boolean().value(row)),
        ArrowType::Int32 => Literal::int(at::<Int32Type>(column, row)),
        ArrowType::Int64 => Literal::long(at::<Int64Type>(column, row)),
        ArrowType::Float32 => Literal::float(at::<Float32Type>(column, row)),
        ArrowType::Float64 => Literal::double(at::<Float64Type>(column, row)),
        ArrowType::Date32 => Literal::date(at::<Date32Type>(column, row)),
        ArrowType::Time64(TimeUnit::Microsecond) => Literal::time(at::<Time64MicrosecondType>(column, row)),
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            Literal::timestamp(at::<TimestampMicrosecondType>(column, row))
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            Literal::timestamp(at::<TimestampNanosecondType>(column, row))
        }
        ArrowType::Decimal128(..) => Literal::decimal(at::<Decimal128Type>(column, row)),
        ArrowType::Utf8 => Literal::string(column.as_string::<i32>().value(row)),
        ArrowType::Binary => Literal::binary(column.as_binary::<i32>().value(row).to_vec()),
        ArrowType::LargeBinary => Literal::binary(column.as_binary::<i64>().value(row).to_vec()),
        ArrowType::FixedSizeBinary(_) => {
            let value = column.as_fixed_size_binary().value(row);
            match data_type {
                PrimitiveType::Uuid => Literal::uuid(Uuid::from_slice(value).map_err(|_| wrong())?),
                _ => Literal::fixed(value.to_vec()),
            }
        }
        _ => return Err(wrong()),
    };
    Ok(Some(literal))
}

fn at<T: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> T::Native {
    let values: &PrimitiveArray<T> = column.as_primitive();
    values.value(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::calendar::days_from_civil;
    use arrow::array::{
        Date32Array, Decimal128Array, FixedSizeBinaryArray, Int64Array, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampNanosecondArray,
    };

    fn ints(column: &ArrayRef) -> Vec<Option<i32>> {
        match column.data_type() {
            ArrowType::Date32 => column.as_primitive::<Date32Type>().iter().collect(),
            _ => column.as_primitive::<Int32Type>().iter().collect(),
        }
    }

    fn apply(transform: Transform, column: impl Array + 'static) -> Vec<Option<i32>> {
        ints(&transform_column(transform, &(Arc::new(column) as ArrayRef)).unwrap())
    }

    /// Returns the hash of the first value: the remainder by a number that no hash reaches.
    fn hash(column: impl Array + 'static) -> i32 {
        apply(Transform::Bucket(0x7fff_ffff), column)[0].unwrap()
    }

    /// Micros of 2017-11-16T22:31:08.
    fn instant() -> i64 {
        (days_from_civil(2017, 11, 16) * 86_400 + 22 * 3600 + 31 * 60 + 8) * 1_000_000
    }

    #[test]
    fn hashes_are_those_of_the_specification() {
        let positive = |hash: i32| hash & 0x7fff_ffff;
        assert_eq!(hash(Int32Array::from(vec![34])), 2_017_239_379);
        assert_eq!(hash(Int64Array::from(vec![34])), 2_017_239_379);
        let decimal = Decimal128Array::from(vec![1420]).with_precision_and_scale(9, 2).unwrap();
        assert_eq!(hash(decimal), positive(-500_754_589));
        let date = days_from_civil(2017, 11, 16) as i32;
        assert_eq!(hash(Date32Array::from(vec![date])), positive(-653_330_422));
        let time = (22 * 3600 + 31 * 60 + 8) * 1_000_000;
        assert_eq!(hash(Time64MicrosecondArray::from(vec![time])), positive(-662_762_989));
        assert_eq!(hash(TimestampMicrosecondArray::from(vec![instant()])), positive(-2_047_944_441));
        assert_eq!(hash(TimestampMicrosecondArray::from(vec![instant() + 1])), positive(-1_207_196_810));
        let nanos = TimestampNanosecondArray::from(vec![(instant() + 1) * 1000 + 1]);
        assert_eq!(hash(nanos), positive(-1_207_196_810));
        assert_eq!(hash(StringArray::from(vec!["iceberg"])), 1_210_000_089);
        let uuid = Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
        let uuid = FixedSizeBinaryArray::try_from_iter([uuid.as_bytes()].into_iter()).unwrap();
        assert_eq!(hash(uuid), 1_488_055_340);
        let bytes = [[0u8, 1, 2, 3]];
        assert_eq!(hash(FixedSizeBinaryArray::try_from_iter(bytes.iter()).unwrap()), positive(-188_683_207));
        assert_eq!(hash(LargeBinaryArray::from_vec(vec![&bytes[0]])), positive(-188_683_207));
    }

    #[test]
    fn buckets_of_one_number_are_equal_in_all_widths_and_null_stays_null() {
        assert_eq!(
            apply(Transform::Bucket(16), Int32Array::from(vec![Some(-7), None])),
            apply(Transform::Bucket(16), Int64Array::from(vec![Some(-7), None]))
        );
        // A nanosecond before 1970 is in the microsecond before 1970.
        assert_eq!(
            apply(Transform::Bucket(64), TimestampNanosecondArray::from(vec![-1])),
            apply(Transform::Bucket(64), TimestampMicrosecondArray::from(vec![-1]))
        );
    }

    #[test]
    fn times_before_1970_belong_to_the_unit_that_holds_them() {
        let micros = || TimestampMicrosecondArray::from(vec![Some(-1), Some(0), Some(instant()), None]);
        assert_eq!(apply(Transform::Year, micros()), [Some(-1), Some(0), Some(47), None]);
        assert_eq!(apply(Transform::Month, micros()), [Some(-1), Some(0), Some(574), None]);
        assert_eq!(apply(Transform::Day, micros()), [Some(-1), Some(0), Some(17_486), None]);
        assert_eq!(apply(Transform::Hour, micros()), [Some(-1), Some(0), Some(419_686), None]);
        let nanos = || TimestampNanosecondArray::from(vec![Some(-1), Some(instant() * 1000)]);
        assert_eq!(apply(Transform::Hour, nanos()), [Some(-1), Some(419_686)]);
        assert_eq!(apply(Transform::Month, nanos()), [Some(-1), Some(574)]);
        let dates = || Date32Array::from(vec![Some(-1), Some(17_486), Some(-366), None]);
        assert_eq!(apply(Transform::Year, dates()), [Some(-1), Some(47), Some(-2), None]);
        assert_eq!(apply(Transform::Month, dates()), [Some(-1), Some(574), Some(-13), None]);
        assert_eq!(apply(Transform::Day, dates()), [Some(-1), Some(17_486), Some(-366), None]);
        assert!(transform_column(Transform::Hour, &(Arc::new(dates()) as ArrayRef)).is_err());
    }

    #[test]
    fn what_is_behind_a_null_is_never_computed_wrong_enough_to_fail() {
        let nulls = arrow::buffer::NullBuffer::from(vec![false]);
        for transform in [Transform::Year, Transform::Month, Transform::Day, Transform::Hour] {
            for value in [i64::MIN, i64::MAX] {
                let hidden = TimestampMicrosecondArray::new(vec![value].into(), Some(nulls.clone()));
                assert_eq!(apply(transform, hidden), [None]);
            }
        }
    }

    #[test]
    fn truncation_goes_down_and_counts_code_points() {
        let numbers = Int32Array::from(vec![Some(1), Some(-1), Some(10), Some(i32::MIN), None]);
        assert_eq!(
            apply(Transform::Truncate(10), numbers),
            [Some(0), Some(-10), Some(10), Some(2_147_483_646), None]
        );
        let column: ArrayRef = Arc::new(Int64Array::from(vec![-1, 19]));
        let truncated = transform_column(Transform::Truncate(10), &column).unwrap();
        assert_eq!(truncated.as_primitive::<Int64Type>().values(), &[-10, 10]);
        let decimals = Decimal128Array::from(vec![1065, -1]).with_precision_and_scale(4, 2).unwrap();
        let truncated = transform_column(Transform::Truncate(50), &(Arc::new(decimals) as ArrayRef)).unwrap();
        assert_eq!(truncated.as_primitive::<Decimal128Type>().values(), &[1050, -50]);
        assert_eq!(truncated.data_type(), &ArrowType::Decimal128(4, 2));
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("iceberg"), Some("äöü€"), Some(""), None]));
        let truncated = transform_column(Transform::Truncate(3), &texts).unwrap();
        let texts: Vec<_> = truncated.as_string::<i32>().iter().collect();
        assert_eq!(texts, [Some("ice"), Some("äöü"), Some(""), None]);
        let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_vec(vec![&[1, 2, 3], &[4]]));
        let truncated = transform_column(Transform::Truncate(2), &bytes).unwrap();
        assert_eq!(truncated.as_binary::<i64>().value(0), [1, 2]);
    }

    #[test]
    fn an_unknown_transform_is_refused() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let error = transform_column(Transform::Unknown, &column).unwrap_err();
        assert_eq!(error.message(), "the partition spec has a transform that is not known");
    }
}
