//! Rows that change: what they come to by key, where the rows that they replace lie, and how both become files.

mod delete_resolver;
mod image_order;
mod index_sync;
mod indexed_files;
mod key_positions;
mod known_snapshot;
#[cfg(test)]
mod model_tests;
mod net_effect;
mod replaced_rows;
mod row_buffer;
mod row_identity;
mod synced_groups;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod upsert_writer;

pub(super) use delete_resolver::{DeleteResolver, PreparedUpsert};
pub(super) use replaced_rows::{Lookup, LookupRecord};
pub(super) use row_identity::RowIdentity;
pub(super) use upsert_writer::{UpsertWriter, state_tables};
