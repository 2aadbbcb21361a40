//! How errors name types and calls: the words are Calcite's, which differ from those of DESCRIBE.

use super::super::ScalarFunction;
use crate::error::{Error, FlinkClass};
use crate::schema::{DataType, TypeRoot};

/// Returns the type's name in errors of validation: `INTEGER`, `VARCHAR(2147483647)`, `TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)`.
pub fn calcite_name(data_type: &DataType) -> String {
    match &data_type.root {
        TypeRoot::Int => "INTEGER".to_owned(),
        TypeRoot::Varchar(length) => format!("VARCHAR({length})"),
        TypeRoot::Varbinary(length) => format!("VARBINARY({length})"),
        TypeRoot::TimestampLtz(precision) => format!("TIMESTAMP_WITH_LOCAL_TIME_ZONE({precision})"),
        TypeRoot::IntervalYearMonth(_) => "INTERVAL YEAR TO MONTH".to_owned(),
        TypeRoot::IntervalDayTime(_) => "INTERVAL DAY TO SECOND".to_owned(),
        TypeRoot::Array(element) => format!("{} ARRAY", calcite_name(element)),
        TypeRoot::Multiset(element) => format!("{} MULTISET", calcite_name(element)),
        TypeRoot::Map(key, value) => format!("({}, {}) MAP", calcite_name(key), calcite_name(value)),
        TypeRoot::Row(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", calcite_name(&field.data_type), field.name))
                .collect();
            format!("RecordType({})", fields.join(", "))
        }
        _ => data_type.to_string(),
    }
}

/// Returns the type's bare name, without length or precision: `CHAR`, `INTEGER`.
pub(in super::super) fn calcite_root(data_type: &DataType) -> String {
    let name = calcite_name(data_type);
    name.split('(').next().unwrap_or_default().to_owned()
}

/// The error for a call whose arguments do not fit the function.
pub fn signature_error(function: &dyn ScalarFunction, arguments: &[DataType]) -> Error {
    let arguments: Vec<String> =
        arguments.iter().map(|argument| format!("<{}>", calcite_name(argument))).collect();
    let call = match (function.name(), arguments.as_slice()) {
        ("||", [left, right]) => format!("{left} || {right}"),
        (name, arguments) => format!("{name}({})", arguments.join(", ")),
    };
    type_list_error(function.name(), &call, function.signatures())
}

/// The error for an operator or function and the form in which it was called.
pub fn type_list_error(name: &str, call: &str, signatures: &[&str]) -> Error {
    let forms: Vec<String> = signatures.iter().map(|form| format!("'{form}'")).collect();
    Error::validation(format!(
        "Cannot apply '{name}' to arguments of type '{call}'. Supported form(s): {}",
        forms.join("\n")
    ))
    .class(FlinkClass::SQL_VALIDATOR)
}

/// The error for a call of a function that does not exist.
pub fn no_match_error(name: &str, arguments: &[DataType]) -> Error {
    let families: Vec<String> =
        arguments.iter().map(|argument| format!("<{}>", argument.root.family())).collect();
    Error::validation(format!("No match found for function signature {name}({})", families.join(", ")))
        .class(FlinkClass::SQL_VALIDATOR)
}
