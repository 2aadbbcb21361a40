//! What a text is: its length, where another one stands in it, and questions about its characters.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::Int32Type;

use super::super::definition::Definition;
use super::super::operand::{Operand, map_booleans, map_text, try_map_values};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::Result;
use crate::schema::TypeRoot;

pub(super) static CHAR_LENGTH: Definition = Definition {
    name: "CHAR_LENGTH",
    aliases: &["CHARACTER_LENGTH"],
    doc: "Returns how many characters a text has.",
    signatures: &["CHAR_LENGTH(<CHARACTER>)"],
    examples: &[("CHAR_LENGTH('héllo')", "5")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::Int),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        try_map_values::<Int32Type>(call, operands, |row| Ok(Some(texts.get(row).chars().count() as i32)))
    },
    ..Definition::DEFAULT
};

pub(super) static ASCII: Definition = Definition {
    name: "ASCII",
    doc: "Returns the first byte of a text, 0 if it is empty.",
    signatures: &["ASCII(<CHARACTER>)"],
    examples: &[("ASCII('A')", "65"), ("ASCII('')", "0")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::Int),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        try_map_values::<Int32Type>(call, operands, |row| {
            // Java's bytes have a sign.
            Ok(Some(texts.get(row).as_bytes().first().map_or(0, |byte| i32::from(*byte as i8))))
        })
    },
    ..Definition::DEFAULT
};

pub(super) static POSITION: Definition = Definition {
    name: "POSITION",
    doc: "Returns where a text first stands in another, counted from 1, or 0.",
    signatures: &["POSITION(<CHARACTER> IN <CHARACTER>)"],
    examples: &[("POSITION('l' IN 'hello')", "3"), ("POSITION('' IN 'abc')", "1")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::Int),
    invoke: |call, operands| find(call, operands, 1, 0),
    ..Definition::DEFAULT
};

pub(super) static LOCATE: Definition = Definition {
    name: "LOCATE",
    doc: "Returns where a text stands in another from a position on, counted from 1, or 0.",
    signatures: &["LOCATE(<CHARACTER>, <CHARACTER>)", "LOCATE(<CHARACTER>, <CHARACTER>, <INTEGER>)"],
    examples: &[("LOCATE('b', 'abcb', 3)", "4"), ("LOCATE('l', '')", "0")],
    infer: |arguments| {
        const PARAMETERS: [Parameter; 3] = [Parameter::Text, Parameter::Text, Parameter::Int];
        typed(arguments, PARAMETERS.get(..arguments.len().max(2))?, TypeRoot::Int)
    },
    invoke: |call, operands| find(call, operands, 1, 0),
    ..Definition::DEFAULT
};

pub(super) static INSTR: Definition = Definition {
    name: "INSTR",
    doc: "Returns where the second text first stands in the first, counted from 1, or 0.",
    signatures: &["INSTR(<CHARACTER>, <CHARACTER>)"],
    examples: &[("INSTR('abcb', 'b')", "2")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::Int),
    invoke: |call, operands| find(call, operands, 0, 1),
    ..Definition::DEFAULT
};

pub(super) static STARTSWITH: Definition = Definition {
    name: "STARTSWITH",
    doc: "Returns whether a text starts with another.",
    signatures: &["STARTSWITH(<CHARACTER>, <CHARACTER>)"],
    examples: &[("STARTSWITH('hello', 'he')", "TRUE")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::Boolean),
    invoke: |call, operands| {
        let (texts, parts) = (operands[0].texts()?, operands[1].texts()?);
        map_booleans(call, operands, |row| Ok(texts.get(row).starts_with(parts.get(row))))
    },
    ..Definition::DEFAULT
};

pub(super) static ENDSWITH: Definition = Definition {
    name: "ENDSWITH",
    doc: "Returns whether a text ends with another.",
    signatures: &["ENDSWITH(<CHARACTER>, <CHARACTER>)"],
    examples: &[("ENDSWITH('hello', 'lo')", "TRUE")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::Boolean),
    invoke: |call, operands| {
        let (texts, parts) = (operands[0].texts()?, operands[1].texts()?);
        map_booleans(call, operands, |row| Ok(texts.get(row).ends_with(parts.get(row))))
    },
    ..Definition::DEFAULT
};

pub(super) static IS_ALPHA: Definition = Definition {
    name: "IS_ALPHA",
    doc: "Returns whether a text has letters only and at least one; FALSE for NULL.",
    signatures: &["IS_ALPHA(<CHARACTER>)"],
    examples: &[("IS_ALPHA('hello')", "TRUE"), ("IS_ALPHA(CAST(NULL AS STRING))", "FALSE")],
    infer: question,
    invoke: |call, operands| {
        ask(call, operands, |text| !text.is_empty() && text.chars().all(char::is_alphabetic))
    },
    ..Definition::DEFAULT
};

pub(super) static IS_DIGIT: Definition = Definition {
    name: "IS_DIGIT",
    doc: "Returns whether a text has digits only and at least one; FALSE for NULL.",
    signatures: &["IS_DIGIT(<CHARACTER>)"],
    examples: &[("IS_DIGIT('123')", "TRUE"), ("IS_DIGIT('1.5')", "FALSE")],
    infer: question,
    invoke: |call, operands| {
        ask(call, operands, |text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    },
    ..Definition::DEFAULT
};

pub(super) static IS_DECIMAL: Definition = Definition {
    name: "IS_DECIMAL",
    doc: "Returns whether a text is a number; FALSE for NULL.",
    signatures: &["IS_DECIMAL(<CHARACTER>)"],
    examples: &[("IS_DECIMAL('-1.5')", "TRUE"), ("IS_DECIMAL('x')", "FALSE")],
    infer: question,
    invoke: |call, operands| {
        ask(call, operands, |text| {
            text.parse::<f64>().is_ok() && text.bytes().any(|byte| byte.is_ascii_digit())
        })
    },
    ..Definition::DEFAULT
};

pub(super) static CHR: Definition = Definition {
    name: "CHR",
    doc: "Returns the character with a code, of which the lowest byte counts; an empty text for a negative one.",
    signatures: &["CHR(<INTEGER>)"],
    examples: &[("CHR(97)", "a"), ("CHR(353)", "a")],
    infer: |arguments| typed(arguments, &[Parameter::BigInt], TypeRoot::STRING).map(Inferred::or_null),
    invoke: |call, operands| {
        let codes = operands[0].values::<arrow::datatypes::Int64Type>()?;
        map_text(call, operands, |row, out| {
            let code = codes.get(row);
            if code >= 0 {
                out.push(char::from((code & 0xff) as u8));
            }
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

fn question(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let mut inferred = typed(arguments, &[Parameter::Text], TypeRoot::Boolean)?;
    inferred.result.nullable = false;
    Some(inferred)
}

fn ask(call: &Call<'_>, operands: &[Operand], holds: fn(&str) -> bool) -> Result<ArrayRef> {
    let texts = operands[0].texts()?;
    let answers = (0..call.row_count).map(|row| Some(!operands[0].is_null(row) && holds(texts.get(row))));
    Ok(Arc::new(answers.collect::<BooleanArray>()))
}

/// Finds one operand's text in the other's, from an optional start in the third operand on.
fn find(call: &Call<'_>, operands: &[Operand], text_index: usize, part_index: usize) -> Result<ArrayRef> {
    let (texts, parts) = (operands[text_index].texts()?, operands[part_index].texts()?);
    let starts = operands.get(2).map(Operand::values::<Int32Type>).transpose()?;
    try_map_values::<Int32Type>(call, operands, |row| {
        let (text, part) = (texts.get(row), parts.get(row));
        let start = starts.map_or(1, |starts| starts.get(row));
        let Some(skipped) = usize::try_from(start).ok().and_then(|start| start.checked_sub(1)) else {
            return Ok(Some(0));
        };
        let Some((offset, _)) =
            text.char_indices().map(|(offset, _)| (offset, ())).chain([(text.len(), ())]).nth(skipped)
        else {
            return Ok(Some(0));
        };
        let found = text[offset..].find(part).map(|found| text[..offset + found].chars().count() as i32 + 1);
        Ok(Some(found.unwrap_or(0)))
    })
}
