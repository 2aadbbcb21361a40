//! `+` and `-` of dates, times and timestamps with intervals, and arithmetic of intervals themselves.
//!
//! Instants are moved in UTC, so a day has always 24 hours.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{
    Date32Type, DurationMillisecondType, Float64Type, Int64Type, IntervalYearMonthType, Time32MillisecondType,
};
use datafusion::logical_expr::Expr;

use super::super::call::{Operator, operator};
use super::super::cast::cast_expr;
use super::super::datetime::{
    months_between, out_of_range, precision_of, ticks, ticks_per_second, timestamp_array,
};
use super::super::operand::{Operand, map_values, validity};
use super::super::typing::{ArithmeticOp, DAY_TIME, YEAR_MONTH};
use super::super::{Call, EvalContext};
use crate::error::{Error, Result};
use crate::schema::calendar::{MILLIS_PER_DAY, add_months};
use crate::schema::{DataType, IntervalKind, TypeRoot};

static PLUS_INTERVAL: Operator =
    Operator { name: "+ interval", invoke: |call, operands| move_datetime(call, operands, 1) };
static MINUS_INTERVAL: Operator =
    Operator { name: "- interval", invoke: |call, operands| move_datetime(call, operands, -1) };
static ADD_INTERVALS: Operator =
    Operator { name: "interval +", invoke: |call, operands| add_intervals(call, operands, 1) };
static SUBTRACT_INTERVALS: Operator =
    Operator { name: "interval -", invoke: |call, operands| add_intervals(call, operands, -1) };
static SCALE_INTERVAL: Operator =
    Operator { name: "interval *", invoke: |call, operands| scale_interval(call, operands, false) };
static SHRINK_INTERVAL: Operator =
    Operator { name: "interval /", invoke: |call, operands| scale_interval(call, operands, true) };
static BETWEEN: Operator = Operator { name: "interval between", invoke: between };

/// Builds an operation with an interval, or returns None where the types do not fit.
pub(super) fn arithmetic(
    op: ArithmeticOp,
    left: (Expr, &DataType),
    right: (Expr, &DataType),
    context: &Arc<EvalContext>,
) -> Option<(Expr, DataType)> {
    let nullable = left.1.nullable || right.1.nullable;
    let (left_root, right_root) = (&left.1.root, &right.1.root);
    if op == ArithmeticOp::Plus && left_root.is_interval() && right_root.is_datetime() {
        return arithmetic(op, right, left, context);
    }
    if op == ArithmeticOp::Multiply && left_root.is_numeric() && right_root.is_interval() {
        return arithmetic(op, right, left, context);
    }
    let (body, result): (&'static Operator, TypeRoot) = match op {
        ArithmeticOp::Plus | ArithmeticOp::Minus if left_root.is_datetime() && right_root.is_interval() => {
            if matches!((left_root, right_root), (TypeRoot::Time(_), TypeRoot::IntervalYearMonth(_))) {
                return None;
            }
            (if op == ArithmeticOp::Plus { &PLUS_INTERVAL } else { &MINUS_INTERVAL }, left_root.clone())
        }
        ArithmeticOp::Plus | ArithmeticOp::Minus => {
            let result = canonical(left_root)?;
            if canonical(right_root)? != result {
                return None;
            }
            (if op == ArithmeticOp::Plus { &ADD_INTERVALS } else { &SUBTRACT_INTERVALS }, result)
        }
        ArithmeticOp::Multiply | ArithmeticOp::Divide if right_root.is_numeric() => (
            if op == ArithmeticOp::Multiply { &SCALE_INTERVAL } else { &SHRINK_INTERVAL },
            canonical(left_root)?,
        ),
        _ => return None,
    };
    let right_type = match op {
        ArithmeticOp::Multiply | ArithmeticOp::Divide if right_root.is_integer() => {
            TypeRoot::BigInt.nullable().with_nullable(right.1.nullable)
        }
        ArithmeticOp::Multiply | ArithmeticOp::Divide => {
            TypeRoot::Double.nullable().with_nullable(right.1.nullable)
        }
        _ => right.1.clone(),
    };
    let right_expr = cast_expr(right.0, right.1, &right_type, false, context);
    let result = DataType { root: result, nullable };
    Some((
        operator(body, vec![left.0, right_expr], vec![left.1.clone(), right_type], result.clone(), context),
        result,
    ))
}

/// Builds `(left - right) DAY TO SECOND` and the like, or returns None where the sides are no dates or timestamps.
pub fn interval_between(
    left: (Expr, &DataType),
    right: (Expr, &DataType),
    kind: IntervalKind,
    is_year_month: bool,
    context: &Arc<EvalContext>,
) -> Option<(Expr, DataType)> {
    let fits = |root: &TypeRoot| root.is_datetime() && !matches!(root, TypeRoot::Time(_));
    if !fits(&left.1.root) || !fits(&right.1.root) {
        return None;
    }
    let root =
        if is_year_month { TypeRoot::IntervalYearMonth(kind) } else { TypeRoot::IntervalDayTime(kind) };
    let result = DataType { root, nullable: left.1.nullable || right.1.nullable };
    let types = vec![left.1.clone(), right.1.clone()];
    Some((operator(&BETWEEN, vec![left.0, right.0], types, result.clone(), context), result))
}

/// Returns the kind that a computed interval has, whatever its operands name.
fn canonical(root: &TypeRoot) -> Option<TypeRoot> {
    match root {
        TypeRoot::IntervalYearMonth(_) => Some(TypeRoot::IntervalYearMonth(YEAR_MONTH)),
        TypeRoot::IntervalDayTime(_) => Some(TypeRoot::IntervalDayTime(DAY_TIME)),
        _ => None,
    }
}

fn move_datetime(call: &Call<'_>, operands: &[Operand], sign: i64) -> Result<ArrayRef> {
    let is_months = matches!(call.arguments[1].root, TypeRoot::IntervalYearMonth(_));
    let months;
    let millis;
    let amount: &dyn Fn(usize) -> i64 = if is_months {
        months = operands[1].values::<IntervalYearMonthType>()?;
        &|row| sign * i64::from(months.get(row))
    } else {
        millis = operands[1].values::<DurationMillisecondType>()?;
        &|row| millis.get(row).wrapping_mul(sign)
    };
    match &call.result.root {
        TypeRoot::Date => {
            let days = operands[0].values::<Date32Type>()?;
            map_values::<Date32Type>(call, operands, |row| {
                let day = i64::from(days.get(row));
                if is_months {
                    return add_months(day, amount(row)) as i32;
                }
                day.wrapping_add(amount(row) / MILLIS_PER_DAY) as i32
            })
        }
        TypeRoot::Time(_) => {
            let times = operands[0].values::<Time32MillisecondType>()?;
            map_values::<Time32MillisecondType>(call, operands, |row| {
                i64::from(times.get(row)).wrapping_add(amount(row)).rem_euclid(MILLIS_PER_DAY) as i32
            })
        }
        root => {
            let per_second = ticks_per_second(precision_of(root));
            let per_day = per_second * 86_400;
            let values = ticks(operands[0].array().as_ref())?;
            let valid = validity(operands, call.row_count);
            let mut moved = Vec::with_capacity(call.row_count);
            for row in 0..call.row_count {
                if valid.as_ref().is_some_and(|valid| valid.is_null(row)) {
                    moved.push(0);
                    continue;
                }
                let value = values[operands[0].index(row)];
                let result = if is_months {
                    let (day, of_day) = (value.div_euclid(per_day), value.rem_euclid(per_day));
                    add_months(day, amount(row))
                        .checked_mul(per_day)
                        .and_then(|start| start.checked_add(of_day))
                } else {
                    amount(row).checked_mul(per_second / 1000).and_then(|delta| value.checked_add(delta))
                };
                moved.push(result.ok_or_else(|| out_of_range(call.result))?);
            }
            timestamp_array(moved, valid, call.result)
        }
    }
}

fn add_intervals(call: &Call<'_>, operands: &[Operand], sign: i64) -> Result<ArrayRef> {
    if matches!(call.result.root, TypeRoot::IntervalYearMonth(_)) {
        let (left, right) =
            (operands[0].values::<IntervalYearMonthType>()?, operands[1].values::<IntervalYearMonthType>()?);
        return map_values::<IntervalYearMonthType>(call, operands, |row| {
            left.get(row).wrapping_add(right.get(row).wrapping_mul(sign as i32))
        });
    }
    let (left, right) =
        (operands[0].values::<DurationMillisecondType>()?, operands[1].values::<DurationMillisecondType>()?);
    map_values::<DurationMillisecondType>(call, operands, |row| {
        left.get(row).wrapping_add(right.get(row).wrapping_mul(sign))
    })
}

fn scale_interval(call: &Call<'_>, operands: &[Operand], divides: bool) -> Result<ArrayRef> {
    let months;
    let millis;
    let amount: &dyn Fn(usize) -> i64 = if matches!(call.result.root, TypeRoot::IntervalYearMonth(_)) {
        months = operands[0].values::<IntervalYearMonthType>()?;
        &|row| i64::from(months.get(row))
    } else {
        millis = operands[0].values::<DurationMillisecondType>()?;
        &|row| millis.get(row)
    };
    let whole;
    let double;
    let scaled: &dyn Fn(usize) -> i64 = if call.arguments[1].root == TypeRoot::BigInt {
        whole = operands[1].values::<Int64Type>()?;
        if divides {
            for row in 0..call.row_count {
                if whole.get(row) == 0 && !operands[1].is_null(row) {
                    return Err(Error::data("/ by zero").class(crate::error::FlinkClass::ARITHMETIC));
                }
            }
        }
        &|row| match whole.get(row) {
            0 if divides => 0,
            divisor if divides => amount(row).wrapping_div(divisor),
            factor => amount(row).wrapping_mul(factor),
        }
    } else {
        double = operands[1].values::<Float64Type>()?;
        &|row| {
            let (amount, factor) = (amount(row) as f64, double.get(row));
            if divides { (amount / factor) as i64 } else { (amount * factor) as i64 }
        }
    };
    if matches!(call.result.root, TypeRoot::IntervalYearMonth(_)) {
        map_values::<IntervalYearMonthType>(call, operands, |row| scaled(row) as i32)
    } else {
        map_values::<DurationMillisecondType>(call, operands, scaled)
    }
}

/// Returns a timestamp's or a date's milliseconds since the epoch, by row.
pub(in super::super) fn epoch_millis<'a>(
    operand: &'a Operand,
    data_type: &DataType,
) -> Result<Box<dyn Fn(usize) -> i64 + 'a>> {
    if data_type.root == TypeRoot::Date {
        let days = operand.values::<Date32Type>()?;
        return Ok(Box::new(move |row| i64::from(days.get(row)) * MILLIS_PER_DAY));
    }
    let per_millisecond = ticks_per_second(precision_of(&data_type.root)) / 1000;
    let values = ticks(operand.array().as_ref())?;
    Ok(Box::new(move |row| values[operand.index(row)].div_euclid(per_millisecond)))
}

fn between(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let left = epoch_millis(&operands[0], &call.arguments[0])?;
    let right = epoch_millis(&operands[1], &call.arguments[1])?;
    if matches!(call.result.root, TypeRoot::IntervalYearMonth(_)) {
        return map_values::<IntervalYearMonthType>(call, operands, |row| {
            months_between(right(row), left(row)) as i32
        });
    }
    map_values::<DurationMillisecondType>(call, operands, |row| left(row) - right(row))
}
