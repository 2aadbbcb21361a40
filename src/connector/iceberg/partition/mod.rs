//! Partitions: what a spec makes of rows, what its values are called, and what type they have.

mod avro_name;
mod partition_path;
mod partition_text;
mod partition_type;
pub(super) mod transform;
mod transform_column;

pub(super) use avro_name::{avro_name, avro_spec};
pub(super) use partition_path::partition_path;
pub(super) use partition_text::partition_text;
pub(super) use partition_type::{
    PartitionColumn, partition_columns, partition_values, spec_columns, spec_of,
};
pub(super) use transform_column::{literal_at, transform_column};
