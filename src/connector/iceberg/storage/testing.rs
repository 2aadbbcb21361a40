//! A store that fails when a test says so: each operation may be refused, or done and its answer lost.
//!
//! ```text
//! let faults = FailingStore::new();
//! let files = faults.files();                     // a FileStore for the code under test
//! faults.fail_at(3, Fault::NoSpace);              // the third operation from now fails
//! faults.fail_when(Operation::Put, "v2.metadata.json", Fault::AnswerLost);
//! ```

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

use super::file_store::FileStore;
use super::file_system::{FileSystem, IsWanted};

/// What is done with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::iceberg) enum Operation {
    /// A small file is written, also exclusively, or a large one is completed.
    Put,
    /// A part of a large file is written.
    Part,
    /// A file, a part of it, or its size is read.
    Get,
    /// A file is deleted.
    Delete,
    /// A folder is listed.
    List,
    /// A folder is made, looked for or removed.
    Folder,
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::iceberg) enum Fault {
    /// Refused: no permission.
    PermissionDenied,
    /// Refused: the disk is full.
    NoSpace,
    /// The store cannot be reached; nothing was done.
    Unreachable,
    /// It was done, but an error comes back.
    AnswerLost,
}

#[derive(Debug)]
struct Rule {
    /// How many operations that match go well before one fails.
    skip: usize,
    operation: Option<Operation>,
    part_of_path: String,
    fault: Fault,
    repeated: bool,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    log: Vec<(Operation, String)>,
}

/// Says when the store fails. Clones speak of the same store.
#[derive(Debug, Clone, Default)]
pub(in crate::connector::iceberg) struct FailingStore {
    state: Arc<Mutex<State>>,
}

impl FailingStore {
    /// Makes a store of local files that does not fail yet.
    pub(in crate::connector::iceberg) fn new() -> FailingStore {
        FailingStore::default()
    }

    /// Returns the store for the code under test.
    pub(in crate::connector::iceberg) fn files(&self) -> FileStore {
        let faults = self.clone();
        FileStore::wrapped(|inner| Arc::new(Failing { inner, faults }))
    }

    /// Makes the nth operation from now fail, counted from 1.
    pub(in crate::connector::iceberg) fn fail_at(&self, n: usize, fault: Fault) {
        self.rule(n - 1, None, "", fault, false);
    }

    /// Makes the next operation of this kind on a path that contains a text fail.
    pub(in crate::connector::iceberg) fn fail_when(&self, operation: Operation, path: &str, fault: Fault) {
        self.rule(0, Some(operation), path, fault, false);
    }

    /// Makes the nth operation from now of this kind on a path that contains a text fail, counted from 1.
    pub(in crate::connector::iceberg) fn fail_nth(
        &self,
        n: usize,
        operation: Operation,
        path: &str,
        fault: Fault,
    ) {
        self.rule(n - 1, Some(operation), path, fault, false);
    }

    /// Makes every operation of this kind on a path that contains a text fail from now on.
    pub(in crate::connector::iceberg) fn fail_always(&self, operation: Operation, path: &str, fault: Fault) {
        self.rule(0, Some(operation), path, fault, true);
    }

    /// Makes nothing fail any more.
    pub(in crate::connector::iceberg) fn heal(&self) {
        self.state.lock().unwrap().rules.clear();
    }

    /// Returns whether a failure is still to come.
    pub(in crate::connector::iceberg) fn is_armed(&self) -> bool {
        !self.state.lock().unwrap().rules.is_empty()
    }

    /// Returns what was done with the store, those that failed included.
    pub(in crate::connector::iceberg) fn log(&self) -> Vec<(Operation, String)> {
        self.state.lock().unwrap().log.clone()
    }

    fn rule(&self, skip: usize, operation: Option<Operation>, path: &str, fault: Fault, repeated: bool) {
        let part_of_path = path.to_owned();
        self.state.lock().unwrap().rules.push(Rule { skip, operation, part_of_path, fault, repeated });
    }

    /// Notes an operation and returns how it fails, if it does.
    fn fault_of(&self, operation: Operation, path: &Path) -> Option<Fault> {
        let state = &mut *self.state.lock().unwrap();
        state.log.push((operation, path.to_string()));
        let mut failed = None;
        for (at, rule) in state.rules.iter_mut().enumerate() {
            let matches = rule.operation.is_none_or(|wanted| wanted == operation)
                && path.as_ref().contains(&rule.part_of_path);
            match rule.skip {
                _ if !matches => {}
                0 => failed = failed.or(Some(at)),
                _ => rule.skip -= 1,
            }
        }
        let at = failed?;
        let fault = state.rules[at].fault;
        if !state.rules[at].repeated {
            state.rules.remove(at);
        }
        Some(fault)
    }

    /// Does an operation unless it is to fail.
    async fn attempt<T>(
        &self,
        operation: Operation,
        path: &Path,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.fault_of(operation, path) {
            None => work.await,
            Some(Fault::AnswerLost) => {
                work.await?;
                Err(error_of(Fault::AnswerLost))
            }
            Some(fault) => Err(error_of(fault)),
        }
    }
}

fn error_of(fault: Fault) -> Error {
    let error = match fault {
        Fault::PermissionDenied => io::Error::from(io::ErrorKind::PermissionDenied),
        Fault::NoSpace => io::Error::from(io::ErrorKind::StorageFull),
        Fault::Unreachable => io::Error::from(io::ErrorKind::HostUnreachable),
        Fault::AnswerLost => io::Error::other("the answer was lost"),
    };
    Error::Generic { store: "failing store", source: Box::new(error) }
}

#[derive(Debug)]
struct Failing {
    inner: Arc<dyn FileSystem>,
    faults: FailingStore,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failing store")
    }
}

#[derive(Debug)]
struct FailingUpload {
    inner: Box<dyn MultipartUpload>,
    faults: FailingStore,
    path: Path,
}

#[async_trait]
impl MultipartUpload for FailingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, faults, path) = (self.inner.put_part(data), self.faults.clone(), self.path.clone());
        Box::pin(async move { faults.attempt(Operation::Part, &path, part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.faults.attempt(Operation::Put, &self.path, self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[async_trait]
impl ObjectStore for Failing {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.faults.attempt(Operation::Put, path, self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let start = self.inner.put_multipart_opts(path, options);
        let inner = self.faults.attempt(Operation::Part, path, start).await?;
        Ok(Box::new(FailingUpload { inner, faults: self.faults.clone(), path: path.clone() }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.faults.attempt(Operation::Get, path, self.inner.get_opts(path, options)).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.faults.attempt(Operation::Get, path, self.inner.get_ranges(path, ranges)).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (inner, faults) = (Arc::clone(&self.inner), self.faults.clone());
        let delete = move |path: Path| {
            let (inner, faults) = (Arc::clone(&inner), faults.clone());
            async move {
                let one = futures::stream::iter([Ok(path.clone())]).boxed();
                let deleted = async { inner.delete_stream(one).try_collect::<Vec<_>>().await };
                faults.attempt(Operation::Delete, &path, deleted).await?;
                Ok(path)
            }
        };
        paths.and_then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = prefix.cloned().unwrap_or_default();
        match self.faults.fault_of(Operation::List, &path) {
            Some(fault) => futures::stream::iter([Err(error_of(fault))]).boxed(),
            None => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.cloned().unwrap_or_default();
        self.faults.attempt(Operation::List, &path, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.faults.attempt(Operation::Put, to, self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.faults.attempt(Operation::Put, to, self.inner.rename_opts(from, to, options)).await
    }
}

#[async_trait]
impl FileSystem for Failing {
    async fn put_into_folder(&self, path: &Path, payload: PutPayload, mode: PutMode) -> Result<()> {
        self.faults.attempt(Operation::Put, path, self.inner.put_into_folder(path, payload, mode)).await
    }

    async fn create_folder(&self, path: &Path) -> Result<()> {
        self.faults.attempt(Operation::Folder, path, self.inner.create_folder(path)).await
    }

    async fn folder_exists(&self, path: &Path) -> Result<bool> {
        self.faults.attempt(Operation::Folder, path, self.inner.folder_exists(path)).await
    }

    async fn remove_folder(&self, path: &Path) -> Result<()> {
        self.faults.attempt(Operation::Folder, path, self.inner.remove_folder(path)).await
    }

    async fn remove_unfinished(&self, folder: &Path, is_wanted: IsWanted) -> Result<usize> {
        self.faults.attempt(Operation::List, folder, self.inner.remove_unfinished(folder, is_wanted)).await
    }

    async fn remove_empty_folder(&self, path: &Path) -> Result<bool> {
        self.faults.attempt(Operation::Folder, path, self.inner.remove_empty_folder(path)).await
    }
}
