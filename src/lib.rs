//! Flink SQL in one binary. Modules are layers: each may use only those above it.

pub mod catalog;
pub mod changelog;
pub mod connector;
pub mod error;
pub mod format;
pub mod function;
pub mod options;
pub mod plan;
pub mod runtime;
pub mod schema;
pub mod session;
pub mod shell;
pub mod sql;
pub mod state;
