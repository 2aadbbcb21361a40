//! The object stores that a catalog's tables lie in.

use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use iceberg::io::{FileIO, FileIOBuilder, LocalFsStorageFactory};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;

use crate::error::{Error, Result};

/// Finds the store and the path of a location such as `file:/warehouse/db/t/data/x.parquet`. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg) struct FileStore {
    local: Arc<dyn ObjectStore>,
}

impl FileStore {
    /// Makes a store of local files.
    pub(in crate::connector::iceberg) fn local() -> FileStore {
        FileStore { local: Arc::new(LocalFileSystem::new()) }
    }

    /// Returns the store that holds a location, and its path there.
    ///
    /// # Errors
    /// The scheme is not supported, or the path is none.
    pub(in crate::connector::iceberg) fn resolve(
        &self,
        location: &str,
    ) -> Result<(Arc<dyn ObjectStore>, Path)> {
        let path =
            location.strip_prefix("file://").or_else(|| location.strip_prefix("file:")).unwrap_or(location);
        let path = Path::from_absolute_path(path).map_err(|error| {
            Error::validation(format!("'{location}' is no location of a file")).caused_by(error)
        })?;
        Ok((Arc::clone(&self.local), path))
    }

    /// Returns the name by which DataFusion knows the store of a location.
    ///
    /// # Errors
    /// The scheme is not supported.
    pub(in crate::connector::iceberg) fn url(&self, _location: &str) -> Result<ObjectStoreUrl> {
        Ok(ObjectStoreUrl::local_filesystem())
    }

    /// Returns the stores as the crate `iceberg` uses them.
    pub(in crate::connector::iceberg) fn file_io(&self) -> FileIO {
        FileIOBuilder::new(Arc::new(LocalFsStorageFactory)).build()
    }
}
