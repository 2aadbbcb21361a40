//! How a value looks: the client's cells and `CAST(x AS STRING)` share this text, but for bytes, which a cell shows in hex.
//!
//! A formatter looks at the column once and then writes row by row into the caller's buffer.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, Date32Type, Decimal128Type, DurationMillisecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalYearMonthType,
    Time32MillisecondType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use chrono_tz::Tz;

use super::calendar::{MILLIS_PER_DAY, SECONDS_PER_DAY, civil_from_days, offset_at};
use super::{DataType, TypeRoot};

/// Who reads the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// The client's table: bytes as `x'00ff'`.
    Cell,
    /// `CAST(x AS STRING)`: bytes are read as UTF-8.
    Cast,
}

/// Writes the values of one column as text.
pub struct CellFormatter<'a> {
    values: Values<'a>,
    nulls: Option<&'a NullBuffer>,
}

/// A column whose Arrow type is known.
enum Values<'a> {
    Null,
    Text(&'a StringArray),
    Hex(&'a BinaryArray),
    Utf8(&'a BinaryArray),
    Boolean(&'a BooleanArray),
    TinyInt(&'a [i8]),
    SmallInt(&'a [i16]),
    Int(&'a [i32]),
    BigInt(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128], u8),
    Date(&'a [i32]),
    Time(&'a [i32], u8),
    Timestamp {
        ticks: &'a [i64],
        per_second: i64,
        digits: u8,
        zone: Tz,
    },
    Months(&'a [i32]),
    Millis(&'a [i64]),
    List {
        offsets: &'a [i32],
        element: Box<CellFormatter<'a>>,
    },
    Map {
        offsets: &'a [i32],
        key: Box<CellFormatter<'a>>,
        value: Box<CellFormatter<'a>>,
    },
    Row(Vec<CellFormatter<'a>>),
    /// An array that has not the form of its type; Arrow's own text is better than none.
    Foreign(&'a dyn Array),
}

impl<'a> CellFormatter<'a> {
    /// Prepares a column for the client's cells. The array has the Arrow form of the type.
    pub fn new(data_type: &'a DataType, array: &'a dyn Array, zone: Tz) -> CellFormatter<'a> {
        CellFormatter::with_style(data_type, array, zone, Style::Cell)
    }

    /// Prepares a column for `CAST(x AS STRING)`.
    pub fn for_cast(data_type: &'a DataType, array: &'a dyn Array, zone: Tz) -> CellFormatter<'a> {
        CellFormatter::with_style(data_type, array, zone, Style::Cast)
    }

    fn with_style(
        data_type: &'a DataType,
        array: &'a dyn Array,
        zone: Tz,
        style: Style,
    ) -> CellFormatter<'a> {
        let values = Values::of(&data_type.root, array, zone, style).unwrap_or(Values::Foreign(array));
        CellFormatter { values, nulls: array.nulls() }
    }

    /// Appends the text of a row; returns false and appends nothing where it is NULL.
    pub fn write(&self, row: usize, out: &mut String) -> bool {
        if matches!(self.values, Values::Null) || self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return false;
        }
        self.values.write(row, out);
        true
    }

    /// Appends the text of a value inside another: NULL is spelled out.
    fn write_nested(&self, row: usize, out: &mut String) {
        if !self.write(row, out) {
            out.push_str("NULL");
        }
    }
}

impl<'a> Values<'a> {
    /// Looks at the array as its type says, or returns None where it has another form.
    fn of(root: &'a TypeRoot, array: &'a dyn Array, zone: Tz, style: Style) -> Option<Values<'a>> {
        Some(match root {
            TypeRoot::Char(_) | TypeRoot::Varchar(_) => Values::Text(array.as_string_opt()?),
            TypeRoot::Boolean => Values::Boolean(array.as_boolean_opt()?),
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => match style {
                Style::Cell => Values::Hex(array.as_binary_opt()?),
                Style::Cast => Values::Utf8(array.as_binary_opt()?),
            },
            TypeRoot::Decimal(_, scale) => Values::Decimal(slice::<Decimal128Type>(array)?, *scale),
            TypeRoot::TinyInt => Values::TinyInt(slice::<Int8Type>(array)?),
            TypeRoot::SmallInt => Values::SmallInt(slice::<Int16Type>(array)?),
            TypeRoot::Int => Values::Int(slice::<Int32Type>(array)?),
            TypeRoot::BigInt => Values::BigInt(slice::<Int64Type>(array)?),
            TypeRoot::Float => Values::Float(slice::<Float32Type>(array)?),
            TypeRoot::Double => Values::Double(slice::<Float64Type>(array)?),
            TypeRoot::Date => Values::Date(slice::<Date32Type>(array)?),
            TypeRoot::Time(digits) => Values::Time(slice::<Time32MillisecondType>(array)?, *digits),
            TypeRoot::Timestamp(digits) => timestamps(array, *digits, Tz::UTC)?,
            TypeRoot::TimestampLtz(digits) => timestamps(array, *digits, zone)?,
            TypeRoot::IntervalYearMonth(_) => Values::Months(slice::<IntervalYearMonthType>(array)?),
            TypeRoot::IntervalDayTime(_) => Values::Millis(slice::<DurationMillisecondType>(array)?),
            TypeRoot::Array(element) => {
                let list = array.as_list_opt::<i32>()?;
                let element = CellFormatter::with_style(element, list.values().as_ref(), zone, style);
                Values::List { offsets: list.value_offsets(), element: Box::new(element) }
            }
            TypeRoot::Map(key, value) => map(array, key, value, zone, style)?,
            TypeRoot::Multiset(element) => map(array, element, COUNT_TYPE, zone, style)?,
            TypeRoot::Row(fields) => {
                let row: &StructArray = array.as_struct_opt()?;
                if row.num_columns() != fields.len() {
                    return None;
                }
                let columns = fields.iter().zip(row.columns());
                Values::Row(
                    columns
                        .map(|(field, column)| {
                            CellFormatter::with_style(&field.data_type, column.as_ref(), zone, style)
                        })
                        .collect(),
                )
            }
            TypeRoot::Null => Values::Null,
        })
    }

    fn write(&self, row: usize, out: &mut String) {
        // Writing to a String cannot fail, so the results of `write!` are not looked at.
        match self {
            Values::Null => {}
            Values::Text(array) => out.push_str(array.value(row)),
            Values::Hex(array) => push_hex(array.value(row), out),
            Values::Utf8(array) => out.push_str(&String::from_utf8_lossy(array.value(row))),
            Values::Boolean(array) => out.push_str(if array.value(row) { "TRUE" } else { "FALSE" }),
            Values::TinyInt(values) => push_integer(i64::from(values[row]), out),
            Values::SmallInt(values) => push_integer(i64::from(values[row]), out),
            Values::Int(values) => push_integer(i64::from(values[row]), out),
            Values::BigInt(values) => push_integer(values[row], out),
            Values::Float(values) => push_float(values[row], out),
            Values::Double(values) => push_double(values[row], out),
            Values::Decimal(values, scale) => push_decimal(values[row], *scale, out),
            Values::Date(values) => push_date(i64::from(values[row]), out),
            Values::Time(values, digits) => {
                push_time_of_day(
                    i64::from(values[row]) / 1000,
                    i64::from(values[row]) % 1000 * 1_000_000,
                    *digits,
                    out,
                );
            }
            Values::Timestamp { ticks, per_second, digits, zone } => {
                push_timestamp(ticks[row], *per_second, *digits, *zone, out);
            }
            Values::Months(values) => {
                let months = values[row];
                out.push(if months < 0 { '-' } else { '+' });
                let _ = write!(out, "{}-{:02}", months.unsigned_abs() / 12, months.unsigned_abs() % 12);
            }
            Values::Millis(values) => push_day_time(values[row], out),
            Values::List { offsets, element } => {
                out.push('[');
                for (position, index) in (offsets[row]..offsets[row + 1]).enumerate() {
                    push_separator(position, out);
                    element.write_nested(index as usize, out);
                }
                out.push(']');
            }
            Values::Map { offsets, key, value } => {
                out.push('{');
                for (position, index) in (offsets[row]..offsets[row + 1]).enumerate() {
                    push_separator(position, out);
                    key.write_nested(index as usize, out);
                    out.push('=');
                    value.write_nested(index as usize, out);
                }
                out.push('}');
            }
            Values::Row(fields) => {
                out.push('(');
                for (position, field) in fields.iter().enumerate() {
                    push_separator(position, out);
                    field.write_nested(row, out);
                }
                out.push(')');
            }
            Values::Foreign(array) => match arrow::util::display::array_value_to_string(*array, row) {
                Ok(text) => out.push_str(&text),
                Err(error) => {
                    let _ = write!(out, "<{error}>");
                }
            },
        }
    }
}

/// The type of a multiset's counts.
static COUNT_TYPE: &DataType = &DataType { root: TypeRoot::Int, nullable: false };

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the values of a primitive array.
fn slice<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&[T::Native]> {
    let array: &PrimitiveArray<T> = array.as_primitive_opt()?;
    Some(array.values().as_ref())
}

/// Returns timestamps of any unit, which the array's own type names.
fn timestamps(array: &dyn Array, digits: u8, zone: Tz) -> Option<Values<'_>> {
    let ArrowType::Timestamp(unit, _) = array.data_type() else { return None };
    let (ticks, per_second) = match unit {
        TimeUnit::Millisecond => (slice::<TimestampMillisecondType>(array)?, 1000),
        TimeUnit::Microsecond => (slice::<TimestampMicrosecondType>(array)?, 1_000_000),
        TimeUnit::Nanosecond => (slice::<TimestampNanosecondType>(array)?, 1_000_000_000),
        TimeUnit::Second => return None,
    };
    Some(Values::Timestamp { ticks, per_second, digits, zone })
}

/// Looks at a map array.
fn map<'a>(
    array: &'a dyn Array,
    key: &'a DataType,
    value: &'a DataType,
    zone: Tz,
    style: Style,
) -> Option<Values<'a>> {
    let map = array.as_map_opt()?;
    Some(Values::Map {
        offsets: map.value_offsets(),
        key: Box::new(CellFormatter::with_style(key, map.keys().as_ref(), zone, style)),
        value: Box::new(CellFormatter::with_style(value, map.values().as_ref(), zone, style)),
    })
}

/// Appends bytes as `x'00ff'`.
fn push_hex(bytes: &[u8], out: &mut String) {
    out.push_str("x'");
    for byte in bytes {
        out.push(char::from(HEX_DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(HEX_DIGITS[usize::from(byte & 15)]));
    }
    out.push('\'');
}

fn push_separator(position: usize, out: &mut String) {
    if position > 0 {
        out.push_str(", ");
    }
}

fn push_integer(value: i64, out: &mut String) {
    let _ = write!(out, "{value}");
}

/// Appends a number padded with zeros, the fast path of dates and times.
fn push_padded(value: i64, width: usize, out: &mut String) {
    let _ = write!(out, "{value:0width$}");
}

/// Appends a decimal with exactly `scale` fraction digits.
pub fn push_decimal(value: i128, scale: u8, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    let magnitude = value.unsigned_abs();
    if scale == 0 {
        let _ = write!(out, "{magnitude}");
        return;
    }
    let unit = 10_u128.pow(u32::from(scale));
    let _ = write!(out, "{}.{:0width$}", magnitude / unit, magnitude % unit, width = usize::from(scale));
}

/// Appends a date as `yyyy-MM-dd`.
pub fn push_date(days: i64, out: &mut String) {
    let (year, month, day) = civil_from_days(days);
    push_padded(year, 4, out);
    out.push('-');
    push_padded(i64::from(month), 2, out);
    out.push('-');
    push_padded(i64::from(day), 2, out);
}

/// Appends `HH:mm:ss` and `digits` digits of the fraction.
fn push_time_of_day(seconds: i64, nanos: i64, digits: u8, out: &mut String) {
    push_padded(seconds / 3600, 2, out);
    out.push(':');
    push_padded(seconds / 60 % 60, 2, out);
    out.push(':');
    push_padded(seconds % 60, 2, out);
    if digits > 0 {
        out.push('.');
        let digits = digits.min(9);
        push_padded(nanos / 10_i64.pow(u32::from(9 - digits)), usize::from(digits), out);
    }
}

/// Appends a timestamp as it stands on the wall in the zone.
pub fn push_timestamp(ticks: i64, per_second: i64, digits: u8, zone: Tz, out: &mut String) {
    let seconds = ticks.div_euclid(per_second);
    let nanos = ticks.rem_euclid(per_second) * (1_000_000_000 / per_second);
    let local = seconds + offset_at(zone, seconds);
    push_date(local.div_euclid(SECONDS_PER_DAY), out);
    out.push(' ');
    push_time_of_day(local.rem_euclid(SECONDS_PER_DAY), nanos, digits, out);
}

/// Appends an interval of days and time: `+1 02:03:04.500`.
fn push_day_time(millis: i64, out: &mut String) {
    out.push(if millis < 0 { '-' } else { '+' });
    let magnitude = millis.unsigned_abs();
    let day = MILLIS_PER_DAY as u64;
    let _ = write!(out, "{} ", magnitude / day);
    let of_day = (magnitude % day) as i64;
    push_time_of_day(of_day / 1000, of_day % 1000 * 1_000_000, 3, out);
}

/// A small text on the stack: the longest shortest form of a double has 24 characters.
struct Scratch {
    bytes: [u8; 32],
    length: usize,
}

impl Scratch {
    const fn new() -> Scratch {
        Scratch { bytes: [0; 32], length: 0 }
    }
}

impl std::fmt::Write for Scratch {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Appends a FLOAT as Java writes it.
pub fn push_float(value: f32, out: &mut String) {
    if value.is_finite() {
        let mut scratch = Scratch::new();
        let _ = write!(scratch, "{value:e}");
        push_java_layout(&scratch.bytes[..scratch.length], out);
    } else {
        push_not_finite(f64::from(value), out);
    }
}

/// Appends a DOUBLE as Java writes it: `1.0`, `1.0E10`, `NaN`.
pub fn push_double(value: f64, out: &mut String) {
    if value.is_finite() {
        let mut scratch = Scratch::new();
        let _ = write!(scratch, "{value:e}");
        push_java_layout(&scratch.bytes[..scratch.length], out);
    } else {
        push_not_finite(value, out);
    }
}

fn push_not_finite(value: f64, out: &mut String) {
    out.push_str(if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    });
}

/// Lays out the shortest digits, which arrive as `-d.ddde-n`, as Java does: plain from 1e-3 up to 1e7, else with an exponent.
fn push_java_layout(shortest: &[u8], out: &mut String) {
    let (sign, shortest) = match shortest {
        [b'-', rest @ ..] => ("-", rest),
        _ => ("", shortest),
    };
    out.push_str(sign);
    let split = shortest.iter().position(|byte| *byte == b'e').unwrap_or(shortest.len());
    let exponent: i32 = std::str::from_utf8(shortest.get(split + 1..).unwrap_or_default())
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let digits = shortest[..split].iter().copied().filter(u8::is_ascii_digit).map(char::from);
    let count = digits.clone().count() as i32;
    if (0..7).contains(&exponent) {
        out.extend(digits.clone().take(exponent as usize + 1));
        out.extend(std::iter::repeat_n('0', (exponent + 1 - count).max(0) as usize));
        out.push('.');
        out.extend(digits.skip(exponent as usize + 1));
        if count <= exponent + 1 {
            out.push('0');
        }
    } else if (-3..0).contains(&exponent) && count > 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
        out.extend(digits);
    } else {
        out.extend(digits.clone().take(1));
        out.push('.');
        out.extend(digits.skip(1));
        if count <= 1 {
            out.push('0');
        }
        let _ = write!(out, "E{exponent}");
    }
}

/// Returns the text of one value, or None for NULL.
pub fn format_cell(data_type: &DataType, array: &dyn Array, row: usize, zone: Tz) -> Option<String> {
    let mut text = String::new();
    CellFormatter::new(data_type, array, zone).write(row, &mut text).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Field, IntervalKind, IntervalQualifier};
    use arrow::array::{
        ArrayRef, Date32Array, Decimal128Array, DurationMillisecondArray, Float32Array, Float64Array,
        Int32Array, Int32Builder, IntervalYearMonthArray, ListArray, MapBuilder, StringBuilder,
        Time32MillisecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    };
    use std::sync::Arc;

    fn texts(root: TypeRoot, array: &dyn Array) -> Vec<String> {
        let data_type = root.nullable();
        (0..array.len())
            .map(|row| format_cell(&data_type, array, row, Tz::Europe__Berlin).unwrap_or("<NULL>".to_owned()))
            .collect()
    }

    #[test]
    fn doubles_have_javas_layout() {
        let values = [
            1.0,
            -0.0,
            1e7,
            9_999_999.0,
            1e-3,
            9.99e-4,
            1.5e10,
            1e-7,
            100.0,
            1_234_567.0,
            12_345_678.0,
            1.0 / 3.0,
            1e20,
        ];
        let array = Float64Array::from_iter_values(values);
        assert_eq!(
            texts(TypeRoot::Double, &array),
            [
                "1.0",
                "-0.0",
                "1.0E7",
                "9999999.0",
                "0.001",
                "9.99E-4",
                "1.5E10",
                "1.0E-7",
                "100.0",
                "1234567.0",
                "1.2345678E7",
                "0.3333333333333333",
                "1.0E20"
            ]
        );
        let special =
            Float64Array::from(vec![Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY), None]);
        assert_eq!(texts(TypeRoot::Double, &special), ["NaN", "Infinity", "-Infinity", "<NULL>"]);
        assert_eq!(
            texts(TypeRoot::Float, &Float32Array::from(vec![9.223_372e18, 0.1])),
            ["9.223372E18", "0.1"]
        );
    }

    #[test]
    fn decimals_keep_their_fraction_digits() {
        let array = Decimal128Array::from(vec![0, 5, -5, 12345]).with_precision_and_scale(10, 3).unwrap();
        assert_eq!(texts(TypeRoot::Decimal(10, 3), &array), ["0.000", "0.005", "-0.005", "12.345"]);
    }

    #[test]
    fn temporal_values_have_the_digits_of_their_type() {
        assert_eq!(
            texts(TypeRoot::Date, &Date32Array::from(vec![0, -719_162])),
            ["1970-01-01", "0001-01-01"]
        );
        let time = Time32MillisecondArray::from(vec![11_045_678]);
        assert_eq!(texts(TypeRoot::Time(0), &time), ["03:04:05"]);
        assert_eq!(texts(TypeRoot::Time(4), &time), ["03:04:05.6780"]);
        let millis = TimestampMillisecondArray::from(vec![-1, 500]);
        assert_eq!(
            texts(TypeRoot::Timestamp(3), &millis),
            ["1969-12-31 23:59:59.999", "1970-01-01 00:00:00.500"]
        );
        assert_eq!(texts(TypeRoot::Timestamp(0), &millis), ["1969-12-31 23:59:59", "1970-01-01 00:00:00"]);
        assert_eq!(
            texts(TypeRoot::TimestampLtz(3), &millis),
            ["1970-01-01 00:59:59.999", "1970-01-01 01:00:00.500"]
        );
        let nanos = TimestampNanosecondArray::from(vec![1]);
        assert_eq!(texts(TypeRoot::Timestamp(9), &nanos), ["1970-01-01 00:00:00.000000001"]);
    }

    #[test]
    fn intervals_have_sign_and_all_units() {
        let kind = IntervalKind { qualifier: IntervalQualifier::DayToSecond, leading: 2, fraction: 3 };
        let millis = DurationMillisecondArray::from(vec![93_784_500, -1]);
        assert_eq!(texts(TypeRoot::IntervalDayTime(kind), &millis), ["+1 02:03:04.500", "-0 00:00:00.001"]);
        let months = IntervalYearMonthArray::from(vec![14, -11]);
        assert_eq!(texts(TypeRoot::IntervalYearMonth(kind), &months), ["+1-02", "-0-11"]);
    }

    #[test]
    fn nested_values_spell_out_null_and_a_slice_starts_at_its_own_row() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
            Some(vec![Some(9)]),
            Some(vec![Some(1), None]),
            None,
        ]);
        let sliced = list.slice(1, 2);
        assert_eq!(
            texts(TypeRoot::Array(Box::new(TypeRoot::Int.nullable())), &sliced),
            ["[1, NULL]", "<NULL>"]
        );
        let row = StructArray::from(vec![
            (
                Arc::new(Field::new("a", TypeRoot::Int.nullable()).data_type.to_field("a")),
                Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef,
            ),
            (
                Arc::new(TypeRoot::STRING.nullable().to_field("b")),
                Arc::new(StringArray::from(vec!["x", ""])) as ArrayRef,
            ),
        ]);
        let fields =
            vec![Field::new("a", TypeRoot::Int.nullable()), Field::new("b", TypeRoot::STRING.nullable())];
        assert_eq!(texts(TypeRoot::Row(fields), &row), ["(1, x)", "(NULL, )"]);
    }

    #[test]
    fn maps_and_bytes_show_their_content() {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        builder.keys().append_value("k");
        builder.values().append_null();
        builder.append(true).unwrap();
        let map = builder.finish();
        let root = TypeRoot::Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::Int.nullable()));
        assert_eq!(texts(root, &map), ["{k=NULL}"]);
        assert_eq!(texts(TypeRoot::BYTES, &BinaryArray::from(vec![&b"\x00\xff"[..]])), ["x'00ff'"]);
    }
}
