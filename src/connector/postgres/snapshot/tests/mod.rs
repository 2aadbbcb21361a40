//! Tests against a server, if `LAKEHEAD_POSTGRES` names one.

mod concurrent_changes;
mod kinds_of_keys;
mod sessions;
