//! Tests of reading: tables that hold every kind of file and deletes, against what must come out.

mod deletes;
mod evolution;
mod test_table;
