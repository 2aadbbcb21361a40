//! Values from their texts. Which of the forms a column has is settled when its table is described, so a value costs one branch.

use super::nested::{ArrayReader, HstoreReader};
use super::number::{decimal, integer, money, narrow};
use super::source_type::{SourceClass, SourceType};
use super::temporal::{date, interval_micros, time, time_millis, timestamp, timestamp_units};
use super::{Fault, check_utf8};
use crate::connector::postgres::options::Unrepresentable;
use crate::format::{ColumnBuilder, ColumnValues, parse_f64};
use crate::schema::{DataType, TypeRoot};

/// How texts of a type of the server become values of a declared type.
#[derive(Debug, Clone)]
pub(super) enum TextForm {
    /// As it stands.
    Characters,
    /// `t` and `f` as `true` and `false`.
    BooleanCharacters,
    Boolean,
    Integer,
    Float,
    Decimal(u8, u8),
    Money(u8, u8),
    Bytes,
    Date,
    Time(u8),
    Timestamp {
        precision: u8,
        has_zone: bool,
    },
    /// An interval as microseconds.
    IntervalMicros,
    Array(Box<ArrayReader>),
    Hstore(HstoreReader),
}

impl TextForm {
    /// Returns how values become those of the declared type; None if they never do.
    pub(super) fn new(
        source: &SourceType,
        declared: &DataType,
        unrepresentable: Unrepresentable,
    ) -> Option<TextForm> {
        use SourceClass::{
            Bool, Bytes, Date, Float, Integer, Money, Numeric, Text, Time, Timestamp, TimestampTz,
        };
        let class = &source.class;
        Some(match &declared.root {
            TypeRoot::Char(_) | TypeRoot::Varchar(_) if *class == Bool => TextForm::BooleanCharacters,
            TypeRoot::Char(_) | TypeRoot::Varchar(_) => TextForm::Characters,
            TypeRoot::Boolean if matches!(class, Bool | SourceClass::Bit | Text) => TextForm::Boolean,
            TypeRoot::BigInt if *class == SourceClass::Interval => TextForm::IntervalMicros,
            root if root.is_integer() && matches!(class, Integer | Numeric | Text) => TextForm::Integer,
            root if root.is_approximate() && matches!(class, Integer | Float | Numeric | Text) => {
                TextForm::Float
            }
            TypeRoot::Decimal(precision, scale) => match class {
                Money => TextForm::Money(*precision, *scale),
                Integer | Numeric | Text => TextForm::Decimal(*precision, *scale),
                _ => return None,
            },
            TypeRoot::Binary(_) | TypeRoot::Varbinary(_) if *class == Bytes => TextForm::Bytes,
            TypeRoot::Date if matches!(class, Date | Text) => TextForm::Date,
            TypeRoot::Time(precision) if matches!(class, Time | Text) => TextForm::Time(*precision),
            // A moment as what its clock shows in UTC: as Flink reads it with the time zone of the server, which is UTC.
            TypeRoot::Timestamp(precision) if matches!(class, Timestamp | TimestampTz | Text) => {
                TextForm::Timestamp { precision: *precision, has_zone: *class == TimestampTz }
            }
            TypeRoot::TimestampLtz(precision) if matches!(class, TimestampTz | Text) => {
                TextForm::Timestamp { precision: *precision, has_zone: true }
            }
            TypeRoot::Array(item) => {
                let SourceClass::Array(element, delimiter) = class else { return None };
                TextForm::Array(Box::new(ArrayReader::new(element, *delimiter, item, unrepresentable)?))
            }
            TypeRoot::Map(key, value) if *class == SourceClass::Hstore => {
                if !key.root.is_character() || !value.root.is_character() {
                    return None;
                }
                TextForm::Hstore(HstoreReader::default())
            }
            _ => return None,
        })
    }

    /// Appends the value of a text. After an error, part of it may be there.
    #[inline]
    pub(super) fn push(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), Fault> {
        match (self, column.values()) {
            (TextForm::Characters, _) => {
                check_utf8(text)?;
                column.push_bytes(text);
                return Ok(());
            }
            (TextForm::Integer, values) => push_integer(integer(text)?, values)?,
            (TextForm::IntervalMicros, ColumnValues::Int64(values)) => values.push(interval_micros(text)?),
            (TextForm::Decimal(precision, scale), ColumnValues::Int128(values)) => {
                values.push(decimal(text, *precision, *scale)?);
            }
            (TextForm::Money(precision, scale), ColumnValues::Int128(values)) => {
                values.push(money(text, *precision, *scale)?);
            }
            (TextForm::Timestamp { precision, has_zone }, ColumnValues::Int64(values)) => {
                values.push(timestamp_units(timestamp(text, *has_zone)?, *precision)?);
            }
            (TextForm::Date, ColumnValues::Int32(values)) => values.push(date(text)?),
            (TextForm::Time(precision), ColumnValues::Int32(values)) => {
                values.push(time_millis(time(text)?, *precision)?);
            }
            (TextForm::Boolean, ColumnValues::Boolean(values)) => values.append(boolean(text)?),
            (TextForm::Float, ColumnValues::Float64(values)) => {
                values.push(parse_f64(text.trim_ascii()).ok_or(NO_NUMBER)?);
            }
            (TextForm::Float, ColumnValues::Float32(values)) => values.push(float(text)?),
            (TextForm::BooleanCharacters, _) => {
                column.push_bytes(if boolean(text)? { b"true" } else { b"false" });
                return Ok(());
            }
            (TextForm::Bytes, ColumnValues::Bytes(ends, data)) => push_hex(text, ends, data)?,
            (TextForm::Array(reader), _) => return reader.push(text, column),
            (TextForm::Hstore(reader), _) => return reader.push(text, column),
            // The form was made for the column's type.
            _ => return Err(Fault::Malformed("is read as another type")),
        }
        column.mark_valid();
        Ok(())
    }
}

const NO_NUMBER: Fault = Fault::Malformed("is no number");

#[inline]
pub(super) fn push_integer(value: i64, values: &mut ColumnValues) -> Result<(), Fault> {
    match values {
        ColumnValues::Int64(values) => values.push(value),
        ColumnValues::Int32(values) => values.push(narrow(value)?),
        ColumnValues::Int16(values) => values.push(narrow(value)?),
        ColumnValues::Int8(values) => values.push(narrow(value)?),
        _ => return Err(Fault::Malformed("is read as another type")),
    }
    Ok(())
}

/// Reads a float from the text itself: by way of a double it would be rounded twice.
fn float(text: &[u8]) -> Result<f32, Fault> {
    let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| NO_NUMBER)?;
    text.parse().map_err(|_| NO_NUMBER)
}

#[inline]
fn boolean(text: &[u8]) -> Result<bool, Fault> {
    match text {
        b"t" | b"1" | b"true" => Ok(true),
        b"f" | b"0" | b"false" => Ok(false),
        _ => Err(Fault::Malformed("is neither true nor false")),
    }
}

/// Appends bytes that are written as `\x00ff`.
fn push_hex(text: &[u8], ends: &mut Vec<i32>, data: &mut Vec<u8>) -> Result<(), Fault> {
    const MALFORMED: Fault = Fault::Malformed("is not written in hexadecimal digits");
    let nibble = |digit: u8| (digit as char).to_digit(16).ok_or(MALFORMED);
    let (pairs, rest) = text.strip_prefix(b"\\x").ok_or(MALFORMED)?.as_chunks();
    if !rest.is_empty() {
        return Err(MALFORMED);
    }
    data.reserve(pairs.len());
    for [high, low] in pairs {
        data.push((nibble(*high)? << 4 | nibble(*low)?) as u8);
    }
    ends.push(i32::try_from(data.len()).unwrap_or(-1));
    Ok(())
}
