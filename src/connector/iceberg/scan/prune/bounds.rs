//! What is known of a column's values in a file, a partition or a manifest, and whether a test can hold for one of them.
//!
//! Comparisons are Flink's: NaN compares with nothing, so that bounds, which leave NaN out, may be believed; -0.0 equals 0.0; texts and
//! bytes are compared byte by byte.

use std::cmp::Ordering;

use iceberg::spec::{Datum, PrimitiveLiteral, PrimitiveType};

/// A value in the terms of its column: integers, dates, times and timestamps by their number, decimals without their point.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum BoundValue {
    Boolean(bool),
    Number(i128),
    Float(f64),
    Bytes(Vec<u8>),
}

impl BoundValue {
    /// Returns a value of the metadata for a column of the given type; None if it cannot be compared with those of the column.
    pub(in crate::connector::iceberg::scan) fn of_datum(
        datum: &Datum,
        column: &PrimitiveType,
    ) -> Option<BoundValue> {
        if !is_comparable(datum.data_type(), column) {
            return None;
        }
        BoundValue::of_literal(datum.literal())
    }

    /// Returns a value without its type; None if it has no order that all writers agree on.
    pub(in crate::connector::iceberg::scan) fn of_literal(literal: &PrimitiveLiteral) -> Option<BoundValue> {
        Some(match literal {
            PrimitiveLiteral::Boolean(value) => BoundValue::Boolean(*value),
            PrimitiveLiteral::Int(value) => BoundValue::Number(i128::from(*value)),
            PrimitiveLiteral::Long(value) => BoundValue::Number(i128::from(*value)),
            PrimitiveLiteral::Int128(value) => BoundValue::Number(*value),
            PrimitiveLiteral::Float(value) => BoundValue::Float(f64::from(value.0)),
            PrimitiveLiteral::Double(value) => BoundValue::Float(value.0),
            PrimitiveLiteral::String(value) => BoundValue::Bytes(value.as_bytes().to_vec()),
            PrimitiveLiteral::Binary(value) => BoundValue::Bytes(value.clone()),
            // Java has ordered UUIDs by signed halves.
            PrimitiveLiteral::UInt128(_) | PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin => {
                return None;
            }
        })
    }

    /// Compares two values of one column; None if one is NaN.
    pub(in crate::connector::iceberg::scan) fn compare(&self, other: &BoundValue) -> Option<Ordering> {
        match (self, other) {
            (BoundValue::Boolean(left), BoundValue::Boolean(right)) => Some(left.cmp(right)),
            (BoundValue::Number(left), BoundValue::Number(right)) => Some(left.cmp(right)),
            (BoundValue::Float(left), BoundValue::Float(right)) => left.partial_cmp(right),
            (BoundValue::Bytes(left), BoundValue::Bytes(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }
}

/// Returns whether values of one type are in the terms of another: the types are the same, or the column was widened.
fn is_comparable(stored: &PrimitiveType, column: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    match (stored, column) {
        (P::Int, P::Long) | (P::Float, P::Double) => true,
        (P::Decimal { scale: stored, .. }, P::Decimal { scale: column, .. }) => stored == column,
        (stored, column) => stored == column,
    }
}

/// What is known of some values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) struct Bounds {
    /// No value but NULL and NaN is below it.
    pub(in crate::connector::iceberg::scan) lower: Option<BoundValue>,
    /// No value but NULL and NaN is above it.
    pub(in crate::connector::iceberg::scan) upper: Option<BoundValue>,
    /// Whether one may be NULL.
    pub(in crate::connector::iceberg::scan) may_be_null: bool,
    /// Whether all are NULL.
    pub(in crate::connector::iceberg::scan) all_null: bool,
}

impl Bounds {
    /// Knows the one value.
    pub(in crate::connector::iceberg::scan) fn of_value(value: Option<BoundValue>) -> Bounds {
        Bounds { lower: value.clone(), upper: value, may_be_null: false, all_null: false }
    }

    /// Knows that all are NULL.
    pub(in crate::connector::iceberg::scan) const NULL: Bounds =
        Bounds { lower: None, upper: None, may_be_null: true, all_null: true };
}

/// What is asked of a column's value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum Test {
    IsNull,
    IsNotNull,
    Less(BoundValue),
    LessOrEqual(BoundValue),
    Greater(BoundValue),
    GreaterOrEqual(BoundValue),
    /// Equals one of these.
    OneOf(Vec<BoundValue>),
    /// A text that begins so.
    StartsWith(Vec<u8>),
    /// Passes one of these.
    Any(Vec<Test>),
}

impl Test {
    /// Returns whether the test can hold for one of the values.
    pub(in crate::connector::iceberg::scan) fn may_hold(&self, bounds: &Bounds) -> bool {
        match self {
            Test::IsNull => return bounds.may_be_null,
            _ if bounds.all_null => return false,
            _ => {}
        }
        let lower = |holds: &dyn Fn(Ordering) -> bool, value: &BoundValue| {
            bounds.lower.as_ref().and_then(|lower| lower.compare(value)).is_none_or(holds)
        };
        let upper = |holds: &dyn Fn(Ordering) -> bool, value: &BoundValue| {
            bounds.upper.as_ref().and_then(|upper| upper.compare(value)).is_none_or(holds)
        };
        match self {
            Test::IsNull | Test::IsNotNull => true,
            Test::Less(value) => lower(&Ordering::is_lt, value),
            Test::LessOrEqual(value) => lower(&Ordering::is_le, value),
            Test::Greater(value) => upper(&Ordering::is_gt, value),
            Test::GreaterOrEqual(value) => upper(&Ordering::is_ge, value),
            Test::OneOf(values) => {
                values.iter().any(|value| lower(&Ordering::is_le, value) && upper(&Ordering::is_ge, value))
            }
            Test::StartsWith(prefix) => may_start_with(prefix, bounds),
            Test::Any(tests) => tests.iter().any(|test| test.may_hold(bounds)),
        }
    }
}

/// Returns whether a text between the bounds can begin so.
fn may_start_with(prefix: &[u8], bounds: &Bounds) -> bool {
    let beginning = |bound: &Option<BoundValue>| match bound {
        Some(BoundValue::Bytes(bytes)) => Some(bytes[..bytes.len().min(prefix.len())].to_vec()),
        _ => None,
    };
    beginning(&bounds.lower).is_none_or(|lower| lower.as_slice() <= prefix)
        && beginning(&bounds.upper).is_none_or(|upper| upper.as_slice() >= &prefix[..upper.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(lower: BoundValue, upper: BoundValue) -> Bounds {
        Bounds { lower: Some(lower), upper: Some(upper), may_be_null: false, all_null: false }
    }

    #[test]
    fn a_comparison_looks_at_the_bound_that_can_refute_it() {
        let number = BoundValue::Number;
        let bounds = between(number(3), number(7));
        for (test, expected) in [
            (Test::Less(number(3)), false),
            (Test::Less(number(4)), true),
            (Test::LessOrEqual(number(3)), true),
            (Test::Greater(number(7)), false),
            (Test::GreaterOrEqual(number(7)), true),
            (Test::OneOf(vec![number(2), number(8)]), false),
            (Test::OneOf(vec![number(2), number(5)]), true),
            (Test::IsNull, false),
            (Test::IsNotNull, true),
        ] {
            assert_eq!(test.may_hold(&bounds), expected, "{test:?}");
        }
        let unknown = Bounds { lower: None, upper: None, may_be_null: true, all_null: false };
        assert!(Test::Less(number(0)).may_hold(&unknown));
        assert!(!Test::Less(number(0)).may_hold(&Bounds::NULL));
        assert!(Test::IsNull.may_hold(&Bounds::NULL));
    }

    #[test]
    fn the_two_zeros_are_equal_and_a_nan_bound_says_nothing() {
        let float = BoundValue::Float;
        let zero = between(float(-0.0), float(-0.0));
        assert!(Test::OneOf(vec![float(0.0)]).may_hold(&zero));
        assert!(Test::GreaterOrEqual(float(0.0)).may_hold(&zero));
        assert!(!Test::Greater(float(0.0)).may_hold(&zero));
        let nan = between(float(f64::NAN), float(f64::NAN));
        assert!(Test::Less(float(0.0)).may_hold(&nan));
    }

    #[test]
    fn a_prefix_is_compared_with_cut_bounds() {
        let bytes = |text: &str| BoundValue::Bytes(text.as_bytes().to_vec());
        let bounds = between(bytes("ab"), bytes("cd"));
        for (prefix, expected) in [
            ("a", true),
            ("aa", false),
            ("abc", true),
            ("b", true),
            ("cd", true),
            ("cde", true),
            ("ce", false),
            ("d", false),
        ] {
            assert_eq!(Test::StartsWith(prefix.into()).may_hold(&bounds), expected, "{prefix}");
        }
    }

    #[test]
    fn bounds_of_a_narrower_type_are_those_of_the_widened_column() {
        let of = BoundValue::of_datum;
        assert_eq!(of(&Datum::int(3), &PrimitiveType::Long), Some(BoundValue::Number(3)));
        assert_eq!(of(&Datum::float(0.5), &PrimitiveType::Double), Some(BoundValue::Float(0.5)));
        assert_eq!(of(&Datum::date(3), &PrimitiveType::Timestamp), None);
    }
}
