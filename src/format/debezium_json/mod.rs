//! `debezium-json`: change events of Debezium, one envelope a line with the row before and after the change.
//!
//! An update is one record and two rows. The payloads are read as `json` reads its objects; what is particular to Debezium is the
//! envelope, so that other envelopes around JSON rows need no more than a file like `decode`.

mod decode;
mod encode;
mod metadata;

use std::sync::Arc;

use super::json::{JsonSettings, MapNullKeyMode};
use super::scan::Dialect;
use super::text::TimestampStandard;
use super::{
    DecodingFormat, EncodingFormat, FormatContext, FormatFactory, Framing, MetadataColumn, RecordDecoder,
    RecordEncoder,
};
use crate::changelog::ChangelogMode;
use crate::error::{Error, Result};
use crate::options::{ConfigOption, OptionDef};
use decode::DebeziumDecoder;
use encode::DebeziumEncoder;
use metadata::Property;

const SCHEMA_INCLUDE: ConfigOption<bool> = ConfigOption::with_default(
    "debezium-json.schema-include",
    "false",
    "Whether records hold their schema beside the payload, as Kafka Connect writes them with 'schemas.enable'.",
);
const IGNORE_PARSE_ERRORS: ConfigOption<bool> = ConfigOption::with_default(
    "debezium-json.ignore-parse-errors",
    "false",
    "Whether a value that does not parse is NULL and a broken record is dropped, where otherwise the job fails.",
);
const TIMESTAMP_FORMAT: ConfigOption<TimestampStandard> = ConfigOption::with_default(
    "debezium-json.timestamp-format.standard",
    "SQL",
    "How timestamps are written: SQL is '2020-01-01 10:00:00', ISO-8601 is '2020-01-01T10:00:00'.",
);
const MAP_NULL_KEY_MODE: ConfigOption<MapNullKeyMode> = ConfigOption::with_default(
    "debezium-json.map-null-key.mode",
    "FAIL",
    "What to write for a NULL key of a map.",
);
const MAP_NULL_KEY_LITERAL: ConfigOption<String> = ConfigOption::with_default(
    "debezium-json.map-null-key.literal",
    "null",
    "The key that mode LITERAL writes.",
);
const DECIMAL_AS_PLAIN_NUMBER: ConfigOption<bool> = ConfigOption::with_default(
    "debezium-json.encode.decimal-as-plain-number",
    "false",
    "Whether tiny decimals are written without an exponent.",
);
const IGNORE_NULL_FIELDS: ConfigOption<bool> = ConfigOption::with_default(
    "debezium-json.encode.ignore-null-fields",
    "false",
    "Whether fields that are NULL are left out.",
);

/// The format `debezium-json`.
pub(crate) struct DebeziumJson;

/// The format, set up for a table.
#[derive(Debug)]
struct DebeziumFormat {
    settings: Arc<JsonSettings>,
    /// Whether the envelope is the field `payload` of the record.
    has_schema: bool,
}

impl FormatFactory for DebeziumJson {
    fn identifier(&self) -> &'static str {
        "debezium-json"
    }

    fn doc(&self) -> &'static str {
        "Change events of Debezium as JSON, one a line."
    }

    fn options(&self) -> &'static [&'static dyn OptionDef] {
        &[
            &SCHEMA_INCLUDE,
            &IGNORE_PARSE_ERRORS,
            &TIMESTAMP_FORMAT,
            &MAP_NULL_KEY_MODE,
            &MAP_NULL_KEY_LITERAL,
            &DECIMAL_AS_PLAIN_NUMBER,
            &IGNORE_NULL_FIELDS,
        ]
    }

    fn decoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn DecodingFormat>> {
        Ok(Box::new(DebeziumFormat::new(ctx)?))
    }

    fn encoding(&self, ctx: &FormatContext<'_>) -> Result<Box<dyn EncodingFormat>> {
        let format = DebeziumFormat::new(ctx)?;
        if format.has_schema {
            return Err(Error::validation(format!(
                "Debezium JSON serialization doesn't support '{}schema-include' option been set to true.",
                ctx.prefix
            )));
        }
        Ok(Box::new(format))
    }
}

impl DebeziumFormat {
    fn new(ctx: &FormatContext<'_>) -> Result<DebeziumFormat> {
        Ok(DebeziumFormat {
            has_schema: ctx.get(&SCHEMA_INCLUDE)?,
            settings: Arc::new(JsonSettings::shared(ctx)?),
        })
    }
}

impl DecodingFormat for DebeziumFormat {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::ALL
    }

    fn framing(&self) -> Framing {
        Framing::Lines(Dialect::LINES)
    }

    fn metadata_columns(&self) -> Vec<MetadataColumn> {
        Property::ALL
            .iter()
            .map(|property| MetadataColumn {
                key: property.key(),
                data_type: property.data_type(),
                is_of_change: property.is_of_change(),
            })
            .collect()
    }

    fn decoder(&self, projection: &[usize], metadata: &[&str]) -> Box<dyn RecordDecoder> {
        let wanted = |key: &&str| Property::ALL.into_iter().find(|property| property.key() == *key);
        let properties = metadata.iter().filter_map(wanted).collect();
        Box::new(DebeziumDecoder::new(Arc::clone(&self.settings), self.has_schema, projection, properties))
    }
}

impl EncodingFormat for DebeziumFormat {
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::ALL
    }

    fn file_extension(&self) -> &'static str {
        "json"
    }

    fn encoder(&self) -> Box<dyn RecordEncoder> {
        Box::new(DebeziumEncoder::new(Arc::clone(&self.settings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::testing;
    use crate::schema::{Column, TypeRoot};

    #[test]
    fn a_schema_can_be_read_but_not_written() {
        let columns = [Column::physical("a", TypeRoot::Int.nullable())];
        let entries = [("debezium-json.schema-include", "true")];
        assert!(testing::decoding(&DebeziumJson, &columns, &entries).is_ok());
        assert_eq!(
            testing::encoding(&DebeziumJson, &columns, &entries).unwrap_err().message(),
            "Debezium JSON serialization doesn't support 'debezium-json.schema-include' option been set to true."
        );
    }

    #[test]
    fn options_are_those_of_json_with_its_own_prefix() {
        let columns = [Column::physical("a", TypeRoot::Int.nullable())];
        let wrong = |entries: &[(&str, &str)]| {
            testing::decoding(&DebeziumJson, &columns, entries).unwrap_err().message().to_owned()
        };
        assert_eq!(
            wrong(&[("debezium-json.timestamp-format.standard", "RFC")]),
            "Unsupported value 'RFC' for timestamp-format.standard. Supported values are [SQL, ISO-8601]."
        );
        assert!(wrong(&[("debezium-json.map-null-key.mode", "x")]).contains("map-null-key.mode"));
        let entries = [("debezium-json.ignore-parse-errors", "maybe")];
        let error = testing::decoding(&DebeziumJson, &columns, &entries).unwrap_err();
        assert!(error.hint_text().unwrap().contains("'debezium-json.ignore-parse-errors'"), "{error:?}");
    }
}
