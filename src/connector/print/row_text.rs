//! Rows as Java's `Row.toString` writes them: `+I[1, abc, null]`, dates and times in ISO form without seconds that are zero,
//! bytes as signed numbers.

use std::io::Write;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int32Array, Int64Array, ListArray, MapArray, StructArray,
};
use arrow::datatypes::{DurationMillisecondType, IntervalYearMonthType};

use crate::changelog::RowKind;
use crate::error::{Error, Result};
use crate::format::{ScalarWriter, TextStyle, TimestampStandard};
use crate::schema::{DataType, TypeRoot};

const STYLE: TextStyle = TextStyle { timestamps: TimestampStandard::Iso8601, is_plain_decimal: false };

/// The columns of a batch, ready to be written row by row.
pub(super) struct RowText {
    columns: Vec<ColumnText>,
}

struct ColumnText {
    array: ArrayRef,
    values: ValueText,
}

enum ValueText {
    Scalar(ScalarWriter),
    /// A time or a timestamp without zone, whose seconds are left out when they are zero.
    Local(ScalarWriter),
    Bytes(BinaryArray),
    Months(Int32Array),
    Millis(Int64Array),
    Array(ListArray, Box<ColumnText>),
    Map(MapArray, Box<ColumnText>, Box<ColumnText>),
    Row(RowText),
}

impl RowText {
    /// Takes columns with their types.
    pub(super) fn new<'a>(columns: impl Iterator<Item = (&'a DataType, &'a ArrayRef)>) -> Result<RowText> {
        let columns = columns.map(|(data_type, array)| ColumnText::new(data_type, array));
        Ok(RowText { columns: columns.collect::<Result<_>>()? })
    }

    /// Appends a row.
    pub(super) fn write(&self, kind: RowKind, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(kind.short_string().as_bytes());
        out.push(b'[');
        for (number, column) in self.columns.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(b", ");
            }
            column.write(row, out);
        }
        out.push(b']');
    }
}

impl ColumnText {
    fn new(data_type: &DataType, array: &ArrayRef) -> Result<ColumnText> {
        let values = match &data_type.root {
            TypeRoot::Time(_) | TypeRoot::Timestamp(_) => {
                ValueText::Local(ScalarWriter::require(data_type, array)?)
            }
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => {
                ValueText::Bytes(array.as_binary_opt::<i32>().ok_or_else(|| mismatch(data_type))?.clone())
            }
            TypeRoot::IntervalYearMonth(_) => {
                let months =
                    array.as_primitive_opt::<IntervalYearMonthType>().ok_or_else(|| mismatch(data_type))?;
                ValueText::Months(months.reinterpret_cast())
            }
            TypeRoot::IntervalDayTime(_) => {
                let millis =
                    array.as_primitive_opt::<DurationMillisecondType>().ok_or_else(|| mismatch(data_type))?;
                ValueText::Millis(millis.reinterpret_cast())
            }
            TypeRoot::Array(element) => {
                let list: ListArray = array.as_list_opt().ok_or_else(|| mismatch(data_type))?.clone();
                let items = ColumnText::new(element, list.values())?;
                ValueText::Array(list, Box::new(items))
            }
            TypeRoot::Map(key, value) => map_text(data_type, key, value, array)?,
            TypeRoot::Multiset(element) => map_text(data_type, element, &TypeRoot::Int.not_null(), array)?,
            TypeRoot::Row(fields) => {
                let row: &StructArray = array.as_struct_opt().ok_or_else(|| mismatch(data_type))?;
                let types = fields.iter().map(|field| &field.data_type);
                ValueText::Row(RowText::new(types.zip(row.columns()))?)
            }
            _ => ValueText::Scalar(ScalarWriter::require(data_type, array)?),
        };
        Ok(ColumnText { array: ArrayRef::clone(array), values })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.array.is_null(row) || matches!(self.values, ValueText::Scalar(ScalarWriter::Null)) {
            out.extend_from_slice(b"null");
            return;
        }
        match &self.values {
            ValueText::Scalar(values) => values.write(row, STYLE, out),
            ValueText::Local(values) => {
                let start = out.len();
                values.write(row, STYLE, out);
                shorten_time(start, out);
            }
            ValueText::Bytes(array) => write_list(0..array.value(row).len(), out, |at, out| {
                let _ = write!(out, "{}", array.value(row)[at] as i8);
            }),
            ValueText::Months(array) => write_period(array.value(row), out),
            ValueText::Millis(array) => write_duration(array.value(row), out),
            ValueText::Array(list, items) => {
                write_list(entries(list.value_offsets(), row), out, |at, out| items.write(at, out));
            }
            ValueText::Map(map, keys, values) => {
                out.push(b'{');
                for (number, at) in entries(map.value_offsets(), row).enumerate() {
                    if number > 0 {
                        out.extend_from_slice(b", ");
                    }
                    keys.write(at, out);
                    out.push(b'=');
                    values.write(at, out);
                }
                out.push(b'}');
            }
            ValueText::Row(text) => text.write(RowKind::Insert, row, out),
        }
    }
}

fn map_text(data_type: &DataType, key: &DataType, value: &DataType, array: &ArrayRef) -> Result<ValueText> {
    let map = array.as_map_opt().ok_or_else(|| mismatch(data_type))?.clone();
    let keys = ColumnText::new(key, map.keys())?;
    let values = ColumnText::new(value, map.values())?;
    Ok(ValueText::Map(map, Box::new(keys), Box::new(values)))
}

fn mismatch(data_type: &DataType) -> Error {
    Error::internal(format!("a column of type {data_type} came as another Arrow type"))
}

fn entries(offsets: &[i32], row: usize) -> Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

fn write_list(range: Range<usize>, out: &mut Vec<u8>, write: impl Fn(usize, &mut Vec<u8>)) {
    out.push(b'[');
    for (number, at) in range.enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write(at, out);
    }
    out.push(b']');
}

/// Gives a time Java's shortest ISO form: no seconds when they are zero, fractions in groups of three digits.
fn shorten_time(start: usize, out: &mut Vec<u8>) {
    let text = &out[start..];
    match memchr::memrchr(b'.', text) {
        Some(point) => {
            let digits = text.len() - point - 1;
            out.extend(std::iter::repeat_n(b'0', (3 - digits % 3) % 3));
        }
        None if text.ends_with(b":00") => out.truncate(out.len() - 3),
        None => {}
    }
}

/// Appends a number of months as Java's `Period`.
fn write_period(months: i32, out: &mut Vec<u8>) {
    let (years, months) = (months / 12, months % 12);
    let _ = match (years, months) {
        (0, 0) => write!(out, "P0D"),
        (0, _) => write!(out, "P{months}M"),
        (_, 0) => write!(out, "P{years}Y"),
        _ => write!(out, "P{years}Y{months}M"),
    };
}

/// Appends milliseconds as Java's `Duration`, whose largest unit is the hour.
fn write_duration(millis: i64, out: &mut Vec<u8>) {
    if millis == 0 {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let rest = millis % 60_000;
    out.extend_from_slice(b"PT");
    if hours != 0 {
        let _ = write!(out, "{hours}H");
    }
    if minutes != 0 {
        let _ = write!(out, "{minutes}M");
    }
    if rest != 0 {
        let sign = if rest < 0 { "-" } else { "" };
        let _ = write!(out, "{sign}{}", rest.unsigned_abs() / 1_000);
        let fraction = rest.unsigned_abs() % 1_000;
        if fraction != 0 {
            let digits = format!("{fraction:03}");
            let _ = write!(out, ".{}", digits.trim_end_matches('0'));
        }
        out.push(b'S');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{ColumnBuilder, TextParser};
    use arrow::array::{DurationMillisecondArray, IntervalYearMonthArray};
    use std::sync::Arc;

    fn text(root: TypeRoot, value: &str) -> String {
        let data_type = root.nullable();
        let mut column = ColumnBuilder::new(&data_type);
        TextParser::new(chrono_tz::Tz::UTC).push(value.as_bytes(), &mut column).unwrap();
        show(&data_type, &column.finish().unwrap())
    }

    fn show(data_type: &DataType, array: &ArrayRef) -> String {
        let mut out = Vec::new();
        RowText::new([(data_type, array)].into_iter()).unwrap().write(RowKind::Insert, 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_look_as_in_java() {
        assert_eq!(text(TypeRoot::Boolean, "TRUE"), "+I[true]");
        assert_eq!(text(TypeRoot::BYTES, "AP8="), "+I[[0, -1]]");
        assert_eq!(text(TypeRoot::Date, "2020-01-02"), "+I[2020-01-02]");
        assert_eq!(text(TypeRoot::Timestamp(3), "2020-01-01 10:00:00"), "+I[2020-01-01T10:00]");
        assert_eq!(text(TypeRoot::Timestamp(3), "2020-01-01 10:00:01.5"), "+I[2020-01-01T10:00:01.500]");
        assert_eq!(text(TypeRoot::TimestampLtz(3), "2020-01-01 10:00:00"), "+I[2020-01-01T10:00:00Z]");
        assert_eq!(text(TypeRoot::Time(0), "10:00:00"), "+I[10:00]");
        assert_eq!(text(TypeRoot::Decimal(10, 2), "1.5"), "+I[1.50]");
        assert_eq!(text(TypeRoot::Double, "10000000"), "+I[1.0E7]");
    }

    #[test]
    fn intervals_look_as_periods_and_durations() {
        let kind = crate::schema::IntervalKind {
            qualifier: crate::schema::IntervalQualifier::Month,
            leading: 2,
            fraction: 6,
        };
        let months: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![-14]));
        assert_eq!(show(&TypeRoot::IntervalYearMonth(kind).nullable(), &months), "+I[P-1Y-2M]");
        let millis: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![3_723_500]));
        assert_eq!(show(&TypeRoot::IntervalDayTime(kind).nullable(), &millis), "+I[PT1H2M3.5S]");
    }
}
