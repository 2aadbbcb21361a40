//! Flink's types and Iceberg's. The map is Flink's own: types without a counterpart come back wider (TINYINT as INT, CHAR as
//! STRING, TIME(3) as TIME(0), TIMESTAMP(3) as TIMESTAMP(6)).

use std::sync::Arc;

use arrow::datatypes::DataType as ArrowType;
use iceberg::spec::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};

use super::error::from_iceberg;
use crate::error::{Error, Result};
use crate::schema::{DataType, Field, TypeRoot};

/// Returns what SQL calls an Arrow type, be it one of rows or of files.
pub(super) fn arrow_type_name(data_type: &ArrowType) -> String {
    match data_type {
        ArrowType::FixedSizeBinary(length) => format!("BINARY({length})"),
        ArrowType::LargeBinary => "BYTES".to_owned(),
        ArrowType::LargeUtf8 => "STRING".to_owned(),
        ArrowType::Time64(_) => "TIME".to_owned(),
        _ => DataType::from_arrow(data_type).map_or_else(|| data_type.to_string(), |of| of.summary()),
    }
}

/// Returns the Iceberg type of a Flink type. `next_id` numbers the fields in it, those of one level before those below them.
///
/// # Errors
/// Iceberg has no such type.
pub(super) fn to_iceberg(data_type: &DataType, next_id: &mut dyn FnMut() -> i32) -> Result<Type> {
    let primitive = match &data_type.root {
        TypeRoot::Boolean => PrimitiveType::Boolean,
        TypeRoot::TinyInt | TypeRoot::SmallInt | TypeRoot::Int => PrimitiveType::Int,
        TypeRoot::BigInt => PrimitiveType::Long,
        TypeRoot::Float => PrimitiveType::Float,
        TypeRoot::Double => PrimitiveType::Double,
        TypeRoot::Decimal(precision, scale) => {
            return Type::decimal(u32::from(*precision), u32::from(*scale)).map_err(from_iceberg);
        }
        TypeRoot::Char(_) | TypeRoot::Varchar(_) => PrimitiveType::String,
        TypeRoot::Binary(length) => PrimitiveType::Fixed(u64::from(*length)),
        TypeRoot::Varbinary(_) => PrimitiveType::Binary,
        TypeRoot::Date => PrimitiveType::Date,
        TypeRoot::Time(_) => PrimitiveType::Time,
        TypeRoot::Timestamp(0..=6) => PrimitiveType::Timestamp,
        TypeRoot::Timestamp(_) => PrimitiveType::TimestampNs,
        TypeRoot::TimestampLtz(0..=6) => PrimitiveType::Timestamptz,
        TypeRoot::TimestampLtz(_) => PrimitiveType::TimestamptzNs,
        TypeRoot::Array(element) => {
            let id = next_id();
            let element_type = to_iceberg(element, next_id)?;
            let element = NestedField::list_element(id, element_type, !element.nullable);
            return Ok(Type::List(ListType { element_field: Arc::new(element) }));
        }
        TypeRoot::Map(key, value) => return map_to_iceberg(key, value, next_id),
        TypeRoot::Multiset(element) => {
            return map_to_iceberg(element, &TypeRoot::Int.not_null(), next_id);
        }
        TypeRoot::Row(fields) if fields.is_empty() => {
            return Err(Error::unsupported("no file can hold a ROW without fields")
                .hint("Give the ROW a field, or leave the column out."));
        }
        TypeRoot::Row(fields) => {
            let ids: Vec<i32> = fields.iter().map(|_| next_id()).collect();
            let field = |(field, id): (&Field, i32)| {
                let data_type = to_iceberg(&field.data_type, next_id)?;
                let required = !field.data_type.nullable;
                let nested = NestedField::new(id, &field.name, data_type, required);
                Ok(Arc::new(match &field.comment {
                    Some(comment) => nested.with_doc(comment),
                    None => nested,
                }))
            };
            let fields = fields.iter().zip(ids).map(field).collect::<Result<_>>()?;
            return Ok(Type::Struct(StructType::new(fields)));
        }
        TypeRoot::IntervalYearMonth(_) | TypeRoot::IntervalDayTime(_) | TypeRoot::Null => {
            return Err(Error::unsupported(format!("Iceberg has no type for {}", data_type.summary()))
                .hint("Cast the column to a type that Iceberg has, for example BIGINT or STRING."));
        }
    };
    Ok(Type::Primitive(primitive))
}

fn map_to_iceberg(key: &DataType, value: &DataType, next_id: &mut dyn FnMut() -> i32) -> Result<Type> {
    let (key_id, value_id) = (next_id(), next_id());
    let key = NestedField::map_key_element(key_id, to_iceberg(key, next_id)?);
    let value = NestedField::map_value_element(value_id, to_iceberg(value, next_id)?, !value.nullable);
    Ok(Type::Map(MapType { key_field: Arc::new(key), value_field: Arc::new(value) }))
}

/// Returns the Flink type of an Iceberg type.
pub(super) fn to_flink(iceberg: &Type, required: bool) -> DataType {
    let root = match iceberg {
        Type::Primitive(primitive) => match primitive {
            PrimitiveType::Boolean => TypeRoot::Boolean,
            PrimitiveType::Int => TypeRoot::Int,
            PrimitiveType::Long => TypeRoot::BigInt,
            PrimitiveType::Float => TypeRoot::Float,
            PrimitiveType::Double => TypeRoot::Double,
            PrimitiveType::Decimal { precision, scale } => TypeRoot::Decimal(*precision as u8, *scale as u8),
            PrimitiveType::Date => TypeRoot::Date,
            PrimitiveType::Time => TypeRoot::Time(0),
            PrimitiveType::Timestamp => TypeRoot::Timestamp(6),
            PrimitiveType::Timestamptz => TypeRoot::TimestampLtz(6),
            PrimitiveType::TimestampNs => TypeRoot::Timestamp(9),
            PrimitiveType::TimestamptzNs => TypeRoot::TimestampLtz(9),
            PrimitiveType::String => TypeRoot::STRING,
            PrimitiveType::Uuid => TypeRoot::Binary(16),
            PrimitiveType::Fixed(length) => TypeRoot::Binary(*length as u32),
            PrimitiveType::Binary => TypeRoot::BYTES,
        },
        Type::Struct(fields) => TypeRoot::Row(
            fields
                .fields()
                .iter()
                .map(|field| {
                    let data_type = to_flink(&field.field_type, field.required);
                    Field { name: field.name.clone(), data_type, comment: field.doc.clone() }
                })
                .collect(),
        ),
        Type::List(list) => {
            let element = &list.element_field;
            TypeRoot::Array(Box::new(to_flink(&element.field_type, element.required)))
        }
        Type::Map(map) => {
            let value = &map.value_field;
            TypeRoot::Map(
                Box::new(to_flink(&map.key_field.field_type, true)),
                Box::new(to_flink(&value.field_type, value.required)),
            )
        }
    };
    if required { root.not_null() } else { root.nullable() }
}
