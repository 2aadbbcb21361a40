//! FIRST_VALUE and LAST_VALUE, which leave out NULLs, and the value of a scalar subquery, which must be the only one.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType as ArrowType, Int64Type};
use datafusion::common::ScalarValue;

use super::groups::{Groups, Rows};
use crate::error::{Error, FlinkClass, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    First,
    Last,
    Single,
}

/// One value a group.
#[derive(Debug)]
pub(super) struct Values {
    which: Which,
    data_type: ArrowType,
    values: Vec<Option<ScalarValue>>,
    /// How many rows a group had; only `Single` counts.
    row_counts: Vec<i64>,
}

impl Values {
    pub(super) fn first(data_type: ArrowType) -> Values {
        Values::new(Which::First, data_type)
    }

    pub(super) fn last(data_type: ArrowType) -> Values {
        Values::new(Which::Last, data_type)
    }

    pub(super) fn single(data_type: ArrowType) -> Values {
        Values::new(Which::Single, data_type)
    }

    fn new(which: Which, data_type: ArrowType) -> Values {
        Values { which, data_type, values: Vec::new(), row_counts: Vec::new() }
    }

    /// Keeps the value of each group that a batch changes; only those are taken out of the column.
    fn keep(&mut self, column: &ArrayRef, rows: &Rows<'_>) -> Result<()> {
        let mut chosen: Vec<(usize, usize)> = Vec::new();
        let mut position: Vec<Option<usize>> = vec![None; self.values.len()];
        for (row, group) in rows.iter() {
            if column.is_null(row) || (self.which == Which::First && self.values[group].is_some()) {
                continue;
            }
            match position[group] {
                Some(position) if self.which == Which::Last => chosen[position].1 = row,
                Some(_) => {}
                None => {
                    position[group] = Some(chosen.len());
                    chosen.push((group, row));
                }
            }
        }
        for (group, row) in chosen {
            self.values[group] = Some(ScalarValue::try_from_array(column, row)?);
        }
        Ok(())
    }

    fn check_single(&self) -> Result<()> {
        if self.row_counts.iter().any(|count| *count > 1) {
            return Err(Error::data("SingleValueAggFunction received more than one element.")
                .class(FlinkClass::TABLE_RUNTIME));
        }
        Ok(())
    }
}

impl Groups for Values {
    fn grow(&mut self, group_count: usize) {
        self.values.resize(group_count.max(self.values.len()), None);
        self.row_counts.resize(self.values.len(), 0);
    }

    fn count(&self) -> usize {
        self.values.len()
    }

    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        if self.which == Which::Single {
            for (_, group) in rows.iter() {
                self.row_counts[group] += 1;
            }
            self.check_single()?;
        }
        self.keep(&values[0], rows)
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        if self.which == Which::Single {
            let counts = states[1]
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| Error::internal("the state of a single value has a count"))?;
            for (row, group) in rows.iter() {
                self.row_counts[group] += counts.value(row);
            }
            self.check_single()?;
        }
        self.keep(&states[0], rows)
    }

    fn results(&self, groups: Range<usize>) -> Result<ArrayRef> {
        if groups.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.data_type));
        }
        let null = ScalarValue::try_from(&self.data_type)?;
        Ok(ScalarValue::iter_to_array(
            self.values[groups].iter().map(|value| value.clone().unwrap_or_else(|| null.clone())),
        )?)
    }

    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let mut states = vec![self.results(groups.clone())?];
        if self.which == Which::Single {
            states.push(Arc::new(Int64Array::from(self.row_counts[groups].to_vec())));
        }
        Ok(states)
    }

    fn drop_first(&mut self, group_count: usize) {
        self.values.drain(..group_count);
        self.row_counts.drain(..group_count);
    }

    fn size(&self) -> usize {
        self.values
            .iter()
            .map(|value| value.as_ref().map_or(0, ScalarValue::size) + size_of::<ScalarValue>())
            .sum()
    }
}
