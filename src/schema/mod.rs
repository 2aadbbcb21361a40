//! What a table looks like: columns with Flink types, the primary key and the watermark, and how each type lies in Arrow.

mod data_type;
mod display;
mod table_schema;

pub use data_type::{DataType, Field, IntervalKind, IntervalQualifier, LENGTH_MAX, TypeRoot, timestamp_unit};
pub use display::{CellFormatter, format_cell};
pub use table_schema::{Column, ColumnKind, PrimaryKey, TableSchema, Watermark};
