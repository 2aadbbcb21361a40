//! Iceberg tables through the binary.

mod tutorial;
