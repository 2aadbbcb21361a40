//! DISTINCT around any accumulator: each value is passed on once, in the order of first arrival, when the result is asked for.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::datatypes::DataType as ArrowType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Accumulator;

use crate::error::Error;

/// The distinct values so far, and who computes the result from them.
pub(super) struct Distinct {
    data_type: ArrowType,
    converter: RowConverter,
    seen: HashSet<OwnedRow>,
    values: Vec<ArrayRef>,
    /// How many of `values` were passed on.
    passed: usize,
    inner: Box<dyn Accumulator>,
}

impl Distinct {
    pub(super) fn new(data_type: ArrowType, inner: Box<dyn Accumulator>) -> DataFusionResult<Distinct> {
        let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
        Ok(Distinct { data_type, converter, seen: HashSet::new(), values: Vec::new(), passed: 0, inner })
    }
}

impl std::fmt::Debug for Distinct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Distinct").field("inner", &self.inner).field("seen", &self.seen.len()).finish()
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DataFusionResult<()> {
        let [column] = values else { return Err(Error::internal("DISTINCT takes one column").into()) };
        let rows = self.converter.convert_columns(std::slice::from_ref(column))?;
        let mut fresh = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            if self.seen.insert(row.owned()) {
                fresh.push(index as u32);
            }
        }
        if !fresh.is_empty() {
            self.values.push(arrow::compute::take(column, &UInt32Array::from(fresh), None)?);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> DataFusionResult<ScalarValue> {
        for values in &self.values[self.passed..] {
            self.inner.update_batch(std::slice::from_ref(values))?;
        }
        self.passed = self.values.len();
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        let values: usize = self.values.iter().map(Array::get_array_memory_size).sum();
        // Each value is kept a second time, as a row in the set.
        2 * values + self.inner.size()
    }

    fn state(&mut self) -> DataFusionResult<Vec<ScalarValue>> {
        let parts: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        let all = match parts.as_slice() {
            [] => arrow::array::new_empty_array(&self.data_type),
            parts => arrow::compute::concat(parts)?,
        };
        Ok(vec![SingleRowListArrayBuilder::new(all).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DataFusionResult<()> {
        let lists = states
            .first()
            .and_then(|state| state.as_list_opt::<i32>())
            .ok_or_else(|| Error::internal("the state of DISTINCT is a list"))?;
        for row in 0..lists.len() {
            if lists.is_valid(row) {
                self.update_batch(&[lists.value(row)])?;
            }
        }
        Ok(())
    }
}
