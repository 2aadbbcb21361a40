//! Flink SQL in one binary. Modules are layers: each may use only those above it.

pub mod error;
pub mod changelog;
pub mod schema;
pub mod options;
pub mod sql;
pub mod catalog;
pub mod format;
pub mod function;
pub mod connector;
pub mod plan;
pub mod runtime;
pub mod session;
pub mod shell;
