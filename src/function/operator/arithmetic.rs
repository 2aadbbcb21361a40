//! `+ - * / %` and unary minus over numbers and intervals.
//!
//! Where Arrow's kernel agrees with Java (integers wrap, doubles follow IEEE) DataFusion's own expression is built, which its
//! optimiser understands; division and decimals have kernels here.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{
    Decimal128Type, DurationMillisecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalYearMonthType,
};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator as DataFusionOperator};

use super::super::call::{Operator, operator};
use super::super::cast::cast_expr;
use super::super::decimal::DecimalOperation;
use super::super::operand::{Operand, map_values, try_map_values};
use super::super::typing::{ArithmeticOp, calcite_name, numeric_result, type_list_error};
use super::super::{Call, EvalContext};
use super::datetime;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

static INTEGER_DIVIDE: Operator =
    Operator { name: "/", invoke: |call, operands| divide_integers(call, operands, BY_ZERO) };
static INTEGER_MODULO: Operator = Operator { name: "%", invoke: modulo_integers };
static FOLDED_DIVIDE: Operator = Operator { name: "folded /", invoke: divide_constants };
static DECIMAL_PLUS: Operator =
    Operator { name: "decimal +", invoke: |call, operands| decimals(call, operands, ArithmeticOp::Plus) };
static DECIMAL_MINUS: Operator =
    Operator { name: "decimal -", invoke: |call, operands| decimals(call, operands, ArithmeticOp::Minus) };
static DECIMAL_MULTIPLY: Operator =
    Operator { name: "decimal *", invoke: |call, operands| decimals(call, operands, ArithmeticOp::Multiply) };
static DECIMAL_DIVIDE: Operator =
    Operator { name: "decimal /", invoke: |call, operands| decimals(call, operands, ArithmeticOp::Divide) };
static DECIMAL_MODULO: Operator =
    Operator { name: "decimal %", invoke: |call, operands| decimals(call, operands, ArithmeticOp::Modulo) };
static NEGATE: Operator = Operator { name: "negate", invoke: negate_values };

/// What Java says of an integer division by zero.
const BY_ZERO: &str = "/ by zero";
/// What the planner and BigDecimal say of a division by zero.
const DIVISION_BY_ZERO: &str = "Division by zero";

/// Builds an operation, or returns None where the types of the operands do not fit; `arithmetic_error` has the words for that.
pub fn arithmetic(
    op: ArithmeticOp,
    left: (Expr, &DataType),
    right: (Expr, &DataType),
    context: &Arc<EvalContext>,
) -> Option<(Expr, DataType)> {
    let Some(result) = numeric_result(op, left.1, right.1) else {
        return datetime::arithmetic(op, left, right, context);
    };
    let expr = match &result.root {
        TypeRoot::Decimal(..) => decimal_expr(op, left, right, &result, context)?,
        _ => {
            // The operands meet in the wider type; a remainder is narrowed to the divisor's type afterwards.
            let wide = numeric_result(ArithmeticOp::Plus, left.1, right.1)?;
            let is_folded = op == ArithmeticOp::Divide && is_constant(&left.0) && is_constant(&right.0);
            let left = cast_expr(left.0, left.1, &wide, false, context);
            let right = cast_expr(right.0, right.1, &wide, false, context);
            let own = |body| {
                operator(
                    body,
                    vec![left.clone(), right.clone()],
                    vec![wide.clone(), wide.clone()],
                    wide.clone(),
                    context,
                )
            };
            match op {
                ArithmeticOp::Divide if is_folded => own(&FOLDED_DIVIDE),
                ArithmeticOp::Divide if wide.root.is_integer() => own(&INTEGER_DIVIDE),
                ArithmeticOp::Modulo => cast_expr(own(&INTEGER_MODULO), &wide, &result, false, context),
                _ => binary(left, plain_operator(op), right),
            }
        }
    };
    Some((expr, result))
}

/// The error for operands that do not fit.
pub fn arithmetic_error(op: ArithmeticOp, left: &DataType, right: &DataType) -> Error {
    let call = format!("<{}> {} <{}>", calcite_name(left), op.symbol(), calcite_name(right));
    type_list_error(op.symbol(), &call, op.signatures())
}

/// Builds unary minus, or returns None where the operand is no number and no interval.
pub fn negate(expr: Expr, data_type: &DataType, context: &Arc<EvalContext>) -> Option<(Expr, DataType)> {
    if !data_type.root.is_numeric() && !data_type.root.is_interval() {
        return None;
    }
    Some((
        operator(&NEGATE, vec![expr], vec![data_type.clone()], data_type.clone(), context),
        data_type.clone(),
    ))
}

pub(super) fn binary(left: Expr, op: DataFusionOperator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

fn plain_operator(op: ArithmeticOp) -> DataFusionOperator {
    match op {
        ArithmeticOp::Plus => DataFusionOperator::Plus,
        ArithmeticOp::Minus => DataFusionOperator::Minus,
        ArithmeticOp::Multiply => DataFusionOperator::Multiply,
        ArithmeticOp::Divide => DataFusionOperator::Divide,
        ArithmeticOp::Modulo => DataFusionOperator::Modulo,
    }
}

/// Returns whether the planner knows the value: a literal, perhaps below casts.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Cast(cast) => is_constant(&cast.expr),
        Expr::ScalarFunction(function) => {
            matches!(function.name(), "CAST" | "negate") && function.args.iter().all(is_constant)
        }
        _ => false,
    }
}

fn decimal_expr(
    op: ArithmeticOp,
    left: (Expr, &DataType),
    right: (Expr, &DataType),
    result: &DataType,
    context: &Arc<EvalContext>,
) -> Option<Expr> {
    let as_decimal = |data_type: &DataType, other: &DataType| {
        let root = if data_type.root == TypeRoot::Null { &other.root } else { &data_type.root };
        let (precision, scale) = root.as_decimal()?;
        Some(TypeRoot::Decimal(precision, scale).nullable().with_nullable(data_type.nullable))
    };
    let (left_type, right_type) = (as_decimal(left.1, right.1)?, as_decimal(right.1, left.1)?);
    let left = cast_expr(left.0, left.1, &left_type, false, context);
    let right = cast_expr(right.0, right.1, &right_type, false, context);
    let body = match op {
        ArithmeticOp::Plus => &DECIMAL_PLUS,
        ArithmeticOp::Minus => &DECIMAL_MINUS,
        ArithmeticOp::Multiply => &DECIMAL_MULTIPLY,
        ArithmeticOp::Divide => &DECIMAL_DIVIDE,
        ArithmeticOp::Modulo => &DECIMAL_MODULO,
    };
    Some(operator(body, vec![left, right], vec![left_type, right_type], result.clone(), context))
}

fn by_zero(text: &'static str) -> Error {
    Error::data(text).class(FlinkClass::ARITHMETIC)
}

fn decimals(call: &Call<'_>, operands: &[Operand], op: ArithmeticOp) -> Result<ArrayRef> {
    let scale_of = |data_type: &DataType| data_type.root.as_decimal().map_or(0, |(_, scale)| scale);
    let (precision, scale) = call.result.root.as_decimal().unwrap_or((38, 0));
    let operation = DecimalOperation {
        left_scale: scale_of(&call.arguments[0]),
        right_scale: scale_of(&call.arguments[1]),
        precision,
        scale,
    };
    let (left, right) = (operands[0].values::<Decimal128Type>()?, operands[1].values::<Decimal128Type>()?);
    try_map_values::<Decimal128Type>(call, operands, |row| {
        let (left, right) = (left.get(row), right.get(row));
        Ok(match op {
            ArithmeticOp::Plus => operation.add(left, right),
            ArithmeticOp::Minus => operation.add(left, -right),
            ArithmeticOp::Multiply => operation.multiply(left, right),
            ArithmeticOp::Divide | ArithmeticOp::Modulo if right == 0 => {
                return Err(by_zero(DIVISION_BY_ZERO));
            }
            ArithmeticOp::Divide => operation.divide(left, right),
            ArithmeticOp::Modulo => operation.remainder(left, right),
        })
    })
}

/// An integer that divides as in Java: the smallest one by -1 is itself.
trait JavaInteger: Copy + PartialEq + Default {
    fn divide(self, divisor: Self) -> Self;
    fn remainder(self, divisor: Self) -> Self;
}

macro_rules! java_integers {
    ($($native:ty),*) => {
        $(impl JavaInteger for $native {
            fn divide(self, divisor: Self) -> Self { self.wrapping_div(divisor) }
            fn remainder(self, divisor: Self) -> Self { self.wrapping_rem(divisor) }
        })*
    };
}

java_integers!(i8, i16, i32, i64);

fn integers<T>(
    call: &Call<'_>,
    operands: &[Operand],
    message: &'static str,
    compute: fn(T::Native, T::Native) -> T::Native,
) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: JavaInteger,
{
    let (left, right) = (operands[0].values::<T>()?, operands[1].values::<T>()?);
    try_map_values::<T>(call, operands, |row| {
        let divisor = right.get(row);
        if divisor == T::Native::default() {
            return Err(by_zero(message));
        }
        Ok(Some(compute(left.get(row), divisor)))
    })
}

fn divide_integers(call: &Call<'_>, operands: &[Operand], message: &'static str) -> Result<ArrayRef> {
    match call.result.root {
        TypeRoot::TinyInt => integers::<Int8Type>(call, operands, message, JavaInteger::divide),
        TypeRoot::SmallInt => integers::<Int16Type>(call, operands, message, JavaInteger::divide),
        TypeRoot::Int => integers::<Int32Type>(call, operands, message, JavaInteger::divide),
        _ => integers::<Int64Type>(call, operands, message, JavaInteger::divide),
    }
}

fn modulo_integers(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    match call.result.root {
        TypeRoot::TinyInt => integers::<Int8Type>(call, operands, BY_ZERO, JavaInteger::remainder),
        TypeRoot::SmallInt => integers::<Int16Type>(call, operands, BY_ZERO, JavaInteger::remainder),
        TypeRoot::Int => integers::<Int32Type>(call, operands, BY_ZERO, JavaInteger::remainder),
        _ => integers::<Int64Type>(call, operands, BY_ZERO, JavaInteger::remainder),
    }
}

/// Divides constants: Flink's planner folds them with BigDecimal, so even a DOUBLE by zero fails.
fn divide_constants(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    match call.result.root {
        TypeRoot::Double => {
            let (left, right) = (operands[0].values::<Float64Type>()?, operands[1].values::<Float64Type>()?);
            try_map_values::<Float64Type>(call, operands, |row| match right.get(row) {
                0.0 => Err(by_zero(DIVISION_BY_ZERO)),
                divisor => Ok(Some(left.get(row) / divisor)),
            })
        }
        TypeRoot::Float => {
            let (left, right) = (operands[0].values::<Float32Type>()?, operands[1].values::<Float32Type>()?);
            try_map_values::<Float32Type>(call, operands, |row| match right.get(row) {
                0.0 => Err(by_zero(DIVISION_BY_ZERO)),
                divisor => Ok(Some(left.get(row) / divisor)),
            })
        }
        _ => divide_integers(call, operands, DIVISION_BY_ZERO),
    }
}

fn negate_values(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    fn negated<T: ArrowPrimitiveType>(
        call: &Call<'_>,
        operands: &[Operand],
        negate: fn(T::Native) -> T::Native,
    ) -> Result<ArrayRef> {
        let values = operands[0].values::<T>()?;
        map_values::<T>(call, operands, |row| negate(values.get(row)))
    }
    match call.result.root {
        TypeRoot::TinyInt => negated::<Int8Type>(call, operands, i8::wrapping_neg),
        TypeRoot::SmallInt => negated::<Int16Type>(call, operands, i16::wrapping_neg),
        TypeRoot::Int => negated::<Int32Type>(call, operands, i32::wrapping_neg),
        TypeRoot::BigInt => negated::<Int64Type>(call, operands, i64::wrapping_neg),
        TypeRoot::Float => negated::<Float32Type>(call, operands, |value| -value),
        TypeRoot::Double => negated::<Float64Type>(call, operands, |value| -value),
        TypeRoot::Decimal(..) => negated::<Decimal128Type>(call, operands, |value| -value),
        TypeRoot::IntervalYearMonth(_) => negated::<IntervalYearMonthType>(call, operands, i32::wrapping_neg),
        _ => negated::<DurationMillisecondType>(call, operands, i64::wrapping_neg),
    }
}
