//! What an accumulator of ours does, and its two faces in DataFusion: for many groups at once, and for one.

use std::fmt::Debug;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::error::{Error, Result};

/// Accumulated values of groups, which are numbered from 0.
pub(super) trait Groups: Debug + Send + Sync {
    /// Makes room for groups up to a count; new ones are empty.
    fn grow(&mut self, group_count: usize);

    /// Returns how many groups there are.
    fn count(&self) -> usize;

    /// Adds rows of arguments.
    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()>;

    /// Takes back rows that were added before, for frames that move.
    fn retract(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let _ = (values, rows);
        Err(Error::unsupported("this aggregate function cannot be used over a frame that moves"))
    }

    /// Returns whether `retract` works.
    fn can_retract(&self) -> bool {
        false
    }

    /// Adds rows of states.
    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()>;

    /// Returns the results of groups; nothing is consumed.
    fn results(&self, groups: Range<usize>) -> Result<ArrayRef>;

    /// Returns the states of groups; nothing is consumed.
    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>>;

    /// Forgets the first groups; the others move down.
    fn drop_first(&mut self, group_count: usize);

    /// Returns about how many bytes the values take.
    fn size(&self) -> usize;
}

/// Which rows of a batch belong to which groups.
pub(super) struct Rows<'a> {
    /// The group of each row; all in group 0 if None.
    groups: Option<&'a [usize]>,
    /// Rows that count; all if None.
    filter: Option<&'a BooleanArray>,
    count: usize,
}

impl<'a> Rows<'a> {
    /// All rows belong to one group.
    pub(super) fn of_one_group(count: usize) -> Rows<'a> {
        Rows { groups: None, filter: None, count }
    }

    /// Returns rows that count, with their groups.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        let counts = |row: usize| self.filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        (0..self.count)
            .filter(move |row| counts(*row))
            .map(|row| (row, self.groups.map_or(0, |groups| groups[row])))
    }
}

/// The face for many groups.
pub(super) struct ManyGroups(pub(super) Box<dyn Groups>);

impl ManyGroups {
    fn emit(&mut self, emit_to: EmitTo) -> usize {
        match emit_to {
            EmitTo::All => self.0.count(),
            EmitTo::First(count) => count,
        }
    }
}

impl GroupsAccumulator for ManyGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.0.grow(total_num_groups);
        let rows = Rows { groups: Some(group_indices), filter: opt_filter, count: group_indices.len() };
        Ok(self.0.update(values, &rows)?)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> DataFusionResult<ArrayRef> {
        let count = self.emit(emit_to);
        let results = self.0.results(0..count)?;
        self.0.drop_first(count);
        Ok(results)
    }

    fn state(&mut self, emit_to: EmitTo) -> DataFusionResult<Vec<ArrayRef>> {
        let count = self.emit(emit_to);
        let states = self.0.states(0..count)?;
        self.0.drop_first(count);
        Ok(states)
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> DataFusionResult<()> {
        self.0.grow(total_num_groups);
        let rows = Rows { groups: Some(group_indices), filter: opt_filter, count: group_indices.len() };
        Ok(self.0.merge(values, &rows)?)
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

/// The face for one group: no GROUP BY, or a window.
#[derive(Debug)]
pub(super) struct OneGroup(Box<dyn Groups>);

impl OneGroup {
    pub(super) fn new(mut groups: Box<dyn Groups>) -> OneGroup {
        groups.grow(1);
        OneGroup(groups)
    }
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        Ok(self.0.update(values, &Rows::of_one_group(length(values)))?)
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        ScalarValue::try_from_array(&self.0.results(0..1)?, 0)
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        self.0.states(0..1)?.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        Ok(self.0.merge(states, &Rows::of_one_group(length(states)))?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        Ok(self.0.retract(values, &Rows::of_one_group(length(values)))?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.can_retract()
    }
}

fn length(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, Array::len)
}
