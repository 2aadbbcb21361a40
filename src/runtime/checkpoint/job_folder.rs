//! The folder of a job, and the lock that keeps two processes from running it at the same time.
//!
//! The lock is the operating system's, on a file that says who has it; so it ends with its process, however that ends, and a file
//! that nobody has locked is what a crashed process has left. Who gives it back removes the file.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::disk::{Disk, cannot};
use super::manifest::{METADATA, Manifest};
use crate::connector::CheckpointId;
use crate::error::{Error, Result};

/// The name of the lock's file.
const LOCK: &str = "_lock";
/// How often it is tried again when the file has been removed by its last owner just then.
const ATTEMPTS: usize = 100;
/// The longest name of a folder; most file systems take 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// Two jobs of this process do not take a lock at the same time, so that one always sees that the other is its sibling.
static ACQUIRING: Mutex<()> = Mutex::new(());

/// A job's folder of checkpoints, locked as long as the value lives.
#[derive(Debug)]
pub(crate) struct JobFolder {
    name: String,
    id: u128,
    path: PathBuf,
    lock: File,
}

/// The newest complete checkpoint of a job's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LatestCheckpoint {
    /// The folder of the checkpoint.
    pub(crate) path: PathBuf,
    /// The number of the job that wrote it; a job that goes on from it may take the same number.
    pub(crate) job_id: u128,
    /// The number of the checkpoint.
    pub(crate) number: CheckpointId,
}

/// What came of trying to get a lock.
enum Attempt {
    Locked(File),
    /// What the file says of its owner.
    HeldBy(Value),
}

impl JobFolder {
    /// Locks the name of a job. A name that a job of this process has gets `-2`, `-3` and so on; `name()` is the one that was taken.
    ///
    /// # Errors
    /// Another process runs the job (the error names it), or the folder cannot be written.
    pub(crate) fn acquire(folder: &Path, name: &str, id: u128) -> Result<JobFolder> {
        let _one = ACQUIRING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = name.to_owned();
        let mut copy = 1;
        loop {
            let job = folder.join(folder_name(&taken));
            match lock(&job, id)? {
                Attempt::Locked(lock) => {
                    return Ok(JobFolder { name: taken, id, path: job.join(format!("{id:032x}")), lock });
                }
                Attempt::HeldBy(owner) if is_this_process(&owner) => {
                    copy += 1;
                    taken = format!("{name}-{copy}");
                }
                Attempt::HeldBy(owner) => return Err(held(&taken, &owner)),
            }
        }
    }

    /// Finds the newest complete checkpoint of the job's name, over all runs of it.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn latest(&self) -> Result<Option<LatestCheckpoint>> {
        self.path.parent().map_or(Ok(None), newest_run)
    }

    /// Takes the number of an earlier run, to go on in its folder.
    ///
    /// # Errors
    /// The lock cannot be written.
    pub(crate) fn resume_as(mut self, id: u128) -> Result<JobFolder> {
        let job = self.path.parent().unwrap_or(Path::new("")).to_owned();
        write_owner(&mut self.lock, &owner(id).to_string())
            .map_err(|error| cannot("write", &job.join(LOCK), error))?;
        self.path = job.join(format!("{id:032x}"));
        self.id = id;
        Ok(self)
    }

    /// Returns the name that was locked.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of the job.
    pub(crate) fn id(&self) -> u128 {
        self.id
    }

    /// Returns the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        let Some(job) = self.path.parent() else { return };
        // The file goes while it is locked: who has opened it meanwhile finds that it has gone, and tries again.
        let _ = fs::remove_file(job.join(LOCK));
        let _ = self.lock.unlock();
        let _ = fs::remove_dir(&self.path);
        let _ = fs::remove_dir(job);
    }
}

/// Tries to lock the folder of a job's name.
fn lock(job: &Path, id: u128) -> Result<Attempt> {
    let path = job.join(LOCK);
    for _ in 0..ATTEMPTS {
        Disk::default().create_folder(job)?;
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = match opened {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened.map_err(|error| cannot("open", &path, error))?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                return Ok(Attempt::HeldBy(serde_json::from_str(&owner).unwrap_or_default()));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, error)),
        }
        let owner = owner(id).to_string();
        write_owner(&mut file, &owner).map_err(|error| cannot("write", &path, error))?;
        // The file may be one that its last owner has removed after it was opened here.
        if fs::read_to_string(&path).is_ok_and(|text| text == owner) {
            return Ok(Attempt::Locked(file));
        }
    }
    Err(Error::unavailable(format!("cannot lock '{}': it keeps changing its owner", path.display())))
}

/// Says in the lock's file who has it.
fn write_owner(file: &mut File, owner: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(owner.as_bytes())
}

/// Describes this process.
fn owner(id: u128) -> Value {
    json!({
        "pid": std::process::id(),
        "host": sysinfo::System::host_name(),
        "started": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        "job_id": format!("{id:032x}"),
    })
}

fn is_this_process(owner: &Value) -> bool {
    owner["pid"] == std::process::id() && owner["host"] == json!(sysinfo::System::host_name())
}

fn held(name: &str, owner: &Value) -> Error {
    let text = |key: &str| owner[key].as_str().unwrap_or("unknown").to_owned();
    let process = owner["pid"].as_u64().map_or("another process".to_owned(), |pid| format!("process {pid}"));
    Error::already_exists(format!(
        "the job '{name}' is running already: {process} on host {} has run it since {} (job {})",
        text("host"),
        text("started"),
        text("job_id")
    ))
    .hint("Stop it there, or give this one another name: SET 'pipeline.name' = '…'.")
}

/// Returns the name of a folder for a job's name: letters, digits and a few signs stay, other bytes become `%` and two digits,
/// so that no two names meet and none leads out of the folder. Very long names end in a hash.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for (at, character) in name.char_indices() {
        if character.is_alphanumeric() || "_-,+=@".contains(character) || (character == '.' && at > 0) {
            folder.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                folder.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    if folder.is_empty() {
        return "%".to_owned();
    }
    if folder.len() > NAME_BYTES_MAX {
        folder.truncate(folder.floor_char_boundary(NAME_BYTES_MAX - 17));
        folder.push_str(&format!("~{:016x}", xxh3_64(name.as_bytes())));
    }
    folder
}

/// Returns the folder of checkpoints where none is set: below the user's folder of state. `variable` looks up the environment.
pub(crate) fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // What is not absolute is to be ignored, says the specification of these variables.
    let state = set("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".local").join("state")))?;
    Some(state.join("lakehead").join("checkpoints"))
}

/// Returns the checkpoints of a job's folder that have a manifest, whole or not, oldest first.
pub(super) fn complete_checkpoints(job: &Path) -> Result<Vec<(CheckpointId, PathBuf)>> {
    let mut found = checkpoint_folders(job)?;
    found.retain(|(_, folder)| folder.join(METADATA).is_file());
    Ok(found)
}

/// Returns the folders of checkpoints in a job's folder, oldest first.
pub(super) fn checkpoint_folders(job: &Path) -> Result<Vec<(CheckpointId, PathBuf)>> {
    let mut found: Vec<(CheckpointId, PathBuf)> = entries(job)?
        .into_iter()
        .filter_map(|(name, path)| {
            let number = name.strip_prefix("chk-")?;
            let number = number.parse().ok().filter(|parsed: &CheckpointId| parsed.to_string() == number)?;
            Some((number, path))
        })
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Returns what is in a folder that has a readable name; nothing if there is no such folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let unreadable = |error| cannot("read", folder, error);
    let listing = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        listing => listing.map_err(unreadable)?,
    };
    let mut found = Vec::new();
    for entry in listing {
        let entry = entry.map_err(unreadable)?;
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

/// Finds the newest complete checkpoint in the folder of a job's name. It may turn out to be damaged, which `Restore::open` says:
/// an older one is not looked for.
pub(super) fn newest_run(job: &Path) -> Result<Option<LatestCheckpoint>> {
    let mut newest: Option<(i64, LatestCheckpoint)> = None;
    for (name, path) in entries(job)? {
        let Some(job_id) = job_id_of(&name) else { continue };
        let Some((number, path)) = complete_checkpoints(&path)?.pop() else { continue };
        let time = time_of(&path);
        if newest.as_ref().is_none_or(|(other, checkpoint)| (*other, checkpoint.number) < (time, number)) {
            newest = Some((time, LatestCheckpoint { path, job_id, number }));
        }
    }
    Ok(newest.map(|(_, checkpoint)| checkpoint))
}

fn job_id_of(name: &str) -> Option<u128> {
    u128::from_str_radix(name, 16).ok().filter(|id| format!("{id:032x}") == name)
}

/// Returns when a checkpoint was made, in milliseconds since 1970: by its manifest, or its file if that is damaged.
fn time_of(checkpoint: &Path) -> i64 {
    if let Ok(manifest) = Manifest::read(checkpoint) {
        return manifest.time_ms;
    }
    let written = fs::metadata(checkpoint.join(METADATA)).and_then(|metadata| metadata.modified());
    let since_1970 = written.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since_1970.map_or(0, |time| time.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_job_of_this_process_gets_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let first = JobFolder::acquire(folder.path(), "job", 1).unwrap();
        let second = JobFolder::acquire(folder.path(), "job", 2).unwrap();
        let third = JobFolder::acquire(folder.path(), "job", 3).unwrap();
        assert_eq!([first.name(), second.name(), third.name()], ["job", "job-2", "job-3"]);
        assert!(first.path().ends_with(format!("job/{:032x}", 1)));
        drop(second);
        assert_eq!(JobFolder::acquire(folder.path(), "job", 4).unwrap().name(), "job-2");
        drop((first, third));
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left of jobs without checkpoints"
        );
    }

    #[test]
    fn a_job_may_go_on_in_the_folder_of_an_earlier_run() {
        let folder = tempfile::tempdir().unwrap();
        let job = JobFolder::acquire(folder.path(), "job", 1).unwrap().resume_as(7).unwrap();
        assert_eq!(job.id(), 7);
        assert!(job.path().ends_with(format!("job/{:032x}", 7)));
        let owner = fs::read_to_string(folder.path().join("job").join(LOCK)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&owner).unwrap()["job_id"], format!("{:032x}", 7));
        assert_eq!(JobFolder::acquire(folder.path(), "job", 2).unwrap().name(), "job-2");
    }

    #[test]
    fn a_job_of_another_process_is_refused_and_its_owner_named() {
        let folder = tempfile::tempdir().unwrap();
        let job = folder.path().join("job");
        fs::create_dir(&job).unwrap();
        let mut other = File::create(job.join(LOCK)).unwrap();
        other.try_lock().unwrap();
        write!(
            other,
            r#"{{"pid": 4000000000, "host": "there", "started": "2026-01-02T03:04:05.000Z", "job_id": "0a"}}"#
        )
        .unwrap();
        let error = JobFolder::acquire(folder.path(), "job", 1).unwrap_err();
        assert_eq!(
            error.message(),
            "the job 'job' is running already: process 4000000000 on host there has run it since \
             2026-01-02T03:04:05.000Z (job 0a)"
        );
    }

    #[test]
    fn a_lock_that_a_crashed_process_has_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let job = folder.path().join("job");
        fs::create_dir(&job).unwrap();
        fs::write(job.join(LOCK), r#"{"pid": 1, "host": "there", "started": "long ago"}"#).unwrap();
        let taken = JobFolder::acquire(folder.path(), "job", 1).unwrap();
        assert_eq!(taken.name(), "job");
        let owner: Value = serde_json::from_str(&fs::read_to_string(job.join(LOCK)).unwrap()).unwrap();
        assert!(is_this_process(&owner));
    }

    #[test]
    fn a_name_becomes_one_folder_that_no_other_name_has() {
        assert_eq!(folder_name("insert-into_default_catalog.db.t"), "insert-into_default_catalog.db.t");
        assert_eq!(folder_name("Käse 7"), "Käse%207");
        assert_eq!(folder_name("../../etc"), "%2E.%2F..%2Fetc");
        assert_eq!(folder_name("."), "%2E");
        assert_eq!(folder_name(".."), "%2E.");
        assert_eq!(folder_name("a%20b"), "a%2520b");
        assert_eq!(folder_name(""), "%");
        let (long, other) = (folder_name(&"ü".repeat(300)), folder_name(&"ü".repeat(301)));
        assert!(long.len() <= NAME_BYTES_MAX && long != other);
    }

    #[test]
    fn the_default_folder_is_the_users_folder_of_state() {
        let with = |variables: &[(&str, &str)]| {
            default_folder(|name| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        let folder = Some(PathBuf::from("/h/.local/state/lakehead/checkpoints"));
        assert_eq!(with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), Some("/s/lakehead/checkpoints".into()));
        assert_eq!(with(&[("XDG_STATE_HOME", ""), ("HOME", "/h")]), folder);
        assert_eq!(with(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")]), folder);
        assert_eq!(with(&[]), None);
    }
}
