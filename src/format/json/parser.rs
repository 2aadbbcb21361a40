//! Walks through JSON text without building anything.

/// Where text stops being JSON, and what should stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

type Parsed<T> = Result<T, SyntaxFault>;

// Limit: Jackson's; deeper documents are refused, not descended into.
const DEPTH_MAX: usize = 1_000;

/// A place in a text.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawString<'a> {
    /// What is between the quotes.
    pub(super) inner: &'a [u8],
    /// Whether it holds escapes.
    pub(super) is_escaped: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Returns the offset.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes back to an offset.
    pub(super) fn rewind(&mut self, at: usize) {
        self.at = at;
    }

    /// Returns the text between an offset and here.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        &self.text[start..self.at]
    }

    /// Skips blanks and returns the next byte, which is not consumed.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
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
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Consumes the byte, which must come next.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Parsed<()> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(expected)) }
    }

    pub(super) fn fault(&self, expected: &'static str) -> SyntaxFault {
        SyntaxFault { at: self.at, expected }
    }

    /// Consumes a string.
    #[inline]
    pub(super) fn string(&mut self) -> Parsed<RawString<'a>> {
        self.expect(b'"', "a string")?;
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', &self.text[self.at..]) else {
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
    pub(super) fn token(&mut self) -> Parsed<&'a [u8]> {
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        {
            self.at += 1;
        }
        let token = &self.text[start..self.at];
        if is_literal(token) || is_number(token) {
            return Ok(token);
        }
        self.at = start;
        Err(self.fault("a value"))
    }

    /// Consumes any value. Does not recurse, however deep the value is.
    pub(super) fn skip_value(&mut self) -> Parsed<()> {
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
    pub(super) fn key(&mut self) -> Parsed<RawString<'a>> {
        let key = self.string()?;
        self.expect(b':', "':'")?;
        Ok(key)
    }
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
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>) {
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
pub(super) fn compact(value: &[u8], out: &mut Vec<u8>) {
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
    use proptest::prelude::*;

    fn skips(text: &str) -> bool {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.skip_value().is_ok() && cursor.peek().is_none()
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
