//! Partition transforms of single values, as the specification of Iceberg defines them: writers apply them to columns, readers to what
//! a query asks for.
//!
//! The crate's own fail or panic for dates far away, fail on binary columns, go wrong for nanoseconds before 1970 and may overflow
//! behind a NULL, so they are not used. None of these fails: what is not a partition value at all, as behind a NULL, wraps around.

use crate::schema::calendar::civil_from_days;

const HOURS_PER_DAY: i64 = 24;
const MICROS_PER_HOUR: i64 = 3_600_000_000;
const NANOS_PER_HOUR: i64 = MICROS_PER_HOUR * 1000;

/// Returns the hours from 1970 to a day.
pub(in crate::connector::iceberg) fn hours_of_days(days: i32) -> i64 {
    i64::from(days) * HOURS_PER_DAY
}

/// Returns the whole hours from 1970 to a microsecond.
pub(in crate::connector::iceberg) fn hours_of_micros(micros: i64) -> i64 {
    micros.div_euclid(MICROS_PER_HOUR)
}

/// Returns the whole hours from 1970 to a nanosecond.
pub(in crate::connector::iceberg) fn hours_of_nanos(nanos: i64) -> i64 {
    nanos.div_euclid(NANOS_PER_HOUR)
}

/// Returns the whole days from 1970 to an hour.
pub(in crate::connector::iceberg) fn days_of_hours(hours: i64) -> i32 {
    hours.div_euclid(HOURS_PER_DAY) as i32
}

/// Returns the whole months from 1970 to an hour.
pub(in crate::connector::iceberg) fn months_of_hours(hours: i64) -> i32 {
    let (year, month, _) = civil_from_days(hours.div_euclid(HOURS_PER_DAY));
    ((year - 1970) * 12 + i64::from(month) - 1) as i32
}

/// Returns the whole years from 1970 to an hour.
pub(in crate::connector::iceberg) fn years_of_hours(hours: i64) -> i32 {
    (civil_from_days(hours.div_euclid(HOURS_PER_DAY)).0 - 1970) as i32
}

/// Cuts an integer down to a multiple of the width.
pub(in crate::connector::iceberg) fn truncated_long(value: i64, width: u32) -> i64 {
    value.wrapping_sub(value.rem_euclid(i64::from(width.max(1))))
}

/// Cuts the digits of a decimal down to a multiple of the width.
pub(in crate::connector::iceberg) fn truncated_decimal(value: i128, width: u32) -> i128 {
    value.wrapping_sub(value.rem_euclid(i128::from(width.max(1))))
}

/// Returns the first code points of a text.
pub(in crate::connector::iceberg) fn text_prefix(text: &str, length: u32) -> &str {
    text.char_indices().nth(length as usize).map_or(text, |(end, _)| &text[..end])
}

/// Returns the first bytes.
pub(in crate::connector::iceberg) fn bytes_prefix(bytes: &[u8], length: u32) -> &[u8] {
    &bytes[..bytes.len().min(length as usize)]
}

/// Returns the bucket of an integer, a date, a time or a timestamp in microseconds.
pub(in crate::connector::iceberg) fn bucket_of_long(value: i64, count: u32) -> i32 {
    bucket_of_bytes(&value.to_le_bytes(), count)
}

/// Returns the bucket of a timestamp in nanoseconds: that of its microsecond.
pub(in crate::connector::iceberg) fn bucket_of_nanos(nanos: i64, count: u32) -> i32 {
    bucket_of_long(nanos.div_euclid(1000), count)
}

/// Returns the bucket of a decimal, by its digits.
pub(in crate::connector::iceberg) fn bucket_of_decimal(value: i128, count: u32) -> i32 {
    bucket_of_bytes(shortest(&value.to_be_bytes()), count)
}

/// Returns the bucket of a text, of bytes or of a UUID.
pub(in crate::connector::iceberg) fn bucket_of_bytes(bytes: &[u8], count: u32) -> i32 {
    ((murmur3(bytes) & 0x7FFF_FFFF) % count.max(1)) as i32
}

/// Returns the fewest bytes of a big-endian two's complement number that still say its sign.
fn shortest(bytes: &[u8; 16]) -> &[u8] {
    let filler = if bytes[0] & 0x80 == 0 { 0x00 } else { 0xFF };
    let is_needed = |pair: &[u8]| pair[0] != filler || (pair[1] ^ filler) & 0x80 != 0;
    let start = bytes.windows(2).position(is_needed).unwrap_or(15);
    &bytes[start..]
}

/// The 32-bit Murmur3 hash for x86 with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let scramble = |block: u32| block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= scramble(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let rest = tail.iter().rev().fold(0_u32, |rest, byte| rest << 8 | u32::from(*byte));
    hash ^= scramble(rest);
    hash ^= bytes.len() as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::calendar::days_from_civil;

    #[test]
    fn hashes_are_those_of_the_specification() {
        let long = |value: i64| murmur3(&value.to_le_bytes()) as i32;
        assert_eq!(long(34), 2_017_239_379);
        assert_eq!(long(days_from_civil(2017, 11, 16)), -653_330_422);
        assert_eq!(long(81_068_000_000), -662_762_989);
        assert_eq!(long(1_510_871_468_000_000), -2_047_944_441);
        assert_eq!(long(1_510_871_468_000_001), -1_207_196_810);
        assert_eq!(murmur3(shortest(&1420_i128.to_be_bytes())) as i32, -500_754_589);
        assert_eq!(murmur3(b"iceberg") as i32, 1_210_000_089);
        assert_eq!(murmur3(&[0, 1, 2, 3]) as i32, -188_683_207);
        let uuid = uuid::Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
        assert_eq!(murmur3(uuid.as_bytes()) as i32, 1_488_055_340);
        assert_eq!(bucket_of_long(34, 16), 2_017_239_379 % 16);
        // A nanosecond before 1970 is in the microsecond before 1970.
        assert_eq!(bucket_of_nanos(-1, 64), bucket_of_long(-1, 64));
    }

    #[test]
    fn a_decimal_is_hashed_by_its_fewest_bytes() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (i128::MAX, 16), (-1, 1)] {
            assert_eq!(shortest(&i128::to_be_bytes(value)).len(), length, "{value}");
        }
    }

    #[test]
    fn every_date_has_a_year_and_a_month() {
        assert_eq!(years_of_hours(hours_of_days(i32::MAX)), 5_879_610);
        assert_eq!(months_of_hours(hours_of_days(i32::MIN)), -70_555_327);
        assert_eq!(days_of_hours(hours_of_days(i32::MIN)), i32::MIN);
    }

    #[test]
    fn values_are_cut_down_and_texts_by_code_points() {
        assert_eq!((truncated_long(-1, 10), truncated_long(19, 10)), (-10, 10));
        assert_eq!((truncated_decimal(-1, 50), truncated_decimal(1065, 50)), (-50, 1050));
        assert_eq!((text_prefix("äöü€", 3), text_prefix("ab", 3)), ("äöü", "ab"));
        assert_eq!(bytes_prefix(&[1, 2, 3], 2), [1, 2]);
        // No table has such transforms; a damaged one must not stop the process.
        assert_eq!((truncated_long(7, 0), bucket_of_long(7, 0)), (7, 0));
    }
}
