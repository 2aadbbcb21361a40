//! Single values as texts: what CSV fields, JSON scalars and partition folders have in common.

mod number;
mod parse;
mod temporal;
mod write;

pub(crate) use number::{DecimalText, POWERS_OF_TEN, parse_decimal, parse_f64, parse_i64, unscaled};
pub(crate) use parse::{TextFault, TextParser};
pub(crate) use write::{ScalarWriter, TextStyle, write_decimal};

use crate::error::{Error, Result};
use crate::options::OptionValue;

/// How timestamps are written in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampStandard {
    /// `2020-01-01 10:00:00.123`, with a `Z` behind instants.
    Sql,
    /// `2020-01-01T10:00:00.123`, with a `Z` behind instants.
    Iso8601,
}

impl OptionValue for TimestampStandard {
    fn parse(text: &str) -> Result<Self> {
        match text {
            "SQL" => Ok(TimestampStandard::Sql),
            "ISO-8601" => Ok(TimestampStandard::Iso8601),
            _ => Err(Error::validation(format!(
                "Unsupported value '{text}' for timestamp-format.standard. Supported values are [SQL, ISO-8601]."
            ))),
        }
    }

    fn describe() -> String {
        "SQL or ISO-8601".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["SQL", "ISO-8601"]
    }
}
