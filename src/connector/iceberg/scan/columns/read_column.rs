//! Columns as a read wants them: field ids of the Iceberg schema beside the Arrow types of Flink's types, on every level.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, TimeUnit};
use datafusion::common::ScalarValue;
use iceberg::spec::{Literal, NestedField, PrimitiveType, Type};

use crate::connector::iceberg::literal_value::scalar;
use crate::connector::iceberg::type_mapping::to_flink;
use crate::error::{Error, Result};

/// A column, or a field of one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) struct ReadColumn {
    /// The field id.
    pub(in crate::connector::iceberg::scan) id: i32,
    /// Name and Arrow type of what is read.
    pub(in crate::connector::iceberg::scan) field: FieldRef,
    /// Whether NULL must not be.
    pub(in crate::connector::iceberg::scan) required: bool,
    /// The Iceberg type.
    pub(in crate::connector::iceberg::scan) iceberg: Type,
    /// What lies below.
    pub(in crate::connector::iceberg::scan) children: Children,
    /// What rows have that were written before there was such a column.
    pub(in crate::connector::iceberg::scan) default: Option<ScalarValue>,
}

/// The fields of a nested type.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum Children {
    None,
    Struct(Vec<ReadColumn>),
    List(Box<ReadColumn>),
    Map(Box<ReadColumn>, Box<ReadColumn>),
}

impl ReadColumn {
    /// Reads a field as the Flink type that its Iceberg type is.
    ///
    /// # Errors
    /// A default value does not fit its type.
    pub(in crate::connector::iceberg::scan) fn of_field(nested: &NestedField) -> Result<ReadColumn> {
        let flink = to_flink(&nested.field_type, nested.required);
        ReadColumn::with_type(nested, Arc::new(flink.to_field(&nested.name)))
    }

    /// Reads a field with all that its Iceberg type can tell apart, to compare it with other values of that type: Flink's TIME has no
    /// microseconds.
    ///
    /// # Errors
    /// A default value does not fit its type.
    pub(in crate::connector::iceberg::scan) fn of_key(nested: &NestedField) -> Result<ReadColumn> {
        match nested.field_type.as_ref() {
            Type::Primitive(PrimitiveType::Time) => {
                let exact = Field::new(&nested.name, ArrowType::Time64(TimeUnit::Microsecond), true);
                ReadColumn::with_type(nested, Arc::new(exact))
            }
            _ => ReadColumn::of_field(nested),
        }
    }

    /// Reads a field as a given Arrow type: what a table declares for it. Fields of structs are found by name.
    ///
    /// # Errors
    /// The types have nothing in common, or a default value does not fit.
    pub(in crate::connector::iceberg::scan) fn with_type(
        nested: &NestedField,
        field: FieldRef,
    ) -> Result<ReadColumn> {
        let children = children_of(nested, &field)?;
        let default = match &nested.initial_default {
            Some(Literal::Primitive(literal)) => {
                Some(scalar(literal, &nested.field_type, field.data_type())?)
            }
            _ => None,
        };
        let iceberg = nested.field_type.as_ref().clone();
        Ok(ReadColumn { id: nested.id, field, required: nested.required, iceberg, children, default })
    }
}

fn children_of(nested: &NestedField, field: &FieldRef) -> Result<Children> {
    Ok(match (nested.field_type.as_ref(), field.data_type()) {
        (Type::Struct(fields), ArrowType::Struct(targets)) => {
            let column = |target: &FieldRef| match fields.field_by_name(target.name()) {
                Some(found) => ReadColumn::with_type(found, Arc::clone(target)),
                None => Err(Error::validation(format!(
                    "column '{}' has no field '{}' in the Iceberg table",
                    nested.name,
                    target.name()
                ))
                .hint(format!(
                    "There the column is {}.",
                    to_flink(&nested.field_type, nested.required).summary()
                ))),
            };
            Children::Struct(targets.iter().map(column).collect::<Result<_>>()?)
        }
        (Type::List(list), ArrowType::List(element)) => {
            Children::List(Box::new(ReadColumn::with_type(&list.element_field, Arc::clone(element))?))
        }
        (Type::Map(map), ArrowType::Map(entries, _)) => match entries.data_type() {
            ArrowType::Struct(fields) if fields.len() == 2 => Children::Map(
                Box::new(ReadColumn::with_type(&map.key_field, Arc::clone(&fields[0]))?),
                Box::new(ReadColumn::with_type(&map.value_field, Arc::clone(&fields[1]))?),
            ),
            _ => return Err(mismatch(nested, field)),
        },
        (Type::Primitive(_), target) if !target.is_nested() => Children::None,
        _ => return Err(mismatch(nested, field)),
    })
}

fn mismatch(nested: &NestedField, field: &FieldRef) -> Error {
    let stored = to_flink(&nested.field_type, nested.required).summary();
    Error::validation(format!(
        "column '{}' is declared with a type that {stored}, which it is in the Iceberg table, cannot be read as",
        field.name()
    ))
    .hint(format!("Declare it as {stored}."))
}
