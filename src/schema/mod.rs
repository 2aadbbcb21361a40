//! What a table looks like: columns with Flink types, the primary key and the watermark, and how each type lies in Arrow.

pub mod calendar;
mod data_type;
mod display;
mod table_schema;

pub use data_type::{DataType, Field, IntervalKind, IntervalQualifier, LENGTH_MAX, TypeRoot, timestamp_unit};
pub use display::{
    CellFormatter, format_cell, push_date, push_decimal, push_double, push_float, push_timestamp,
};
pub use table_schema::{Column, ColumnKind, PrimaryKey, TableSchema, Watermark};
