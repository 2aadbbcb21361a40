//! Casts of stored values to the types of a read. A value that does not fit is an error, and a time is rounded down, as Flink's CAST
//! does: Arrow's rounds towards 1970.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType as ArrowType, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;

/// Casts an array.
///
/// # Errors
/// A value does not fit, or Arrow has no such cast.
pub(super) fn cast_values(array: &ArrayRef, target: &ArrowType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    if let (ArrowType::Timestamp(from, _), ArrowType::Timestamp(to, _)) = (array.data_type(), target)
        && let ratio = per_second(from) / per_second(to)
        && ratio > 1
    {
        let values = cast_with_options(array, &ArrowType::Int64, &options)?;
        let floored: Int64Array = values.as_primitive::<Int64Type>().unary(|value| value.div_euclid(ratio));
        return cast_with_options(&(Arc::new(floored) as ArrayRef), target, &options);
    }
    cast_with_options(array, target, &options)
}

/// Casts one value.
///
/// # Errors
/// As `cast_values`.
pub(super) fn cast_value(value: ScalarValue, target: &ArrowType) -> Result<ScalarValue, ArrowError> {
    if value.data_type() == *target {
        return Ok(value);
    }
    let cast = cast_values(&value.to_array()?, target)?;
    Ok(ScalarValue::try_from_array(&cast, 0)?)
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_down_on_both_sides_of_1970() {
        let micros = |value: i64| ScalarValue::TimestampMicrosecond(Some(value), None);
        let millis = ArrowType::Timestamp(TimeUnit::Millisecond, None);
        for (value, expected) in [(1_999, 1), (0, 0), (-1, -1), (-500, -1), (-1_000, -1), (-1_001, -2)] {
            let cast = cast_value(micros(value), &millis).unwrap();
            assert_eq!(cast, ScalarValue::TimestampMillisecond(Some(expected), None), "{value}");
        }
        let nanos = ArrowType::Timestamp(TimeUnit::Nanosecond, None);
        assert_eq!(
            cast_value(micros(-1), &nanos).unwrap(),
            ScalarValue::TimestampNanosecond(Some(-1_000), None)
        );
        assert!(cast_value(micros(i64::MAX), &nanos).is_err());
        assert!(cast_value(ScalarValue::TimestampMicrosecond(None, None), &millis).unwrap().is_null());
        assert!(cast_value(ScalarValue::Int32(Some(99_999)), &ArrowType::Int16).is_err());
    }
}
