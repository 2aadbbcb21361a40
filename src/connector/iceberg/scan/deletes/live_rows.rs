//! Which rows of a data file are left, as the Parquet reader is told and as its batches are filtered.
//!
//! The reader leaves out what it is told, but keeps account of it range by range: deletes that lie scattered cost it more than the
//! rows themselves. So it is told of long runs alone where it returns all other rows in order, and [`LiveRows`] takes the rest out of
//! its batches. Where the reader evaluates conditions row by row nobody can tell which rows a batch has, and it is told everything.

use std::collections::VecDeque;
use std::ops::Range;

use arrow::array::{BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::compute::filter_record_batch;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::file::metadata::RowGroupMetaData;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};

/// How many deleted rows in a row are worth telling the reader: half a batch.
pub(in crate::connector::iceberg::scan) const LONG_RUN: u64 = 4096;

/// Describes what DataFusion's Parquet reader is to read of a file: all rows but runs of at least `run_min` deleted ones.
pub(in crate::connector::iceberg::scan) fn access_plan(
    row_groups: &[RowGroupMetaData],
    deleted: &RoaringTreemap,
    run_min: u64,
) -> ParquetAccessPlan {
    let access = rows_of(row_groups).map(|rows| {
        match deleted.range_cardinality(rows.clone()) {
            0 => return RowGroupAccess::Scan,
            count if count == rows.end - rows.start => return RowGroupAccess::Skip,
            _ => {}
        }
        match selectors(rows, deleted, run_min) {
            selectors if selectors.iter().any(|selector| selector.skip) => {
                RowGroupAccess::Selection(RowSelection::from(selectors))
            }
            _ => RowGroupAccess::Scan,
        }
    });
    ParquetAccessPlan::new(access.collect())
}

/// Returns which rows of the file each row group has.
fn rows_of(row_groups: &[RowGroupMetaData]) -> impl Iterator<Item = Range<u64>> {
    row_groups.iter().scan(0_u64, |start, row_group| {
        let rows = *start..*start + u64::try_from(row_group.num_rows()).unwrap_or_default();
        *start = rows.end;
        Some(rows)
    })
}

/// Describes which of some rows are left if runs of at least `run_min` deleted ones are left out.
fn selectors(rows: Range<u64>, deleted: &RoaringTreemap, run_min: u64) -> Vec<RowSelector> {
    let mut selectors = Vec::new();
    let mut positions = deleted.iter();
    positions.advance_to(rows.start);
    let mut positions = positions.take_while(|position| *position < rows.end).peekable();
    let mut at = rows.start;
    while let Some(start) = positions.next() {
        let mut end = start + 1;
        while positions.next_if_eq(&end).is_some() {
            end += 1;
        }
        if end - start >= run_min {
            push(&mut selectors, start - at, false);
            push(&mut selectors, end - start, true);
            at = end;
        }
    }
    push(&mut selectors, rows.end - at, false);
    selectors
}

fn push(selectors: &mut Vec<RowSelector>, count: u64, skip: bool) {
    let row_count = usize::try_from(count).unwrap_or(usize::MAX);
    if row_count > 0 {
        selectors.push(RowSelector { row_count, skip });
    }
}

/// Takes deleted rows out of the batches of one file.
#[derive(Debug)]
pub(in crate::connector::iceberg::scan) struct LiveRows {
    /// The rows that the reader has still to return, in its order.
    coming: VecDeque<Range<u64>>,
    deleted: RoaringTreemap,
}

impl LiveRows {
    /// Expects the batches of a reader that returns all rows of a plan, each once and in order.
    pub(in crate::connector::iceberg::scan) fn new(
        plan: &ParquetAccessPlan,
        row_groups: &[RowGroupMetaData],
        deleted: RoaringTreemap,
    ) -> LiveRows {
        let mut coming = VecDeque::new();
        for (access, rows) in plan.inner().iter().zip(rows_of(row_groups)) {
            match access {
                RowGroupAccess::Skip => {}
                RowGroupAccess::Scan => coming.push_back(rows),
                RowGroupAccess::Selection(selection) => {
                    let mut at = rows.start;
                    for selector in selection.iter() {
                        let end = at + selector.row_count as u64;
                        if !selector.skip {
                            coming.push_back(at..end);
                        }
                        at = end;
                    }
                }
            }
        }
        LiveRows { coming, deleted }
    }

    /// Returns what is left of the next batch.
    ///
    /// # Errors
    /// The reader returned more rows than were to come.
    pub(in crate::connector::iceberg::scan) fn of(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let mut live = BooleanBufferBuilder::new(0);
        let mut before = 0;
        for rows in self.next_rows(batch.num_rows())? {
            let mut positions = self.deleted.iter();
            positions.advance_to(rows.start);
            for position in positions.take_while(|position| *position < rows.end) {
                if live.is_empty() {
                    live.append_n(batch.num_rows(), true);
                }
                live.set_bit(before + (position - rows.start) as usize, false);
            }
            before += (rows.end - rows.start) as usize;
        }
        if live.is_empty() {
            return Ok(batch);
        }
        Ok(filter_record_batch(&batch, &BooleanArray::new(live.finish(), None))?)
    }

    /// Returns which rows of the file the next `count` ones are.
    fn next_rows(&mut self, mut count: usize) -> Result<Vec<Range<u64>>> {
        let mut next = Vec::with_capacity(1);
        while count > 0 {
            let Some(first) = self.coming.front_mut() else {
                return Err(Error::internal("a file has more rows than its row groups say"));
            };
            let taken = (first.end - first.start).min(count as u64);
            next.push(first.start..first.start + taken);
            first.start += taken;
            count -= taken as usize;
            if first.is_empty() {
                self.coming.pop_front();
            }
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::properties::WriterProperties;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A Parquet file of the numbers below `rows` in row groups of `row_group` rows.
    fn file(rows: usize, row_group: usize) -> Bytes {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes.into()
    }

    /// Reads what a plan says, and takes the rest out of the batches; returns the rows that are left and how many were read.
    fn left(file: &Bytes, deleted: &RoaringTreemap, run_min: u64, batch_size: usize) -> (Vec<i64>, usize) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
        let row_groups = reader.metadata().row_groups().to_vec();
        let plan = access_plan(&row_groups, deleted, run_min);
        let mut live_rows = LiveRows::new(&plan, &row_groups, deleted.clone());
        let mut reader = reader.with_row_groups(plan.row_group_indexes()).with_batch_size(batch_size);
        if let Some(selection) = plan.into_overall_row_selection(&row_groups).unwrap() {
            reader = reader.with_row_selection(selection);
        }
        let (mut rows, mut read) = (Vec::new(), 0);
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            read += batch.num_rows();
            let batch = live_rows.of(batch).unwrap();
            rows.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
        assert!(live_rows.coming.is_empty(), "{:?}", live_rows.coming);
        (rows, read)
    }

    #[test]
    fn live_rows_are_the_same_however_long_the_runs_are_that_the_reader_leaves_out() {
        let mut random = StdRng::seed_from_u64(5);
        for _ in 0..60 {
            let rows = random.random_range(1..400);
            let file = file(rows, random.random_range(1..150));
            let mut deleted = RoaringTreemap::new();
            for _ in 0..random.random_range(0..20) {
                let start = random.random_range(0..rows as u64);
                let length = [1, 2, 5, 40, 200][random.random_range(0..5)];
                deleted.insert_range(start..(start + length).min(rows as u64));
            }
            let expected: Vec<i64> = (0..rows as i64).filter(|row| !deleted.contains(*row as u64)).collect();
            for run_min in [1, 3, 30, 1000] {
                let batch_size = random.random_range(1..100);
                let (live, read) = left(&file, &deleted, run_min, batch_size);
                assert_eq!(live, expected, "runs of {run_min}, batches of {batch_size}, without {deleted:?}");
                assert!(run_min > 1 || read == expected.len());
            }
        }
    }

    #[test]
    fn the_reader_is_told_of_whole_row_groups_and_long_runs_alone() {
        let file = file(300, 100);
        let mut deleted: RoaringTreemap = (0..100).chain([120, 121, 150]).collect();
        deleted.insert_range(210..240);
        let (live, read) = left(&file, &deleted, 30, 64);
        assert_eq!((live.len(), read), (300 - 100 - 3 - 30, 300 - 100 - 30));
    }

    #[test]
    fn rows_that_no_row_group_has_are_an_error() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let error = LiveRows::new(&ParquetAccessPlan::new_all(0), &[], RoaringTreemap::new()).of(batch);
        assert!(error.unwrap_err().to_string().contains("more rows than its row groups say"));
    }
}
