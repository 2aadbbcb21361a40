//! Local files as an object store whose files last: `object_store` itself never waits for the disk.
//!
//! A file gets its name when all of it is on the disk, by a link (if there must be none of that name yet) or a rename, and then the
//! folder is waited for. Hadoop keeps a checksum beside each file, `.name.crc`; one that no longer fits its file would make Flink
//! refuse the file, so it goes whenever we replace or delete a file.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};
use uuid::Uuid;

use super::file_system::{FileSystem, IsWanted};
use crate::connector::durable_step;

/// How many files are deleted at a time.
const DELETE_CONCURRENCY: usize = 10;

/// The local file system from its root.
#[derive(Debug)]
pub(super) struct LocalFiles {
    inner: LocalFileSystem,
}

impl LocalFiles {
    /// Makes the store.
    pub(super) fn new() -> LocalFiles {
        LocalFiles { inner: LocalFileSystem::new() }
    }
}

impl fmt::Display for LocalFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local files")
    }
}

/// Returns the file of a path. `LocalFileSystem` goes by way of a URL to the same.
fn file_of(path: &Path) -> PathBuf {
    FilePath::new("/").join(path.as_ref())
}

/// Returns the error of an action on a file.
fn failed(path: &FilePath, source: io::Error) -> Error {
    let path = path.display().to_string();
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path, source: Box::new(source) },
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: Box::new(source) },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: Box::new(source) },
        _ => Error::Generic { store: "local files", source: Box::new(source) },
    }
}

/// Runs what waits for the disk on a thread that may wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// Makes the names in a folder last.
fn sync_folder(folder: &FilePath) -> Result<()> {
    durable_step("sync", folder);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, error))
}

/// Creates a folder and those above it that are missing; they last.
fn create_folders(folder: &FilePath) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(FilePath::new("/"));
    create_folders(parent)?;
    durable_step("create", folder);
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => {
            Err(failed(folder, error))
        }
        _ => sync_folder(parent),
    }
}

/// Returns the folder of a file.
fn folder_of(file: &FilePath) -> &FilePath {
    file.parent().unwrap_or(FilePath::new("/"))
}

/// Limit: a longer name does not stand in a temporary one, as file systems take 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// Returns a name beside a folder that nobody else uses or looks at.
fn hidden_beside(folder: &FilePath) -> PathBuf {
    folder_of(folder).join(format!(".{}.removed", Uuid::new_v4()))
}

/// Returns a name beside a file that nobody else uses, and that tells which file it is to become.
fn temporary_beside(file: &FilePath) -> PathBuf {
    let name = file.file_name().and_then(|name| name.to_str());
    let unique = Uuid::new_v4();
    folder_of(file).join(match name.filter(|name| name.len() <= NAME_BYTES_MAX) {
        Some(name) => format!(".{name}.{unique}.tmp"),
        None => format!(".{unique}.tmp"),
    })
}

/// Returns which file one with a temporary name was to become. The inner store adds a number while it writes parts.
fn final_name(temporary: &str) -> Option<&str> {
    let name = temporary.strip_prefix('.')?;
    let name = match name.rsplit_once('#') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    };
    let (name, unique) = name.strip_suffix(".tmp")?.rsplit_once('.')?;
    Uuid::parse_str(unique).is_ok().then_some(name)
}

/// Removes files below a folder that were to become others, and returns how many.
fn remove_unfinished(folder: &FilePath, is_wanted: &IsWanted) -> Result<usize> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(|error| failed(folder, error))?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry.map_err(|error| failed(folder, error))?;
        let path = entry.path();
        // A link to a folder leads out of the table.
        if entry.file_type().is_ok_and(|of| of.is_dir()) {
            removed += remove_unfinished(&path, is_wanted)?;
        } else if entry.file_name().to_str().and_then(final_name).is_some_and(|name| is_wanted(name)) {
            durable_step("remove", &path);
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                gone => {
                    gone.map_err(|error| failed(&path, error))?;
                    removed += 1;
                }
            }
        }
    }
    Ok(removed)
}

/// Removes the checksum that Hadoop may have written beside a file.
fn remove_checksum(file: &FilePath) -> Result<()> {
    let Some(name) = file.file_name() else { return Ok(()) };
    let mut checksum = OsString::from(".");
    checksum.push(name);
    checksum.push(".crc");
    match fs::remove_file(file.with_file_name(checksum)) {
        Err(error) if !is_absent(&error) => Err(failed(file, error)),
        _ => Ok(()),
    }
}

/// Returns whether an error says that there is nothing. A name that is too long for a checksum has none.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
}

/// A file that has its final name only once it is whole; removed if that never comes.
struct Unnamed {
    temporary: PathBuf,
}

impl Unnamed {
    /// Writes all of a file under another name beside it.
    fn write(target: &FilePath, payload: &PutPayload, make_folder: bool) -> Result<Unnamed> {
        let temporary = temporary_beside(target);
        durable_step("create", &temporary);
        let create = || File::options().write(true).create_new(true).open(&temporary);
        let created = match create() {
            Err(error) if make_folder && error.kind() == io::ErrorKind::NotFound => {
                create_folders(folder_of(target))?;
                create()
            }
            created => created,
        };
        let mut file = created.map_err(|error| failed(target, error))?;
        let unnamed = Unnamed { temporary };
        durable_step("write", &unnamed.temporary);
        payload.iter().try_for_each(|bytes| file.write_all(bytes)).map_err(|error| failed(target, error))?;
        durable_step("sync", &unnamed.temporary);
        file.sync_all().map_err(|error| failed(target, error))?;
        Ok(unnamed)
    }

    /// Gives the file its name, in the place of whatever had it.
    fn rename(self, target: &FilePath) -> Result<()> {
        remove_checksum(target)?;
        durable_step("rename", target);
        fs::rename(&self.temporary, target).map_err(|error| failed(target, error))?;
        sync_folder(folder_of(target))
    }

    /// Gives the file its name if nothing has it.
    fn link(self, target: &FilePath) -> Result<()> {
        durable_step("link", target);
        fs::hard_link(&self.temporary, target).map_err(|error| failed(target, error))?;
        let folder = folder_of(target);
        drop(self);
        sync_folder(folder)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes a file.
async fn put(path: &Path, payload: PutPayload, mode: PutMode, make_folder: bool) -> Result<()> {
    let target = file_of(path);
    blocking(move || {
        let unnamed = Unnamed::write(&target, &payload, make_folder)?;
        match mode {
            PutMode::Create => unnamed.link(&target),
            PutMode::Overwrite | PutMode::Update(_) => unnamed.rename(&target),
        }
    })
    .await
}

/// A large file on its way. The inner upload ends under a temporary name.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    temporary: PathBuf,
    target: PathBuf,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await?;
        let unnamed = Unnamed { temporary: self.temporary.clone() };
        let target = self.target.clone();
        blocking(move || {
            durable_step("sync", &unnamed.temporary);
            let file = File::open(&unnamed.temporary);
            file.and_then(|file| file.sync_all()).map_err(|error| failed(&target, error))?;
            unnamed.rename(&target)
        })
        .await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[async_trait]
impl ObjectStore for LocalFiles {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        if matches!(options.mode, PutMode::Update(_)) || !options.attributes.is_empty() {
            // Refuses both.
            return self.inner.put_opts(path, payload, options).await;
        }
        put(path, payload, options.mode, true).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let target = file_of(path);
        let folder = folder_of(&target).to_owned();
        blocking(move || create_folders(&folder)).await?;
        let temporary = temporary_beside(&target);
        let inner =
            self.inner.put_multipart_opts(&Path::parse(temporary.to_string_lossy())?, options).await?;
        Ok(Box::new(Upload { inner, temporary, target }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(path, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let delete = |path: Result<Path>| async {
            let path = path?;
            let file = file_of(&path);
            blocking(move || {
                durable_step("remove", &file);
                fs::remove_file(&file).map_err(|error| failed(&file, error))?;
                remove_checksum(&file)
            })
            .await?;
            Ok(path)
        };
        paths.map(delete).buffered(DELETE_CONCURRENCY).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

#[async_trait]
impl FileSystem for LocalFiles {
    async fn put_into_folder(&self, path: &Path, payload: PutPayload, mode: PutMode) -> Result<()> {
        put(path, payload, mode, false).await
    }

    async fn create_folder(&self, path: &Path) -> Result<()> {
        let folder = file_of(path);
        blocking(move || create_folders(&folder)).await
    }

    async fn folder_exists(&self, path: &Path) -> Result<bool> {
        let folder = file_of(path);
        blocking(move || match fs::metadata(&folder) {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(false)
            }
            Err(error) => Err(failed(&folder, error)),
        })
        .await
    }

    async fn remove_folder(&self, path: &Path) -> Result<()> {
        let folder = file_of(path);
        blocking(move || {
            let hidden = hidden_beside(&folder);
            durable_step("rename", &hidden);
            match fs::rename(&folder, &hidden) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                renamed => renamed.map_err(|error| failed(&folder, error))?,
            }
            sync_folder(folder_of(&folder))?;
            durable_step("remove", &hidden);
            fs::remove_dir_all(&hidden).map_err(|error| failed(&hidden, error))
        })
        .await
    }

    async fn remove_unfinished(&self, folder: &Path, is_wanted: IsWanted) -> Result<usize> {
        let folder = file_of(folder);
        blocking(move || remove_unfinished(&folder, &is_wanted)).await
    }

    async fn remove_empty_folder(&self, path: &Path) -> Result<bool> {
        let folder = file_of(path);
        blocking(move || {
            durable_step("remove", &folder);
            match fs::remove_dir(&folder) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
                Err(error) => Err(failed(&folder, error)),
            }
        })
        .await
    }
}
