//! Which snapshot an index stands for, as a checkpoint keeps it: a row per key group, since the next run may deal them out in another
//! way.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt8Array,
    UInt64Array,
};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, UInt8Type, UInt64Type};

use super::index_sync::{Lineage, Ownership};
use super::known_snapshot::KnownSnapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::state::{GROUP_COUNT, StateChanges, StateTable};

/// The name of the table in a checkpoint.
const TABLE: &str = "snapshots";

/// The sequence number of an index that is not complete.
const INCOMPLETE: i64 = -1;

/// What a checkpoint knows of the key groups of a writer.
#[derive(Debug, Default)]
pub(super) struct SyncedGroups {
    loaded: BTreeMap<u8, (Option<KnownSnapshot>, Lineage)>,
    saved: Option<(Option<KnownSnapshot>, Lineage)>,
}

impl SyncedGroups {
    /// Describes the table.
    pub(super) fn state_table() -> StateTable {
        let schema = Schema::new(vec![
            Field::new("key_group", ArrowType::UInt8, false),
            Field::new("snapshot", ArrowType::Int64, true),
            Field::new("sequence_number", ArrowType::Int64, false),
            Field::new("lineage", ArrowType::Utf8, false),
            Field::new("checkpoint", ArrowType::UInt64, false),
        ]);
        StateTable { name: TABLE, schema: Arc::new(schema), key_count: 1 }
    }

    /// Puts rows of a checkpoint back.
    ///
    /// # Errors
    /// The rows do not fit.
    pub(super) fn load(&mut self, rows: &RecordBatch) -> Result<()> {
        let damaged =
            || Error::new(ErrorKind::State, "the snapshots of a sink were saved with other columns");
        let [groups, ids, sequence_numbers, lineages, checkpoints] = rows.columns() else {
            return Err(damaged());
        };
        let groups = groups.as_primitive_opt::<UInt8Type>().ok_or_else(damaged)?;
        let ids = ids.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        let sequence_numbers = sequence_numbers.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
        let lineages = lineages.as_string_opt::<i32>().ok_or_else(damaged)?;
        let checkpoints = checkpoints.as_primitive_opt::<UInt64Type>().ok_or_else(damaged)?;
        for row in 0..rows.num_rows() {
            let id = (!ids.is_null(row)).then(|| ids.value(row));
            let known = KnownSnapshot { id, sequence_number: sequence_numbers.value(row) };
            let known = (known.sequence_number != INCOMPLETE).then_some(known);
            let lineage =
                Lineage { name: lineages.value(row).to_owned(), checkpoint: checkpoints.value(row) };
            self.loaded.insert(groups.value(row), (known, lineage));
        }
        Ok(())
    }

    /// Returns what the index of a writer stands for after all rows were put back: the earliest that one of its groups knows.
    pub(super) fn restored(&self, ownership: &Ownership) -> Option<(Option<KnownSnapshot>, Option<Lineage>)> {
        let (_, (_, first)) = self.loaded.first_key_value()?;
        let is_whole = ownership.groups().all(|group| self.loaded.contains_key(&group));
        let known = self.loaded.values().map(|(known, _)| *known).collect::<Option<Vec<_>>>();
        let known = known.filter(|_| is_whole);
        let known = known.and_then(|all| all.into_iter().min_by_key(|known| known.sequence_number));
        let is_one = self.loaded.values().all(|(_, lineage)| lineage.name == first.name);
        let checkpoint = self.loaded.values().map(|(_, lineage)| lineage.checkpoint).min();
        let lineage = checkpoint.filter(|_| is_one);
        Some((known, lineage.map(|checkpoint| Lineage { name: first.name.clone(), checkpoint })))
    }

    /// Returns what has changed.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(super) fn take_changes(
        &mut self,
        ownership: &Ownership,
        known: Option<KnownSnapshot>,
        lineage: &Lineage,
    ) -> Result<StateChanges> {
        let now = Some((known, lineage.clone()));
        // Before the first commit there is nothing to tell.
        let has_changed = lineage.checkpoint > 0 && self.saved != now;
        let groups: Vec<u8> = if has_changed { ownership.groups().collect() } else { Vec::new() };
        if has_changed {
            self.saved = now;
        }
        let count = groups.len();
        let id = known.and_then(|known| known.id);
        let sequence_number = known.map_or(INCOMPLETE, |known| known.sequence_number);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt8Array::from(groups.clone())),
            Arc::new(std::iter::repeat_n(id, count).collect::<Int64Array>()),
            Arc::new(Int64Array::from_value(sequence_number, count)),
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&lineage.name, count))),
            Arc::new(UInt64Array::from_value(lineage.checkpoint, count)),
        ];
        let schema = SyncedGroups::state_table().schema;
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

    #[test]
    fn a_writer_goes_on_from_the_earliest_snapshot_of_its_groups() {
        let halves = [0, 1].map(|writer| Ownership { writer, writer_count: 2 });
        let mut saved = Vec::new();
        for (half, known, checkpoint) in
            [(&halves[0], Some(known(7, 3)), 9), (&halves[1], Some(known(8, 4)), 8)]
        {
            let mut groups = SyncedGroups::default();
            assert_eq!(groups.take_changes(half, None, &lineage("a", 0)).unwrap().upserts.num_rows(), 0);
            let changes = groups.take_changes(half, known, &lineage("a", checkpoint)).unwrap();
            assert_eq!(changes.upserts.num_rows(), 64);
            let again = groups.take_changes(half, known, &lineage("a", checkpoint)).unwrap();
            assert_eq!(again.upserts.num_rows(), 0);
            saved.push(changes.upserts);
        }
        let whole = Ownership { writer: 0, writer_count: 1 };
        let mut groups = SyncedGroups::default();
        assert_eq!(groups.restored(&whole), None);
        saved.iter().for_each(|rows| groups.load(rows).unwrap());
        assert_eq!(groups.restored(&whole), Some((Some(known(7, 3)), Some(lineage("a", 8)))));
        // A writer that has never committed knows of no snapshot.
        let mut groups = SyncedGroups::default();
        groups.load(&saved[0]).unwrap();
        assert_eq!(groups.restored(&whole), Some((None, Some(lineage("a", 9)))));
    }
}
