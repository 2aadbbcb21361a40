//! Files by location, over object stores: for the crate (`FileIO`), for DataFusion, and for what needs more than either offers.

mod file_store;

pub(super) use file_store::FileStore;
