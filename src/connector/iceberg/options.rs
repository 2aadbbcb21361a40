//! The options of a table: in its WITH, in hints, and as properties of the Iceberg table.

use crate::options::OptionDef;

/// The options of `'connector' = 'iceberg'`.
pub(super) const TABLE_OPTIONS: &[&dyn OptionDef] = super::write::WRITE_OPTIONS;
