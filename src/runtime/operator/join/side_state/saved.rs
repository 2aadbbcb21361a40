//! The rows of a side in a checkpoint: their identity, their counts, their columns.
//!
//! A chain's order is that of the identities, so it needs no column of its own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef};

use super::super::row_journal::RowJournal;
use super::{SideLayout, SideState};
use crate::error::Result;
use crate::state::{PagedVec, StateChanges, StateTable, stable_names};

impl SideState {
    /// Describes what a checkpoint keeps: the identity, the counts, the columns.
    pub(in super::super) fn table(&self) -> &StateTable {
        &self.table
    }

    /// Takes what has changed since the last call.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(in super::super) fn take_changes(&mut self) -> Result<StateChanges> {
        let (changed, deleted) = self.journal.take();
        let ids: Vec<i64> = changed.iter().map(|row| self.journal.id(*row)).collect();
        let groups = |ids: &[i64]| ids.iter().map(|id| RowJournal::group(*id)).collect();
        let (upsert_groups, delete_groups) = (groups(&ids), groups(&deleted));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids))];
        for counts in self.saved_counts() {
            let counts = changed.iter().map(|row| i64::from(counts[*row as usize]));
            columns.push(Arc::new(Int64Array::from_iter_values(counts)));
        }
        for column in 0..self.store.width() {
            columns.push(self.store.gather(column, &changed)?);
        }
        let key_schema = Arc::new(self.table.schema.project(&[0])?);
        let deleted = RecordBatch::try_new(key_schema, vec![Arc::new(Int64Array::from(deleted))])?;
        Ok(StateChanges {
            upserts: RecordBatch::try_new(Arc::clone(&self.table.schema), columns)?,
            upsert_groups,
            deletes: deleted,
            delete_groups,
        })
    }

    fn saved_counts(&self) -> impl Iterator<Item = &PagedVec<u32>> {
        let multiplicities = self.layout.counts_equal_rows.then_some(&self.multiplicities);
        multiplicities.into_iter().chain(self.layout.counts_associations.then_some(&self.associations))
    }

    /// Returns the columns of the input within what was saved.
    pub(in super::super) fn saved_columns<'a>(&self, rows: &'a RecordBatch) -> &'a [ArrayRef] {
        &rows.columns()[rows.num_columns() - self.store.width()..]
    }

    /// Puts saved rows back; `slots` are their keys'.
    ///
    /// # Errors
    /// The columns have other types.
    pub(in super::super) fn load(
        &mut self,
        rows: &RecordBatch,
        key_hashes: &[u64],
        slots: &[u32],
    ) -> Result<()> {
        let columns = self.saved_columns(rows);
        let arrivals = self.arrive(columns, rows.num_rows(), key_hashes, |_| true)?;
        let ids = rows.column(0).as_primitive::<Int64Type>();
        let mut counts = rows.columns()[1..].iter().map(|column| column.as_primitive::<Int64Type>().values());
        let multiplicities = if self.layout.counts_equal_rows { counts.next() } else { None };
        let associations = if self.layout.counts_associations { counts.next() } else { None };
        for (row, number) in arrivals.numbers.iter().enumerate() {
            let at = *number as usize;
            if let Some(hash) = arrivals.hashes.get(row) {
                self.hashes[at] = *hash;
            }
            if let Some(counts) = multiplicities {
                self.multiplicities[at] = counts[row] as u32;
            }
            if let Some(counts) = associations {
                self.associations[at] = counts[row] as u32;
            }
            self.journal.load(*number, ids.value(row));
            self.loaded.push((ids.value(row), *number, slots[row]));
        }
        Ok(())
    }

    /// Links what was loaded, in the order in which it had arrived.
    pub(in super::super) fn finish_load(&mut self) {
        let mut loaded = std::mem::take(&mut self.loaded);
        loaded.sort_unstable();
        for (_, number, slot) in loaded {
            self.link(slot, number);
        }
    }
}

/// The columns of a side in a checkpoint.
pub(super) fn saved_schema(schema: &SchemaRef, layout: &SideLayout) -> SchemaRef {
    let mut names = vec!["rid"];
    if layout.counts_equal_rows {
        names.push("multiplicity");
    }
    if layout.counts_associations {
        names.push("associations");
    }
    let count = names.len();
    names.extend(schema.fields().iter().map(|field| field.name().as_str()));
    let fields = stable_names(names).into_iter().enumerate().map(|(at, name)| {
        let data_type =
            if at < count { ArrowType::Int64 } else { schema.field(at - count).data_type().clone() };
        Field::new(name, data_type, at >= count)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
