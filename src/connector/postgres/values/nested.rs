//! Arrays and hstore: texts that hold values of other types, quoted where need be.

use super::source_type::SourceType;
use super::{Fault, ValueReader, check_utf8};
use crate::connector::postgres::options::Unrepresentable;
use crate::format::{ColumnBuilder, ColumnValues};
use crate::schema::{DataType, TypeRoot};

const MALFORMED_ARRAY: Fault = Fault::Malformed("is no array");
const MALFORMED_HSTORE: Fault = Fault::Malformed("is no hstore");

/// Reads arrays. Their type says nothing of dimensions, so the declared type does: `ARRAY<ARRAY<INT>>` for two of them.
#[derive(Debug, Clone)]
pub(super) struct ArrayReader {
    dimensions: usize,
    delimiter: u8,
    element: ValueReader,
    /// An element without its quotes and backslashes.
    scratch: Vec<u8>,
}

impl ArrayReader {
    /// Makes the reader of arrays whose items are declared so; None if the elements are never of that type.
    pub(super) fn new(
        source: &SourceType,
        delimiter: u8,
        item: &DataType,
        unrepresentable: Unrepresentable,
    ) -> Option<ArrayReader> {
        let (mut dimensions, mut declared) = (1, item);
        while let TypeRoot::Array(inner) = &declared.root {
            (dimensions, declared) = (dimensions + 1, inner);
        }
        let element = ValueReader::new(source, declared, unrepresentable)?;
        Some(ArrayReader { dimensions, delimiter, element, scratch: Vec::new() })
    }

    /// Appends an array. Bounds that do not begin with one are not kept: our arrays have none.
    pub(super) fn push(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), Fault> {
        let start = match text.first() {
            Some(b'[') => memchr::memchr(b'=', text).ok_or(MALFORMED_ARRAY)? + 1,
            _ => 0,
        };
        let mut cursor = Cursor { text, at: start };
        self.take_list(&mut cursor, self.dimensions, column)?;
        if cursor.at == text.len() { Ok(()) } else { Err(MALFORMED_ARRAY) }
    }

    /// Appends what stands within a pair of braces, which holds lists of `dimensions - 1` dimensions, or elements.
    fn take_list(
        &mut self,
        cursor: &mut Cursor<'_>,
        dimensions: usize,
        column: &mut ColumnBuilder,
    ) -> Result<(), Fault> {
        cursor.expect(b'{', MALFORMED_ARRAY)?;
        let ColumnValues::List(ends, items) = column.values() else { return Err(MALFORMED_ARRAY) };
        let mut is_end = cursor.take(b'}');
        while !is_end {
            match (cursor.peek() == Some(b'{'), dimensions) {
                (true, 1) => return Err(Fault::Misfit("has more dimensions")),
                (true, _) => self.take_list(cursor, dimensions - 1, items)?,
                (false, 1) => self.take_element(cursor, items)?,
                (false, _) => return Err(Fault::Misfit("has fewer dimensions")),
            }
            is_end = cursor.take(b'}');
            if !is_end {
                cursor.expect(self.delimiter, MALFORMED_ARRAY)?;
            }
        }
        ends.push(i32::try_from(items.len()).unwrap_or(-1));
        column.mark_valid();
        Ok(())
    }

    fn take_element(&mut self, cursor: &mut Cursor<'_>, items: &mut ColumnBuilder) -> Result<(), Fault> {
        if cursor.take(b'"') {
            cursor.take_quoted(&mut self.scratch).ok_or(MALFORMED_ARRAY)?;
            return self.element.push_text(&self.scratch, items);
        }
        let rest = cursor.rest();
        let end =
            rest.iter().position(|byte| *byte == b'}' || *byte == self.delimiter).ok_or(MALFORMED_ARRAY)?;
        cursor.at += end;
        match &rest[..end] {
            b"NULL" => items.push_null(),
            bare => self.element.push_text(bare, items)?,
        }
        Ok(())
    }
}

/// Reads `"key"=>"value", "key"=>NULL` into a MAP of texts.
#[derive(Debug, Clone, Default)]
pub(super) struct HstoreReader {
    scratch: Vec<u8>,
}

impl HstoreReader {
    /// Appends a map.
    pub(super) fn push(&mut self, text: &[u8], column: &mut ColumnBuilder) -> Result<(), Fault> {
        let ColumnValues::Map(ends, keys, values) = column.values() else { return Err(MALFORMED_HSTORE) };
        check_utf8(text)?;
        let mut cursor = Cursor { text, at: 0 };
        while cursor.at < text.len() {
            cursor.expect(b'"', MALFORMED_HSTORE)?;
            cursor.take_quoted(&mut self.scratch).ok_or(MALFORMED_HSTORE)?;
            keys.push_bytes(&self.scratch);
            cursor.take_all(b"=>").ok_or(MALFORMED_HSTORE)?;
            if cursor.take_all(b"NULL").is_some() {
                values.push_null();
            } else {
                cursor.expect(b'"', MALFORMED_HSTORE)?;
                cursor.take_quoted(&mut self.scratch).ok_or(MALFORMED_HSTORE)?;
                values.push_bytes(&self.scratch);
            }
            if cursor.at < text.len() {
                cursor.take_all(b", ").ok_or(MALFORMED_HSTORE)?;
            }
        }
        ends.push(i32::try_from(keys.len()).unwrap_or(-1));
        column.mark_valid();
        Ok(())
    }
}

/// A place in a text.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, byte: u8, fault: Fault) -> Result<(), Fault> {
        if self.take(byte) { Ok(()) } else { Err(fault) }
    }

    fn take_all(&mut self, bytes: &[u8]) -> Option<()> {
        let is_there = self.rest().starts_with(bytes);
        self.at += if is_there { bytes.len() } else { 0 };
        is_there.then_some(())
    }

    /// Takes what stands up to the closing quote, without the backslashes before quotes and backslashes.
    fn take_quoted(&mut self, out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        loop {
            let rest = self.rest();
            let end = memchr::memchr2(b'"', b'\\', rest)?;
            out.extend_from_slice(&rest[..end]);
            self.at += end + 1;
            if rest[end] == b'"' {
                return Some(());
            }
            out.push(self.peek()?);
            self.at += 1;
        }
    }
}
