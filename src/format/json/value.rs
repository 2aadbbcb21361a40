//! Appends JSON values to columns, by Jackson's rules of what converts.

use super::fault::Fault;
use super::parser::{Cursor, compact, plain_decimal, plain_integer, plain_number, plain_string, unescape};
use crate::format::column::{ColumnBuilder, Values};
use crate::format::text::{TextFault, TextParser, parse_f64};
use crate::schema::{Field, TypeRoot};

/// Appends values.
pub(in crate::format) struct ValueReader {
    parser: TextParser,
    ignores_errors: bool,
    requires_fields: bool,
    scratch: Vec<u8>,
}

impl ValueReader {
    /// Creates a reader that reads instants without a `Z` in the given zone.
    pub(in crate::format) fn new(
        zone: chrono_tz::Tz,
        ignores_errors: bool,
        requires_fields: bool,
    ) -> ValueReader {
        ValueReader { parser: TextParser::new(zone), ignores_errors, requires_fields, scratch: Vec::new() }
    }

    /// Appends the value at an offset if it has the plainest form of its type, and returns where it ends. Otherwise returns None
    /// and has appended nothing: then `push` must look.
    #[inline]
    pub(super) fn push_plain(&mut self, text: &[u8], at: usize, column: &mut ColumnBuilder) -> Option<usize> {
        let rest = text.get(at..)?;
        let (data_type, values) = column.parts();
        let len = match (values, &data_type.root) {
            (Values::Bytes(..), TypeRoot::Varchar(_) | TypeRoot::Char(_)) => {
                let inner = plain_string(rest)?;
                column.push_bytes(inner);
                return Some(at + inner.len() + 2);
            }
            (Values::Int64(values), TypeRoot::BigInt) => {
                let (value, len) = plain_integer(rest)?;
                values.push(value);
                len
            }
            (Values::Int32(values), TypeRoot::Int) => {
                let (value, len) = plain_integer(rest)?;
                values.push(i32::try_from(value).ok()?);
                len
            }
            (Values::Int128(values), TypeRoot::Decimal(precision, scale)) => {
                let Some((value, len)) = plain_decimal(rest, *precision, *scale) else {
                    return self.push_parsed(rest, at, column);
                };
                values.push(i128::from(value));
                len
            }
            (Values::Float32(_) | Values::Float64(_), _) => return self.push_parsed(rest, at, column),
            (Values::List(..) | Values::Map(..) | Values::Row(_) | Values::Null, _) => return None,
            _ => return self.push_quoted(rest, at, column),
        };
        column.mark_valid();
        Some(at + len)
    }

    /// Appends a number, with or without quotes around it.
    fn push_parsed(&mut self, rest: &[u8], at: usize, column: &mut ColumnBuilder) -> Option<usize> {
        if rest.first() == Some(&b'"') {
            return self.push_quoted(rest, at, column);
        }
        let len = plain_number(rest)?;
        self.parser.push(&rest[..len], column).ok()?;
        Some(at + len)
    }

    /// Appends what stands in quotes.
    #[inline]
    fn push_quoted(&mut self, rest: &[u8], at: usize, column: &mut ColumnBuilder) -> Option<usize> {
        let inner = plain_string(rest)?;
        self.parser.push(inner, column).ok()?;
        Some(at + inner.len() + 2)
    }

    /// Appends the value at the cursor; one that the column's type does not take is NULL where errors are ignored.
    pub(in crate::format) fn push(
        &mut self,
        cursor: &mut Cursor<'_>,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let Some(first) = cursor.peek() else { return Err(cursor.fault("a value").into()) };
        let (start, len) = (cursor.at(), column.len());
        match self.push_strictly(first, cursor, column) {
            Err(Fault::Value { .. }) if self.ignores_errors => {
                column.truncate(len);
                column.push_null();
                cursor.rewind(start);
                Ok(cursor.skip_value()?)
            }
            pushed => pushed,
        }
    }

    #[inline]
    fn push_strictly(
        &mut self,
        first: u8,
        cursor: &mut Cursor<'_>,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let start = cursor.at();
        match first {
            b'"' => {
                let raw = cursor.string()?;
                if !raw.is_escaped {
                    return self.push_text(raw.inner, column, start, cursor.at());
                }
                let mut plain = std::mem::take(&mut self.scratch);
                plain.clear();
                unescape(raw.inner, &mut plain);
                let pushed = self.push_text(&plain, column, start, cursor.at());
                self.scratch = plain;
                pushed
            }
            b'{' | b'[' => self.push_nested(first, cursor, column),
            _ => {
                let token = cursor.token()?;
                if token == b"null" {
                    column.push_null();
                    return Ok(());
                }
                // Jackson cuts the fraction off where a whole number is wanted and a number stands there.
                let cut = match column.data_type().root {
                    TypeRoot::Int | TypeRoot::BigInt => cut_fraction(token),
                    _ => None,
                };
                match cut {
                    Some(whole) => self.push_text(whole.to_string().as_bytes(), column, start, cursor.at()),
                    None => self.push_text(token, column, start, cursor.at()),
                }
            }
        }
    }

    #[inline]
    fn push_text(
        &mut self,
        text: &[u8],
        column: &mut ColumnBuilder,
        start: usize,
        end: usize,
    ) -> Result<(), Fault> {
        self.parser.push(text, column).map_err(|fault| Fault::Value {
            start,
            end,
            fault,
            data_type: column.data_type().clone(),
        })
    }

    fn push_nested(
        &mut self,
        first: u8,
        cursor: &mut Cursor<'_>,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        let (start, len) = (cursor.at(), column.len());
        let (data_type, values) = column.parts();
        match values {
            Values::Row(fields) if first == b'{' => {
                if let TypeRoot::Row(declared) = &data_type.root {
                    self.push_row(cursor, declared, fields, len)?;
                }
            }
            Values::List(ends, items) if first == b'[' => {
                cursor.expect(b'[', "'['")?;
                let mut is_end = cursor.take(b']');
                while !is_end {
                    self.push(cursor, items)?;
                    is_end = cursor.take(b']');
                    if !is_end {
                        cursor.expect(b',', "',' or ']'")?;
                    }
                }
                ends.push(i32::try_from(items.len()).unwrap_or(-1));
            }
            // Limit: a key that comes twice stays in the map twice.
            Values::Map(ends, keys, counts) if first == b'{' => {
                cursor.expect(b'{', "'{'")?;
                let mut is_end = cursor.take(b'}');
                while !is_end {
                    let key = cursor.key()?;
                    self.scratch.clear();
                    unescape(key.inner, &mut self.scratch);
                    keys.push_bytes(&self.scratch);
                    self.push(cursor, counts)?;
                    is_end = cursor.take(b'}');
                    if !is_end {
                        cursor.expect(b',', "',' or '}'")?;
                    }
                }
                ends.push(i32::try_from(keys.len()).unwrap_or(-1));
            }
            Values::Bytes(..) if data_type.root.is_character() => {
                cursor.skip_value()?;
                self.scratch.clear();
                compact(cursor.since(start), &mut self.scratch);
                column.push_bytes(&self.scratch);
                return Ok(());
            }
            _ => {
                let data_type = data_type.clone();
                cursor.skip_value()?;
                return Err(Fault::Value { start, end: cursor.at(), fault: TextFault::Shape, data_type });
            }
        }
        column.mark_valid();
        Ok(())
    }

    fn push_row(
        &mut self,
        cursor: &mut Cursor<'_>,
        declared: &[Field],
        fields: &mut [ColumnBuilder],
        len: usize,
    ) -> Result<(), Fault> {
        cursor.expect(b'{', "'{'")?;
        let mut is_end = cursor.take(b'}');
        while !is_end {
            let key = cursor.key()?;
            let position = if key.is_escaped {
                self.scratch.clear();
                unescape(key.inner, &mut self.scratch);
                declared.iter().position(|field| field.name.as_bytes() == self.scratch)
            } else {
                declared.iter().position(|field| field.name.as_bytes() == key.inner)
            };
            match position.and_then(|at| fields.get_mut(at)) {
                Some(field) => {
                    field.truncate(len);
                    self.push(cursor, field)?;
                }
                None => cursor.skip_value()?,
            }
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(b',', "',' or '}'")?;
            }
        }
        for (field, declared) in fields.iter_mut().zip(declared) {
            if field.len() == len {
                if self.requires_fields {
                    return Err(Fault::Missing(declared.name.clone()));
                }
                field.push_null();
            }
        }
        Ok(())
    }
}

/// Returns the whole part of a number that has a fraction or an exponent.
fn cut_fraction(token: &[u8]) -> Option<i64> {
    memchr::memchr3(b'.', b'e', b'E', token)?;
    let value = parse_f64(token)?.trunc();
    (value.abs() < 9.2e18).then_some(value as i64)
}
