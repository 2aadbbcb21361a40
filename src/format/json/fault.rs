//! What can be wrong with a record, in the words of its error. Nothing is put into words before somebody reads it, since broken
//! records may also be skipped by the million.

use super::parser::SyntaxFault;
use crate::error::{Error, FlinkClass};
use crate::format::text::TextFault;
use crate::schema::DataType;

/// How much of a broken record an error shows.
const SHOWN_MAX: usize = 1_000;

/// What is wrong.
#[derive(Debug)]
pub(in crate::format) enum Fault {
    /// The text is no JSON.
    Syntax(SyntaxFault),
    /// A value that its type does not take.
    Value {
        /// Where it begins in the record.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Why it is not taken.
        fault: TextFault,
        /// The type.
        data_type: DataType,
    },
    /// A field that must be there is not.
    Missing(String),
}

/// What is wrong with an object, and in which of the columns.
#[derive(Debug)]
pub(in crate::format) struct RowFault {
    /// What is wrong.
    pub(in crate::format) fault: Fault,
    /// The position of the column; None where it is the object itself.
    pub(in crate::format) column: Option<usize>,
}

impl From<SyntaxFault> for Fault {
    fn from(fault: SyntaxFault) -> Fault {
        Fault::Syntax(fault)
    }
}

impl From<SyntaxFault> for RowFault {
    fn from(fault: SyntaxFault) -> RowFault {
        RowFault { fault: Fault::Syntax(fault), column: None }
    }
}

impl From<Fault> for RowFault {
    fn from(fault: Fault) -> RowFault {
        RowFault { fault, column: None }
    }
}

impl Fault {
    /// Returns the fault as an error about the record's text.
    pub(in crate::format) fn to_error(&self, text: &[u8]) -> Error {
        match self {
            Fault::Syntax(fault) => {
                let column = String::from_utf8_lossy(&text[..fault.at.min(text.len())]).chars().count() + 1;
                Error::data(format!("Expected {} at column {column}", fault.expected))
            }
            Fault::Value { start, end, fault, data_type } => {
                let class = if *fault == TextFault::Number {
                    FlinkClass::NUMBER_FORMAT
                } else {
                    FlinkClass::DATE_TIME
                };
                let value = &text[*start..*end];
                let inner =
                    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
                Error::data(fault.message(inner, data_type)).class(class)
            }
            Fault::Missing(name) => {
                Error::data(format!("Could not find field with name '{name}'.")).class(FlinkClass::RUNTIME)
            }
        }
    }
}

/// Returns a record as an error shows it: cut, if it is long.
pub(in crate::format) fn shown(text: &[u8]) -> String {
    let dots = if text.len() > SHOWN_MAX { "…" } else { "" };
    format!("{}{dots}", String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]))
}
