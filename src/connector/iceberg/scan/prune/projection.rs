//! What a test on a column says of the partitions that a transform makes of it.

use iceberg::spec::{PrimitiveType, Transform};

use super::bounds::{BoundValue, Test};
use crate::connector::iceberg::partition::transform::{
    bucket_of_bytes, bucket_of_decimal, bucket_of_long, bucket_of_nanos, bytes_prefix, days_of_hours,
    hours_of_days, hours_of_micros, hours_of_nanos, months_of_hours, text_prefix, truncated_decimal,
    years_of_hours,
};

/// Returns what holds for a partition's value if the test holds for the column; None if nothing is known.
pub(in crate::connector::iceberg::scan) fn project(
    transform: &Transform,
    column: &PrimitiveType,
    test: &Test,
) -> Option<Test> {
    match (transform, test) {
        // NULL stays NULL.
        (Transform::Void | Transform::Unknown, _) => None,
        (_, Test::IsNull | Test::IsNotNull) => Some(test.clone()),
        (Transform::Identity, _) => Some(test.clone()),
        (Transform::Bucket(buckets), Test::OneOf(values)) => {
            let bucket = |value: &BoundValue| bucket(*buckets, column, value);
            Some(Test::OneOf(values.iter().map(bucket).collect::<Option<_>>()?))
        }
        (Transform::Bucket(_), _) => None,
        (Transform::Truncate(width), Test::StartsWith(prefix)) => truncated_prefix(*width, column, prefix),
        (_, Test::StartsWith(_)) => None,
        _ => project_monotonic(transform, column, test),
    }
}

/// Projects through a transform that keeps the order.
fn project_monotonic(transform: &Transform, column: &PrimitiveType, test: &Test) -> Option<Test> {
    let of = |value: &BoundValue| apply(transform, column, value);
    // Old writers rounded times before 1970 up, so a value may lie one higher than it should.
    let higher = |value: BoundValue| match value {
        BoundValue::Number(value) if value < 0 && is_temporal(transform) => BoundValue::Number(value + 1),
        other => other,
    };
    Some(match test {
        Test::Less(value) | Test::LessOrEqual(value) => {
            let below = Test::LessOrEqual(higher(of(value)?));
            let partitions: Vec<BoundValue> =
                overflows(transform, column).map(|(_, partition)| BoundValue::Number(partition)).collect();
            match partitions.is_empty() {
                true => below,
                false => Test::Any(vec![below, Test::OneOf(partitions)]),
            }
        }
        Test::Greater(value) | Test::GreaterOrEqual(value) => Test::GreaterOrEqual(of(value)?),
        Test::OneOf(values) => {
            let mut projected = values.iter().map(of).collect::<Option<Vec<_>>>()?;
            for (least, partition) in overflows(transform, column) {
                let overflown = |value: &BoundValue| matches!(value, BoundValue::Number(of) if *of < least);
                if projected.iter().any(overflown) {
                    projected.push(BoundValue::Number(partition));
                }
            }
            if is_temporal(transform) {
                let shifted: Vec<_> = projected.iter().cloned().map(higher).collect();
                projected.extend(shifted);
                projected.dedup();
            }
            Test::OneOf(projected)
        }
        Test::IsNull | Test::IsNotNull | Test::StartsWith(_) | Test::Any(_) => return None,
    })
}

/// Returns the least value of a number's type and, where truncation leads below it, the partition of what does: writers let it overflow,
/// as Java does. Rows of a BIGINT may have been written when it was an INT.
fn overflows(transform: &Transform, column: &PrimitiveType) -> impl Iterator<Item = (i128, i128)> {
    let width = match transform {
        Transform::Truncate(width) => Some(*width),
        _ => None,
    };
    let bits: &[u32] = match column {
        PrimitiveType::Int => &[32],
        PrimitiveType::Long => &[64, 32],
        _ => &[],
    };
    width.into_iter().flat_map(move |width| {
        bits.iter().filter_map(move |bits| {
            let least = -(1_i128 << (bits - 1));
            let cut = truncated_decimal(least, width);
            (cut < least).then_some((least, cut + (1_i128 << bits)))
        })
    })
}

fn is_temporal(transform: &Transform) -> bool {
    matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour)
}

/// Applies a transform that keeps the order; None if it does not apply to the type.
fn apply(transform: &Transform, column: &PrimitiveType, value: &BoundValue) -> Option<BoundValue> {
    match (transform, value) {
        (Transform::Truncate(width), BoundValue::Number(number)) if !is_time(column) => {
            Some(BoundValue::Number(truncated_decimal(*number, *width)))
        }
        (Transform::Truncate(width), BoundValue::Bytes(bytes)) => {
            Some(BoundValue::Bytes(truncate(*width, column, bytes)?.to_vec()))
        }
        (transform, BoundValue::Number(number)) if is_temporal(transform) => {
            Some(BoundValue::Number(temporal(transform, column, *number)?))
        }
        _ => None,
    }
}

fn is_time(column: &PrimitiveType) -> bool {
    !matches!(column, PrimitiveType::Int | PrimitiveType::Long | PrimitiveType::Decimal { .. })
}

/// Returns years, months, days or hours since 1970.
fn temporal(transform: &Transform, column: &PrimitiveType, value: i128) -> Option<i128> {
    use PrimitiveType as P;
    let hours = match column {
        P::Date => hours_of_days(i32::try_from(value).ok()?),
        P::Timestamp | P::Timestamptz => hours_of_micros(i64::try_from(value).ok()?),
        P::TimestampNs | P::TimestamptzNs => hours_of_nanos(i64::try_from(value).ok()?),
        _ => return None,
    };
    match transform {
        Transform::Hour if column == &P::Date => None,
        // What does not fit is cut off by writers, and has no order then.
        Transform::Hour => i32::try_from(hours).ok().map(i128::from),
        Transform::Day => Some(i128::from(days_of_hours(hours))),
        Transform::Month => Some(i128::from(months_of_hours(hours))),
        Transform::Year => Some(i128::from(years_of_hours(hours))),
        _ => None,
    }
}

/// Cuts a text after so many characters, or bytes.
fn truncate<'a>(width: u32, column: &PrimitiveType, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match column {
        PrimitiveType::String => Some(text_prefix(std::str::from_utf8(bytes).ok()?, width).as_bytes()),
        PrimitiveType::Binary | PrimitiveType::Fixed(_) => Some(bytes_prefix(bytes, width)),
        _ => None,
    }
}

fn truncated_prefix(width: u32, column: &PrimitiveType, prefix: &[u8]) -> Option<Test> {
    let cut = truncate(width, column, prefix)?;
    if cut.len() < prefix.len() {
        return Some(Test::OneOf(vec![BoundValue::Bytes(cut.to_vec())]));
    }
    Some(Test::StartsWith(prefix.to_vec()))
}

/// Returns the bucket of a value.
fn bucket(buckets: u32, column: &PrimitiveType, value: &BoundValue) -> Option<BoundValue> {
    use PrimitiveType as P;
    let bucket = match (column, value) {
        (
            P::Int | P::Long | P::Date | P::Time | P::Timestamp | P::Timestamptz,
            BoundValue::Number(number),
        ) => bucket_of_long(i64::try_from(*number).ok()?, buckets),
        (P::TimestampNs | P::TimestamptzNs, BoundValue::Number(number)) => {
            bucket_of_nanos(i64::try_from(*number).ok()?, buckets)
        }
        (P::Decimal { .. }, BoundValue::Number(number)) => bucket_of_decimal(*number, buckets),
        (P::String | P::Binary | P::Fixed(_), BoundValue::Bytes(bytes)) => bucket_of_bytes(bytes, buckets),
        _ => return None,
    };
    Some(BoundValue::Number(i128::from(bucket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: i128) -> BoundValue {
        BoundValue::Number(value)
    }

    fn text(value: &str) -> BoundValue {
        BoundValue::Bytes(value.as_bytes().to_vec())
    }

    #[test]
    fn buckets_are_known_for_equality_only() {
        let of = |test| project(&Transform::Bucket(16), &PrimitiveType::Long, &test);
        assert_eq!(of(Test::OneOf(vec![number(34)])), Some(Test::OneOf(vec![number(2_017_239_379 % 16)])));
        assert_eq!(of(Test::Less(number(34))), None);
        assert_eq!(of(Test::IsNull), Some(Test::IsNull));
        let of_nanos =
            project(&Transform::Bucket(16), &PrimitiveType::TimestampNs, &Test::OneOf(vec![number(34_999)]));
        assert_eq!(of_nanos, of(Test::OneOf(vec![number(34)])));
    }

    #[test]
    fn times_before_1970_may_have_been_rounded_up() {
        let day = |test| project(&Transform::Day, &PrimitiveType::Timestamp, &test);
        let hour = 3_600_000_000;
        assert_eq!(day(Test::Less(number(25 * hour))), Some(Test::LessOrEqual(number(1))));
        assert_eq!(day(Test::Greater(number(-hour))), Some(Test::GreaterOrEqual(number(-1))));
        assert_eq!(day(Test::LessOrEqual(number(-hour))), Some(Test::LessOrEqual(number(0))));
        assert_eq!(day(Test::OneOf(vec![number(-hour)])), Some(Test::OneOf(vec![number(-1), number(0)])));
        assert_eq!(day(Test::OneOf(vec![number(hour)])), Some(Test::OneOf(vec![number(0)])));
        let month = |days| temporal(&Transform::Month, &PrimitiveType::Date, days);
        assert_eq!((month(0), month(-1), month(31), month(365)), (Some(0), Some(-1), Some(1), Some(12)));
        assert_eq!((month(i128::from(i32::MAX)), month(i128::from(i64::MAX))), (Some(70_555_326), None));
        assert_eq!(temporal(&Transform::Year, &PrimitiveType::TimestampNs, -1), Some(-1));
    }

    #[test]
    fn truncation_keeps_the_order() {
        let ten = Transform::Truncate(10);
        let of = |test| project(&ten, &PrimitiveType::Int, &test);
        let least = Test::OneOf(vec![number(2_147_483_646)]);
        let below = Test::Any(vec![Test::LessOrEqual(number(-10)), least.clone()]);
        assert_eq!(of(Test::Less(number(-1))), Some(below));
        let cut = number(-2_147_483_650);
        let found = Test::OneOf(vec![cut, number(2_147_483_646)]);
        assert_eq!(of(Test::OneOf(vec![number(-2_147_483_645)])), Some(found.clone()));
        let once_int = project(&ten, &PrimitiveType::Long, &Test::OneOf(vec![number(-2_147_483_645)]));
        assert_eq!(once_int, Some(found));
        assert_eq!(of(Test::OneOf(vec![number(-7)])), Some(Test::OneOf(vec![number(-10)])));
        let sixteen = project(&Transform::Truncate(16), &PrimitiveType::Long, &Test::Less(number(0)));
        assert_eq!(sixteen, Some(Test::LessOrEqual(number(0))));
        assert_eq!(of(Test::GreaterOrEqual(number(19))), Some(Test::GreaterOrEqual(number(10))));
        let two = Transform::Truncate(2);
        let of = |test| project(&two, &PrimitiveType::String, &test);
        assert_eq!(of(Test::Greater(text("öäü"))), Some(Test::GreaterOrEqual(text("öä"))));
        assert_eq!(of(Test::StartsWith(b"abc".to_vec())), Some(Test::OneOf(vec![text("ab")])));
        assert_eq!(of(Test::StartsWith(b"a".to_vec())), Some(Test::StartsWith(b"a".to_vec())));
    }
}
