//! What tables need of a store beyond object stores: folders, and files that never bring a removed folder back.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutPayload, Result};

/// Chooses files by their names.
pub(in crate::connector::iceberg) type IsWanted = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// An object store with folders.
///
/// What `put` and the completion of an upload have acknowledged lasts: it is there after a power cut.
#[async_trait]
pub(in crate::connector::iceberg) trait FileSystem:
    ObjectStore + Debug
{
    /// Writes a file into a folder that exists; `NotFound` if it does not. A plain `put` would make the folder, and with it bring
    /// half a table back that somebody has dropped.
    async fn put_into_folder(&self, path: &Path, payload: PutPayload, mode: PutMode) -> Result<()>;

    /// Makes a folder and those above it; one that is there is well.
    async fn create_folder(&self, path: &Path) -> Result<()>;

    /// Returns whether there is such a folder.
    async fn folder_exists(&self, path: &Path) -> Result<bool>;

    /// Removes a folder with all that is in it; one that is not there is well. Nobody finds it half removed.
    async fn remove_folder(&self, path: &Path) -> Result<()>;

    /// Removes what writes have left below a folder that were cut off, and returns how many files those were. `is_wanted` tells them by
    /// the names that they would have got. Whoever calls this knows that nobody is writing them.
    async fn remove_unfinished(&self, folder: &Path, is_wanted: IsWanted) -> Result<usize>;

    /// Removes a folder if nothing is in it, and returns whether it is gone.
    async fn remove_empty_folder(&self, path: &Path) -> Result<bool>;
}
