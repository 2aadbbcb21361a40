//! The least type that holds values of several: of the branches of CASE, the rows of VALUES, the sides of UNION.

use super::arithmetic::{DAY_TIME, YEAR_MONTH, wider_integer};
use crate::schema::{DataType, Field, LENGTH_MAX, TypeRoot};

/// Returns the least type that holds all, or None where there is none. It is nullable if one of them is.
pub fn common_type(types: &[DataType]) -> Option<DataType> {
    let nullable = types.iter().any(|data_type| data_type.nullable || data_type.root == TypeRoot::Null);
    let mut roots = types.iter().map(|data_type| &data_type.root);
    let mut common = roots.next()?.clone();
    for root in roots {
        common = common_root(&common, root)?;
    }
    Some(DataType { root: common, nullable })
}

fn common_root(left: &TypeRoot, right: &TypeRoot) -> Option<TypeRoot> {
    if left == right {
        return Some(left.clone());
    }
    Some(match (left, right) {
        (TypeRoot::Null, other) | (other, TypeRoot::Null) => other.clone(),
        _ if left.is_numeric() && right.is_numeric() => common_number(left, right)?,
        _ if left.is_character() && right.is_character() => {
            TypeRoot::Varchar(length(left).max(length(right)))
        }
        _ if left.is_binary() && right.is_binary() => TypeRoot::Varbinary(length(left).max(length(right))),
        _ if left.is_datetime() && right.is_datetime() => common_datetime(left, right)?,
        (TypeRoot::IntervalYearMonth(_), TypeRoot::IntervalYearMonth(_)) => {
            TypeRoot::IntervalYearMonth(YEAR_MONTH)
        }
        (TypeRoot::IntervalDayTime(_), TypeRoot::IntervalDayTime(_)) => TypeRoot::IntervalDayTime(DAY_TIME),
        (TypeRoot::Array(left), TypeRoot::Array(right)) => TypeRoot::Array(Box::new(pair(left, right)?)),
        (TypeRoot::Multiset(left), TypeRoot::Multiset(right)) => {
            TypeRoot::Multiset(Box::new(pair(left, right)?))
        }
        (TypeRoot::Map(left_key, left_value), TypeRoot::Map(right_key, right_value)) => {
            TypeRoot::Map(Box::new(pair(left_key, right_key)?), Box::new(pair(left_value, right_value)?))
        }
        (TypeRoot::Row(left), TypeRoot::Row(right)) if left.len() == right.len() => {
            let fields = left.iter().zip(right).map(|(left, right)| {
                Some(Field::new(left.name.clone(), pair(&left.data_type, &right.data_type)?))
            });
            TypeRoot::Row(fields.collect::<Option<Vec<Field>>>()?)
        }
        _ => return None,
    })
}

fn pair(left: &DataType, right: &DataType) -> Option<DataType> {
    common_type(&[left.clone(), right.clone()])
}

fn common_number(left: &TypeRoot, right: &TypeRoot) -> Option<TypeRoot> {
    if left.is_integer() && right.is_integer() {
        return Some(wider_integer(left, right));
    }
    let keeps_float = |root: &TypeRoot| matches!(root, TypeRoot::Float) || root.is_integer();
    if left.is_approximate() || right.is_approximate() {
        return Some(if keeps_float(left) && keeps_float(right) {
            TypeRoot::Float
        } else {
            TypeRoot::Double
        });
    }
    let ((p1, s1), (p2, s2)) = (left.as_decimal()?, right.as_decimal()?);
    let whole_digits = (p1 - s1).max(p2 - s2).min(38);
    let scale = s1.max(s2).min(38 - whole_digits);
    Some(TypeRoot::Decimal(whole_digits + scale, scale))
}

fn common_datetime(left: &TypeRoot, right: &TypeRoot) -> Option<TypeRoot> {
    let precision = |root: &TypeRoot| match root {
        TypeRoot::Time(precision) | TypeRoot::Timestamp(precision) | TypeRoot::TimestampLtz(precision) => {
            *precision
        }
        _ => 0,
    };
    let precision = precision(left).max(precision(right));
    Some(match (left, right) {
        (TypeRoot::Time(_), TypeRoot::Time(_)) => TypeRoot::Time(precision),
        (TypeRoot::TimestampLtz(_), _) | (_, TypeRoot::TimestampLtz(_)) => TypeRoot::TimestampLtz(precision),
        (TypeRoot::Timestamp(_), _) | (_, TypeRoot::Timestamp(_)) => TypeRoot::Timestamp(precision),
        _ => return None,
    })
}

fn length(root: &TypeRoot) -> u32 {
    match root {
        TypeRoot::Char(length)
        | TypeRoot::Varchar(length)
        | TypeRoot::Binary(length)
        | TypeRoot::Varbinary(length) => *length,
        _ => LENGTH_MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common(left: TypeRoot, right: TypeRoot) -> String {
        common_type(&[left.not_null(), right.not_null()])
            .map_or("none".to_owned(), |data_type| data_type.summary())
    }

    #[test]
    fn texts_of_different_length_become_varchar() {
        assert_eq!(common(TypeRoot::Char(1), TypeRoot::Char(3)), "VARCHAR(3) NOT NULL");
        assert_eq!(common(TypeRoot::Char(3), TypeRoot::Char(3)), "CHAR(3) NOT NULL");
        assert_eq!(common(TypeRoot::Char(3), TypeRoot::STRING), "STRING NOT NULL");
    }

    #[test]
    fn numbers_take_the_type_that_holds_both() {
        assert_eq!(common(TypeRoot::Int, TypeRoot::Decimal(2, 1)), "DECIMAL(11, 1) NOT NULL");
        assert_eq!(common(TypeRoot::Int, TypeRoot::Float), "FLOAT NOT NULL");
        assert_eq!(common(TypeRoot::Decimal(2, 1), TypeRoot::Float), "DOUBLE NOT NULL");
        assert_eq!(common(TypeRoot::Int, TypeRoot::STRING), "none");
    }

    #[test]
    fn null_makes_the_other_type_nullable() {
        assert_eq!(common(TypeRoot::Null, TypeRoot::Int), "INT");
    }

    #[test]
    fn dates_and_times_meet_in_timestamps() {
        assert_eq!(common(TypeRoot::Date, TypeRoot::Timestamp(3)), "TIMESTAMP(3) NOT NULL");
        assert_eq!(common(TypeRoot::Timestamp(6), TypeRoot::TimestampLtz(3)), "TIMESTAMP_LTZ(6) NOT NULL");
        assert_eq!(common(TypeRoot::Date, TypeRoot::Time(0)), "none");
    }
}
