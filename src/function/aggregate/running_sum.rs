//! Sums that can take values back, shared by batch accumulators and the state of changelogs, so that both answer the same bits.
//!
//! A sum passes through states that its type cannot show: a decimal of 40 digits, an infinity. What comes in later may bring it
//! back, so nothing sticks: decimals count how often they went round, doubles count NaN and infinities beside the sum.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType as ArrowType, Decimal128Type, Float64Type, Int64Type};

use super::super::decimal::{DecimalOperation, fits};
use crate::error::{Error, Result};

/// The sum of a group's values.
pub(crate) trait RunningSum: Copy + Default + Debug + Send + Sync + 'static {
    /// What is added.
    type Value: Copy;
    /// The Arrow type of sums and averages.
    type Result: ArrowPrimitiveType + Debug;
    /// The columns that hold a sum, with their names.
    const STATE: &'static [(&'static str, ArrowType)];

    /// Adds a value.
    fn add(&mut self, value: Self::Value);
    /// Takes a value back.
    fn subtract(&mut self, value: Self::Value);
    /// Adds all that another sum has.
    fn merge(&mut self, other: &Self);
    /// Returns the square of a value; it wraps.
    fn square(value: Self::Value) -> Self::Value;
    /// Returns the sum, if its type can hold it.
    fn sum(&self) -> Option<<Self::Result as ArrowPrimitiveType>::Native>;
    /// Returns the sum by the count; a decimal goes from the first scale to the second.
    fn average(&self, count: i64, scales: (u8, u8)) -> Option<<Self::Result as ArrowPrimitiveType>::Native>;
    /// Returns the variance.
    fn variance(squares: &Self, sum: &Self, count: i64, divisor: i64) -> f64;
    /// Returns sums as the columns of `STATE`.
    fn to_columns(sums: &[Self]) -> Vec<ArrayRef>;
    /// Returns the sums in the columns of `STATE`; NULL is an empty sum.
    ///
    /// # Errors
    /// The columns are others.
    fn from_columns(columns: &[ArrayRef]) -> Result<Vec<Self>>;
}

/// A sum of integers, which wraps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IntegerSum(i64);

impl RunningSum for IntegerSum {
    type Value = i64;
    type Result = Int64Type;
    const STATE: &'static [(&'static str, ArrowType)] = &[("sum", ArrowType::Int64)];

    #[inline]
    fn add(&mut self, value: i64) {
        self.0 = self.0.wrapping_add(value);
    }
    #[inline]
    fn subtract(&mut self, value: i64) {
        self.0 = self.0.wrapping_sub(value);
    }
    fn merge(&mut self, other: &IntegerSum) {
        self.add(other.0);
    }
    fn square(value: i64) -> i64 {
        value.wrapping_mul(value)
    }
    fn sum(&self) -> Option<i64> {
        Some(self.0)
    }
    fn average(&self, count: i64, _: (u8, u8)) -> Option<i64> {
        Some(self.0.wrapping_div(count))
    }
    fn variance(squares: &IntegerSum, sum: &IntegerSum, count: i64, divisor: i64) -> f64 {
        // The exact quotient, as far as the sums have not gone round; the type of the result cuts it.
        let square_of_sum = i128::from(sum.0) * i128::from(sum.0);
        let distance = (i128::from(squares.0) * i128::from(count)).wrapping_sub(square_of_sum);
        distance as f64 / (i128::from(count) * i128::from(divisor)) as f64
    }
    fn to_columns(sums: &[IntegerSum]) -> Vec<ArrayRef> {
        vec![column::<Int64Type>(sums.iter().map(|sum| sum.0))]
    }
    fn from_columns(columns: &[ArrayRef]) -> Result<Vec<IntegerSum>> {
        Ok(values::<Int64Type>(columns, 0)?.map(IntegerSum).collect())
    }
}

/// A sum of decimals: the low 128 bits, and how often they went round.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DecimalSum {
    low: i128,
    rounds: i64,
}

impl RunningSum for DecimalSum {
    type Value = i128;
    type Result = Decimal128Type;
    const STATE: &'static [(&'static str, ArrowType)] =
        &[("sum", ArrowType::Decimal128(38, 0)), ("rounds", ArrowType::Int64)];

    #[inline]
    fn add(&mut self, value: i128) {
        let (low, has_wrapped) = self.low.overflowing_add(value);
        self.low = low;
        if has_wrapped {
            self.rounds += if value < 0 { -1 } else { 1 };
        }
    }
    #[inline]
    fn subtract(&mut self, value: i128) {
        let (low, has_wrapped) = self.low.overflowing_sub(value);
        self.low = low;
        if has_wrapped {
            self.rounds -= if value < 0 { -1 } else { 1 };
        }
    }
    fn merge(&mut self, other: &DecimalSum) {
        self.add(other.low);
        self.rounds += other.rounds;
    }
    fn square(value: i128) -> i128 {
        value.wrapping_mul(value)
    }
    fn sum(&self) -> Option<i128> {
        (self.rounds == 0 && fits(self.low, 38)).then_some(self.low)
    }
    fn average(&self, count: i64, (from, to): (u8, u8)) -> Option<i128> {
        let operation = DecimalOperation { left_scale: from, right_scale: 0, precision: 38, scale: to };
        operation.divide(self.sum()?, i128::from(count))
    }
    fn variance(_: &DecimalSum, _: &DecimalSum, _: i64, _: i64) -> f64 {
        // The variance of decimals is computed in doubles: `moments::typed`.
        f64::NAN
    }
    fn to_columns(sums: &[DecimalSum]) -> Vec<ArrayRef> {
        vec![
            Arc::new(
                PrimitiveArray::<Decimal128Type>::from_iter_values(sums.iter().map(|sum| sum.low))
                    .with_data_type(ArrowType::Decimal128(38, 0)),
            ),
            column::<Int64Type>(sums.iter().map(|sum| sum.rounds)),
        ]
    }
    fn from_columns(columns: &[ArrayRef]) -> Result<Vec<DecimalSum>> {
        let lows = values::<Decimal128Type>(columns, 0)?;
        Ok(lows
            .zip(values::<Int64Type>(columns, 1)?)
            .map(|(low, rounds)| DecimalSum { low, rounds })
            .collect())
    }
}

/// A sum of floating-point numbers with Neumaier's compensation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatSum {
    sum: f64,
    compensation: f64,
    nans: i64,
    infinities: i64,
    negative_infinities: i64,
}

impl FloatSum {
    #[inline]
    fn add_finite(&mut self, value: f64) {
        let total = self.sum + value;
        self.compensation += if self.sum.abs() >= value.abs() {
            (self.sum - total) + value
        } else {
            (value - total) + self.sum
        };
        self.sum = total;
    }

    fn count_special(&mut self, value: f64, sign: i64) {
        if value.is_nan() {
            self.nans += sign;
        } else if value > 0.0 {
            self.infinities += sign;
        } else {
            self.negative_infinities += sign;
        }
    }

    fn value(&self) -> f64 {
        if self.nans > 0 || (self.infinities > 0 && self.negative_infinities > 0) {
            f64::NAN
        } else if self.infinities > 0 {
            f64::INFINITY
        } else if self.negative_infinities > 0 {
            f64::NEG_INFINITY
        } else if self.sum.is_finite() {
            self.sum + self.compensation
        } else {
            self.sum
        }
    }
}

impl RunningSum for FloatSum {
    type Value = f64;
    type Result = Float64Type;
    const STATE: &'static [(&'static str, ArrowType)] = &[
        ("sum", ArrowType::Float64),
        ("compensation", ArrowType::Float64),
        ("nans", ArrowType::Int64),
        ("infinities", ArrowType::Int64),
        ("negative_infinities", ArrowType::Int64),
    ];

    #[inline]
    fn add(&mut self, value: f64) {
        if value.is_finite() {
            self.add_finite(value);
        } else {
            self.count_special(value, 1);
        }
    }
    #[inline]
    fn subtract(&mut self, value: f64) {
        if value.is_finite() {
            self.add_finite(-value);
        } else {
            self.count_special(value, -1);
        }
    }
    fn merge(&mut self, other: &FloatSum) {
        self.add_finite(other.sum);
        self.compensation += other.compensation;
        self.nans += other.nans;
        self.infinities += other.infinities;
        self.negative_infinities += other.negative_infinities;
    }
    fn square(value: f64) -> f64 {
        value * value
    }
    fn sum(&self) -> Option<f64> {
        Some(self.value())
    }
    fn average(&self, count: i64, _: (u8, u8)) -> Option<f64> {
        Some(self.value() / count as f64)
    }
    fn variance(squares: &FloatSum, sum: &FloatSum, count: i64, divisor: i64) -> f64 {
        let sum = sum.value();
        let variance = (squares.value() - sum * sum / count as f64) / divisor as f64;
        // Rounding may leave a little less than nothing, which has no root.
        if variance < 0.0 { 0.0 } else { variance }
    }
    fn to_columns(sums: &[FloatSum]) -> Vec<ArrayRef> {
        vec![
            column::<Float64Type>(sums.iter().map(|sum| sum.sum)),
            column::<Float64Type>(sums.iter().map(|sum| sum.compensation)),
            column::<Int64Type>(sums.iter().map(|sum| sum.nans)),
            column::<Int64Type>(sums.iter().map(|sum| sum.infinities)),
            column::<Int64Type>(sums.iter().map(|sum| sum.negative_infinities)),
        ]
    }
    fn from_columns(columns: &[ArrayRef]) -> Result<Vec<FloatSum>> {
        let mut sums: Vec<FloatSum> =
            values::<Float64Type>(columns, 0)?.map(|sum| FloatSum { sum, ..FloatSum::default() }).collect();
        for (sum, compensation) in sums.iter_mut().zip(values::<Float64Type>(columns, 1)?) {
            sum.compensation = compensation;
        }
        let specials =
            values::<Int64Type>(columns, 2)?
                .zip(values::<Int64Type>(columns, 3)?)
                .zip(values::<Int64Type>(columns, 4)?);
        for (sum, ((nans, infinities), negative_infinities)) in sums.iter_mut().zip(specials) {
            (sum.nans, sum.infinities, sum.negative_infinities) = (nans, infinities, negative_infinities);
        }
        Ok(sums)
    }
}

fn column<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}

/// Returns the values of a state column; 0 where it is NULL.
fn values<T: ArrowPrimitiveType>(
    columns: &[ArrayRef],
    index: usize,
) -> Result<impl Iterator<Item = T::Native> + '_> {
    let column = columns
        .get(index)
        .and_then(|column| column.as_primitive_opt::<T>())
        .ok_or_else(|| Error::internal("the state of a sum has other columns"))?;
    Ok((0..column.len())
        .map(|row| if column.is_null(row) { T::Native::default() } else { column.value(row) }))
}

#[cfg(test)]
mod tests {
    use super::super::super::decimal::POWERS_OF_TEN;
    use super::*;

    #[test]
    fn a_decimal_sum_that_went_too_far_comes_back() {
        let large = POWERS_OF_TEN[38] - 1;
        let mut sum = DecimalSum::default();
        (0..9).for_each(|_| sum.add(large));
        assert_eq!(sum.sum(), None);
        (0..8).for_each(|_| sum.subtract(large));
        assert_eq!(sum.sum(), Some(large));
        (0..9).for_each(|_| sum.add(-large));
        assert_eq!(sum.sum(), None);
        (0..8).for_each(|_| sum.subtract(-large));
        assert_eq!(sum.sum(), Some(0));
    }

    #[test]
    fn doubles_that_are_taken_back_leave_nothing() {
        let mut sum = FloatSum::default();
        for value in [0.1, f64::NAN, f64::INFINITY, 1e100, f64::NEG_INFINITY] {
            sum.add(value);
        }
        assert!(sum.value().is_nan());
        sum.subtract(f64::NAN);
        assert!(sum.value().is_nan());
        sum.subtract(f64::NEG_INFINITY);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.subtract(f64::INFINITY);
        sum.subtract(1e100);
        assert_eq!(sum.value(), 0.1);
        let restored = FloatSum::from_columns(&FloatSum::to_columns(&[sum])).unwrap();
        assert_eq!(restored[0].value(), 0.1);
    }
}
