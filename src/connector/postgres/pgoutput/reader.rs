//! Numbers, texts and tuples within a message.

use std::fmt;

use super::message::{Lsn, Tuple, TupleValue};
use crate::error::{Error, ErrorKind, Result};

/// Reads one message from its front to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Reader<'a> {
        Reader { message, at: 0 }
    }

    /// Returns the next bytes.
    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.message.len());
        let Some(end) = end else { return Err(self.malformed(format_args!("{count} more bytes"))) };
        let bytes = &self.message[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(super) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Returns a moment: microseconds since 1970, from those since 2000 that stand there.
    #[inline]
    pub(super) fn time(&mut self) -> Result<i64> {
        const YEAR_2000: i64 = 946_684_800_000_000;
        self.array().map(|bytes| i64::from_be_bytes(bytes).saturating_add(YEAR_2000))
    }

    #[inline]
    pub(super) fn lsn(&mut self) -> Result<Lsn> {
        self.array().map(|bytes| Lsn(u64::from_be_bytes(bytes)))
    }

    /// Returns a text that ends with a zero byte.
    pub(super) fn text(&mut self) -> Result<&'a str> {
        let length = memchr::memchr(0, &self.message[self.at..]);
        let Some(length) = length else { return Err(self.malformed("the end of a text")) };
        let bytes = self.bytes(length)?;
        self.at += 1;
        std::str::from_utf8(bytes).map_err(|_| self.malformed("a text in UTF-8"))
    }

    /// Returns a tuple, every column of which has been seen to be whole.
    #[inline]
    pub(super) fn tuple(&mut self) -> Result<Tuple<'a>> {
        let column_count = self.u16()?;
        let start = self.at;
        for _ in 0..column_count {
            match self.u8()? {
                b'n' | b'u' => {}
                b't' | b'b' => {
                    let length = self.i32()?;
                    let Ok(length) = usize::try_from(length) else {
                        return Err(self.malformed("a length that is not negative"));
                    };
                    self.bytes(length)?;
                }
                kind => {
                    let kind = char::from(kind).escape_default();
                    return Err(self.malformed(format_args!("a column of kind n, u, t or b, not '{kind}'")));
                }
            }
        }
        Ok(Tuple { column_count, bytes: &self.message[start..self.at] })
    }

    /// Checks that nothing follows.
    pub(super) fn expect_end(&self) -> Result<()> {
        if self.at == self.message.len() { Ok(()) } else { Err(self.malformed("the end of the message")) }
    }

    /// The error of a message that is not what the protocol says.
    pub(super) fn malformed(&self, wanted: impl fmt::Display) -> Error {
        let kind = self.message.first().map_or(' ', |byte| char::from(*byte)).escape_default();
        Error::new(
            ErrorKind::Data,
            format!(
                "a message '{kind}' of plugin pgoutput is malformed: expected {wanted} at byte {}",
                self.at
            ),
        )
        .hint("The server speaks a protocol that is not known, or the connection has damaged it.")
    }
}

/// The values of a tuple. What they stand on was checked by `Reader::tuple`.
pub(super) struct TupleValues<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Iterator for TupleValues<'a> {
    type Item = TupleValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<TupleValue<'a>> {
        let (kind, rest) = self.rest.split_first()?;
        self.rest = rest;
        match kind {
            b'n' => return Some(TupleValue::Null),
            b'u' => return Some(TupleValue::Unchanged),
            _ => {}
        }
        let (length, rest) = self.rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        self.rest = rest;
        Some(if *kind == b't' { TupleValue::Text(value) } else { TupleValue::Binary(value) })
    }
}
