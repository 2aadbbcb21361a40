//! Which values an INSERT may put where without a CAST.

use crate::schema::{DataType, TypeRoot};

/// Returns whether values of one type fit a column of another without CAST. Lengths and nullability are not looked at: the
/// sink's enforcers do that.
pub fn is_implicit_cast(from: &DataType, to: &DataType) -> bool {
    use TypeRoot as T;
    match (&from.root, &to.root) {
        (T::Null, _) => true,
        (T::Char(_), T::Char(_))
        | (T::Char(_) | T::Varchar(_), T::Varchar(_))
        | (T::Binary(_), T::Binary(_))
        | (T::Binary(_) | T::Varbinary(_), T::Varbinary(_))
        | (T::Boolean, T::Boolean)
        | (T::Date | T::Timestamp(_), T::Date)
        | (T::Time(_) | T::Timestamp(_), T::Time(_))
        | (T::Timestamp(_) | T::TimestampLtz(_), T::Timestamp(_) | T::TimestampLtz(_))
        | (T::IntervalYearMonth(_), T::IntervalYearMonth(_))
        | (T::IntervalDayTime(_), T::IntervalDayTime(_)) => true,
        (from, T::Decimal(..) | T::Double) => from.is_numeric(),
        (from, T::Float) => from.is_numeric() && *from != T::Double,
        (from, to) if from.is_integer() && to.is_integer() => from.as_decimal() <= to.as_decimal(),
        (T::Array(from), T::Array(to)) | (T::Multiset(from), T::Multiset(to)) => is_implicit_cast(from, to),
        (T::Map(from_key, from_value), T::Map(to_key, to_value)) => {
            is_implicit_cast(from_key, to_key) && is_implicit_cast(from_value, to_value)
        }
        (T::Row(from), T::Row(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| is_implicit_cast(&from.data_type, &to.data_type))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_widen_but_never_narrow() {
        let fits = |from: TypeRoot, to: TypeRoot| is_implicit_cast(&from.nullable(), &to.nullable());
        assert!(fits(TypeRoot::TinyInt, TypeRoot::BigInt));
        assert!(!fits(TypeRoot::BigInt, TypeRoot::Int));
        assert!(fits(TypeRoot::Double, TypeRoot::Decimal(10, 2)));
        assert!(!fits(TypeRoot::Double, TypeRoot::Float));
        assert!(!fits(TypeRoot::STRING, TypeRoot::Int));
        assert!(!fits(TypeRoot::Int, TypeRoot::STRING));
        assert!(fits(TypeRoot::Char(3), TypeRoot::Varchar(2)));
    }
}
