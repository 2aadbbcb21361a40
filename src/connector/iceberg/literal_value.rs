//! Values of a table's metadata (defaults, the values of partitions, bounds) as Arrow has them.

use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use iceberg::spec::{PrimitiveLiteral, PrimitiveType, Type};

use super::value_cast::cast_value;
use crate::error::{Error, Result};

/// Returns a value in a wanted type: that of a read, or of a file.
///
/// # Errors
/// It does not fit the type.
pub(super) fn scalar(literal: &PrimitiveLiteral, iceberg: &Type, target: &ArrowType) -> Result<ScalarValue> {
    let natural = natural_scalar(literal, iceberg)
        .ok_or_else(|| Error::data(format!("value {literal:?} of the table's metadata is no {iceberg}")))?;
    Ok(cast_value(natural, target)?)
}

/// Returns a value in the Arrow type that is nearest to its Iceberg type. The value may be of an earlier, narrower type.
fn natural_scalar(literal: &PrimitiveLiteral, iceberg: &Type) -> Option<ScalarValue> {
    use {PrimitiveLiteral as L, PrimitiveType as P};
    let Type::Primitive(primitive) = iceberg else { return None };
    let utc = || Some("UTC".into());
    Some(match (literal, primitive) {
        (L::Boolean(value), P::Boolean) => ScalarValue::Boolean(Some(*value)),
        (L::Int(value), P::Int) => ScalarValue::Int32(Some(*value)),
        (L::Int(value), P::Long) => ScalarValue::Int64(Some(i64::from(*value))),
        (L::Long(value), P::Long) => ScalarValue::Int64(Some(*value)),
        (L::Float(value), P::Float) => ScalarValue::Float32(Some(value.0)),
        (L::Float(value), P::Double) => ScalarValue::Float64(Some(f64::from(value.0))),
        (L::Double(value), P::Double) => ScalarValue::Float64(Some(value.0)),
        // A date whose column has become a timestamp is cast by Arrow.
        (L::Int(value), P::Date | P::Timestamp | P::TimestampNs) => ScalarValue::Date32(Some(*value)),
        (L::Long(value), P::Time) => ScalarValue::Time64Microsecond(Some(*value)),
        (L::Long(value), P::Timestamp) => ScalarValue::TimestampMicrosecond(Some(*value), None),
        (L::Long(value), P::Timestamptz) => ScalarValue::TimestampMicrosecond(Some(*value), utc()),
        (L::Long(value), P::TimestampNs) => ScalarValue::TimestampNanosecond(Some(*value), None),
        (L::Long(value), P::TimestamptzNs) => ScalarValue::TimestampNanosecond(Some(*value), utc()),
        (L::String(value), P::String) => ScalarValue::Utf8(Some(value.clone())),
        (L::UInt128(value), P::Uuid) => ScalarValue::Binary(Some(value.to_be_bytes().to_vec())),
        (L::Binary(value), P::Uuid | P::Fixed(_) | P::Binary) => ScalarValue::Binary(Some(value.clone())),
        (L::Int128(value), P::Decimal { precision, scale }) => {
            ScalarValue::Decimal128(Some(*value), *precision as u8, *scale as i8)
        }
        _ => return None,
    })
}
