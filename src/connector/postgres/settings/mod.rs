//! What the options of a table say, checked and in one piece each: about the server, the stream, and the tables that are read.

mod passed_on;
mod server_settings;
mod stream_settings;
mod table_selection;
mod table_settings;

pub(super) use passed_on::PassedOn;
#[cfg(test)]
pub(super) use server_settings::Password;
pub(super) use server_settings::ServerSettings;
pub(super) use stream_settings::{Autocreate, StreamSettings, default_slot_name};
pub(super) use table_selection::TableSelection;
pub(super) use table_settings::{ChunkSettings, TableSettings};
