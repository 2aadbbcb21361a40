//! Functions that move timestamps and measure between them.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Int32Type;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::super::cast::cast_expr;
use super::super::datetime::{TimeUnit, months_between};
use super::super::definition::Definition;
use super::super::operand::{Operand, map_values};
use super::super::operator::{arithmetic, epoch_millis};
use super::super::typing::{ArithmeticOp, DAY_TIME, Parameter, YEAR_MONTH, typed};
use super::super::{Argument, Call, EvalContext, Inferred};
use super::floor_time::{constant_unit, unit_of};
use crate::error::Result;
use crate::schema::TypeRoot;

pub(super) static TIMESTAMPADD: Definition = Definition {
    name: "TIMESTAMPADD",
    doc: "Adds a count of units to a date or timestamp.",
    signatures: &["TIMESTAMPADD(<TIME_UNIT>, <INTEGER>, <DATETIME>)"],
    examples: &[
        ("TIMESTAMPADD(MONTH, -13, TIMESTAMP '2024-02-29 23:59:59.999')", "2023-01-29 23:59:59.999"),
        ("TIMESTAMPADD(WEEK, 1, DATE '2021-01-03')", "2021-01-10"),
    ],
    infer: |arguments| {
        let unit = unit_of(arguments.first())?;
        if unit.months().is_none() && unit.millis().is_none() {
            return None;
        }
        let inferred =
            typed(arguments, &[Parameter::Text, Parameter::BigInt, Parameter::Datetime], TypeRoot::Date)?;
        let datetime = inferred.arguments[2].root.clone();
        // Units of time move a date to a time of its day.
        let is_time = unit.months().is_none() && !matches!(unit, TimeUnit::Day | TimeUnit::Week);
        let root = if datetime == TypeRoot::Date && is_time { TypeRoot::Timestamp(6) } else { datetime };
        Some(inferred.returning(root))
    },
    rewrite: timestamp_add,
    ..Definition::DEFAULT
};

pub(super) static TIMESTAMPDIFF: Definition = Definition {
    name: "TIMESTAMPDIFF",
    doc: "Returns how many whole units lie between two dates or timestamps.",
    signatures: &["TIMESTAMPDIFF(<TIME_UNIT>, <DATETIME>, <DATETIME>)"],
    examples: &[
        ("TIMESTAMPDIFF(MONTH, TIMESTAMP '2024-02-29 23:59:59.999', TIMESTAMP '2025-01-31 00:00:00')", "11"),
        ("TIMESTAMPDIFF(DAY, DATE '2021-01-03', TIMESTAMP '2025-01-31 00:00:00')", "1489"),
    ],
    infer: timestamp_diff_types,
    invoke: timestamp_diff,
    ..Definition::DEFAULT
};

/// Turns the call into `datetime + interval`.
fn timestamp_add(arguments: &[Expr], inferred: &Inferred, context: &Arc<EvalContext>) -> Option<Expr> {
    let [Expr::Literal(unit, _), count, datetime] = arguments else { return None };
    let unit = TimeUnit::parse(unit.try_as_str()??)?;
    let [_, count_type, datetime_type] = inferred.arguments.as_slice() else { return None };
    let (factor, interval) = match (unit.months(), unit.millis()) {
        (Some(months), _) => (months, TypeRoot::IntervalYearMonth(YEAR_MONTH)),
        (None, millis) => (millis?, TypeRoot::IntervalDayTime(DAY_TIME)),
    };
    let interval = interval.nullable().with_nullable(count_type.nullable);
    let bigint = TypeRoot::BigInt.not_null();
    let factor = Expr::Literal(ScalarValue::Int64(Some(factor)), None);
    let (amount, amount_type) =
        arithmetic(ArithmeticOp::Multiply, (count.clone(), count_type), (factor, &bigint), context)?;
    let amount = cast_expr(amount, &amount_type, &interval, false, context);
    let start = cast_expr(datetime.clone(), datetime_type, &inferred.result, false, context);
    arithmetic(ArithmeticOp::Plus, (start, &inferred.result), (amount, &interval), context)
        .map(|(expr, _)| expr)
}

fn timestamp_diff_types(arguments: &[Argument<'_>]) -> Option<Inferred> {
    let unit = unit_of(arguments.first())?;
    let parameters = [Parameter::Text, Parameter::Datetime, Parameter::Datetime];
    let inferred = typed(arguments, &parameters, TypeRoot::Int)?;
    let [_, from, to] = inferred.arguments.as_slice() else { return None };
    let is_instant = |root: &TypeRoot| matches!(root, TypeRoot::TimestampLtz(_));
    let is_time = |root: &TypeRoot| matches!(root, TypeRoot::Time(_));
    let fits = is_instant(&from.root) == is_instant(&to.root) && !is_time(&from.root) && !is_time(&to.root);
    (fits && (unit.months().is_some() || unit.millis().is_some())).then_some(inferred)
}

fn timestamp_diff(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let unit = constant_unit(&operands[0])?;
    let from = epoch_millis(&operands[1], &call.arguments[1])?;
    let to = epoch_millis(&operands[2], &call.arguments[2])?;
    match (unit.months(), unit.millis()) {
        (Some(months), _) => map_values::<Int32Type>(call, operands, |row| {
            (months_between(from(row), to(row)) / months) as i32
        }),
        (None, millis) => {
            let millis = millis.unwrap_or(1);
            map_values::<Int32Type>(call, operands, |row| (to(row).wrapping_sub(from(row)) / millis) as i32)
        }
    }
}
