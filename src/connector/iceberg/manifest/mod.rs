//! Manifests as they are read: by scans, by commits that write them anew, and by whoever wants to know all files of a table.

mod manifest_header;
mod manifest_reader;
mod partition_key;
mod read_error;
mod table_file;
#[cfg(test)]
mod testing;
mod weighted_cache;

pub(super) use manifest_reader::{ManifestReader, RewrittenManifest, read_all};
pub(super) use partition_key::{PartitionKey, widened};
pub(super) use read_error::{FileRole, ReadContext};
pub(super) use table_file::{
    DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID, ManifestedFile, TableFile, referenced_data_file,
};
pub(super) use weighted_cache::WeightedCache;
