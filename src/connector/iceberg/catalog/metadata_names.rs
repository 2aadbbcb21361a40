//! Names with a dollar sign: `t$snapshots` is a metadata table of `t`, and any other one is no name at all.

use std::sync::Arc;

use crate::catalog::CatalogObject;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, FlinkClass, Result};

/// The metadata tables of Iceberg.
const METADATA_TABLES: &[&str] = &[
    "snapshots",
    "history",
    "metadata_log_entries",
    "refs",
    "manifests",
    "partitions",
    "files",
    "data_files",
    "delete_files",
    "entries",
    "position_deletes",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_manifests",
    "all_entries",
];

/// What a name in a catalog means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectName<'a> {
    /// A table.
    Table(&'a str),
    /// A metadata table of a table.
    Metadata {
        /// The table.
        table: &'a str,
        /// Which one, in small letters.
        kind: &'static str,
    },
}

impl<'a> ObjectName<'a> {
    /// Reads a name.
    ///
    /// # Errors
    /// It has a dollar sign, and what stands behind that is no metadata table.
    pub(super) fn parse(name: &'a str) -> Result<ObjectName<'a>> {
        let Some((table, suffix)) = name.split_once('$') else { return Ok(ObjectName::Table(name)) };
        let kind = METADATA_TABLES.iter().find(|kind| kind.eq_ignore_ascii_case(suffix));
        match kind {
            Some(kind) if !table.is_empty() => Ok(ObjectName::Metadata { table, kind }),
            _ => Err(Error::validation(format!("Illegal table name:{name}"))
                .class(FlinkClass::ILLEGAL_ARGUMENT)
                .hint(format!("Behind '$' stands one of {}.", METADATA_TABLES.join(", ")))),
        }
    }

    /// Returns the name of a table that can be created, changed and dropped.
    ///
    /// # Errors
    /// It is a metadata table's.
    pub(super) fn table(name: &'a str) -> Result<&'a str> {
        match ObjectName::parse(name)? {
            ObjectName::Table(table) => Ok(table),
            ObjectName::Metadata { .. } => {
                Err(Error::unsupported(format!("'{name}' is a metadata table: it can only be read")))
            }
        }
    }
}

/// Returns a metadata table of a table; None if it cannot be read yet.
pub(super) fn metadata_table(_table: &Arc<IcebergTable>, _kind: &str) -> Option<CatalogObject> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_names_stand_behind_a_dollar_sign_in_any_case() {
        assert_eq!(METADATA_TABLES.len(), 16);
        assert_eq!(ObjectName::parse("t").unwrap(), ObjectName::Table("t"));
        let metadata = ObjectName::Metadata { table: "t", kind: "all_files" };
        assert_eq!(ObjectName::parse("t$ALL_files").unwrap(), metadata);
        for name in ["a$nope", "a$", "$files", "a$files$files"] {
            let error = ObjectName::parse(name).unwrap_err();
            assert_eq!(error.message(), format!("Illegal table name:{name}"));
            assert_eq!(error.flink_class(), FlinkClass::ILLEGAL_ARGUMENT);
        }
        assert!(ObjectName::table("t$files").unwrap_err().message().ends_with("it can only be read"));
    }
}
