//! Dates, times and timestamps from and to bytes.

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

/// The nanoseconds of a day.
const DAY_NANOS: i64 = 86_400_000_000_000;

/// A date and a time of day without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalDateTime {
    /// Days since 1970-01-01.
    pub(crate) days: i64,
    /// Nanoseconds since midnight.
    pub(crate) nanos: i64,
    /// Whether a `Z` said that it is UTC.
    pub(crate) is_utc: bool,
}

/// Parses `yyyy-[M]M-[d]d`.
pub(crate) fn parse_date(text: &[u8]) -> Option<i32> {
    let (days, rest) = take_date(text)?;
    rest.is_empty().then_some(days as i32)
}

/// Parses `[H]H:mm[:ss[.f]]` into nanoseconds since midnight.
pub(crate) fn parse_time(text: &[u8]) -> Option<i64> {
    let (nanos, rest) = take_time(text)?;
    (rest.is_empty() || rest == b"Z").then_some(nanos)
}

/// Parses a date and a time with a blank or a `T` between them; the time may be missing.
pub(crate) fn parse_timestamp(text: &[u8]) -> Option<LocalDateTime> {
    let (days, nanos, rest) = match take_fixed(text) {
        Some(taken) => taken,
        None => take_timestamp(text)?,
    };
    match rest {
        b"" => Some(LocalDateTime { days, nanos, is_utc: false }),
        b"Z" => Some(LocalDateTime { days, nanos, is_utc: true }),
        _ => None,
    }
}

impl LocalDateTime {
    /// Returns the units since 1970-01-01 00:00, cut to `precision` digits; `unit_nanos` is the length of a unit.
    pub(crate) fn to_units(self, precision: u8, unit_nanos: i64) -> Option<i64> {
        let step = 10_i64.pow(9 - u32::from(precision.min(9)));
        let nanos = self.nanos - self.nanos % step;
        self.days.checked_mul(DAY_NANOS / unit_nanos)?.checked_add(nanos / unit_nanos)
    }

    /// Returns the same instant in UTC, where this is a time of day in `zone`. A time that a change of clocks skips is moved
    /// forward by the gap, one that happens twice is the first: as in Java.
    pub(crate) fn to_utc(self, zone: Tz) -> Option<LocalDateTime> {
        if self.is_utc || zone == Tz::UTC {
            return Some(self);
        }
        let local =
            DateTime::<Utc>::from_timestamp(self.days * 86_400 + self.nanos / 1_000_000_000, 0)?.naive_utc();
        let seconds = i64::from(offset_seconds(zone, &local));
        let nanos = self.nanos - seconds * 1_000_000_000;
        let days = self.days + nanos.div_euclid(DAY_NANOS);
        Some(LocalDateTime { days, nanos: nanos.rem_euclid(DAY_NANOS), is_utc: true })
    }

    /// Splits units since 1970-01-01 00:00.
    pub(crate) fn from_units(units: i64, unit_nanos: i64) -> LocalDateTime {
        let per_day = DAY_NANOS / unit_nanos;
        LocalDateTime {
            days: units.div_euclid(per_day),
            nanos: units.rem_euclid(per_day) * unit_nanos,
            is_utc: false,
        }
    }
}

fn offset_seconds(zone: Tz, local: &NaiveDateTime) -> i32 {
    match zone.offset_from_local_datetime(local) {
        LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => offset.fix().local_minus_utc(),
        // The offset before the gap: a day earlier is before every gap.
        LocalResult::None => {
            zone.offset_from_utc_datetime(&(*local - chrono::Duration::days(1))).fix().local_minus_utc()
        }
    }
}

/// Appends `yyyy-MM-dd`.
pub(crate) fn write_date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil_from_days(days);
    if (0..=9999).contains(&year) {
        write_digits(year as u64, 4, out);
    } else {
        // Java prints such years with a sign; a minus counts towards no width.
        out.push(if year < 0 { b'-' } else { b'+' });
        write_digits(year.unsigned_abs(), 4, out);
    }
    out.push(b'-');
    write_digits(month, 2, out);
    out.push(b'-');
    write_digits(day, 2, out);
}

/// Appends `HH:mm:ss` and as many digits of a fraction as are not zero.
pub(crate) fn write_time(nanos: i64, out: &mut Vec<u8>) {
    let seconds = (nanos / 1_000_000_000) as u64;
    write_digits(seconds / 3_600, 2, out);
    out.push(b':');
    write_digits(seconds / 60 % 60, 2, out);
    out.push(b':');
    write_digits(seconds % 60, 2, out);
    let fraction = (nanos % 1_000_000_000) as u64;
    if fraction != 0 {
        out.push(b'.');
        write_digits(fraction, 9, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Appends a number with leading zeros up to a width.
pub(crate) fn write_digits(value: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = [b'0'; 20];
    let mut at = buffer.len();
    let mut rest = value;
    while rest != 0 || buffer.len() - at < width {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Takes `yyyy-MM-dd HH:mm:ss` and a fraction off the front, the form that writers of timestamps produce; the other functions
/// take what people write.
#[inline]
fn take_fixed(text: &[u8]) -> Option<(i64, i64, &[u8])> {
    let (form, rest) = text.split_first_chunk::<19>()?;
    let [b'0'..=b'9', _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', _, _, b':', _, _, b':', _, _] = form
    else {
        return None;
    };
    let two = |at: usize| {
        let (tens, ones) = (form[at].wrapping_sub(b'0'), form[at + 1].wrapping_sub(b'0'));
        (tens <= 9 && ones <= 9).then(|| i64::from(tens * 10 + ones))
    };
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = take_fraction(rest)?;
    let nanos = (hour * 3_600 + minute * 60 + second) * 1_000_000_000 + fraction;
    Some((days_from_civil(year, month, day), nanos, rest))
}

/// Takes a point and up to nine digits off the front, as nanoseconds.
#[inline]
fn take_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else { return Some((0, text)) };
    let (value, rest) = take_digits(digits, 0, 9)?;
    Some((value * 10_i64.pow(9 - (digits.len() - rest.len()) as u32), rest))
}

/// Takes a date and a time off the front, in any form; a date alone must be all there is.
fn take_timestamp(text: &[u8]) -> Option<(i64, i64, &[u8])> {
    let (days, rest) = take_date(text)?;
    if rest.is_empty() {
        return Some((days, 0, rest));
    }
    let time = rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"T"))?;
    let (nanos, rest) = take_time(time)?;
    Some((days, nanos, rest))
}

/// Takes a date off the front.
fn take_date(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = take_digits(text, 4, 4)?;
    let (month, rest) = take_digits(rest.strip_prefix(b"-")?, 1, 2)?;
    let (day, rest) = take_digits(rest.strip_prefix(b"-")?, 1, 2)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some((days_from_civil(year, month, day), rest))
}

/// Takes a time of day off the front.
fn take_time(text: &[u8]) -> Option<(i64, &[u8])> {
    let (hour, rest) = take_digits(text, 1, 2)?;
    let (minute, rest) = take_digits(rest.strip_prefix(b":")?, 1, 2)?;
    let (second, rest) = match rest.strip_prefix(b":") {
        Some(rest) => take_digits(rest, 1, 2)?,
        None => (0, rest),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = take_fraction(rest)?;
    Some(((hour * 3_600 + minute * 60 + second) * 1_000_000_000 + fraction, rest))
}

/// Takes between `least` and `most` digits off the front.
fn take_digits(text: &[u8], least: usize, most: usize) -> Option<(i64, &[u8])> {
    let mut value = 0;
    let mut count = 0;
    while count < most && count < text.len() && text[count].is_ascii_digit() {
        value = value * 10 + i64::from(text[count] - b'0');
        count += 1;
    }
    (count >= least).then(|| (value, &text[count..]))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts days since 1970-01-01 in the proleptic Gregorian calendar, with years that start in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

/// Splits days since 1970-01-01 into year, month and day.
fn civil_from_days(days: i64) -> (i64, u64, u64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year_of_era + carry, month as u64, day as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn dates_must_exist() {
        assert_eq!(parse_date(b"1970-01-01"), Some(0));
        assert_eq!(parse_date(b"2024-2-29"), Some(19_782));
        for wrong in ["2023-02-29", "2024-13-01", "2024-00-10", "24-01-01", "2024-01-01x", "", "2024-01"] {
            assert_eq!(parse_date(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn timestamps_are_cut_to_their_precision() {
        let parsed = parse_timestamp(b"2020-05-06 07:08:09.123456789").unwrap();
        assert_eq!(parsed.to_units(3, 1_000_000), Some(1_588_748_889_123));
        assert_eq!(parsed.to_units(0, 1_000_000), Some(1_588_748_889_000));
        assert_eq!(parsed.to_units(9, 1), Some(1_588_748_889_123_456_789));
        assert!(parse_timestamp(b"2020-05-06T07:08:09Z").unwrap().is_utc);
        assert_eq!(parse_timestamp(b"9999-12-31 00:00:00").unwrap().to_units(9, 1), None);
        assert_eq!(parse_timestamp(b"2020-05-06 24:00:00"), None);
        assert_eq!(parse_timestamp(b"2020-05-06_07:08:09"), None);
    }

    #[test]
    fn local_times_become_instants_as_in_java() {
        let zone = Tz::Europe__Berlin;
        let utc = |text: &str| {
            let instant = parse_timestamp(text.as_bytes()).unwrap().to_utc(zone).unwrap();
            self::text(|out| {
                write_date(instant.days, out);
                out.push(b' ');
                write_time(instant.nanos, out);
            })
        };
        assert_eq!(utc("2021-01-01 00:30:00"), "2020-12-31 23:30:00");
        assert_eq!(utc("2021-03-28 02:30:00"), "2021-03-28 01:30:00");
        assert_eq!(utc("2021-10-31 02:30:00"), "2021-10-31 00:30:00");
        assert_eq!(utc("2021-10-31 02:30:00Z"), "2021-10-31 02:30:00");
    }

    proptest! {
        #[test]
        fn the_fixed_form_is_read_as_every_other(
            text in "[0-2][0-9]{3}-[01]?[0-9]-[0-3]?[0-9][ T][0-2]?[0-9]:[0-6][0-9](:[0-6]?[0-9])?(\\.[0-9]{0,10})?Z?x?",
        ) {
            let text = text.as_bytes();
            if let Some(taken) = take_fixed(text) {
                prop_assert_eq!(take_timestamp(text), Some(taken));
            }
        }

        #[test]
        fn dates_and_times_survive_both_ways(days in -719_528_i64..2_932_897, nanos in 0..DAY_NANOS) {
            let date = text(|out| write_date(days, out));
            prop_assert_eq!(parse_date(date.as_bytes()), Some(days as i32));
            let time = text(|out| write_time(nanos, out));
            prop_assert_eq!(parse_time(time.as_bytes()), Some(nanos));
        }
    }
}
