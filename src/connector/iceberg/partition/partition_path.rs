//! The folder of a partition, `day=2026-01-31/city=a+b`, as Java's writers name it. Nobody reads values from it: they stand in the
//! manifests.

use std::fmt::Write as _;

use iceberg::spec::{Literal, PartitionSpec, Struct, StructType, Type};

use super::partition_text;

/// Returns the folder of a partition, relative to that of the table's data; empty without partition fields.
pub(in crate::connector::iceberg) fn partition_path(
    spec: &PartitionSpec,
    partition_type: &StructType,
    values: &Struct,
) -> String {
    let mut path = String::new();
    for ((field, typed), value) in spec.fields().iter().zip(partition_type.fields()).zip(values.iter()) {
        if !path.is_empty() {
            path.push('/');
        }
        push_encoded(&field.name, &mut path);
        path.push('=');
        let value = value.and_then(Literal::as_primitive_literal);
        let text = match typed.field_type.as_ref() {
            Type::Primitive(data_type) => partition_text(field.transform, data_type, value.as_ref()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform};
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
        assert_eq!(identity(T::Timestamptz, Literal::timestamptz(0)), "f=1970-01-01T00%3A00%3A00%2B00%3A00");
        // As Spark has written it: `tests/iceberg/fixtures/spark/identity`.
        let z = "f=2026-01-31T10%3A20%3A30.123456%2B00%3A00";
        assert_eq!(identity(T::Timestamptz, Literal::timestamptz(1_769_854_830_123_456)), z);
        assert_eq!(identity(T::Double, Literal::double(-0.0)), "f=-0.0");
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
