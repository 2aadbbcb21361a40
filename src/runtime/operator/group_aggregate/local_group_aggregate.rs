//! GROUP BY before rows change workers: where many rows fall into few groups, what they come to is handed over instead of them.
//!
//! What is handed over are rows as a checkpoint has them, one per group, and the operator that owns a group adds them to it. This
//! is for input that is never taken back: then neither the order of rows nor how many of them have come matters to anybody before
//! the epoch ends, and each worker may at any time hand over rows as they are.

use arrow::datatypes::SchemaRef;

use super::super::{Operator, Output};
use super::group_aggregate_operator::GroupAggregateOperator;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::options::AggregatePhaseStrategy;
use crate::plan::{AggregateCall, AggregateFunction, GroupAggregateSpec};

/// After so many batches it is decided anew whether to go on.
const BATCHES: usize = 8;

/// So many batches pass before the next trial.
const BATCHES_BETWEEN_TRIALS: usize = 64;

/// A trial must come to fewer groups per row.
const SHARE_TO_START: f64 = 0.4;

/// From so many groups per row on it is given up.
const SHARE_TO_STOP: f64 = 0.6;

/// Groups of the rows that one worker hands over in an epoch.
pub(crate) struct LocalGroupAggregate {
    operator: GroupAggregateOperator,
    output: Output,
    /// None if rows are always grouped.
    gain: Option<Gain>,
}

impl LocalGroupAggregate {
    /// Creates it for an aggregation; None where that has one phase.
    ///
    /// # Errors
    /// A type cannot be grouped by or aggregated.
    pub(crate) fn new(
        spec: &GroupAggregateSpec,
        input: &SchemaRef,
        output: &SchemaRef,
    ) -> Result<Option<LocalGroupAggregate>> {
        let gain = match spec.phase_strategy {
            AggregatePhaseStrategy::OnePhase => return Ok(None),
            AggregatePhaseStrategy::TwoPhase => None,
            AggregatePhaseStrategy::Auto => Some(Gain::trial()),
        };
        if spec.input_retracts || !spec.calls.iter().all(can_be_merged) {
            return Ok(None);
        }
        let operator = GroupAggregateOperator::new(spec, &[SchemaRef::clone(input)], output)?;
        Ok(Some(LocalGroupAggregate { operator, output: Output::default(), gain }))
    }

    /// Takes rows, unless that is not worth it: then they are to be handed over as they are.
    ///
    /// # Errors
    /// As for `Operator::process`.
    pub(crate) fn take(&mut self, rows: &ChangelogBatch) -> Result<bool> {
        if self.gain.as_mut().is_some_and(|gain| !gain.takes_batch()) {
            return Ok(false);
        }
        let known = self.operator.touched_count();
        self.operator.process(GroupAggregateOperator::ROWS, rows.clone(), &mut self.output)?;
        if let Some(gain) = &mut self.gain {
            gain.note(rows.row_count(), self.operator.touched_count() - known);
        }
        Ok(true)
    }

    /// Takes out the groups of the rows so far, their keys in the first columns; None if there were no rows.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn take_groups(&mut self) -> Result<Option<ChangelogBatch>> {
        Ok(self.operator.take_groups()?.map(ChangelogBatch::inserts))
    }

    /// Returns how many columns the keys have.
    pub(crate) fn key_count(&self) -> usize {
        self.operator.key_count()
    }
}

/// Returns whether two results over parts of the rows say what the one over all is.
fn can_be_merged(call: &AggregateCall) -> bool {
    use AggregateFunction as Function;
    match call.function {
        Function::Min | Function::Max => true,
        Function::Count
        | Function::Sum
        | Function::Average
        | Function::VariancePopulation
        | Function::VarianceSample
        | Function::DeviationPopulation
        | Function::DeviationSample => !call.is_distinct,
        Function::FirstValue
        | Function::LastValue
        | Function::SingleValue
        | Function::ListAgg(_)
        | Function::Collect
        | Function::ArrayAgg => false,
    }
}

/// Decides from the last batches whether groups are so much fewer than rows that grouping is worth it.
#[derive(Debug)]
struct Gain {
    /// How many groups per row are too many; None while rows are not grouped.
    share_max: Option<f64>,
    batches: usize,
    rows: usize,
    groups: usize,
}

impl Gain {
    fn trial() -> Gain {
        Gain { share_max: Some(SHARE_TO_START), batches: 0, rows: 0, groups: 0 }
    }

    /// Returns whether the next batch is to be grouped.
    fn takes_batch(&mut self) -> bool {
        if self.share_max.is_some() {
            return true;
        }
        self.batches += 1;
        if self.batches == BATCHES_BETWEEN_TRIALS {
            *self = Gain::trial();
        }
        false
    }

    /// Notes what a batch has come to.
    fn note(&mut self, rows: usize, groups: usize) {
        self.batches += 1;
        self.rows += rows;
        self.groups += groups;
        if self.batches == BATCHES {
            let share = self.groups as f64 / self.rows.max(1) as f64;
            let is_worth_it = self.share_max.is_some_and(|share_max| share < share_max);
            *self = Gain { share_max: is_worth_it.then_some(SHARE_TO_STOP), ..Gain::trial() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives batches of ten rows and so many new groups each; returns how many of them were taken.
    fn taken(gain: &mut Gain, batches: usize, groups: usize) -> usize {
        let mut taken = 0;
        for _ in 0..batches {
            if gain.takes_batch() {
                gain.note(10, groups);
                taken += 1;
            }
        }
        taken
    }

    #[test]
    fn rows_are_grouped_while_that_makes_them_much_fewer() {
        let mut gain = Gain::trial();
        assert_eq!(taken(&mut gain, 100, 3), 100);
        assert_eq!(taken(&mut gain, 4, 5), 4, "in the middle of a window");
        assert_eq!(taken(&mut gain, 96, 5), 96, "what is on goes on");
        assert_eq!(taken(&mut gain, 8, 9), 8);
        assert_eq!(taken(&mut gain, 72, 5), 8, "what is off needs a better trial");
        assert_eq!(taken(&mut gain, 72, 3), 8);
        assert_eq!(taken(&mut gain, 72, 3), 72);
    }
}
