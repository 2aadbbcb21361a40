//! Which tables can hold deletes of single rows.

use iceberg::TableIdent;
use iceberg::spec::{FormatVersion, TableMetadata};

use crate::error::{Error, FlinkClass, Result};

/// Checks that files of position deletes can be added to a table.
///
/// # Errors
/// Its format has none.
pub(in crate::connector::iceberg) fn check_row_deletes(
    metadata: &TableMetadata,
    name: &TableIdent,
) -> Result<()> {
    match metadata.format_version() {
        FormatVersion::V1 => Err(Error::validation("Cannot write delete files in a v1 table")
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint(format!(
                "Rows of table '{name}' can only be added. ALTER TABLE … SET ('format-version' = '2') makes it a table whose rows can change."
            ))),
        FormatVersion::V2 => Ok(()),
        FormatVersion::V3 => Err(Error::unsupported(format!(
            "updates and deletes in table '{name}' of format version 3 are not supported yet"
        ))
        .hint("Append to it, or create the table with 'format-version' = '2'.")),
    }
}
