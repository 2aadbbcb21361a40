//! Dates, times and timestamps in text, read as Flink's casts read them.

use super::WallTime;
use crate::error::{Error, FlinkClass};
use crate::schema::calendar::{SECONDS_PER_DAY, days_from_civil, days_in_month};

/// Why a text is no timestamp, with what Java says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Malformed {
    /// A character that does not fit the pattern.
    At(usize),
    /// The timestamp ends before the text does.
    UnparsedFrom(usize),
    /// A field is outside its range.
    Field { name: &'static str, min: u32, max: u32, value: u32 },
}

impl Malformed {
    /// Returns the error that Flink raises for the text.
    pub(in super::super) fn error(self, text: &str) -> Error {
        match self {
            Malformed::At(index) => {
                Error::data(format!("Text '{text}' could not be parsed at index {index}"))
                    .class(FlinkClass::DATE_TIME_PARSE)
            }
            Malformed::UnparsedFrom(index) => Error::data(format!(
                "Text '{text}' could not be parsed, unparsed text found at index {index}"
            ))
            .class(FlinkClass::DATE_TIME_PARSE),
            Malformed::Field { name, min, max, value } => {
                Error::data(format!("Invalid value for {name} (valid values {min} - {max}): {value}"))
                    .class(FlinkClass::DATE_TIME)
            }
        }
    }
}

/// Parses `yyyy[-M[-d]]`; what follows the first blank is not looked at.
pub(in super::super) fn parse_date(text: &str) -> Option<i64> {
    let text = match text.find(' ') {
        Some(blank) if blank > 0 => &text[..blank],
        _ => text,
    };
    let mut parts = text.splitn(3, '-');
    let year = i64::from(digits(parts.next()?)?);
    let month = parts.next().map_or(Some(1), digits)?;
    let day = parts.next().map_or(Some(1), digits)?;
    let is_date = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year, month);
    is_date.then(|| days_from_civil(year, month, day))
}

/// Parses `H[:m[:s[.f]]]` into milliseconds.
pub(in super::super) fn parse_time(text: &str) -> Option<i32> {
    let mut parts = text.splitn(3, ':');
    let hour = digits(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), digits)?;
    let (second, millis) = match parts.next() {
        None => (0, 0),
        Some(rest) => match rest.split_once('.') {
            None => (digits(rest)?, 0),
            Some((second, fraction)) => (digits(second)?, fraction_nanos(fraction.trim())? / 1_000_000),
        },
    };
    (hour < 24 && minute < 60 && second < 60)
        .then(|| ((hour * 3600 + minute * 60 + second) * 1000) as i32 + millis as i32)
}

/// Parses `yyyy-M-d[ H:m:s[.f]]`. A day that its month lacks becomes the month's last one, as java.time does.
pub(in super::super) fn parse_timestamp(text: &str) -> Result<WallTime, Malformed> {
    let bytes = text.as_bytes();
    let (year, at) = number(bytes, 0, 4, 4).ok_or(Malformed::At(0))?;
    let at = expect(bytes, at, b'-')?;
    let (month, at) = number(bytes, at, 1, 2).ok_or(Malformed::At(at))?;
    let at = expect(bytes, at, b'-')?;
    let (day, at) = number(bytes, at, 1, 2).ok_or(Malformed::At(at))?;
    let (time, end) = match time_of_day(bytes, at) {
        Some((time, end)) => (time, end),
        None => ([0, 0, 0, 0], at),
    };
    if end < bytes.len() {
        return Err(Malformed::UnparsedFrom(end));
    }
    let [hour, minute, second, nanos] = time;
    check("MonthOfYear", 1, 12, month)?;
    check("DayOfMonth", 1, 31, day)?;
    check("HourOfDay", 0, 23, hour)?;
    check("MinuteOfHour", 0, 59, minute)?;
    check("SecondOfMinute", 0, 59, second)?;
    let days = days_from_civil(i64::from(year), month, day.min(days_in_month(i64::from(year), month)));
    let of_day = i64::from(hour * 3600 + minute * 60 + second);
    Ok(WallTime { seconds: days * SECONDS_PER_DAY + of_day, nanos: i64::from(nanos) })
}

/// Parses ` H:m:s[.f]` at an offset: hour, minute, second, nanoseconds, and the offset behind them.
fn time_of_day(bytes: &[u8], at: usize) -> Option<([u32; 4], usize)> {
    let at = expect(bytes, at, b' ').ok()?;
    let (hour, at) = number(bytes, at, 1, 2)?;
    let at = expect(bytes, at, b':').ok()?;
    let (minute, at) = number(bytes, at, 1, 2)?;
    let at = expect(bytes, at, b':').ok()?;
    let (second, at) = number(bytes, at, 1, 2)?;
    if bytes.get(at) != Some(&b'.') {
        return Some(([hour, minute, second, 0], at));
    }
    let count = bytes[at + 1..].iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
    let text = std::str::from_utf8(&bytes[at + 1..at + 1 + count]).ok()?;
    Some(([hour, minute, second, fraction_nanos(text)?], at + 1 + count))
}

fn check(name: &'static str, min: u32, max: u32, value: u32) -> Result<(), Malformed> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(Malformed::Field { name, min, max, value }) }
}

fn expect(bytes: &[u8], at: usize, wanted: u8) -> Result<usize, Malformed> {
    if bytes.get(at) == Some(&wanted) { Ok(at + 1) } else { Err(Malformed::At(at)) }
}

/// Reads between `least` and `most` digits.
fn number(bytes: &[u8], at: usize, least: usize, most: usize) -> Option<(u32, usize)> {
    let count = bytes.get(at..)?.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    (count >= least).then(|| {
        (
            bytes[at..at + count].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')),
            at + count,
        )
    })
}

/// Reads a text of up to nine digits and nothing else, blanks around it aside.
fn digits(text: &str) -> Option<u32> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.bytes().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

/// Reads the digits behind a decimal point as nanoseconds; those behind the ninth are dropped.
fn fraction_nanos(text: &str) -> Option<u32> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nine = text.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(nine.fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_may_lack_month_and_day_but_not_be_invalid() {
        assert_eq!(parse_date("2024-1-1"), Some(days_from_civil(2024, 1, 1)));
        assert_eq!(parse_date("2024"), Some(days_from_civil(2024, 1, 1)));
        assert_eq!(parse_date("2024-02-29 10:00"), Some(days_from_civil(2024, 2, 29)));
        for text in ["2024-02-30", "2024-13-01", "+5", "", "1e3", "abc", "2024-01-01T00:00:00"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }

    #[test]
    fn times_keep_milliseconds() {
        assert_eq!(parse_time("10:00"), Some(36_000_000));
        assert_eq!(parse_time("1:2:3.4567"), Some(3_723_456));
        assert_eq!(parse_time("24:00:00"), None);
        assert_eq!(parse_time("x"), None);
    }

    #[test]
    fn timestamps_name_what_is_wrong_with_them() {
        let wall = parse_timestamp("2024-01-01 10:00:00.123456789").unwrap();
        assert_eq!((wall.second_of_day(), wall.nanos), (36_000, 123_456_789));
        assert_eq!(parse_timestamp("2024-01-01T10:00:00"), Err(Malformed::UnparsedFrom(10)));
        assert_eq!(parse_timestamp("abc"), Err(Malformed::At(0)));
        assert_eq!(
            parse_timestamp("2024-01-01 25:00:00"),
            Err(Malformed::Field { name: "HourOfDay", min: 0, max: 23, value: 25 })
        );
        assert_eq!(parse_timestamp("2024-02-30").unwrap().days(), days_from_civil(2024, 2, 29));
    }
}
