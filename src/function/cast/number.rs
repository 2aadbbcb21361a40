//! Casts among numbers, truth values and intervals, with Java's wrapping and saturation.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{
    Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType,
};

use super::super::decimal::{POWERS_OF_TEN, fits, parse, rescale, to_double};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

/// Casts a column of numbers, truth values or intervals.
pub(super) fn cast(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef> {
    match &from.root {
        TypeRoot::Boolean => {
            let flags = array.as_boolean_opt().ok_or_else(|| mismatch(array))?;
            let numbers: PrimitiveArray<Int8Type> = flags.iter().map(|flag| flag.map(i8::from)).collect();
            from_integer(&numbers, to)
        }
        TypeRoot::TinyInt => from_integer(typed::<Int8Type>(array)?, to),
        TypeRoot::SmallInt => from_integer(typed::<Int16Type>(array)?, to),
        TypeRoot::Int => from_integer(typed::<Int32Type>(array)?, to),
        TypeRoot::BigInt => from_integer(typed::<Int64Type>(array)?, to),
        TypeRoot::IntervalDayTime(_) => from_integer(typed::<DurationMillisecondType>(array)?, to),
        TypeRoot::IntervalYearMonth(_) => from_integer(typed::<IntervalYearMonthType>(array)?, to),
        TypeRoot::Float => from_approximate(typed::<Float32Type>(array)?, to),
        TypeRoot::Double => from_approximate(typed::<Float64Type>(array)?, to),
        TypeRoot::Decimal(_, scale) => from_decimal(typed::<Decimal128Type>(array)?, *scale, to),
        _ => Err(mismatch(array)),
    }
}

fn typed<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    array.as_primitive_opt().ok_or_else(|| mismatch(array))
}

fn mismatch(array: &ArrayRef) -> Error {
    Error::internal(format!("a cast of numbers got {}", array.data_type()))
}

fn unsupported(to: &DataType) -> Error {
    Error::internal(format!("a cast of numbers was asked for {to}"))
}

fn from_integer<S>(array: &PrimitiveArray<S>, to: &DataType) -> Result<ArrayRef>
where
    S: ArrowPrimitiveType,
    S::Native: Into<i64>,
{
    let wide = |value: S::Native| -> i64 { value.into() };
    Ok(match &to.root {
        TypeRoot::Boolean => Arc::new(BooleanArray::from_unary(array, |value| wide(value) != 0)),
        TypeRoot::TinyInt => Arc::new(array.unary::<_, Int8Type>(|value| wide(value) as i8)),
        TypeRoot::SmallInt => Arc::new(array.unary::<_, Int16Type>(|value| wide(value) as i16)),
        TypeRoot::Int => Arc::new(array.unary::<_, Int32Type>(|value| wide(value) as i32)),
        TypeRoot::BigInt => Arc::new(array.unary::<_, Int64Type>(wide)),
        TypeRoot::Float => Arc::new(array.unary::<_, Float32Type>(|value| wide(value) as f32)),
        TypeRoot::Double => Arc::new(array.unary::<_, Float64Type>(|value| wide(value) as f64)),
        TypeRoot::Decimal(precision, scale) => {
            let convert =
                |value| rescale(i128::from(wide(value)), 0, *scale).filter(|value| fits(*value, *precision));
            Arc::new(array.unary_opt::<_, Decimal128Type>(convert).with_data_type(to.to_arrow()))
        }
        TypeRoot::IntervalYearMonth(_) => {
            Arc::new(array.unary::<_, IntervalYearMonthType>(|value| wide(value) as i32))
        }
        TypeRoot::IntervalDayTime(_) => Arc::new(array.unary::<_, DurationMillisecondType>(wide)),
        _ => return Err(unsupported(to)),
    })
}

fn from_approximate<S>(array: &PrimitiveArray<S>, to: &DataType) -> Result<ArrayRef>
where
    S: ArrowPrimitiveType,
    S::Native: Into<f64>,
{
    let wide = |value: S::Native| -> f64 { value.into() };
    // Rust's `as` saturates and makes 0 of NaN, as Java does; Java goes to the small integers by way of int.
    Ok(match &to.root {
        TypeRoot::Boolean => Arc::new(BooleanArray::from_unary(array, |value| wide(value) != 0.0)),
        TypeRoot::TinyInt => Arc::new(array.unary::<_, Int8Type>(|value| wide(value) as i32 as i8)),
        TypeRoot::SmallInt => Arc::new(array.unary::<_, Int16Type>(|value| wide(value) as i32 as i16)),
        TypeRoot::Int => Arc::new(array.unary::<_, Int32Type>(|value| wide(value) as i32)),
        TypeRoot::BigInt => Arc::new(array.unary::<_, Int64Type>(|value| wide(value) as i64)),
        TypeRoot::Float => Arc::new(array.unary::<_, Float32Type>(|value| wide(value) as f32)),
        TypeRoot::Double => Arc::new(array.unary::<_, Float64Type>(wide)),
        TypeRoot::Decimal(precision, scale) => {
            let mut text = String::new();
            let mut values = Vec::with_capacity(array.len());
            for value in array {
                values.push(match value {
                    None => None,
                    Some(value) => double_to_decimal(wide(value), *precision, *scale, &mut text)?,
                });
            }
            let decimals: PrimitiveArray<Decimal128Type> = values.into_iter().collect();
            Arc::new(decimals.with_data_type(to.to_arrow()))
        }
        _ => return Err(unsupported(to)),
    })
}

/// Converts the shortest digits of a double, as Java's BigDecimal.valueOf does.
fn double_to_decimal(value: f64, precision: u8, scale: u8, text: &mut String) -> Result<Option<i128>> {
    if !value.is_finite() {
        let letter = if value.is_nan() { 'N' } else { 'I' };
        return Err(Error::data(format!(
            "Character {letter} is neither a decimal digit number, decimal point, nor \"e\" notation exponential mark."
        ))
        .class(FlinkClass::NUMBER_FORMAT));
    }
    text.clear();
    // Writing to a String cannot fail.
    let _ = write!(text, "{value:e}");
    Ok(parse(text, precision, scale).flatten())
}

fn from_decimal(array: &PrimitiveArray<Decimal128Type>, scale: u8, to: &DataType) -> Result<ArrayRef> {
    let unit = POWERS_OF_TEN[usize::from(scale.min(38))];
    let whole = |value: i128| (value / unit) as i64;
    Ok(match &to.root {
        TypeRoot::Boolean => Arc::new(BooleanArray::from_unary(array, |value| value != 0)),
        TypeRoot::TinyInt => Arc::new(array.unary::<_, Int8Type>(|value| whole(value) as i8)),
        TypeRoot::SmallInt => Arc::new(array.unary::<_, Int16Type>(|value| whole(value) as i16)),
        TypeRoot::Int => Arc::new(array.unary::<_, Int32Type>(|value| whole(value) as i32)),
        TypeRoot::BigInt => Arc::new(array.unary::<_, Int64Type>(whole)),
        TypeRoot::Float => Arc::new(array.unary::<_, Float32Type>(|value| to_double(value, scale) as f32)),
        TypeRoot::Double => Arc::new(array.unary::<_, Float64Type>(|value| to_double(value, scale))),
        TypeRoot::Decimal(precision, to_scale) => {
            let convert = |value| rescale(value, scale, *to_scale).filter(|value| fits(*value, *precision));
            Arc::new(array.unary_opt::<_, Decimal128Type>(convert).with_data_type(to.to_arrow()))
        }
        _ => return Err(unsupported(to)),
    })
}
