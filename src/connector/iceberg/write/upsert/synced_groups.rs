//! Which snapshot an index stands for, as a checkpoint keeps it: a row per key group, since the next run may deal them out in another
//! way.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt8Array,
    UInt64Array,
};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef, UInt8Type, UInt64Type};

use super::index_sync::{Lineage, Ownership};
use super::known_snapshot::KnownSnapshot;
use super::row_identity::RowIdentity;
use crate::error::{Error, ErrorKind, Result};
use crate::state::{GROUP_COUNT, StateChanges, StateTable};

/// The name of the table in a checkpoint.
const TABLE: &str = "snapshots";

/// The sequence number of an index that is not complete.
const INCOMPLETE: i64 = -1;

/// What a checkpoint knows of the key groups of a writer.
#[derive(Debug, Default)]
pub(super) struct SyncedGroups {
    loaded: BTreeMap<u8, Synced>,
    saved: Option<Synced>,
}

/// What an index, or a key group of it, stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Synced {
    /// The snapshot; None if the index is not complete.
    pub(super) known: Option<KnownSnapshot>,
    /// The lineage, with its last checkpoint that is in the index; 0 before the first.
    pub(super) lineage: Lineage,
    /// The sequence number up to which commits of the lineage itself are others' to the index: it was begun anew after them.
    pub(super) begun_after: i64,
}

/// What an index stands for when it is put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Restored {
    /// The snapshot; None if the index is not complete.
    pub(super) known: Option<KnownSnapshot>,
    /// The lineage in which the checkpoint was made, if it is one; None also if nothing had been prepared in it.
    pub(super) lineage: Option<Lineage>,
    /// See `Synced`.
    pub(super) begun_after: i64,
}

impl SyncedGroups {
    /// Describes the table. It goes with the positions.
    pub(super) fn state_table(identity: &RowIdentity) -> StateTable {
        let derived_from = Some(identity.fingerprint());
        StateTable { name: TABLE, schema: SyncedGroups::schema(), key_count: 1, derived_from }
    }

    fn schema() -> SchemaRef {
        let schema = Schema::new(vec![
            Field::new("key_group", ArrowType::UInt8, false),
            Field::new("snapshot", ArrowType::Int64, true),
            Field::new("sequence_number", ArrowType::Int64, false),
            Field::new("lineage", ArrowType::Utf8, false),
            Field::new("checkpoint", ArrowType::UInt64, false),
            Field::new("begun_after", ArrowType::Int64, false),
        ]);
        Arc::new(schema)
    }

    /// Puts rows of a checkpoint back.
    ///
    /// # Errors
    /// The rows do not fit.
    pub(super) fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        let damaged =
            || Error::new(ErrorKind::State, "the snapshots of a sink were saved with other columns");
        let [groups, ids, sequence_numbers, lineages, checkpoints, begun_after] = rows.columns() else {
            return Err(damaged());
        };
        let groups = groups.as_primitive_opt::<UInt8Type>().ok_or_else(damaged)?;
        let ids = ids.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        let sequence_numbers = sequence_numbers.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        let lineages = lineages.as_string_opt::<i32>().ok_or_else(damaged)?;
        let checkpoints = checkpoints.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
        let begun_after = begun_after.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        for row in 0..rows.num_rows() {
            let id = (!ids.is_null(row)).then(|| ids.value(row));
            let known = KnownSnapshot { id, sequence_number: sequence_numbers.value(row) };
            let known = (known.sequence_number != INCOMPLETE).then_some(known);
            let lineage =
                Lineage { name: lineages.value(row).to_owned(), checkpoint: checkpoints.value(row) };
            let synced = Synced { known, lineage, begun_after: begun_after.value(row) };
            self.loaded.insert(groups.value(row), synced);
        }
        Ok(())
    }

    /// Returns what the index of a writer stands for after all rows were put back: the earliest that one of its groups knows. None if
    /// there are none: every writer saves some.
    pub(super) fn restored(&self, ownership: &Ownership) -> Option<Restored> {
        let begun_after = self.loaded.values().map(|synced| synced.begun_after).max()?;
        let is_whole = ownership.groups().all(|group| self.loaded.contains_key(&group));
        let known = self.loaded.values().map(|synced| synced.known).collect::<Option<Vec<_>>>();
        let known = known.filter(|_| is_whole);
        let known = known.and_then(|all| all.into_iter().min_by_key(|known| known.sequence_number));
        // A writer that had no rows yet lacks none.
        let lineages = self.loaded.values().map(|synced| &synced.lineage);
        let lineages: Vec<&Lineage> = lineages.filter(|lineage| lineage.checkpoint > 0).collect();
        let first = lineages.iter().min_by_key(|lineage| lineage.checkpoint);
        let is_one = |first: &&&Lineage| lineages.iter().all(|lineage| lineage.name == first.name);
        let lineage = first.filter(is_one).map(|first| (*first).clone());
        Some(Restored { known, lineage, begun_after })
    }

    /// Returns whether something was prepared before the checkpoint that was put back.
    pub(super) fn has_prepared(&self) -> bool {
        self.loaded.values().any(|synced| synced.lineage.checkpoint > 0)
    }

    /// Returns what has changed.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(&mut self, ownership: &Ownership, now: Synced) -> Result<StateChanges> {
        let has_changed = match &self.saved {
            Some(saved) => *saved != now,
            // What was put back goes on to hold until something is prepared.
            None => {
                now.lineage.checkpoint > 0
                    || !ownership.groups().all(|group| self.loaded.contains_key(&group))
            }
        };
        let groups: Vec<u8> = if has_changed { ownership.groups().collect() } else { Vec::new() };
        let Synced { known, lineage, begun_after } = &now;
        let count = groups.len();
        let id = known.and_then(|known| known.id);
        let sequence_number = known.map_or(INCOMPLETE, |known| known.sequence_number);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt8Array::from(groups.clone())),
            Arc::new(std::iter::repeat_n(id, count).collect::<Int64Array>()),
            Arc::new(Int64Array::from_value(sequence_number, count)),
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&lineage.name, count))),
            Arc::new(UInt64Array::from_value(lineage.checkpoint, count)),
            Arc::new(Int64Array::from_value(*begun_after, count)),
        ];
        let schema = SyncedGroups::schema();
        if has_changed {
            self.saved = Some(now);
        }
        let keys = Arc::new(schema.project(&[0])?);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(StateChanges {
            upserts: RecordBatch::try_new_with_options(schema, columns, &options)?,
            upsert_groups: groups,
            deletes: RecordBatch::new_empty(keys),
            delete_groups: Vec::new(),
        })
    }
}

/// The numbers of key groups fit in a byte.
const _: () = assert!(GROUP_COUNT <= 256);

#[cfg(test)]
mod tests {
    use super::*;

    fn lineage(name: &str, checkpoint: u64) -> Lineage {
        Lineage { name: name.to_owned(), checkpoint }
    }

    fn known(id: i64, sequence_number: i64) -> KnownSnapshot {
        KnownSnapshot { id: Some(id), sequence_number }
    }

    fn synced(known: Option<KnownSnapshot>, lineage: Lineage, begun_after: i64) -> Synced {
        Synced { known, lineage, begun_after }
    }

    const WHOLE: Ownership = Ownership { writer: 0, writer_count: 1 };

    #[test]
    fn a_writer_goes_on_from_the_earliest_snapshot_of_its_groups() {
        let halves = [0, 1].map(|writer| Ownership { writer, writer_count: 2 });
        let mut saved = Vec::new();
        for (half, known, checkpoint, begun_after) in
            [(&halves[0], Some(known(7, 3)), 9, 0), (&halves[1], Some(known(8, 4)), 8, 2)]
        {
            let mut groups = SyncedGroups::default();
            let now = synced(known, lineage("a", checkpoint), begun_after);
            let changes = groups.take_changes(half, now.clone()).unwrap();
            assert_eq!(changes.upserts.num_rows(), 64);
            let again = groups.take_changes(half, now).unwrap();
            assert_eq!(again.upserts.num_rows(), 0);
            saved.push(changes.upserts);
        }
        let mut groups = SyncedGroups::default();
        assert_eq!(groups.restored(&WHOLE), None);
        saved.iter().for_each(|rows| groups.load(rows).unwrap());
        let (earliest, first) = (Some(known(7, 3)), Some(lineage("a", 8)));
        assert_eq!(
            groups.restored(&WHOLE),
            Some(Restored { known: earliest, lineage: first, begun_after: 2 })
        );
        // A writer that has never committed knows of no snapshot.
        let mut groups = SyncedGroups::default();
        groups.load(&saved[0]).unwrap();
        let restored = groups.restored(&WHOLE).unwrap();
        assert_eq!((restored.known, restored.lineage), (None, Some(lineage("a", 9))));
    }

    #[test]
    fn a_writer_without_rows_is_known_from_one_that_began_anew() {
        let mut groups = SyncedGroups::default();
        let idle = synced(None, lineage("a", 0), 5);
        let rows = groups.take_changes(&WHOLE, idle.clone()).unwrap().upserts;
        assert_eq!(rows.num_rows(), 128);
        let mut groups = SyncedGroups::default();
        groups.load(&rows).unwrap();
        let restored = Restored { known: None, lineage: None, begun_after: 5 };
        assert_eq!(groups.restored(&WHOLE), Some(restored));
        assert!(!groups.has_prepared());
        assert_eq!(groups.take_changes(&WHOLE, idle).unwrap().upserts.num_rows(), 0);
    }
}
