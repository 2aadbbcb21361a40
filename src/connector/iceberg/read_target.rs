//! Which rows of a table a read is about: those of a snapshot, or those that a range of snapshots has appended.
//!
//! Whatever is chosen, columns are those that the table has now: one that was added later is NULL in older rows.

use std::collections::BTreeSet;

use chrono::{DateTime, SecondsFormat};
use iceberg::spec::{MAIN_BRANCH, Operation, SnapshotRef, TableMetadata};

use super::read_options::{RangeEnd, ReadOptions, illegal};
use super::snapshot_history::ancestors;
use super::snapshot_refs::snapshot_refs;
use crate::error::{Error, Result};

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadTarget {
    /// Nothing: the table has no snapshot yet.
    Nothing,
    /// All rows of a snapshot.
    Snapshot(i64),
    /// The rows that some snapshots have appended. What was deleted since is read all the same.
    Appends(BTreeSet<i64>),
}

impl ReadTarget {
    /// Chooses all rows that the table has now.
    pub(super) fn current(metadata: &TableMetadata) -> ReadTarget {
        match metadata.current_snapshot() {
            Some(snapshot) => ReadTarget::Snapshot(snapshot.snapshot_id()),
            None => ReadTarget::Nothing,
        }
    }

    /// Finds what the options choose.
    ///
    /// # Errors
    /// There is no such snapshot, branch or tag, options exclude each other, or a range has snapshots that did more than append.
    pub(super) fn choose(options: &ReadOptions, metadata: &TableMetadata, table: &str) -> Result<ReadTarget> {
        let chooser = Chooser { metadata, table };
        if options.is_range() { chooser.range(options) } else { chooser.snapshot(options) }
    }
}

/// Finds snapshots of one table.
struct Chooser<'a> {
    metadata: &'a TableMetadata,
    table: &'a str,
}

impl<'a> Chooser<'a> {
    /// Finds the snapshot. Flink differs: where several ways to name it are given, it passes over all but one.
    fn snapshot(&self, options: &ReadOptions) -> Result<ReadTarget> {
        let branch = options.branch.as_deref().filter(|branch| *branch != MAIN_BRANCH);
        let other = options.tag.as_deref().or(branch);
        if let (Some(id), Some(other)) = (options.snapshot_id, other) {
            return Err(illegal(format!("Cannot use ref '{other}', already set snapshot id={id}"))
                .hint("Give either a snapshot, a tag or a branch."));
        }
        if let (Some(tag), Some(branch)) = (&options.tag, branch) {
            return Err(illegal(format!("Cannot use branch '{branch}', already set tag '{tag}'"))
                .hint("Give either a snapshot, a tag or a branch."));
        }
        let chosen = match (options.snapshot_id, &options.tag, &options.branch) {
            (Some(id), ..) => Some(self.by_id(id, "Cannot find snapshot with ID")?.snapshot_id()),
            (None, Some(name), _) | (None, None, Some(name)) if name != MAIN_BRANCH => {
                Some(self.by_ref(name, "Cannot find ref")?.snapshot_id())
            }
            _ => None,
        };
        match (chosen, options.as_of_timestamp) {
            (Some(id), Some(_)) => {
                Err(illegal(format!("Cannot override snapshot, already set snapshot id={id}"))
                    .hint("Give either a time or a snapshot, branch or tag."))
            }
            (Some(id), None) => Ok(ReadTarget::Snapshot(id)),
            (None, Some(time)) => Ok(ReadTarget::Snapshot(self.as_of(time)?.snapshot_id())),
            (None, None) => Ok(ReadTarget::current(self.metadata)),
        }
    }

    fn by_id(&self, id: i64, message: &str) -> Result<&'a SnapshotRef> {
        self.metadata
            .snapshot_by_id(id)
            .ok_or_else(|| illegal(format!("{message} {id}")).hint(self.hint_of_snapshots()))
    }

    fn by_ref(&self, name: &str, message: &str) -> Result<&'a SnapshotRef> {
        self.metadata
            .snapshot_for_ref(name)
            .ok_or_else(|| illegal(format!("{message} {name}")).hint(self.hint_of_refs()))
    }

    /// Finds the snapshot that was the current one at a time.
    fn as_of(&self, time: i64) -> Result<&'a SnapshotRef> {
        let entry = self.metadata.history().iter().rev().find(|entry| entry.timestamp_ms <= time);
        let Some(entry) = entry else {
            let text = DateTime::from_timestamp_millis(time)
                .map_or_else(|| time.to_string(), |time| instant_text(&time));
            return Err(
                illegal(format!("Cannot find a snapshot older than {text}")).hint(self.hint_of_snapshots())
            );
        };
        self.by_id(entry.snapshot_id, "Cannot find snapshot with ID")
    }

    /// Finds the appends between two snapshots, the first one excluded.
    fn range(&self, options: &ReadOptions) -> Result<ReadTarget> {
        let others = [
            ("snapshot-id", options.snapshot_id.is_some()),
            ("as-of-timestamp", options.as_of_timestamp.is_some()),
            ("tag", options.tag.is_some()),
        ];
        if let Some((other, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(illegal(format!("'{other}' cannot be combined with a range of snapshots"))
                .hint("Give either the range or the snapshot."));
        }
        let end = match (&options.end, options.branch.as_deref().filter(|branch| *branch != MAIN_BRANCH)) {
            (Some(RangeEnd::Snapshot(id)), _) => self.by_id(*id, "Cannot find the end snapshot:")?,
            (Some(RangeEnd::Tag(tag)), _) => self.by_ref(tag, "Cannot find snapshot with tag")?,
            (None, Some(branch)) => self.by_ref(branch, "Cannot find ref")?,
            (None, None) => self
                .metadata
                .current_snapshot()
                .ok_or_else(|| illegal("End snapshot is not set and table has no current snapshot"))?,
        };
        let start = match &options.start {
            Some(RangeEnd::Snapshot(id)) => Some(*id),
            Some(RangeEnd::Tag(tag)) => {
                Some(self.by_ref(tag, "Cannot find snapshot with tag")?.snapshot_id())
            }
            None => None,
        };
        self.appends(start, end)
    }

    /// Collects the appends among a snapshot and its ancestors, down to `start`.
    fn appends(&self, start: Option<i64>, end: &'a SnapshotRef) -> Result<ReadTarget> {
        let mut appends = BTreeSet::new();
        for snapshot in ancestors(self.metadata, Some(end)) {
            match snapshot.summary().operation {
                Operation::Append => {
                    appends.insert(snapshot.snapshot_id());
                }
                // The rows are the same, in other files.
                Operation::Replace => {}
                Operation::Overwrite | Operation::Delete => {
                    return Err(self.not_appended(snapshot));
                }
            }
            if start.is_some() && snapshot.parent_snapshot_id() == start {
                return Ok(ReadTarget::Appends(appends));
            }
        }
        match start {
            None => Ok(ReadTarget::Appends(appends)),
            Some(start) => Err(illegal(format!(
                "Starting snapshot (exclusive) {start} is not a parent ancestor of end snapshot {}",
                end.snapshot_id()
            ))
            .hint(self.hint_of_snapshots())),
        }
    }

    /// Makes the error for a snapshot whose changes are not only rows that came. Flink passes over such snapshots in silence.
    fn not_appended(&self, snapshot: &SnapshotRef) -> Error {
        let (id, operation) = (snapshot.snapshot_id(), snapshot.summary().operation.as_str());
        Error::unsupported(format!(
            "snapshot {id} of table '{}' cannot be read as appended rows: it is of kind '{operation}'",
            self.table
        ))
        .hint("Choose a range that holds only appends, or read whole snapshots with 'snapshot-id'.")
    }

    fn hint_of_snapshots(&self) -> String {
        let count = self.metadata.snapshots().len();
        match count {
            0 => format!("Table '{}' has no snapshots yet.", self.table),
            _ => format!(
                "SELECT snapshot_id, committed_at FROM {} lists the {count} there are.",
                self.snapshots_table()
            ),
        }
    }

    fn hint_of_refs(&self) -> String {
        let names = match snapshot_refs(self.metadata) {
            Ok(refs) if !refs.is_empty() => refs.into_keys().collect::<Vec<_>>(),
            _ => vec![MAIN_BRANCH.to_owned()],
        };
        format!("There are {}.", names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "))
    }

    /// Writes the name of the table's metadata table of snapshots as in a query.
    fn snapshots_table(&self) -> String {
        let (path, name) = self.table.rsplit_once('.').unwrap_or(("", self.table));
        // What a metadata table is asked about is the table behind it.
        let name = name.split_once('$').map_or(name, |(table, _)| table);
        let path: String =
            path.split('.').filter(|part| !part.is_empty()).map(|part| format!("`{part}`.")).collect();
        format!("{path}`{name}$snapshots`")
    }
}

/// Writes an instant as Iceberg's messages do: fractions only where there are some.
fn instant_text(time: &DateTime<chrono::Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, false)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A table whose snapshots 1, 2, … were made one second apart, each the child of the one before.
    fn table(operations: &[&str], refs: Value) -> TableMetadata {
        let snapshots: Vec<Value> = operations
            .iter()
            .enumerate()
            .map(|(at, operation)| {
                let id = at + 1;
                let mut snapshot = json!({
                    "snapshot-id": id, "sequence-number": id, "timestamp-ms": id * 1000, "schema-id": 0,
                    "manifest-list": format!("file:/t/{id}.avro"), "summary": {"operation": operation},
                });
                if at > 0 {
                    snapshot["parent-snapshot-id"] = json!(at);
                }
                snapshot
            })
            .collect();
        let log: Vec<Value> =
            (1..=operations.len()).map(|id| json!({"snapshot-id": id, "timestamp-ms": id * 1000})).collect();
        let mut metadata = json!({
            "format-version": 2, "table-uuid": "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94", "location": "file:/t",
            "last-sequence-number": operations.len(), "last-updated-ms": operations.len() * 1000,
            "last-column-id": 1, "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "id", "required": false, "type": "long"}]}],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
            "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
            "snapshots": snapshots, "snapshot-log": log, "refs": refs,
        });
        if !operations.is_empty() {
            metadata["current-snapshot-id"] = json!(operations.len());
        }
        serde_json::from_value(metadata).unwrap()
    }

    fn appended(count: usize) -> TableMetadata {
        let refs = json!({
            "main": {"snapshot-id": count, "type": "branch"},
            "b1": {"snapshot-id": 2, "type": "branch"},
            "t1": {"snapshot-id": 1, "type": "tag"},
        });
        table(&vec!["append"; count], refs)
    }

    fn choose(metadata: &TableMetadata, options: ReadOptions) -> Result<ReadTarget> {
        ReadTarget::choose(&options, metadata, "c.d.t")
    }

    fn message(metadata: &TableMetadata, options: ReadOptions) -> String {
        let error = choose(metadata, options).unwrap_err();
        assert_eq!(error.flink_class(), crate::error::FlinkClass::ILLEGAL_ARGUMENT);
        error.message().to_owned()
    }

    fn text(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_snapshot_is_named_in_one_way() {
        let metadata = appended(3);
        let current = choose(&metadata, ReadOptions::default()).unwrap();
        assert_eq!(current, ReadTarget::Snapshot(3));
        for (snapshot_id, tag, branch, expected) in [
            (Some(2), None, text("main"), 2),
            (None, text("t1"), text("main"), 1),
            (None, None, text("b1"), 2),
            (None, text("b1"), None, 2),
            (None, None, text("main"), 3),
        ] {
            let options = ReadOptions { snapshot_id, tag, branch, ..ReadOptions::default() };
            assert_eq!(choose(&metadata, options).unwrap(), ReadTarget::Snapshot(expected));
        }
        for (snapshot_id, tag, branch, expected) in [
            (Some(3), text("t1"), None, "Cannot use ref 't1', already set snapshot id=3"),
            (Some(3), None, text("b1"), "Cannot use ref 'b1', already set snapshot id=3"),
            (None, text("t1"), text("b1"), "Cannot use branch 'b1', already set tag 't1'"),
        ] {
            let options = ReadOptions { snapshot_id, tag, branch, ..ReadOptions::default() };
            assert_eq!(message(&metadata, options), expected);
        }
    }

    #[test]
    fn a_time_chooses_what_was_current_then() {
        let metadata = appended(3);
        for (time, expected) in [(1000, 1), (2999, 2), (3000, 3), (99_000, 3)] {
            let options = ReadOptions { as_of_timestamp: Some(time), ..ReadOptions::default() };
            assert_eq!(choose(&metadata, options).unwrap(), ReadTarget::Snapshot(expected), "{time}");
        }
        let early = |time| ReadOptions { as_of_timestamp: Some(time), ..ReadOptions::default() };
        assert_eq!(
            message(&metadata, early(0)),
            "Cannot find a snapshot older than 1970-01-01T00:00:00+00:00"
        );
        assert_eq!(
            message(&metadata, early(7)),
            "Cannot find a snapshot older than 1970-01-01T00:00:00.007+00:00"
        );
        let both = ReadOptions { tag: text("t1"), ..early(3000) };
        assert_eq!(message(&metadata, both), "Cannot override snapshot, already set snapshot id=1");
        let main = ReadOptions { branch: text("main"), ..early(2000) };
        assert_eq!(choose(&metadata, main).unwrap(), ReadTarget::Snapshot(2));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_there_is() {
        let metadata = appended(3);
        let unknown = ReadOptions { snapshot_id: Some(9), ..ReadOptions::default() };
        let error = choose(&metadata, unknown).unwrap_err();
        assert_eq!(error.message(), "Cannot find snapshot with ID 9");
        assert_eq!(
            error.hint_text(),
            Some("SELECT snapshot_id, committed_at FROM `c`.`d`.`t$snapshots` lists the 3 there are.")
        );
        let error =
            choose(&metadata, ReadOptions { branch: text("nope"), ..ReadOptions::default() }).unwrap_err();
        assert_eq!(error.message(), "Cannot find ref nope");
        assert_eq!(error.hint_text(), Some("There are 'b1', 'main', 't1'."));
    }

    #[test]
    fn a_table_without_snapshots_has_no_rows_now_and_none_earlier() {
        let metadata = table(&[], json!({}));
        assert_eq!(choose(&metadata, ReadOptions::default()).unwrap(), ReadTarget::Nothing);
        let main = ReadOptions { branch: text("main"), ..ReadOptions::default() };
        assert_eq!(choose(&metadata, main).unwrap(), ReadTarget::Nothing);
        let early = ReadOptions { as_of_timestamp: Some(1), ..ReadOptions::default() };
        assert!(message(&metadata, early).starts_with("Cannot find a snapshot older than"));
        let range = ReadOptions { start: Some(RangeEnd::Snapshot(1)), ..ReadOptions::default() };
        assert_eq!(message(&metadata, range), "End snapshot is not set and table has no current snapshot");
    }

    #[test]
    fn a_range_excludes_its_start_and_includes_its_end() {
        let metadata = appended(4);
        let range = |start: Option<RangeEnd>, end: Option<RangeEnd>| {
            let options = ReadOptions { start, end, ..ReadOptions::default() };
            choose(&metadata, options)
        };
        let appends = |ids: &[i64]| ReadTarget::Appends(ids.iter().copied().collect());
        let id = |id| Some(RangeEnd::Snapshot(id));
        assert_eq!(range(id(1), id(3)).unwrap(), appends(&[2, 3]));
        assert_eq!(range(id(2), None).unwrap(), appends(&[3, 4]));
        assert_eq!(range(None, id(2)).unwrap(), appends(&[1, 2]));
        assert_eq!(range(Some(RangeEnd::Tag("t1".to_owned())), id(2)).unwrap(), appends(&[2]));
        let branch = ReadOptions { start: id(1), branch: text("b1"), ..ReadOptions::default() };
        assert_eq!(choose(&metadata, branch).unwrap(), appends(&[2]), "up to the branch's last");
        assert_eq!(range(id(1), id(9)).unwrap_err().message(), "Cannot find the end snapshot: 9");
        assert_eq!(
            range(id(3), id(2)).unwrap_err().message(),
            "Starting snapshot (exclusive) 3 is not a parent ancestor of end snapshot 2"
        );
        let both = ReadOptions { start: id(1), snapshot_id: Some(2), ..ReadOptions::default() };
        assert_eq!(message(&metadata, both), "'snapshot-id' cannot be combined with a range of snapshots");
    }

    #[test]
    fn a_range_over_more_than_appends_is_refused_and_compaction_is_none() {
        let metadata = table(&["append", "replace", "append", "overwrite"], json!({}));
        let until = |id| ReadOptions {
            start: Some(RangeEnd::Snapshot(1)),
            end: Some(RangeEnd::Snapshot(id)),
            ..ReadOptions::default()
        };
        assert_eq!(choose(&metadata, until(3)).unwrap(), ReadTarget::Appends([3].into()));
        let error = choose(&metadata, until(4)).unwrap_err();
        assert_eq!(
            error.message(),
            "snapshot 4 of table 'c.d.t' cannot be read as appended rows: it is of kind 'overwrite'"
        );
        assert!(error.hint_text().is_some());
    }
}
