//! What tests of this connector share.

mod database;
mod recordings;
mod relay;

pub(super) use database::TestDatabase;
pub(super) use recordings::{Recording, built_in_types, pg_texts, shape, with_metadata};
pub(super) use relay::Relay;
