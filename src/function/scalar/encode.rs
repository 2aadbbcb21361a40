//! Other spellings of a text: hexadecimal, base 64, URLs, bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder};
use arrow::datatypes::Int64Type;

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text, validity};
use super::super::typing::{Parameter, typed};
use super::super::{Call, Inferred};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::TypeRoot;

pub(super) static HEX: Definition = Definition {
    name: "HEX",
    doc: "Returns an integer, or the bytes of a text, in hexadecimal digits.",
    signatures: &["HEX(<NUMERIC>)", "HEX(<CHARACTER>)"],
    examples: &[("HEX(255)", "FF"), ("HEX('abc')", "616263")],
    infer: |arguments| {
        typed(arguments, &[Parameter::Text], TypeRoot::STRING)
            .or_else(|| typed(arguments, &[Parameter::BigInt], TypeRoot::STRING))
    },
    invoke: hex,
    ..Definition::DEFAULT
};

pub(super) static TO_BASE64: Definition = Definition {
    name: "TO_BASE64",
    doc: "Returns the bytes of a text in base 64.",
    signatures: &["TO_BASE64(<CHARACTER>)"],
    examples: &[("TO_BASE64('abc')", "YWJj"), ("TO_BASE64('😀x')", "8J+YgHg=")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::STRING),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        map_text(call, operands, |row, out| {
            to_base64(texts.get(row).as_bytes(), out);
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static FROM_BASE64: Definition = Definition {
    name: "FROM_BASE64",
    doc: "Returns the text whose bytes are given in base 64.",
    signatures: &["FROM_BASE64(<CHARACTER>)"],
    examples: &[("FROM_BASE64('YWJj')", "abc")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::STRING),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        map_text(call, operands, |row, out| {
            let bytes = from_base64(texts.get(row)).ok_or_else(|| {
                Error::data("Input byte array has incorrect ending byte or an illegal base64 character")
                    .class(FlinkClass::ILLEGAL_ARGUMENT)
            })?;
            out.push_str(&String::from_utf8_lossy(&bytes));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static URL_ENCODE: Definition = Definition {
    name: "URL_ENCODE",
    doc: "Spells a text for a URL's query.",
    signatures: &["URL_ENCODE(<CHARACTER>)"],
    examples: &[("URL_ENCODE('a b+c')", "a+b%2Bc")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::STRING).map(Inferred::or_null),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        map_text(call, operands, |row, out| {
            for byte in texts.get(row).bytes() {
                match byte {
                    b' ' => out.push('+'),
                    b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
                    _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
                    _ => {
                        out.push('%');
                        push_hex(byte, out);
                    }
                }
            }
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static URL_DECODE: Definition = Definition {
    name: "URL_DECODE",
    doc: "Reads a text that is spelled for a URL's query; NULL where it is not.",
    signatures: &["URL_DECODE(<CHARACTER>)"],
    examples: &[("URL_DECODE('a%20b+c')", "a b c")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::STRING).map(Inferred::or_null),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        let mut decoded = Vec::new();
        map_text(call, operands, |row, out| {
            decoded.clear();
            let mut bytes = texts.get(row).bytes();
            while let Some(byte) = bytes.next() {
                decoded.push(match byte {
                    b'+' => b' ',
                    b'%' => match hex_value(bytes.next()).zip(hex_value(bytes.next())) {
                        Some((high, low)) => high << 4 | low,
                        None => return Ok(false),
                    },
                    other => other,
                });
            }
            out.push_str(&String::from_utf8_lossy(&decoded));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ENCODE: Definition = Definition {
    name: "ENCODE",
    doc: "Returns a text's bytes in a character set; only UTF-8, US-ASCII and ISO-8859-1 are known.",
    signatures: &["ENCODE(<CHARACTER>, <CHARACTER>)"],
    examples: &[("ENCODE('a', 'UTF-8')", "x'61'")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::BYTES),
    invoke: |call, operands| {
        let (texts, sets) = (operands[0].texts()?, operands[1].texts()?);
        let valid = validity(operands, call.row_count);
        let mut builder = BinaryBuilder::new();
        for row in 0..call.row_count {
            if valid.as_ref().is_some_and(|valid| valid.is_null(row)) {
                builder.append_null();
                continue;
            }
            match CharacterSet::parse(sets.get(row))? {
                CharacterSet::Utf8 => builder.append_value(texts.get(row)),
                CharacterSet::SingleByte(last) => {
                    let byte =
                        |character: char| if (character as u32) <= last { character as u8 } else { b'?' };
                    builder.append_value(texts.get(row).chars().map(byte).collect::<Vec<u8>>());
                }
            }
        }
        Ok(Arc::new(builder.finish()))
    },
    ..Definition::DEFAULT
};

pub(super) static DECODE: Definition = Definition {
    name: "DECODE",
    doc: "Returns the text whose bytes are in a character set; only UTF-8, US-ASCII and ISO-8859-1 are known.",
    signatures: &["DECODE(<BINARY>, <CHARACTER>)"],
    examples: &[("DECODE(X'61', 'UTF-8')", "a")],
    infer: |arguments| typed(arguments, &[Parameter::Bytes, Parameter::Text], TypeRoot::STRING),
    invoke: |call, operands| {
        let (values, sets) = (operands[0].bytes()?, operands[1].texts()?);
        map_text(call, operands, |row, out| {
            match CharacterSet::parse(sets.get(row))? {
                CharacterSet::Utf8 => out.push_str(&String::from_utf8_lossy(values.get(row))),
                CharacterSet::SingleByte(last) => out.extend(values.get(row).iter().map(|byte| {
                    if u32::from(*byte) <= last { char::from(*byte) } else { char::REPLACEMENT_CHARACTER }
                })),
            }
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

/// A character set that Java and we know.
enum CharacterSet {
    Utf8,
    /// Bytes are code points up to this one.
    SingleByte(u32),
}

impl CharacterSet {
    fn parse(name: &str) -> Result<CharacterSet> {
        match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => Ok(CharacterSet::Utf8),
            "US-ASCII" | "ASCII" => Ok(CharacterSet::SingleByte(0x7f)),
            "ISO-8859-1" | "LATIN1" => Ok(CharacterSet::SingleByte(0xff)),
            _ => Err(Error::unsupported(format!("Unsupported encoding: {name}"))
                .class(FlinkClass::RUNTIME)
                .hint("Known character sets: UTF-8, US-ASCII, ISO-8859-1.")),
        }
    }
}

fn hex(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    if call.arguments[0].root == TypeRoot::BigInt {
        let values = operands[0].values::<Int64Type>()?;
        return map_text(call, operands, |row, out| {
            out.push_str(&format!("{:X}", values.get(row)));
            Ok(true)
        });
    }
    let texts = operands[0].texts()?;
    map_text(call, operands, |row, out| {
        texts.get(row).bytes().for_each(|byte| push_hex(byte, out));
        Ok(true)
    })
}

fn push_hex(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn hex_value(digit: Option<u8>) -> Option<u8> {
    char::from(digit?).to_digit(16).map(|value| value as u8)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let part = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = part(0) << 16 | part(1) << 8 | part(2);
        for index in 0..4 {
            if index <= chunk.len() {
                out.push(char::from(BASE64[(bits >> (18 - 6 * index) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        bits = bits << 6 | BASE64.iter().position(|known| *known == digit)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // Six bits alone are no byte.
    (count < 6).then_some(bytes)
}
