//! LIKE. There is no escape character unless ESCAPE names one; `_` is one code point.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use memchr::memmem::Finder;

use super::super::call::{Operator, operator};
use super::super::operand::{Operand, map_booleans};
use super::super::typing::{calcite_name, type_list_error};
use super::super::{Call, EvalContext};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

static LIKE: Operator = Operator { name: "LIKE", invoke: |call, operands| matches(call, operands, false) };
static NOT_LIKE: Operator =
    Operator { name: "NOT LIKE", invoke: |call, operands| matches(call, operands, true) };

/// Builds `text [NOT] LIKE pattern [ESCAPE escape]`.
///
/// # Errors
/// One side is no text.
pub fn like(
    text: (Expr, &DataType),
    pattern: (Expr, &DataType),
    escape: Option<char>,
    negated: bool,
    context: &Arc<EvalContext>,
) -> Result<(Expr, DataType)> {
    let is_text = |data_type: &DataType| data_type.root.is_character() || data_type.root == TypeRoot::Null;
    if !is_text(text.1) || !is_text(pattern.1) {
        let call = format!("<{}> LIKE <{}>", calcite_name(text.1), calcite_name(pattern.1));
        return Err(type_list_error(
            "LIKE",
            &call,
            &["<STRING> LIKE <STRING>", "<STRING> LIKE <STRING> ESCAPE <STRING>"],
        ));
    }
    let as_text = |(expr, data_type): (Expr, &DataType)| {
        let to =
            if data_type.root == TypeRoot::Null { TypeRoot::STRING.nullable() } else { data_type.clone() };
        (super::super::cast::cast_expr(expr, data_type, &to, false, context), to)
    };
    let ((text, text_type), (pattern, pattern_type)) = (as_text(text), as_text(pattern));
    let result = DataType { root: TypeRoot::Boolean, nullable: text_type.nullable || pattern_type.nullable };
    let mut arguments = vec![text, pattern];
    let mut types = vec![text_type, pattern_type];
    if let Some(escape) = escape {
        arguments.push(Expr::Literal(ScalarValue::Utf8(Some(escape.to_string())), None));
        types.push(TypeRoot::Char(1).not_null());
    }
    let body = if negated { &NOT_LIKE } else { &LIKE };
    Ok((operator(body, arguments, types, result.clone(), context), result))
}

fn matches(call: &Call<'_>, operands: &[Operand], negated: bool) -> Result<ArrayRef> {
    let escape = operands.get(2).and_then(Operand::constant_text).and_then(|text| text.chars().next());
    let texts = operands[0].texts()?;
    if let Some(pattern) = operands[1].constant_text() {
        let pattern = LikePattern::compile(pattern, escape)?;
        return map_booleans(call, operands, |row| Ok(pattern.matches(texts.get(row)) != negated));
    }
    let patterns = operands[1].texts()?;
    map_booleans(call, operands, |row| {
        Ok(LikePattern::compile(patterns.get(row), escape)?.matches(texts.get(row)) != negated)
    })
}

/// A compiled pattern.
enum LikePattern {
    Equal(String),
    Start(String),
    End(String),
    Contain(Box<Finder<'static>>),
    /// What stands between the `%`; the first part is anchored at the start and the last at the end.
    Parts(Vec<Vec<Token>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Character(char),
    AnyCharacter,
}

impl LikePattern {
    fn compile(pattern: &str, escape: Option<char>) -> Result<LikePattern> {
        let mut parts: Vec<Vec<Token>> = vec![Vec::new()];
        let mut characters = pattern.chars().enumerate();
        while let Some((index, character)) = characters.next() {
            let token = match character {
                _ if Some(character) == escape => match characters.next() {
                    Some((_, next)) if next == '%' || next == '_' || Some(next) == escape => {
                        Token::Character(next)
                    }
                    _ => {
                        return Err(Error::data(format!("Invalid escape sequence '{pattern}', {index}"))
                            .class(FlinkClass::RUNTIME));
                    }
                },
                '%' => {
                    parts.push(Vec::new());
                    continue;
                }
                '_' => Token::AnyCharacter,
                _ => Token::Character(character),
            };
            if let Some(part) = parts.last_mut() {
                part.push(token);
            }
        }
        // `a%%b` is `a%b`: the part between says nothing.
        let last = parts.len() - 1;
        let mut index = 0;
        parts.retain(|part| {
            index += 1;
            index == 1 || index == last + 1 || !part.is_empty()
        });
        Ok(LikePattern::simplified(parts))
    }

    fn simplified(parts: Vec<Vec<Token>>) -> LikePattern {
        let plain = |part: &[Token]| {
            part.iter()
                .map(|token| match token {
                    Token::Character(character) => Some(*character),
                    Token::AnyCharacter => None,
                })
                .collect::<Option<String>>()
        };
        let texts: Option<Vec<String>> = parts.iter().map(|part| plain(part)).collect();
        match texts.as_deref() {
            Some([text]) => LikePattern::Equal(text.clone()),
            Some([start, end]) if end.is_empty() => LikePattern::Start(start.clone()),
            Some([start, end]) if start.is_empty() => LikePattern::End(end.clone()),
            Some([start, middle, end]) if start.is_empty() && end.is_empty() => {
                LikePattern::Contain(Box::new(Finder::new(middle.as_bytes()).into_owned()))
            }
            _ => LikePattern::Parts(parts),
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            LikePattern::Equal(whole) => text == whole,
            LikePattern::Start(start) => text.starts_with(start.as_str()),
            LikePattern::End(end) => text.ends_with(end.as_str()),
            LikePattern::Contain(finder) => finder.find(text.as_bytes()).is_some(),
            LikePattern::Parts(parts) => matches_parts(parts, text),
        }
    }
}

/// Matches the first part at the start, the last at the end, and those between as early as possible.
fn matches_parts(parts: &[Vec<Token>], text: &str) -> bool {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return text.is_empty() };
    let Some(mut rest) = match_start(first, text) else { return false };
    if parts.len() == 1 {
        return rest.is_empty();
    }
    for part in &parts[1..parts.len() - 1] {
        let Some(after) =
            rest.char_indices().map(|(index, _)| index).find_map(|index| match_start(part, &rest[index..]))
        else {
            return false;
        };
        rest = after;
    }
    let length = rest.chars().count();
    let Some(skipped) = length.checked_sub(last.len()) else { return false };
    let start = rest.char_indices().nth(skipped).map_or(rest.len(), |(index, _)| index);
    match_start(last, &rest[start..]).is_some_and(str::is_empty)
}

/// Matches tokens at the start of a text and returns what is behind them.
fn match_start<'a>(tokens: &[Token], text: &'a str) -> Option<&'a str> {
    let mut characters = text.chars();
    for token in tokens {
        let character = characters.next()?;
        if *token != Token::AnyCharacter && *token != Token::Character(character) {
            return None;
        }
    }
    Some(characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str, escape: Option<char>) -> bool {
        LikePattern::compile(pattern, escape).unwrap().matches(text)
    }

    #[test]
    fn there_is_no_escape_unless_one_is_named() {
        assert!(!like("a%b", "a\\%b", None));
        assert!(like("a%b", "a\\%b", Some('\\')));
        assert!(like("a_b", "a!_b", Some('!')));
        assert!(!like("axb", "a!_b", Some('!')));
        assert!(LikePattern::compile("a!b", Some('!')).is_err());
    }

    #[test]
    fn wildcards_match_code_points_and_any_text() {
        assert!(like("axb", "a_b", None));
        assert!(like("日本語", "日_語", None));
        assert!(like("abc", "%", None));
        assert!(like("", "%", None));
        assert!(!like("", "_", None));
        assert!(like("xabyabz", "%ab%abz", None));
        assert!(like("aXbYc", "a%b%c", None));
        assert!(!like("aXbY", "a%b%c", None));
        assert!(like("aa", "a%a", None));
        assert!(!like("a", "a%a", None));
        assert!(like("a\nb", "a%b", None));
        assert!(like("ab", "a%_", None));
        assert!(!like("ABC", "abc", None));
    }
}
