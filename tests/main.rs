//! All integration tests in one binary: linking DataFusion once is what takes the time.
#![allow(clippy::unwrap_used, reason = "tests panic")]

mod architecture;
mod bad_input;
mod changelogs;
mod contract;
mod corrections;
mod crash;
mod examples;
mod explain_modes;
mod expressions;
mod flink_golden;
mod golden;
mod iceberg;
mod iceberg_ddl;
mod iceberg_golden;
mod iceberg_misuse;
mod iceberg_reads;
mod metadata_of_changes;
mod postgres;
mod reference;
mod shell;
mod sql_roundtrip;
mod support;
mod traps;
