//! The columns of a table of state as JSON: readable, and independent of how Arrow prints its types.
//!
//! The names are part of the state format. Metadata of fields is not kept; it says nothing about the values.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// Types without parameters, and those with few.
const SIMPLE: [(&str, DataType); 35] = [
    ("Null", DataType::Null),
    ("Boolean", DataType::Boolean),
    ("Int8", DataType::Int8),
    ("Int16", DataType::Int16),
    ("Int32", DataType::Int32),
    ("Int64", DataType::Int64),
    ("UInt8", DataType::UInt8),
    ("UInt16", DataType::UInt16),
    ("UInt32", DataType::UInt32),
    ("UInt64", DataType::UInt64),
    ("Float32", DataType::Float32),
    ("Float64", DataType::Float64),
    ("Utf8", DataType::Utf8),
    ("LargeUtf8", DataType::LargeUtf8),
    ("Utf8View", DataType::Utf8View),
    ("Binary", DataType::Binary),
    ("LargeBinary", DataType::LargeBinary),
    ("BinaryView", DataType::BinaryView),
    ("Date32", DataType::Date32),
    ("Date64", DataType::Date64),
    ("Time32(s)", DataType::Time32(TimeUnit::Second)),
    ("Time32(ms)", DataType::Time32(TimeUnit::Millisecond)),
    ("Time64(us)", DataType::Time64(TimeUnit::Microsecond)),
    ("Time64(ns)", DataType::Time64(TimeUnit::Nanosecond)),
    ("Interval(YearMonth)", DataType::Interval(IntervalUnit::YearMonth)),
    ("Interval(DayTime)", DataType::Interval(IntervalUnit::DayTime)),
    ("Interval(MonthDayNano)", DataType::Interval(IntervalUnit::MonthDayNano)),
    ("Duration(s)", DataType::Duration(TimeUnit::Second)),
    ("Duration(ms)", DataType::Duration(TimeUnit::Millisecond)),
    ("Duration(us)", DataType::Duration(TimeUnit::Microsecond)),
    ("Duration(ns)", DataType::Duration(TimeUnit::Nanosecond)),
    ("Timestamp(s)", DataType::Timestamp(TimeUnit::Second, None)),
    ("Timestamp(ms)", DataType::Timestamp(TimeUnit::Millisecond, None)),
    ("Timestamp(us)", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("Timestamp(ns)", DataType::Timestamp(TimeUnit::Nanosecond, None)),
];

/// Writes columns.
///
/// # Errors
/// A column has a type that state cannot have.
pub(super) fn schema_to_json(schema: &Schema) -> Result<Value> {
    fields_to_json(schema.fields())
}

/// Reads columns.
///
/// # Errors
/// The text is not what `schema_to_json` writes.
pub(super) fn schema_from_json(value: &Value) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(fields_from_json(value)?)))
}

fn fields_to_json(fields: &Fields) -> Result<Value> {
    Ok(Value::Array(fields.iter().map(|field| field_to_json(field)).collect::<Result<_>>()?))
}

fn field_to_json(field: &Field) -> Result<Value> {
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(field.name()));
    object.insert("type".to_owned(), type_to_json(field.data_type())?);
    if !field.is_nullable() {
        object.insert("nullable".to_owned(), json!(false));
    }
    Ok(Value::Object(object))
}

fn type_to_json(data_type: &DataType) -> Result<Value> {
    if let Some((name, _)) = SIMPLE.iter().find(|(_, simple)| simple == data_type) {
        return Ok(json!(name));
    }
    Ok(match data_type {
        DataType::Decimal128(precision, scale) => json!({ "Decimal128": [precision, scale] }),
        DataType::Decimal256(precision, scale) => json!({ "Decimal256": [precision, scale] }),
        DataType::FixedSizeBinary(length) => json!({ "FixedSizeBinary": length }),
        DataType::Timestamp(unit, Some(zone)) => {
            let without = type_to_json(&DataType::Timestamp(*unit, None))?;
            json!({ "zone": zone.as_ref(), "of": without })
        }
        DataType::List(item) => json!({ "List": field_to_json(item)? }),
        DataType::LargeList(item) => json!({ "LargeList": field_to_json(item)? }),
        DataType::FixedSizeList(item, length) => {
            json!({ "FixedSizeList": field_to_json(item)?, "length": length })
        }
        DataType::Struct(fields) => json!({ "Struct": fields_to_json(fields)? }),
        DataType::Map(entries, is_sorted) => json!({ "Map": field_to_json(entries)?, "sorted": is_sorted }),
        other => return Err(Error::internal(format!("state cannot have columns of type {other}"))),
    })
}

fn fields_from_json(value: &Value) -> Result<Fields> {
    let fields = value.as_array().ok_or_else(|| no_columns(value))?;
    fields.iter().map(field_from_json).collect::<Result<_>>()
}

fn field_from_json(value: &Value) -> Result<FieldRef> {
    let name = value["name"].as_str().ok_or_else(|| no_columns(value))?;
    let is_nullable = match value.get("nullable") {
        None => true,
        Some(is_nullable) => is_nullable.as_bool().ok_or_else(|| no_columns(value))?,
    };
    Ok(Arc::new(Field::new(name, type_from_json(&value["type"])?, is_nullable)))
}

fn type_from_json(value: &Value) -> Result<DataType> {
    if let Some(text) = value.as_str() {
        let simple = SIMPLE.into_iter().find(|(name, _)| *name == text);
        return simple.map(|(_, data_type)| data_type).ok_or_else(|| no_columns(value));
    }
    let (name, argument) =
        value.as_object().and_then(|object| object.iter().next()).ok_or_else(|| no_columns(value))?;
    let decimal = || {
        let precision = argument[0].as_u64().and_then(|value| u8::try_from(value).ok());
        let scale = argument[1].as_i64().and_then(|value| i8::try_from(value).ok());
        precision.zip(scale).ok_or_else(|| no_columns(value))
    };
    let length = |value: &Value| value.as_i64().and_then(|value| i32::try_from(value).ok());
    Ok(match name.as_str() {
        "Decimal128" => decimal().map(|(precision, scale)| DataType::Decimal128(precision, scale))?,
        "Decimal256" => decimal().map(|(precision, scale)| DataType::Decimal256(precision, scale))?,
        "FixedSizeBinary" => DataType::FixedSizeBinary(length(argument).ok_or_else(|| no_columns(value))?),
        "zone" => match (type_from_json(&value["of"])?, argument.as_str()) {
            (DataType::Timestamp(unit, None), Some(zone)) => DataType::Timestamp(unit, Some(zone.into())),
            _ => return Err(no_columns(value)),
        },
        "List" => DataType::List(field_from_json(argument)?),
        "LargeList" => DataType::LargeList(field_from_json(argument)?),
        "FixedSizeList" => {
            let length = length(&value["length"]).ok_or_else(|| no_columns(value))?;
            DataType::FixedSizeList(field_from_json(argument)?, length)
        }
        "Struct" => DataType::Struct(fields_from_json(argument)?),
        "Map" => {
            let is_sorted = value["sorted"].as_bool().ok_or_else(|| no_columns(value))?;
            DataType::Map(field_from_json(argument)?, is_sorted)
        }
        _ => return Err(no_columns(value)),
    })
}

fn no_columns(value: &Value) -> Error {
    Error::new(crate::error::ErrorKind::State, format!("{value} does not describe columns"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{DataType as FlinkType, Field as FlinkField, TypeRoot};

    fn check(schema: &Schema) {
        let text = schema_to_json(schema).unwrap().to_string();
        let back = schema_from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(back.as_ref(), schema, "{text}");
    }

    #[test]
    fn every_simple_type_comes_back() {
        for (name, data_type) in SIMPLE {
            check(&Schema::new(vec![Field::new(name, data_type, name.len() % 2 == 0)]));
        }
    }

    #[test]
    fn nested_types_decimals_and_zones_come_back() {
        let row = TypeRoot::Row(vec![
            FlinkField::new("a", TypeRoot::Decimal(38, 18).nullable()),
            FlinkField::new("b\"\n", TypeRoot::Multiset(Box::new(TypeRoot::STRING.not_null())).nullable()),
            FlinkField::new("c", TypeRoot::TimestampLtz(9).nullable()),
        ])
        .nullable();
        let types: Vec<FlinkType> = vec![
            TypeRoot::Array(Box::new(row.clone())).nullable(),
            TypeRoot::Map(Box::new(TypeRoot::Int.not_null()), Box::new(row)).nullable(),
            TypeRoot::Decimal(3, 3).nullable(),
            TypeRoot::Null.nullable(),
        ];
        check(&Schema::new(types.iter().map(|data_type| data_type.to_field("x")).collect::<Fields>()));
        let item = Arc::new(Field::new("item", DataType::FixedSizeBinary(16), false));
        check(&Schema::new(vec![
            Field::new("fixed", DataType::FixedSizeList(Arc::clone(&item), 3), false),
            Field::new("large", DataType::LargeList(item), false),
            Field::new("berlin", DataType::Timestamp(TimeUnit::Second, Some("Europe/Berlin".into())), true),
        ]));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for text in [
            r#"{}"#,
            r#"[{"name": 1, "type": "Int8"}]"#,
            r#"[{"name": "a", "type": "Int7"}]"#,
            r#"[{"name": "a", "type": {"Decimal128": [300, 1]}}]"#,
            r#"[{"name": "a", "type": {"zone": "UTC", "of": "Int8"}}]"#,
            r#"[{"name": "a", "type": {}}]"#,
        ] {
            assert!(schema_from_json(&serde_json::from_str(text).unwrap()).is_err(), "{text}");
        }
    }
}
