//! SUM, AVG, variance and deviation: count, sum and sum of squares of each group, in integers, doubles or decimals.
//!
//! Batch queries and changelogs compute with the same `Moments`; only where their rows come from differs.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Int64Array, PrimitiveArray};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float32Type, Float64Type, Int64Type};

use super::super::EvalContext;
use super::super::cast::cast as cast_column;
use super::aggregate_function::AggregateFunction;
use super::groups::{Groups, Rows};
use super::running_sum::{DecimalSum, FloatSum, IntegerSum, RunningSum};
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
    function: &AggregateFunction,
    argument: &DataType,
    result: &DataType,
) -> Box<dyn Groups> {
    fn groups<A, S>(moments: Moments<S>) -> Box<dyn Groups>
    where
        A: ArrowPrimitiveType<Native: Into<S::Value>> + Debug,
        S: RunningSum,
    {
        Box::new(MomentGroups::<A, S> { moments, argument: PhantomData })
    }
    match &argument.root {
        TypeRoot::Float => groups::<Float32Type, FloatSum>(Moments::new(function, argument, result)),
        TypeRoot::Double => groups::<Float64Type, FloatSum>(Moments::new(function, argument, result)),
        TypeRoot::Decimal(..) => {
            groups::<Decimal128Type, DecimalSum>(Moments::new(function, argument, result))
        }
        _ => groups::<Int64Type, IntegerSum>(Moments::new(function, argument, result)),
    }
}

/// Returns the types of the states.
pub(super) fn state_types(function: &AggregateFunction, argument: &DataType) -> Vec<ArrowType> {
    let fields = match &argument.root {
        TypeRoot::Float | TypeRoot::Double => Moments::<FloatSum>::state_fields_of(function),
        TypeRoot::Decimal(..) => Moments::<DecimalSum>::state_fields_of(function),
        _ => Moments::<IntegerSum>::state_fields_of(function),
    };
    fields.into_iter().map(|(_, data_type)| data_type).collect()
}

fn needs_squares(function: &AggregateFunction) -> bool {
    !matches!(function, AggregateFunction::Sum | AggregateFunction::Average)
}

/// Count, sum and sum of squares of groups.
#[derive(Debug)]
pub(crate) struct Moments<S> {
    function: AggregateFunction,
    argument: DataType,
    result: DataType,
    sums: Vec<S>,
    counts: Vec<i64>,
    /// Empty where the function needs none.
    squares: Vec<S>,
}

impl<S: RunningSum> Moments<S> {
    /// Creates the moments of no groups; `function` is one that `typed` knows.
    pub(crate) fn new(function: &AggregateFunction, argument: &DataType, result: &DataType) -> Moments<S> {
        Moments {
            function: function.clone(),
            argument: argument.clone(),
            result: result.clone(),
            sums: Vec::new(),
            counts: Vec::new(),
            squares: Vec::new(),
        }
    }

    /// Makes room for groups up to a count; new ones are empty.
    pub(crate) fn grow(&mut self, group_count: usize) {
        let group_count = group_count.max(self.counts.len());
        self.sums.resize(group_count, S::default());
        self.counts.resize(group_count, 0);
        if needs_squares(&self.function) {
            self.squares.resize(group_count, S::default());
        }
    }

    /// Returns whether `add_with_square` and its kin are to be called instead of `add`.
    pub(crate) fn needs_squares(&self) -> bool {
        needs_squares(&self.function)
    }

    /// Adds a value to a group.
    #[inline]
    pub(crate) fn add(&mut self, group: usize, value: S::Value) {
        self.sums[group].add(value);
        self.counts[group] += 1;
    }

    /// Takes a value back from a group.
    #[inline]
    pub(crate) fn subtract(&mut self, group: usize, value: S::Value) {
        self.sums[group].subtract(value);
        self.counts[group] -= 1;
    }

    /// Adds a value and its square to a group.
    #[inline]
    pub(crate) fn add_with_square(&mut self, group: usize, value: S::Value) {
        self.add(group, value);
        self.squares[group].add(S::square(value));
    }

    /// Takes a value and its square back from a group.
    #[inline]
    pub(crate) fn subtract_with_square(&mut self, group: usize, value: S::Value) {
        self.subtract(group, value);
        self.squares[group].subtract(S::square(value));
    }

    /// Empties a group.
    pub(crate) fn clear(&mut self, group: usize) {
        self.sums[group] = S::default();
        self.counts[group] = 0;
        if let Some(squares) = self.squares.get_mut(group) {
            *squares = S::default();
        }
    }

    /// Returns the results of groups.
    ///
    /// # Errors
    /// The result's type is none of a number.
    pub(crate) fn results(&self, groups: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        if self.needs_squares() { self.variances(groups) } else { self.quotients(groups) }
    }

    /// Computes sums or averages, which have the type of the argument but another scale.
    fn quotients(&self, groups: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let scale = |data_type: &DataType| data_type.root.as_decimal().map_or(0, |(_, scale)| scale);
        let scales = (scale(&self.argument), scale(&self.result));
        let is_sum = self.function == AggregateFunction::Sum;
        let values: PrimitiveArray<S::Result> = groups
            .map(|group| match self.counts[group] {
                // A count below nothing is of values that were taken back without having been there.
                count if count <= 0 => None,
                _ if is_sum => self.sums[group].sum(),
                count => self.sums[group].average(count, scales),
            })
            .collect();
        if matches!(self.argument.root, TypeRoot::Decimal(..)) {
            return Ok(Arc::new(values.with_data_type(self.result.to_arrow())));
        }
        let wide = if self.argument.root.is_approximate() { TypeRoot::Double } else { TypeRoot::BigInt };
        narrow(Arc::new(values), wide, &self.result)
    }

    /// Computes variances or deviations.
    fn variances(&self, groups: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let is_sample =
            matches!(self.function, AggregateFunction::VarianceSample | AggregateFunction::DeviationSample);
        let is_deviation = matches!(
            self.function,
            AggregateFunction::DeviationPopulation | AggregateFunction::DeviationSample
        );
        let values: PrimitiveArray<Float64Type> = groups
            .map(|group| {
                let count = self.counts[group];
                let divisor = if is_sample { count - 1 } else { count };
                if divisor <= 0 {
                    return None;
                }
                let variance = S::variance(&self.squares[group], &self.sums[group], count, divisor);
                Some(if is_deviation { variance.sqrt() } else { variance })
            })
            .collect();
        narrow(Arc::new(values), TypeRoot::Double, &self.result)
    }

    /// Returns the names and types of the state's columns: those of the sum, the count, and those of the sum of squares.
    pub(crate) fn state_fields(&self) -> Vec<(String, ArrowType)> {
        Moments::<S>::state_fields_of(&self.function)
    }

    fn state_fields_of(function: &AggregateFunction) -> Vec<(String, ArrowType)> {
        let named = |prefix: &str| {
            let prefix = prefix.to_owned();
            S::STATE.iter().map(move |(name, data_type)| (format!("{prefix}{name}"), data_type.clone()))
        };
        let mut fields: Vec<_> = named("").collect();
        fields.push(("count".to_owned(), ArrowType::Int64));
        if needs_squares(function) {
            fields.extend(named("square_"));
        }
        fields
    }

    /// Returns the state of groups.
    pub(crate) fn states(&self, groups: impl Iterator<Item = usize>) -> Vec<ArrayRef> {
        let groups: Vec<usize> = groups.collect();
        let of = |sums: &[S]| S::to_columns(&groups.iter().map(|group| sums[*group]).collect::<Vec<S>>());
        let mut states = of(&self.sums);
        states.push(Arc::new(Int64Array::from_iter_values(groups.iter().map(|group| self.counts[*group]))));
        if self.needs_squares() {
            states.extend(of(&self.squares));
        }
        states
    }

    /// Adds rows of states to groups.
    ///
    /// # Errors
    /// The columns are others.
    pub(crate) fn merge(
        &mut self,
        states: &[ArrayRef],
        rows: impl Iterator<Item = (usize, usize)>,
    ) -> Result<()> {
        let width = S::STATE.len();
        if states.len() != self.state_fields().len() {
            return Err(Error::internal("the state of an aggregate of numbers has other columns"));
        }
        let sums = S::from_columns(&states[..width])?;
        let counts = column::<Int64Type>(states, width)?;
        let squares = if self.needs_squares() { S::from_columns(&states[width + 1..])? } else { Vec::new() };
        for (row, group) in rows {
            self.sums[group].merge(&sums[row]);
            self.counts[group] += if counts.is_null(row) { 0 } else { counts.value(row) };
            if let Some(square) = squares.get(row) {
                self.squares[group].merge(square);
            }
        }
        Ok(())
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        (self.sums.capacity() + self.squares.capacity()) * size_of::<S>()
            + self.counts.capacity() * size_of::<i64>()
    }
}

/// Casts results to their type; integers wrap.
fn narrow(values: ArrayRef, from: TypeRoot, to: &DataType) -> Result<ArrayRef> {
    if from == to.root {
        return Ok(values);
    }
    let context = EvalContext { zone: chrono_tz::Tz::UTC, query_start: None, database: String::new() };
    cast_column(&values, &from.nullable(), to, false, &context)
}

fn column<T: ArrowPrimitiveType>(columns: &[ArrayRef], index: usize) -> Result<&PrimitiveArray<T>> {
    columns
        .get(index)
        .and_then(|column| column.as_primitive_opt::<T>())
        .ok_or_else(|| Error::internal("an aggregate of numbers got another column"))
}

/// The moments of a batch query's groups, over arguments of an Arrow type.
#[derive(Debug)]
struct MomentGroups<A, S> {
    moments: Moments<S>,
    argument: PhantomData<fn() -> A>,
}

impl<A, S> MomentGroups<A, S>
where
    A: ArrowPrimitiveType<Native: Into<S::Value>>,
    S: RunningSum,
{
    fn each(
        &mut self,
        values: &[ArrayRef],
        rows: &Rows<'_>,
        mut change: impl FnMut(&mut Moments<S>, usize, S::Value),
    ) -> Result<()> {
        let values = column::<A>(values, 0)?;
        for (row, group) in rows.iter() {
            if values.is_valid(row) {
                change(&mut self.moments, group, values.value(row).into());
            }
        }
        Ok(())
    }
}

impl<A, S> Groups for MomentGroups<A, S>
where
    A: ArrowPrimitiveType<Native: Into<S::Value>> + Debug,
    S: RunningSum,
{
    fn grow(&mut self, group_count: usize) {
        self.moments.grow(group_count);
    }

    fn count(&self) -> usize {
        self.moments.counts.len()
    }

    fn update(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        if self.moments.needs_squares() {
            return self.each(values, rows, Moments::add_with_square);
        }
        self.each(values, rows, Moments::add)
    }

    fn retract(&mut self, values: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        if self.moments.needs_squares() {
            return self.each(values, rows, Moments::subtract_with_square);
        }
        self.each(values, rows, Moments::subtract)
    }

    fn can_retract(&self) -> bool {
        true
    }

    fn merge(&mut self, states: &[ArrayRef], rows: &Rows<'_>) -> Result<()> {
        self.moments.merge(states, rows.iter())
    }

    fn results(&self, groups: Range<usize>) -> Result<ArrayRef> {
        self.moments.results(groups)
    }

    fn states(&self, groups: Range<usize>) -> Result<Vec<ArrayRef>> {
        Ok(self.moments.states(groups))
    }

    fn drop_first(&mut self, group_count: usize) {
        self.moments.sums.drain(..group_count);
        self.moments.counts.drain(..group_count);
        if self.moments.needs_squares() {
            self.moments.squares.drain(..group_count);
        }
    }

    fn size(&self) -> usize {
        self.moments.bytes()
    }
}
