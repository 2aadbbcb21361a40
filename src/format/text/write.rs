//! Writes single values as texts, the way Java's classes print them.

use std::fmt;
use std::io::Write;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, StringArray,
};
use arrow::datatypes::{
    Date32Type, DurationMillisecondType, IntervalYearMonthType, Time32MillisecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::TimestampStandard;
use super::number::parse_i64;
use super::parse::unit_nanos;
use super::temporal::{LocalDateTime, write_date, write_time};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// Choices that formats make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextStyle {
    /// How timestamps look.
    pub(crate) timestamps: TimestampStandard,
    /// Whether decimals never have an exponent.
    pub(crate) is_plain_decimal: bool,
}

/// A column of single values in its concrete type.
#[derive(Debug, Clone)]
pub(crate) enum ScalarWriter {
    /// Nothing but NULL.
    Null,
    /// BOOLEAN.
    Boolean(BooleanArray),
    /// TINYINT.
    Int8(Int8Array),
    /// SMALLINT.
    Int16(Int16Array),
    /// INT and intervals of months.
    Int32(Int32Array),
    /// BIGINT and intervals of milliseconds.
    Int64(Int64Array),
    /// FLOAT.
    Float32(Float32Array),
    /// DOUBLE.
    Float64(Float64Array),
    /// DECIMAL with its scale.
    Decimal(Decimal128Array, u8),
    /// CHAR, VARCHAR.
    Text(StringArray),
    /// BINARY, VARBINARY.
    Bytes(BinaryArray),
    /// DATE.
    Date(Int32Array),
    /// TIME.
    Time(Int32Array),
    /// TIMESTAMP: the length of a unit, and whether the values are instants.
    Timestamp(Int64Array, i64, bool),
}

impl ScalarWriter {
    /// Takes a column; arrays, maps and rows give None.
    pub(crate) fn new(data_type: &DataType, array: &ArrayRef) -> Option<ScalarWriter> {
        Some(match &data_type.root {
            TypeRoot::Null => ScalarWriter::Null,
            TypeRoot::Boolean => ScalarWriter::Boolean(array.as_boolean_opt()?.clone()),
            TypeRoot::TinyInt => ScalarWriter::Int8(array.as_primitive_opt()?.clone()),
            TypeRoot::SmallInt => ScalarWriter::Int16(array.as_primitive_opt()?.clone()),
            TypeRoot::Int => ScalarWriter::Int32(array.as_primitive_opt()?.clone()),
            TypeRoot::BigInt => ScalarWriter::Int64(array.as_primitive_opt()?.clone()),
            TypeRoot::Float => ScalarWriter::Float32(array.as_primitive_opt()?.clone()),
            TypeRoot::Double => ScalarWriter::Float64(array.as_primitive_opt()?.clone()),
            TypeRoot::Decimal(_, scale) => ScalarWriter::Decimal(array.as_primitive_opt()?.clone(), *scale),
            TypeRoot::Char(_) | TypeRoot::Varchar(_) => {
                ScalarWriter::Text(array.as_string_opt::<i32>()?.clone())
            }
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => {
                ScalarWriter::Bytes(array.as_binary_opt::<i32>()?.clone())
            }
            TypeRoot::Date => ScalarWriter::Date(array.as_primitive_opt::<Date32Type>()?.reinterpret_cast()),
            TypeRoot::Time(_) => {
                ScalarWriter::Time(array.as_primitive_opt::<Time32MillisecondType>()?.reinterpret_cast())
            }
            TypeRoot::Timestamp(precision) => timestamps(array, *precision, false)?,
            TypeRoot::TimestampLtz(precision) => timestamps(array, *precision, true)?,
            TypeRoot::IntervalYearMonth(_) => {
                ScalarWriter::Int32(array.as_primitive_opt::<IntervalYearMonthType>()?.reinterpret_cast())
            }
            TypeRoot::IntervalDayTime(_) => {
                ScalarWriter::Int64(array.as_primitive_opt::<DurationMillisecondType>()?.reinterpret_cast())
            }
            TypeRoot::Array(_) | TypeRoot::Map(..) | TypeRoot::Multiset(_) | TypeRoot::Row(_) => return None,
        })
    }

    /// Takes a column that must have the Arrow form of its type.
    ///
    /// # Errors
    /// It has not, which is a bug of the caller.
    pub(crate) fn require(data_type: &DataType, array: &ArrayRef) -> Result<ScalarWriter> {
        ScalarWriter::new(data_type, array).ok_or_else(|| {
            Error::internal(format!("a column of type {data_type} came as Arrow {}", array.data_type()))
        })
    }

    /// Appends the text of a row that is not NULL.
    pub(crate) fn write(&self, row: usize, style: TextStyle, out: &mut Vec<u8>) {
        match self {
            ScalarWriter::Null => {}
            ScalarWriter::Boolean(array) => {
                out.extend_from_slice(if array.value(row) { b"true" } else { b"false" });
            }
            ScalarWriter::Int8(array) => write_integer(i64::from(array.value(row)), out),
            ScalarWriter::Int16(array) => write_integer(i64::from(array.value(row)), out),
            ScalarWriter::Int32(array) => write_integer(i64::from(array.value(row)), out),
            ScalarWriter::Int64(array) => write_integer(array.value(row), out),
            ScalarWriter::Float32(array) => {
                let value = array.value(row);
                write_float(f64::from(value), format_args!("{value:e}"), out);
            }
            ScalarWriter::Float64(array) => {
                let value = array.value(row);
                write_float(value, format_args!("{value:e}"), out);
            }
            ScalarWriter::Decimal(array, scale) => {
                write_decimal(array.value(row), *scale, style.is_plain_decimal, out);
            }
            ScalarWriter::Text(array) => out.extend_from_slice(array.value(row).as_bytes()),
            ScalarWriter::Bytes(array) => out.extend_from_slice(STANDARD.encode(array.value(row)).as_bytes()),
            ScalarWriter::Date(array) => write_date(i64::from(array.value(row)), out),
            ScalarWriter::Time(array) => write_time(i64::from(array.value(row)) * 1_000_000, out),
            ScalarWriter::Timestamp(array, unit, is_instant) => {
                let local = LocalDateTime::from_units(array.value(row), *unit);
                write_date(local.days, out);
                out.push(if style.timestamps == TimestampStandard::Sql { b' ' } else { b'T' });
                write_time(local.nanos, out);
                if *is_instant {
                    out.push(b'Z');
                }
            }
        }
    }
}

fn timestamps(array: &ArrayRef, precision: u8, is_instant: bool) -> Option<ScalarWriter> {
    let values = match array.data_type() {
        arrow::datatypes::DataType::Timestamp(TimeUnit::Millisecond, _) => {
            array.as_primitive_opt::<TimestampMillisecondType>()?.reinterpret_cast()
        }
        arrow::datatypes::DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive_opt::<TimestampMicrosecondType>()?.reinterpret_cast()
        }
        _ => array.as_primitive_opt::<TimestampNanosecondType>()?.reinterpret_cast(),
    };
    Some(ScalarWriter::Timestamp(values, unit_nanos(precision), is_instant))
}

fn write_integer(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    super::temporal::write_digits(value.unsigned_abs(), 1, out);
}

/// A text on the stack, long enough for every number.
struct NumberText {
    bytes: [u8; 48],
    len: usize,
}

impl NumberText {
    fn new(text: fmt::Arguments<'_>) -> NumberText {
        let mut bytes = [0; 48];
        let mut rest = bytes.as_mut_slice();
        let _ = rest.write_fmt(text);
        let len = 48 - rest.len();
        NumberText { bytes, len }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends a floating-point number in Java's layout, given its shortest digits as `d.ddde-n`.
fn write_float(value: f64, scientific: fmt::Arguments<'_>, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
        return;
    }
    let text = NumberText::new(scientific);
    let text = text.as_bytes();
    let at = memchr::memchr(b'e', text).unwrap_or(text.len());
    let exponent = text.get(at + 1..).and_then(parse_i64).unwrap_or(0) as i32;
    let (sign, mantissa) = text[..at].split_at(usize::from(text[0] == b'-'));
    out.extend_from_slice(sign);
    let mut digits = [0; 48];
    let mut len = 0;
    for byte in mantissa.iter().filter(|byte| **byte != b'.') {
        digits[len] = *byte;
        len += 1;
    }
    let digits = &digits[..len];
    if value == 0.0 {
        out.extend_from_slice(b"0.0");
    } else if (-3..7).contains(&exponent) {
        write_plain(digits, exponent, out);
    } else {
        write_plain(digits, 0, out);
        let _ = write!(out, "E{exponent}");
    }
}

/// Appends digits with the point behind the first one, moved by `exponent`; there is a digit on each side.
fn write_plain(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-exponent - 1) as usize));
        out.extend_from_slice(digits);
        return;
    }
    let whole = exponent as usize + 1;
    for at in 0..whole {
        out.push(digits.get(at).copied().unwrap_or(b'0'));
    }
    out.push(b'.');
    if digits.len() > whole {
        out.extend_from_slice(&digits[whole..]);
    } else {
        out.push(b'0');
    }
}

/// Appends a decimal as Java's `BigDecimal`: with an exponent where it is tiny, unless it must be plain.
pub(crate) fn write_decimal(unscaled: i128, scale: u8, is_plain: bool, out: &mut Vec<u8>) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let digits = NumberText::new(format_args!("{}", unscaled.unsigned_abs()));
    let digits = digits.as_bytes();
    let scale = usize::from(scale);
    let exponent = digits.len() as i64 - 1 - scale as i64;
    if !is_plain && exponent < -6 {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let _ = write!(out, "E{exponent}");
        return;
    }
    if digits.len() > scale {
        let whole = digits.len() - scale;
        out.extend_from_slice(&digits[..whole]);
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    } else {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', scale - digits.len()));
        out.extend_from_slice(digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> String {
        let mut out = Vec::new();
        write_float(value, format_args!("{value:e}"), &mut out);
        String::from_utf8(out).unwrap()
    }

    fn decimal(unscaled: i128, scale: u8, is_plain: bool) -> String {
        let mut out = Vec::new();
        write_decimal(unscaled, scale, is_plain, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_have_javas_layout() {
        let cases = [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e7, "1.0E7"),
            (9_999_999.0, "9999999.0"),
            (0.001, "0.001"),
            (1.234e-5, "1.234E-5"),
            (-123.25, "-123.25"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn tiny_decimals_have_an_exponent_unless_plain() {
        assert_eq!(decimal(27, 9, false), "2.7E-8");
        assert_eq!(decimal(27, 9, true), "0.000000027");
        assert_eq!(decimal(-1230, 2, false), "-12.30");
        assert_eq!(decimal(0, 2, false), "0.00");
        assert_eq!(decimal(5, 0, false), "5");
    }
}
