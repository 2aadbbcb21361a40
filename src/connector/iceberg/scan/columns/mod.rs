//! Columns by field id: from those of a file to those that a read wants.

mod column_adapter;
mod conversion;
mod convert_expr;
mod file_columns;
mod read_column;

pub(super) use column_adapter::{ColumnAdapterFactory, value_of_missing};
pub(super) use conversion::Conversion;
pub(super) use convert_expr::VeiledColumn;
pub(super) use file_columns::{ColumnSource, FileColumns, name_mapping};
pub(super) use read_column::ReadColumn;
