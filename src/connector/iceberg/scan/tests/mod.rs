//! Tests of reading: tables that hold every kind of file and deletes, against what must come out.

mod damage;
mod deletes;
mod evolution;
pub(super) mod ieee;
mod keys;
mod moved_files;
mod other_engines;
mod pruning;
mod random_tables;
mod streaming;
mod test_table;
