//! Dates, times and intervals as PostgreSQL writes them with datestyle ISO and intervalstyle iso_8601: years of any length, BC behind all,
//! infinity. What both forms have in common counts as PostgreSQL does, in microseconds since 2000.

use super::Fault;
use crate::schema::calendar::{days_from_civil, days_in_month};

const INFINITE: Fault = Fault::Misfit("is infinite");
const OUT_OF_RANGE: Fault = Fault::Misfit("is out of range");
const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Days from 1970 to 2000.
const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = DAYS_TO_2000 as i64 * MICROS_PER_DAY;

/// Reads a date as days since 1970.
pub(super) fn date(text: &[u8]) -> Result<i32, Fault> {
    let read = || {
        let (days, rest) = take_date(text, text.ends_with(b" BC"))?;
        matches!(rest, b"" | b" BC").then_some(days)
    };
    let days = read().ok_or_else(|| infinite_or(text, "is no date"))?;
    i32::try_from(days).map_err(|_| OUT_OF_RANGE)
}

/// Returns days since 1970 for days since 2000, of which the first and the last mean infinity.
#[inline]
pub(super) fn date_from_days(days: i32) -> Result<i32, Fault> {
    if days == i32::MAX || days == i32::MIN {
        return Err(INFINITE);
    }
    days.checked_add(DAYS_TO_2000).ok_or(OUT_OF_RANGE)
}

/// Reads a time of day as microseconds.
#[inline]
pub(super) fn time(text: &[u8]) -> Result<i64, Fault> {
    match take_time(text) {
        Some((micros, b"")) => Ok(micros),
        _ => Err(Fault::Malformed("is no time of day")),
    }
}

/// Returns milliseconds of the day, cut to a precision. 24:00:00 is a time to PostgreSQL.
#[inline]
pub(super) fn time_millis(micros: i64, precision: u8) -> Result<i32, Fault> {
    if !(0..MICROS_PER_DAY).contains(&micros) {
        return Err(Fault::Misfit("is behind the last time of the day"));
    }
    let millis = (micros / 1_000) as i32;
    Ok(millis - millis % 10_i32.pow(3 - u32::from(precision.min(3))))
}

/// Reads a timestamp as microseconds since 2000; with a zone behind it, those in UTC.
#[inline]
pub(super) fn timestamp(text: &[u8], has_zone: bool) -> Result<i64, Fault> {
    let is_before_christ = text.ends_with(b" BC");
    let body = if is_before_christ { &text[..text.len() - 3] } else { text };
    let read = || {
        let (days, rest) = take_date(body, is_before_christ)?;
        let (b' ' | b'T', rest) = rest.split_first()? else { return None };
        let (micros, rest) = take_time(rest)?;
        let (offset, rest) = if has_zone { take_zone(rest)? } else { (0, rest) };
        rest.is_empty().then_some((days, micros - offset))
    };
    let (days, micros) = read().ok_or_else(|| infinite_or(text, "is no timestamp"))?;
    let days = days - i64::from(DAYS_TO_2000);
    days.checked_mul(MICROS_PER_DAY).and_then(|start| start.checked_add(micros)).ok_or(OUT_OF_RANGE)
}

/// Returns a timestamp in the units of a precision, for microseconds since 2000, of which the first and the last mean infinity.
#[inline]
pub(super) fn timestamp_units(micros: i64, precision: u8) -> Result<i64, Fault> {
    if micros == i64::MAX || micros == i64::MIN {
        return Err(INFINITE);
    }
    let units = match precision {
        0..=3 => {
            let millis = micros.div_euclid(1_000) + MICROS_TO_2000 / 1_000;
            Some(millis - millis.rem_euclid(10_i64.pow(3 - u32::from(precision))))
        }
        4..=6 => micros
            .checked_add(MICROS_TO_2000)
            .map(|micros| micros - micros.rem_euclid(10_i64.pow(6 - u32::from(precision)))),
        _ => micros.checked_add(MICROS_TO_2000).and_then(|micros| micros.checked_mul(1_000)),
    };
    units.ok_or(OUT_OF_RANGE)
}

/// Reads an interval as microseconds, as Debezium counts them: a year has 365.25 days, a month a twelfth of that.
pub(super) fn interval_micros(text: &[u8]) -> Result<i64, Fault> {
    const MICROS_PER_MONTH: i128 = 2_629_800_000_000;
    const WHY: &str = "is no interval of the style iso_8601";
    let malformed = Fault::Malformed(WHY);
    let mut rest = text.strip_prefix(b"P").ok_or_else(|| infinite_or(text, WHY))?;
    let (mut micros, mut is_time) = (0_i128, false);
    while let Some((first, behind)) = rest.split_first() {
        if *first == b'T' && !is_time {
            (is_time, rest) = (true, behind);
            continue;
        }
        let (is_negative, digits) = match first {
            b'-' => (true, behind),
            _ => (false, rest),
        };
        let (whole, behind) = take_digits(digits, 10).ok_or(malformed)?;
        let (fraction, behind) = take_micros(behind).ok_or(malformed)?;
        let (unit, behind) = behind.split_first().ok_or(malformed)?;
        let length = match (unit, is_time) {
            (b'Y', false) => 12 * MICROS_PER_MONTH,
            (b'M', false) => MICROS_PER_MONTH,
            (b'D', false) => i128::from(MICROS_PER_DAY),
            (b'H', true) => 3_600_000_000,
            (b'M', true) => 60_000_000,
            (b'S', true) => 1_000_000,
            _ => return Err(malformed),
        };
        let part = i128::from(whole) * length + i128::from(fraction) * length / 1_000_000;
        micros += if is_negative { -part } else { part };
        rest = behind;
    }
    i64::try_from(micros).map_err(|_| OUT_OF_RANGE)
}

#[cold]
fn infinite_or(text: &[u8], why: &'static str) -> Fault {
    if matches!(text, b"infinity" | b"-infinity") { INFINITE } else { Fault::Malformed(why) }
}

/// Takes a date off the front, as days since 1970.
#[inline]
fn take_date(text: &[u8], is_before_christ: bool) -> Option<(i64, &[u8])> {
    let (year, rest) = take_digits(text, 7)?;
    let ([b'-', month @ .., b'-'], rest) = rest.split_first_chunk::<4>()? else { return None };
    let (day, rest) = rest.split_first_chunk::<2>()?;
    let (month, day) = (two_digits(*month)?, two_digits(*day)?);
    let year = if is_before_christ { 1 - year } else { year };
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some((days_from_civil(year, month, day), rest))
}

/// Takes a time of day off the front, as microseconds.
#[inline]
fn take_time(text: &[u8]) -> Option<(i64, &[u8])> {
    let ([h1, h2, b':', m1, m2, b':', s1, s2], rest) = text.split_first_chunk::<8>()? else { return None };
    let (hour, minute) = (two_digits([*h1, *h2])?, two_digits([*m1, *m2])?);
    let second = two_digits([*s1, *s2])?;
    if hour > 24 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = take_micros(rest)?;
    Some((i64::from(hour * 3_600 + minute * 60 + second) * 1_000_000 + fraction, rest))
}

/// Takes a point and up to six digits off the front, as microseconds.
#[inline]
fn take_micros(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let (value, rest) = take_digits(digits, 6)?;
    Some((value * 10_i64.pow(6 - (digits.len() - rest.len()) as u32), rest))
}

/// Takes the distance to UTC off the front, as microseconds: hours, and minutes and seconds where there are some.
#[inline]
fn take_zone(text: &[u8]) -> Option<(i64, &[u8])> {
    let (sign @ (b'+' | b'-'), rest) = text.split_first()? else { return None };
    let (hours, mut rest) = rest.split_first_chunk::<2>()?;
    let mut seconds = i64::from(two_digits(*hours)?) * 3_600;
    for unit in [60, 1] {
        let Some((digits, behind)) = rest.strip_prefix(b":").and_then(|rest| rest.split_first_chunk()) else {
            break;
        };
        seconds += i64::from(two_digits(*digits)?) * unit;
        rest = behind;
    }
    let micros = seconds * 1_000_000;
    Some((if *sign == b'-' { -micros } else { micros }, rest))
}

/// Takes one or more digits off the front.
#[inline]
fn take_digits(text: &[u8], most: usize) -> Option<(i64, &[u8])> {
    let mut value = 0;
    let mut count = 0;
    while count < most && count < text.len() && text[count].is_ascii_digit() {
        value = value * 10 + i64::from(text[count] - b'0');
        count += 1;
    }
    (count > 0).then(|| (value, &text[count..]))
}

#[inline]
fn two_digits(text: [u8; 2]) -> Option<u32> {
    let (tens, ones) = (text[0].wrapping_sub(b'0'), text[1].wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then(|| u32::from(tens * 10 + ones))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> Result<i64, Fault> {
        timestamp(text.as_bytes(), false).and_then(|micros| timestamp_units(micros, 6))
    }

    #[test]
    fn dates_go_from_before_christ_to_the_end_of_the_type() {
        assert_eq!(date(b"1970-01-01"), Ok(0));
        assert_eq!(date(b"2024-02-29"), Ok(19_782));
        assert_eq!(date(b"0001-12-31 BC"), Ok(days_from_civil(0, 12, 31) as i32));
        assert_eq!(date(b"4713-01-01 BC"), Ok(days_from_civil(-4712, 1, 1) as i32));
        let last = days_from_civil(5_874_897, 12, 31) as i32;
        assert_eq!(date(b"5874897-12-31"), Ok(last));
        assert_eq!(date_from_days(last - DAYS_TO_2000), Ok(last));
        assert_eq!(date(b"infinity"), Err(INFINITE));
        assert_eq!(date_from_days(i32::MIN), Err(INFINITE));
        for text in ["", "2023-02-29", "29/02/2024", "2024-02-29 x", "2024-13-01", "today"] {
            assert_eq!(date(text.as_bytes()), Err(Fault::Malformed("is no date")), "{text}");
        }
    }

    #[test]
    fn timestamps_have_zones_with_seconds_and_years_beyond_nanoseconds() {
        assert_eq!(micros("1970-01-01 00:00:00.000001"), Ok(1));
        assert_eq!(micros("1969-12-31 23:59:59.9994"), Ok(-600));
        assert_eq!(micros("0001-01-01 00:00:00 BC"), Ok(days_from_civil(0, 1, 1) * MICROS_PER_DAY));
        let utc = timestamp(b"1883-11-18 12:03:57-07:52:58", true);
        assert_eq!(utc, timestamp(b"1883-11-18 19:56:55", false));
        assert_eq!(timestamp(b"2024-02-29 12:00:00+05:30", true), timestamp(b"2024-02-29 06:30:00", false));
        assert_eq!(
            timestamp(b"0044-03-15 12:00:00+00 BC", true),
            timestamp(b"0044-03-15 12:00:00 BC", false)
        );
        assert_eq!(micros("infinity"), Err(INFINITE));
        for (text, has_zone) in [("2024-02-29 12:00:00", true), ("2024-02-29 12:00:00+00", false)] {
            assert!(matches!(timestamp(text.as_bytes(), has_zone), Err(Fault::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn timestamps_are_cut_to_their_precision_and_must_fit_its_units() {
        let last = timestamp(b"294276-12-31 23:59:59.999999", false).unwrap();
        assert_eq!(timestamp_units(last, 3), Ok(9_224_318_015_999_999));
        assert_eq!(timestamp_units(last, 6), Err(OUT_OF_RANGE));
        let before = timestamp(b"1969-12-31 23:59:59.987654", false).unwrap();
        let cut = [0, 2, 3, 5, 6, 9].map(|precision| timestamp_units(before, precision).unwrap());
        assert_eq!(cut, [-1_000, -20, -13, -12_350, -12_346, -12_346_000]);
        assert_eq!(timestamp_units(i64::MAX, 3), Err(INFINITE));
    }

    #[test]
    fn the_day_ends_before_24_o_clock() {
        assert_eq!(time_millis(time(b"12:34:56.789012").unwrap(), 3), Ok(45_296_789));
        assert_eq!(time_millis(time(b"12:34:56.789012").unwrap(), 0), Ok(45_296_000));
        assert!(matches!(time_millis(time(b"24:00:00").unwrap(), 3), Err(Fault::Misfit(_))));
        assert!(time(b"12:34").is_err());
        assert!(time(b"12:34:56+01").is_err());
    }

    #[test]
    fn an_interval_without_end_is_a_misfit_as_a_date_is() {
        for text in ["infinity", "-infinity"] {
            assert_eq!(interval_micros(text.as_bytes()), Err(INFINITE), "{text}");
        }
    }

    #[test]
    fn intervals_count_as_in_debezium() {
        assert_eq!(interval_micros(b"PT0S"), Ok(0));
        assert_eq!(
            interval_micros(b"P1Y2M-3DT4H5M6.789S"),
            Ok(14 * 2_629_800_000_000 - 3 * MICROS_PER_DAY + 14_706_789_000)
        );
        assert_eq!(interval_micros(b"P-1M1DT-0.000001S"), Ok(-2_629_800_000_000 + MICROS_PER_DAY - 1));
        assert_eq!(interval_micros(b"P-178000000Y"), Err(OUT_OF_RANGE));
        for text in ["1 year", "P1X", "PT5", "P1H", "PT1T1S"] {
            assert!(matches!(interval_micros(text.as_bytes()), Err(Fault::Malformed(_))), "{text}");
        }
    }
}
