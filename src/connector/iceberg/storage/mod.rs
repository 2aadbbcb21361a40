//! Files by location, over object stores: for the crate (`FileIO`), for DataFusion, and for what needs more than either offers.

mod file_store;
mod file_system;
mod local_files;
mod location;
mod object_storage;
mod store_error;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

pub(super) use file_store::FileStore;
#[cfg(test)]
pub(super) use file_system::{FileSystem, IsWanted};
pub(super) use store_error::store_error;
