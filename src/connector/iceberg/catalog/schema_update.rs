//! What ALTER TABLE does to a schema: fields keep their ids whatever they are called and wherever they stand, so that files written
//! before are read right.

use std::collections::BTreeSet;
use std::sync::Arc;

use iceberg::spec::{NestedField, NestedFieldRef, PrimitiveType, Schema, TableMetadata, Type};

use super::table_schema::{check_types, field_of, is_same_type, key_ids};
use crate::catalog::{ColumnPosition, TableChange};
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::type_mapping::to_iceberg;
use crate::error::{Error, FlinkClass, Result};
use crate::schema::{Column, PrimaryKey};

/// A schema that is being changed.
pub(super) struct SchemaUpdate<'a> {
    metadata: &'a TableMetadata,
    fields: Vec<NestedFieldRef>,
    key: BTreeSet<i32>,
    last_id: i32,
}

/// Builds a refusal with the class that Iceberg's have.
fn refused(message: String) -> Error {
    Error::validation(message).class(FlinkClass::ILLEGAL_ARGUMENT)
}

impl<'a> SchemaUpdate<'a> {
    /// Begins with a table's present schema.
    pub(super) fn new(metadata: &'a TableMetadata) -> SchemaUpdate<'a> {
        let schema = metadata.current_schema();
        SchemaUpdate {
            metadata,
            fields: schema.as_struct().fields().to_vec(),
            key: schema.identifier_field_ids().collect(),
            last_id: metadata.last_column_id(),
        }
    }

    /// Makes one step.
    ///
    /// # Errors
    /// What is stored already would not fit.
    pub(super) fn apply(&mut self, change: &TableChange) -> Result<()> {
        match change {
            TableChange::AddColumn { column, position } => self.add(column, position.as_ref()),
            TableChange::ModifyColumn { column, position } => self.modify(column, position.as_ref()),
            TableChange::RenameColumn { from, to } => self.rename(from, to),
            TableChange::DropColumn(name) => self.drop(name),
            TableChange::AddPrimaryKey(key) | TableChange::ModifyPrimaryKey(key) => self.set_key(key),
            TableChange::SetOption { .. } | TableChange::ResetOption(_) => Ok(()),
            TableChange::DropPrimaryKey | TableChange::Watermark(_) | TableChange::Distribution(_) => {
                let name = change.flink_name();
                Err(Error::unsupported(format!("Unsupported table change: {name}.")))
            }
        }
    }

    /// Returns the changed schema; None if nothing has changed.
    ///
    /// # Errors
    /// The table's version does not have a type in it.
    pub(super) fn finish(self) -> Result<Option<Schema>> {
        let present = self.metadata.current_schema();
        let same_key = present.identifier_field_ids().collect::<BTreeSet<i32>>() == self.key;
        if same_key && present.as_struct().fields() == self.fields {
            return Ok(None);
        }
        let schema = Schema::builder().with_fields(self.fields).with_identifier_field_ids(self.key);
        let schema = schema.build().map_err(from_iceberg)?;
        check_types(&schema, self.metadata.format_version())?;
        Ok(Some(schema))
    }

    fn add(&mut self, column: &Column, position: Option<&ColumnPosition>) -> Result<()> {
        let name = &column.name;
        if self.fields.iter().any(|field| field.name == *name) {
            return Err(refused(format!("Cannot add column, name already exists: {name}")));
        }
        if !column.data_type.nullable {
            return Err(refused(format!(
                "Incompatible change: cannot add required column without a default value: {name}"
            ))
            .hint("Rows that are there have no value for it: leave NOT NULL out."));
        }
        let mut next_id = || {
            self.last_id += 1;
            self.last_id
        };
        let id = next_id();
        let field = field_of(column, id, &mut next_id)?;
        let at = self.index(position)?.unwrap_or(self.fields.len());
        self.fields.insert(at, field);
        Ok(())
    }

    fn modify(&mut self, column: &Column, position: Option<&ColumnPosition>) -> Result<()> {
        let at = self.position(&column.name, "update")?;
        let before = Arc::clone(&self.fields[at]);
        let required = !column.data_type.nullable;
        if required && !before.required {
            return Err(refused(format!(
                "Cannot change column nullability: {}: optional -> required",
                column.name
            ))
            .hint("Rows that are there may hold NULLs in it."));
        }
        let field_type = self.modified_type(&before, column)?;
        let mut field = NestedField { required, ..before.as_ref().clone() };
        field.field_type = Box::new(field_type);
        field.doc = column.comment.clone().filter(|comment| !comment.is_empty());
        self.fields.remove(at);
        let at = self.index(position)?.unwrap_or(at);
        self.fields.insert(at, Arc::new(field));
        Ok(())
    }

    /// Returns the type that a column gets; within a structure nothing can change.
    fn modified_type(&self, before: &NestedField, column: &Column) -> Result<Type> {
        let before_type = before.field_type.as_ref();
        let wanted = to_iceberg(&column.data_type, &mut || 0)?;
        if is_same_type(before_type, &wanted) {
            return Ok(before_type.clone());
        }
        if is_promotion(before_type, &wanted) {
            return Ok(wanted);
        }
        Err(refused(format!(
            "Cannot change column type: {}: {} -> {}",
            column.name,
            type_text(before_type),
            type_text(&wanted)
        ))
        .hint("A type can become wider: INT to BIGINT, FLOAT to DOUBLE, DECIMAL to more digits before the point."))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let at = self.position(from, "rename")?;
        if self.fields.iter().any(|field| field.name == to) {
            return Err(refused(format!("Cannot rename column, name already exists: {to}")));
        }
        let field = NestedField { name: to.to_owned(), ..self.fields[at].as_ref().clone() };
        self.fields[at] = Arc::new(field);
        Ok(())
    }

    fn drop(&mut self, name: &str) -> Result<()> {
        let at = self.position(name, "delete")?;
        let id = self.fields[at].id;
        let in_use = if self.key.contains(&id) {
            Some("is used as the primary key")
        } else if self.metadata.default_partition_spec().fields().iter().any(|field| field.source_id == id) {
            Some("is used as the partition keys")
        } else if self.metadata.default_sort_order().fields.iter().any(|field| field.source_id == id) {
            Some("is used by the table's sort order")
        } else {
            None
        };
        if let Some(reason) = in_use {
            return Err(Error::validation(format!(
                "Failed to execute ALTER TABLE statement.\nThe column `{name}` {reason}."
            )));
        }
        self.fields.remove(at);
        Ok(())
    }

    fn set_key(&mut self, key: &PrimaryKey) -> Result<()> {
        self.key = key_ids(key, &self.fields)?.into_iter().collect();
        Ok(())
    }

    /// Returns where a column stands.
    fn position(&self, name: &str, verb: &str) -> Result<usize> {
        let at = self.fields.iter().position(|field| field.name == name);
        at.ok_or_else(|| refused(format!("Cannot {verb} missing column: {name}")))
    }

    /// Returns where a column is to stand; None if nothing says so.
    fn index(&self, position: Option<&ColumnPosition>) -> Result<Option<usize>> {
        match position {
            None => Ok(None),
            Some(ColumnPosition::First) => Ok(Some(0)),
            Some(ColumnPosition::After(name)) => Ok(Some(self.position(name, "move behind a")? + 1)),
        }
    }
}

/// Writes a type as Iceberg does.
fn type_text(data_type: &Type) -> String {
    match data_type {
        Type::Primitive(primitive) => primitive.to_string(),
        Type::List(list) => format!("list<{}>", type_text(&list.element_field.field_type)),
        Type::Map(map) => {
            format!(
                "map<{}, {}>",
                type_text(&map.key_field.field_type),
                type_text(&map.value_field.field_type)
            )
        }
        Type::Struct(fields) => {
            let fields = fields.fields().iter();
            let texts = fields.map(|field| format!("{}: {}", field.name, type_text(&field.field_type)));
            format!("struct<{}>", texts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns whether every value of a type is one of the other, and readers take it for that.
fn is_promotion(from: &Type, to: &Type) -> bool {
    use PrimitiveType::{Decimal, Double, Float, Int, Long};
    match (from, to) {
        (Type::Primitive(Int), Type::Primitive(Long)) | (Type::Primitive(Float), Type::Primitive(Double)) => {
            true
        }
        (
            Type::Primitive(Decimal { precision: from, scale: from_scale }),
            Type::Primitive(Decimal { precision: to, scale: to_scale }),
        ) => from_scale == to_scale && from <= to,
        _ => false,
    }
}
