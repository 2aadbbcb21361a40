//! The options of a table: in its WITH, in hints, and as properties of the Iceberg table. One list per concern, joined here.

use std::sync::LazyLock;

use super::catalog::{REFERENCE_OPTIONS, catalog_options};
use super::read_options::READ_OPTIONS;
use super::write::WRITE_OPTIONS;
use crate::options::OptionDef;

/// The options of `'connector' = 'iceberg'`.
static TABLE_OPTIONS: LazyLock<Vec<&'static dyn OptionDef>> =
    LazyLock::new(|| [REFERENCE_OPTIONS, catalog_options(), READ_OPTIONS, WRITE_OPTIONS].concat());

/// Returns the options of `'connector' = 'iceberg'`: which table it is, how it is read and written.
pub(super) fn table_options() -> &'static [&'static dyn OptionDef] {
    &TABLE_OPTIONS
}
