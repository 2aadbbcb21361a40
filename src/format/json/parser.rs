//! Walks through JSON text without building anything.
//!
//! `Cursor` takes all of JSON; the functions named `plain_…` take only the commonest forms of a value, in a few instructions.

use wide::u8x16;

use crate::format::text::{POWERS_OF_TEN, unscaled};

/// Where text stops being JSON, and what should stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::format) struct SyntaxFault {
    pub(in crate::format) at: usize,
    pub(in crate::format) expected: &'static str,
}

type Parsed<T> = Result<T, SyntaxFault>;

// Limit: Jackson's; deeper documents are refused, not descended into.
const DEPTH_MAX: usize = 1_000;

/// A place in a text.
#[derive(Debug, Clone)]
pub(in crate::format) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it stands in the text.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct RawString<'a> {
    /// What is between the quotes.
    pub(in crate::format) inner: &'a [u8],
    /// Whether it holds escapes.
    pub(in crate::format) is_escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(in crate::format) fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Returns the offset.
    pub(in crate::format) fn at(&self) -> usize {
        self.at
    }

    /// Returns the whole text.
    pub(in crate::format) fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Goes to an offset.
    pub(in crate::format) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the text between an offset and here.
    pub(in crate::format) fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.at]
    }

    /// Skips blanks and returns the next byte, which is not consumed.
    #[inline]
    pub(in crate::format) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Consumes the byte if it comes next.
    #[inline]
    pub(in crate::format) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Consumes the byte, which must come next.
    #[inline]
    pub(in crate::format) fn expect(&mut self, byte: u8, expected: &'static str) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(expected)) }
    }

    /// Fails if there is anything left but blanks.
    pub(in crate::format) fn expect_end(&mut self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("the end of the line")),
        }
    }

    /// Returns the fault that something else was expected here.
    pub(in crate::format) fn fault(&self, expected: &'static str) -> SyntaxFault {
        SyntaxFault { at: self.at, expected }
    }

    /// Consumes a string.
    #[inline]
    pub(in crate::format) fn string(&mut self) -> Parsed<RawString<'a>> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let Some(found) = quote_or_backslash(&self.text[self.at..]) else {
                self.at = self.text.len();
                return Err(self.fault("a closing quote"));
            };
            self.at += found + 1;
            if self.text[self.at - 1] == b'"' {
                return Ok(RawString { inner: &self.text[start..self.at - 1], is_escaped });
            }
            is_escaped = true;
            if self.at >= self.text.len() {
                return Err(self.fault("a closing quote"));
            }
            self.at += 1;
        }
    }

    /// Consumes a number, `true`, `false` or `null` and returns its text.
    #[inline]
    pub(in crate::format) fn token(&mut self) -> Parsed<&'a [u8]> {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or_default();
        if let Some(len) = plain_number(rest) {
            self.at += len;
            return Ok(&rest[..len]);
        }
        while self.text.get(self.at).is_some_and(|byte| is_token_byte(*byte)) {
            self.at += 1;
        }
        let token = &self.text[start..self.at];
        if is_literal(token) || is_number(token) {
            return Ok(token);
        }
        self.at = start;
        Err(self.fault("a value"))
    }

    /// Consumes any value.
    #[inline]
    pub(in crate::format) fn skip_value(&mut self) -> Parsed<()> {
        if let Some(end) = skip_plain(self.text, self.at) {
            self.at = end;
            return Ok(());
        }
        self.skip_any_value()
    }

    /// Consumes any value. Does not recurse, however deep the value is.
    fn skip_any_value(&mut self) -> Parsed<()> {
        // One bit per open bracket would do; a byte is simpler and there are few.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        self.descend(&mut open, b'}')?;
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        self.descend(&mut open, b']')?;
                        continue;
                    }
                }
                Some(b'"') => drop(self.string()?),
                _ => drop(self.token()?),
            }
            // A value has ended: so may what it is part of.
            loop {
                let Some(end) = open.last().copied() else { return Ok(()) };
                if self.take(b',') {
                    if end == b'}' {
                        self.key()?;
                    }
                    break;
                }
                self.expect(end, if end == b'}' { "',' or '}'" } else { "',' or ']'" })?;
                open.pop();
            }
        }
    }

    fn descend(&self, open: &mut Vec<u8>, end: u8) -> Parsed<()> {
        if open.len() >= DEPTH_MAX {
            return Err(self.fault("no more than 1000 levels of nesting"));
        }
        open.push(end);
        Ok(())
    }

    /// Consumes the key of an entry and the colon behind it.
    #[inline]
    pub(in crate::format) fn key(&mut self) -> Parsed<RawString<'a>> {
        let key = self.string()?;
        self.expect(b':', "':'")?;
        Ok(key)
    }
}

/// Which bytes may be part of a number or a word.
const TOKEN_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        let byte = at as u8;
        bytes[at] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        at += 1;
    }
    bytes
};

/// Returns whether a byte may be part of a number or a word.
#[inline]
fn is_token_byte(byte: u8) -> bool {
    TOKEN_BYTES[usize::from(byte)]
}

/// Returns the content of the string at the start of a text if it has no escapes.
#[inline]
pub(in crate::format) fn plain_string(text: &[u8]) -> Option<&[u8]> {
    let inner = text.strip_prefix(b"\"")?;
    let end = quote_or_backslash(inner)?;
    (inner[end] == b'"').then_some(&inner[..end])
}

/// Returns where the first quote or backslash is. Most strings are short, and to call a search takes as long as to look at them here.
#[inline]
fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    const LOOKED_AT: usize = 64;
    let (quote, backslash) = (u8x16::splat(b'"'), u8x16::splat(b'\\'));
    let mut at = 0;
    while at < LOOKED_AT
        && let Some(next) = text[at..].first_chunk()
    {
        let next = u8x16::new(*next);
        let found = (next.simd_eq(quote) | next.simd_eq(backslash)).to_bitmask();
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += size_of::<u8x16>();
    }
    memchr::memchr2(b'"', b'\\', &text[at..]).map(|found| at + found)
}

/// Returns where a value ends that is a string without escapes, a number or NULL.
#[inline]
pub(in crate::format) fn skip_plain(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    match rest.first()? {
        b'"' => plain_string(rest).map(|inner| at + inner.len() + 2),
        b'n' => (rest.starts_with(b"null") && !is_token_byte(*rest.get(4)?)).then_some(at + 4),
        _ => plain_number(rest).map(|len| at + len),
    }
}

/// Returns how many digits a text of 8 bytes begins with, and the digits as bytes from 0 to 9. The lengths of numbers cannot be
/// foretold, so a loop that ends with the last digit costs more than to look at all bytes at a time.
#[inline]
fn leading_digits(text: [u8; 8]) -> (usize, u64) {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    // The high bit of a byte is set where it is above 9. What is carried over goes to bytes behind the first such one.
    let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
    (others.trailing_zeros() as usize / 8, digits)
}

/// Returns the number that the first 1 to 7 of 8 digits are.
#[inline]
fn number_of(digits: u64, count: usize) -> i64 {
    // Zeros move in front. Then neighbours become numbers below 100, those below 10 000, and those one number.
    let digits = digits << (64 - 8 * count);
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    ((fours.wrapping_mul(10_000) + (fours >> 32)) & 0xffff_ffff) as i64
}

/// Returns the whole number at the start of a text and its length, if it has no more than 18 digits and something follows.
#[inline]
pub(in crate::format) fn plain_integer(text: &[u8]) -> Option<(i64, usize)> {
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let (mut value, mut at) = (0_i64, start);
    let (count, digits) = text[start..].first_chunk().map_or((8, 0), |text| leading_digits(*text));
    if (1..8).contains(&count) {
        (value, at) = (number_of(digits, count), start + count);
    } else {
        loop {
            let digit = text.get(at)?.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
            at += 1;
        }
    }
    if at == start || at - start > 18 || is_token_byte(text[at]) {
        return None;
    }
    Some((if is_negative { -value } else { value }, at))
}

/// Returns the unscaled value of the number at the start of a text and its length, if it has at most 7 digits on each side of the point,
/// is of the type DECIMAL(`precision`, `scale`) as it stands, and something follows.
#[inline]
pub(in crate::format) fn plain_decimal(text: &[u8], precision: u8, scale: u8) -> Option<(i64, usize)> {
    /// With the 7 digits before the point, as many as fit.
    const SCALE_MAX: u8 = 11;
    let part = |from: usize| {
        let (count, digits) = leading_digits(*text.get(from..)?.first_chunk()?);
        (1..8).contains(&count).then(|| (number_of(digits, count), count))
    };
    let is_negative = text.first() == Some(&b'-');
    let start = usize::from(is_negative);
    let (mut value, count) = part(start)?;
    let (mut at, mut missing) = (start + count, usize::from(scale));
    if text[at] == b'.' {
        let (fraction, count) = part(at + 1)?;
        value = value * POWERS_OF_TEN[count] + fraction;
        (at, missing) = (at + 1 + count, missing.checked_sub(count)?);
    }
    if scale > SCALE_MAX || is_token_byte(text[at]) {
        return None;
    }
    let value = unscaled(value, missing, precision)?;
    Some((if is_negative { -value } else { value }, at))
}

/// Returns the length of the number at the start of a text, if it has no exponent and something follows.
#[inline]
pub(in crate::format) fn plain_number(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let mut at = from;
        while let Some(next) = text.get(at..)?.first_chunk() {
            let (count, _) = leading_digits(*next);
            at += count;
            if count < 8 {
                return (at > from).then_some(at);
            }
        }
        while text.get(at)?.is_ascii_digit() {
            at += 1;
        }
        (at > from).then_some(at)
    };
    let mut at = digits(usize::from(text.first() == Some(&b'-')))?;
    if text[at] == b'.' {
        at = digits(at + 1)?;
    }
    (!is_token_byte(text[at])).then_some(at)
}

fn is_literal(token: &[u8]) -> bool {
    matches!(token, b"true" | b"false" | b"null" | b"NaN")
}

fn is_number(token: &[u8]) -> bool {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    let mut parts = digits.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = (parts.next().unwrap_or_default(), parts.next());
    let mut sides = mantissa.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (sides.next().unwrap_or_default(), sides.next());
    let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_digits(whole)
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|text| {
            is_digits(text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text))
        })
}

/// Appends a string's characters, its escapes resolved. Escapes that are none stay as they are.
pub(in crate::format) fn unescape(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let tail = &rest[at + 1..];
        let Some(letter) = tail.first() else { return };
        rest = &tail[1..];
        match letter {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => rest = unescape_unit(rest, out),
            other => out.push(*other),
        }
    }
    out.extend_from_slice(rest);
}

/// Appends the character of `XXXX`, or of a surrogate pair `XXXX\uXXXX`, and returns what follows.
fn unescape_unit<'a>(text: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let Some(unit) = hex_unit(text) else {
        out.extend_from_slice("\u{fffd}".as_bytes());
        return text;
    };
    let rest = &text[4..];
    let low = rest.strip_prefix(b"\\u").and_then(|tail| Some((hex_unit(tail)?, &tail[4..])));
    let (code, rest) = match low {
        Some((low @ 0xdc00..=0xdfff, tail)) if (0xd800..0xdc00).contains(&unit) => {
            (0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00), tail)
        }
        _ => (unit, rest),
    };
    let character = char::from_u32(code).unwrap_or('\u{fffd}');
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    rest
}

fn hex_unit(text: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(text.get(..4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Appends a value without the blanks between its parts, as Jackson prints a tree.
pub(in crate::format) fn compact(value: &[u8], out: &mut Vec<u8>) {
    let mut is_inside = false;
    let mut is_escaped = false;
    for byte in value {
        if is_inside || !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            out.push(*byte);
        }
        if is_escaped {
            is_escaped = false;
        } else if *byte == b'"' {
            is_inside = !is_inside;
        } else {
            is_escaped = is_inside && *byte == b'\\';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text::{DecimalText, parse_decimal};
    use proptest::prelude::*;

    fn skips(text: &str) -> bool {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip_value().is_ok() && cursor.peek().is_none()
    }

    proptest! {
        #[test]
        fn plain_numbers_are_what_they_say(text in "-?[0-9]{0,20}(\\.[0-9]{0,10})?[,}/:ex]?[ -~]{0,9}") {
            let sign = usize::from(text.starts_with('-'));
            let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
            let whole = digits(sign);
            let ends = |at: usize| text.as_bytes().get(at).is_some_and(|byte| !is_token_byte(*byte));
            let integer = (1..=18).contains(&whole) && ends(sign + whole);
            let expected = integer.then(|| (text[..sign + whole].parse::<i64>().unwrap(), sign + whole));
            prop_assert_eq!(plain_integer(text.as_bytes()), expected);
            let fraction = text[sign + whole..].starts_with('.').then(|| digits(sign + whole + 1));
            let end = sign + whole + fraction.map_or(0, |count| count + 1);
            let is_number = whole > 0 && fraction != Some(0) && ends(end);
            prop_assert_eq!(plain_number(text.as_bytes()), is_number.then_some(end));
        }
    }

    proptest! {
        #[test]
        fn plain_decimals_are_the_numbers_that_they_say(
            text in "-?[0-9]{0,8}(\\.[0-9]{0,8})?[,}/:ex]?[ -~]{8}",
            precision in 1_u8..=38,
            scale in 0_u8..=20,
        ) {
            let scale = scale.min(precision);
            if let Some((value, len)) = plain_decimal(text.as_bytes(), precision, scale) {
                prop_assert_eq!(plain_number(text.as_bytes()), Some(len));
                let parsed = parse_decimal(&text.as_bytes()[..len], precision, scale);
                prop_assert_eq!(parsed, DecimalText::Value(i128::from(value)));
            }
        }
    }

    #[test]
    fn decimals_of_few_digits_are_plain() {
        let read = |text: &str| plain_decimal(format!("{text},        ").as_bytes(), 10, 2);
        assert_eq!(read("1234.5"), Some((123_450, 6)));
        assert_eq!(read("-7"), Some((-700, 2)));
        assert_eq!(read("1234567.89"), Some((123_456_789, 10)));
        for text in ["", "-", "1.", ".5", "1.234", "12345678", "1e3", "\"1\"", "null"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(plain_decimal(b"123,        ", 2, 0), None, "too many digits for the type");
    }

    #[test]
    fn only_json_is_skipped() {
        for text in ["{}", "[ ]", "{\"a\":[1,{\"b\":null}],\"c\":\"\\\"\"}", "-1.5e+3", " true ", "\"\"", "0"]
        {
            assert!(skips(text), "{text}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "tru",
            "1.",
            "-",
            "\"a",
            "{a:1}",
            "[1 2]",
            "1e",
            "'a'",
            "]",
        ] {
            assert!(!skips(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_overflow() {
        let deep = "[".repeat(1_000_000);
        let fault = Cursor::new(deep.as_bytes()).skip_value().unwrap_err();
        assert_eq!(fault.at, 1_001);
    }

    #[test]
    fn escapes_are_resolved() {
        let mut out = Vec::new();
        unescape(br#"a\"\\\/\n\u00e4\ud83d\ude00\ud83dx\u12"#, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "a\"\\/\nä😀\u{fffd}x\u{fffd}12");
    }

    #[test]
    fn blanks_go_between_parts_and_stay_within_strings() {
        let mut out = Vec::new();
        compact(b"{ \"a b\" : [ 1 , \"\\\" \" ] }", &mut out);
        assert_eq!(out, b"{\"a b\":[1,\"\\\" \"]}");
    }

    proptest! {
        #[test]
        fn what_serde_takes_is_skipped_and_nothing_panics(text in "[\\[\\]{}\",:0-9a-z\\\\ .eE+-]{0,40}") {
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert!(skips(&text), "{}", text);
            } else {
                skips(&text);
            }
        }
    }
}
