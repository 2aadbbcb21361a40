//! Comparisons. Both sides are cast to one type first; FLOAT and DOUBLE compare as IEEE says, where Arrow has a total order.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, BooleanArray};
use arrow::datatypes::{Float32Type, Float64Type};
use datafusion::logical_expr::{Expr, Operator as DataFusionOperator};

use super::super::call::{Operator, operator};
use super::super::cast::cast_expr;
use super::super::operand::{Operand, map_booleans};
use super::super::typing::{calcite_name, calcite_root, common_type, type_list_error};
use super::super::{Call, EvalContext};
use super::arithmetic::binary;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum ComparisonOp {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    IsDistinctFrom,
    IsNotDistinctFrom,
}

impl ComparisonOp {
    /// Returns the operator's sign.
    pub fn symbol(self) -> &'static str {
        match self {
            ComparisonOp::Eq => "=",
            ComparisonOp::NotEq => "<>",
            ComparisonOp::Lt => "<",
            ComparisonOp::LtEq => "<=",
            ComparisonOp::Gt => ">",
            ComparisonOp::GtEq => ">=",
            ComparisonOp::IsDistinctFrom => "IS DISTINCT FROM",
            ComparisonOp::IsNotDistinctFrom => "IS NOT DISTINCT FROM",
        }
    }

    fn plain(self) -> DataFusionOperator {
        match self {
            ComparisonOp::Eq => DataFusionOperator::Eq,
            ComparisonOp::NotEq => DataFusionOperator::NotEq,
            ComparisonOp::Lt => DataFusionOperator::Lt,
            ComparisonOp::LtEq => DataFusionOperator::LtEq,
            ComparisonOp::Gt => DataFusionOperator::Gt,
            ComparisonOp::GtEq => DataFusionOperator::GtEq,
            ComparisonOp::IsDistinctFrom => DataFusionOperator::IsDistinctFrom,
            ComparisonOp::IsNotDistinctFrom => DataFusionOperator::IsNotDistinctFrom,
        }
    }

    /// Returns whether it asks for equality only, which Flink refuses between text and numbers.
    fn is_equality(self) -> bool {
        !matches!(self, ComparisonOp::Lt | ComparisonOp::LtEq | ComparisonOp::Gt | ComparisonOp::GtEq)
    }

    fn ieee(self) -> &'static Operator {
        match self {
            ComparisonOp::Eq => &IEEE_EQ,
            ComparisonOp::NotEq => &IEEE_NOT_EQ,
            ComparisonOp::Lt => &IEEE_LT,
            ComparisonOp::LtEq => &IEEE_LT_EQ,
            ComparisonOp::Gt => &IEEE_GT,
            ComparisonOp::GtEq => &IEEE_GT_EQ,
            ComparisonOp::IsDistinctFrom => &IEEE_DISTINCT,
            ComparisonOp::IsNotDistinctFrom => &IEEE_NOT_DISTINCT,
        }
    }
}

static IEEE_EQ: Operator =
    Operator { name: "=", invoke: |call, operands| compare(call, operands, |a, b| a == b) };
static IEEE_NOT_EQ: Operator =
    Operator { name: "<>", invoke: |call, operands| compare(call, operands, |a, b| a != b) };
static IEEE_LT: Operator =
    Operator { name: "<", invoke: |call, operands| compare(call, operands, |a, b| a < b) };
static IEEE_LT_EQ: Operator =
    Operator { name: "<=", invoke: |call, operands| compare(call, operands, |a, b| a <= b) };
static IEEE_GT: Operator =
    Operator { name: ">", invoke: |call, operands| compare(call, operands, |a, b| a > b) };
static IEEE_GT_EQ: Operator =
    Operator { name: ">=", invoke: |call, operands| compare(call, operands, |a, b| a >= b) };
static IEEE_DISTINCT: Operator =
    Operator { name: "IS DISTINCT FROM", invoke: |call, operands| distinct(call, operands, true) };
static IEEE_NOT_DISTINCT: Operator =
    Operator { name: "IS NOT DISTINCT FROM", invoke: |call, operands| distinct(call, operands, false) };

/// Builds a comparison.
///
/// # Errors
/// The two types cannot be compared; the message is Flink's.
pub fn comparison(
    op: ComparisonOp,
    left: (Expr, &DataType),
    right: (Expr, &DataType),
    context: &Arc<EvalContext>,
) -> Result<(Expr, DataType)> {
    let common = comparison_type(op, left.1, right.1)?;
    let left_expr = cast_expr(left.0, left.1, &common, false, context);
    let right_expr = cast_expr(right.0, right.1, &common, false, context);
    let nullable = match op {
        ComparisonOp::IsDistinctFrom | ComparisonOp::IsNotDistinctFrom => false,
        _ => common.nullable,
    };
    let result = DataType { root: TypeRoot::Boolean, nullable };
    if common.root.is_approximate() {
        let types = vec![common.clone(), common];
        return Ok((
            operator(op.ieee(), vec![left_expr, right_expr], types, result.clone(), context),
            result,
        ));
    }
    Ok((binary(left_expr, op.plain(), right_expr), result))
}

/// Returns the type in which two values are compared; it is nullable if one of them is.
///
/// # Errors
/// The two types cannot be compared; the message is Flink's.
pub fn comparison_type(op: ComparisonOp, left: &DataType, right: &DataType) -> Result<DataType> {
    let nullable = left.nullable || right.nullable;
    let (text, other) = match (left.root.is_character(), right.root.is_character()) {
        (true, false) => (true, &right.root),
        (false, true) => (true, &left.root),
        _ => (false, &left.root),
    };
    if text && other.is_numeric() && op.is_equality() {
        return Err(Error::validation(format!(
            "implicit type conversion between {} and {} is not supported now",
            calcite_root(left),
            calcite_root(right)
        ))
        .class(FlinkClass::VALIDATION));
    }
    if text && (other.is_numeric() || other.is_datetime() || *other == TypeRoot::Boolean) {
        return Ok(DataType { root: other.clone(), nullable });
    }
    common_type(&[left.clone(), right.clone()]).ok_or_else(|| {
        let symbol = op.symbol();
        let call = format!("<{}> {symbol} <{}>", calcite_name(left), calcite_name(right));
        type_list_error(symbol, &call, &[&format!("<COMPARABLE_TYPE> {symbol} <COMPARABLE_TYPE>")])
    })
}

/// Compares; a FLOAT is exact as a double.
fn compare(call: &Call<'_>, operands: &[Operand], holds: fn(f64, f64) -> bool) -> Result<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(
        call: &Call<'_>,
        operands: &[Operand],
        holds: fn(f64, f64) -> bool,
    ) -> Result<ArrayRef>
    where
        T::Native: Into<f64>,
    {
        let (left, right) = (operands[0].values::<T>()?, operands[1].values::<T>()?);
        map_booleans(call, operands, |row| Ok(holds(left.get(row).into(), right.get(row).into())))
    }
    match call.arguments[0].root {
        TypeRoot::Float => of::<Float32Type>(call, operands, holds),
        _ => of::<Float64Type>(call, operands, holds),
    }
}

/// Compares with NULL as a value.
fn distinct(call: &Call<'_>, operands: &[Operand], answer: bool) -> Result<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(call: &Call<'_>, operands: &[Operand], answer: bool) -> Result<ArrayRef>
    where
        T::Native: Into<f64>,
    {
        let (left, right) = (operands[0].values::<T>()?, operands[1].values::<T>()?);
        let answers = (0..call.row_count).map(|row| {
            let differ = match (operands[0].is_null(row), operands[1].is_null(row)) {
                (false, false) => left.get(row).into() != right.get(row).into(),
                (left, right) => left != right,
            };
            differ == answer
        });
        Ok(Arc::new(answers.collect::<Vec<bool>>().into_iter().map(Some).collect::<BooleanArray>()))
    }
    match call.arguments[0].root {
        TypeRoot::Float => of::<Float32Type>(call, operands, answer),
        _ => of::<Float64Type>(call, operands, answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(op: ComparisonOp, left: TypeRoot, right: TypeRoot) -> String {
        comparison_type(op, &left.not_null(), &right.not_null())
            .map_or_else(|error| error.message().to_owned(), |data_type| data_type.summary())
    }

    #[test]
    fn text_and_numbers_are_ordered_but_not_equated() {
        assert_eq!(
            refusal(ComparisonOp::Eq, TypeRoot::Char(1), TypeRoot::Int),
            "implicit type conversion between CHAR and INTEGER is not supported now"
        );
        assert_eq!(
            refusal(ComparisonOp::NotEq, TypeRoot::Decimal(10, 2), TypeRoot::STRING),
            "implicit type conversion between DECIMAL and VARCHAR is not supported now"
        );
        assert_eq!(refusal(ComparisonOp::Gt, TypeRoot::Char(2), TypeRoot::Int), "INT NOT NULL");
        assert_eq!(
            refusal(ComparisonOp::Eq, TypeRoot::Timestamp(3), TypeRoot::Char(10)),
            "TIMESTAMP(3) NOT NULL"
        );
        assert_eq!(
            refusal(ComparisonOp::Eq, TypeRoot::Int, TypeRoot::Boolean),
            "Cannot apply '=' to arguments of type '<INTEGER> = <BOOLEAN>'. Supported form(s): '<COMPARABLE_TYPE> = <COMPARABLE_TYPE>'"
        );
    }
}
