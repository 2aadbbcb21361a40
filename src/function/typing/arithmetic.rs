//! Result types of `+ - * / %` over numbers. Precision and scale are Flink's, not DataFusion's.

use crate::schema::{DataType, IntervalKind, IntervalQualifier, TypeRoot};

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum ArithmeticOp {
    Plus,
    Minus,
    Multiply,
    Divide,
    Modulo,
}

impl ArithmeticOp {
    /// Returns the operator's sign.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Plus => "+",
            ArithmeticOp::Minus => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::Modulo => "%",
        }
    }

    /// Returns the forms that Flink's error lists when the operands do not fit.
    pub fn signatures(self) -> &'static [&'static str] {
        match self {
            ArithmeticOp::Plus => &[
                "<NUMERIC> + <NUMERIC>",
                "<DATETIME_INTERVAL> + <DATETIME_INTERVAL>",
                "<DATETIME> + <DATETIME_INTERVAL>",
                "<DATETIME_INTERVAL> + <DATETIME>",
            ],
            ArithmeticOp::Minus => &[
                "<NUMERIC> - <NUMERIC>",
                "<DATETIME_INTERVAL> - <DATETIME_INTERVAL>",
                "<DATETIME> - <DATETIME_INTERVAL>",
            ],
            ArithmeticOp::Multiply => &[
                "<NUMERIC> * <NUMERIC>",
                "<DATETIME_INTERVAL> * <NUMERIC>",
                "<NUMERIC> * <DATETIME_INTERVAL>",
            ],
            ArithmeticOp::Divide => &["<NUMERIC> / <NUMERIC>", "<DATETIME_INTERVAL> / <NUMERIC>"],
            ArithmeticOp::Modulo => &["<EXACT_NUMERIC> % <EXACT_NUMERIC>"],
        }
    }
}

/// The kind that every computed interval of days and time has.
pub const DAY_TIME: IntervalKind =
    IntervalKind { qualifier: IntervalQualifier::Second, leading: 2, fraction: 3 };
/// The kind that every computed interval of months has.
pub const YEAR_MONTH: IntervalKind =
    IntervalKind { qualifier: IntervalQualifier::Month, leading: 2, fraction: 0 };

const PRECISION_MAX: u16 = 38;
const SCALE_MIN: u16 = 6;

/// Returns the type of an operation on two numbers, or None where one of them is none.
pub fn numeric_result(op: ArithmeticOp, left: &DataType, right: &DataType) -> Option<DataType> {
    let nullable = left.nullable || right.nullable;
    let (left, right) = match (&left.root, &right.root) {
        (TypeRoot::Null, TypeRoot::Null) => return None,
        (TypeRoot::Null, other) | (other, TypeRoot::Null) => (other, other),
        both => both,
    };
    if !left.is_numeric() || !right.is_numeric() {
        return None;
    }
    let root = if left.is_approximate() || right.is_approximate() {
        if op == ArithmeticOp::Modulo {
            return None;
        }
        approximate(left, right)
    } else if left.is_integer() && right.is_integer() {
        // The remainder is smaller than the divisor, so it has the divisor's type.
        if op == ArithmeticOp::Modulo { right.clone() } else { wider_integer(left, right) }
    } else {
        decimal(op, left.as_decimal()?, right.as_decimal()?)
    };
    Some(DataType { root, nullable })
}

/// FLOAT stays FLOAT among integers; a decimal beside it makes a DOUBLE.
fn approximate(left: &TypeRoot, right: &TypeRoot) -> TypeRoot {
    let keeps_float = |root: &TypeRoot| matches!(root, TypeRoot::Float) || root.is_integer();
    if keeps_float(left) && keeps_float(right) { TypeRoot::Float } else { TypeRoot::Double }
}

/// Returns the larger of two integer types.
pub(super) fn wider_integer(left: &TypeRoot, right: &TypeRoot) -> TypeRoot {
    if left.as_decimal() >= right.as_decimal() { left.clone() } else { right.clone() }
}

fn decimal(op: ArithmeticOp, (p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> TypeRoot {
    let (p1, s1, p2, s2) = (u16::from(p1), u16::from(s1), u16::from(p2), u16::from(s2));
    let (precision, scale) = match op {
        ArithmeticOp::Plus | ArithmeticOp::Minus => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        ArithmeticOp::Multiply => (p1 + p2 + 1, s1 + s2),
        ArithmeticOp::Divide => {
            let scale = SCALE_MIN.max(s1 + p2 + 1);
            (p1 - s1 + s2 + scale, scale)
        }
        ArithmeticOp::Modulo => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
    };
    let (precision, scale) = fit_decimal(precision, scale);
    TypeRoot::Decimal(precision, scale)
}

/// Cuts the scale, but not below six digits, where the precision would be more than 38.
fn fit_decimal(precision: u16, scale: u16) -> (u8, u8) {
    if precision <= PRECISION_MAX {
        return (precision.max(1) as u8, scale as u8);
    }
    let whole_digits = precision - scale;
    (PRECISION_MAX as u8, PRECISION_MAX.saturating_sub(whole_digits).max(scale.min(SCALE_MIN)) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(op: ArithmeticOp, left: TypeRoot, right: TypeRoot) -> String {
        numeric_result(op, &left.not_null(), &right.not_null())
            .map_or("none".to_owned(), |data_type| data_type.to_string())
    }

    #[test]
    fn integers_keep_the_wider_type_and_remainders_the_divisors() {
        assert_eq!(result(ArithmeticOp::Plus, TypeRoot::TinyInt, TypeRoot::TinyInt), "TINYINT");
        assert_eq!(result(ArithmeticOp::Divide, TypeRoot::SmallInt, TypeRoot::BigInt), "BIGINT");
        assert_eq!(result(ArithmeticOp::Modulo, TypeRoot::Int, TypeRoot::SmallInt), "SMALLINT");
        assert_eq!(result(ArithmeticOp::Modulo, TypeRoot::TinyInt, TypeRoot::SmallInt), "SMALLINT");
    }

    #[test]
    fn decimals_grow_until_38_digits_and_then_lose_scale() {
        let (small, large) = (TypeRoot::Decimal(10, 4), TypeRoot::Decimal(38, 18));
        assert_eq!(result(ArithmeticOp::Minus, TypeRoot::Int, small.clone()), "DECIMAL(15, 4)");
        assert_eq!(result(ArithmeticOp::Divide, TypeRoot::Int, small.clone()), "DECIMAL(25, 11)");
        assert_eq!(result(ArithmeticOp::Divide, small.clone(), TypeRoot::Int), "DECIMAL(21, 15)");
        assert_eq!(result(ArithmeticOp::Modulo, TypeRoot::Int, small), "DECIMAL(10, 4)");
        assert_eq!(result(ArithmeticOp::Plus, large.clone(), TypeRoot::Int), "DECIMAL(38, 17)");
        assert_eq!(result(ArithmeticOp::Multiply, large.clone(), TypeRoot::Int), "DECIMAL(38, 7)");
        assert_eq!(result(ArithmeticOp::Divide, TypeRoot::TinyInt, large.clone()), "DECIMAL(38, 17)");
        assert_eq!(result(ArithmeticOp::Divide, large.clone(), large.clone()), "DECIMAL(38, 6)");
        assert_eq!(result(ArithmeticOp::Modulo, large.clone(), large), "DECIMAL(38, 18)");
    }

    #[test]
    fn float_stays_float_unless_a_decimal_is_beside_it() {
        assert_eq!(result(ArithmeticOp::Plus, TypeRoot::Float, TypeRoot::BigInt), "FLOAT");
        assert_eq!(result(ArithmeticOp::Plus, TypeRoot::Float, TypeRoot::Decimal(3, 2)), "DOUBLE");
        assert_eq!(result(ArithmeticOp::Modulo, TypeRoot::Float, TypeRoot::Int), "none");
    }
}
