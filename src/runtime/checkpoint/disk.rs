//! The file system as checkpoints use it: only in steps after any of which a crash may come.
//!
//! Every step is told just before it is taken (see `durable_step`), so that a test can end the process there. Tests inside of this
//! crate make the disk die at a step, in the middle of what it writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::connector::durable_step;
use crate::error::{Error, Result};

/// Takes steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    #[cfg(test)]
    steps_left: Option<std::sync::Arc<std::sync::atomic::AtomicI64>>,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct DiskFile {
    disk: Disk,
    file: File,
    path: PathBuf,
}

/// Returns the error of an action on a file.
pub(super) fn cannot(action: &str, path: &Path, error: io::Error) -> Error {
    let kind = Error::from(io::Error::from(error.kind())).kind();
    Error::new(kind, format!("cannot {action} '{}': {error}", path.display())).caused_by(error)
}

impl Disk {
    /// Makes a disk that dies after a number of steps.
    #[cfg(test)]
    pub(super) fn dying_after(steps: i64) -> Disk {
        Disk { steps_left: Some(std::sync::Arc::new(steps.into())) }
    }

    /// Sets after how many steps it dies.
    #[cfg(test)]
    pub(super) fn die_after(&self, steps: i64) {
        if let Some(left) = &self.steps_left {
            left.store(steps, std::sync::atomic::Ordering::SeqCst);
        }
    }

    /// Returns whether the disk has died.
    #[cfg(test)]
    pub(super) fn is_dead(&self) -> bool {
        use std::sync::atomic::Ordering::SeqCst;
        self.steps_left.as_ref().is_some_and(|left| left.load(SeqCst) < 0)
    }

    /// Tells a step; an error says that the disk has died.
    fn step(&self, step: &'static str, path: &Path) -> Result<()> {
        durable_step(step, path);
        #[cfg(test)]
        if let Some(left) = &self.steps_left {
            use std::sync::atomic::Ordering::SeqCst;
            if left.fetch_sub(1, SeqCst) <= 0 {
                left.store(-1, SeqCst);
                return Err(cannot(step, path, io::Error::other("the disk has died")));
            }
        }
        Ok(())
    }

    /// Creates a folder and those above it that are missing; they last.
    pub(super) fn create_folder(&self, path: &Path) -> Result<()> {
        if path.is_dir() || path.as_os_str().is_empty() {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        self.create_folder(parent)?;
        self.step("create", path)?;
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(cannot("create", path, error)),
            _ => self.sync_folder(parent),
        }
    }

    /// Makes the names in a folder last.
    pub(super) fn sync_folder(&self, path: &Path) -> Result<()> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let folder = File::open(path).map_err(|error| cannot("sync", path, error))?;
        self.sync(&folder, path)
    }

    /// Makes a file or folder last.
    fn sync(&self, file: &File, path: &Path) -> Result<()> {
        self.step("sync", path)?;
        #[cfg(test)]
        if self.steps_left.is_some() {
            // What dies is this process' view of the disk: waiting for the real one would show nothing.
            return Ok(());
        }
        file.sync_all().map_err(|error| cannot("sync", path, error))
    }

    /// Creates a file, or empties it.
    pub(super) fn create_file(&self, path: &Path) -> Result<DiskFile> {
        self.step("create", path)?;
        let file = File::create(path).map_err(|error| cannot("create", path, error))?;
        Ok(DiskFile { disk: self.clone(), file, path: path.to_owned() })
    }

    /// Gives a file another name, at once and for good.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.step("rename", to)?;
        fs::rename(from, to).map_err(|error| cannot("rename", from, error))?;
        to.parent().map_or(Ok(()), |parent| self.sync_folder(parent))
    }

    /// Gives a file a second name, or copies it where that is not possible. The folder has still to be synced.
    pub(super) fn link_or_copy(&self, from: &Path, to: &Path) -> Result<()> {
        self.step("link", to)?;
        if fs::hard_link(from, to).is_ok() {
            return Ok(());
        }
        fs::copy(from, to).map_err(|error| cannot("copy", from, error))?;
        let copy = File::open(to).map_err(|error| cannot("sync", to, error))?;
        self.sync(&copy, to)
    }

    /// Removes a file; one that is not there is well.
    pub(super) fn remove_file(&self, path: &Path) -> Result<()> {
        self.step("remove", path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", path, error)),
            _ => Ok(()),
        }
    }

    /// Removes a folder if nothing is in it: what the user has put there stays.
    pub(super) fn remove_empty_folder(&self, path: &Path) -> Result<()> {
        self.step("remove", path)?;
        let _ = fs::remove_dir(path);
        Ok(())
    }
}

impl DiskFile {
    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let step = self.disk.step("write", &self.path);
        // A disk that dies here has written a part.
        let bytes = if step.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        self.file.write_all(bytes).map_err(|error| cannot("write", &self.path, error))?;
        step
    }

    /// Makes what was written last.
    pub(super) fn sync(self) -> Result<()> {
        self.disk.sync(&self.file, &self.path)
    }
}
