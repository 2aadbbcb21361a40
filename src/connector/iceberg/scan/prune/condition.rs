//! A query's conditions as tests on columns: what files can be ruled out by. What is not understood counts as true.

use arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator};
use iceberg::spec::{PrimitiveType, Type};

use super::super::columns::ReadColumn;
use super::bounds::{BoundValue, Test};

/// The greatest number up to which all integers are doubles.
const DOUBLE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// A condition on rows.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum Condition {
    /// Holds, as far as we know.
    True,
    /// Holds for no row.
    False,
    And(Vec<Condition>),
    Or(Vec<Condition>),
    /// A test of a column.
    Column(ColumnTest),
}

/// A test of a column.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) struct ColumnTest {
    /// The column's field id.
    pub(in crate::connector::iceberg::scan) id: i32,
    /// Its type.
    pub(in crate::connector::iceberg::scan) column: PrimitiveType,
    /// What is asked of it.
    pub(in crate::connector::iceberg::scan) test: Test,
}

impl Condition {
    /// Takes the conditions of a scan, all of which must hold.
    pub(in crate::connector::iceberg::scan) fn of_filters(
        filters: &[Expr],
        columns: &[ReadColumn],
    ) -> Condition {
        and(filters.iter().map(|filter| condition(filter, columns)).collect())
    }

    /// Returns whether the condition can hold where each test can hold on its own.
    pub(in crate::connector::iceberg::scan) fn may_hold(&self, test: &dyn Fn(&ColumnTest) -> bool) -> bool {
        match self {
            Condition::True => true,
            Condition::False => false,
            Condition::And(parts) => parts.iter().all(|part| part.may_hold(test)),
            Condition::Or(parts) => parts.iter().any(|part| part.may_hold(test)),
            Condition::Column(column) => test(column),
        }
    }
}

fn and(parts: Vec<Condition>) -> Condition {
    let mut kept: Vec<Condition> = parts.into_iter().filter(|part| *part != Condition::True).collect();
    match kept.len() {
        0 => Condition::True,
        1 => kept.swap_remove(0),
        _ => Condition::And(kept),
    }
}

fn condition(expr: &Expr, columns: &[ReadColumn]) -> Condition {
    match expr {
        Expr::BinaryExpr(binary) => binary_condition(binary, columns),
        Expr::ScalarFunction(call) => match call.args.as_slice() {
            [left, right] => call_condition(call.name(), left, right, columns),
            _ => Condition::True,
        },
        Expr::InList(list) => in_list(list, columns),
        Expr::Between(Between { expr, negated: false, low, high }) => and(vec![
            comparison(expr, Comparison::GreaterOrEqual, low, columns, false),
            comparison(expr, Comparison::LessOrEqual, high, columns, false),
        ]),
        Expr::IsNull(operand) => test_of(operand, Test::IsNull, columns),
        Expr::IsNotNull(operand) => test_of(operand, Test::IsNotNull, columns),
        Expr::IsTrue(operand) => condition(operand, columns),
        Expr::Column(_) => is_boolean(expr, true, columns),
        Expr::Not(operand) => match operand.as_ref() {
            Expr::IsNull(operand) => test_of(operand, Test::IsNotNull, columns),
            Expr::IsNotNull(operand) => test_of(operand, Test::IsNull, columns),
            Expr::Column(_) => is_boolean(operand, false, columns),
            _ => Condition::True,
        },
        Expr::Literal(ScalarValue::Boolean(value), _) if *value != Some(true) => Condition::False,
        _ => Condition::True,
    }
}

fn binary_condition(binary: &BinaryExpr, columns: &[ReadColumn]) -> Condition {
    match binary.op {
        Operator::And => and(vec![condition(&binary.left, columns), condition(&binary.right, columns)]),
        Operator::Or => {
            let parts = [condition(&binary.left, columns), condition(&binary.right, columns)];
            if parts.contains(&Condition::True) { Condition::True } else { Condition::Or(parts.to_vec()) }
        }
        Operator::NotEq => not_null_beside_literal(binary, columns),
        operator => match Comparison::of_operator(operator) {
            Some(operator) => either_way(&binary.left, operator, &binary.right, columns, false),
            None => Condition::True,
        },
    }
}

/// `column <> literal` holds for no NULL.
fn not_null_beside_literal(binary: &BinaryExpr, columns: &[ReadColumn]) -> Condition {
    match (binary.left.as_ref(), binary.right.as_ref()) {
        (operand, Expr::Literal(..)) | (Expr::Literal(..), operand) => {
            test_of(operand, Test::IsNotNull, columns)
        }
        _ => Condition::True,
    }
}

/// Reads the functions of ours that are comparisons: those of FLOAT and DOUBLE, and LIKE.
fn call_condition(name: &str, left: &Expr, right: &Expr, columns: &[ReadColumn]) -> Condition {
    if name == "LIKE" {
        return like(left, right, columns);
    }
    match Comparison::of_symbol(name) {
        Some(operator) => either_way(left, operator, right, columns, true),
        None => Condition::True,
    }
}

/// A comparison with a constant on its right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn of_operator(operator: Operator) -> Option<Comparison> {
        Some(match operator {
            Operator::Eq | Operator::IsNotDistinctFrom => Comparison::Equal,
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    fn of_symbol(symbol: &str) -> Option<Comparison> {
        Some(match symbol {
            "=" | "IS NOT DISTINCT FROM" => Comparison::Equal,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    fn swapped(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::Equal,
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        }
    }

    fn test(self, value: BoundValue) -> Test {
        match self {
            Comparison::Equal => Test::OneOf(vec![value]),
            Comparison::Less => Test::Less(value),
            Comparison::LessOrEqual => Test::LessOrEqual(value),
            Comparison::Greater => Test::Greater(value),
            Comparison::GreaterOrEqual => Test::GreaterOrEqual(value),
        }
    }
}

fn either_way(
    left: &Expr,
    operator: Comparison,
    right: &Expr,
    columns: &[ReadColumn],
    is_ieee: bool,
) -> Condition {
    match (left, right) {
        (Expr::Literal(..), operand) => comparison(operand, operator.swapped(), left, columns, is_ieee),
        (operand, _) => comparison(operand, operator, right, columns, is_ieee),
    }
}

/// Reads `operand operator literal`. Arrow's own comparison of floats has another order than bounds have.
fn comparison(
    operand: &Expr,
    operator: Comparison,
    literal: &Expr,
    columns: &[ReadColumn],
    is_ieee: bool,
) -> Condition {
    let Expr::Literal(literal, _) = literal else { return Condition::True };
    let Some((id, column)) = column_of(operand, columns) else { return Condition::True };
    if literal.is_null() || (literal.data_type().is_floating() && !is_ieee) {
        return Condition::True;
    }
    match compare_exactly(operator, literal, &column) {
        Some(Some(test)) => Condition::Column(ColumnTest { id, column, test }),
        Some(None) => Condition::False,
        None => Condition::True,
    }
}

/// Returns a test on the column's own values. The inner None: no value fulfils it. The outer one: it is not known.
fn compare_exactly(
    operator: Comparison,
    literal: &ScalarValue,
    column: &PrimitiveType,
) -> Option<Option<Test>> {
    match constant(literal, column)? {
        Constant::Value(BoundValue::Float(value)) if value.is_nan() => Some(None),
        Constant::Value(value) => Some(Some(operator.test(value))),
        Constant::Between(below) => {
            let number = BoundValue::Number;
            Some(match operator {
                Comparison::Equal => None,
                Comparison::Less | Comparison::LessOrEqual => Some(Test::LessOrEqual(number(below))),
                Comparison::Greater | Comparison::GreaterOrEqual => {
                    Some(Test::GreaterOrEqual(number(below.checked_add(1)?)))
                }
            })
        }
    }
}

/// A constant in the terms of a column.
enum Constant {
    Value(BoundValue),
    /// It lies between this number and the next one: the column's type is too coarse for it.
    Between(i128),
}

/// Reads a literal in the terms of a column, to which it is compared after the column was widened to its type.
fn constant(literal: &ScalarValue, column: &PrimitiveType) -> Option<Constant> {
    use PrimitiveType as P;
    use ScalarValue as S;
    let number = |value: i128| Some(Constant::Value(BoundValue::Number(value)));
    match (column, literal) {
        (P::Boolean, S::Boolean(Some(value))) => Some(Constant::Value(BoundValue::Boolean(*value))),
        (P::Date, S::Date32(Some(days))) => number(i128::from(*days)),
        (P::Timestamp | P::Timestamptz, literal) => rational(timestamp_nanos(literal)?, 1000),
        (P::TimestampNs | P::TimestamptzNs, literal) => number(timestamp_nanos(literal)?),
        (P::String, S::Utf8(Some(text))) => {
            Some(Constant::Value(BoundValue::Bytes(text.as_bytes().to_vec())))
        }
        (P::Binary | P::Fixed(_), S::Binary(Some(bytes))) => {
            Some(Constant::Value(BoundValue::Bytes(bytes.clone())))
        }
        (P::Float | P::Double, S::Float32(Some(value))) => {
            Some(Constant::Value(BoundValue::Float(f64::from(*value))))
        }
        (P::Float | P::Double, S::Float64(Some(value))) => Some(Constant::Value(BoundValue::Float(*value))),
        (P::Int | P::Long, literal) => integer_constant(literal, 0),
        (P::Decimal { scale, .. }, literal) => integer_constant(literal, *scale),
        _ => None,
    }
}

/// Reads a number for a column of integers, or of decimals with so many digits behind the point.
fn integer_constant(literal: &ScalarValue, scale: u32) -> Option<Constant> {
    use ScalarValue as S;
    let unit = 10_i128.checked_pow(scale)?;
    match literal {
        S::Int8(Some(value)) => rational(i128::from(*value).checked_mul(unit)?, 1),
        S::Int16(Some(value)) => rational(i128::from(*value).checked_mul(unit)?, 1),
        S::Int32(Some(value)) => rational(i128::from(*value).checked_mul(unit)?, 1),
        S::Int64(Some(value)) => rational(i128::from(*value).checked_mul(unit)?, 1),
        S::Decimal128(Some(value), _, literal_scale) => {
            let literal_unit = 10_i128.checked_pow(u32::try_from(*literal_scale).ok()?)?;
            rational(value.checked_mul(unit)?, literal_unit)
        }
        // Only integers become doubles without a change, and only up to here.
        S::Float64(Some(value)) if scale == 0 && value.abs() < DOUBLE_INTEGER_MAX => {
            let floor = value.floor();
            if floor == *value { rational(floor as i128, 1) } else { Some(Constant::Between(floor as i128)) }
        }
        _ => None,
    }
}

fn rational(numerator: i128, denominator: i128) -> Option<Constant> {
    let floor = numerator.div_euclid(denominator);
    if numerator.rem_euclid(denominator) == 0 {
        return Some(Constant::Value(BoundValue::Number(floor)));
    }
    Some(Constant::Between(floor))
}

fn timestamp_nanos(literal: &ScalarValue) -> Option<i128> {
    use ScalarValue as S;
    match literal {
        S::TimestampSecond(Some(value), _) => Some(i128::from(*value) * 1_000_000_000),
        S::TimestampMillisecond(Some(value), _) => Some(i128::from(*value) * 1_000_000),
        S::TimestampMicrosecond(Some(value), _) => Some(i128::from(*value) * 1000),
        S::TimestampNanosecond(Some(value), _) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Returns the column behind an operand: itself, or widened without loss.
fn column_of(operand: &Expr, columns: &[ReadColumn]) -> Option<(i32, PrimitiveType)> {
    match operand {
        Expr::Column(name) => {
            let column = columns.iter().find(|column| column.field.name() == &name.name)?;
            match &column.iceberg {
                // What is read differs from what the bounds are of if the table declares another type.
                Type::Primitive(primitive) if reads_as_is(primitive, column.field.data_type()) => {
                    Some((column.id, primitive.clone()))
                }
                _ => None,
            }
        }
        Expr::Cast(Cast { expr, data_type }) => {
            let (id, column) = column_of(expr, columns)?;
            widens(&column, data_type).then_some((id, column))
        }
        _ => None,
    }
}

/// Returns whether a column is read in its own type.
fn reads_as_is(column: &PrimitiveType, read: &ArrowType) -> bool {
    use {ArrowType as A, PrimitiveType as P};
    match (column, read) {
        (P::Int, A::Int32) | (P::Long, A::Int64) | (P::Float, A::Float32) | (P::Double, A::Float64) => true,
        (P::Decimal { precision, scale }, A::Decimal128(read_precision, read_scale)) => {
            *precision == u32::from(*read_precision) && i64::from(*scale) == i64::from(*read_scale)
        }
        // A coarser type loses digits, so that equal values may differ in the file. Every type that is read of a time is coarser.
        (P::Timestamp | P::Timestamptz, A::Timestamp(unit, _)) => *unit >= TimeUnit::Microsecond,
        (P::TimestampNs | P::TimestamptzNs, A::Timestamp(unit, _)) => *unit >= TimeUnit::Nanosecond,
        (P::Date, A::Date32) | (P::Boolean, A::Boolean) => true,
        (P::String, A::Utf8) | (P::Binary | P::Fixed(_) | P::Uuid, A::Binary) => true,
        _ => false,
    }
}

fn widens(column: &PrimitiveType, to: &ArrowType) -> bool {
    use {ArrowType as A, PrimitiveType as P};
    matches!(
        (column, to),
        (P::Int, A::Int32 | A::Int64)
            | (P::Long, A::Int64)
            | (P::Int | P::Long | P::Float | P::Double, A::Float64)
            | (P::Int | P::Long | P::Decimal { .. }, A::Decimal128(..))
    )
}

fn test_of(operand: &Expr, test: Test, columns: &[ReadColumn]) -> Condition {
    match column_of(operand, columns) {
        Some((id, column)) => Condition::Column(ColumnTest { id, column, test }),
        None => Condition::True,
    }
}

fn is_boolean(operand: &Expr, value: bool, columns: &[ReadColumn]) -> Condition {
    match column_of(operand, columns) {
        Some((id, PrimitiveType::Boolean)) => Condition::Column(ColumnTest {
            id,
            column: PrimitiveType::Boolean,
            test: Test::OneOf(vec![BoundValue::Boolean(value)]),
        }),
        _ => Condition::True,
    }
}

fn in_list(list: &datafusion::logical_expr::expr::InList, columns: &[ReadColumn]) -> Condition {
    let Some((id, column)) = column_of(&list.expr, columns) else { return Condition::True };
    let literals = list.list.iter().map(|item| match item {
        Expr::Literal(literal, _) => Some(literal),
        _ => None,
    });
    let Some(literals) = literals.collect::<Option<Vec<_>>>() else { return Condition::True };
    if list.negated {
        return Condition::Column(ColumnTest { id, column, test: Test::IsNotNull });
    }
    let mut values = Vec::with_capacity(literals.len());
    for literal in literals.into_iter().filter(|literal| !literal.is_null()) {
        match constant(literal, &column) {
            // A list finds NaN in NaN, which no bound tells of.
            Some(Constant::Value(BoundValue::Float(value))) if value.is_nan() => return Condition::True,
            Some(Constant::Value(value)) => values.push(value),
            Some(Constant::Between(_)) => {}
            None => return Condition::True,
        }
    }
    if values.is_empty() {
        return Condition::False;
    }
    Condition::Column(ColumnTest { id, column, test: Test::OneOf(values) })
}

/// Reads the beginning of a pattern.
fn like(operand: &Expr, pattern: &Expr, columns: &[ReadColumn]) -> Condition {
    let Expr::Literal(ScalarValue::Utf8(Some(pattern)), _) = pattern else { return Condition::True };
    let prefix: String = pattern.chars().take_while(|letter| !matches!(letter, '%' | '_' | '\\')).collect();
    match column_of(operand, columns) {
        Some((id, PrimitiveType::String)) => {
            let test =
                if prefix.is_empty() { Test::IsNotNull } else { Test::StartsWith(prefix.into_bytes()) };
            Condition::Column(ColumnTest { id, column: PrimitiveType::String, test })
        }
        _ => Condition::True,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{cast, col, lit};
    use iceberg::spec::NestedField;

    use super::*;

    fn columns() -> Vec<ReadColumn> {
        let fields = [
            ("i", PrimitiveType::Int),
            ("s", PrimitiveType::String),
            ("d", PrimitiveType::Decimal { precision: 5, scale: 2 }),
            ("ts", PrimitiveType::Timestamp),
            ("b", PrimitiveType::Boolean),
            ("x", PrimitiveType::Double),
            ("t", PrimitiveType::Time),
        ];
        fields
            .into_iter()
            .enumerate()
            .map(|(place, (name, column))| {
                let id = i32::try_from(place).unwrap();
                ReadColumn::of_field(&NestedField::optional(id, name, Type::Primitive(column))).unwrap()
            })
            .collect()
    }

    fn test(filter: Expr) -> Test {
        match Condition::of_filters(&[filter], &columns()) {
            Condition::Column(column) => column.test,
            other => panic!("{other:?}"),
        }
    }

    fn whole(filter: Expr) -> Condition {
        Condition::of_filters(&[filter], &columns())
    }

    fn number(value: i128) -> BoundValue {
        BoundValue::Number(value)
    }

    #[test]
    fn a_constant_between_two_values_of_the_column_moves_to_one_of_them() {
        let as_double = cast(col("i"), ArrowType::Float64);
        let as_decimal = cast(col("i"), ArrowType::Decimal128(12, 1));
        assert_eq!(whole(as_double.gt(lit(2.5))), Condition::True, "Arrow's order is not IEEE's");
        let half = lit(ScalarValue::Decimal128(Some(25), 12, 1));
        assert_eq!(test(as_decimal.clone().gt(half.clone())), Test::GreaterOrEqual(number(3)));
        assert_eq!(test(as_decimal.clone().lt(half.clone())), Test::LessOrEqual(number(2)));
        assert_eq!(whole(as_decimal.eq(half)), Condition::False);
        assert_eq!(test(lit(7_i64).gt(cast(col("i"), ArrowType::Int64))), Test::Less(number(7)));
        let decimal = |value, scale| lit(ScalarValue::Decimal128(Some(value), 10, scale));
        assert_eq!(test(col("d").gt_eq(decimal(15, 1))), Test::GreaterOrEqual(number(150)));
        let nanos = lit(ScalarValue::TimestampNanosecond(Some(-1), None));
        assert_eq!(whole(cast(col("ts"), ArrowType::Int64).eq(nanos.clone())), Condition::True);
        assert_eq!(test(col("ts").lt(nanos)), Test::LessOrEqual(number(-1)));
    }

    #[test]
    fn what_is_not_understood_counts_as_true() {
        assert_eq!(whole((col("i") + lit(1)).gt(lit(3))), Condition::True);
        assert_eq!(whole(col("i").gt(col("i"))), Condition::True);
        assert_eq!(whole(col("i").eq(lit(1)).or(col("x").gt(lit(1.0)))), Condition::True);
        assert_eq!(whole(!col("i").gt(lit(1))), Condition::True);
        assert_eq!(whole(col("t").eq(lit(ScalarValue::Time32Millisecond(Some(1))))), Condition::True);
        assert_eq!(test(col("i").eq(lit(1)).and(col("x").gt(lit(1.0)))), Test::OneOf(vec![number(1)]));
    }

    #[test]
    fn a_timestamp_that_is_read_in_a_coarser_unit_rules_nothing_out() {
        let stored = |column| NestedField::optional(1, "ts", Type::Primitive(column));
        let read = |column, unit| {
            let field = arrow::datatypes::Field::new("ts", ArrowType::Timestamp(unit, None), true);
            ReadColumn::with_type(&stored(column), std::sync::Arc::new(field)).unwrap()
        };
        let millis = col("ts").eq(lit(ScalarValue::TimestampMillisecond(Some(1), None)));
        for (column, unit, is_exact) in [
            (PrimitiveType::Timestamp, TimeUnit::Millisecond, false),
            (PrimitiveType::Timestamp, TimeUnit::Microsecond, true),
            (PrimitiveType::Timestamp, TimeUnit::Nanosecond, true),
            (PrimitiveType::TimestampNs, TimeUnit::Microsecond, false),
            (PrimitiveType::TimestampNs, TimeUnit::Nanosecond, true),
        ] {
            let condition = Condition::of_filters(std::slice::from_ref(&millis), &[read(column, unit)]);
            assert_eq!(condition != Condition::True, is_exact, "{unit:?}");
        }
    }

    #[test]
    fn nulls_fulfil_no_comparison() {
        assert_eq!(test(col("i").not_eq(lit(1))), Test::IsNotNull);
        assert_eq!(test(col("i").in_list(vec![lit(1)], true)), Test::IsNotNull);
        assert_eq!(test(col("i").is_null()), Test::IsNull);
        assert_eq!(test(!col("b")), Test::OneOf(vec![BoundValue::Boolean(false)]));
        assert_eq!(whole(col("i").in_list(vec![lit(ScalarValue::Int32(None))], false)), Condition::False);
    }

    #[test]
    fn a_list_of_floats_with_nan_is_not_understood() {
        let list = |value: f64| col("x").in_list(vec![lit(1.0), lit(value)], false);
        assert_eq!(whole(list(f64::NAN)), Condition::True);
        assert_eq!(test(list(0.0)), Test::OneOf(vec![BoundValue::Float(1.0), BoundValue::Float(0.0)]));
    }
}
