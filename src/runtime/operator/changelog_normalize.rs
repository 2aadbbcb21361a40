//! Completes a changelog of upserts: what a row was before is remembered by its key.
//!
//! A retraction takes the key's row away whatever else it holds, since a delete in such a changelog may hold the key alone; so a
//! `-U` counts as a delete until its `+U` comes, which within an epoch makes an update of the two.
//!
//! It also knows what to take back when a table is cleared.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::stored_changes::StoredChanges;
use super::{EpochEnd, Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;
use crate::plan::ChangelogNormalizeSpec;
use crate::state::{ABSENT, KeyedRows, RowChange, StateChanges, StateTable};

/// How many changed rows leave together: of a table that is cleared, all are.
const CHANGES_TOGETHER: usize = 8_192;

/// Keeps the last row of each key and says how it has changed.
pub(crate) struct ChangelogNormalize {
    rows: KeyedRows,
    condition: Option<Arc<dyn PhysicalExpr>>,
    emits_update_before: bool,
    schema: SchemaRef,
    slots: Vec<u32>,
}

impl ChangelogNormalize {
    /// Makes the operator over an input's columns.
    ///
    /// # Errors
    /// A column cannot be a key or be stored, or the condition cannot be evaluated row by row.
    pub(crate) fn new(spec: &ChangelogNormalizeSpec, input: &DFSchema) -> Result<ChangelogNormalize> {
        let compile = |condition: &Expr| create_physical_expr(condition, input, &ExecutionProps::new());
        let condition = spec.condition.as_ref().map(compile).transpose()?;
        let schema = input.inner();
        let normalize = ChangelogNormalize::over_keys(&spec.keys, schema)?;
        Ok(ChangelogNormalize { condition, emits_update_before: spec.emits_update_before, ..normalize })
    }

    /// Makes the operator that keeps the last row of each key, without a condition.
    ///
    /// # Errors
    /// A column cannot be a key or be stored.
    pub(crate) fn over_keys(keys: &[usize], input: &SchemaRef) -> Result<ChangelogNormalize> {
        Ok(ChangelogNormalize {
            rows: KeyedRows::new("rows", input, keys)?,
            condition: None,
            emits_update_before: true,
            schema: Arc::clone(input),
            slots: Vec::new(),
        })
    }

    /// Returns which rows fulfil the condition; None for all.
    fn fulfil(&self, rows: &RecordBatch) -> Result<Option<BooleanArray>> {
        let Some(condition) = &self.condition else { return Ok(None) };
        let mask = condition.evaluate(rows)?.into_array(rows.num_rows())?;
        Ok(Some(mask.as_boolean().clone()))
    }
}

impl Operator for ChangelogNormalize {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, _output: &mut Output) -> Result<()> {
        let mut slots = std::mem::take(&mut self.slots);
        self.rows.slots(batch.rows().columns(), batch.row_count(), &mut slots)?;
        let encoded = self.rows.encode(batch.rows().columns(), batch.row_count())?;
        let mask = self.fulfil(batch.rows())?;
        for (row, slot) in slots.iter().enumerate() {
            let is_kept = mask.as_ref().is_none_or(|mask| mask.is_valid(row) && mask.value(row));
            if is_kept && !batch.kind(row).is_retraction() {
                self.rows.upsert(*slot, encoded.row(row).data());
            } else {
                self.rows.delete(*slot);
            }
        }
        self.slots = slots;
        Ok(())
    }

    fn end_epoch(&mut self, _epoch: &EpochEnd, output: &mut Output) -> Result<()> {
        let (schema, emits_update_before) = (&self.schema, self.emits_update_before);
        self.rows.end_epoch(|store, changes| {
            for changes in changes.chunks(CHANGES_TOGETHER) {
                let mut emitted = StoredChanges::default();
                for change in changes {
                    match *change {
                        RowChange { before: ABSENT, now } => emitted.push(RowKind::Insert, now),
                        RowChange { before, now: ABSENT } => emitted.push(RowKind::Delete, before),
                        RowChange { before, now } => {
                            if emits_update_before {
                                emitted.push(RowKind::UpdateBefore, before);
                            }
                            emitted.push(RowKind::UpdateAfter, now);
                        }
                    }
                }
                let columns = store.columns(emitted.numbers())?;
                output.push(emitted.into_batch(schema, columns)?);
            }
            Ok(())
        })
    }

    fn clear(&mut self) -> Result<()> {
        self.rows.delete_all();
        Ok(())
    }

    fn state_tables(&self) -> Vec<StateTable> {
        vec![self.rows.state_table()]
    }

    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        Ok(vec![self.rows.take_changes()?])
    }

    fn load(&mut self, _table: usize, rows: &RecordBatch) -> Result<()> {
        self.rows.load(rows)
    }

    fn state_bytes(&self) -> usize {
        self.rows.bytes() + self.slots.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Harness, Random, TestInput, check, check_rules, fold, schema};
    use super::*;
    use arrow::datatypes::DataType::{Float64, Int32, Utf8};
    use datafusion::logical_expr::{col, lit};

    fn columns() -> SchemaRef {
        schema(&[("id", Int32), ("name", Utf8), ("price", Float64)])
    }

    fn make() -> ChangelogNormalize {
        ChangelogNormalize::over_keys(&[0], &columns()).unwrap()
    }

    fn with(condition: Option<Expr>, emits_update_before: bool) -> ChangelogNormalize {
        let spec = ChangelogNormalizeSpec { keys: vec![0], condition, emits_update_before };
        ChangelogNormalize::new(&spec, &DFSchema::try_from(columns()).unwrap()).unwrap()
    }

    fn input() -> [TestInput; 1] {
        [TestInput::new(&columns(), &[0])]
    }

    #[test]
    fn upserts_become_inserts_updates_and_whole_deletes() {
        check(
            make,
            &input(),
            &[
                "+U 1 a 1.5",
                "+U 1 a 1.5",
                "+U 1 b NaN",
                "+U 1 b NaN",
                "-D 2 NULL NULL",
                "-D 1 NULL NULL",
                "-D 1 NULL NULL",
                "+I NULL NULL NULL",
            ],
            &["+I 1 a 1.5", "-U 1 a 1.5", "+U 1 b NaN", "-D 1 b NaN", "+I NULL NULL NULL"],
        );
    }

    #[test]
    fn an_epoch_shows_only_what_has_changed_at_its_end() {
        let mut operator = Harness::new(make, &input());
        assert_eq!(
            operator.epoch(&["+U 1 a 1.0", "+U 2 b 1.0", "+U 1 c 1.0", "-D 2 NULL NULL"]),
            ["+I 1 c 1.0"]
        );
        assert_eq!(operator.epoch(&["-U 1 c 1.0", "+U 1 d 1.0"]), ["-U 1 c 1.0", "+U 1 d 1.0"]);
        assert_eq!(operator.epoch(&["+U 1 e 1.0", "+U 1 d 1.0"]), [""; 0]);
    }

    #[test]
    fn a_row_that_does_not_fulfil_the_condition_is_as_good_as_deleted() {
        check(
            || with(Some(col("price").gt(lit(2.0))), false),
            &input(),
            &["+U 1 a 1.0", "+U 1 a 3.0", "+U 1 b 4.0", "+U 1 b NULL", "-D 1 NULL NULL"],
            &["+I 1 a 3.0", "+U 1 b 4.0", "-D 1 b 4.0"],
        );
    }

    #[test]
    fn a_table_that_is_cleared_loses_all_rows_but_those_that_come_again() {
        for workers in [1, 3] {
            let mut operator = Harness::new(make, &input());
            operator.restart(workers);
            let mut epoch = |clears: bool, lines: &[&str]| {
                if clears {
                    operator.clear();
                }
                let mut shown = operator.epoch(lines);
                shown.sort();
                operator.checkpoint();
                (shown.join(", "), operator.saved(0).len())
            };
            epoch(false, &["+I 1 a 1.0", "+I 2 b 1.0", "+I 3 c 1.0", "+I 4 d 1.0", "-D 4 d 1.0"]);
            let (shown, count) = epoch(true, &["+I 1 a 1.0", "+I 2 x 1.0", "+I 5 e 1.0", "-D 5 e 1.0"]);
            assert_eq!((shown.as_str(), count), ("+U 2 x 1.0, -D 3 c 1.0, -U 2 b 1.0", 2));
            assert_eq!(epoch(true, &[]), ("-D 1 a 1.0, -D 2 x 1.0".to_owned(), 0));
            assert_eq!(epoch(true, &[]), (String::new(), 0));
            assert_eq!(epoch(false, &["+U 2 y 1.0", "-D 1 a 1.0"]), ("+I 2 y 1.0".to_owned(), 1));
        }
    }

    #[test]
    fn clearing_at_any_time_adds_up_across_restarts() {
        let mut random = Random::new(5);
        for _ in 0..30 {
            let mut operator = Harness::new(make, &input());
            let (mut shown, mut expected) = (Vec::new(), fold::<String>(&[]));
            for _ in 0..8 {
                if random.chance(60) {
                    operator.clear();
                    expected.clear();
                }
                if expected.is_empty() {
                    let lines = random.changelog(&columns(), &[0], 40);
                    shown.extend(operator.epoch(&lines));
                    expected = fold(&lines);
                } else {
                    shown.extend(operator.epoch::<&str>(&[]));
                }
                assert_eq!(fold(&shown), expected);
                if random.chance(50) {
                    operator.restart(1 + random.below(3));
                }
            }
        }
    }

    #[test]
    fn more_rows_than_leave_together_are_all_taken_back() {
        let mut operator = Harness::new(make, &input());
        let count = CHANGES_TOGETHER + 7;
        let lines: Vec<String> = (0..count).map(|id| format!("+I {id} a 1.0")).collect();
        assert_eq!(operator.epoch(&lines).len(), count);
        operator.clear();
        let shown = operator.epoch::<&str>(&[]);
        assert!(shown.len() == count && shown.iter().all(|line| line.starts_with("-D ")));
    }

    #[test]
    fn what_comes_out_adds_up_to_the_last_row_of_each_key() {
        let mut random = Random::new(11);
        for _ in 0..30 {
            let lines = random.changelog(&columns(), &[0], 200);
            let sum = check_rules(make, &input(), &lines, &mut random);
            assert_eq!(sum, fold(&lines));
        }
    }
}
