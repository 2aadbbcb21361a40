//! GROUPING SETS as rows: every row once per set, with the groups that the set leaves out NULL and the set's number behind.
//!
//! The rows of one row come in Flink's order of the sets, which is not that of the statement: what has the first group comes before
//! what has not, then likewise by the second.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow::buffer::Buffer;
use arrow::compute::{cast, take};
use arrow::datatypes::SchemaRef;

use super::{Operator, Output};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::plan::ExpandId;

/// The most rows of a batch that leaves.
const ROWS_MAX: usize = 8192;

/// One row per grouping set for each row.
pub(crate) struct ExpandOperator {
    /// For each set and column of the input, whether the column becomes NULL.
    left_out: Vec<Vec<bool>>,
    ids: Vec<ExpandId>,
    output: SchemaRef,
}

impl ExpandOperator {
    /// Creates the operator; for the arguments see `OperatorSpec::Expand`.
    ///
    /// # Errors
    /// There is not one number for each set.
    pub(crate) fn new(
        sets: &[Vec<usize>],
        groups: &[usize],
        ids: &[ExpandId],
        output: &SchemaRef,
    ) -> Result<ExpandOperator> {
        if sets.len() != ids.len() || sets.is_empty() {
            return Err(Error::internal("every grouping set has a number"));
        }
        let mut sets: Vec<(&Vec<usize>, ExpandId)> = sets.iter().zip(ids.iter().copied()).collect();
        sets.sort_by_key(|(set, _)| groups.iter().map(|group| !set.contains(group)).collect::<Vec<bool>>());
        let column_count = output.fields().len() - 1;
        let left_out = |(set, _): &(&Vec<usize>, ExpandId)| {
            (0..column_count).map(|column| groups.contains(&column) && !set.contains(&column)).collect()
        };
        Ok(ExpandOperator {
            left_out: sets.iter().map(left_out).collect(),
            ids: sets.iter().map(|(_, id)| *id).collect(),
            output: Arc::clone(output),
        })
    }

    /// Expands a few rows.
    fn expand(&self, batch: &ChangelogBatch) -> Result<ChangelogBatch> {
        let set_count = self.ids.len();
        let row_count = batch.row_count() as u32;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.output.fields().len());
        for (number, column) in batch.rows().columns().iter().enumerate() {
            let place = |row: u32| self.left_out.iter().map(move |set| (!set[number]).then_some(row));
            let places: UInt32Array = (0..row_count).flat_map(place).collect();
            columns.push(take(column, &places, None)?);
        }
        let ids = UInt64Array::from_iter_values((0..row_count).flat_map(|_| self.ids.iter().copied()));
        columns.push(cast(&ids, self.output.field(columns.len()).data_type())?);
        let repeat = |kinds: &[u8]| {
            Buffer::from_vec(
                kinds.iter().flat_map(|kind| std::iter::repeat_n(*kind, set_count)).collect::<Vec<u8>>(),
            )
        };
        let rows = RecordBatch::try_new(Arc::clone(&self.output), columns)?;
        Ok(ChangelogBatch::with_kind_bytes(rows, batch.kind_bytes().map(repeat)))
    }
}

impl Operator for ExpandOperator {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let step = (ROWS_MAX / self.ids.len()).max(1);
        for start in (0..batch.row_count()).step_by(step) {
            output.push(self.expand(&batch.slice(start, step.min(batch.row_count() - start)))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestInput, check, schema};
    use super::*;
    use arrow::datatypes::DataType::{Int32, Int64, Utf8};

    #[test]
    fn every_row_comes_once_per_set_with_its_kind_and_the_larger_sets_first() {
        let input = schema(&[("k", Utf8), ("id", Int32), ("v", Int32)]);
        let output = schema(&[("k", Utf8), ("id", Int32), ("v", Int32), ("set", Int64)]);
        let make =
            || ExpandOperator::new(&[vec![0], vec![0, 1], vec![]], &[0, 1], &[1, 0, 3], &output).unwrap();
        check(
            make,
            &[TestInput::new(&input, &[])],
            &["+I a 1 10", "-U NULL 2 20"],
            &[
                "+I a 1 10 0",
                "+I a NULL 10 1",
                "+I NULL NULL 10 3",
                "-U NULL 2 20 0",
                "-U NULL NULL 20 1",
                "-U NULL NULL 20 3",
            ],
        );
    }

    #[test]
    fn a_large_batch_leaves_in_parts() {
        let input = schema(&[("k", Int32)]);
        let output = schema(&[("k", Int32), ("set", Int64)]);
        let mut expand = ExpandOperator::new(&[vec![0], vec![]], &[0], &[0, 1], &output).unwrap();
        let rows = arrow::array::Int32Array::from_iter_values(0..5000);
        let batch = ChangelogBatch::inserts(RecordBatch::try_new(input, vec![Arc::new(rows)]).unwrap());
        let mut out = Output::default();
        expand.process(0, batch, &mut out).unwrap();
        assert_eq!(out.drain().map(|batch| batch.row_count()).collect::<Vec<_>>(), [8192, 1808]);
    }
}
