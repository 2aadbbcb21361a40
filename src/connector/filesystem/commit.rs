//! Gives finished files their names. Repeating a commit does nothing: a file that already has its name is left alone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::FileTable;
use super::listing::is_hidden;
use super::sink::{blocking, hidden_ending, relative, unwritable};
use crate::connector::{Committable, Committer, CompletedCheckpoint, durable_step};
use crate::error::{Error, ErrorKind, Result};

/// A finished file that nobody sees yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PendingFile {
    pub(super) hidden: PathBuf,
    pub(super) visible: PathBuf,
}

impl PendingFile {
    /// Writes both names as a JSON array, relative to the table's folder.
    pub(super) fn to_committable(&self, root: &Path) -> Result<Committable> {
        let names = [relative(root, &self.hidden), relative(root, &self.visible)];
        let bytes = serde_json::to_vec(&names)
            .map_err(|error| Error::internal("a file name is not UTF-8").caused_by(error))?;
        Ok(Committable(bytes))
    }

    fn from_committable(root: &Path, committable: &Committable) -> Result<PendingFile> {
        let [hidden, visible]: [PathBuf; 2] = serde_json::from_slice(&committable.0).map_err(|error| {
            Error::new(ErrorKind::State, "the files of a checkpoint cannot be read").caused_by(error)
        })?;
        Ok(PendingFile { hidden: root.join(hidden), visible: root.join(visible) })
    }
}

/// Commits the files of all writers.
pub(super) struct FileCommitter {
    table: Arc<FileTable>,
    overwrites: bool,
}

/// What it means that a file has neither of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    /// Somebody has removed it before it was committed.
    IsLost,
    /// Somebody has taken it away after it was committed.
    WasTaken,
}

impl FileCommitter {
    pub(super) fn new(table: Arc<FileTable>, overwrites: bool) -> FileCommitter {
        FileCommitter { table, overwrites }
    }

    async fn commit_where(&self, committables: &[Committable], missing: Missing) -> Result<()> {
        let read = |committable| PendingFile::from_committable(&self.table.root, committable);
        let files: Vec<PendingFile> = committables.iter().map(read).collect::<Result<_>>()?;
        let table = Arc::clone(&self.table);
        let overwrites = self.overwrites;
        blocking(move || commit_files(&table, &files, overwrites, missing)).await
    }
}

#[async_trait]
impl Committer for FileCommitter {
    async fn commit(
        &mut self,
        _checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
    ) -> Result<()> {
        self.commit_where(committables, Missing::IsLost).await
    }

    async fn commit_after_recovery(
        &mut self,
        _checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
    ) -> Result<()> {
        self.commit_where(committables, Missing::WasTaken).await
    }

    async fn discard_unfinished(&mut self, sink_id: &str, kept: &[Committable]) -> Result<()> {
        let read = |committable| PendingFile::from_committable(&self.table.root, committable);
        let files: Vec<PendingFile> = kept.iter().map(read).collect::<Result<_>>()?;
        let table = Arc::clone(&self.table);
        let ending = hidden_ending(sink_id);
        blocking(move || {
            let kept = files.into_iter().map(|file| file.hidden).collect();
            discard(&table.root, table.partition_keys.len(), &ending, &kept)
        })
        .await
    }
}

fn commit_files(table: &FileTable, files: &[PendingFile], overwrites: bool, missing: Missing) -> Result<()> {
    let folders = files.iter().filter_map(|file| file.visible.parent());
    let mut folders: BTreeSet<PathBuf> = folders.map(Path::to_owned).collect();
    // An empty result empties a table, but no partition: none is named.
    if overwrites && table.partition_keys.is_empty() && table.root.is_dir() {
        folders.insert(table.root.clone());
    }
    for file in files {
        give_name(file, missing)?;
    }
    // A partition may have been taken away as a whole.
    folders.retain(|folder| missing == Missing::IsLost || folder.is_dir());
    for folder in &folders {
        if let Some(name) = table.success_file.as_ref().filter(|_| !files.is_empty()) {
            let path = folder.join(name);
            durable_step("create", &path);
            File::create(&path).map_err(|error| unwritable(&path, error))?;
        }
    }
    // A rename is durable once its folder is.
    sync_folders(&table.root, &folders)?;
    if !overwrites {
        return Ok(());
    }
    // What is replaced goes last: a crash in between leaves rows too many, and not none.
    let new: BTreeSet<&Path> = files.iter().map(|file| file.visible.as_path()).collect();
    for folder in &folders {
        remove_others(folder, &new)?;
    }
    sync_folders(&table.root, &folders)
}

/// Gives a file its visible name, which it may have already.
fn give_name(file: &PendingFile, missing: Missing) -> Result<()> {
    durable_step("rename", &file.visible);
    let Err(error) = fs::rename(&file.hidden, &file.visible) else { return Ok(()) };
    if error.kind() != io::ErrorKind::NotFound {
        return Err(unwritable(&file.visible, error));
    }
    match missing {
        _ if file.visible.exists() => Ok(()),
        Missing::WasTaken => {
            tracing::warn!(
                "file '{}' of the checkpoint is not there any more: it was committed and taken away, or is lost",
                file.visible.display()
            );
            Ok(())
        }
        Missing::IsLost => Err(Error::new(
            ErrorKind::State,
            format!("file '{}' is gone before it was committed", file.hidden.display()),
        )
        .hint("It holds rows of a checkpoint: nobody but the job may remove hidden files from the table's folder.")
        .caused_by(error)),
    }
}

/// Makes what folders hold durable, and that they are there themselves, up to the one that holds the table's folder.
pub(super) fn sync_folders(root: &Path, folders: &BTreeSet<PathBuf>) -> Result<()> {
    let mut all: BTreeSet<&Path> = BTreeSet::new();
    for folder in folders {
        all.extend(folder.ancestors().take_while(|folder| folder.starts_with(root)));
        all.extend(root.parent());
    }
    for folder in all {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        durable_step("sync", folder);
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| unwritable(folder, error))?;
    }
    Ok(())
}

/// Returns what is in a folder; nothing is in one that is not there.
fn items(folder: &Path) -> Result<impl Iterator<Item = Result<PathBuf>>> {
    let items = match fs::read_dir(folder) {
        Ok(items) => Some(items),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unwritable(folder, error)),
    };
    let path = |item: io::Result<fs::DirEntry>| Ok(item.map_err(|error| unwritable(folder, error))?.path());
    Ok(items.into_iter().flatten().map(path))
}

/// Removes hidden files with an ending, except some, from a folder and the partitions in it, which are `depth` levels deep.
fn discard(folder: &Path, depth: usize, ending: &str, kept: &BTreeSet<PathBuf>) -> Result<()> {
    for path in items(folder)? {
        let path = path?;
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        if depth > 0 && path.is_dir() {
            discard(&path, depth - 1, ending, kept)?;
        } else if name.starts_with(".part-") && name.ends_with(ending) && !kept.contains(&path) {
            durable_step("remove", &path);
            fs::remove_file(&path).map_err(|error| unwritable(&path, error))?;
        }
    }
    Ok(())
}

/// Removes the visible files of a folder, except the new ones, which a repeated commit finds there already.
fn remove_others(folder: &Path, new: &BTreeSet<&Path>) -> Result<()> {
    for path in items(folder)? {
        let path = path?;
        if is_hidden(&path) || new.contains(path.as_path()) {
            continue;
        }
        durable_step("remove", &path);
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}
