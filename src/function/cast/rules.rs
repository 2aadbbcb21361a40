//! Which casts the planner allows, with Flink's words for the others.

use super::super::typing::calcite_name;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{DataType, TypeRoot};

/// Checks whether CAST may convert one type to another.
///
/// # Errors
/// It may not; the message is Flink's.
pub fn cast_supported(from: &DataType, to: &DataType) -> Result<()> {
    use TypeRoot as T;
    let advice = |text: &str| Err(Error::validation(text).class(FlinkClass::VALIDATION));
    match (&from.root, &to.root) {
        (from, T::Timestamp(_)) if from.is_numeric() => advice(
            "The cast from NUMERIC type to TIMESTAMP type is not allowed. It's recommended to use \
             TO_TIMESTAMP(FROM_UNIXTIME(numeric_col)) instead, note the numeric is in seconds.",
        ),
        (from, T::TimestampLtz(_)) if from.is_numeric() => advice(
            "The cast from NUMERIC type to TIMESTAMP_LTZ type is not allowed. It's recommended to use \
             TO_TIMESTAMP_LTZ(numeric_col, precision) instead.",
        ),
        (T::Timestamp(_), to) if to.is_numeric() => advice(
            "The cast from TIMESTAMP type to NUMERIC type is not allowed. It's recommended to use \
             UNIX_TIMESTAMP(CAST(timestamp_col AS STRING)) instead.",
        ),
        (T::TimestampLtz(_), to) if to.is_numeric() => {
            advice("The cast from TIMESTAMP_LTZ type to NUMERIC type is not allowed.")
        }
        (from_root, to_root) if from_root.is_binary() && to_root.is_datetime() => Err(Error::validation(
            format!("Unsupported cast from '{}' to '{}'.", from.summary(), to.summary()),
        )
        .class(FlinkClass::CODE_GEN)),
        (from_root, to_root) if is_castable(from_root, to_root) => Ok(()),
        _ => Err(Error::validation(format!(
            "Cast function cannot convert value of type {} to type {}",
            calcite_name(from),
            calcite_name(to)
        ))
        .class(FlinkClass::SQL_VALIDATOR)),
    }
}

fn is_castable(from: &TypeRoot, to: &TypeRoot) -> bool {
    use TypeRoot as T;
    match (from, to) {
        (T::Null, _) => true,
        (_, T::Null) => false,
        (_, T::Char(_) | T::Varchar(_)) => true,
        (from, to) if from.is_character() => {
            to.is_numeric() || to.is_datetime() || to.is_binary() || *to == T::Boolean
        }
        (from, to) if from.is_numeric() || *from == T::Boolean => {
            to.is_numeric() || *to == T::Boolean || (to.is_interval() && from.is_integer())
        }
        (from, to) if from.is_interval() => {
            std::mem::discriminant(from) == std::mem::discriminant(to) || to.is_integer()
        }
        (T::Date, T::Time(_)) | (T::Time(_), T::Date) => false,
        (from, to) if from.is_datetime() => to.is_datetime(),
        (from, to) if from.is_binary() => to.is_binary(),
        (T::Array(from), T::Array(to)) | (T::Multiset(from), T::Multiset(to)) => {
            is_castable(&from.root, &to.root)
        }
        (T::Map(from_key, from_value), T::Map(to_key, to_value)) => {
            is_castable(&from_key.root, &to_key.root) && is_castable(&from_value.root, &to_value.root)
        }
        (T::Row(from), T::Row(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| is_castable(&from.data_type.root, &to.data_type.root))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(from: DataType, to: DataType) -> String {
        cast_supported(&from, &to).map_or_else(|error| error.message().to_owned(), |()| "allowed".to_owned())
    }

    #[test]
    fn refusals_have_flinks_words() {
        assert_eq!(
            refusal(TypeRoot::Int.not_null(), TypeRoot::Date.nullable()),
            "Cast function cannot convert value of type INTEGER to type DATE"
        );
        assert_eq!(
            refusal(TypeRoot::Boolean.not_null(), TypeRoot::TimestampLtz(3).nullable()),
            "Cast function cannot convert value of type BOOLEAN to type TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)"
        );
        assert_eq!(
            refusal(TypeRoot::Binary(3).not_null(), TypeRoot::Time(0).nullable()),
            "Unsupported cast from 'BINARY(3) NOT NULL' to 'TIME(0)'."
        );
        assert_eq!(refusal(TypeRoot::Date.nullable(), TypeRoot::Timestamp(3).nullable()), "allowed");
        assert!(
            refusal(TypeRoot::Timestamp(3).nullable(), TypeRoot::Int.nullable()).contains("UNIX_TIMESTAMP")
        );
    }
}
