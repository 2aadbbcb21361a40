//! Upper and lower case, and blanks and other characters taken from the ends of a text.

use arrow::array::ArrayRef;

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text};
use super::super::typing::{Parameter, typed, varchar_like};
use super::super::{Argument, Call, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;

pub(super) static UPPER: Definition = Definition {
    name: "UPPER",
    doc: "Returns the text in upper case.",
    signatures: &["UPPER(<CHARACTER>)"],
    examples: &[("UPPER('Äb1')", "ÄB1")],
    infer: same_type,
    invoke: |call, operands| map_case(call, operands, upper),
    ..Definition::DEFAULT
};

pub(super) static LOWER: Definition = Definition {
    name: "LOWER",
    doc: "Returns the text in lower case.",
    signatures: &["LOWER(<CHARACTER>)"],
    examples: &[("LOWER('ÄB1')", "äb1")],
    infer: same_type,
    invoke: |call, operands| map_case(call, operands, lower),
    ..Definition::DEFAULT
};

pub(super) static INITCAP: Definition = Definition {
    name: "INITCAP",
    doc: "Returns the text with each word's first letter in upper case and the others in lower case.",
    signatures: &["INITCAP(<CHARACTER>)"],
    examples: &[("INITCAP('heLLo wORLD-x')", "Hello World-X")],
    infer: same_type,
    invoke: |call, operands| map_case(call, operands, capitalize),
    ..Definition::DEFAULT
};

pub(super) static TRIM: Definition = Definition {
    name: "TRIM",
    aliases: &["BTRIM"],
    doc: "Takes blanks, or the characters of a second text, from both ends.",
    signatures: &["TRIM(<CHARACTER>)", "TRIM([BOTH | LEADING | TRAILING] <CHARACTER> FROM <CHARACTER>)"],
    examples: &[("TRIM('  a ')", "a"), ("TRIM(BOTH 'x' FROM 'xxaxx')", "a")],
    infer: trimmed,
    invoke: |call, operands| trim(call, operands, true, true),
    ..Definition::DEFAULT
};

pub(super) static LTRIM: Definition = Definition {
    name: "LTRIM",
    doc: "Takes blanks, or the characters of a second text, from the start.",
    signatures: &["LTRIM(<CHARACTER>)", "LTRIM(<CHARACTER>, <CHARACTER>)"],
    examples: &[("LTRIM('  a')", "a"), ("TRIM(LEADING 'xy' FROM 'xyxa')", "a")],
    infer: trimmed,
    invoke: |call, operands| trim(call, operands, true, false),
    ..Definition::DEFAULT
};

pub(super) static RTRIM: Definition = Definition {
    name: "RTRIM",
    doc: "Takes blanks, or the characters of a second text, from the end.",
    signatures: &["RTRIM(<CHARACTER>)", "RTRIM(<CHARACTER>, <CHARACTER>)"],
    examples: &[("RTRIM('a  ')", "a"), ("TRIM(TRAILING 'lo' FROM 'hello')", "he")],
    infer: trimmed,
    invoke: |call, operands| trim(call, operands, false, true),
    ..Definition::DEFAULT
};

// Flink differs: a text that grows (`ß` becomes `SS`) is not cut to the length of its type.
fn same_type(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let inferred = typed(arguments, &[Parameter::Text], TypeRoot::STRING)?;
    let root = inferred.arguments[0].root.clone();
    Some(inferred.returning(root))
}

fn trimmed(arguments: &[Argument<'_>]) -> Option<Inferred> {
    const PARAMETERS: [Parameter; 2] = [Parameter::Text; 2];
    let inferred = typed(arguments, PARAMETERS.get(..arguments.len().max(1))?, TypeRoot::STRING)?;
    let root = varchar_like(&inferred.arguments[0].root);
    Some(inferred.returning(root))
}

fn map_case(call: &Call<'_>, operands: &[Operand], write: fn(&str, &mut String)) -> Result<ArrayRef> {
    let texts = operands[0].texts()?;
    map_text(call, operands, |row, out| {
        write(texts.get(row), out);
        Ok(true)
    })
}

fn upper(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|byte| char::from(byte.to_ascii_uppercase())));
    } else {
        out.extend(text.chars().flat_map(char::to_uppercase));
    }
}

fn lower(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.extend(text.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
    } else {
        out.push_str(&text.to_lowercase());
    }
}

fn capitalize(text: &str, out: &mut String) {
    let mut is_inside = false;
    for character in text.chars() {
        if is_inside {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
        is_inside = character.is_alphanumeric();
    }
}

fn trim(call: &Call<'_>, operands: &[Operand], start: bool, end: bool) -> Result<ArrayRef> {
    let texts = operands[0].texts()?;
    let sets = operands.get(1).map(Operand::texts).transpose()?;
    map_text(call, operands, |row, out| {
        let set = sets.map_or(" ", |sets| sets.get(row));
        let mut text = texts.get(row);
        if start {
            text = text.trim_start_matches(|character| set.contains(character));
        }
        if end {
            text = text.trim_end_matches(|character| set.contains(character));
        }
        out.push_str(text);
        Ok(true)
    })
}
