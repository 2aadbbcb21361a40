//! Parts of a text. Positions count code points from 1.

use arrow::array::ArrayRef;
use arrow::datatypes::Int32Type;

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text};
use super::super::typing::{Parameter, typed, varchar_like};
use super::super::{Argument, Call, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;

pub(super) static SUBSTRING: Definition = Definition {
    name: "SUBSTRING",
    aliases: &["SUBSTR"],
    doc: "Returns the part from a position, which counts from the end if it is negative, of a length or to the end.",
    signatures: &["SUBSTRING(<CHARACTER>, <INTEGER>)", "SUBSTRING(<CHARACTER>, <INTEGER>, <INTEGER>)"],
    examples: &[
        ("SUBSTRING('abcdef', 2, 3)", "bcd"),
        ("SUBSTRING('abcdef' FROM 0 FOR 3)", "abc"),
        ("SUBSTR('abcdef', -3, 2)", "de"),
        ("SUBSTRING('abcdef', 2, -1)", "<NULL>"),
    ],
    infer: |arguments| {
        const PARAMETERS: [Parameter; 3] = [Parameter::Text, Parameter::Int, Parameter::Int];
        part(arguments, PARAMETERS.get(..arguments.len().max(2))?)
    },
    invoke: substring,
    ..Definition::DEFAULT
};

pub(super) static LEFT: Definition = Definition {
    name: "LEFT",
    doc: "Returns the first characters.",
    signatures: &["LEFT(<CHARACTER>, <INTEGER>)"],
    examples: &[("LEFT('abc', 2)", "ab"), ("LEFT('abc', -1)", "")],
    infer: |arguments| part(arguments, &[Parameter::Text, Parameter::Int]),
    invoke: |call, operands| {
        let (texts, lengths) = (operands[0].texts()?, operands[1].values::<Int32Type>()?);
        map_text(call, operands, |row, out| {
            out.push_str(characters(texts.get(row), 0, lengths.get(row).max(0) as usize));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static RIGHT: Definition = Definition {
    name: "RIGHT",
    doc: "Returns the last characters.",
    signatures: &["RIGHT(<CHARACTER>, <INTEGER>)"],
    examples: &[("RIGHT('abc', 2)", "bc"), ("RIGHT('abc', -1)", "")],
    infer: |arguments| part(arguments, &[Parameter::Text, Parameter::Int]),
    invoke: |call, operands| {
        let (texts, lengths) = (operands[0].texts()?, operands[1].values::<Int32Type>()?);
        map_text(call, operands, |row, out| {
            let (text, length) = (texts.get(row), lengths.get(row).max(0) as usize);
            out.push_str(characters(text, text.chars().count().saturating_sub(length), usize::MAX));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static SPLIT_INDEX: Definition = Definition {
    name: "SPLIT_INDEX",
    doc: "Returns the part at an index, which counts from 0, of a text that a separator splits; NULL where there is none.",
    signatures: &[
        "SPLIT_INDEX(<CHARACTER>, <CHARACTER>, <INTEGER>)",
        "SPLIT_INDEX(<CHARACTER>, <INTEGER>, <INTEGER>)",
    ],
    examples: &[
        ("SPLIT_INDEX('a,,c', ',', 2)", "c"),
        ("SPLIT_INDEX('a,,c', ',', 3)", "<NULL>"),
        ("SPLIT_INDEX('a,b', 44, 1)", "b"),
    ],
    infer: |arguments| {
        typed(arguments, &[Parameter::Text, Parameter::Text, Parameter::Int], TypeRoot::STRING)
            .or_else(|| {
                typed(arguments, &[Parameter::Text, Parameter::Int, Parameter::Int], TypeRoot::STRING)
            })
            .map(Inferred::or_null)
    },
    invoke: split_index,
    ..Definition::DEFAULT
};

pub(super) static OVERLAY: Definition = Definition {
    name: "OVERLAY",
    doc: "Replaces the part from a position, of a length or as long as the replacement, by another text.",
    signatures: &[
        "OVERLAY(<CHARACTER> PLACING <CHARACTER> FROM <INTEGER>)",
        "OVERLAY(<CHARACTER> PLACING <CHARACTER> FROM <INTEGER> FOR <INTEGER>)",
    ],
    examples: &[
        ("OVERLAY('abcdef' PLACING 'xx' FROM 2 FOR 3)", "axxef"),
        ("OVERLAY('hello' PLACING 'ZZ' FROM 9)", "hello"),
    ],
    infer: |arguments| {
        const PARAMETERS: [Parameter; 4] = [Parameter::Text, Parameter::Text, Parameter::Int, Parameter::Int];
        typed(arguments, PARAMETERS.get(..arguments.len().max(3))?, TypeRoot::STRING)
    },
    invoke: overlay,
    ..Definition::DEFAULT
};

fn part(arguments: &[Argument<'_>], parameters: &[Parameter]) -> Option<Inferred> {
    let inferred = typed(arguments, parameters, TypeRoot::STRING)?;
    let root = varchar_like(&inferred.arguments[0].root);
    Some(inferred.returning(root).or_null())
}

/// Returns up to `count` characters behind the first `start`.
fn characters(text: &str, start: usize, count: usize) -> &str {
    let offset = |text: &str, count: usize| {
        // A text of ASCII only needs no counting, and others have at least as many bytes as characters.
        if text.len() <= count {
            return text.len();
        }
        text.char_indices().nth(count).map_or(text.len(), |(offset, _)| offset)
    };
    let rest = &text[offset(text, start)..];
    &rest[..offset(rest, count)]
}

fn substring(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let (texts, starts) = (operands[0].texts()?, operands[1].values::<Int32Type>()?);
    let lengths = operands.get(2).map(Operand::values::<Int32Type>).transpose()?;
    map_text(call, operands, |row, out| {
        let (text, start) = (texts.get(row), starts.get(row));
        let length = lengths.map_or(i32::MAX, |lengths| lengths.get(row));
        if length < 0 {
            return Ok(false);
        }
        let skipped = match start {
            1.. => start as usize - 1,
            0 => 0,
            _ => match text.chars().count().checked_sub(start.unsigned_abs() as usize) {
                Some(skipped) => skipped,
                // A start before the text gives nothing.
                None => return Ok(true),
            },
        };
        out.push_str(characters(text, skipped, length as usize));
        Ok(true)
    })
}

fn split_index(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let (texts, indices) = (operands[0].texts()?, operands[2].values::<Int32Type>()?);
    let write = |text: &str, separator: &str, index: i32, out: &mut String| {
        let (Ok(index), false) = (usize::try_from(index), text.is_empty()) else { return Ok(false) };
        // Java splits at white space where the separator is empty.
        let part = if separator.is_empty() {
            text.split(char::is_whitespace).nth(index)
        } else {
            text.split(separator).nth(index)
        };
        out.push_str(part.unwrap_or_default());
        Ok(part.is_some())
    };
    if call.arguments[1].root == TypeRoot::Int {
        let codes = operands[1].values::<Int32Type>()?;
        let mut buffer = [0; 4];
        return map_text(call, operands, |row, out| {
            let Some(separator) = u32::try_from(codes.get(row)).ok().and_then(char::from_u32) else {
                return Ok(false);
            };
            write(texts.get(row), separator.encode_utf8(&mut buffer), indices.get(row), out)
        });
    }
    let separators = operands[1].texts()?;
    map_text(call, operands, |row, out| write(texts.get(row), separators.get(row), indices.get(row), out))
}

fn overlay(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let (texts, replacements) = (operands[0].texts()?, operands[1].texts()?);
    let starts = operands[2].values::<Int32Type>()?;
    let lengths = operands.get(3).map(Operand::values::<Int32Type>).transpose()?;
    map_text(call, operands, |row, out| {
        let (text, replacement) = (texts.get(row), replacements.get(row));
        let start = starts.get(row);
        let length =
            lengths.map_or_else(|| replacement.chars().count(), |lengths| lengths.get(row).max(0) as usize);
        if start < 1 || start as usize > text.chars().count() {
            out.push_str(text);
            return Ok(true);
        }
        let kept = start as usize - 1;
        out.push_str(characters(text, 0, kept));
        out.push_str(replacement);
        out.push_str(characters(text, kept.saturating_add(length), usize::MAX));
        Ok(true)
    })
}
