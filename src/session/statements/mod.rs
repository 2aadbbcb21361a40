//! One file per family of statements, each an `impl Session` block.

mod alter_table;
mod catalog;
mod create_table;
mod create_table_as;
mod database;
mod describe;
mod explain;
mod function;
mod insert;
mod jar;
mod job;
mod module;
mod partitions;
mod query;
mod row_level;
mod set;
mod show;
mod show_create;
mod statement_set;
mod unexecuted;
mod view;

pub(super) use set::check_default;
