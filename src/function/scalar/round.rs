//! Functions that keep the type of a number: sign, size, and rounding in all directions. FLOOR and CEIL also take dates.

use std::fmt::Write as _;

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};

use super::super::decimal::{self, POWERS_OF_TEN, fits, rescale};
use super::super::definition::Definition;
use super::super::operand::{Operand, map_values, try_map_values};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Inferred};
use super::floor_time;
use crate::error::Result;
use crate::schema::TypeRoot;

pub(super) static ABS: Definition = Definition {
    name: "ABS",
    doc: "Returns a number without its sign.",
    signatures: &["ABS(<NUMERIC>)"],
    examples: &[("ABS(-7)", "7"), ("ABS(-2.5)", "2.5")],
    infer: same_number,
    invoke: |call, operands| {
        map_number(
            call,
            operands,
            Kernel { integer: i64::wrapping_abs, double: f64::abs, decimal: |value, _| value.abs() },
        )
    },
    ..Definition::DEFAULT
};

pub(super) static SIGN: Definition = Definition {
    name: "SIGN",
    doc: "Returns 1, 0 or -1 in the type of the number.",
    signatures: &["SIGN(<NUMERIC>)"],
    examples: &[("SIGN(7)", "1"), ("SIGN(-2.5)", "-1.0")],
    infer: same_number,
    invoke: |call, operands| {
        let double = |value: f64| if value == 0.0 || value.is_nan() { value } else { value.signum() };
        let kernel = Kernel { integer: i64::signum, double, decimal: |value, unit| value.signum() * unit };
        map_number(call, operands, kernel)
    },
    ..Definition::DEFAULT
};

pub(super) static CEIL: Definition = Definition {
    name: "CEIL",
    aliases: &["CEILING"],
    doc: "Rounds a number up to an integer, or a date or timestamp up to a unit.",
    signatures: &["CEIL(<NUMERIC>)", "CEIL(<DATETIME> TO <TIME_UNIT>)"],
    examples: &[
        ("CEIL(1.2)", "2"),
        ("CEIL(TIMESTAMP '2024-02-29 23:59:59.999' TO SECOND)", "2024-03-01 00:00:00.000"),
    ],
    infer: |arguments| whole_number(arguments).or_else(|| floor_time::infer(arguments)),
    invoke: |call, operands| match operands {
        [_] => map_number(
            call,
            operands,
            Kernel { integer: |value| value, double: f64::ceil, decimal: decimal_ceil },
        ),
        _ => floor_time::invoke(call, operands, true),
    },
    ..Definition::DEFAULT
};

pub(super) static FLOOR: Definition = Definition {
    name: "FLOOR",
    doc: "Rounds a number down to an integer, or a date or timestamp down to a unit.",
    signatures: &["FLOOR(<NUMERIC>)", "FLOOR(<DATETIME> TO <TIME_UNIT>)"],
    examples: &[("FLOOR(-1.2)", "-2"), ("FLOOR(DATE '2024-12-30' TO YEAR)", "2024-01-01")],
    infer: |arguments| whole_number(arguments).or_else(|| floor_time::infer(arguments)),
    invoke: |call, operands| match operands {
        [_] => map_number(
            call,
            operands,
            Kernel { integer: |value| value, double: f64::floor, decimal: decimal_floor },
        ),
        _ => floor_time::invoke(call, operands, false),
    },
    ..Definition::DEFAULT
};

pub(super) static ROUND: Definition = Definition {
    name: "ROUND",
    doc: "Rounds a number to a count of fraction digits; ties go away from zero.",
    signatures: &["ROUND(<NUMERIC>)", "ROUND(<NUMERIC>, <INTEGER>)"],
    examples: &[("ROUND(12.345, 2)", "12.35"), ("ROUND(-2.5)", "-3"), ("ROUND(1250, -2)", "1300")],
    infer: rounded,
    invoke: |call, operands| round(call, operands, true),
    ..Definition::DEFAULT
};

pub(super) static TRUNCATE: Definition = Definition {
    name: "TRUNCATE",
    doc: "Cuts a number to a count of fraction digits.",
    signatures: &["TRUNCATE(<NUMERIC>)", "TRUNCATE(<NUMERIC>, <INTEGER>)"],
    examples: &[("TRUNCATE(12.345, 2)", "12.34"), ("TRUNCATE(-12.345, 1)", "-12.3")],
    infer: rounded,
    invoke: |call, operands| round(call, operands, false),
    ..Definition::DEFAULT
};

fn same_number(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let inferred = typed(arguments, &[Parameter::Number], TypeRoot::Int)?;
    let root = inferred.arguments[0].root.clone();
    Some(inferred.returning(root))
}

/// A decimal loses its fraction digits and keeps its precision.
fn whole_number(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let inferred = same_number(arguments)?;
    let root = match inferred.result.root {
        TypeRoot::Decimal(precision, _) => TypeRoot::Decimal(precision, 0),
        ref other => other.clone(),
    };
    Some(inferred.returning(root))
}

fn rounded(arguments: &[Argument<'_>]) -> Option<Inferred> {
    const PARAMETERS: [Parameter; 2] = [Parameter::Number, Parameter::Int];
    let inferred = typed(arguments, PARAMETERS.get(..arguments.len().max(1))?, TypeRoot::Int)?;
    let digits = match arguments.get(1) {
        None => Some(0),
        Some(argument) => argument.literal.and_then(|literal| {
            literal.cast_to(&arrow::datatypes::DataType::Int64).ok().and_then(|literal| match literal {
                datafusion::common::ScalarValue::Int64(digits) => digits,
                _ => None,
            })
        }),
    };
    let root = match (&inferred.arguments[0].root, digits) {
        (TypeRoot::Decimal(precision, scale), Some(digits)) if digits < i64::from(*scale) => {
            let kept = digits.max(0) as u8;
            TypeRoot::Decimal((precision - scale + kept + 1).min(38), kept)
        }
        (other, _) => other.clone(),
    };
    Some(inferred.returning(root))
}

/// What a function does with each kind of number. Decimals come unscaled with the unit of their scale.
struct Kernel {
    integer: fn(i64) -> i64,
    double: fn(f64) -> f64,
    decimal: fn(i128, i128) -> i128,
}

fn decimal_floor(value: i128, unit: i128) -> i128 {
    value.div_euclid(unit)
}

fn decimal_ceil(value: i128, unit: i128) -> i128 {
    -(-value).div_euclid(unit)
}

fn map_number(call: &Call<'_>, operands: &[Operand], kernel: Kernel) -> Result<ArrayRef> {
    /// The conversions of an Arrow type to the wide type of its kind and back.
    fn of<T: ArrowPrimitiveType>(
        call: &Call<'_>,
        operands: &[Operand],
        compute: impl Fn(T::Native) -> T::Native,
    ) -> Result<ArrayRef> {
        let values = operands[0].values::<T>()?;
        map_values::<T>(call, operands, |row| compute(values.get(row)))
    }
    let Kernel { integer, double, decimal } = kernel;
    match &call.arguments[0].root {
        TypeRoot::TinyInt => of::<Int8Type>(call, operands, |value| integer(i64::from(value)) as i8),
        TypeRoot::SmallInt => of::<Int16Type>(call, operands, |value| integer(i64::from(value)) as i16),
        TypeRoot::Int => of::<Int32Type>(call, operands, |value| integer(i64::from(value)) as i32),
        TypeRoot::BigInt => of::<Int64Type>(call, operands, integer),
        TypeRoot::Float => of::<Float32Type>(call, operands, |value| double(f64::from(value)) as f32),
        TypeRoot::Double => of::<Float64Type>(call, operands, double),
        root => {
            let scale = root.as_decimal().map_or(0, |(_, scale)| scale);
            let unit = POWERS_OF_TEN[usize::from(scale.min(38))];
            of::<Decimal128Type>(call, operands, |value| decimal(value, unit))
        }
    }
}

fn round(call: &Call<'_>, operands: &[Operand], half_up: bool) -> Result<ArrayRef> {
    let digits = operands.get(1).map(Operand::values::<Int32Type>).transpose()?;
    let digits = |row| digits.map_or(0, |digits| digits.get(row));
    macro_rules! integers {
        ($arrow:ty) => {{
            let values = operands[0].values::<$arrow>()?;
            map_values::<$arrow>(call, operands, |row| {
                round_decimal(i128::from(values.get(row)), 0, digits(row), 0, half_up).unwrap_or(0) as _
            })
        }};
    }
    match (&call.arguments[0].root, &call.result.root) {
        (TypeRoot::TinyInt, _) => integers!(Int8Type),
        (TypeRoot::SmallInt, _) => integers!(Int16Type),
        (TypeRoot::Int, _) => integers!(Int32Type),
        (TypeRoot::BigInt, _) => integers!(Int64Type),
        (TypeRoot::Float, _) => {
            let values = operands[0].values::<Float32Type>()?;
            let mut text = String::new();
            map_values::<Float32Type>(call, operands, |row| {
                round_double(f64::from(values.get(row)), digits(row), half_up, &mut text) as f32
            })
        }
        (TypeRoot::Double, _) => {
            let values = operands[0].values::<Float64Type>()?;
            let mut text = String::new();
            map_values::<Float64Type>(call, operands, |row| {
                round_double(values.get(row), digits(row), half_up, &mut text)
            })
        }
        (argument, result) => {
            let scale = argument.as_decimal().map_or(0, |(_, scale)| scale);
            let (precision, to_scale) = result.as_decimal().unwrap_or((38, 0));
            let values = operands[0].values::<Decimal128Type>()?;
            try_map_values::<Decimal128Type>(call, operands, |row| {
                let rounded = round_decimal(values.get(row), scale, digits(row), to_scale, half_up);
                Ok(rounded.filter(|value| fits(*value, precision)))
            })
        }
    }
}

/// Rounds an unscaled decimal to a count of digits and brings it to another scale.
fn round_decimal(value: i128, scale: u8, digits: i32, to_scale: u8, half_up: bool) -> Option<i128> {
    let dropped = i64::from(scale) - i64::from(digits);
    if dropped <= 0 {
        return rescale(value, scale, to_scale);
    }
    let Some(unit) = usize::try_from(dropped).ok().and_then(|dropped| POWERS_OF_TEN.get(dropped)) else {
        return Some(0);
    };
    let quotient = if half_up { decimal::divide_half_up(value, *unit) } else { value / unit };
    rescale(quotient.checked_mul(*unit)?, scale, to_scale)
}

/// Rounds the decimal that a double's shortest digits are, as Java's BigDecimal does.
fn round_double(value: f64, digits: i32, half_up: bool, text: &mut String) -> f64 {
    if !value.is_finite() || value.abs() >= 1e30 {
        return value;
    }
    text.clear();
    // Writing to a String cannot fail.
    let _ = write!(text, "{value}");
    let fraction_digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    if i64::from(digits) >= fraction_digits as i64 {
        return value + 0.0;
    }
    let wide = text.split_once('.').map_or(text.len(), |(whole, _)| whole.len());
    // Digits behind the 38th do not change how a double rounds.
    let scale = fraction_digits.min(38_usize.saturating_sub(wide)) as u8;
    let Some(Some(unscaled)) = decimal::parse(text, 38, scale) else { return value };
    let rounded = round_decimal(unscaled, scale, digits, scale, half_up).unwrap_or(unscaled);
    // Adding a positive zero makes one of a negative one.
    decimal::to_double(rounded, scale) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_by_their_shortest_digits() {
        let mut text = String::new();
        assert_eq!(round_double(-2.5, 0, true, &mut text), -3.0);
        assert_eq!(round_double(1.005, 2, true, &mut text), 1.01);
        assert_eq!(round_double(-2.5, -1, true, &mut text).to_bits(), 0.0_f64.to_bits());
        assert_eq!(round_double(2.59, 1, false, &mut text), 2.5);
        assert_eq!(round_double(1e-300, 2, true, &mut text), 0.0);
        assert_eq!(round_double(123_456.0, -3, true, &mut text), 123_000.0);
    }

    #[test]
    fn decimals_round_half_up_on_both_sides_of_the_point() {
        assert_eq!(round_decimal(12_345, 3, 2, 2, true), Some(1235));
        assert_eq!(round_decimal(-12_345, 3, 1, 1, false), Some(-123));
        assert_eq!(round_decimal(-25, 1, -1, 0, true), Some(0));
        assert_eq!(round_decimal(7, 0, -1, 0, true), Some(10));
        assert_eq!(round_decimal(25, 1, 5, 1, true), Some(25));
    }
}
