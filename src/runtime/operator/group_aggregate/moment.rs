//! SUM, AVG, variance and deviation: the arithmetic is that of batch queries (`function::Moments`), over columns of any width.

use std::marker::PhantomData;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{
    DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type,
};

use super::accumulator::Accumulator;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::function::{AggregateFunction, DecimalSum, FloatSum, IntegerSum, Moments, RunningSum};
use crate::schema::DataType;

/// The moments of a column of type `A`.
struct Moment<A, S> {
    moments: Moments<S>,
    argument: PhantomData<fn() -> A>,
}

/// Creates the accumulator of numbers in a column of type `column`, which is as wide as `argument` or narrower.
///
/// # Errors
/// The column holds no numbers.
pub(super) fn moment(
    function: &AggregateFunction,
    column: &ArrowType,
    argument: &DataType,
    result: &DataType,
) -> Result<Box<dyn Accumulator>> {
    fn of<A, S>(function: &AggregateFunction, argument: &DataType, result: &DataType) -> Box<dyn Accumulator>
    where
        A: ArrowPrimitiveType<Native: Into<S::Value>>,
        S: RunningSum,
    {
        let moments = Moments::<S>::new(function, argument, result);
        Box::new(Moment::<A, S> { moments, argument: PhantomData })
    }
    let create = match column {
        ArrowType::Int8 => of::<Int8Type, IntegerSum>,
        ArrowType::Int16 => of::<Int16Type, IntegerSum>,
        ArrowType::Int32 => of::<Int32Type, IntegerSum>,
        ArrowType::Int64 => of::<Int64Type, IntegerSum>,
        ArrowType::Float32 => of::<Float32Type, FloatSum>,
        ArrowType::Float64 => of::<Float64Type, FloatSum>,
        ArrowType::Decimal128(..) => of::<Decimal128Type, DecimalSum>,
        other => return Err(Error::internal(format!("{other} is no type of numbers"))),
    };
    Ok(create(function, argument, result))
}

fn indices(slots: &[u32]) -> impl Iterator<Item = usize> + '_ {
    slots.iter().map(|slot| *slot as usize)
}

impl<A, S> Accumulator for Moment<A, S>
where
    A: ArrowPrimitiveType<Native: Into<S::Value>>,
    S: RunningSum,
{
    fn grow(&mut self, slot_count: usize) {
        self.moments.grow(slot_count);
    }

    fn update(&mut self, values: Option<&ArrayRef>, rows: &Rows<'_>) -> Result<()> {
        let values = values
            .and_then(|values| values.as_primitive_opt::<A>())
            .ok_or_else(|| Error::internal("an aggregate of numbers got another column"))?;
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
        let moments = &mut self.moments;
        if moments.needs_squares() {
            rows.for_each_value(values.values(), nulls, |slot, value, is_retraction| {
                if is_retraction {
                    moments.subtract_with_square(slot, value.into());
                } else {
                    moments.add_with_square(slot, value.into());
                }
            });
        } else {
            rows.for_each_value(values.values(), nulls, |slot, value, is_retraction| {
                if is_retraction {
                    moments.subtract(slot, value.into());
                } else {
                    moments.add(slot, value.into());
                }
            });
        }
        Ok(())
    }

    fn results(&self, slots: &[u32]) -> Result<ArrayRef> {
        self.moments.results(indices(slots))
    }

    fn clear(&mut self, slot: u32) {
        self.moments.clear(slot as usize);
    }

    fn state_fields(&self) -> Vec<(String, ArrowType)> {
        self.moments.state_fields()
    }

    fn states(&self, slots: &[u32]) -> Result<Vec<ArrayRef>> {
        Ok(self.moments.states(indices(slots)))
    }

    fn load(&mut self, slots: &[u32], columns: &[ArrayRef]) -> Result<()> {
        self.moments.merge(columns, indices(slots).enumerate())
    }

    fn bytes(&self) -> usize {
        self.moments.bytes()
    }
}
