//! What tests of this connector share.

mod cells;
mod database;
mod recordings;
mod relay;
mod server;

pub(super) use cells::cells;
pub(super) use database::TestDatabase;
pub(super) use recordings::{Recording, built_in_types, pg_texts, shape, with_metadata};
pub(super) use relay::Relay;
pub(super) use server::server_settings;
