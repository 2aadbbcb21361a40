//! Conditions that the Parquet reader takes over.
//!
//! It takes those that cannot fail: a condition that can (a cast, a division) keeps its place above the scan, where its error is
//! the user's. Comparisons of FLOAT and DOUBLE columns with constants, which are functions of ours because Arrow's total order is not
//! IEEE's, are written as plain comparisons that hold for the same rows: the reader can look up statistics for those. All other
//! uses of such columns are veiled.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use super::columns::VeiledColumn;

/// Returns a condition as the reader may evaluate it on the rows of `schema`; None if it must stay above.
pub(super) fn for_reader(
    condition: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> DataFusionResult<Option<Arc<dyn PhysicalExpr>>> {
    let rewritten = rewrite(condition, schema)?;
    Ok(is_infallible(&rewritten, schema)?.then_some(rewritten))
}

/// Rewrites ANDs and ORs of comparisons; what lies below anything else is only veiled.
fn rewrite(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
    if let Some(binary) = expr.as_any().downcast_ref::<BinaryExpr>()
        && matches!(binary.op(), Operator::And | Operator::Or)
    {
        let (left, right) = (rewrite(binary.left(), schema)?, rewrite(binary.right(), schema)?);
        return Ok(Arc::new(BinaryExpr::new(left, *binary.op(), right)));
    }
    match ieee_comparison(expr) {
        Some(comparison) => Ok(comparison),
        None => veiled(Arc::clone(expr), schema),
    }
}

/// Hides FLOAT and DOUBLE columns from what looks up statistics.
fn veiled(expr: Arc<dyn PhysicalExpr>, schema: &Schema) -> DataFusionResult<Arc<dyn PhysicalExpr>> {
    let hidden = expr.transform_up(|node| {
        if !node.as_any().is::<Column>() || !node.data_type(schema)?.is_floating() {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(Arc::new(VeiledColumn::new(node)) as _))
    });
    hidden.data()
}

/// Returns a comparison of a FLOAT or DOUBLE column with a constant, by IEEE's rules, as one in Arrow's order; None if it is none.
fn ieee_comparison(expr: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let call = expr.as_any().downcast_ref::<ScalarFunctionExpr>()?;
    let [left, right] = call.args() else { return None };
    let operator = operator_of(call.fun().name())?;
    if let Some(constant) = float_constant(right) {
        return in_total_order(left, operator, constant);
    }
    in_total_order(right, operator.swap()?, float_constant(left)?)
}

fn operator_of(name: &str) -> Option<Operator> {
    Some(match name {
        "=" => Operator::Eq,
        "<" => Operator::Lt,
        "<=" => Operator::LtEq,
        ">" => Operator::Gt,
        ">=" => Operator::GtEq,
        // NaN differs from everything, and no bound tells of it.
        _ => return None,
    })
}

/// A constant of one of the two types.
#[derive(Clone, Copy)]
enum FloatConstant {
    Single(f32),
    Double(f64),
}

fn float_constant(expr: &Arc<dyn PhysicalExpr>) -> Option<FloatConstant> {
    match expr.as_any().downcast_ref::<Literal>()?.value() {
        ScalarValue::Float32(Some(value)) => Some(FloatConstant::Single(*value)),
        ScalarValue::Float64(Some(value)) => Some(FloatConstant::Double(*value)),
        _ => None,
    }
}

impl FloatConstant {
    fn is_nan(self) -> bool {
        match self {
            FloatConstant::Single(value) => value.is_nan(),
            FloatConstant::Double(value) => value.is_nan(),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            FloatConstant::Single(value) => value == 0.0,
            FloatConstant::Double(value) => value == 0.0,
        }
    }

    /// Returns a value of the same type.
    fn same_type(self, value: f64) -> ScalarValue {
        match self {
            FloatConstant::Single(_) => ScalarValue::Float32(Some(value as f32)),
            FloatConstant::Double(_) => ScalarValue::Float64(Some(value)),
        }
    }

    fn value(self) -> ScalarValue {
        match self {
            FloatConstant::Single(value) => ScalarValue::Float32(Some(value)),
            FloatConstant::Double(value) => ScalarValue::Float64(Some(value)),
        }
    }
}

/// Arrow orders NaN with a sign below everything, then numbers with -0.0 below 0.0, then NaN. So a range gets its other end, and 0
/// becomes the zero that makes both count.
fn in_total_order(
    column: &Arc<dyn PhysicalExpr>,
    operator: Operator,
    constant: FloatConstant,
) -> Option<Arc<dyn PhysicalExpr>> {
    if constant.is_nan() || !is_plain(column) {
        return None;
    }
    let compare = |operator: Operator, value: ScalarValue| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(Arc::clone(column), operator, Arc::new(Literal::new(value))))
    };
    let both = |left: Arc<dyn PhysicalExpr>, right: Arc<dyn PhysicalExpr>| -> Arc<dyn PhysicalExpr> {
        Arc::new(BinaryExpr::new(left, Operator::And, right))
    };
    let zero_or = |zero: f64| if constant.is_zero() { constant.same_type(zero) } else { constant.value() };
    let (infinity, negative_infinity) =
        (constant.same_type(f64::INFINITY), constant.same_type(f64::NEG_INFINITY));
    Some(match operator {
        Operator::Eq if constant.is_zero() => both(
            compare(Operator::GtEq, constant.same_type(-0.0)),
            compare(Operator::LtEq, constant.same_type(0.0)),
        ),
        Operator::Eq => compare(Operator::Eq, constant.value()),
        Operator::Gt => both(compare(operator, zero_or(0.0)), compare(Operator::LtEq, infinity)),
        Operator::GtEq => both(compare(operator, zero_or(-0.0)), compare(Operator::LtEq, infinity)),
        Operator::Lt => both(compare(operator, zero_or(-0.0)), compare(Operator::GtEq, negative_infinity)),
        Operator::LtEq => both(compare(operator, zero_or(0.0)), compare(Operator::GtEq, negative_infinity)),
        _ => return None,
    })
}

/// Returns whether an expression is a column, or one widened.
fn is_plain(expr: &Arc<dyn PhysicalExpr>) -> bool {
    match expr.as_any().downcast_ref::<CastExpr>() {
        Some(cast) => cast.cast_type() == &ArrowType::Float64 && cast.expr().as_any().is::<Column>(),
        None => expr.as_any().is::<Column>(),
    }
}

/// Returns whether evaluating a condition can go wrong neither here nor in the reader, which takes values without fields only.
fn is_infallible(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> DataFusionResult<bool> {
    let mut infallible = true;
    expr.apply(|node| {
        let any = node.as_any();
        infallible &= if any.is::<Column>() {
            !node.data_type(schema)?.is_nested()
        } else if let Some(binary) = any.downcast_ref::<BinaryExpr>() {
            is_comparison(*binary.op())
        } else if let Some(cast) = any.downcast_ref::<CastExpr>() {
            is_widening(&cast.expr().data_type(schema)?, cast.cast_type())
        } else {
            any.is::<Literal>()
                || any.is::<VeiledColumn>()
                || any.is::<DynamicFilterPhysicalExpr>()
                || any.is::<InListExpr>()
                || any.is::<IsNullExpr>()
                || any.is::<IsNotNullExpr>()
                || any.is::<NotExpr>()
                || any.is::<LikeExpr>()
        };
        // What a dynamic filter will hold is made by DataFusion out of comparisons.
        let is_opaque = any.is::<DynamicFilterPhysicalExpr>();
        Ok(match (infallible, is_opaque) {
            (false, _) => TreeNodeRecursion::Stop,
            (true, true) => TreeNodeRecursion::Jump,
            (true, false) => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(infallible)
}

fn is_comparison(operator: Operator) -> bool {
    use Operator as O;
    matches!(operator, O::And | O::Or | O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq)
        || matches!(operator, O::IsDistinctFrom | O::IsNotDistinctFrom)
}

fn is_widening(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType as T;
    match (from, to) {
        (from, to) if from.is_signed_integer() && to.is_signed_integer() => {
            from.primitive_width() <= to.primitive_width()
        }
        (from, T::Float64) => from.is_signed_integer() || from.is_floating(),
        (T::Decimal128(from, from_scale), T::Decimal128(to, to_scale)) => {
            from_scale <= to_scale
                && i32::from(*from) - i32::from(*from_scale) <= i32::from(*to) - i32::from(*to_scale)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, StringArray};
    use arrow::datatypes::Field;
    use datafusion::common::ToDFSchema;
    use datafusion::execution::context::ExecutionProps;
    use datafusion::logical_expr::Expr;
    use datafusion::physical_expr::create_physical_expr;
    use datafusion::prelude::{cast, col, lit};

    use super::super::tests::ieee::{self, Comparison};
    use super::*;

    const VALUES: [f64; 8] = [f64::NAN, -0.0, 0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, 2.0];

    fn schema() -> Schema {
        Schema::new(vec![
            Field::new("x", ArrowType::Float64, true),
            Field::new("s", ArrowType::Utf8, true),
            Field::new("i", ArrowType::Int32, true),
        ])
    }

    fn physical(expr: &Expr) -> Arc<dyn PhysicalExpr> {
        let schema = schema().to_dfschema().unwrap();
        create_physical_expr(expr, &schema, &ExecutionProps::new()).unwrap()
    }

    fn taken(expr: &Expr) -> Option<String> {
        for_reader(&physical(expr), &schema()).unwrap().map(|expr| expr.to_string())
    }

    #[test]
    fn comparisons_in_arrows_order_hold_for_the_same_rows_as_ieees() {
        let x: ArrayRef =
            Arc::new(VALUES.iter().map(|value| Some(*value)).chain([None]).collect::<Float64Array>());
        let (s, i) =
            (Arc::new(StringArray::new_null(9)) as _, arrow::array::new_null_array(&ArrowType::Int32, 9));
        let batch = RecordBatch::try_new(Arc::new(schema()), vec![x, s, i]).unwrap();
        let comparisons = [
            Comparison::Eq,
            Comparison::Lt,
            Comparison::LtEq,
            Comparison::Gt,
            Comparison::GtEq,
            Comparison::NotEq,
        ];
        for comparison in comparisons {
            for constant in VALUES {
                for turned in [false, true] {
                    let (left, right) =
                        if turned { (lit(constant), col("x")) } else { (col("x"), lit(constant)) };
                    let plain = physical(&ieee::compare(comparison, left, right));
                    let rewritten = rewrite(&plain, &schema()).unwrap();
                    let rows = |expr: &Arc<dyn PhysicalExpr>| {
                        let array = expr.evaluate(&batch).unwrap().into_array(9).unwrap();
                        array.as_boolean().iter().map(|holds| holds == Some(true)).collect::<Vec<_>>()
                    };
                    assert_eq!(rows(&rewritten), rows(&plain), "{comparison:?} {constant} {turned}");
                    let is_rewritten = comparison != Comparison::NotEq && !constant.is_nan();
                    assert_eq!(rewritten.as_any().is::<BinaryExpr>(), is_rewritten, "{rewritten}");
                }
            }
        }
    }

    #[test]
    fn conditions_that_can_fail_stay_above() {
        assert!(taken(&col("i").gt(lit(1))).is_some());
        assert!(taken(&col("i").gt(lit(1)).or(col("s").is_null())).is_some());
        assert!(taken(&cast(col("i"), ArrowType::Int64).gt(lit(1_i64))).is_some());
        assert!(taken(&col("s").in_list(vec![lit("a")], true)).is_some());
        assert_eq!(taken(&cast(col("s"), ArrowType::Int32).gt(lit(1))), None);
        assert_eq!(taken(&(col("i") / lit(0)).gt(lit(1))), None);
        assert_eq!(taken(&ieee::compare(Comparison::NotEq, col("x"), lit(1.0))), None);
    }

    #[test]
    fn doubles_are_veiled_but_in_ieees_comparisons() {
        let veiled = |expr: &Expr| {
            let mut veils = 0;
            let rewritten = rewrite(&physical(expr), &schema()).unwrap();
            let count = |node: &Arc<dyn PhysicalExpr>| {
                veils += usize::from(node.as_any().is::<VeiledColumn>());
                Ok(TreeNodeRecursion::Continue)
            };
            rewritten.apply(count).unwrap();
            veils
        };
        assert_eq!(veiled(&col("x").gt(lit(1.0))), 1);
        assert_eq!(veiled(&col("x").in_list(vec![lit(1.0)], false).and(col("i").eq(lit(1)))), 1);
        assert_eq!(veiled(&ieee::compare(Comparison::Gt, col("x"), lit(1.0))), 0);
        assert_eq!(veiled(&ieee::compare(Comparison::Gt, col("x"), lit(1.0)).and(col("x").is_null())), 1);
    }
}
