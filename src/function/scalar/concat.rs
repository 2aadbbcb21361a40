//! Texts put together, filled up, repeated, turned round and with parts replaced.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Int32Type;

use super::super::definition::Definition;
use super::super::operand::{Operand, TextWriter, Texts, map_text};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Inferred};
use crate::error::Result;
use crate::schema::{LENGTH_MAX, TypeRoot};

pub(super) static CONCAT_OPERATOR: Definition = Definition {
    name: "||",
    doc: "Puts two texts together; NULL if one of them is NULL.",
    signatures: &["<STRING> || <STRING>", "<EQUIVALENT_TYPE> || <EQUIVALENT_TYPE>"],
    examples: &[("'a' || 'b'", "ab")],
    infer: |arguments| {
        let inferred = typed(arguments, &[Parameter::Text, Parameter::Text], TypeRoot::STRING)?;
        let root = joined_type(&inferred.arguments[0].root, &inferred.arguments[1].root);
        Some(inferred.returning(root))
    },
    invoke: concat,
    ..Definition::DEFAULT
};

pub(super) static CONCAT: Definition = Definition {
    name: "CONCAT",
    doc: "Puts texts together; NULL if one of them is NULL.",
    signatures: &["CONCAT(<CHARACTER>)"],
    examples: &[("CONCAT('a', 'b', 'c')", "abc"), ("CONCAT('a', CAST(NULL AS STRING))", "<NULL>")],
    infer: |arguments| all_texts(arguments, 1),
    invoke: concat,
    ..Definition::DEFAULT
};

pub(super) static CONCAT_WS: Definition = Definition {
    name: "CONCAT_WS",
    doc: "Puts texts together with a separator between them; NULLs are left out, but a NULL separator makes NULL.",
    signatures: &["CONCAT_WS(<CHARACTER>, <CHARACTER>)"],
    examples: &[("CONCAT_WS('-', 'a', CAST(NULL AS STRING), 'b')", "a-b")],
    infer: |arguments| all_texts(arguments, 1),
    invoke: concat_ws,
    ..Definition::DEFAULT
};

pub(super) static REPLACE: Definition = Definition {
    name: "REPLACE",
    doc: "Replaces every occurrence of one text by another.",
    signatures: &["REPLACE(<CHARACTER>, <CHARACTER>, <CHARACTER>)"],
    examples: &[("REPLACE('hello', 'l', 'LL')", "heLLLLo")],
    infer: |arguments| typed(arguments, &[Parameter::Text; 3], TypeRoot::STRING),
    invoke: |call, operands| {
        let (texts, searches, replacements) =
            (operands[0].texts()?, operands[1].texts()?, operands[2].texts()?);
        map_text(call, operands, |row, out| {
            out.push_str(&texts.get(row).replace(searches.get(row), replacements.get(row)));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static TRANSLATE: Definition = Definition {
    name: "TRANSLATE",
    doc: "Replaces each character of a second text by the one at its place in a third, or by nothing where that is shorter.",
    signatures: &["TRANSLATE(<CHARACTER>, <CHARACTER>, <CHARACTER>)"],
    examples: &[("TRANSLATE('hello', 'lo', 'xy')", "hexxy"), ("TRANSLATE('abc', 'ab', 'x')", "xc")],
    infer: |arguments| typed(arguments, &[Parameter::Text; 3], TypeRoot::STRING),
    invoke: |call, operands| {
        let (texts, from, to) = (operands[0].texts()?, operands[1].texts()?, operands[2].texts()?);
        map_text(call, operands, |row, out| {
            for character in texts.get(row).chars() {
                match from.get(row).chars().position(|known| known == character) {
                    None => out.push(character),
                    Some(place) => out.extend(to.get(row).chars().nth(place)),
                }
            }
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static LPAD: Definition = Definition {
    name: "LPAD",
    doc: "Fills a text up at the start to a length, or cuts it to the length.",
    signatures: &["LPAD(<CHARACTER>, <INTEGER>, <CHARACTER>)"],
    examples: &[("LPAD('hello', 7, '*-')", "*-hello"), ("LPAD('hi', 1, '?')", "h")],
    infer: |arguments| {
        typed(arguments, &[Parameter::Text, Parameter::Int, Parameter::Text], TypeRoot::STRING)
    },
    invoke: |call, operands| pad(call, operands, true),
    ..Definition::DEFAULT
};

pub(super) static RPAD: Definition = Definition {
    name: "RPAD",
    doc: "Fills a text up at the end to a length, or cuts it to the length.",
    signatures: &["RPAD(<CHARACTER>, <INTEGER>, <CHARACTER>)"],
    examples: &[("RPAD('hello', 7, '*-')", "hello*-"), ("RPAD('hi', 1, '?')", "h")],
    infer: |arguments| {
        typed(arguments, &[Parameter::Text, Parameter::Int, Parameter::Text], TypeRoot::STRING)
    },
    invoke: |call, operands| pad(call, operands, false),
    ..Definition::DEFAULT
};

pub(super) static REPEAT: Definition = Definition {
    name: "REPEAT",
    doc: "Repeats a text.",
    signatures: &["REPEAT(<CHARACTER>, <INTEGER>)"],
    examples: &[("REPEAT('ab', 2)", "abab"), ("REPEAT('ab', 0)", "")],
    infer: |arguments| typed(arguments, &[Parameter::Text, Parameter::Int], TypeRoot::STRING),
    invoke: |call, operands| {
        let (texts, counts) = (operands[0].texts()?, operands[1].values::<Int32Type>()?);
        map_text(call, operands, |row, out| {
            let (text, count) = (texts.get(row), counts.get(row).max(0) as usize);
            check_size(out.len(), text.len().saturating_mul(count))?;
            out.extend(std::iter::repeat_n(text, count));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static REVERSE: Definition = Definition {
    name: "REVERSE",
    doc: "Turns a text round.",
    signatures: &["REVERSE(<CHARACTER>)"],
    examples: &[("REVERSE('abc')", "cba")],
    infer: |arguments| typed(arguments, &[Parameter::Text], TypeRoot::STRING),
    invoke: |call, operands| {
        let texts = operands[0].texts()?;
        map_text(call, operands, |row, out| {
            out.extend(texts.get(row).chars().rev());
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static ELT: Definition = Definition {
    name: "ELT",
    doc: "Returns the text at an index, which counts from 1; NULL where there is none.",
    signatures: &["ELT(<INTEGER>, <CHARACTER>, ...)"],
    examples: &[("ELT(2, 'a', 'b')", "b"), ("ELT(3, 'a', 'b')", "<NULL>")],
    infer: |arguments| {
        let (index, texts) = arguments.split_first()?;
        let index = Parameter::Int.accept(index.data_type)?;
        let mut inferred = all_texts(texts, 1)?;
        inferred.arguments.insert(0, index);
        Some(inferred.or_null())
    },
    invoke: |call, operands| {
        let indices = operands[0].values::<Int32Type>()?;
        map_text(call, &operands[..1], |row, out| {
            let chosen = usize::try_from(indices.get(row)).ok().filter(|index| *index > 0);
            let Some(operand) = chosen.and_then(|index| operands.get(index)) else { return Ok(false) };
            if operand.is_null(row) {
                return Ok(false);
            }
            out.push_str(operand.texts()?.get(row));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

fn all_texts(arguments: &[Argument<'_>], least: usize) -> Option<Inferred> {
    if arguments.len() < least {
        return None;
    }
    typed(arguments, &vec![Parameter::Text; arguments.len()], TypeRoot::STRING)
}

/// Two CHARs make a CHAR; the lengths add up.
fn joined_type(left: &TypeRoot, right: &TypeRoot) -> TypeRoot {
    let length = |root: &TypeRoot| match root {
        TypeRoot::Char(length) | TypeRoot::Varchar(length) => *length,
        _ => LENGTH_MAX,
    };
    let sum = length(left).saturating_add(length(right)).min(LENGTH_MAX);
    match (left, right) {
        (TypeRoot::Char(_), TypeRoot::Char(_)) => TypeRoot::Char(sum),
        _ => TypeRoot::Varchar(sum),
    }
}

fn concat(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let texts = operands.iter().map(Operand::texts).collect::<Result<Vec<_>>>()?;
    map_text(call, operands, |row, out| {
        out.extend(texts.iter().map(|texts| texts.get(row)));
        Ok(true)
    })
}

fn concat_ws(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let texts = operands.iter().map(Operand::texts).collect::<Result<Vec<_>>>()?;
    let mut writer = TextWriter::with_capacity(call.row_count, texts.iter().map(Texts::byte_count).sum());
    for row in 0..call.row_count {
        let is_valid = !operands[0].is_null(row);
        let mut is_first = true;
        for (operand, texts) in operands.iter().zip(&texts).skip(1) {
            if !is_valid || operand.array().is_null(operand.index(row)) {
                continue;
            }
            if !is_first {
                writer.buffer().push_str(texts_of(&operands[0], row)?);
            }
            writer.buffer().push_str(texts.get(row));
            is_first = false;
        }
        writer.finish_row(is_valid)?;
    }
    writer.finish()
}

fn texts_of(operand: &Operand, row: usize) -> Result<&str> {
    Ok(operand.texts()?.get(row))
}

fn pad(call: &Call<'_>, operands: &[Operand], at_start: bool) -> Result<ArrayRef> {
    let (texts, lengths, pads) =
        (operands[0].texts()?, operands[1].values::<Int32Type>()?, operands[2].texts()?);
    map_text(call, operands, |row, out| {
        let (text, pad) = (texts.get(row), pads.get(row));
        let Ok(length) = usize::try_from(lengths.get(row)) else { return Ok(false) };
        // Flink wants something to fill up with even where nothing is missing.
        if pad.is_empty() {
            return Ok(false);
        }
        let count = text.chars().count();
        if count >= length {
            out.extend(text.chars().take(length));
            return Ok(true);
        }
        check_size(out.len(), (length - count).saturating_mul(4))?;
        let fill = pad.chars().cycle().take(length - count);
        if at_start {
            out.extend(fill);
            out.push_str(text);
        } else {
            out.push_str(text);
            out.extend(fill);
        }
        Ok(true)
    })
}

/// Refuses a row that could not be kept, before memory is asked for.
fn check_size(so_far: usize, added: usize) -> Result<()> {
    if so_far.saturating_add(added) > i32::MAX as usize {
        return Err(crate::error::Error::data("a text of a batch is longer than 2 GB"));
    }
    Ok(())
}
