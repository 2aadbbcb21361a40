//! CAST and TRY_CAST: which are allowed, and the kernels.
//!
//! A number that does not fit wraps or saturates as in Java, a decimal with too many digits becomes NULL even in CAST; only text
//! that means nothing fails, and TRY_CAST makes NULL of that too.

mod from_text;
mod nested;
mod number;
mod rules;
mod temporal;
mod to_text;

pub use rules::cast_supported;

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, cast as arrow_cast_expr};

use super::call::{Operator, operator, result_type};
use super::operand::Operand;
use super::{Call, EvalContext};
use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

static CAST: Operator = Operator { name: "CAST", invoke: |call, operands| invoke(call, operands, false) };
static TRY_CAST: Operator =
    Operator { name: "TRY_CAST", invoke: |call, operands| invoke(call, operands, true) };

fn invoke(call: &Call<'_>, operands: &[Operand], try_cast: bool) -> Result<ArrayRef> {
    let [operand] = operands else { return Err(Error::internal("CAST takes one operand")) };
    cast(operand.array(), &call.arguments[0], call.result, try_cast, call.context)
}

/// Builds a cast. Nothing is built where the Arrow form and all values stay the same.
pub fn cast_expr(
    expr: Expr,
    from: &DataType,
    to: &DataType,
    try_cast: bool,
    context: &Arc<EvalContext>,
) -> Expr {
    if is_same_value(&from.root, &to.root) {
        return expr;
    }
    let arrow = to.to_arrow();
    if from.root == TypeRoot::Null {
        return match ScalarValue::try_from(&arrow) {
            Ok(null) => Expr::Literal(null, None),
            Err(_) => arrow_cast_expr(expr, arrow),
        };
    }
    if is_exact_in_arrow(&from.root, &to.root) {
        return arrow_cast_expr(expr, arrow);
    }
    let body = if try_cast { &TRY_CAST } else { &CAST };
    operator(body, vec![expr], vec![from.clone()], to.clone(), context)
}

/// Returns what a call casts to, if it is a cast.
pub fn cast_target(call: &ScalarFunction) -> Option<&DataType> {
    let is_cast = [CAST.name, TRY_CAST.name].contains(&call.name());
    result_type(call).filter(|_| is_cast)
}

/// Returns whether a value of one type is a value of the other as it lies in Arrow.
fn is_same_value(from: &TypeRoot, to: &TypeRoot) -> bool {
    use TypeRoot as T;
    if from == to {
        return true;
    }
    match (from, to) {
        (T::Char(from) | T::Varchar(from), T::Varchar(to)) => from <= to,
        (T::Binary(from) | T::Varbinary(from), T::Varbinary(to)) => from <= to,
        (T::Time(from), T::Time(to)) => from <= to,
        (T::Timestamp(from), T::Timestamp(to)) | (T::TimestampLtz(from), T::TimestampLtz(to)) => {
            from <= to && crate::schema::timestamp_unit(*from) == crate::schema::timestamp_unit(*to)
        }
        (T::IntervalDayTime(_), T::IntervalDayTime(_))
        | (T::IntervalYearMonth(_), T::IntervalYearMonth(_)) => true,
        (T::Array(from), T::Array(to)) | (T::Multiset(from), T::Multiset(to)) => {
            is_same_value(&from.root, &to.root)
        }
        (T::Map(from_key, from_value), T::Map(to_key, to_value)) => {
            is_same_value(&from_key.root, &to_key.root) && is_same_value(&from_value.root, &to_value.root)
        }
        (T::Row(from), T::Row(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| {
                    from.name == to.name && is_same_value(&from.data_type.root, &to.data_type.root)
                })
        }
        _ => false,
    }
}

/// Returns whether Arrow's own cast gives the same values and cannot fail, so that the optimiser may look through it.
fn is_exact_in_arrow(from: &TypeRoot, to: &TypeRoot) -> bool {
    match (from, to) {
        (from, TypeRoot::Double) if from.is_integer() => true,
        (TypeRoot::Float, TypeRoot::Double) => true,
        (from, to) if from.is_integer() && to.is_integer() => from.as_decimal() <= to.as_decimal(),
        (from, TypeRoot::Decimal(precision, scale)) => {
            !from.is_approximate()
                && from.as_decimal().is_some_and(|(p, s)| s <= *scale && p - s <= precision - scale)
        }
        _ => false,
    }
}

/// Casts a column.
///
/// # Errors
/// A text means nothing in the target type and this is no TRY_CAST, or the pair is not supported.
pub fn cast(
    array: &ArrayRef,
    from: &DataType,
    to: &DataType,
    try_cast: bool,
    context: &EvalContext,
) -> Result<ArrayRef> {
    use TypeRoot as T;
    if from.root == to.root || (is_same_value(&from.root, &to.root) && array.data_type() == &to.to_arrow()) {
        return Ok(Arc::clone(array));
    }
    match (&from.root, &to.root) {
        (T::Null, _) => Ok(arrow::array::new_null_array(&to.to_arrow(), array.len())),
        (_, T::Char(_) | T::Varchar(_)) => to_text::cast(array, from, &to.root, context),
        (from, _) if from.is_character() => from_text::cast(array, to, try_cast, context),
        (from, to_root) if from.is_binary() && to_root.is_binary() => to_text::resize_bytes(array, to_root),
        (T::Array(_) | T::Map(..) | T::Multiset(_) | T::Row(_), _) => {
            nested::cast(array, from, to, try_cast, context)
        }
        (from_root, to_root) if from_root.is_datetime() && to_root.is_datetime() => {
            temporal::cast(array, from, to, try_cast, context)
        }
        _ => number::cast(array, from, to),
    }
}
