//! Properties that mean more than a text: which the user sees, which may be set, and what they do.

use std::collections::BTreeMap;

use iceberg::spec::{FormatVersion, TableMetadata, TableProperties};

use crate::connector::iceberg::commit::COMMITTED_PREFIX;
use crate::error::{Error, FlinkClass, Result};

/// Holds the comment of a table.
pub(super) const COMMENT: &str = "comment";
/// Says where a table's files go.
pub(super) const LOCATION: &str = "location";
/// Says which version of the format a table has.
pub(super) const FORMAT_VERSION: &str = TableProperties::PROPERTY_FORMAT_VERSION;
/// The option that Flink's tables name their connector by.
pub(super) const CONNECTOR: &str = "connector";
/// The connector of all tables here.
pub(super) const ICEBERG: &str = "iceberg";

/// Returns a table's properties as the options of its definition.
pub(super) fn shown_options(metadata: &TableMetadata) -> BTreeMap<String, String> {
    let is_shown = |key: &str| key != COMMENT && key != LOCATION && !is_of_job(key);
    let properties = metadata.properties().iter().filter(|(key, _)| is_shown(key));
    let mut options: BTreeMap<String, String> =
        properties.map(|(key, value)| (key.clone(), value.clone())).collect();
    options.insert(CONNECTOR.to_owned(), ICEBERG.to_owned());
    // Flink differs: it never shows the version, so that a table made again by the text would have another one.
    if metadata.format_version() != FormatVersion::V2 {
        options.insert(FORMAT_VERSION.to_owned(), (metadata.format_version() as u8).to_string());
    }
    options
}

/// Returns whether jobs keep in a property what they have committed: no user's business, and no table's that is made like another one.
fn is_of_job(key: &str) -> bool {
    key.starts_with(COMMITTED_PREFIX)
}

/// Checks that the user may set or remove a property.
///
/// # Errors
/// It belongs to Iceberg or to jobs.
pub(super) fn check_settable(key: &str) -> Result<()> {
    if TableProperties::RESERVED_PROPERTIES.contains(&key) || is_of_job(key) {
        return Err(Error::validation(format!("property '{key}' is kept by the table itself"))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("Leave it out: it cannot be set or removed."));
    }
    Ok(())
}

/// Reads a format version.
///
/// # Errors
/// It is no number, or one that we do not know.
pub(super) fn format_version(text: &str) -> Result<FormatVersion> {
    let number: i32 = text.trim().parse().map_err(|error| {
        Error::validation(format!("For input string: \"{text}\""))
            .class(FlinkClass::NUMBER_FORMAT)
            .caused_by(error)
            .hint("'format-version' is 1, 2 or 3.")
    })?;
    match number {
        1 => Ok(FormatVersion::V1),
        2 => Ok(FormatVersion::V2),
        3 => Ok(FormatVersion::V3),
        _ => Err(Error::validation(format!("Unsupported format version: v{number} (supported: v3)"))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint("'format-version' is 1, 2 or 3.")),
    }
}
