//! What two files have in common that lie in one partition.
//!
//! A manifest types the values of partitions by the schema in its own header. So where a source column took a wider type, INT says
//! an older manifest and BIGINT a newer one of the same value: whoever compares partitions compares keys, in which values are wide.

use iceberg::spec::{Literal, PrimitiveLiteral, Struct};

/// The partition of a file, in a form that does not depend on the manifest that lists it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::connector::iceberg) struct PartitionKey {
    spec_id: i32,
    values: Struct,
}

impl PartitionKey {
    /// Makes the key of a partition of a spec.
    pub(in crate::connector::iceberg) fn of(spec_id: i32, values: &Struct) -> PartitionKey {
        PartitionKey { spec_id, values: values.iter().map(|value| value.map(widened)).collect() }
    }

    /// Returns the values, all of them wide.
    pub(in crate::connector::iceberg) fn values(&self) -> &Struct {
        &self.values
    }

    /// Returns the partition spec.
    pub(in crate::connector::iceberg) fn spec_id(&self) -> i32 {
        self.spec_id
    }
}

/// Returns a value in the widest type that its column may take.
pub(in crate::connector::iceberg) fn widened(value: &Literal) -> Literal {
    match value {
        Literal::Primitive(PrimitiveLiteral::Int(value)) => Literal::long(*value),
        Literal::Primitive(PrimitiveLiteral::Float(value)) => Literal::double(value.0),
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_the_same_before_and_after_its_column_was_widened() {
        let key = |values: [Option<Literal>; 2]| PartitionKey::of(1, &Struct::from_iter(values));
        assert_eq!(
            key([Some(Literal::int(5)), Some(Literal::float(0.1))]),
            key([Some(Literal::long(5)), Some(Literal::double(0.1_f32))])
        );
        assert_ne!(key([Some(Literal::int(5)), None]), key([None, None]));
        assert_ne!(PartitionKey::of(1, &Struct::empty()), PartitionKey::of(2, &Struct::empty()));
    }
}
