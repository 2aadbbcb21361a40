//! Casts of text. A text that means nothing in the target type fails with Flink's words, or is NULL in TRY_CAST.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanBuilder, PrimitiveArray, StringArray,
};
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType,
};

use super::super::EvalContext;
use super::super::datetime::{
    Malformed, parse_date, parse_time, parse_timestamp, timestamp_array, to_ticks, zone_of,
};
use super::super::decimal;
use super::to_text::resize_bytes;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

/// Why a text is no value of the type.
enum Invalid {
    Number(&'static str),
    Double,
    Boolean,
    Date,
    Timestamp(Malformed),
}

impl Invalid {
    /// Makes Flink's error; the text is formatted only where the cast really fails.
    fn error(self, text: &str) -> Error {
        match self {
            Invalid::Number(reason) => {
                Error::data(format!("For input string: '{text}'. {reason}")).class(FlinkClass::NUMBER_FORMAT)
            }
            Invalid::Double if text.is_empty() => {
                Error::data("empty String").class(FlinkClass::NUMBER_FORMAT)
            }
            Invalid::Double => {
                Error::data(format!("For input string: \"{text}\"")).class(FlinkClass::NUMBER_FORMAT)
            }
            Invalid::Boolean => {
                Error::data(format!("Cannot parse '{text}' as BOOLEAN.")).class(FlinkClass::TABLE)
            }
            Invalid::Date => Error::data(format!("For input string: '{text}'.")).class(FlinkClass::DATE_TIME),
            Invalid::Timestamp(malformed) => malformed.error(text),
        }
    }
}

/// Casts a column of text.
pub(super) fn cast(
    array: &ArrayRef,
    to: &DataType,
    try_cast: bool,
    context: &EvalContext,
) -> Result<ArrayRef> {
    let texts =
        array.as_string_opt::<i32>().ok_or_else(|| Error::internal("a cast of text got another array"))?;
    Ok(match &to.root {
        TypeRoot::Boolean => booleans(texts, try_cast)?,
        TypeRoot::TinyInt => Arc::new(parsed::<Int8Type>(texts, try_cast, str::trim, parse_integer)?),
        TypeRoot::SmallInt => Arc::new(parsed::<Int16Type>(texts, try_cast, str::trim, parse_integer)?),
        TypeRoot::Int => Arc::new(parsed::<Int32Type>(texts, try_cast, str::trim, parse_integer)?),
        TypeRoot::BigInt => Arc::new(parsed::<Int64Type>(texts, try_cast, str::trim, parse_integer)?),
        TypeRoot::Float => Arc::new(parsed::<Float32Type>(texts, try_cast, str::trim, parse_approximate)?),
        TypeRoot::Double => Arc::new(parsed::<Float64Type>(texts, try_cast, str::trim, parse_approximate)?),
        TypeRoot::Decimal(precision, scale) => {
            let parse = |text: &str| {
                decimal::parse(text, *precision, *scale).ok_or(Invalid::Number("Invalid character found."))
            };
            Arc::new(
                parsed::<Decimal128Type>(texts, try_cast, str::trim, parse)?.with_data_type(to.to_arrow()),
            )
        }
        TypeRoot::Date => {
            let parse = |text: &str| parse_date(text).map(|days| Some(days as i32)).ok_or(Invalid::Date);
            Arc::new(parsed::<Date32Type>(texts, try_cast, |text| text, parse)?)
        }
        TypeRoot::Time(_) => {
            let parse = |text: &str| parse_time(text).map(Some).ok_or(Invalid::Date);
            Arc::new(parsed::<Time32MillisecondType>(texts, try_cast, |text| text, parse)?)
        }
        TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => {
            let zone = zone_of(&to.root, context.zone);
            let parse = |text: &str| {
                let wall = parse_timestamp(text).map_err(Invalid::Timestamp)?;
                to_ticks(wall.instant(zone), wall.nanos, *precision)
                    .map(Some)
                    .ok_or(Invalid::Timestamp(Malformed::At(0)))
            };
            let ticks = parsed::<Int64Type>(texts, try_cast, |text| text, parse)?;
            let (_, values, nulls) = ticks.into_parts();
            timestamp_array(values.to_vec(), nulls, to)?
        }
        root if root.is_binary() => {
            let (offsets, values, nulls) = texts.clone().into_parts();
            resize_bytes(&(Arc::new(BinaryArray::try_new(offsets, values, nulls)?) as ArrayRef), root)?
        }
        _ => return Err(Error::internal(format!("a cast of text was asked for {to}"))),
    })
}

/// Parses every row; `prepare` is what Flink does to the text before, and the error shows what is left.
fn parsed<T: ArrowPrimitiveType>(
    texts: &StringArray,
    try_cast: bool,
    prepare: fn(&str) -> &str,
    parse: impl Fn(&str) -> Result<Option<T::Native>, Invalid>,
) -> Result<PrimitiveArray<T>> {
    let mut builder = PrimitiveArray::<T>::builder(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) {
            builder.append_null();
            continue;
        }
        let text = prepare(texts.value(row));
        match parse(text) {
            Ok(value) => builder.append_option(value),
            Err(_) if try_cast => builder.append_null(),
            Err(invalid) => return Err(invalid.error(text)),
        }
    }
    Ok(builder.finish())
}

fn booleans(texts: &StringArray, try_cast: bool) -> Result<ArrayRef> {
    let mut builder = BooleanBuilder::with_capacity(texts.len());
    for row in 0..texts.len() {
        if texts.is_null(row) {
            builder.append_null();
            continue;
        }
        let text = texts.value(row);
        let is_one_of = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(text));
        if is_one_of(&["t", "true", "y", "yes", "1"]) {
            builder.append_value(true);
        } else if is_one_of(&["f", "false", "n", "no", "0"]) {
            builder.append_value(false);
        } else if try_cast {
            builder.append_null();
        } else {
            return Err(Invalid::Boolean.error(text));
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Reads a sign and digits; a fraction must be well formed and is dropped.
fn parse_integer<N: TryFrom<i64>>(text: &str) -> Result<Option<N>, Invalid> {
    let bytes = text.as_bytes();
    let (is_negative, digits) = match bytes {
        [] => return Err(Invalid::Number("Input is empty.")),
        [b'+' | b'-'] => return Err(Invalid::Number("Input has only positive or negative symbol.")),
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, bytes),
    };
    // The sum is kept negative because i64::MIN has no positive twin.
    let mut value = 0_i64;
    for (index, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                value = value
                    .checked_mul(10)
                    .and_then(|value| value.checked_sub(i64::from(byte - b'0')))
                    .ok_or(Invalid::Number("Overflow."))?;
            }
            b'.' if digits[index + 1..].iter().all(u8::is_ascii_digit) => break,
            _ => return Err(Invalid::Number("Invalid character found.")),
        }
    }
    let value = if is_negative { Some(value) } else { value.checked_neg() };
    value.and_then(|value| N::try_from(value).ok()).map(Some).ok_or(Invalid::Number("Overflow."))
}

/// Reads what Java's parseDouble reads, but for hexadecimal: a trailing `d` or `f` is allowed, and the words are case-sensitive.
fn parse_approximate<N: std::str::FromStr>(text: &str) -> Result<Option<N>, Invalid> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let parse = |text: &str| text.parse::<N>().map(Some).map_err(|_| Invalid::Double);
    match unsigned {
        "NaN" => parse("NaN"),
        "Infinity" => parse(text),
        _ if unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => parse(text),
        _ => match text.strip_suffix(['d', 'D', 'f', 'F']) {
            Some(number) if number.ends_with(|last: char| last.is_ascii_digit() || last == '.') => {
                parse(number)
            }
            _ => Err(Invalid::Double),
        },
    }
}
