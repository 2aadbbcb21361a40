//! Partition transforms of single values, to rule partitions out by a test on the column they come from.
//!
//! The crate's functions for single values fail or panic for dates far away, so these are ours; none of them fails.

use chrono::{Datelike, NaiveDate};
use iceberg::spec::{PrimitiveType, Transform};

use super::bounds::{BoundValue, Test};

const MICROS_PER_HOUR: i128 = 3_600_000_000;
const NANOS_PER_HOUR: i128 = MICROS_PER_HOUR * 1000;
const HOURS_PER_DAY: i128 = 24;

/// Days from the first of January of year 1 to 1970.
const DAYS_TO_EPOCH: i128 = 719_163;

/// Returns what holds for a partition's value if the test holds for the column; None if nothing is known.
pub(super) fn project(transform: &Transform, column: &PrimitiveType, test: &Test) -> Option<Test> {
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
        Test::Less(value) | Test::LessOrEqual(value) => Test::LessOrEqual(higher(of(value)?)),
        Test::Greater(value) | Test::GreaterOrEqual(value) => Test::GreaterOrEqual(of(value)?),
        Test::OneOf(values) => {
            let mut projected = values.iter().map(of).collect::<Option<Vec<_>>>()?;
            if is_temporal(transform) {
                let shifted: Vec<_> = projected.iter().cloned().map(higher).collect();
                projected.extend(shifted);
                projected.dedup();
            }
            Test::OneOf(projected)
        }
        Test::IsNull | Test::IsNotNull | Test::StartsWith(_) => return None,
    })
}

fn is_temporal(transform: &Transform) -> bool {
    matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour)
}

/// Applies a transform that keeps the order; None if it does not apply to the type.
fn apply(transform: &Transform, column: &PrimitiveType, value: &BoundValue) -> Option<BoundValue> {
    match (transform, value) {
        (Transform::Truncate(width), BoundValue::Number(number)) if !is_time(column) => {
            Some(BoundValue::Number(number - number.rem_euclid(i128::from((*width).max(1)))))
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
        P::Date => value.checked_mul(HOURS_PER_DAY)?,
        P::Timestamp | P::Timestamptz => value.div_euclid(MICROS_PER_HOUR),
        P::TimestampNs | P::TimestamptzNs => value.div_euclid(NANOS_PER_HOUR),
        _ => return None,
    };
    let days = hours.div_euclid(HOURS_PER_DAY);
    if matches!(transform, Transform::Hour) {
        return (column != &P::Date).then_some(hours);
    }
    if matches!(transform, Transform::Day) {
        return Some(days);
    }
    let date = NaiveDate::from_num_days_from_ce_opt(i32::try_from(days + DAYS_TO_EPOCH).ok()?)?;
    let years = i128::from(date.year()) - 1970;
    Some(if matches!(transform, Transform::Year) { years } else { years * 12 + i128::from(date.month0()) })
}

/// Cuts a text after so many characters, or bytes.
fn truncate<'a>(width: u32, column: &PrimitiveType, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let width = width as usize;
    match column {
        PrimitiveType::String => {
            let text = std::str::from_utf8(bytes).ok()?;
            let end = text.char_indices().nth(width).map_or(bytes.len(), |(end, _)| end);
            Some(&bytes[..end])
        }
        PrimitiveType::Binary | PrimitiveType::Fixed(_) => Some(&bytes[..bytes.len().min(width)]),
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
    let hash = match (column, value) {
        (
            P::Int | P::Long | P::Date | P::Time | P::Timestamp | P::Timestamptz,
            BoundValue::Number(number),
        ) => murmur3(&i64::try_from(*number).ok()?.to_le_bytes()),
        (P::Decimal { .. }, BoundValue::Number(number)) => murmur3(shortest(&number.to_be_bytes())),
        (P::String | P::Binary | P::Fixed(_), BoundValue::Bytes(bytes)) => murmur3(bytes),
        _ => return None,
    };
    let bucket = i128::from(hash & 0x7FFF_FFFF).checked_rem(i128::from(buckets))?;
    Some(BoundValue::Number(bucket))
}

/// Drops leading bytes that only repeat the sign.
fn shortest(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, next, ..] = rest {
        let repeats = (*first == 0 && next & 0x80 == 0) || (*first == 0xFF && next & 0x80 != 0);
        if !repeats {
            break;
        }
        rest = &rest[1..];
    }
    rest
}

/// The 32-bit Murmur3 hash with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |block: u32| block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    if !tail.is_empty() {
        let mut block = [0; 4];
        block[..tail.len()].copy_from_slice(tail);
        hash ^= mix(u32::from_le_bytes(block));
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
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
    fn hashes_are_those_of_the_specification() {
        assert_eq!(murmur3(&34_i64.to_le_bytes()) as i32, 2_017_239_379);
        assert_eq!(murmur3(shortest(&1420_i128.to_be_bytes())) as i32, -500_754_589);
        assert_eq!(murmur3(&17_486_i64.to_le_bytes()) as i32, -653_330_422);
        assert_eq!(murmur3(&81_068_000_000_i64.to_le_bytes()) as i32, -662_762_989);
        assert_eq!(murmur3(&1_510_871_468_000_000_i64.to_le_bytes()) as i32, -2_047_944_441);
        assert_eq!(murmur3(b"iceberg") as i32, 1_210_000_089);
        assert_eq!(murmur3(&[0, 1, 2, 3]) as i32, -188_683_207);
        assert_eq!(shortest(&(-1_i128).to_be_bytes()), [0xFF]);
        assert_eq!(shortest(&128_i128.to_be_bytes()), [0, 0x80]);
    }

    #[test]
    fn buckets_are_known_for_equality_only() {
        let of = |test| project(&Transform::Bucket(16), &PrimitiveType::Long, &test);
        assert_eq!(of(Test::OneOf(vec![number(34)])), Some(Test::OneOf(vec![number(2_017_239_379 % 16)])));
        assert_eq!(of(Test::Less(number(34))), None);
        assert_eq!(of(Test::IsNull), Some(Test::IsNull));
    }

    #[test]
    fn times_before_1970_may_have_been_rounded_up() {
        let day = |test| project(&Transform::Day, &PrimitiveType::Timestamp, &test);
        let hour = MICROS_PER_HOUR;
        assert_eq!(day(Test::Less(number(25 * hour))), Some(Test::LessOrEqual(number(1))));
        assert_eq!(day(Test::Greater(number(-hour))), Some(Test::GreaterOrEqual(number(-1))));
        assert_eq!(day(Test::LessOrEqual(number(-hour))), Some(Test::LessOrEqual(number(0))));
        assert_eq!(day(Test::OneOf(vec![number(-hour)])), Some(Test::OneOf(vec![number(-1), number(0)])));
        assert_eq!(day(Test::OneOf(vec![number(hour)])), Some(Test::OneOf(vec![number(0)])));
        let month = |days| temporal(&Transform::Month, &PrimitiveType::Date, days);
        assert_eq!((month(0), month(-1), month(31), month(365)), (Some(0), Some(-1), Some(1), Some(12)));
        assert_eq!(month(i128::from(i32::MAX)), None);
        assert_eq!(temporal(&Transform::Year, &PrimitiveType::TimestampNs, -1), Some(-1));
    }

    #[test]
    fn truncation_keeps_the_order() {
        let ten = Transform::Truncate(10);
        let of = |test| project(&ten, &PrimitiveType::Int, &test);
        assert_eq!(of(Test::Less(number(-1))), Some(Test::LessOrEqual(number(-10))));
        assert_eq!(of(Test::GreaterOrEqual(number(19))), Some(Test::GreaterOrEqual(number(10))));
        let two = Transform::Truncate(2);
        let of = |test| project(&two, &PrimitiveType::String, &test);
        assert_eq!(of(Test::Greater(text("öäü"))), Some(Test::GreaterOrEqual(text("öä"))));
        assert_eq!(of(Test::StartsWith(b"abc".to_vec())), Some(Test::OneOf(vec![text("ab")])));
        assert_eq!(of(Test::StartsWith(b"a".to_vec())), Some(Test::StartsWith(b"a".to_vec())));
    }
}
