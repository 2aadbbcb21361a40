//! Commits, tried again while others commit in between.
//!
//! Every attempt starts from the table as it is then: it is loaded anew and the caller plans anew. What an attempt that failed has
//! written is removed. Where the answer of the catalog was lost, the attempt may have landed, now or a little later; so nothing is
//! removed then, and every later look at the table asks first whether it has.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use iceberg::spec::TableMetadata;
use iceberg::{TableIdent, TableRequirement, TableUpdate};

use super::SnapshotChange;
use super::retry_policy::RetryPolicy;
use super::snapshot_producer::SnapshotProducer;
use crate::connector::iceberg::catalog::CommitError;
use crate::connector::iceberg::dropped_partition_fields::{build_metadata, metadata_builder};
use crate::connector::iceberg::snapshot_refs::snapshot_refs;
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, ErrorKind, FlinkClass, Result};

/// At how many tables of a namespace it is looked for the one that was renamed.
const RENAMED_LOOKS: usize = 100;

/// Says what a snapshot shall change, given the table as it is. Closures that need not wait are plans too.
#[async_trait]
pub(in crate::connector::iceberg) trait SnapshotPlan: Send {
    /// Plans one attempt. None if there is nothing to commit, for example because it has been committed already.
    async fn plan(&mut self, table: &IcebergTable) -> Result<Option<SnapshotChange>>;

    /// Says that what was planned last has not landed, and never will.
    fn beaten(&mut self) {}
}

#[async_trait]
impl<F: FnMut(&IcebergTable) -> Result<Option<SnapshotChange>> + Send> SnapshotPlan for F {
    async fn plan(&mut self, table: &IcebergTable) -> Result<Option<SnapshotChange>> {
        self(table)
    }
}

/// A change of a table's metadata alone.
#[derive(Debug, Clone, Default)]
pub(in crate::connector::iceberg) struct MetadataChange {
    /// What must still hold when it lands, beside that the table is the same.
    pub(in crate::connector::iceberg) requirements: Vec<TableRequirement>,
    /// What changes.
    pub(in crate::connector::iceberg) updates: Vec<TableUpdate>,
}

impl MetadataChange {
    /// Removes properties.
    pub(in crate::connector::iceberg) fn remove_properties(
        removals: impl IntoIterator<Item = String>,
    ) -> MetadataChange {
        let removals = removals.into_iter().collect();
        MetadataChange { requirements: Vec::new(), updates: vec![TableUpdate::RemoveProperties { removals }] }
    }
}

/// Commits a snapshot, and returns the table with it; if there was nothing to commit, the table as it is now. The properties
/// `commit.retry.*` bound the attempts.
///
/// # Errors
/// The plan fails, files cannot be read or written, the table was dropped or replaced, or others committed before each attempt.
/// An `Unavailable` error may leave open whether the commit has landed: then its message says so.
pub(in crate::connector::iceberg) async fn commit_snapshot(
    table: &IcebergTable,
    plan: &mut dyn SnapshotPlan,
) -> Result<IcebergTable> {
    CommitLoop::new(table).run(&mut Snapshots(plan)).await
}

/// Commits a change of metadata in the same way. `plan` may be asked several times.
///
/// # Errors
/// As `commit_snapshot`.
pub(in crate::connector::iceberg) async fn commit_updates(
    table: &IcebergTable,
    plan: &mut (dyn FnMut(&IcebergTable) -> Result<Option<MetadataChange>> + Send),
) -> Result<IcebergTable> {
    CommitLoop::new(table).run(&mut MetadataChanges(plan)).await
}

/// What one attempt asks of the catalog.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) requirements: Vec<TableRequirement>,
    pub(super) updates: Vec<TableUpdate>,
    /// The snapshot that it adds.
    pub(super) snapshot_id: Option<i64>,
}

/// Makes attempts.
#[async_trait]
trait Attempts: Send {
    /// Makes one, and notes each file before writing it.
    async fn next(&mut self, table: &IcebergTable, written: &mut Vec<String>) -> Result<Option<Attempt>>;

    /// Says that the last one has not landed, and never will.
    fn beaten(&mut self) {}
}

struct Snapshots<'a>(&'a mut dyn SnapshotPlan);

#[async_trait]
impl Attempts for Snapshots<'_> {
    async fn next(&mut self, table: &IcebergTable, written: &mut Vec<String>) -> Result<Option<Attempt>> {
        let Some(change) = self.0.plan(table).await? else { return Ok(None) };
        SnapshotProducer::new(table, written).produce(change).await
    }

    fn beaten(&mut self) {
        self.0.beaten();
    }
}

struct MetadataChanges<'a>(&'a mut (dyn FnMut(&IcebergTable) -> Result<Option<MetadataChange>> + Send));

#[async_trait]
impl Attempts for MetadataChanges<'_> {
    async fn next(&mut self, table: &IcebergTable, _written: &mut Vec<String>) -> Result<Option<Attempt>> {
        let change = self.0(table)?.filter(|change| !change.updates.is_empty());
        Ok(change.map(|change| {
            let mut requirements = change.requirements;
            requirements.push(TableRequirement::UuidMatch { uuid: table.metadata().uuid() });
            Attempt { requirements, updates: change.updates, snapshot_id: None }
        }))
    }
}

/// An attempt whose outcome is not known.
struct Unresolved {
    snapshot_id: Option<i64>,
    updates: Vec<TableUpdate>,
    written: Vec<String>,
}

impl Unresolved {
    fn has_landed(&self, metadata: &TableMetadata) -> bool {
        match self.snapshot_id {
            Some(id) => metadata.snapshot_by_id(id).is_some(),
            None => changes_nothing(metadata, &self.updates),
        }
    }
}

/// One commit with all its attempts.
struct CommitLoop<'a> {
    table: &'a IcebergTable,
    started: Instant,
    policy: Option<RetryPolicy>,
    failures: u32,
    unresolved: Vec<Unresolved>,
}

/// How an attempt ended.
enum Outcome {
    Done(Box<IcebergTable>),
    Again(Error),
}

impl CommitLoop<'_> {
    fn new(table: &IcebergTable) -> CommitLoop<'_> {
        CommitLoop { table, started: Instant::now(), policy: None, failures: 0, unresolved: Vec::new() }
    }

    async fn run(mut self, attempts: &mut dyn Attempts) -> Result<IcebergTable> {
        loop {
            let error = match self.attempt(attempts).await {
                Ok(Outcome::Done(table)) => return Ok(*table),
                Ok(Outcome::Again(error)) => error,
                Err(error) => return Err(self.unknown_if_unresolved(error)),
            };
            self.failures += 1;
            let wait = self.policy.as_ref().and_then(|policy| policy.wait(self.failures, self.started));
            let Some(wait) = wait else { return self.give_up(error).await };
            tracing::debug!(table = %self.table.ident(), attempt = self.failures, error = %error, "commit is tried again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&mut self, attempts: &mut dyn Attempts) -> Result<Outcome> {
        let fresh = match reload_same(self.table).await {
            Ok(fresh) => fresh,
            Err(error) if !self.unresolved.is_empty() && !is_final(&error) => {
                return Ok(Outcome::Again(error));
            }
            Err(error) => return Err(error),
        };
        if self.unresolved.iter().any(|attempt| attempt.has_landed(fresh.metadata())) {
            self.remove_unresolved(&fresh).await;
            return Ok(Outcome::Done(Box::new(fresh)));
        }
        self.policy = Some(RetryPolicy::of(fresh.metadata())?);
        let mut written = Vec::new();
        let attempt = match attempts.next(&fresh, &mut written).await {
            Ok(Some(attempt)) => attempt,
            Ok(None) => {
                remove_files(&fresh, &written).await;
                return Ok(Outcome::Done(Box::new(fresh)));
            }
            Err(error) => {
                remove_files(&fresh, &written).await;
                return Err(error);
            }
        };
        self.submit(&fresh, attempts, attempt, written).await
    }

    async fn submit(
        &mut self,
        fresh: &IcebergTable,
        attempts: &mut dyn Attempts,
        attempt: Attempt,
        written: Vec<String>,
    ) -> Result<Outcome> {
        let Attempt { requirements, updates, snapshot_id } = attempt;
        match fresh.catalog().commit_table(fresh.ident(), requirements, updates.clone()).await {
            Ok(table) => {
                let table = IcebergTable::new(Arc::clone(fresh.catalog()), table);
                self.remove_unresolved(&table).await;
                Ok(Outcome::Done(Box::new(table)))
            }
            Err(CommitError::Conflict(error)) => {
                attempts.beaten();
                remove_files(fresh, &written).await;
                Ok(Outcome::Again(error))
            }
            Err(CommitError::Unknown(error)) => {
                self.unresolved.push(Unresolved { snapshot_id, updates, written });
                Ok(Outcome::Again(error))
            }
            Err(CommitError::Failed(error)) => {
                attempts.beaten();
                remove_files(fresh, &written).await;
                // A commit to another branch takes the sequence number, which a catalog need not know as a conflict.
                match reload_same(self.table).await {
                    Ok(now) if now.table().metadata_location() != fresh.table().metadata_location() => {
                        Ok(Outcome::Again(error))
                    }
                    Err(gone) if is_final(&gone) => Err(gone),
                    _ => Err(error),
                }
            }
        }
    }

    /// Ends without a commit, unless one whose outcome was not known has landed after all.
    async fn give_up(mut self, error: Error) -> Result<IcebergTable> {
        let table = self.table.ident();
        if let Some(last) = self.unresolved.last() {
            match reload_same(self.table).await {
                Ok(fresh) if self.unresolved.iter().any(|attempt| attempt.has_landed(fresh.metadata())) => {
                    self.remove_unresolved(&fresh).await;
                    return Ok(fresh);
                }
                Ok(_) => {}
                Err(gone) if is_final(&gone) => return Err(gone),
                Err(unreachable) => {
                    let snapshot =
                        last.snapshot_id.map(|id| format!(" of snapshot {id}")).unwrap_or_default();
                    let message = format!(
                        "it is unknown whether the commit{snapshot} to table '{table}' has landed: the catalog did not \
                         answer, and cannot be asked"
                    );
                    return Err(Error::unavailable(message)
                        .class(FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN)
                        .hint("Nothing was removed. A job that goes on looks for its commit first.")
                        .caused_by(unreachable));
                }
            }
        }
        let attempts = self.failures;
        let hint = if self.unresolved.is_empty() {
            "Other writers commit to it too often. The property 'commit.retry.num-retries' of the table allows more attempts."
        } else {
            "Answers of the catalog were lost, and what was asked may still land. A job that goes on looks for its commit first."
        };
        let message = format!("table '{table}' could not be committed to in {attempts} attempts: {error}");
        let failure = Error::unavailable(message).hint(hint).caused_by(error);
        Err(self.unknown_if_unresolved(failure))
    }

    /// Returns an error that says, where an earlier attempt may still land, that nobody knows: what was prepared must stay.
    fn unknown_if_unresolved(&self, error: Error) -> Error {
        match self.unresolved.is_empty() || is_final(&error) {
            true => error,
            false => error.class(FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN),
        }
    }

    /// Removes what attempts of unknown outcome have written, now that another has landed: what they ask for can no more be granted.
    async fn remove_unresolved(&mut self, table: &IcebergTable) {
        for attempt in self.unresolved.drain(..) {
            if attempt.snapshot_id.is_some() && !attempt.has_landed(table.metadata()) {
                remove_files(table, &attempt.written).await;
            }
        }
    }
}

/// Loads a table anew, and checks that it is the same one still.
///
/// # Errors
/// It was dropped, another has its name now, or the catalog does not answer.
pub(in crate::connector::iceberg) async fn reload_same(table: &IcebergTable) -> Result<IcebergTable> {
    let (name, uuid) = (table.ident(), table.metadata().uuid());
    let fresh = match table.reload().await {
        Ok(fresh) => fresh,
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && error.flink_class() != FlinkClass::ICEBERG_NOT_FOUND =>
        {
            return Err(gone(table).await.class(FlinkClass::ICEBERG_NO_SUCH_TABLE).caused_by(error));
        }
        Err(error) => return Err(error),
    };
    let now = fresh.metadata().uuid();
    if now == uuid {
        return Ok(fresh);
    }
    Err(Error::rejected(format!(
        "table '{name}' (uuid {uuid}) was replaced while it was written: another table has its name now (uuid {now})"
    ))
    .class(FlinkClass::ICEBERG_NO_SUCH_TABLE)
    .hint("Start the statement again to write to the new table."))
}

/// Says that a table is not there any more under its name, and which name it has now if that is found.
async fn gone(table: &IcebergTable) -> Error {
    let (name, uuid) = (table.ident(), table.metadata().uuid());
    match new_name(table).await {
        Some(now) => Error::not_found(format!(
            "table '{name}' (uuid {uuid}) was renamed to '{now}' while it was written"
        ))
        .hint("Start the statement again with the name that it has now."),
        None => Error::not_found(format!(
            "table '{name}' (uuid {uuid}) was dropped or renamed while it was written"
        ))
        .hint("If it was renamed, start the statement again with the name that it has now."),
    }
}

/// Looks for a table under another name of its namespace. Many are not looked at for the sake of a message.
async fn new_name(table: &IcebergTable) -> Option<TableIdent> {
    let catalog = table.catalog();
    let idents = catalog.list_tables(table.ident().namespace()).await.ok()?;
    for ident in idents.into_iter().take(RENAMED_LOOKS) {
        let other = catalog.load_table(&ident).await;
        if other.is_ok_and(|other| other.metadata().uuid() == table.metadata().uuid()) {
            return Some(ident);
        }
    }
    None
}

/// Returns whether there is no table any more that could be looked at again.
fn is_final(error: &Error) -> bool {
    error.flink_class() == FlinkClass::ICEBERG_NO_SUCH_TABLE
}

/// Removes files that no snapshot refers to. What stays behind is garbage, and no reason to fail.
async fn remove_files(table: &IcebergTable, paths: &[String]) {
    for path in paths {
        if let Err(error) = table.file_io().delete(path).await {
            tracing::debug!(path, error = %error, "file of a failed commit stays");
        }
    }
}

/// Returns whether a table already is what updates would make of it.
fn changes_nothing(metadata: &TableMetadata, updates: &[TableUpdate]) -> bool {
    let apply = || {
        let mut builder = metadata_builder(metadata, None)?;
        for update in updates {
            builder = update.clone().apply(builder)?;
        }
        Ok::<_, iceberg::Error>(build_metadata(builder)?.metadata)
    };
    let Ok(after) = apply() else { return false };
    after.format_version() == metadata.format_version()
        && after.location() == metadata.location()
        && after.properties() == metadata.properties()
        && after.current_schema() == metadata.current_schema()
        && after.default_partition_spec() == metadata.default_partition_spec()
        && after.default_sort_order() == metadata.default_sort_order()
        && after.snapshots().len() == metadata.snapshots().len()
        && snapshot_refs(&after).ok() == snapshot_refs(metadata).ok()
}
