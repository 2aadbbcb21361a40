//! How a partition's value looks to people, as Iceberg writes it: `2026-01-03`, `2026-01`, `2026-01-03-07`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Transform};

/// The text of a value that is NULL.
const NULL: &str = "null";

/// Writes a value that a transform has made; `data_type` is that of the value.
pub(super) fn partition_text(
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
        (Transform::Day, PrimitiveLiteral::Int(days)) => day(*days),
        (Transform::Hour, PrimitiveLiteral::Int(hours)) => {
            let time =
                NaiveDate::default().and_time(NaiveTime::default()) + Duration::hours(i64::from(*hours));
            format!("{}-{:02}", day_of(time.date()), time.hour())
        }
        _ => plain(data_type, value),
    }
}

/// Writes a value by its type.
fn plain(data_type: &PrimitiveType, value: &PrimitiveLiteral) -> String {
    match (data_type, value) {
        (PrimitiveType::Date, PrimitiveLiteral::Int(days)) => day(*days),
        (PrimitiveType::Time, PrimitiveLiteral::Long(micros)) => {
            let time = NaiveDateTime::default() + Duration::microseconds(*micros);
            short_time(time.time())
        }
        (PrimitiveType::Timestamp, PrimitiveLiteral::Long(micros)) => {
            DateTime::from_timestamp_micros(*micros)
                .map_or_else(|| micros.to_string(), |time| stamp(time.naive_utc()))
        }
        (PrimitiveType::Timestamptz, PrimitiveLiteral::Long(micros)) => {
            DateTime::from_timestamp_micros(*micros)
                .map_or_else(|| micros.to_string(), |time| format!("{}+00:00", stamp(time.naive_utc())))
        }
        (PrimitiveType::TimestampNs, PrimitiveLiteral::Long(nanos)) => {
            stamp(DateTime::from_timestamp_nanos(*nanos).naive_utc())
        }
        (PrimitiveType::TimestamptzNs, PrimitiveLiteral::Long(nanos)) => {
            format!("{}+00:00", stamp(DateTime::from_timestamp_nanos(*nanos).naive_utc()))
        }
        (PrimitiveType::Decimal { scale, .. }, PrimitiveLiteral::Int128(digits)) => {
            decimal(*digits, *scale as usize)
        }
        (_, PrimitiveLiteral::Boolean(value)) => value.to_string(),
        (_, PrimitiveLiteral::Int(value)) => value.to_string(),
        (_, PrimitiveLiteral::Long(value)) => value.to_string(),
        (_, PrimitiveLiteral::Float(value)) => format!("{:?}", value.0),
        (_, PrimitiveLiteral::Double(value)) => format!("{:?}", value.0),
        (_, PrimitiveLiteral::String(value)) => value.clone(),
        (_, PrimitiveLiteral::Binary(value)) => STANDARD.encode(value),
        (_, PrimitiveLiteral::Int128(value)) => value.to_string(),
        (_, PrimitiveLiteral::UInt128(value)) => uuid::Uuid::from_u128(*value).to_string(),
        (_, PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin) => NULL.to_owned(),
    }
}

/// Writes a day that is counted from 1970.
fn day(days: i32) -> String {
    day_of(NaiveDate::default() + Duration::days(i64::from(days)))
}

fn day_of(date: NaiveDate) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

/// Writes date and time with as many digits of a second as there are.
fn stamp(time: NaiveDateTime) -> String {
    let seconds = format!("{}T{}", day_of(time.date()), time.format("%H:%M:%S"));
    match time.nanosecond() {
        0 => seconds,
        nanos => format!("{seconds}.{}", format!("{nanos:09}").trim_end_matches('0')),
    }
}

/// Writes a time of day as Java does: without seconds that are zero, and fractions in groups of three digits.
fn short_time(time: NaiveTime) -> String {
    match (time.second(), time.nanosecond()) {
        (0, 0) => time.format("%H:%M").to_string(),
        (_, 0) => time.format("%H:%M:%S").to_string(),
        (_, nanos) if nanos % 1_000_000 == 0 => time.format("%H:%M:%S%.3f").to_string(),
        _ => time.format("%H:%M:%S%.6f").to_string(),
    }
}

/// Writes a decimal with all digits behind its point.
fn decimal(digits: i128, scale: usize) -> String {
    if scale == 0 {
        return digits.to_string();
    }
    let plain = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = plain.split_at(plain.len() - scale);
    format!("{}{whole}.{fraction}", if digits < 0 { "-" } else { "" })
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
        let decimal = PrimitiveType::Decimal { precision: 5, scale: 2 };
        assert_eq!(identity(decimal.clone(), Int128(-5)), "-0.05");
        assert_eq!(identity(decimal, Int128(12_345)), "123.45");
        assert_eq!(identity(PrimitiveType::Binary, Binary(vec![1, 2])), "AQI=");
        assert_eq!(partition_text(Transform::Identity, &PrimitiveType::Int, None), "null");
    }
}
