//! `json`: one object a line, or an array of objects, which is several rows.
//!
//! Nothing is ever parsed into a document: values go from the bytes into the columns, by Jackson's rules of what converts.

mod decode;
mod encode;
mod fault;
mod parser;
mod row;
mod shape;
mod value;

use std::sync::Arc;

use super::scan::Dialect;
use super::text::TimestampStandard;
use super::{
    DecodingFormat, EncodingFormat, FormatContext, FormatFactory, Framing, RecordDecoder, RecordEncoder,
};
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef, OptionValue};
use crate::schema::{Column, DataType, TypeRoot};
use decode::JsonDecoder;
use encode::JsonEncoder;
pub(super) use encode::ObjectWriter;
pub(super) use fault::{Fault, RowFault, shown};
pub(super) use parser::{Cursor, unescape};
pub(super) use row::RowReader;
pub(super) use shape::{Piece, ShapeGuess};
pub(super) use value::ValueReader;

const FAIL_ON_MISSING_FIELD: ConfigOption<bool> = ConfigOption::with_default(
    "json.fail-on-missing-field",
    "false",
    "Whether a missing field fails the job, where otherwise it is NULL.",
);
const IGNORE_PARSE_ERRORS: ConfigOption<bool> = ConfigOption::with_default(
    "json.ignore-parse-errors",
    "false",
    "Whether a value that does not parse is NULL and a broken row is dropped, where otherwise the job fails.",
);
const TIMESTAMP_FORMAT: ConfigOption<TimestampStandard> = ConfigOption::with_default(
    "json.timestamp-format.standard",
    "SQL",
    "How timestamps are written: SQL is '2020-01-01 10:00:00', ISO-8601 is '2020-01-01T10:00:00'.",
);
const MAP_NULL_KEY_MODE: ConfigOption<MapNullKeyMode> =
    ConfigOption::with_default("json.map-null-key.mode", "FAIL", "What to write for a NULL key of a map.");
const MAP_NULL_KEY_LITERAL: ConfigOption<String> =
    ConfigOption::with_default("json.map-null-key.literal", "null", "The key that mode LITERAL writes.");
const DECIMAL_AS_PLAIN_NUMBER: ConfigOption<bool> = ConfigOption::with_default(
    "json.encode.decimal-as-plain-number",
    "false",
    "Whether tiny decimals are written without an exponent.",
);
const IGNORE_NULL_FIELDS: ConfigOption<bool> = ConfigOption::with_default(
    "json.encode.ignore-null-fields",
    "false",
    "Whether fields that are NULL are left out.",
);
const JSON_PARSER_ENABLED: ConfigOption<bool> = ConfigOption::with_default(
    "json.decode.json-parser.enabled",
    "true",
    "Which of Flink's two parsers is meant; ours is one and the same.",
);

/// What to do with NULL keys of maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MapNullKeyMode {
    /// Fail.
    Fail,
    /// Leave the entry out.
    Drop,
    /// Write another key.
    Literal,
}

impl OptionValue for MapNullKeyMode {
    fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_uppercase().as_str() {
            "FAIL" => Ok(MapNullKeyMode::Fail),
            "DROP" => Ok(MapNullKeyMode::Drop),
            "LITERAL" => Ok(MapNullKeyMode::Literal),
            _ => Err(Error::validation(format!(
                "Unsupported value '{text}' for option map-null-key.mode. Supported values are [LITERAL, FAIL, DROP]."
            ))),
        }
    }

    fn describe() -> String {
        "FAIL, DROP or LITERAL".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["FAIL", "DROP", "LITERAL"]
    }
}

/// The format `json`.
pub(crate) struct Json;

/// How a table's records are read and written; formats that wrap JSON rows in an envelope share them.
#[derive(Debug, Clone)]
pub(super) struct JsonSettings {
    /// The option that lets broken records be skipped, as the table's user writes it.
    skipping_key: String,
    columns: Vec<Column>,
    requires_fields: bool,
    /// Whether broken records are skipped.
    pub(super) ignores_errors: bool,
    timestamps: TimestampStandard,
    null_key_mode: MapNullKeyMode,
    null_key_literal: String,
    is_plain_decimal: bool,
    /// Whether fields that are NULL are left out.
    pub(super) omits_nulls: bool,
    zone: chrono_tz::Tz,
}

impl FormatFactory for Json {
    fn identifier(&self) -> &'static str {
        "json"
    }

    fn doc(&self) -> &'static str {
        "One JSON object a line."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[
            &FAIL_ON_MISSING_FIELD,
            &IGNORE_PARSE_ERRORS,
            &TIMESTAMP_FORMAT,
            &MAP_NULL_KEY_MODE,
            &MAP_NULL_KEY_LITERAL,
            &DECIMAL_AS_PLAIN_NUMBER,
            &IGNORE_NULL_FIELDS,
            &JSON_PARSER_ENABLED,
        ]
    }

    fn decoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn DecodingFormat>> {
        Ok(Box::new(JsonFormat(Arc::new(JsonSettings::new(ctx)?))))
    }

    fn encoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn EncodingFormat>> {
        Ok(Box::new(JsonFormat(Arc::new(JsonSettings::new(ctx)?))))
    }
}

impl JsonSettings {
    fn new(ctx: &FormatContext<'_>) -> Result<JsonSettings> {
        let requires_fields = ctx.get(&FAIL_ON_MISSING_FIELD)?;
        ctx.get(&JSON_PARSER_ENABLED)?;
        let settings = JsonSettings::shared(ctx)?;
        if requires_fields && settings.ignores_errors {
            return Err(Error::validation(
                "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
            ));
        }
        Ok(JsonSettings { requires_fields, ..settings })
    }

    /// Reads the options that every format with JSON rows has, by its own prefix.
    ///
    /// # Errors
    /// A value does not parse, or a column's type has no form in JSON.
    pub(super) fn shared(ctx: &FormatContext<'_>) -> Result<JsonSettings> {
        for column in ctx.columns {
            check_type(&column.data_type)?;
        }
        Ok(JsonSettings {
            skipping_key: format!("{}ignore-parse-errors", ctx.prefix),
            columns: ctx.columns.to_vec(),
            requires_fields: false,
            ignores_errors: ctx.get(&IGNORE_PARSE_ERRORS)?,
            timestamps: ctx.get(&TIMESTAMP_FORMAT)?,
            null_key_mode: ctx.get(&MAP_NULL_KEY_MODE)?,
            null_key_literal: ctx.get(&MAP_NULL_KEY_LITERAL)?,
            is_plain_decimal: ctx.get(&DECIMAL_AS_PLAIN_NUMBER)?,
            omits_nulls: ctx.get(&IGNORE_NULL_FIELDS)?,
            zone: ctx.zone,
        })
    }

    /// Makes a reader of single values.
    pub(super) fn value_reader(&self) -> ValueReader {
        ValueReader::new(self.zone, self.ignores_errors, self.requires_fields)
    }

    /// Makes a reader of the columns at the given positions.
    pub(super) fn row_reader(&self, projection: &[usize]) -> RowReader {
        let columns = projection.iter().map(|at| &self.columns[*at]);
        RowReader::new(columns, self.value_reader(), self.requires_fields)
    }

    /// Returns what the hint of an error about a record says at its end.
    pub(super) fn skipping(&self) -> String {
        format!(" ('{}' = 'true' skips such records)", self.skipping_key)
    }
}

/// Fails for maps whose keys are no texts: JSON has no others.
fn check_type(data_type: &DataType) -> Result<()> {
    match &data_type.root {
        TypeRoot::Map(key, _) | TypeRoot::Multiset(key) if !key.root.is_character() => {
            Err(Error::unsupported(format!(
                "JSON format doesn't support non-string as key type of map. The type is: {data_type}"
            )))
        }
        TypeRoot::Array(element) => check_type(element),
        TypeRoot::Map(_, value) => check_type(value),
        TypeRoot::Row(fields) => fields.iter().try_for_each(|field| check_type(&field.data_type)),
        _ => Ok(()),
    }
}

/// The format, set up for a table.
#[derive(Debug)]
struct JsonFormat(Arc<JsonSettings>);

impl DecodingFormat for JsonFormat {
    fn framing(&self) -> Framing {
        Framing::Lines(Dialect::LINES)
    }

    fn decoder(&self, projection: &[usize], _metadata: &[&str]) -> Box<dyn RecordDecoder> {
        Box::new(JsonDecoder::new(Arc::clone(&self.0), projection))
    }
}

impl EncodingFormat for JsonFormat {
    fn file_extension(&self) -> &'static str {
        "json"
    }

    fn encoder(&self) -> Box<dyn RecordEncoder> {
        Box::new(JsonEncoder::new(Arc::clone(&self.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing;

    fn settings_error(root: TypeRoot, entries: &[(&str, &str)]) -> String {
        testing::decoding(&Json, &[Column::physical("a", root.nullable())], entries)
            .unwrap_err()
            .message()
            .to_owned()
    }

    #[test]
    fn options_are_checked_in_flinks_words() {
        assert_eq!(
            settings_error(
                TypeRoot::Int,
                &[("json.fail-on-missing-field", "true"), ("json.ignore-parse-errors", "true")]
            ),
            "fail-on-missing-field and ignore-parse-errors shouldn't both be true."
        );
        assert_eq!(
            settings_error(TypeRoot::Int, &[("json.timestamp-format.standard", "RFC")]),
            "Unsupported value 'RFC' for timestamp-format.standard. Supported values are [SQL, ISO-8601]."
        );
        assert!(
            settings_error(TypeRoot::Int, &[("json.map-null-key.mode", "x")]).contains("map-null-key.mode")
        );
        let map = TypeRoot::Map(Box::new(TypeRoot::Int.nullable()), Box::new(TypeRoot::Int.nullable()));
        assert_eq!(
            settings_error(map, &[]),
            "JSON format doesn't support non-string as key type of map. The type is: MAP<INT, INT>"
        );
    }
}
