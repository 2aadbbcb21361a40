//! Brings an index from the snapshot that it stands for to the table's current one.
//!
//! What the job's own commits have done is in the index since they were prepared, also before they landed; so of the snapshots since
//! the last look only others' matter, and of those only what the current one shows of them:
//!
//! * A data file that another has added is read as it is now, without the rows that are deleted by now. So it does not matter what was
//!   deleted from it in between and by whom: by a third writer, or by our own committer, which deletes the rows of keys that were
//!   being replaced while the file came.
//! * A known file from which another has deleted rows is read again in the same way.
//! * A file that has gone is dead, unless it is our own and has yet to land.
//!
//! Whether a file is news is told by sequence numbers: those up to the last snapshot's are known, and of the later ones those of our
//! own snapshots. A snapshot is our own if its marker names our lineage, or the one in which the checkpoint was made that the job has
//! gone on from, up to that checkpoint; those from before the index was begun anew are others' to it. What is not known to be our own
//! any more because it has expired is news: reading a file once more is never wrong. Where the last snapshot is not among the ancestors of the current one, the table was set back, and everything
//! is read anew.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::{cast, filter};
use arrow::datatypes::{Field, Schema};
use futures::TryStreamExt;
use iceberg::spec::{SnapshotRef, TableMetadata};

use super::key_positions::{KeyPositions, RowPosition};
use super::known_snapshot::{KnownSnapshot, Newer};
use super::row_identity::{Identified, RowIdentity};
use super::synced_groups::{Restored, Synced};
use crate::connector::iceberg::commit::{
    RESOLVED_DELETES, committed_checkpoint, is_committed, newest_commit,
};
use crate::connector::iceberg::scan::{LiveFile, live_files, read_keys};
use crate::connector::iceberg::snapshot_history::head;
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::type_mapping;
use crate::error::{Error, Result};
use crate::state::{ABSENT, GROUP_COUNT, owner};

/// How a job's commits are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lineage {
    /// Its name in markers.
    pub(super) name: String,
    /// The last checkpoint whose commits are in the index.
    pub(super) checkpoint: u64,
}

/// Which of the sink's writers an index belongs to.
#[derive(Debug, Clone)]
pub(super) struct Ownership {
    /// The number of the writer.
    pub(super) writer: usize,
    /// How many there are.
    pub(super) writer_count: usize,
}

impl Ownership {
    /// Returns the key groups that the writer owns.
    pub(super) fn groups(&self) -> impl Iterator<Item = u8> {
        (0..GROUP_COUNT as u8).filter(|group| self.owns(*group))
    }

    fn owns(&self, group: u8) -> bool {
        owner(group, self.writer_count) == self.writer
    }
}

/// What has been prepared and may not have landed.
#[derive(Debug)]
struct Pending {
    id: String,
    checkpoint: u64,
    /// Data files, by the hashes of their paths.
    files: HashSet<i64>,
    /// Rows that are taken away one by one, by the hashes of their files' paths: still in the table, and not in the index any more.
    retracted: Vec<(i64, u32)>,
}

/// What an index stands for.
#[derive(Debug)]
pub(super) struct IndexSync {
    /// None as long as the index holds only what was written or asked for.
    known: Option<KnownSnapshot>,
    own: Lineage,
    /// The lineage in which the checkpoint was made.
    restored: Option<Lineage>,
    /// The sequence number up to which commits of our lineages are as others' to the index: it was begun anew after them.
    begun_after: i64,
    pending: Vec<Pending>,
    ownership: Ownership,
    branch: Option<String>,
    /// Whether a position too many does harm: rows have no key, and one of several equal ones is to go.
    is_exact: bool,
    /// Whether a file was read again that the index knows, or may have known.
    has_reread: bool,
}

/// How the current snapshot follows the known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    /// It is the same.
    Same,
    /// Only our own snapshots are in between.
    Own,
    /// Others' are in between.
    Foreign,
    /// The known snapshot is not among its ancestors, or one of ours that came after it is not.
    Rewound,
}

impl IndexSync {
    /// Makes the record of an index that knows nothing yet. What its lineage has committed to the table so far is not in it, unless
    /// the index goes on from a checkpoint.
    pub(super) fn new(
        metadata: &TableMetadata,
        lineage: String,
        ownership: Ownership,
        branch: Option<String>,
        is_exact: bool,
    ) -> IndexSync {
        let own = Lineage { name: lineage, checkpoint: 0 };
        let is_own = |snapshot: &&SnapshotRef| {
            committed_checkpoint(snapshot).is_some_and(|(lineage, _)| lineage == own.name)
        };
        let earlier = metadata.snapshots().filter(is_own).map(|snapshot| snapshot.sequence_number());
        IndexSync {
            begun_after: earlier.max().unwrap_or_default(),
            known: None,
            own,
            restored: None,
            pending: Vec::new(),
            ownership,
            branch,
            is_exact,
            has_reread: false,
        }
    }

    /// Goes on from a checkpoint.
    pub(super) fn restore(&mut self, restored: Restored) {
        self.known = restored.known;
        self.begun_after = restored.begun_after;
        self.restored = restored.lineage;
    }

    /// Returns what the index stands for.
    pub(super) fn synced(&self) -> Synced {
        Synced { known: self.known, lineage: self.own.clone(), begun_after: self.begun_after }
    }

    /// Says that a checkpoint is being prepared: what our lineage has committed before is in the index, or has no rows of this writer.
    pub(super) fn begin(&mut self, checkpoint: u64) {
        self.own.checkpoint = checkpoint;
    }

    /// Notes what was prepared: data files that are in the index, and in no snapshot yet, and rows that are retracted. Where there are
    /// none there is nothing to wait for, and what comes to nothing is never committed.
    pub(super) fn prepared(
        &mut self,
        id: String,
        checkpoint: u64,
        files: HashSet<i64>,
        retracted: Vec<(i64, u32)>,
    ) {
        if !files.is_empty() || !retracted.is_empty() {
            self.pending.push(Pending { id, checkpoint, files, retracted });
        }
    }

    /// Forgets what has landed, or came to nothing: a lineage commits its checkpoints in order.
    fn forget_settled(&mut self, metadata: &TableMetadata) {
        if self.pending.is_empty() {
            return;
        }
        let lineage = &self.own.name;
        let newest = newest_commit(metadata, lineage);
        self.pending.retain(|pending| {
            newest.is_none_or(|newest| newest <= pending.checkpoint)
                && !is_committed(metadata, lineage, pending.checkpoint, &pending.id)
        });
    }

    /// Returns the rows that are taken away with what has not landed, by the hashes of their files' paths.
    fn retracted(&self) -> HashMap<i64, HashSet<u32>> {
        let mut retracted: HashMap<i64, HashSet<u32>> = HashMap::new();
        for (file, row) in self.pending.iter().flat_map(|pending| &pending.retracted) {
            retracted.entry(*file).or_default().insert(*row);
        }
        retracted
    }

    /// Returns whether the index holds positions that may not stay in it, and forgets that: they point into what a file held before it
    /// was read again.
    pub(super) fn take_reread(&mut self) -> bool {
        std::mem::take(&mut self.has_reread) && self.is_exact
    }

    /// Lets an index without rows stand for the current snapshot, all of which goes with the next commit, and returns that snapshot.
    pub(super) fn begin_empty(&mut self, metadata: &TableMetadata) -> KnownSnapshot {
        let now = KnownSnapshot::of(head(metadata, self.branch.as_deref()));
        self.known = Some(now);
        now
    }

    /// Brings an index up to date, and returns the snapshot that was looked at. If it is not complete yet, and keys are wanted, only
    /// what the table holds of them is added, and the index is as incomplete as before.
    ///
    /// # Errors
    /// The table cannot be read.
    pub(super) async fn bring(
        &mut self,
        table: &IcebergTable,
        index: &mut KeyPositions,
        identity: &RowIdentity,
        wanted: Option<&[u32]>,
    ) -> Result<KnownSnapshot> {
        let metadata = table.metadata();
        self.forget_settled(metadata);
        let head = head(metadata, self.branch.as_deref());
        let history = self.history(metadata, head);
        let now = KnownSnapshot::of(head);
        if matches!(history, History::Same | History::Own) && !index.files.has_unlocated() {
            self.known = Some(now);
            return Ok(now);
        }
        if history == History::Rewound {
            tracing::warn!(table = %table.ident(), "the table was set back: its keys are read anew");
        }
        let live = match now.id {
            Some(id) => live_files(table, Some(id)).await?,
            None => Vec::new(),
        };
        let news = self.news(metadata, live, index, history);
        let wanted = wanted.filter(|_| self.known.is_none() && !news.is_empty());
        let rows = NewRows { files: news, retracted: self.retracted() };
        read_into(table, rows, index, identity, &self.ownership, wanted).await?;
        if wanted.is_none() {
            self.known = Some(now);
        }
        Ok(now)
    }

    fn history(&self, metadata: &TableMetadata, head: Option<&SnapshotRef>) -> History {
        // An index that knows nothing yet has nothing to be set back from.
        let Some(known) = self.known else { return History::Foreign };
        match known.newer(metadata, head) {
            Newer::Rewound => History::Rewound,
            Newer::Snapshots(newer) if self.has_lost(metadata, known, &newer) => History::Rewound,
            Newer::Expired => History::Foreign,
            Newer::Snapshots(newer) if newer.is_empty() => History::Same,
            Newer::Snapshots(newer) if newer.iter().all(|snapshot| self.is_own(snapshot)) => History::Own,
            Newer::Snapshots(_) => History::Foreign,
        }
    }

    /// Returns whether a commit of ours that is in the index has been taken back: it came after the known snapshot, and is not among
    /// those that follow it now.
    fn has_lost(&self, metadata: &TableMetadata, known: KnownSnapshot, newer: &[&SnapshotRef]) -> bool {
        let follows =
            |snapshot: &SnapshotRef| newer.iter().any(|newer| newer.snapshot_id() == snapshot.snapshot_id());
        let mut snapshots = metadata.snapshots();
        snapshots.any(|snapshot| {
            snapshot.sequence_number() > known.sequence_number && self.is_own(snapshot) && !follows(snapshot)
        })
    }

    fn is_own(&self, snapshot: &SnapshotRef) -> bool {
        let Some((lineage, checkpoint)) = committed_checkpoint(snapshot) else { return false };
        let is_of = |of: &Lineage| of.name == lineage && checkpoint <= of.checkpoint;
        snapshot.sequence_number() > self.begun_after
            && (is_of(&self.own) || self.restored.as_ref().is_some_and(is_of))
    }

    /// Lets files that mean nothing any more die, and returns those that have to be read.
    fn news(
        &mut self,
        metadata: &TableMetadata,
        live: Vec<LiveFile>,
        index: &mut KeyPositions,
        history: History,
    ) -> Vec<LiveFile> {
        let is_rewound = history == History::Rewound;
        let known = self.known.filter(|_| !is_rewound).map_or(-1, |known| known.sequence_number);
        let own: HashSet<i64> = metadata
            .snapshots()
            .filter(|snapshot| !is_rewound && snapshot.sequence_number() > known && self.is_own(snapshot))
            .map(|snapshot| snapshot.sequence_number())
            .collect();
        let is_news = |sequence_number: i64| sequence_number > known && !own.contains(&sequence_number);
        // Where positions have to be exact, what our committer has deleted beyond what was prepared is news, too.
        let resolved: HashSet<i64> = metadata
            .snapshots()
            .filter(|snapshot| self.is_exact && own.contains(&snapshot.sequence_number()))
            .filter(|snapshot| snapshot.summary().additional_properties.contains_key(RESOLVED_DELETES))
            .map(|snapshot| snapshot.sequence_number())
            .collect();
        let is_deleted =
            |sequence_number: i64| is_news(sequence_number) || resolved.contains(&sequence_number);
        let is_pending = |hash| self.pending.iter().any(|pending| pending.files.contains(&hash));
        let mut gone: HashSet<u32> = index.files.live().into_iter().collect();
        gone.retain(|number| !is_pending(index.files.hash(*number)));
        let mut news = Vec::new();
        // A table that was set back may show files again that were gone.
        let mut has_reread = is_rewound;
        for file in live {
            let number = index.files.number_of(file.data.file.file_path());
            if is_news(file.file_sequence_number) || (number.is_some() && has_deletes(&file, &is_deleted)) {
                has_reread |= number.is_some();
                news.push(file);
            } else if let Some(number) = number {
                index.files.locate(number, &file.data);
                gone.remove(&number);
            }
        }
        // Before the files that take their place are read, so that positions are replaced, not added.
        gone.into_iter().for_each(|number| index.files.kill(number));
        self.has_reread |= has_reread;
        news
    }
}

/// Returns whether one of the deletes that apply to a file is news.
pub(super) fn has_deletes(file: &LiveFile, is_news: &impl Fn(i64) -> bool) -> bool {
    let by_position = file.deletes.vector.iter().chain(&file.deletes.positions);
    let by_equality = file.deletes.equality.iter().flat_map(|group| &group.files);
    by_position.chain(by_equality).any(|delete| is_news(delete.sequence_number))
}

/// Rows that are to be read into an index.
struct NewRows {
    /// The files that hold them.
    files: Vec<LiveFile>,
    /// Those that are not: what will take them away has not landed.
    retracted: HashMap<i64, HashSet<u32>>,
}

/// Reads files into an index: all rows that the writer owns, or those of keys that are wanted.
async fn read_into(
    table: &IcebergTable,
    NewRows { files, retracted }: NewRows,
    index: &mut KeyPositions,
    identity: &RowIdentity,
    ownership: &Ownership,
    wanted: Option<&[u32]>,
) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    // A row hash says nothing of what is in a file.
    let keys = match wanted.filter(|_| identity.is_key()) {
        Some(slots) => Some(wanted_keys(table, identity, index.keys(slots)?)?),
        None => None,
    };
    let numbers: Vec<u32> = files.iter().map(|file| index.files.add(&file.data)).collect();
    let mut rows = read_keys(table, files.into(), &identity.ids(), keys);
    let mut slots = Vec::new();
    while let Some(read) = rows.try_next().await? {
        let identified = identity.of_read(read.keys.columns(), read.keys.num_rows())?;
        let file = numbers[read.file];
        let retracted = retracted.get(&index.files.hash(file));
        let (identified, positions) = kept(identity, identified, read.positions, ownership, retracted)?;
        match wanted {
            Some(_) => index.find(&identified, &mut slots)?,
            None => index.intern(&identified, &mut slots)?,
        }
        for (slot, position) in slots.iter().zip(positions.values()) {
            if *slot != ABSENT {
                index.add(*slot, RowPosition { file, row: row_number(*position)? });
            }
        }
    }
    Ok(())
}

/// Returns a row's position as an index keeps it.
pub(super) fn row_number(position: i64) -> Result<u32> {
    let number = u32::try_from(position).ok().filter(|number| *number < ABSENT);
    number.ok_or_else(|| {
        Error::unsupported(
            "the table has a data file of more than 4 billion rows, which cannot be upserted into",
        )
        .hint("Rewrite its files to smaller ones first.")
    })
}

/// Leaves out the rows that belong to other writers, and those that are retracted.
fn kept(
    identity: &RowIdentity,
    rows: Identified,
    positions: Int64Array,
    ownership: &Ownership,
    retracted: Option<&HashSet<u32>>,
) -> Result<(Identified, Int64Array)> {
    if ownership.writer_count == 1 && retracted.is_none() {
        return Ok((rows, positions));
    }
    let groups = match &rows.groups {
        Some(groups) => groups.clone(),
        None => identity.groups(&rows.keys, rows.hashes.len())?,
    };
    let is_retracted = |position: i64| {
        retracted.is_some_and(|rows| u32::try_from(position).is_ok_and(|row| rows.contains(&row)))
    };
    let is_kept = |(group, position): (&u8, &i64)| Some(ownership.owns(*group) && !is_retracted(*position));
    let mask: BooleanArray = groups.iter().zip(positions.values()).map(is_kept).collect();
    let keep = |column: &ArrayRef| filter(column, &mask);
    let kept = |row: &usize| mask.value(*row);
    let hashes = (0..groups.len()).filter(kept).map(|row| rows.hashes[row]).collect();
    let kept_groups = || (0..groups.len()).filter(kept).map(|row| groups[row]).collect();
    let groups = rows.groups.is_some().then(kept_groups);
    let keys = rows.keys.iter().map(keep).collect::<Result<Vec<_>, _>>()?;
    let positions = Int64Array::from(filter(&positions, &mask)?.to_data());
    Ok((Identified { keys, hashes, groups }, positions))
}

/// Returns keys as the table's files have them now, to be looked for there.
///
/// # Errors
/// A column of the key is gone.
pub(super) fn wanted_keys(
    table: &IcebergTable,
    identity: &RowIdentity,
    keys: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    let schema = table.metadata().current_schema();
    let column = |(id, values): (i32, ArrayRef)| {
        let field = schema.field_by_id(id).ok_or_else(|| {
            Error::validation(format!("a column of the key of Iceberg table '{}' was dropped", table.ident()))
        })?;
        let data_type = type_mapping::to_flink(&field.field_type, field.required).to_arrow();
        let values = cast(&values, &data_type)?;
        Ok((Field::new(&field.name, data_type, true), values))
    };
    let columns = identity.ids().into_iter().zip(keys).map(column).collect::<Result<Vec<_>>>()?;
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Layout, Warehouse};
    use super::*;

    #[tokio::test]
    async fn what_has_no_data_files_is_not_waited_for() {
        let table = Warehouse::new(&Layout::default()).await.table().await;
        let ownership = Ownership { writer: 0, writer_count: 1 };
        let mut sync = IndexSync::new(table.metadata(), "job".to_owned(), ownership, None, false);
        sync.prepared("deletes".to_owned(), 1, HashSet::new(), Vec::new());
        assert!(sync.pending.is_empty());
        sync.prepared("rows".to_owned(), 2, HashSet::from([7]), Vec::new());
        assert_eq!(sync.pending.len(), 1);
    }
}
