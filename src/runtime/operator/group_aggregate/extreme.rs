//! MIN and MAX of fixed-width values that are never taken back: one value a group. Floating-point numbers have Arrow's total order,
//! in which NaN is the largest, whatever its sign.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowNativeType, DataType as ArrowType};

use super::accumulator::Accumulator;
use super::rows::{Rows, Selection};
use crate::error::{Error, Result};
use crate::state::one_nan;

/// The extremes of groups.
struct Extreme<T: ArrowPrimitiveType, const IS_MAX: bool> {
    data_type: ArrowType,
    values: Vec<T::Native>,
    is_set: Vec<bool>,
}

/// Creates the accumulator of a type; None if its values have no fixed width.
pub(super) fn extreme(is_max: bool, data_type: &ArrowType) -> Option<Box<dyn Accumulator>> {
    fn of<T: ArrowPrimitiveType, const IS_MAX: bool>(data_type: &ArrowType) -> Box<dyn Accumulator> {
        let data_type = data_type.clone();
        Box::new(Extreme::<T, IS_MAX> { data_type, values: Vec::new(), is_set: Vec::new() })
    }
    macro_rules! create {
        ($type:ty) => {
            Some(if is_max { of::<$type, true>(data_type) } else { of::<$type, false>(data_type) })
        };
    }
    arrow::array::downcast_primitive! {
        data_type => (create),
        _ => None
    }
}

impl<T: ArrowPrimitiveType, const IS_MAX: bool> Extreme<T, IS_MAX> {
    fn column<'a>(&self, values: Option<&'a ArrayRef>) -> Result<&'a PrimitiveArray<T>> {
        values
            .and_then(|values| values.as_primitive_opt::<T>())
            .ok_or_else(|| Error::internal(format!("MIN or MAX of {} got another column", self.data_type)))
    }
}

impl<T: ArrowPrimitiveType, const IS_MAX: bool> Accumulator for Extreme<T, IS_MAX> {
    fn grow(&mut self, slot_count: usize) {
        let slot_count = slot_count.max(self.values.len());
        self.values.resize(slot_count, T::Native::usize_as(0));
        self.is_set.resize(slot_count, false);
    }

    fn update(&mut self, values: Option<&ArrayRef>, rows: &Rows<'_>) -> Result<()> {
        let one_nan = values.filter(|_| self.data_type.is_floating()).map(one_nan);
        let column = self.column(one_nan.as_ref().or(values))?;
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        let (best, is_set) = (&mut self.values, &mut self.is_set);
        rows.for_each_value(column.values(), nulls, |slot, value, _| {
            let is_better = if IS_MAX { value.is_gt(best[slot]) } else { value.is_lt(best[slot]) };
            if is_better || !is_set[slot] {
                best[slot] = value;
                is_set[slot] = true;
            }
        });
        Ok(())
    }

    fn results(&self, slots: &[u32]) -> Result<ArrayRef> {
        let value = |slot: &u32| self.is_set[*slot as usize].then(|| self.values[*slot as usize]);
        let values: PrimitiveArray<T> = slots.iter().map(value).collect();
        Ok(Arc::new(values.with_data_type(self.data_type.clone())))
    }

    fn clear(&mut self, slot: u32) {
        self.is_set[slot as usize] = false;
    }

    fn state_fields(&self) -> Vec<(String, ArrowType)> {
        vec![("value".to_owned(), self.data_type.clone())]
    }

    fn states(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.results(slots)?])
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.update(columns.first(), &Rows { slots, kinds: None, selection: Selection::All(0..slots.len()) })
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.is_set.capacity()
    }
}
