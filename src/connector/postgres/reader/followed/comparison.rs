//! What has become of tables since they were last looked at.

use std::collections::BTreeMap;

use super::catalog::SeenTable;
use super::{FollowedTable, Presence};
use crate::connector::postgres::reader::read_plan::DeclaredRead;
use crate::connector::postgres::row_shape::Metadata;

/// What was found, and what is still to be asked.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) now: BTreeMap<u32, FollowedTable>,
    /// What makes the written rows wrong.
    pub(super) losses: Vec<String>,
    /// What the user should know.
    pub(super) notices: Vec<String>,
    pub(super) joined: Vec<Joined>,
    pub(super) parted: Vec<Parted>,
}

/// A partition that a table did not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) oid: u32,
    /// The table's label.
    pub(super) table: String,
    pub(super) partition: u32,
}

/// Partitions that a table does not have any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parted {
    pub(super) oid: u32,
    /// The table's label.
    pub(super) table: String,
    pub(super) partitions: Vec<u32>,
}

impl Comparison {
    /// Compares what is known with what is seen. A table that nothing is known of is taken as it is.
    pub(super) fn new(
        known: &BTreeMap<u32, FollowedTable>,
        seen: &BTreeMap<u32, SeenTable>,
        readers: &BTreeMap<u32, Vec<&DeclaredRead>>,
        publication: &str,
    ) -> Comparison {
        let mut comparison = Comparison::default();
        for (oid, before) in known {
            let readers = readers.get(oid).map_or(&[][..], Vec::as_slice);
            let now = match seen.get(oid) {
                None => comparison.dropped(before),
                Some(seen) if readers.iter().any(|reader| seen.is_read_by(reader)) => {
                    comparison.there(*oid, before, seen, readers, publication)
                }
                Some(seen) => comparison.renamed(before, seen, readers),
            };
            comparison.now.insert(*oid, now);
        }
        for (oid, seen) in seen {
            let is_read =
                readers.get(oid).is_some_and(|readers| readers.iter().any(|it| seen.is_read_by(it)));
            if is_read && !known.contains_key(oid) {
                comparison.now.insert(*oid, seen.followed());
            }
        }
        comparison
    }

    fn dropped(&mut self, before: &FollowedTable) -> FollowedTable {
        if before.presence != Presence::Dropped {
            self.notices.push(format!("Table {} was dropped: what was written of it stays", before.label()));
        }
        FollowedTable { presence: Presence::Dropped, partitions: Vec::new(), ..before.clone() }
    }

    fn renamed(
        &mut self,
        before: &FollowedTable,
        seen: &SeenTable,
        readers: &[&DeclaredRead],
    ) -> FollowedTable {
        if before.is_there() {
            let readers: Vec<String> = readers.iter().map(|reader| format!("'{}'", reader.name)).collect();
            let (readers, label) = (readers.join(", "), before.label());
            // Where the table has its name still, it is the declaration that has changed.
            let (what, how) = match seen.label() == label {
                true => (
                    format!("Table {label} is not matched by {readers} any more, as that is declared now"),
                    "on",
                ),
                false => (
                    format!("Table {label} is {} now, which {readers} does not match", seen.label()),
                    "under that name",
                ),
            };
            self.notices.push(format!(
                "{what}: what was written of it stays, and its changes are not read any more. To read it {how}: let 'schema-name' and 'table-name' match it, SET 'lakehead.job.resume' = 'resnapshot', and start the job again"
            ));
        }
        FollowedTable { presence: Presence::Renamed, ..before.clone() }
    }

    fn there(
        &mut self,
        oid: u32,
        before: &FollowedTable,
        seen: &SeenTable,
        readers: &[&DeclaredRead],
        publication: &str,
    ) -> FollowedTable {
        let label = seen.label();
        let now = FollowedTable { former_partitions: before.former_partitions.clone(), ..seen.followed() };
        if !before.is_there() {
            self.losses.push(format!(
                "table {label} had a name that is not read for a while: what changed meanwhile may be lost"
            ));
            return now;
        }
        let tells_name = |metadata: &&Metadata| match metadata {
            Metadata::SchemaName => before.schema != seen.schema,
            Metadata::TableName => before.name != seen.name,
            _ => false,
        };
        if let Some(column) = readers.iter().flat_map(|reader| &reader.shape.metadata).find(tells_name) {
            self.losses.push(format!(
                "table {} is {label} now, and what was written of it has the earlier name in '{}'",
                before.label(),
                column.key()
            ));
        }
        // One that is not published at all now is told of as that.
        let has_both = !before.entries.is_empty() && !seen.entries.is_empty();
        if has_both && !before.entries.iter().any(|entry| seen.entries.contains(entry)) {
            self.losses.push(format!(
                "publication {publication} did not have table {label} for a while, or was made again: what changed meanwhile may be lost"
            ));
        }
        let not_in = |these: &[u32], those: &[u32]| -> Vec<u32> {
            these.iter().filter(|partition| those.binary_search(partition).is_err()).copied().collect()
        };
        let joined = not_in(&now.partitions, &before.partitions);
        self.joined.extend(joined.into_iter().map(|partition| Joined {
            oid,
            table: label.clone(),
            partition,
        }));
        let partitions = not_in(&before.partitions, &now.partitions);
        if !partitions.is_empty() {
            self.parted.push(Parted { oid, table: label, partitions });
        }
        now
    }
}
