//! SUM, AVG, variance and deviation: count, sum and sum of squares of each group, in integers, doubles or decimals.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray,
};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int64Type};

use super::super::EvalContext;
use super::super::cast::cast as cast_column;
use super::super::decimal::{DecimalOperation, fits};
use super::aggregate_function::AggregateFunction;
use super::groups::{Groups, Rows};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// Types an aggregate of numbers: what it computes, what its argument is cast to, and what it returns.
pub(super) fn typed(name: &str, argument: &DataType) -> Option<(AggregateFunction, DataType, TypeRoot)> {
    let kind = match name {
        "SUM" => AggregateFunction::Sum,
        "AVG" => AggregateFunction::Average,
        "VAR_POP" => AggregateFunction::VariancePopulation,
        "VAR_SAMP" | "VARIANCE" => AggregateFunction::VarianceSample,
        "STDDEV_POP" => AggregateFunction::DeviationPopulation,
        "STDDEV_SAMP" | "STDDEV" => AggregateFunction::DeviationSample,
        _ => return None,
    };
    let result = match &argument.root {
        TypeRoot::Decimal(_, scale) if kind == AggregateFunction::Sum => TypeRoot::Decimal(38, *scale),
        TypeRoot::Decimal(_, scale) => TypeRoot::Decimal(38, (*scale).max(6)),
        other => other.clone(),
    };
    let wide = match &argument.root {
        TypeRoot::Decimal(_, scale)
            if matches!(kind, AggregateFunction::Sum | AggregateFunction::Average) =>
        {
            TypeRoot::Decimal(38, *scale)
        }
        // Limit: squares of decimals pass 38 digits soon, so their variance is computed in doubles.
        TypeRoot::Decimal(..) => TypeRoot::Double,
        TypeRoot::Float if kind == AggregateFunction::Sum => TypeRoot::Float,
        root if root.is_approximate() => TypeRoot::Double,
        _ => TypeRoot::BigInt,
    };
    Some((kind, DataType { root: wide, nullable: argument.nullable }, result))
}

/// Creates the accumulator for arguments of the type that `typed` asked for.
pub(super) fn accumulator(
    kind: &AggregateFunction,
    argument: &DataType,
    result: &DataType,
) -> Box<dyn Groups> {
    match &argument.root {
        TypeRoot::Float => Box::new(Moments::<Float32Type>::new(kind, argument, result)),
        TypeRoot::Double => Box::new(Moments::<Float64Type>::new(kind, argument, result)),
        TypeRoot::Decimal(..) => Box::new(Moments::<Decimal128Type>::new(kind, argument, result)),
        _ => Box::new(Moments::<Int64Type>::new(kind, argument, result)),
    }
}

/// Returns the types of the states: sum, count, and for variances the sum of squares.
pub(super) fn state_types(kind: &AggregateFunction, argument: &DataType) -> Vec<ArrowType> {
    let sum = argument.to_arrow();
    if needs_squares(kind) { vec![sum.clone(), ArrowType::Int64, sum] } else { vec![sum, ArrowType::Int64] }
}

fn needs_squares(kind: &AggregateFunction) -> bool {
    !matches!(kind, AggregateFunction::Sum | AggregateFunction::Average)
}

/// A number that sums are kept in.
trait Summand: Copy + Default + Debug + Send + Sync {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn square(self) -> Self;
    /// Returns the variance in the arithmetic of the type: of integers the quotients are cut.
    fn variance(squares: Self, sum: Self, count: i64, divisor: i64) -> f64;
    /// Returns the sum by the count; a decimal goes from the first scale to the second.
    fn average(self, count: i64, scales: (u8, u8)) -> Option<Self>;
    /// Returns the sum if the type can hold it.
    fn checked(self) -> Option<Self>;
}

impl Summand for i64 {
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    fn minus(self, other: i64) -> i64 {
        self.wrapping_sub(other)
    }
    fn square(self) -> i64 {
        self.wrapping_mul(self)
    }
    fn variance(squares: i64, sum: i64, count: i64, divisor: i64) -> f64 {
        (squares.wrapping_sub(sum.wrapping_mul(sum) / count) / divisor) as f64
    }
    fn average(self, count: i64, _: (u8, u8)) -> Option<i64> {
        Some(self / count)
    }
    fn checked(self) -> Option<i64> {
        Some(self)
    }
}

macro_rules! approximate_summands {
    ($($native:ty),*) => {
        $(impl Summand for $native {
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn square(self) -> Self { self * self }
            fn variance(squares: Self, sum: Self, count: i64, divisor: i64) -> f64 {
                f64::from((squares - sum * sum / count as Self) / divisor as Self)
            }
            fn average(self, count: i64, _: (u8, u8)) -> Option<Self> { Some(self / count as Self) }
            fn checked(self) -> Option<Self> { Some(self) }
        })*
    };
}

approximate_summands!(f32, f64);

/// A sum of decimals that passed what an i128 holds; it stays there.
const OVERFLOWN: i128 = i128::MAX;

impl Summand for i128 {
    fn plus(self, other: i128) -> i128 {
        if self == OVERFLOWN || other == OVERFLOWN {
            return OVERFLOWN;
        }
        self.checked_add(other).unwrap_or(OVERFLOWN)
    }
    fn minus(self, other: i128) -> i128 {
        if self == OVERFLOWN || other == OVERFLOWN {
            return OVERFLOWN;
        }
        self.checked_sub(other).unwrap_or(OVERFLOWN)
    }
    fn square(self) -> i128 {
        self
    }
    fn variance(_: i128, _: i128, _: i64, _: i64) -> f64 {
        f64::NAN
    }
    fn average(self, count: i64, (from, to): (u8, u8)) -> Option<i128> {
        let operation = DecimalOperation { left_scale: from, right_scale: 0, precision: 38, scale: to };
        operation.divide(self.checked()?, i128::from(count))
    }
    fn checked(self) -> Option<i128> {
        (self != OVERFLOWN && fits(self, 38)).then_some(self)
    }
}

/// Count, sum and sum of squares of groups.
#[derive(Debug)]
struct Moments<T: ArrowPrimitiveType> {
    kind: AggregateFunction,
    argument: DataType,
    result: DataType,
    sums: Vec<T::Native>,
    counts: Vec<i64>,
    squares: Vec<T::Native>,
}

impl<T> Moments<T>
where
    T: ArrowPrimitiveType + Debug,
    T::Native: Summand,
{
    fn new(kind: &AggregateFunction, argument: &DataType, result: &DataType) -> Moments<T> {
        Moments {
            kind: kind.clone(),
            argument: argument.clone(),
            result: result.clone(),
            sums: Vec::new(),
            counts: Vec::new(),
            squares: Vec::new(),
        }
    }

    fn add(
        &mut self,
        values: &[ArrayRef],
        rows: &Rows<'_>,
        sign: i64,
        combine: fn(T::Native, T::Native) -> T::Native,
    ) -> Result<()> {
        let values = column::<T>(values, 0)?;
        let with_squares = needs_squares(&self.kind);
        for (row, group) in rows.iter() {
            if values.is_null(row) {
                continue;
            }
            let value = values.value(row);
            self.sums[group] = combine(self.sums[group], value);
            self.counts[group] += sign;
            if with_squares {
                self.squares[group] = combine(self.squares[group], value.square());
            }
        }
        Ok(())
    }

    /// Computes sums or averages, which have the type of the argument but another scale.
    fn quotients(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let scale = |data_type: &DataType| data_type.root.as_decimal().map_or(0, |(_, scale)| scale);
        let scales = (scale(&self.argument), scale(&self.result));
        let values: PrimitiveArray<T> = groups
            .map(|group| match (&self.kind, self.counts[group]) {
                (_, 0) => None,
                (AggregateFunction::Sum, _) => self.sums[group].checked(),
                (_, count) => self.sums[group].average(count, scales),
            })
            .collect();
        if matches!(self.argument.root, TypeRoot::Decimal(..)) {
            return Ok(Arc::new(values.with_data_type(self.result.to_arrow())));
        }
        narrow(&(Arc::new(values) as ArrayRef), &self.argument, &self.result)
    }

    /// Computes variances or deviations.
    fn variances(&self, groups: Range<usize>) -> Result<ArrayRef> {
        let is_sample =
            matches!(self.kind, AggregateFunction::VarianceSample | AggregateFunction::DeviationSample);
        let is_deviation =
            matches!(self.kind, AggregateFunction::DeviationPopulation | AggregateFunction::DeviationSample);
        let values: PrimitiveArray<Float64Type> = groups
            .map(|group| {
                let count = self.counts[group];
                let divisor = if is_sample { count - 1 } else { count };
                if divisor <= 0 {
                    return None;
                }
                let variance = Summand::variance(self.squares[group], self.sums[group], count, divisor);
                Some(if is_deviation { variance.sqrt() } else { variance })
            })
            .collect();
        narrow(&(Arc::new(values) as ArrayRef), &TypeRoot::Double.nullable(), &self.result)
    }
}

/// Casts results to their type; integers wrap.
fn narrow(values: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    let context = EvalContext { zone: chrono_tz::Tz::UTC, query_start: None, database: String::new() };
    cast_column(values, from, to, false, &context)
}

fn column<T: ArrowPrimitiveType>(columns: &[ArrayRef], index: usize) -> Result<&PrimitiveArray<T>> {
    columns
        .get(index)
        .and_then(|column| column.as_primitive_opt::<T>())
        .ok_or_else(|| Error::internal("an aggregate of numbers got another column"))
}

impl<T> Groups for Moments<T>
where
    T: ArrowPrimitiveType + Debug,
    T::Native: Summand,
{
    fn grow(&mut self, group_count: usize) {
        let group_count = group_count.max(self.counts.len());
        self.sums.resize(group_count, T::Native::default());
        self.counts.resize(group_count, 0);
        if needs_squares(&self.kind) {
            self.squares.resize(group_count, T::Native::default());
        }
    }

    fn count(&self) -> usize {
        self.counts.len()
    }

    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.add(values, rows, 1, Summand::plus)
    }

    fn retract(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.add(values, rows, -1, Summand::minus)
    }

    fn can_retract(&self) -> bool {
        true
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        let (sums, counts) = (column::<T>(states, 0)?, column::<Int64Type>(states, 1)?);
        let squares = if needs_squares(&self.kind) { Some(column::<T>(states, 2)?) } else { None };
        for (row, group) in rows.iter() {
            // A sum that passed its type is NULL in the state but has a count.
            let sum = if sums.is_valid(row) || counts.value(row) == 0 { Some(sums.value(row)) } else { None };
            self.sums[group] = match sum {
                Some(sum) => self.sums[group].plus(sum),
                None => T::Native::MAX_TOTAL_ORDER,
            };
            self.counts[group] += counts.value(row);
            if let Some(squares) = squares {
                self.squares[group] = self.squares[group].plus(squares.value(row));
            }
        }
        Ok(())
    }

    fn results(&self, groups: Range<usize>) -> Result<ArrayRef> {
        if needs_squares(&self.kind) { self.variances(groups) } else { self.quotients(groups) }
    }

    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        let numbers = |values: &[T::Native]| -> ArrayRef {
            let array: PrimitiveArray<T> = values.iter().map(|value| value.checked()).collect();
            Arc::new(array.with_data_type(self.argument.to_arrow()))
        };
        let mut states = vec![
            numbers(&self.sums[groups.clone()]),
            Arc::new(Int64Array::from(self.counts[groups.clone()].to_vec())) as ArrayRef,
        ];
        if needs_squares(&self.kind) {
            states.push(numbers(&self.squares[groups]));
        }
        Ok(states)
    }

    fn drop_first(&mut self, group_count: usize) {
        self.sums.drain(..group_count);
        self.counts.drain(..group_count);
        if needs_squares(&self.kind) {
            self.squares.drain(..group_count);
        }
    }

    fn size(&self) -> usize {
        (self.sums.capacity() + self.squares.capacity()) * size_of::<T::Native>() + self.counts.capacity() * 8
    }
}
