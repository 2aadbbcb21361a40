//! Whether a condition is worth evaluating while a file is decoded: the reader then leaves out what it has not read yet of the rows that
//! fall out, but keeps account of ranges of rows, which costs more than it saves where nearly all rows stay.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::super::columns::ReadColumn;

/// What part of the rows must stay for the conditions to be left to whoever is above.
const MOST: f64 = 0.8;

/// Returns whether conditions leave most rows, as far as can be told: of numbers that are compared with constants, taking values for
/// evenly spread between their bounds. Of any other condition it is not known.
pub(in crate::connector::iceberg::scan) fn leave_most(
    filters: &[Expr],
    columns: &[ReadColumn],
    statistics: &Statistics,
) -> bool {
    let parts = filters.iter().flat_map(|filter| split_conjunction(filter));
    let left =
        parts.map(|part| part_left(part, columns, statistics)).try_fold(1.0, |all, part| Some(all * part?));
    left.is_some_and(|left| left >= MOST)
}

/// Estimates what part of the rows a condition leaves.
fn part_left(filter: &Expr, columns: &[ReadColumn], statistics: &Statistics) -> Option<f64> {
    match filter {
        // NULLs are counted among the rows, and few.
        Expr::IsNotNull(_) => Some(1.0),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (left.as_ref(), right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) => {
                compared(&column.name, *op, value, columns, statistics)
            }
            (Expr::Literal(value, _), Expr::Column(column)) => {
                compared(&column.name, op.swap()?, value, columns, statistics)
            }
            _ => None,
        },
        _ => None,
    }
}

fn compared(
    name: &str,
    operator: Operator,
    value: &ScalarValue,
    columns: &[ReadColumn],
    statistics: &Statistics,
) -> Option<f64> {
    let at = columns.iter().position(|column| column.field.name() == name)?;
    let known = statistics.column_statistics.get(at)?;
    let (lower, upper) = (number(known.min_value.get_value()?)?, number(known.max_value.get_value()?)?);
    let below = ((number(value)? - lower) / (upper - lower)).clamp(0.0, 1.0);
    match operator {
        _ if upper <= lower => None,
        Operator::Lt | Operator::LtEq => Some(below),
        Operator::Gt | Operator::GtEq => Some(1.0 - below),
        _ => None,
    }
}

fn number(value: &ScalarValue) -> Option<f64> {
    if !value.data_type().is_numeric() {
        return None;
    }
    match value.cast_to(&ArrowType::Float64).ok()? {
        ScalarValue::Float64(number) => number,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Field;
    use datafusion::common::ColumnStatistics;
    use datafusion::common::stats::Precision;
    use datafusion::logical_expr::{col, lit};
    use iceberg::spec::{NestedField, PrimitiveType, Type};

    use super::*;

    #[test]
    fn only_conditions_that_are_known_to_leave_nearly_all_rows_stay_above() {
        let iceberg = NestedField::optional(1, "n", Type::Primitive(PrimitiveType::Int));
        let field = Arc::new(Field::new("n", ArrowType::Int32, true));
        let columns = [ReadColumn::with_type(&Arc::new(iceberg), field).unwrap()];
        let bound = |value: i32| Precision::Exact(ScalarValue::from(value));
        let of_n = ColumnStatistics {
            min_value: bound(0),
            max_value: bound(100),
            ..ColumnStatistics::new_unknown()
        };
        let statistics = Statistics { column_statistics: vec![of_n], ..Statistics::default() };
        let leave_most = |filter: Expr| leave_most(&[filter], &columns, &statistics);
        assert!(leave_most(col("n").gt_eq(lit(1))) && leave_most(lit(99).gt(col("n"))));
        assert!(leave_most(col("n").gt(lit(5)).and(col("n").lt(lit(95))).and(col("n").is_not_null())));
        for filter in [
            col("n").gt(lit(15)).and(col("n").lt(lit(85))),
            col("n").gt(lit(50)),
            col("n").eq(lit(5)),
            col("m").gt(lit(1)),
            col("n").gt(lit(1)).or(col("n").lt(lit(99))),
            col("n").gt(lit("1")),
        ] {
            assert!(!leave_most(filter.clone()), "{filter}");
        }
    }
}
