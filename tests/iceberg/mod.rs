//! Iceberg tables through the binary.

mod matrix;
mod tutorial;
