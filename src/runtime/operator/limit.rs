//! LIMIT without an order: the rows that come first.
//!
//! Over rows that are only added it counts. Over rows that change it keeps as many alive as are asked for, so that one that goes is
//! replaced by the next; for that every row must be remembered, and it is a Top-N that has no order.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema, SchemaRef};

use super::{EpochEnd, Operator, Output, TopN};
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::plan::{TopNSpec, TopNStrategy};
use crate::state::{StateChanges, StateTable, key_group};

/// Lets so many rows through, after so many that are left out.
pub(crate) enum Limit {
    /// Over rows that are only added.
    Counting(CountingLimit),
    /// Over rows that change.
    Changing(Box<TopN>),
}

/// The limit over rows that are only added.
pub(crate) struct CountingLimit {
    skip: usize,
    /// The number of rows behind which nothing is let through.
    end: usize,
    /// How many have come; not more than `end`.
    seen: usize,
    /// What the last checkpoint has.
    saved: Option<usize>,
    schema: SchemaRef,
}

impl Limit {
    /// Makes the operator over an input's columns; without `fetch`, rows are only left out.
    ///
    /// # Errors
    /// A column cannot be stored.
    pub(crate) fn new(
        skip: usize,
        fetch: Option<usize>,
        input_is_insert_only: bool,
        input: &SchemaRef,
    ) -> Result<Limit> {
        let end = fetch.map_or(usize::MAX, |fetch| skip.saturating_add(fetch));
        if input_is_insert_only {
            let schema = Arc::new(Schema::new(vec![Field::new("count", ArrowType::Int64, false)]));
            return Ok(Limit::Counting(CountingLimit { skip, end, seen: 0, saved: None, schema }));
        }
        let spec = TopNSpec {
            partition: Vec::new(),
            order: Vec::new(),
            first: skip as u64 + 1,
            last: end as u64,
            with_rank: false,
            strategy: TopNStrategy::Retract,
            emits_update_before: true,
        };
        Ok(Limit::Changing(Box::new(TopN::new(&spec, input, input)?)))
    }
}

impl CountingLimit {
    fn process(&mut self, batch: &ChangelogBatch, output: &mut Output) {
        let count = batch.row_count();
        let start = self.skip.saturating_sub(self.seen).min(count);
        let end = self.end.saturating_sub(self.seen).min(count);
        if start < end {
            output.push(batch.slice(start, end - start));
        }
        self.seen = self.seen.saturating_add(count).min(self.end);
    }

    fn take_changes(&mut self) -> Result<StateChanges> {
        let is_changed = self.seen > 0 && self.saved.replace(self.seen) != Some(self.seen);
        let counts: Vec<i64> = if is_changed { vec![self.seen as i64] } else { Vec::new() };
        let upsert_groups = vec![key_group(0); counts.len()];
        let counts: ArrayRef = Arc::new(Int64Array::from(counts));
        Ok(StateChanges {
            upserts: RecordBatch::try_new(Arc::clone(&self.schema), vec![counts])?,
            upsert_groups,
            deletes: RecordBatch::new_empty(Arc::new(Schema::empty())),
            delete_groups: Vec::new(),
        })
    }

    fn load(&mut self, rows: &RecordBatch) {
        let counts = rows.column(0).as_primitive::<Int64Type>();
        if !counts.is_empty() {
            self.seen = counts.value(0) as usize;
            self.saved = Some(self.seen);
        }
    }
}

impl Operator for Limit {
    fn process(&mut self, input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        match self {
            Limit::Counting(limit) => {
                limit.process(&batch, output);
                Ok(())
            }
            Limit::Changing(limit) => limit.process(input, batch, output),
        }
    }

    fn end_epoch(&mut self, epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        match self {
            Limit::Counting(_) => Ok(()),
            Limit::Changing(limit) => limit.end_epoch(epoch, output),
        }
    }

    fn is_exhausted(&self) -> bool {
        matches!(self, Limit::Counting(limit) if limit.seen == limit.end)
    }

    fn state_tables(&self) -> Vec<StateTable> {
        match self {
            Limit::Counting(limit) => {
                vec![StateTable {
                    name: "count",
                    schema: Arc::clone(&limit.schema),
                    key_count: 0,
                    derived_from: None,
                }]
            }
            Limit::Changing(limit) => limit.state_tables(),
        }
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        match self {
            Limit::Counting(limit) => Ok(vec![limit.take_changes()?]),
            Limit::Changing(limit) => limit.take_changes(),
        }
    }

    fn load(&mut self, table: usize, rows: &RecordBatch) -> Result<()> {
        match self {
            Limit::Counting(limit) => {
                limit.load(rows);
                Ok(())
            }
            Limit::Changing(limit) => limit.load(table, rows),
        }
    }

    fn finish_load(&mut self) -> Result<()> {
        match self {
            Limit::Counting(_) => Ok(()),
            Limit::Changing(limit) => limit.finish_load(),
        }
    }

    fn state_bytes(&self) -> usize {
        match self {
            Limit::Counting(_) => 0,
            Limit::Changing(limit) => limit.state_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Harness, Random, TestInput, check, check_rules, fold, schema};
    use super::*;
    use arrow::datatypes::DataType::{Int32, Utf8};

    fn columns() -> SchemaRef {
        schema(&[("id", Int32), ("name", Utf8)])
    }

    fn input() -> [TestInput; 1] {
        [TestInput::new(&columns(), &[])]
    }

    fn make(skip: usize, fetch: Option<usize>, is_insert_only: bool) -> Limit {
        Limit::new(skip, fetch, is_insert_only, &columns()).unwrap()
    }

    #[test]
    fn of_rows_that_are_only_added_the_first_are_let_through() {
        let lines = ["+I 1 a", "+I 2 b", "+I 3 c", "+I 4 d", "+I 5 e"];
        check(|| make(1, Some(2), true), &input(), &lines, &["+I 2 b", "+I 3 c"]);
        assert_eq!(Harness::new(|| make(1, Some(2), true), &input()).epoch(&lines), ["+I 2 b", "+I 3 c"]);
        check(|| make(3, None, true), &input(), &lines, &["+I 4 d", "+I 5 e"]);
        check(|| make(0, Some(0), true), &input(), &lines, &[]);
    }

    #[test]
    fn a_restart_goes_on_counting() {
        for cut in 1..5 {
            let mut operator = Harness::new(|| make(1, Some(2), true), &input());
            let lines = ["+I 1 a", "+I 2 b", "+I 3 c", "+I 4 d"];
            let mut shown = operator.per_record(&lines[..cut]);
            operator.checkpoint();
            operator.restart(3);
            shown.extend(operator.per_record(&lines[cut..]));
            assert_eq!(shown, ["+I 2 b", "+I 3 c"], "cut after {cut}");
        }
    }

    #[test]
    fn a_row_that_goes_is_replaced_by_the_next() {
        check(
            || make(0, Some(2), false),
            &input(),
            &["+I 1 a", "+I 2 b", "+I 3 c", "-D 1 a", "-D 3 c", "-D 9 z", "-D 2 b"],
            &["+I 1 a", "+I 2 b", "-D 1 a", "+I 3 c", "-D 3 c", "-D 2 b"],
        );
    }

    #[test]
    fn as_many_rows_are_alive_as_there_can_be() {
        let mut random = Random::new(2);
        for (skip, fetch) in [(0, Some(1)), (0, Some(3)), (2, Some(3)), (1, None)] {
            for _ in 0..10 {
                let lines = random.changelog(&columns(), &[], 150);
                let alive: i64 = fold(&lines).values().sum();
                let sum = check_rules(|| make(skip, fetch, false), &input(), &lines, &mut random);
                let expected = (alive as usize).saturating_sub(skip).min(fetch.unwrap_or(usize::MAX));
                assert_eq!(sum.values().sum::<i64>() as usize, expected);
            }
        }
    }
}
