//! Values of keys that a table can be cut by, compared as the server compares them.
//!
//! Only types are here whose order is one and the same on every server. Texts are not: their order is the collation's, which changes
//! with the operating system's libraries.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;

/// The types that a table can be cut by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum KeyType {
    /// `smallint`, `integer`, `bigint`.
    Integer,
    Numeric,
    Uuid,
    Date,
    /// With or without a time zone; what has one is written in UTC.
    Timestamp,
}

/// A value, in the order of its type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyValue<'a> {
    Integer(i64),
    Numeric(Numeric<'a>),
    Uuid(u128),
    /// Year, month and day, and microseconds of the day.
    Moment([i32; 3], i64),
}

/// A number of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Numeric<'a> {
    class: NumericClass,
    /// The digits before the point without leading zeros.
    whole: Cow<'a, [u8]>,
    /// The digits behind it without trailing zeros.
    fraction: Cow<'a, [u8]>,
}

/// What kind of number it is, in the server's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NumericClass {
    NegativeInfinity,
    Negative,
    Zero,
    Positive,
    Infinity,
    NotANumber,
}

impl KeyType {
    /// Returns the type that has a number in the server's catalog, if a table can be cut by it.
    pub(super) fn of(type_oid: u32) -> Option<KeyType> {
        Some(match Type::from_oid(type_oid)? {
            Type::INT2 | Type::INT4 | Type::INT8 => KeyType::Integer,
            Type::NUMERIC => KeyType::Numeric,
            Type::UUID => KeyType::Uuid,
            Type::DATE => KeyType::Date,
            Type::TIMESTAMP | Type::TIMESTAMPTZ => KeyType::Timestamp,
            _ => return None,
        })
    }

    /// Parses what the type's output function writes, with dates in the ISO style; None if it is not that.
    pub(super) fn parse(self, text: &[u8]) -> Option<KeyValue<'_>> {
        Some(match self {
            KeyType::Integer => KeyValue::Integer(std::str::from_utf8(text).ok()?.parse().ok()?),
            KeyType::Numeric => KeyValue::Numeric(Numeric::parse(text)?),
            KeyType::Uuid => KeyValue::Uuid(uuid(text)?),
            KeyType::Date | KeyType::Timestamp => moment(std::str::from_utf8(text).ok()?)?,
        })
    }
}

impl KeyValue<'_> {
    /// Returns the value with a copy of what it borrows.
    pub(super) fn into_owned(self) -> KeyValue<'static> {
        match self {
            KeyValue::Integer(value) => KeyValue::Integer(value),
            KeyValue::Uuid(value) => KeyValue::Uuid(value),
            KeyValue::Moment(date, time) => KeyValue::Moment(date, time),
            KeyValue::Numeric(value) => KeyValue::Numeric(Numeric {
                class: value.class,
                whole: Cow::Owned(value.whole.into_owned()),
                fraction: Cow::Owned(value.fraction.into_owned()),
            }),
        }
    }
}

impl Numeric<'_> {
    fn parse(text: &[u8]) -> Option<Numeric<'_>> {
        let special = |class| Numeric { class, whole: Cow::Borrowed(&[]), fraction: Cow::Borrowed(&[]) };
        match text {
            b"NaN" => return Some(special(NumericClass::NotANumber)),
            b"Infinity" => return Some(special(NumericClass::Infinity)),
            b"-Infinity" => return Some(special(NumericClass::NegativeInfinity)),
            _ => {}
        }
        let (is_negative, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
        let (whole, fraction) = digits.split_at(point);
        let fraction = fraction.strip_prefix(b".").unwrap_or(fraction);
        let are_digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
        if whole.len() + fraction.len() == 0 || !are_digits(whole) || !are_digits(fraction) {
            return None;
        }
        let whole = &whole[whole.iter().position(|byte| *byte != b'0').unwrap_or(whole.len())..];
        let fraction =
            &fraction[..fraction.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1)];
        let class = match (whole.is_empty() && fraction.is_empty(), is_negative) {
            (true, _) => NumericClass::Zero,
            (false, true) => NumericClass::Negative,
            (false, false) => NumericClass::Positive,
        };
        Some(Numeric { class, whole: Cow::Borrowed(whole), fraction: Cow::Borrowed(fraction) })
    }
}

impl Ord for Numeric<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_digits = || {
            let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(&other.whole));
            whole.then_with(|| self.fraction.cmp(&other.fraction))
        };
        self.class.cmp(&other.class).then_with(|| match self.class {
            NumericClass::Negative => by_digits().reverse(),
            _ => by_digits(),
        })
    }
}

impl PartialOrd for Numeric<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Parses 32 digits between hyphens.
fn uuid(text: &[u8]) -> Option<u128> {
    let mut value = 0_u128;
    let mut digits = 0;
    for byte in text.iter().filter(|byte| **byte != b'-') {
        value = value << 4 | u128::from(char::from(*byte).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then_some(value)
}

/// Parses `YYYY-MM-DD`, with ` HH:MM:SS.ffffff` or not, with `+00` or not, with ` BC` or not.
fn moment(text: &str) -> Option<KeyValue<'_>> {
    match text {
        "infinity" => return Some(KeyValue::Moment([i32::MAX, 0, 0], 0)),
        "-infinity" => return Some(KeyValue::Moment([i32::MIN, 0, 0], 0)),
        _ => {}
    }
    let (text, is_before_christ) = match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let [year, month, day] = three(date, '-')?;
    // The year before 1 is 1 BC.
    let year = if is_before_christ { 1 - year } else { year };
    let time = time.strip_suffix("+00").unwrap_or(time);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [hours, minutes, seconds] = three(time, ':')?;
    if fraction.len() > 6 {
        return None;
    }
    let mut microseconds = 0;
    for digit in fraction.chars().chain(std::iter::repeat('0')).take(6) {
        microseconds = microseconds * 10 + i64::from(digit.to_digit(10)?);
    }
    let seconds = (i64::from(hours) * 60 + i64::from(minutes)) * 60 + i64::from(seconds);
    Some(KeyValue::Moment([year, month, day], seconds * 1_000_000 + microseconds))
}

/// Parses three numbers without a sign.
fn three(text: &str, between: char) -> Option<[i32; 3]> {
    let mut parts = text.split(between);
    let mut next =
        || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    let numbers = [next()?, next()?, next()?];
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that values ascend as they are written.
    fn ascending(key_type: KeyType, texts: &[&str]) {
        let values: Vec<KeyValue<'_>> = texts
            .iter()
            .map(|text| key_type.parse(text.as_bytes()).unwrap_or_else(|| panic!("{text}")))
            .collect();
        for (at, pair) in values.windows(2).enumerate() {
            assert!(pair[0] < pair[1], "{} < {}", texts[at], texts[at + 1]);
        }
    }

    #[test]
    fn keys_ascend_as_they_do_on_the_server() {
        ascending(
            KeyType::Integer,
            &["-9223372036854775808", "-10", "-9", "0", "9", "10", "9223372036854775807"],
        );
        ascending(
            KeyType::Numeric,
            &[
                "-Infinity",
                "-100.5",
                "-100.45",
                "-0.01",
                "0",
                "0.001",
                "0.01",
                "9",
                "10",
                "10.000001",
                "Infinity",
                "NaN",
            ],
        );
        ascending(
            KeyType::Uuid,
            &[
                "00000000-0000-0000-0000-000000000001",
                "0fffffff-0000-0000-0000-000000000000",
                "ffffffff-ffff-ffff-ffff-ffffffffffff",
            ],
        );
        ascending(
            KeyType::Date,
            &[
                "-infinity",
                "4713-01-01 BC",
                "0002-01-01 BC",
                "0001-12-31 BC",
                "0001-01-01",
                "1999-12-31",
                "5874897-12-31",
                "infinity",
            ],
        );
        ascending(
            KeyType::Timestamp,
            &[
                "-infinity",
                "4713-01-01 00:00:00 BC",
                "2024-02-29 23:59:59.9",
                "2024-02-29 23:59:59.95",
                "2024-03-01 00:00:00",
                "294276-12-31 23:59:59.999999",
                "infinity",
            ],
        );
        ascending(
            KeyType::Timestamp,
            &["0044-03-15 12:00:00+00 BC", "2024-02-29 23:59:59.9+00", "2024-03-01 00:00:00+00"],
        );
    }

    #[test]
    fn equal_numbers_are_one_key_however_they_are_written() {
        for (a, b) in [("1.50", "1.5"), ("-0.0", "0"), ("100", "100.000"), ("0.10", "0.1")] {
            assert_eq!(KeyType::Numeric.parse(a.as_bytes()), KeyType::Numeric.parse(b.as_bytes()), "{a}");
        }
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        for (key_type, text) in [
            (KeyType::Integer, "1.0"),
            (KeyType::Integer, ""),
            (KeyType::Numeric, "-"),
            (KeyType::Numeric, "1e5"),
            (KeyType::Uuid, "0123"),
            (KeyType::Date, "31/12/1999"),
            (KeyType::Date, "-1-2-3"),
            (KeyType::Timestamp, "2024-01-01 10:00:00+02"),
            (KeyType::Timestamp, "2024-01-01 10:00:00.1234567"),
        ] {
            assert_eq!(key_type.parse(text.as_bytes()), None, "{text}");
        }
    }
}
