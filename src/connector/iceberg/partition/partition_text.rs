//! How a partition's value looks to people and in the names of folders, as Java's writers write it: `2026-01-03`, `2026-01`,
//! `2026-01-03-07`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Transform};

use crate::schema::calendar::{SECONDS_PER_DAY, civil_from_days};
use crate::schema::{push_decimal, push_double, push_float};

/// The text of a value that is NULL.
const NULL: &str = "null";

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Writes a value that a transform has made; `data_type` is that of the value.
pub(in crate::connector::iceberg) fn partition_text(
    transform: Transform,
    data_type: &PrimitiveType,
    value: Option<&PrimitiveLiteral>,
) -> String {
    let Some(value) = value else { return NULL.to_owned() };
    match (transform, value) {
        (Transform::Void, _) => NULL.to_owned(),
        (Transform::Year, PrimitiveLiteral::Int(years)) => format!("{:04}", 1970 + i64::from(*years)),
        (Transform::Month, PrimitiveLiteral::Int(months)) => {
            let year = 1970 + i64::from(months.div_euclid(12));
            format!("{year:04}-{:02}", 1 + months.rem_euclid(12))
        }
        (Transform::Day, PrimitiveLiteral::Int(days)) => day(i64::from(*days)),
        (Transform::Hour, PrimitiveLiteral::Int(hours)) => {
            format!("{}-{:02}", day(i64::from(hours.div_euclid(24))), hours.rem_euclid(24))
        }
        _ => plain(data_type, value),
    }
}

/// Writes a value by its type.
fn plain(data_type: &PrimitiveType, value: &PrimitiveLiteral) -> String {
    let mut text = String::new();
    match (data_type, value) {
        (PrimitiveType::Date, PrimitiveLiteral::Int(days)) => return day(i64::from(*days)),
        (PrimitiveType::Time, PrimitiveLiteral::Long(micros)) => return short_time(*micros),
        (PrimitiveType::Timestamp, PrimitiveLiteral::Long(micros)) => return stamp(*micros, 1_000_000),
        (PrimitiveType::Timestamptz, PrimitiveLiteral::Long(micros)) => {
            return format!("{}+00:00", stamp(*micros, 1_000_000));
        }
        (PrimitiveType::TimestampNs, PrimitiveLiteral::Long(nanos)) => {
            return stamp(*nanos, NANOS_PER_SECOND);
        }
        (PrimitiveType::TimestamptzNs, PrimitiveLiteral::Long(nanos)) => {
            return format!("{}+00:00", stamp(*nanos, NANOS_PER_SECOND));
        }
        (PrimitiveType::Decimal { scale, .. }, PrimitiveLiteral::Int128(digits)) => {
            push_decimal(*digits, *scale as u8, &mut text);
        }
        (_, PrimitiveLiteral::Boolean(value)) => return value.to_string(),
        (_, PrimitiveLiteral::Int(value)) => return value.to_string(),
        (_, PrimitiveLiteral::Long(value)) => return value.to_string(),
        (_, PrimitiveLiteral::Float(value)) => push_float(value.0, &mut text),
        (_, PrimitiveLiteral::Double(value)) => push_double(value.0, &mut text),
        (_, PrimitiveLiteral::String(value)) => return value.clone(),
        (_, PrimitiveLiteral::Binary(value)) => return STANDARD.encode(value),
        (_, PrimitiveLiteral::Int128(value)) => return value.to_string(),
        (_, PrimitiveLiteral::UInt128(value)) => return uuid::Uuid::from_u128(*value).to_string(),
        (_, PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin) => return NULL.to_owned(),
    }
    text
}

/// Writes a day that is counted from 1970.
fn day(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Writes date and time with as many digits of a second as there are.
fn stamp(value: i64, per_second: i64) -> String {
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let mut text = day(seconds.div_euclid(SECONDS_PER_DAY));
    let _ = write!(text, "T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    let nanos = fraction * (NANOS_PER_SECOND / per_second);
    if nanos != 0 {
        let _ = write!(text, ".{}", format!("{nanos:09}").trim_end_matches('0'));
    }
    text
}

/// Writes a time of day, which Java does differently: without seconds that are zero, and fractions in groups of three digits.
fn short_time(micros: i64) -> String {
    let (second, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let mut text = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
    if second % 60 != 0 || micros != 0 {
        let _ = write!(text, ":{:02}", second % 60);
    }
    match micros {
        0 => {}
        micros if micros % 1000 == 0 => {
            let _ = write!(text, ".{:03}", micros / 1000);
        }
        micros => {
            let _ = write!(text, ".{micros:06}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(transform: Transform, data_type: PrimitiveType, value: PrimitiveLiteral) -> String {
        partition_text(transform, &data_type, Some(&value))
    }

    #[test]
    fn times_are_written_as_far_as_their_transform_reaches() {
        use PrimitiveLiteral::Int;
        for (transform, value, expected) in [
            (Transform::Year, 56, "2026"),
            (Transform::Year, -1, "1969"),
            (Transform::Month, 0, "1970-01"),
            (Transform::Month, -1, "1969-12"),
            (Transform::Month, 672, "2026-01"),
            (Transform::Day, 20_456, "2026-01-03"),
            (Transform::Hour, 490_951, "2026-01-03-07"),
            (Transform::Hour, -1, "1969-12-31-23"),
            (Transform::Bucket(16), 7, "7"),
        ] {
            assert_eq!(text(transform, PrimitiveType::Int, Int(value)), expected, "{transform}");
        }
        assert_eq!(text(Transform::Identity, PrimitiveType::Date, Int(-1)), "1969-12-31");
    }

    #[test]
    fn values_are_written_by_their_type() {
        let identity = |data_type, value| text(Transform::Identity, data_type, value);
        use PrimitiveLiteral::{Binary, Int128, Long, String};
        assert_eq!(identity(PrimitiveType::String, String("a b".to_owned())), "a b");
        assert_eq!(identity(PrimitiveType::Timestamp, Long(1_500_000)), "1970-01-01T00:00:01.5");
        assert_eq!(identity(PrimitiveType::Timestamptz, Long(0)), "1970-01-01T00:00:00+00:00");
        assert_eq!(identity(PrimitiveType::TimestampNs, Long(1)), "1970-01-01T00:00:00.000000001");
        assert_eq!(identity(PrimitiveType::Time, Long(3_600_000_000)), "01:00");
        assert_eq!(identity(PrimitiveType::Time, Long(1_500_000)), "00:00:01.500");
        assert_eq!(identity(PrimitiveType::Timestamp, Long(-1)), "1969-12-31T23:59:59.999999");
        assert_eq!(identity(PrimitiveType::Double, PrimitiveLiteral::Double(1e10.into())), "1.0E10");
        let decimal = PrimitiveType::Decimal { precision: 5, scale: 2 };
        assert_eq!(identity(decimal.clone(), Int128(-5)), "-0.05");
        assert_eq!(identity(decimal, Int128(12_345)), "123.45");
        assert_eq!(identity(PrimitiveType::Binary, Binary(vec![1, 2])), "AQI=");
        assert_eq!(partition_text(Transform::Identity, &PrimitiveType::Int, None), "null");
    }

    #[test]
    fn dates_and_times_far_away_are_written_too() {
        use PrimitiveLiteral::{Int, Long};
        let day = |days| text(Transform::Identity, PrimitiveType::Date, Int(days));
        assert_eq!(day(i32::MAX), "5881580-07-11");
        assert_eq!(day(i32::MIN), "-5877641-06-23");
        assert_eq!(text(Transform::Hour, PrimitiveType::Int, Int(i32::MAX)), "246953-10-09-07");
        let last = text(Transform::Identity, PrimitiveType::Timestamp, Long(i64::MAX));
        assert_eq!(last, "294247-01-10T04:00:54.775807");
    }
}
