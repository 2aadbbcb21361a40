//! Iceberg tables through the binary.

mod explain;
mod matrix;
mod tutorial;
