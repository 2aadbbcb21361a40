//! The folder of a partition, `day=2026-01-31/city=a+b`, as Java's writers name it. Nobody reads values from it: they stand in the
//! manifests.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use iceberg::spec::{
    Literal, PartitionSpec, PrimitiveLiteral, PrimitiveType, Struct, StructType, Transform, Type,
};

use crate::schema::calendar::civil_from_days;
use crate::schema::push_decimal;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns the folder of a partition, relative to that of the table's data; empty without partition fields.
pub(super) fn partition_path(spec: &PartitionSpec, partition_type: &StructType, values: &Struct) -> String {
    let mut path = String::new();
    for ((field, typed), value) in spec.fields().iter().zip(partition_type.fields()).zip(values.iter()) {
        if !path.is_empty() {
            path.push('/');
        }
        push_encoded(&field.name, &mut path);
        path.push('=');
        let literal = value.and_then(Literal::as_primitive_literal);
        let text = match (literal, typed.field_type.as_ref()) {
            (Some(literal), Type::Primitive(data_type)) => value_text(field.transform, data_type, &literal),
            _ => "null".to_owned(),
        };
        push_encoded(&text, &mut path);
    }
    path
}

/// Writes a text as HTML forms do: letters, digits and `.-*_` as they are, a blank as `+`, bytes of others in hexadecimal.
fn push_encoded(text: &str, path: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                path.push(char::from(byte));
            }
            b' ' => path.push('+'),
            _ => {
                let _ = write!(path, "%{byte:02X}");
            }
        }
    }
}

/// Returns a value as people write it.
fn value_text(transform: Transform, data_type: &PrimitiveType, value: &PrimitiveLiteral) -> String {
    match (value, transform) {
        (PrimitiveLiteral::Int(years), Transform::Year) => format!("{:04}", i64::from(*years) + 1970),
        (PrimitiveLiteral::Int(months), Transform::Month) => {
            format!("{:04}-{:02}", i64::from(months.div_euclid(12)) + 1970, months.rem_euclid(12) + 1)
        }
        (PrimitiveLiteral::Int(hours), Transform::Hour) => {
            format!("{}-{:02}", date_text(i64::from(hours.div_euclid(24))), hours.rem_euclid(24))
        }
        (PrimitiveLiteral::Int(days), Transform::Day) => date_text(i64::from(*days)),
        (PrimitiveLiteral::Int(days), _) if data_type == &PrimitiveType::Date => date_text(i64::from(*days)),
        (PrimitiveLiteral::Long(value), _) => long_text(data_type, *value),
        (PrimitiveLiteral::Int(value), _) => value.to_string(),
        (PrimitiveLiteral::Boolean(value), _) => value.to_string(),
        (PrimitiveLiteral::Float(value), _) => value.to_string(),
        (PrimitiveLiteral::Double(value), _) => value.to_string(),
        (PrimitiveLiteral::String(value), _) => value.clone(),
        (PrimitiveLiteral::Binary(value), _) => STANDARD.encode(value),
        (PrimitiveLiteral::UInt128(value), _) => uuid::Uuid::from_u128(*value).to_string(),
        (PrimitiveLiteral::Int128(value), _) => {
            let PrimitiveType::Decimal { scale, .. } = data_type else { return value.to_string() };
            let mut text = String::new();
            push_decimal(*value, *scale as u8, &mut text);
            text
        }
        (PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin, _) => "null".to_owned(),
    }
}

fn date_text(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns a long, or what a long stands for.
fn long_text(data_type: &PrimitiveType, value: i64) -> String {
    let per_second = match data_type {
        PrimitiveType::Time | PrimitiveType::Timestamp | PrimitiveType::Timestamptz => MICROS_PER_SECOND,
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => MICROS_PER_SECOND * 1000,
        _ => return value.to_string(),
    };
    let (seconds, fraction) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let nanos = fraction * (MICROS_PER_SECOND * 1000 / per_second);
    let clock = clock_text(seconds.rem_euclid(SECONDS_PER_DAY), nanos);
    match data_type {
        PrimitiveType::Time => clock,
        PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs => {
            format!("{}T{clock}Z", date_text(seconds.div_euclid(SECONDS_PER_DAY)))
        }
        _ => format!("{}T{clock}", date_text(seconds.div_euclid(SECONDS_PER_DAY))),
    }
}

/// Returns a time of day in ISO 8601, seconds and their fraction only where they are not zero, the fraction in thousands.
fn clock_text(seconds: i64, nanos: i64) -> String {
    let mut text = format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if seconds % 60 != 0 || nanos != 0 {
        let _ = write!(text, ":{:02}", seconds % 60);
    }
    if nanos != 0 {
        let (value, digits) = match nanos {
            nanos if nanos % 1_000_000 == 0 => (nanos / 1_000_000, 3),
            nanos if nanos % 1000 == 0 => (nanos / 1000, 6),
            nanos => (nanos, 9),
        };
        let _ = write!(text, ".{value:0digits$}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::{NestedField, Schema};
    use std::sync::Arc;

    /// Returns the folder of a partition by one field.
    fn path_of(transform: Transform, source: PrimitiveType, value: Option<Literal>) -> String {
        let field = NestedField::optional(1, "a b/ü", Type::Primitive(source));
        let schema = Arc::new(Schema::builder().with_fields([Arc::new(field)]).build().unwrap());
        let spec = PartitionSpec::builder(Arc::clone(&schema));
        let spec = spec.add_partition_field("a b/ü", "f", transform).unwrap().build().unwrap();
        let partition_type = spec.partition_type(&schema).unwrap();
        partition_path(&spec, &partition_type, &Struct::from_iter([value]))
    }

    fn identity(source: PrimitiveType, value: Literal) -> String {
        path_of(Transform::Identity, source, Some(value))
    }

    #[test]
    fn values_are_what_people_write() {
        use PrimitiveType as T;
        let of = path_of;
        assert_eq!(of(Transform::Year, T::Date, Some(Literal::int(-1))), "f=1969");
        assert_eq!(of(Transform::Month, T::Date, Some(Literal::int(-1))), "f=1969-12");
        assert_eq!(of(Transform::Day, T::Timestamp, Some(Literal::date(-1))), "f=1969-12-31");
        assert_eq!(of(Transform::Hour, T::Timestamp, Some(Literal::int(-1))), "f=1969-12-31-23");
        assert_eq!(of(Transform::Bucket(4), T::String, Some(Literal::int(3))), "f=3");
        assert_eq!(of(Transform::Void, T::String, None), "f=null");
        assert_eq!(identity(T::Date, Literal::date(20_454)), "f=2026-01-01");
        assert_eq!(identity(T::Int, Literal::int(-5)), "f=-5");
        assert_eq!(identity(T::Boolean, Literal::bool(true)), "f=true");
        assert_eq!(identity(T::Decimal { precision: 9, scale: 2 }, Literal::decimal(-150)), "f=-1.50");
        assert_eq!(identity(T::Timestamp, Literal::timestamp(-1)), "f=1969-12-31T23%3A59%3A59.999999");
        assert_eq!(identity(T::Timestamptz, Literal::timestamptz(0)), "f=1970-01-01T00%3A00Z");
        assert_eq!(identity(T::Time, Literal::time(1_500_000)), "f=00%3A00%3A01.500");
        assert_eq!(identity(T::Binary, Literal::binary(vec![255, 0])), "f=%2FwA%3D");
    }

    #[test]
    fn what_a_path_cannot_hold_is_encoded_and_null_is_a_word() {
        assert_eq!(identity(PrimitiveType::String, Literal::string("a b/c=d%ü")), "f=a+b%2Fc%3Dd%25%C3%BC");
        assert_eq!(identity(PrimitiveType::String, Literal::string("..")), "f=..");
        assert_eq!(identity(PrimitiveType::String, Literal::string("")), "f=");
        assert_eq!(path_of(Transform::Identity, PrimitiveType::String, None), "f=null");
    }

    #[test]
    fn a_name_is_encoded_too() {
        let field = NestedField::optional(1, "a b", Type::Primitive(PrimitiveType::Int));
        let schema = Arc::new(Schema::builder().with_fields([Arc::new(field)]).build().unwrap());
        let spec = PartitionSpec::builder(Arc::clone(&schema));
        let spec = spec.add_partition_field("a b", "a b", Transform::Identity).unwrap().build().unwrap();
        let partition_type = spec.partition_type(&schema).unwrap();
        let values = Struct::from_iter([Some(Literal::int(1))]);
        assert_eq!(partition_path(&spec, &partition_type, &values), "a+b=1");
    }
}
