//! `csv`: fields between delimiters, as Jackson reads and writes them for Flink.
//!
//! There is no header. A quote counts only at the start of a field, and a record may go over several lines within quotes.

mod decode;
mod encode;

use std::sync::Arc;

use super::scan::Dialect;
use super::{
    DecodingFormat, EncodingFormat, FormatContext, FormatFactory, Framing, RecordDecoder, RecordEncoder,
};
use crate::error::{Error, FlinkClass, Result};
use crate::options::{ConfigOption, OptionDef};
use crate::schema::{Column, DataType, TypeRoot};
use decode::CsvDecoder;
use encode::CsvEncoder;

const FIELD_DELIMITER: ConfigOption<String> = ConfigOption::with_default(
    "csv.field-delimiter",
    ",",
    "The character between two fields; '\\t' is a tab.",
);
const DISABLE_QUOTE_CHARACTER: ConfigOption<bool> = ConfigOption::with_default(
    "csv.disable-quote-character",
    "false",
    "Whether quotes are characters like any other.",
);
const QUOTE_CHARACTER: ConfigOption<String> = ConfigOption::optional(
    "csv.quote-character",
    "The character around fields that hold delimiters or line breaks; a double quote by default.",
);
const ALLOW_COMMENTS: ConfigOption<bool> = ConfigOption::with_default(
    "csv.allow-comments",
    "false",
    "Whether lines that start with '#' are skipped.",
);
const IGNORE_PARSE_ERRORS: ConfigOption<bool> = ConfigOption::with_default(
    "csv.ignore-parse-errors",
    "false",
    "Whether a field that does not parse is NULL and a broken row is dropped, where otherwise the job fails.",
);
const ARRAY_ELEMENT_DELIMITER: ConfigOption<String> = ConfigOption::with_default(
    "csv.array-element-delimiter",
    ";",
    "What stands between elements of arrays and nested rows.",
);
const ESCAPE_CHARACTER: ConfigOption<String> =
    ConfigOption::optional("csv.escape-character", "The character that makes the next one stand for itself.");
const NULL_LITERAL: ConfigOption<String> =
    ConfigOption::optional("csv.null-literal", "The text that means NULL.");
const WRITE_BIGDECIMAL: ConfigOption<bool> = ConfigOption::with_default(
    "csv.write-bigdecimal-in-scientific-notation",
    "true",
    "Whether tiny decimals are written with an exponent.",
);
const TRIM_SPACES: ConfigOption<bool> = ConfigOption::with_default(
    "csv.trim-spaces",
    "false",
    "Whether blanks around a field are no part of it.",
);
const IGNORE_TRAILING_UNMAPPABLE: ConfigOption<bool> = ConfigOption::with_default(
    "csv.ignore-trailing-unmappable",
    "false",
    "Whether fields behind the last column are ignored, where otherwise the row is wrong.",
);
const ALLOW_TRAILING_COMMA: ConfigOption<bool> = ConfigOption::with_default(
    "csv.allow-trailing-comma",
    "true",
    "Whether a delimiter may stand behind the field of the last column.",
);
const FAIL_ON_MISSING_COLUMNS: ConfigOption<bool> = ConfigOption::with_default(
    "csv.fail-on-missing-columns",
    "false",
    "Whether a row with too few fields fails the job even where parse errors are ignored.",
);
const EMPTY_STRING_AS_NULL: ConfigOption<bool> =
    ConfigOption::with_default("csv.empty-string-as-null", "false", "Whether an empty field is NULL.");

/// The format `csv`.
pub(crate) struct Csv;

/// How a table's files are written and read.
#[derive(Debug, Clone)]
struct CsvSettings {
    columns: Vec<Column>,
    dialect: Dialect,
    delimiter: u8,
    element_delimiter: Vec<u8>,
    null_literal: Option<Vec<u8>>,
    ignores_errors: bool,
    is_plain_decimal: bool,
    ignores_surplus: bool,
    allows_trailing_delimiter: bool,
    requires_all: bool,
    is_empty_null: bool,
    zone: chrono_tz::Tz,
}

impl FormatFactory for Csv {
    fn identifier(&self) -> &'static str {
        "csv"
    }

    fn doc(&self) -> &'static str {
        "Fields between delimiters, one record a line."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[
            &FIELD_DELIMITER,
            &DISABLE_QUOTE_CHARACTER,
            &QUOTE_CHARACTER,
            &ALLOW_COMMENTS,
            &IGNORE_PARSE_ERRORS,
            &ARRAY_ELEMENT_DELIMITER,
            &ESCAPE_CHARACTER,
            &NULL_LITERAL,
            &WRITE_BIGDECIMAL,
            &TRIM_SPACES,
            &IGNORE_TRAILING_UNMAPPABLE,
            &ALLOW_TRAILING_COMMA,
            &FAIL_ON_MISSING_COLUMNS,
            &EMPTY_STRING_AS_NULL,
        ]
    }

    fn decoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn DecodingFormat>> {
        Ok(Box::new(CsvFormat(Arc::new(CsvSettings::new(ctx)?))))
    }

    fn encoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn EncodingFormat>> {
        Ok(Box::new(CsvFormat(Arc::new(CsvSettings::new(ctx)?))))
    }
}

impl CsvSettings {
    fn new(ctx: &FormatContext<'_>) -> Result<CsvSettings> {
        for column in ctx.columns {
            check_type(&column.name, &column.data_type)?;
        }
        let delimiter = character(&FIELD_DELIMITER, &unescape(&ctx.get(&FIELD_DELIMITER)?))?;
        let quote =
            ctx.get_optional(&QUOTE_CHARACTER)?.map(|text| character(&QUOTE_CHARACTER, &text)).transpose()?;
        let is_unquoted = ctx.get(&DISABLE_QUOTE_CHARACTER)?;
        if is_unquoted && quote.is_some() {
            return Err(Error::validation(
                "Format cannot define a quote character and disabled quote character at the same time.",
            ));
        }
        let escape = ctx
            .get_optional(&ESCAPE_CHARACTER)?
            .map(|text| character(&ESCAPE_CHARACTER, &text))
            .transpose()?;
        Ok(CsvSettings {
            columns: ctx.columns.to_vec(),
            dialect: Dialect {
                delimiter: Some(delimiter),
                quote: (!is_unquoted).then_some(quote.unwrap_or(b'"')),
                escape,
                has_comments: ctx.get(&ALLOW_COMMENTS)?,
                trims: ctx.get(&TRIM_SPACES)?,
            },
            delimiter,
            element_delimiter: unescape(&ctx.get(&ARRAY_ELEMENT_DELIMITER)?).into_bytes(),
            null_literal: ctx.get_optional(&NULL_LITERAL)?.map(String::into_bytes),
            ignores_errors: ctx.get(&IGNORE_PARSE_ERRORS)?,
            is_plain_decimal: !ctx.get(&WRITE_BIGDECIMAL)?,
            ignores_surplus: ctx.get(&IGNORE_TRAILING_UNMAPPABLE)?,
            allows_trailing_delimiter: ctx.get(&ALLOW_TRAILING_COMMA)?,
            requires_all: ctx.get(&FAIL_ON_MISSING_COLUMNS)?,
            is_empty_null: ctx.get(&EMPTY_STRING_AS_NULL)?,
            zone: ctx.zone,
        })
    }
}

/// The format, set up for a table.
#[derive(Debug)]
struct CsvFormat(Arc<CsvSettings>);

impl DecodingFormat for CsvFormat {
    fn framing(&self) -> Framing {
        Framing::Lines(self.0.dialect)
    }

    fn decoder(&self, projection: &[usize], _metadata: &[&str]) -> Box<dyn RecordDecoder> {
        Box::new(CsvDecoder::new(Arc::clone(&self.0), projection))
    }
}

impl EncodingFormat for CsvFormat {
    fn file_extension(&self) -> &'static str {
        "csv"
    }

    fn encoder(&self) -> Box<dyn RecordEncoder> {
        Box::new(CsvEncoder::new(Arc::clone(&self.0)))
    }
}

/// Fails for types that a field cannot hold.
fn check_type(column: &str, data_type: &DataType) -> Result<()> {
    let nested: Vec<&DataType> = match &data_type.root {
        TypeRoot::Map(..) | TypeRoot::Multiset(_) => {
            return Err(Error::unsupported(format!("Unsupported type: {data_type}"))
                .hint(format!("Column '{column}' cannot be stored as CSV; the format 'json' takes maps.")));
        }
        TypeRoot::Array(element) => vec![element],
        TypeRoot::Row(fields) => fields.iter().map(|field| &field.data_type).collect(),
        _ => Vec::new(),
    };
    let is_composite = |root: &TypeRoot| {
        matches!(root, TypeRoot::Array(_) | TypeRoot::Row(_) | TypeRoot::Map(..) | TypeRoot::Multiset(_))
    };
    match nested.iter().find(|data_type| is_composite(&data_type.root)) {
        Some(inner) => Err(Error::validation(format!(
            "Only simple types are supported in the second level nesting of fields '{column}' but was: {inner}"
        ))
        .class(FlinkClass::ILLEGAL_ARGUMENT)),
        None => Ok(()),
    }
}

/// Returns the one ASCII character that an option must be.
fn character(option: &ConfigOption<String>, text: &str) -> Result<u8> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        // Limit: one byte, which is what the scanner compares with.
        (Some(character), None) if !character.is_ascii() => Err(Error::unsupported(format!(
            "option '{}' is '{text}', which is not an ASCII character",
            option.key()
        ))),
        (Some(b @ ('\n' | '\r')), None) => {
            Err(Error::validation(format!("option '{}' cannot be the line break {b:?}", option.key())))
        }
        (Some(character), None) => Ok(character as u8),
        _ => Err(Error::validation(format!(
            "'{}' must be a string with single character, but was: {text}",
            option.key()
        ))),
    }
}

/// Resolves Java's escapes: `\t`, `\\`, `\u0001` and the like.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let code = tail.strip_prefix('u').and_then(|hex| hex.get(..4));
        let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        if let Some(character) = code {
            plain.push(character);
            rest = &tail[5..];
            continue;
        }
        let mut characters = tail.chars();
        match characters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('b') => plain.push('\u{8}'),
            Some('f') => plain.push('\u{c}'),
            Some(other) => plain.push(other),
            None => plain.push('\\'),
        }
        rest = characters.as_str();
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing;
    use crate::schema::Field;

    fn settings_error(entries: &[(&str, &str)]) -> String {
        let columns = [Column::physical("a", TypeRoot::Int.nullable())];
        testing::decoding(&Csv, &columns, entries).unwrap_err().message().to_owned()
    }

    #[test]
    fn option_values_are_checked_in_flinks_words() {
        assert_eq!(
            settings_error(&[("csv.field-delimiter", "ab")]),
            "'csv.field-delimiter' must be a string with single character, but was: ab"
        );
        assert_eq!(
            settings_error(&[("csv.disable-quote-character", "true"), ("csv.quote-character", "'")]),
            "Format cannot define a quote character and disabled quote character at the same time."
        );
        assert!(settings_error(&[("csv.field-delimiter", "¦")]).contains("not an ASCII character"));
    }

    #[test]
    fn java_escapes_are_resolved() {
        assert_eq!(unescape("\\t"), "\t");
        assert_eq!(unescape("a\\u0001\\\\b\\"), "a\u{1}\\b\\");
    }

    #[test]
    fn types_without_a_text_are_refused() {
        let map = TypeRoot::Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::Int.nullable()))
            .nullable();
        assert_eq!(check_type("m", &map).unwrap_err().message(), "Unsupported type: MAP<STRING, INT>");
        let deep = TypeRoot::Row(vec![Field::new(
            "x",
            TypeRoot::Array(Box::new(TypeRoot::Int.nullable())).nullable(),
        )]);
        assert!(check_type("r", &deep.nullable()).unwrap_err().message().starts_with("Only simple types"));
    }
}
