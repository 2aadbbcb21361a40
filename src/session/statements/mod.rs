//! One file per family of statements, each an `impl Session` block.

mod explain;
mod insert;
mod query;
mod set;
mod statement_set;
