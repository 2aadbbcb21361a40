//! Reading a checkpoint back: finds it, checks every byte of it, and hands its rows to those who go on with them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::evolution::{changes, goes_on};
use super::job_folder::{complete_checkpoints, newest_run};
use super::manifest::{METADATA, Manifest};
use super::merge::{MergedTable, TableMerge};
use super::segment::Segment;
use super::segment_writer::bytes_of;
use crate::error::{Error, ErrorKind, Result};
use crate::state::{GROUP_COUNT, StateTable};

/// About how many rows are loaded at once.
const LOAD_ROWS: usize = 1 << 15;
/// And how many bytes of them.
const LOAD_BYTES: usize = 16 << 20;

/// A checkpoint or savepoint that has been found whole: every byte of its files has been checked.
#[derive(Debug)]
pub(crate) struct Restore {
    manifest: Manifest,
    path: PathBuf,
    /// Oldest first.
    segments: Vec<Segment>,
}

/// What a job will go on with, to be compared with what a checkpoint holds.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The operators that keep state.
    pub(crate) operators: Vec<OperatorClaim>,
    /// The uids of sources.
    pub(crate) sources: BTreeSet<String>,
    /// The uids of sinks.
    pub(crate) sinks: BTreeSet<String>,
    /// Operators that must know every row that a source has given: the uids of both.
    pub(crate) keepers: Vec<(String, String)>,
}

/// An operator of the job and its tables.
#[derive(Debug, Clone)]
pub(crate) struct OperatorClaim {
    /// The uid of its node.
    pub(crate) uid: String,
    /// What it is, for errors.
    pub(crate) kind: String,
    /// Its tables.
    pub(crate) tables: Vec<StateTable>,
}

impl Restore {
    /// Opens a checkpoint's or savepoint's folder, its `_metadata`, or the folder of a job or of its name, of which it takes the
    /// newest checkpoint.
    ///
    /// # Errors
    /// There is none, or a file of it is damaged or of a newer version. An older checkpoint is never taken instead.
    pub(crate) fn open(path: &Path) -> Result<Restore> {
        let folder = find(path)?;
        Restore::open_folder(folder.clone()).map_err(|error| error.hint(older(&folder)))
    }

    fn open_folder(path: PathBuf) -> Result<Restore> {
        let manifest = Manifest::read(&path)?;
        let folder = manifest.segment_folder(&path);
        let open = |entry| {
            Segment::check_bytes(&folder, entry)?;
            Segment::open(&folder, entry)
        };
        let segments = manifest.segments.iter().map(open).collect::<Result<_>>()?;
        Ok(Restore { manifest, path, segments })
    }

    /// Returns what the checkpoint holds beside rows: positions of sources, committables, extra values, its number.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the folder of the checkpoint.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the job can go on with the state: equal tables, at most with further columns that may be NULL. An operator that
    /// the checkpoint does not know begins without state.
    ///
    /// # Errors
    /// Names what has changed; or state that nobody claims, unless that is ignored.
    pub(crate) fn check(&self, claims: &Claims, ignores_unclaimed_state: bool) -> Result<()> {
        let mut changed = String::new();
        for claim in &claims.operators {
            let stored = self.manifest.operators.iter().find(|stored| stored.uid == claim.uid);
            for change in stored.iter().flat_map(|stored| changes(stored, claim)) {
                changed.push_str(&format!("\n  {} '{}': {change}", claim.kind, claim.uid));
            }
        }
        if !changed.is_empty() {
            return Err(self.does_not_fit(&format!("does not fit the job:{changed}")).hint(
                "Run the job as it was; or let it read its sources anew and replace what it has written: SET 'lakehead.job.resume' = 'resnapshot'; or start it without this state: SET 'lakehead.job.resume' = 'none'. Either needs RESET 'execution.state-recovery.path' if that is set.",
            ));
        }
        self.check_keepers(claims)?;
        let unclaimed = self.unclaimed(claims);
        if unclaimed.is_empty() || ignores_unclaimed_state {
            return Ok(());
        }
        let unclaimed = unclaimed.join("\n  ");
        Err(self.does_not_fit(&format!("holds what nothing in the job claims:\n  {unclaimed}")).hint(
            "Run the job as it was; or let it read its sources anew and replace what it has written: SET 'lakehead.job.resume' = 'resnapshot'. SET 'execution.state-recovery.ignore-unclaimed-state' = 'true' leaves this state behind for good and goes on in the sources: what operators knew of earlier rows is gone, and their results begin from nothing.",
        ))
    }

    /// Fails if an operator that must know every row of a source begins when some were read already.
    fn check_keepers(&self, claims: &Claims) -> Result<()> {
        let is_known = |uid: &String| self.manifest.operators.iter().any(|stored| stored.uid == *uid);
        let is_begun =
            |uid: &String| self.manifest.sources.get(uid).is_some_and(|position| !position.is_empty());
        match claims.keepers.iter().find(|(keeper, source)| !is_known(keeper) && is_begun(source)) {
            None => Ok(()),
            Some((keeper, source)) => Err(self
                .does_not_fit(&format!(
                    "lacks the rows of source '{source}' that were read so far: '{keeper}' must know all of them, so that it can take them back when the table is emptied"
                ))
                .hint("SET 'lakehead.job.resume' = 'resnapshot' reads the table anew and replaces what was written; or leave the table's options as they were.")),
        }
    }

    fn does_not_fit(&self, why: &str) -> Error {
        Error::new(ErrorKind::State, format!("the state in '{}' {why}", self.path.display()))
    }

    fn unclaimed(&self, claims: &Claims) -> Vec<String> {
        let operators = self
            .manifest
            .operators
            .iter()
            .filter(|stored| !stored.tables.is_empty())
            .filter(|stored| !claims.operators.iter().any(|claim| claim.uid == stored.uid))
            .map(|stored| format!("{} '{}'", stored.kind, stored.uid));
        let sources = self.manifest.sources.keys().filter(|uid| !claims.sources.contains(*uid));
        let committables = self.manifest.committables.iter().filter(|(_, prepared)| !prepared.is_empty());
        let sinks = committables.map(|(uid, _)| uid).filter(|uid| !claims.sinks.contains(*uid));
        operators
            .chain(sources.map(|uid| format!("the position of source '{uid}'")))
            .chain(sinks.map(|uid| format!("what sink '{uid}' has prepared")))
            .collect()
    }

    /// Reads the rows of a table that fall into the key groups that `owns` accepts, each key once, as the table's columns are now.
    /// Several workers may read at the same time. An operator that the checkpoint does not know has no rows, nor has a table that
    /// begins anew.
    ///
    /// # Errors
    /// A file has become unreadable since `open`, or `load` fails.
    pub(crate) fn read(
        &self,
        uid: &str,
        table: &StateTable,
        owns: &dyn Fn(u8) -> bool,
        load: &mut dyn FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let stored = self.manifest.table(uid, table.name).filter(|stored| goes_on(stored, table));
        let Some(stored) = stored else { return Ok(()) };
        let merged = MergedTable {
            operator: uid,
            name: table.name,
            schema: &table.schema,
            key_count: table.key_count,
            since: stored.since,
        };
        let mut merge = TableMerge::new(&self.segments, merged, false)?;
        let (mut pending, mut rows, mut bytes) = (Vec::new(), 0, 0);
        for group in (0..GROUP_COUNT as u8).filter(|group| owns(*group)) {
            for batch in merge.group(group)?.upserts {
                rows += batch.num_rows();
                bytes += bytes_of(batch.columns());
                pending.push(batch);
                if rows >= LOAD_ROWS || bytes >= LOAD_BYTES {
                    load(&concat_batches(&table.schema, &std::mem::take(&mut pending))?)?;
                    (rows, bytes) = (0, 0);
                }
            }
        }
        if rows > 0 {
            load(&concat_batches(&table.schema, &pending)?)?;
        }
        Ok(())
    }
}

/// Finds the folder of a checkpoint.
fn find(path: &Path) -> Result<PathBuf> {
    if path.file_name().is_some_and(|name| name == METADATA) && path.is_file() {
        return Ok(path.parent().unwrap_or(Path::new("")).to_owned());
    }
    if path.join(METADATA).is_file() {
        return Ok(path.to_owned());
    }
    let mut newest = complete_checkpoints(path)?.pop().map(|(_, folder)| folder);
    if newest.is_none() {
        newest = newest_run(path)?.map(|checkpoint| checkpoint.path);
    }
    newest.ok_or_else(|| {
        Error::new(ErrorKind::State, format!("there is no checkpoint in '{}'", path.display())).hint(
            "Name a folder 'chk-…' or 'savepoint-…' with a file '_metadata', or the folder of a job that has such folders.",
        )
    })
}

/// Says which older checkpoint there is.
fn older(folder: &Path) -> String {
    let siblings = folder.parent().and_then(|job| complete_checkpoints(job).ok()).unwrap_or_default();
    let place = siblings.iter().position(|(_, sibling)| sibling == folder);
    match place.and_then(|place| siblings.get(place.checked_sub(1)?)) {
        Some((_, older)) => format!(
            "An older checkpoint is only taken if you name it: SET 'execution.state-recovery.path' = '{}'.",
            older.display()
        ),
        None => "There is no older checkpoint beside it; restore from a savepoint, or start without state."
            .to_owned(),
    }
}
