//! The last row of each key within one INSERT: what Flink leaves of it in a table with a key, in batch mode.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;

use super::data_file_writer::WrittenRow;
use super::position_delete_writer::DeletedRows;
use crate::connector::iceberg::manifest::TableFile;
use crate::error::Result;
use crate::state::{KeyIndex, hash_rows};

/// Knows where the last row of each key was written, and which rows were replaced.
#[derive(Debug)]
pub(super) struct LastRows {
    key: Vec<usize>,
    index: KeyIndex,
    /// The place of each key's last row, by slot.
    last: Vec<WrittenRow>,
    replaced: Vec<WrittenRow>,
    hashes: Vec<u64>,
    slots: Vec<u32>,
}

impl LastRows {
    /// Makes an empty one for rows with a key, given as positions of columns.
    ///
    /// # Errors
    /// A column cannot be part of a key.
    pub(super) fn new(rows: &SchemaRef, key: &[usize]) -> Result<LastRows> {
        let types: Vec<_> = key.iter().map(|at| rows.field(*at).data_type().clone()).collect();
        Ok(LastRows {
            key: key.to_vec(),
            index: KeyIndex::new(&types)?,
            last: Vec::new(),
            replaced: Vec::new(),
            hashes: Vec::new(),
            slots: Vec::new(),
        })
    }

    /// Notes where rows were written.
    ///
    /// # Errors
    /// The rows have other columns.
    pub(super) fn note(&mut self, rows: &RecordBatch, places: &[WrittenRow]) -> Result<()> {
        let keys: Vec<ArrayRef> = self.key.iter().map(|at| ArrayRef::clone(rows.column(*at))).collect();
        hash_rows(&keys, rows.num_rows(), &mut self.hashes)?;
        self.index.intern(&keys, &self.hashes, &mut self.slots)?;
        for (slot, place) in self.slots.iter().zip(places) {
            match self.last.get_mut(*slot as usize) {
                Some(last) => self.replaced.push(std::mem::replace(last, *place)),
                // New slots are numbered in the order of the rows that bring them.
                None => self.last.push(*place),
            }
        }
        Ok(())
    }

    /// Returns whether a key has come twice.
    pub(super) fn has_replaced(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        let places = self.last.capacity() + self.replaced.capacity();
        let scratch = self.hashes.capacity() * size_of::<u64>() + self.slots.capacity() * size_of::<u32>();
        self.index.bytes() + places * size_of::<WrittenRow>() + scratch
    }

    /// Forgets all keys and returns the rows of the files that were replaced.
    ///
    /// # Errors
    /// A column cannot be part of a key.
    pub(super) fn take_replaced(
        &mut self,
        rows: &SchemaRef,
        files: &[TableFile],
    ) -> Result<Vec<DeletedRows>> {
        let replaced = std::mem::replace(self, LastRows::new(rows, &self.key)?).replaced;
        let mut positions: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for place in replaced {
            positions.entry(place.file).or_default().push(u64::from(place.position));
        }
        let deleted = positions.into_iter().filter_map(|(number, mut positions)| {
            let written = files.get(number as usize)?;
            positions.sort_unstable();
            Some(DeletedRows {
                path: written.file.file_path().to_owned(),
                spec_id: written.spec_id,
                partition: written.file.partition().clone(),
                positions,
            })
        });
        Ok(deleted.collect())
    }
}
