//! Values from the form that the types' send functions write, for those types that are copied so. A column of a block of rows is read at
//! once: what to do is decided once per column, not per value.

use std::fmt::Write as _;

use tokio_postgres::types::Type;

use super::number::{narrow, numeric, numeric_text};
use super::source_type::{SourceClass, SourceType};
use super::temporal::{date_from_days, time_millis, timestamp_units};
use super::{Fault, check_utf8};
use crate::format::{ColumnBuilder, ColumnValues};
use crate::schema::{DataType, TypeRoot};

/// How binary values of a type of the server become values of a declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum BinaryForm {
    Boolean,
    Int2,
    Int4,
    Int8,
    /// A number without sign.
    Oid,
    Float4,
    Float8,
    Numeric(u8, u8),
    /// Copied as numeric.
    Money(u8, u8),
    /// Texts as they stand.
    Text,
    /// Bytes as they stand.
    Bytes,
    /// A text behind a byte that tells its version.
    Jsonb,
    Uuid,
    Date,
    Time(u8),
    Timestamp(u8),
}

/// One column of a block of rows.
#[derive(Debug, Clone, Copy)]
pub(in crate::connector::postgres) struct Cells<'a> {
    /// What the fields point into.
    pub(in crate::connector::postgres) bytes: &'a [u8],
    /// Where each value begins and how long it is, row by row; a length below zero is NULL.
    pub(in crate::connector::postgres) fields: &'a [(u32, i32)],
    /// How many fields a row has.
    pub(in crate::connector::postgres) width: usize,
    /// Which one of them this column is.
    pub(in crate::connector::postgres) position: usize,
}

impl<'a> Cells<'a> {
    /// Returns the values, top down.
    #[inline]
    pub(in crate::connector::postgres) fn values(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        self.fields.iter().skip(self.position).step_by(self.width).map(move |(start, length)| {
            let start = *start as usize;
            let length = usize::try_from(*length).ok()?;
            self.bytes.get(start..start + length)
        })
    }
}

/// What stops the reading of a column: which row, and why.
pub(in crate::connector::postgres) type FaultAt = (usize, Fault);

impl BinaryForm {
    /// Returns how values become those of the declared type; None if they must come as texts.
    pub(super) fn new(source: &SourceType, declared: &DataType) -> Option<BinaryForm> {
        let is_text = declared.root.is_character();
        let is_integer = declared.root.is_integer();
        Some(match Type::from_oid(source.oid) {
            Some(Type::BOOL) if declared.root == TypeRoot::Boolean => BinaryForm::Boolean,
            Some(Type::INT2) if is_integer => BinaryForm::Int2,
            Some(Type::INT4) if is_integer => BinaryForm::Int4,
            Some(Type::INT8) if is_integer => BinaryForm::Int8,
            Some(Type::OID | Type::XID | Type::CID) if is_integer => BinaryForm::Oid,
            // From a text a number gets the nearest value of the declared type, which differs from that of another float type.
            Some(Type::FLOAT4) if declared.root == TypeRoot::Float => BinaryForm::Float4,
            Some(Type::FLOAT8) if declared.root == TypeRoot::Double => BinaryForm::Float8,
            Some(Type::NUMERIC) => match declared.root {
                TypeRoot::Decimal(precision, scale) => BinaryForm::Numeric(precision, scale),
                _ => return None,
            },
            Some(Type::MONEY) => match declared.root {
                TypeRoot::Decimal(precision, scale) => BinaryForm::Money(precision, scale),
                _ => return None,
            },
            Some(Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON) if is_text => {
                BinaryForm::Text
            }
            Some(Type::JSONB) if is_text => BinaryForm::Jsonb,
            Some(Type::UUID) if is_text => BinaryForm::Uuid,
            Some(Type::BYTEA) if declared.root.is_binary() => BinaryForm::Bytes,
            Some(Type::DATE) if declared.root == TypeRoot::Date => BinaryForm::Date,
            Some(Type::TIME) => match declared.root {
                TypeRoot::Time(precision) => BinaryForm::Time(precision),
                _ => return None,
            },
            Some(Type::TIMESTAMP | Type::TIMESTAMPTZ) => match declared.root {
                TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => {
                    BinaryForm::Timestamp(precision)
                }
                _ => return None,
            },
            None if is_text && source.class == SourceClass::Text => BinaryForm::Text,
            _ => return None,
        })
    }

    /// Returns what is selected to get it, of a column of this name as SQL takes it.
    pub(in crate::connector::postgres) fn expression(self, column: &str) -> String {
        match self {
            // The places of its own form depend on the locale.
            BinaryForm::Money(..) => format!("{column}::pg_catalog.numeric"),
            _ => column.to_owned(),
        }
    }

    /// Appends one value of a stream, where columns are what they are.
    pub(super) fn push(self, value: &[u8], column: &mut ColumnBuilder) -> Result<(), Fault> {
        if matches!(self, BinaryForm::Money(..)) {
            return Err(Fault::Malformed("came in a binary form that is not read"));
        }
        let length = i32::try_from(value.len()).unwrap_or(i32::MAX);
        let cells = Cells { bytes: value, fields: &[(0, length)], width: 1, position: 0 };
        self.push_all(cells, false, column).map_err(|(_, fault)| fault)
    }

    /// Appends all values of a column of a block.
    pub(super) fn push_all(
        self,
        cells: Cells<'_>,
        nulls_misfits: bool,
        column: &mut ColumnBuilder,
    ) -> Result<(), FaultAt> {
        let fill = Fill { cells, nulls_misfits, column };
        match self {
            BinaryForm::Boolean => fill.boolean(),
            BinaryForm::Int2 => {
                fill.integer(|bytes| array(bytes).map(|bytes| i64::from(i16::from_be_bytes(bytes))))
            }
            BinaryForm::Int4 => {
                fill.integer(|bytes| array(bytes).map(|bytes| i64::from(i32::from_be_bytes(bytes))))
            }
            BinaryForm::Int8 => fill.integer(|bytes| array(bytes).map(i64::from_be_bytes)),
            BinaryForm::Oid => {
                fill.integer(|bytes| array(bytes).map(|bytes| i64::from(u32::from_be_bytes(bytes))))
            }
            // A NaN has many forms, and what computed it decides which one is sent; from a text it has but one.
            BinaryForm::Float4 => fill.each(|bytes, values| {
                let value = f32::from_be_bytes(array(bytes)?);
                let value = if value.is_nan() { f32::NAN } else { value };
                if let ColumnValues::Float32(values) = values {
                    values.push(value);
                }
                Ok(())
            }),
            BinaryForm::Float8 => fill.each(|bytes, values| {
                let value = f64::from_be_bytes(array(bytes)?);
                let value = if value.is_nan() { f64::NAN } else { value };
                if let ColumnValues::Float64(values) = values {
                    values.push(value);
                }
                Ok(())
            }),
            BinaryForm::Numeric(precision, scale) | BinaryForm::Money(precision, scale) => {
                fill.each(move |bytes, values| {
                    let value = numeric(bytes, precision, scale)?;
                    if let ColumnValues::Int128(values) = values {
                        values.push(value);
                    }
                    Ok(())
                })
            }
            BinaryForm::Text => fill.each(|text, values| {
                check_utf8(text)?;
                extend(values, text);
                Ok(())
            }),
            BinaryForm::Bytes => fill.each(|bytes, values| {
                extend(values, bytes);
                Ok(())
            }),
            BinaryForm::Jsonb => fill.each(|bytes, values| match bytes {
                [1, text @ ..] => {
                    check_utf8(text)?;
                    extend(values, text);
                    Ok(())
                }
                _ => Err(Fault::Malformed("is jsonb of a version that is not known")),
            }),
            BinaryForm::Uuid => fill.each(|bytes, values| {
                extend(values, &uuid_text(array(bytes)?));
                Ok(())
            }),
            BinaryForm::Date => {
                fill.int32(|bytes| array(bytes).and_then(|bytes| date_from_days(i32::from_be_bytes(bytes))))
            }
            BinaryForm::Time(precision) => fill.int32(|bytes| {
                array(bytes).and_then(|bytes| time_millis(i64::from_be_bytes(bytes), precision))
            }),
            BinaryForm::Timestamp(precision) => fill.int64(|bytes| {
                array(bytes).and_then(|bytes| timestamp_units(i64::from_be_bytes(bytes), precision))
            }),
        }
    }

    /// Returns a value as an error shows it.
    pub(super) fn shown(self, value: &[u8]) -> Vec<u8> {
        let number = match self {
            BinaryForm::Text => return value.to_vec(),
            BinaryForm::Jsonb => return value.get(1..).unwrap_or_default().to_vec(),
            BinaryForm::Int2 => array(value).ok().map(|bytes| i16::from_be_bytes(bytes).to_string()),
            BinaryForm::Int4 => array(value).ok().map(|bytes| i32::from_be_bytes(bytes).to_string()),
            BinaryForm::Int8 => array(value).ok().map(|bytes| i64::from_be_bytes(bytes).to_string()),
            BinaryForm::Oid => array(value).ok().map(|bytes| u32::from_be_bytes(bytes).to_string()),
            BinaryForm::Numeric(..) | BinaryForm::Money(..) => numeric_text(value),
            BinaryForm::Date if value == i32::MAX.to_be_bytes() => Some("infinity".to_owned()),
            BinaryForm::Date if value == i32::MIN.to_be_bytes() => Some("-infinity".to_owned()),
            BinaryForm::Timestamp(_) if value == i64::MAX.to_be_bytes() => Some("infinity".to_owned()),
            BinaryForm::Timestamp(_) if value == i64::MIN.to_be_bytes() => Some("-infinity".to_owned()),
            BinaryForm::Time(_) if value == 86_400_000_000_i64.to_be_bytes() => Some("24:00:00".to_owned()),
            _ => None,
        };
        let text = number.unwrap_or_else(|| {
            let mut text = "\\x".to_owned();
            for byte in value.iter().take(32) {
                let _ = write!(text, "{byte:02x}");
            }
            text
        });
        text.into_bytes()
    }
}

/// Appends the values of one column.
struct Fill<'a> {
    cells: Cells<'a>,
    nulls_misfits: bool,
    column: &'a mut ColumnBuilder,
}

impl Fill<'_> {
    /// Appends values by a function that pushes one, or nothing if it fails.
    #[inline]
    fn each(self, push: impl Fn(&[u8], &mut ColumnValues) -> Result<(), Fault>) -> Result<(), FaultAt> {
        let Fill { cells, nulls_misfits, column } = self;
        let mut valid = 0;
        for (row, value) in cells.values().enumerate() {
            let pushed = value.map(|value| push(value, column.values()));
            match pushed {
                Some(Ok(())) => valid += 1,
                Some(Err(fault)) if !(nulls_misfits && matches!(fault, Fault::Misfit(_))) => {
                    return Err((row, fault));
                }
                _ => {
                    column.mark_valid_rows(std::mem::take(&mut valid));
                    column.push_null();
                }
            }
        }
        column.mark_valid_rows(valid);
        Ok(())
    }

    fn boolean(self) -> Result<(), FaultAt> {
        self.each(|bytes, values| {
            let [byte] = array(bytes)?;
            if let ColumnValues::Boolean(values) = values {
                values.append(byte != 0);
            }
            Ok(())
        })
    }

    /// Appends whole numbers to a column of any width.
    #[inline]
    fn integer(self, read: impl Fn(&[u8]) -> Result<i64, Fault>) -> Result<(), FaultAt> {
        match self.column.values() {
            ColumnValues::Int64(_) => self.int64(read),
            ColumnValues::Int32(_) => self.int32(|bytes| read(bytes).and_then(narrow)),
            ColumnValues::Int16(_) => self.each(|bytes, values| {
                let value = read(bytes).and_then(narrow)?;
                if let ColumnValues::Int16(values) = values {
                    values.push(value);
                }
                Ok(())
            }),
            _ => self.each(|bytes, values| {
                let value = read(bytes).and_then(narrow)?;
                if let ColumnValues::Int8(values) = values {
                    values.push(value);
                }
                Ok(())
            }),
        }
    }

    #[inline]
    fn int32(self, read: impl Fn(&[u8]) -> Result<i32, Fault>) -> Result<(), FaultAt> {
        self.each(|bytes, values| {
            let value = read(bytes)?;
            if let ColumnValues::Int32(values) = values {
                values.push(value);
            }
            Ok(())
        })
    }

    #[inline]
    fn int64(self, read: impl Fn(&[u8]) -> Result<i64, Fault>) -> Result<(), FaultAt> {
        self.each(|bytes, values| {
            let value = read(bytes)?;
            if let ColumnValues::Int64(values) = values {
                values.push(value);
            }
            Ok(())
        })
    }
}

#[inline]
fn extend(values: &mut ColumnValues, bytes: &[u8]) {
    if let ColumnValues::Bytes(ends, data) = values {
        data.extend_from_slice(bytes);
        ends.push(i32::try_from(data.len()).unwrap_or(-1));
    }
}

/// Returns a value of a fixed length.
#[inline]
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Fault> {
    bytes.try_into().map_err(|_| Fault::Malformed("has another length than its type"))
}

fn uuid_text(uuid: [u8; 16]) -> [u8; 36] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (number, byte) in uuid.into_iter().enumerate() {
        at += usize::from(matches!(number, 4 | 6 | 8 | 10));
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
        at += 2;
    }
    text
}
