//! COUNT of rows or of values that are not NULL. COUNT(*) without FILTER needs none of this: the group knows it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType as ArrowType, Int64Type};

use super::accumulator::Accumulator;
use super::rows::Rows;
use crate::error::{Error, Result};

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Count {
    counts: Vec<i64>,
}

impl Accumulator for Count {
    fn grow(&mut self, slot_count: usize) {
        self.counts.resize(slot_count.max(self.counts.len()), 0);
    }

    fn update(&mut self, values: Option<&ArrayRef>, rows: &Rows<'_>) -> Result<()> {
        let nulls = values.and_then(Array::logical_nulls).filter(|nulls| nulls.null_count() > 0);
        // The slots take the place of values, which are not looked at.
        rows.for_each_value(rows.slots, nulls.as_ref(), |slot, _, is_retraction| {
            self.counts[slot] += if is_retraction { -1 } else { 1 };
        });
        Ok(())
    }

    fn results(&self, slots: &[u32]) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from_iter_values(slots.iter().map(|slot| self.counts[*slot as usize]))))
    }

    fn clear(&mut self, slot: u32) {
        self.counts[slot as usize] = 0;
    }

    fn state_fields(&self) -> Vec<(String, ArrowType)> {
        vec![("count".to_owned(), ArrowType::Int64)]
    }

    fn states(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(slots)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        let counts = columns
            .first()
            .and_then(|column| column.as_primitive_opt::<Int64Type>())
            .ok_or_else(|| Error::internal("the state of COUNT is a BIGINT"))?;
        for (slot, count) in slots.iter().zip(counts) {
            self.counts[*slot as usize] += count.unwrap_or(0);
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
