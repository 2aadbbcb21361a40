//! The stores as the crate `iceberg` wants them, so that its metadata goes the way of all other files.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::Result;
use iceberg::io::{
    FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig, StorageFactory,
};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

use super::file_store::FileStore;
use super::store_error::store_error;
use crate::connector::iceberg::error::into_iceberg;
use crate::error::Error;

/// Makes storages over one store.
///
/// The crate wants to write factories and storages down, so that other machines may read them; there are none here, and what is
/// read is a store of local files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ObjectStorageFactory {
    #[serde(skip, default = "FileStore::local")]
    files: FileStore,
}

impl ObjectStorageFactory {
    /// Makes a factory.
    pub(super) fn new(files: FileStore) -> ObjectStorageFactory {
        ObjectStorageFactory { files }
    }
}

#[typetag::serde(name = "lakehead-object-storage-factory")]
impl StorageFactory for ObjectStorageFactory {
    fn build(&self, _config: &StorageConfig) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(ObjectStorage { files: self.files.clone() }))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ObjectStorage {
    #[serde(skip, default = "FileStore::local")]
    files: FileStore,
}

#[async_trait]
#[typetag::serde(name = "lakehead-object-storage")]
impl Storage for ObjectStorage {
    async fn exists(&self, path: &str) -> Result<bool> {
        self.files.exists(path).await.map_err(into_iceberg)
    }

    async fn metadata(&self, path: &str) -> Result<FileMetadata> {
        let missing = || Error::not_found(format!("file '{path}' does not exist"));
        let size = self.files.size(path).await.and_then(|size| size.ok_or_else(missing));
        size.map(|size| FileMetadata { size }).map_err(into_iceberg)
    }

    async fn read(&self, path: &str) -> Result<Bytes> {
        self.files.read(path).await.map_err(into_iceberg)
    }

    async fn reader(&self, location: &str) -> Result<Box<dyn FileRead>> {
        let (store, path) = self.files.resolve(location).map_err(into_iceberg)?;
        Ok(Box::new(Reader { store, path, location: location.to_owned() }))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> Result<()> {
        self.files.write(path, bytes).await.map_err(into_iceberg)
    }

    async fn writer(&self, location: &str) -> Result<Box<dyn FileWrite>> {
        let (store, path) = self.files.resolve(location).map_err(into_iceberg)?;
        Ok(Box::new(Writer { buffered: BufWriter::new(store, path), location: location.to_owned() }))
    }

    async fn delete(&self, path: &str) -> Result<()> {
        self.files.delete(path).await.map_err(into_iceberg)
    }

    async fn delete_prefix(&self, path: &str) -> Result<()> {
        self.files.remove_folder(path).await.map_err(into_iceberg)
    }

    async fn delete_stream(&self, mut paths: BoxStream<'static, String>) -> Result<()> {
        while let Some(path) = paths.next().await {
            self.delete(&path).await?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

struct Reader {
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: String,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = self.store.get_range(&self.path, range).await;
        read.map_err(|error| into_iceberg(store_error("read", &self.location, error)))
    }
}

/// Nothing of the file is there before it is closed.
struct Writer {
    buffered: BufWriter,
    location: String,
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let written = self.buffered.put(bytes).await;
        written.map_err(|error| into_iceberg(store_error("write", &self.location, error)))
    }

    async fn close(&mut self) -> Result<()> {
        let closed = self.buffered.shutdown().await;
        let error = |error: std::io::Error| {
            let error = object_store::Error::Generic { store: "file", source: Box::new(error) };
            into_iceberg(store_error("write", &self.location, error))
        };
        closed.map_err(error)
    }
}
