//! Gives finished files their names. Repeating a commit does nothing: a file that already has its name is left alone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::FileTable;
use super::listing::is_hidden;
use super::sink::{blocking, relative, unwritable};
use crate::connector::{CheckpointId, Committable, Committer};
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

impl FileCommitter {
    pub(super) fn new(table: Arc<FileTable>, overwrites: bool) -> FileCommitter {
        FileCommitter { table, overwrites }
    }
}

#[async_trait]
impl Committer for FileCommitter {
    async fn commit(&mut self, _checkpoint: CheckpointId, committables: &[Committable]) -> Result<()> {
        let read = |committable| PendingFile::from_committable(&self.table.root, committable);
        let files: Vec<PendingFile> = committables.iter().map(read).collect::<Result<_>>()?;
        let table = Arc::clone(&self.table);
        let overwrites = self.overwrites;
        blocking(move || commit_files(&table, &files, overwrites)).await
    }
}

fn commit_files(table: &FileTable, files: &[PendingFile], overwrites: bool) -> Result<()> {
    let mut folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.visible.parent()).collect();
    if overwrites {
        // An empty result empties a table, but no partition: none is named.
        if table.partition_keys.is_empty() && table.root.is_dir() {
            folders.insert(&table.root);
        }
        let new: BTreeSet<&Path> = files.iter().map(|file| file.visible.as_path()).collect();
        for folder in &folders {
            remove_others(folder, &new)?;
        }
    }
    for file in files {
        match fs::rename(&file.hidden, &file.visible) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.visible.exists() => {}
            Err(error) => return Err(unwritable(&file.visible, error)),
        }
    }
    for folder in folders {
        if let Some(name) = table.success_file.as_ref().filter(|_| !files.is_empty()) {
            let path = folder.join(name);
            File::create(&path).map_err(|error| unwritable(&path, error))?;
        }
        // A rename is durable once its folder is.
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| unwritable(folder, error))?;
    }
    Ok(())
}

/// Removes the visible files of a folder, except the new ones, which a repeated commit finds there already.
fn remove_others(folder: &Path, new: &BTreeSet<&Path>) -> Result<()> {
    let items = match fs::read_dir(folder) {
        Ok(items) => items,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unwritable(folder, error)),
    };
    for item in items {
        let path = item.map_err(|error| unwritable(folder, error))?.path();
        if is_hidden(&path) || new.contains(path.as_path()) {
            continue;
        }
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}
