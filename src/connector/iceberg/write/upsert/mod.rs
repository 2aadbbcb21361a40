//! Rows that change: what they come to by key, where the rows that they replace lie, and how both become files.

mod indexed_files;
mod key_positions;
mod net_effect;
mod row_buffer;
mod row_identity;
