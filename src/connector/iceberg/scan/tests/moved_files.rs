//! A store whose files lie in another folder than metadata says: tables of other engines name files by where those wrote them.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::connector::iceberg::storage::{FileStore, FileSystem, IsWanted};

/// Reads files below `from` in `to`; nothing is written.
#[derive(Debug)]
struct MovedFiles {
    inner: Arc<dyn FileSystem>,
    from: Path,
    to: Path,
}

/// Makes a store in which the files below a folder are those below another.
pub(super) fn moved_files(from: &str, to: &FilePath) -> FileStore {
    let from = Path::from_absolute_path(from).unwrap();
    let to = Path::from_absolute_path(to).unwrap();
    FileStore::wrapped(|inner| Arc::new(MovedFiles { inner, from, to }))
}

impl MovedFiles {
    fn path(&self, path: &Path) -> Path {
        match path.prefix_match(&self.from) {
            Some(parts) => Path::from_iter(self.to.parts().chain(parts)),
            None => path.clone(),
        }
    }
}

impl fmt::Display for MovedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("moved files")
    }
}

fn read_only<T>() -> Result<T> {
    Err(object_store::Error::NotImplemented {
        operation: "write".to_owned(),
        implementer: "moved files".to_owned(),
    })
}

#[async_trait]
impl ObjectStore for MovedFiles {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        read_only()
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(&self.path(path), options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        paths.map(|_| read_only()).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix.map(|prefix| self.path(prefix)).as_ref())
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix.map(|prefix| self.path(prefix)).as_ref()).await
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only()
    }
}

#[async_trait]
impl FileSystem for MovedFiles {
    async fn put_into_folder(&self, _: &Path, _: PutPayload, _: object_store::PutMode) -> Result<()> {
        read_only()
    }

    async fn create_folder(&self, _: &Path) -> Result<()> {
        read_only()
    }

    async fn folder_exists(&self, path: &Path) -> Result<bool> {
        self.inner.folder_exists(&self.path(path)).await
    }

    async fn remove_folder(&self, _: &Path) -> Result<()> {
        read_only()
    }

    async fn remove_unfinished(&self, _: &Path, _: IsWanted) -> Result<usize> {
        read_only()
    }

    async fn remove_empty_folder(&self, _: &Path) -> Result<bool> {
        read_only()
    }
}
