//! Schemas of tables: Flink's columns and key as Iceberg's fields, and the other way round.

use std::sync::Arc;

use iceberg::spec::{
    FormatVersion, ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type,
};

use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::type_mapping::{to_flink, to_iceberg};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{Column, ColumnKind, PrimaryKey, TableSchema};

/// Makes the schema of a new table. The catalog numbers its fields anew.
///
/// # Errors
/// A type or a key that Iceberg does not have.
pub(super) fn new_schema(schema: &TableSchema) -> Result<Schema> {
    let mut last_id = schema.columns.len() as i32;
    let mut next_id = || {
        last_id += 1;
        last_id
    };
    let fields = schema.columns.iter().zip(1..).map(|(column, id)| field_of(column, id, &mut next_id));
    let fields = fields.collect::<Result<Vec<NestedFieldRef>>>()?;
    let key = match &schema.primary_key {
        Some(key) => key_ids(key, &fields)?,
        None => Vec::new(),
    };
    Schema::builder().with_fields(fields).with_identifier_field_ids(key).build().map_err(from_iceberg)
}

/// Makes a field of a column. `next_id` numbers what is in it.
///
/// # Errors
/// Iceberg has no such type.
pub(super) fn field_of(column: &Column, id: i32, next_id: &mut dyn FnMut() -> i32) -> Result<NestedFieldRef> {
    let field_type = to_iceberg(&column.data_type, next_id);
    let field_type = field_type.map_err(|error| {
        let hint = error.hint_text().unwrap_or("Give it a type that Iceberg has.").to_owned();
        let name = &column.name;
        Error::validation(format!("column '{name}' cannot be stored: {}", error.message()))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
            .hint(hint)
    })?;
    let field = NestedField::new(id, &column.name, field_type, !column.data_type.nullable);
    Ok(Arc::new(match column.comment.as_ref().filter(|comment| !comment.is_empty()) {
        Some(comment) => field.with_doc(comment),
        None => field,
    }))
}

/// Returns the fields of a key.
///
/// # Errors
/// A column that a key of Iceberg's cannot have.
pub(super) fn key_ids(key: &PrimaryKey, fields: &[NestedFieldRef]) -> Result<Vec<i32>> {
    let id_of = |name: &String| {
        let refuse = |reason: &str| {
            Err(Error::validation(format!("Cannot add field {name} as an identifier field: {reason}"))
                .class(FlinkClass::ILLEGAL_ARGUMENT))
        };
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            return refuse("not found in current schema or added columns");
        };
        match field.field_type.as_ref() {
            Type::Primitive(PrimitiveType::Float | PrimitiveType::Double) => {
                refuse("must not be float or double field").map_err(|error: Error| {
                    error.hint("Floating-point numbers that print alike may differ: use DECIMAL or BIGINT for keys.")
                })
            }
            Type::Primitive(_) if !field.required => refuse("not a required field").map_err(|error: Error| {
                error.hint("Rows that are there may hold NULLs in it: only a column that was created NOT NULL can be a key.")
            }),
            Type::Primitive(_) => Ok(field.id),
            Type::Struct(_) | Type::List(_) | Type::Map(_) => refuse("not a primitive type field"),
        }
    };
    key.columns.iter().map(id_of).collect()
}

/// Checks that a version of the format has the types of a schema.
///
/// # Errors
/// Names each field whose type came later.
pub(super) fn check_types(schema: &Schema, version: FormatVersion) -> Result<()> {
    let is_new =
        |kind: &PrimitiveType| matches!(kind, PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs);
    let mut fields: Vec<&NestedFieldRef> = schema.field_id_to_fields().values().collect();
    fields.sort_by_key(|field| field.id);
    let wrong = fields.into_iter().filter_map(|field| match field.field_type.as_ref() {
        Type::Primitive(kind) if is_new(kind) && version < FormatVersion::V3 => {
            let name = schema.name_by_field_id(field.id).unwrap_or(&field.name);
            Some(format!("\n- Invalid type for {name}: {kind} is not supported until v3"))
        }
        _ => None,
    });
    let wrong: String = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::validation(format!("Invalid schema for v{}:{wrong}", version as u8))
        .class(FlinkClass::ILLEGAL_STATE)
        .hint("Use TIMESTAMP(6), or write 'format-version' = '3' behind WITH."))
}

/// Returns a schema as Flink's.
pub(super) fn flink_schema(schema: &Schema) -> TableSchema {
    let column = |field: &NestedFieldRef| Column {
        name: field.name.clone(),
        data_type: to_flink(&field.field_type, field.required),
        kind: ColumnKind::Physical,
        comment: field.doc.clone().filter(|doc| !doc.is_empty()),
    };
    let fields = schema.as_struct().fields();
    let identifiers: Vec<i32> = schema.identifier_field_ids().collect();
    let key: Vec<String> = fields
        .iter()
        .filter(|field| identifiers.contains(&field.id))
        .map(|field| field.name.clone())
        .collect();
    // Flink's keys are columns: one that lies in a row is none here.
    let is_key = !key.is_empty() && key.len() == identifiers.len();
    TableSchema {
        columns: fields.iter().map(column).collect(),
        primary_key: is_key.then(|| PrimaryKey { name: format!("PK_{}", key.join("_")), columns: key }),
        watermark: None,
    }
}

/// Returns whether two types store the same values: ids, names of entries and comments do not count, names of fields do.
pub(super) fn is_same_type(left: &Type, right: &Type) -> bool {
    let same_field = |left: &NestedFieldRef, right: &NestedFieldRef| {
        left.required == right.required && is_same_type(&left.field_type, &right.field_type)
    };
    match (left, right) {
        (Type::Primitive(left), Type::Primitive(right)) => left == right,
        (Type::List(ListType { element_field: left }), Type::List(ListType { element_field: right })) => {
            same_field(left, right)
        }
        (Type::Map(left), Type::Map(right)) => {
            let MapType { key_field: left_key, value_field: left_value } = left;
            let MapType { key_field: right_key, value_field: right_value } = right;
            same_field(left_key, right_key) && same_field(left_value, right_value)
        }
        (Type::Struct(left), Type::Struct(right)) => same_fields(left, right, &same_field),
        _ => false,
    }
}

fn same_fields(
    left: &StructType,
    right: &StructType,
    same_field: &dyn Fn(&NestedFieldRef, &NestedFieldRef) -> bool,
) -> bool {
    let (left, right) = (left.fields(), right.fields());
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| left.name == right.name && same_field(left, right))
}
