//! The files of a catalog's tables, found by location.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::io::{FileIO, FileIOBuilder};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};

use super::file_system::FileSystem;
use super::local_files::LocalFiles;
use super::location::local_path;
use super::object_storage::ObjectStorageFactory;
use super::store_error::store_error;
use crate::error::Result;

/// Finds the store and the path of a location such as `file:/warehouse/db/t/data/x.parquet`, and reads and writes there. Cheap to
/// clone.
///
/// What is written, here or through the stores that it gives away, is visible only as a whole, and lasts once that is acknowledged.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct FileStore {
    system: Arc<dyn FileSystem>,
}

/// What is in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::connector::iceberg) struct FolderEntry {
    /// The name in the folder.
    pub(in crate::connector::iceberg) name: String,
    /// How many bytes a file has; None for a folder.
    pub(in crate::connector::iceberg) size: Option<u64>,
}

impl FolderEntry {
    /// Returns whether it is a folder.
    pub(in crate::connector::iceberg) fn is_folder(&self) -> bool {
        self.size.is_none()
    }
}

impl FileStore {
    /// Makes a store of local files.
    pub(in crate::connector::iceberg) fn local() -> FileStore {
        FileStore { system: Arc::new(LocalFiles::new()) }
    }

    /// Makes a store that holds the same files in another way.
    #[cfg(test)]
    pub(in crate::connector::iceberg) fn wrapped(
        wrap: impl FnOnce(Arc<dyn FileSystem>) -> Arc<dyn FileSystem>,
    ) -> FileStore {
        FileStore { system: wrap(Arc::new(LocalFiles::new())) }
    }

    /// Returns the store that holds a location, and its path there.
    ///
    /// # Errors
    /// The scheme is not supported, or the path is none.
    pub(in crate::connector::iceberg) fn resolve(
        &self,
        location: &str,
    ) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let system = Arc::clone(&self.system);
        Ok((system, local_path(location)?))
    }

    /// Returns the stores as the crate `iceberg` uses them.
    pub(in crate::connector::iceberg) fn file_io(&self) -> FileIO {
        FileIOBuilder::new(Arc::new(ObjectStorageFactory::new(self.clone()))).build()
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub(in crate::connector::iceberg) async fn read(&self, location: &str) -> Result<Bytes> {
        let path = local_path(location)?;
        let read = async { self.system.get(&path).await?.bytes().await };
        read.await.map_err(|error| store_error("read", location, error))
    }

    /// Returns how many bytes a file has; None if it is not there.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(in crate::connector::iceberg) async fn size(&self, location: &str) -> Result<Option<u64>> {
        match self.system.head(&local_path(location)?).await {
            Ok(file) => Ok(Some(file.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(store_error("read", location, error)),
        }
    }

    /// Returns whether there is such a file; a folder is none.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(in crate::connector::iceberg) async fn exists(&self, location: &str) -> Result<bool> {
        Ok(self.size(location).await?.is_some())
    }

    /// Writes a file, in the place of one that is there; folders are made.
    ///
    /// # Errors
    /// It cannot be written; what was there is still there, unless the answer was lost.
    pub(in crate::connector::iceberg) async fn write(&self, location: &str, bytes: Bytes) -> Result<()> {
        let path = local_path(location)?;
        let written = self.system.put(&path, PutPayload::from_bytes(bytes)).await;
        written.map(drop).map_err(|error| store_error("write", location, error))
    }

    /// Writes a file into a folder that must be there, in the place of one that is there.
    ///
    /// # Errors
    /// There is no folder, or the file cannot be written.
    pub(in crate::connector::iceberg) async fn write_into_folder(
        &self,
        location: &str,
        bytes: Bytes,
    ) -> Result<()> {
        let path = local_path(location)?;
        let payload = PutPayload::from_bytes(bytes);
        let written = self.system.put_into_folder(&path, payload, PutMode::Overwrite).await;
        written.map_err(|error| store_error("write", location, error))
    }

    /// Writes a file unless there is one, and returns whether it has; folders are made.
    ///
    /// # Errors
    /// It cannot be written. It may be there all the same: the answer may have been lost.
    pub(in crate::connector::iceberg) async fn create(&self, location: &str, bytes: Bytes) -> Result<bool> {
        let path = local_path(location)?;
        let payload = PutPayload::from_bytes(bytes);
        created(location, self.system.put_opts(&path, payload, PutMode::Create.into()).await)
    }

    /// Writes a file into a folder that must be there unless there is one, and returns whether it has.
    ///
    /// # Errors
    /// There is no folder, or the file cannot be written. It may be there all the same: the answer may have been lost.
    pub(in crate::connector::iceberg) async fn create_in_folder(
        &self,
        location: &str,
        bytes: Bytes,
    ) -> Result<bool> {
        let path = local_path(location)?;
        let payload = PutPayload::from_bytes(bytes);
        created(location, self.system.put_into_folder(&path, payload, PutMode::Create).await)
    }

    /// Deletes a file; one that is not there is well.
    ///
    /// # Errors
    /// It cannot be deleted.
    pub(in crate::connector::iceberg) async fn delete(&self, location: &str) -> Result<()> {
        match self.system.delete(&local_path(location)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(store_error("delete", location, error)),
        }
    }

    /// Deletes files, several at a time; those that are not there are well.
    ///
    /// # Errors
    /// One cannot be deleted; the others may be there or not.
    pub(in crate::connector::iceberg) async fn delete_all(
        &self,
        locations: impl IntoIterator<Item = String>,
    ) -> Result<()> {
        let deletions = locations.into_iter().map(|location| async move { self.delete(&location).await });
        stream::iter(deletions).buffer_unordered(DELETE_CONCURRENCY).try_collect().await
    }

    /// Lists what is in a folder, by name; nothing if it is not there.
    ///
    /// # Errors
    /// It cannot be listed.
    pub(in crate::connector::iceberg) async fn list(&self, location: &str) -> Result<Vec<FolderEntry>> {
        let path = local_path(location)?;
        let listed = self.system.list_with_delimiter(Some(&path)).await;
        let listed = listed.map_err(|error| store_error("list", location, error))?;
        let entry = |path: &Path, size| Some(FolderEntry { name: path.filename()?.to_owned(), size });
        let folders = listed.common_prefixes.iter().filter_map(|path| entry(path, None));
        let files = listed.objects.iter().filter_map(|file| entry(&file.location, Some(file.size)));
        let mut entries: Vec<FolderEntry> = folders.chain(files).collect();
        entries.sort();
        Ok(entries)
    }

    /// Returns whether there is such a folder.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(in crate::connector::iceberg) async fn folder_exists(&self, location: &str) -> Result<bool> {
        let found = self.system.folder_exists(&local_path(location)?).await;
        found.map_err(|error| store_error("read", location, error))
    }

    /// Makes a folder and those above it; one that is there is well.
    ///
    /// # Errors
    /// It cannot be made.
    pub(in crate::connector::iceberg) async fn create_folder(&self, location: &str) -> Result<()> {
        let made = self.system.create_folder(&local_path(location)?).await;
        made.map_err(|error| store_error("create", location, error))
    }

    /// Removes a folder with all that is in it; one that is not there is well. Nobody finds it half removed.
    ///
    /// # Errors
    /// It cannot be removed; then it is there, or what is left of it under a hidden name beside it.
    pub(in crate::connector::iceberg) async fn remove_folder(&self, location: &str) -> Result<()> {
        let removed = self.system.remove_folder(&local_path(location)?).await;
        removed.map_err(|error| store_error("remove", location, error))
    }

    /// Removes what writes have left below a folder that were cut off, and returns how many files those were. `is_wanted` tells them by
    /// the names that they would have got.
    ///
    /// # Errors
    /// A folder cannot be listed, or a file cannot be removed.
    pub(in crate::connector::iceberg) async fn remove_unfinished(
        &self,
        location: &str,
        is_wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<usize> {
        let removed = self.system.remove_unfinished(&local_path(location)?, Arc::new(is_wanted)).await;
        removed.map_err(|error| store_error("clean", location, error))
    }

    /// Removes a folder if nothing is in it, and returns whether it is gone.
    ///
    /// # Errors
    /// It cannot be removed.
    pub(in crate::connector::iceberg) async fn remove_empty_folder(&self, location: &str) -> Result<bool> {
        let removed = self.system.remove_empty_folder(&local_path(location)?).await;
        removed.map_err(|error| store_error("remove", location, error))
    }

    /// Removes a folder and those below it as far as no file is in them.
    ///
    /// # Errors
    /// One cannot be listed or removed.
    pub(in crate::connector::iceberg) async fn remove_empty_folders(&self, location: &str) -> Result<()> {
        // Those above stand before those below.
        let mut folders = vec![location.trim_end_matches('/').to_owned()];
        let mut level = 0..1;
        for _ in 0..FOLDER_DEPTH_MAX {
            for at in level.clone() {
                let entries = self.list(&folders[at]).await?;
                let below = entries.iter().filter(|entry| entry.is_folder());
                folders
                    .extend(below.map(|entry| format!("{}/{}", folders[at], entry.name)).collect::<Vec<_>>());
            }
            level = level.end..folders.len();
        }
        for folder in folders.iter().rev() {
            self.remove_empty_folder(folder).await?;
        }
        Ok(())
    }
}

/// How deep `remove_empty_folders` goes.
const FOLDER_DEPTH_MAX: usize = 64;

/// How many files are deleted at a time.
const DELETE_CONCURRENCY: usize = 16;

/// Returns whether a file was created; false if there was one.
fn created<T>(location: &str, result: object_store::Result<T>) -> Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
        Err(error) => Err(store_error("create", location, error)),
    }
}
