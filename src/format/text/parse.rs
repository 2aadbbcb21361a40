//! Appends the value that a text stands for to a column, by the column's type.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono_tz::Tz;

use super::number::{DecimalText, parse_decimal, parse_f64, parse_i64};
use super::temporal::{parse_date, parse_time, parse_timestamp};
use crate::format::column::{ColumnBuilder, Values};
use crate::schema::{DataType, TypeRoot};

/// Why a text is no value of a type. The sentence about it is made only when somebody reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFault {
    /// Not a number, or one that the type does not hold.
    Number,
    /// Not a date, time or timestamp.
    Temporal,
    /// Not Base64.
    Base64,
    /// An array, map or row where a single value is expected, or the other way round.
    Shape,
    /// A nested row has another number of values.
    Length {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        actual: usize,
    },
}

impl TextFault {
    /// Returns Flink's words about a text that is wrong.
    pub(crate) fn message(self, text: &[u8], data_type: &DataType) -> String {
        let text = String::from_utf8_lossy(text);
        match self {
            TextFault::Number => format!("For input string: \"{text}\""),
            TextFault::Temporal => format!("Text '{text}' could not be parsed as {data_type}"),
            TextFault::Base64 => "Unable to deserialize byte array.".to_owned(),
            TextFault::Shape => format!("'{text}' is not a value of type {data_type}"),
            TextFault::Length { expected, actual } => {
                format!("Row length mismatch. {expected} fields expected but was {actual}.")
            }
        }
    }
}

/// Parses texts of single values.
#[derive(Debug, Clone)]
pub(crate) struct TextParser {
    zone: Tz,
    scratch: Vec<u8>,
}

impl TextParser {
    /// Creates a parser that reads instants without a `Z` in the given zone.
    pub(crate) fn new(zone: Tz) -> TextParser {
        TextParser { zone, scratch: Vec::new() }
    }

    /// Appends the value of a text. A text that is wrong appends nothing.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), TextFault> {
        let zone = self.zone;
        let (data_type, values) = column.parts();
        match values {
            Values::Bytes(..) => return self.push_text(text, column),
            Values::Int64(values) => values.push(parse_long(text, &data_type.root, zone)?),
            Values::Int32(values) => values.push(parse_int(text, &data_type.root)?),
            Values::Float64(values) => values.push(parse_f64(trimmed(text)).ok_or(TextFault::Number)?),
            Values::Float32(values) => values.push(parse_float(trimmed(text)).ok_or(TextFault::Number)?),
            Values::Int128(values) => {
                let (precision, scale) = data_type.root.as_decimal().unwrap_or((38, 0));
                match parse_decimal(trimmed(text), precision, scale) {
                    DecimalText::Value(value) => values.push(value),
                    DecimalText::TooLarge => {
                        column.push_null();
                        return Ok(());
                    }
                    DecimalText::Malformed => return Err(TextFault::Number),
                }
            }
            // Java's parseBoolean: whatever is not "true" is false.
            Values::Boolean(values) => values.append(trimmed(text).eq_ignore_ascii_case(b"true")),
            Values::Int16(values) => values.push(narrow(text)?),
            Values::Int8(values) => values.push(narrow(text)?),
            Values::Null => {
                column.push_null();
                return Ok(());
            }
            Values::List(..) | Values::Map(..) | Values::Row(_) => return Err(TextFault::Shape),
        }
        column.mark_valid();
        Ok(())
    }

    fn push_text(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), TextFault> {
        if column.data_type().root.is_character() {
            column.push_bytes(text);
            return Ok(());
        }
        self.scratch.clear();
        STANDARD.decode_vec(text, &mut self.scratch).map_err(|_| TextFault::Base64)?;
        column.push_bytes(&self.scratch);
        Ok(())
    }
}

fn parse_long(text: &[u8], root: &TypeRoot, zone: Tz) -> Result<i64, TextFault> {
    match root {
        TypeRoot::Timestamp(precision) => parse_timestamp(text)
            .and_then(|local| local.to_units(*precision, unit_nanos(*precision)))
            .ok_or(TextFault::Temporal),
        TypeRoot::TimestampLtz(precision) => parse_timestamp(text)
            .and_then(|local| local.to_utc(zone))
            .and_then(|instant| instant.to_units(*precision, unit_nanos(*precision)))
            .ok_or(TextFault::Temporal),
        _ => parse_i64(trimmed(text)).ok_or(TextFault::Number),
    }
}

fn parse_int(text: &[u8], root: &TypeRoot) -> Result<i32, TextFault> {
    match root {
        TypeRoot::Date => parse_date(text).ok_or(TextFault::Temporal),
        TypeRoot::Time(precision) => {
            let millis = parse_time(text).ok_or(TextFault::Temporal)? / 1_000_000;
            Ok((millis - millis % 10_i64.pow(3 - u32::from((*precision).min(3)))) as i32)
        }
        _ => narrow(text),
    }
}

/// Parses a float from the text itself: by way of a double it would be rounded twice.
fn parse_float(text: &[u8]) -> Option<f32> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .or_else(|| parse_f64(text).map(|value| value as f32))
}

fn narrow<T: TryFrom<i64>>(text: &[u8]) -> Result<T, TextFault> {
    parse_i64(trimmed(text)).and_then(|value| T::try_from(value).ok()).ok_or(TextFault::Number)
}

/// Returns the length of a unit in which timestamps of a precision are kept.
pub(super) fn unit_nanos(precision: u8) -> i64 {
    match precision {
        0..=3 => 1_000_000,
        4..=6 => 1_000,
        _ => 1,
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    match text {
        [first, .., last] if *first > b' ' && *last > b' ' => text,
        _ => text.trim_ascii(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, ArrayRef, AsArray};
    use arrow::datatypes::{Int8Type, Int32Type, Int64Type};

    fn parse(text: &str, root: TypeRoot) -> Result<ArrayRef, TextFault> {
        let mut column = ColumnBuilder::new(&root.nullable());
        TextParser::new(Tz::Asia__Tokyo).push(text.as_bytes(), &mut column)?;
        Ok(column.finish().unwrap())
    }

    #[test]
    fn numbers_are_trimmed_and_checked_against_their_type() {
        assert_eq!(parse(" 12 ", TypeRoot::TinyInt).unwrap().as_primitive::<Int8Type>().value(0), 12);
        assert_eq!(parse("128", TypeRoot::TinyInt).unwrap_err(), TextFault::Number);
        assert_eq!(parse("", TypeRoot::Int).unwrap_err(), TextFault::Number);
        assert_eq!(TextFault::Number.message(b"x", &TypeRoot::Int.nullable()), "For input string: \"x\"");
        assert!(parse("123", TypeRoot::Decimal(2, 0)).unwrap().is_null(0));
    }

    #[test]
    fn what_is_not_true_is_false_as_in_java() {
        assert!(parse("TRUE ", TypeRoot::Boolean).unwrap().as_boolean().value(0));
        assert!(!parse("yes", TypeRoot::Boolean).unwrap().as_boolean().value(0));
    }

    #[test]
    fn instants_without_a_z_are_read_in_the_session_zone() {
        let value = |text: &str| parse(text, TypeRoot::TimestampLtz(3)).unwrap();
        let millis =
            |array: ArrayRef| array.as_primitive::<arrow::datatypes::TimestampMillisecondType>().value(0);
        assert_eq!(millis(value("1970-01-01 09:00:00")), 0);
        assert_eq!(millis(value("1970-01-01 09:00:00Z")), 32_400_000);
    }

    #[test]
    fn times_and_bytes() {
        let time = parse("10:00:00.123", TypeRoot::Time(0)).unwrap();
        assert_eq!(time.as_primitive::<arrow::datatypes::Time32MillisecondType>().value(0), 36_000_000);
        assert_eq!(parse("aGk=", TypeRoot::BYTES).unwrap().as_binary::<i32>().value(0), b"hi");
        assert_eq!(parse("?", TypeRoot::BYTES).unwrap_err(), TextFault::Base64);
        assert_eq!(parse("5", TypeRoot::Int).unwrap().as_primitive::<Int32Type>().value(0), 5);
        assert_eq!(parse("-5", TypeRoot::BigInt).unwrap().as_primitive::<Int64Type>().value(0), -5);
    }
}
