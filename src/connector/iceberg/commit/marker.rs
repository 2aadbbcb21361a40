//! What a snapshot says of the checkpoint that it belongs to, so that nothing is committed twice.
//!
//! It is told in two places: the summary of the snapshot, for those who read the table's history, and a property of the table, which
//! stays when snapshots expire. Both come with the same commit. A lineage is one run of a sink with all its restarts; only its last
//! commit is in the property, and it goes when the job ends.

use std::collections::{BTreeSet, HashMap};

use iceberg::spec::{Snapshot, TableMetadata};

use super::SnapshotChange;
use super::commit_loop::{MetadataChange, commit_updates};
use crate::connector::iceberg::table::IcebergTable;
use crate::error::{Error, Result};

const LINEAGE: &str = "lakehead.lineage";
const CHECKPOINT: &str = "lakehead.checkpoint";
const COMMIT_IDS: &str = "lakehead.commit-ids";
const SOURCE_POSITION: &str = "lakehead.source-position";
const FLINK_JOB_ID: &str = "flink.job-id";
const FLINK_OPERATOR_ID: &str = "flink.operator-id";
const FLINK_CHECKPOINT: &str = "flink.max-committed-checkpoint-id";

/// Begins the properties in which lineages note what they have committed.
pub(in crate::connector::iceberg) const COMMITTED_PREFIX: &str = "lakehead.committed.";

/// How many rows a commit has deleted beyond what was prepared for it, because others had committed in between.
pub(in crate::connector::iceberg) const RESOLVED_DELETES: &str = "lakehead.resolved-deletes";

/// Limit: summaries are read with every load of the table, one for each snapshot; a longer position is left out. Nothing is
/// restored from it, it tells people how far the sources were.
const SOURCE_POSITION_BYTES_MAX: usize = 4096;

/// Which checkpoint of which run of a sink a snapshot belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::iceberg) struct CommitMarker {
    /// One run of a sink: see `lineage_of`.
    pub(in crate::connector::iceberg) lineage: String,
    /// The checkpoint.
    pub(in crate::connector::iceberg) checkpoint: u64,
    /// The committables in it. Ids hold neither commas nor spaces.
    pub(in crate::connector::iceberg) commit_ids: Vec<String>,
    /// Flink's name of the job.
    pub(in crate::connector::iceberg) job_id: String,
    /// Flink's name of the sink in it.
    pub(in crate::connector::iceberg) operator_id: String,
    /// How far the sources had read, as JSON. Left out of the snapshot if it is longer than 4 KB.
    pub(in crate::connector::iceberg) source_position: Option<String>,
    /// Whether the property is kept, too: somebody may go on with the job, and ask.
    pub(in crate::connector::iceberg) keeps_property: bool,
    /// The number of the checkpoint as Flink tells it; its batch jobs have none, and tell the largest.
    pub(in crate::connector::iceberg) flink_checkpoint: i64,
}

/// Makes the name of a lineage out of a sink's id, so that it can stand in a property. Different ids have different names.
pub(in crate::connector::iceberg) fn lineage_of(sink_id: &str) -> String {
    let mut lineage = String::with_capacity(sink_id.len());
    for byte in sink_id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            lineage.push(char::from(byte));
        } else {
            lineage.push_str(&format!("~{byte:02x}"));
        }
    }
    lineage
}

impl CommitMarker {
    /// Puts the marker into a change. `metadata` is that of the table that the change is made for: what was committed for the same
    /// checkpoint before stays in the property.
    ///
    /// # Errors
    /// An id cannot stand in a list.
    pub(in crate::connector::iceberg) fn mark(
        &self,
        metadata: &TableMetadata,
        change: &mut SnapshotChange,
    ) -> Result<()> {
        if let Some(id) =
            self.commit_ids.iter().find(|id| id.is_empty() || id.contains([',', ' ', '\n', '\t']))
        {
            return Err(Error::internal(format!("'{id}' cannot be the id of a committable")));
        }
        if self.keeps_property {
            let property = self.property(metadata);
            change.properties.insert(committed_key(&self.lineage), property);
        }
        let mut set = |key: &str, value: String| change.summary.insert(key.to_owned(), value);
        set(LINEAGE, self.lineage.clone());
        set(CHECKPOINT, self.checkpoint.to_string());
        set(COMMIT_IDS, self.commit_ids.join(","));
        set(FLINK_JOB_ID, self.job_id.clone());
        set(FLINK_OPERATOR_ID, self.operator_id.clone());
        set(FLINK_CHECKPOINT, self.flink_checkpoint.to_string());
        if let Some(position) =
            self.source_position.as_ref().filter(|json| json.len() <= SOURCE_POSITION_BYTES_MAX)
        {
            set(SOURCE_POSITION, position.clone());
        }
        Ok(())
    }

    /// Returns what the property says with this commit.
    fn property(&self, metadata: &TableMetadata) -> String {
        let mut committed: BTreeSet<&str> = self.commit_ids.iter().map(String::as_str).collect();
        if let Some((checkpoint, ids)) = committed_property(metadata, &self.lineage)
            && checkpoint == self.checkpoint
        {
            committed.extend(ids);
        }
        let committed: Vec<&str> = committed.into_iter().collect();
        format!("{} {}", self.checkpoint, committed.join(","))
    }
}

/// Returns the property in which a lineage notes what it has committed.
pub(in crate::connector::iceberg) fn committed_key(lineage: &str) -> String {
    format!("{COMMITTED_PREFIX}{lineage}")
}

/// Returns whether a committable has landed in a table: its id stands in the property or in the summary of any snapshot, also of one
/// that the table was rolled back from. Where snapshots have expired, a later checkpoint of the same lineage tells it, as a lineage
/// commits its checkpoints in order.
pub(in crate::connector::iceberg) fn is_committed(
    metadata: &TableMetadata,
    lineage: &str,
    checkpoint: u64,
    id: &str,
) -> bool {
    let property = committed_property(metadata, lineage);
    if let Some((committed, ids)) = &property
        && (ids.contains(&id) || (*committed > checkpoint && history_has_expired(metadata)))
    {
        return true;
    }
    committed_snapshot(metadata, lineage, id).is_some()
}

/// Returns the snapshot in which a committable has landed, if it is still there.
pub(super) fn committed_snapshot(metadata: &TableMetadata, lineage: &str, id: &str) -> Option<i64> {
    let holds = |summary: &HashMap<String, String>| {
        summary.get(LINEAGE).is_some_and(|other| other == lineage)
            && summary.get(COMMIT_IDS).is_some_and(|ids| ids.split(',').any(|other| other == id))
    };
    let mut snapshots = metadata.snapshots();
    snapshots
        .find(|snapshot| holds(&snapshot.summary().additional_properties))
        .map(|snapshot| snapshot.snapshot_id())
}

/// Returns the lineage and the checkpoint that a snapshot belongs to, if it is one of a sink.
pub(in crate::connector::iceberg) fn committed_checkpoint(snapshot: &Snapshot) -> Option<(&str, u64)> {
    let summary = &snapshot.summary().additional_properties;
    Some((summary.get(LINEAGE)?, summary.get(CHECKPOINT)?.parse().ok()?))
}

/// Returns the last checkpoint of a lineage that has landed in a table, as far as the table still tells.
pub(in crate::connector::iceberg) fn newest_commit(metadata: &TableMetadata, lineage: &str) -> Option<u64> {
    let property = committed_property(metadata, lineage).map(|(checkpoint, _)| checkpoint);
    let marked = metadata.snapshots().filter_map(|snapshot| committed_checkpoint(snapshot));
    let marked = marked.filter(|(of, _)| *of == lineage).map(|(_, checkpoint)| checkpoint);
    marked.chain(property).max()
}

/// Removes what the property says of a lineage, once its job has ended.
///
/// # Errors
/// The table cannot be changed.
pub(in crate::connector::iceberg) async fn forget(
    table: &IcebergTable,
    lineage: &str,
) -> Result<IcebergTable> {
    let property = committed_key(lineage);
    commit_updates(table, &mut |table: &IcebergTable| {
        let is_there = table.metadata().properties().contains_key(&property);
        Ok(is_there.then(|| MetadataChange::remove_properties([property.clone()])))
    })
    .await
}

/// Returns what the property says: the last checkpoint of a lineage, and its committables.
fn committed_property<'a>(metadata: &'a TableMetadata, lineage: &str) -> Option<(u64, Vec<&'a str>)> {
    let value = metadata.properties().get(&committed_key(lineage))?;
    let (checkpoint, ids) = value.split_once(' ').unwrap_or((value, ""));
    Some((checkpoint.parse().ok()?, ids.split(',').filter(|id| !id.is_empty()).collect()))
}

/// Returns whether snapshots have gone: one that is there came after one that is not.
fn history_has_expired(metadata: &TableMetadata) -> bool {
    let is_gone = |parent: i64| metadata.snapshot_by_id(parent).is_none();
    let mut snapshots = metadata.snapshots();
    snapshots.any(|snapshot| snapshot.parent_snapshot_id().is_some_and(is_gone))
}
