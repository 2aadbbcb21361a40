//! Which column of a Parquet file has which field id.
//!
//! Files that Iceberg's writers make carry ids. Those that were taken into a table as they were do not: their columns are known by
//! the table's name mapping, or, where there is none, by their place (the first has id 1), as Iceberg's own readers do it.

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields};
use arrow::error::ArrowError;
use datafusion::common::ScalarValue;
use iceberg::spec::{DEFAULT_SCHEMA_NAME_MAPPING, MappedField, NameMapping};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::conversion::{Conversion, Step, StructField};
use super::read_column::{Children, ReadColumn};
use crate::connector::iceberg::table::IcebergTable;
use crate::connector::iceberg::type_mapping::arrow_type_name;
use crate::error::{Error, Result};

/// A field of a file.
#[derive(Debug, Clone)]
struct FileField {
    id: Option<i32>,
    field: FieldRef,
    children: Vec<FileField>,
}

/// The columns of a file.
#[derive(Debug, Clone)]
pub(in crate::connector::iceberg::scan) struct FileColumns {
    fields: Vec<FileField>,
}

/// Where the values of a wanted column come from.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::connector::iceberg::scan) enum ColumnSource {
    /// From a column of the file, by its position.
    File(usize, Conversion),
    /// The file does not have it.
    Missing,
}

/// Returns the name mapping of a table.
///
/// # Errors
/// The property cannot be parsed.
pub(in crate::connector::iceberg::scan) fn name_mapping(
    table: &IcebergTable,
) -> Result<Option<Arc<NameMapping>>> {
    let Some(text) = table.metadata().properties().get(DEFAULT_SCHEMA_NAME_MAPPING) else { return Ok(None) };
    let mapping = serde_json::from_str(text).map_err(|error| {
        let ident = table.ident();
        Error::data(format!("property '{DEFAULT_SCHEMA_NAME_MAPPING}' of table '{ident}' holds no name mapping"))
            .hint(format!("ALTER TABLE … RESET ('{DEFAULT_SCHEMA_NAME_MAPPING}') takes it away: only files without field ids need one."))
            .caused_by(error)
    })?;
    Ok(Some(Arc::new(mapping)))
}

impl FileColumns {
    /// Finds the ids of a file's columns.
    pub(in crate::connector::iceberg::scan) fn new(
        columns: &Fields,
        mapping: Option<&NameMapping>,
    ) -> FileColumns {
        let fields = if columns.iter().any(has_id) {
            columns.iter().map(with_own_ids).collect()
        } else if let Some(mapping) = mapping {
            columns.iter().map(|field| mapped(field, named(mapping.fields().iter(), field.name()))).collect()
        } else {
            let numbered = |(place, field): (usize, &FieldRef)| FileField {
                id: i32::try_from(place + 1).ok(),
                ..with_own_ids(field)
            };
            columns.iter().enumerate().map(numbered).collect()
        };
        FileColumns { fields }
    }

    /// Says where a wanted column comes from.
    ///
    /// # Errors
    /// The file's type cannot be read as the wanted one.
    pub(in crate::connector::iceberg::scan) fn source_of(
        &self,
        column: &ReadColumn,
    ) -> Result<ColumnSource, ArrowError> {
        match self.fields.iter().position(|field| field.id == Some(column.id)) {
            Some(index) => Ok(ColumnSource::File(index, convert(&self.fields[index], column)?)),
            None => Ok(ColumnSource::Missing),
        }
    }
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

fn has_id(field: &FieldRef) -> bool {
    id_of(field).is_some() || child_fields(field.data_type()).iter().any(has_id)
}

/// Returns the fields below a type; a map has two.
fn child_fields(data_type: &ArrowType) -> Vec<FieldRef> {
    match data_type {
        ArrowType::Struct(fields) => fields.iter().map(Arc::clone).collect(),
        ArrowType::List(element) | ArrowType::LargeList(element) => vec![Arc::clone(element)],
        ArrowType::Map(entries, _) => child_fields(entries.data_type()),
        _ => Vec::new(),
    }
}

fn with_own_ids(field: &FieldRef) -> FileField {
    let children = child_fields(field.data_type()).iter().map(with_own_ids).collect();
    FileField { id: id_of(field), field: Arc::clone(field), children }
}

/// Finds a name in one level of a name mapping.
fn named<'a>(mut entries: impl Iterator<Item = &'a MappedField>, name: &str) -> Option<&'a MappedField> {
    entries.find(|entry| entry.names().iter().any(|other| other == name))
}

/// Takes ids from the name mapping. Elements, keys and values have fixed names there, whatever they are called in the file.
fn mapped(field: &FieldRef, found: Option<&MappedField>) -> FileField {
    let child = |(place, child): (usize, &FieldRef)| {
        let name = match field.data_type() {
            ArrowType::Map(..) => ["key", "value"][place.min(1)],
            ArrowType::List(_) | ArrowType::LargeList(_) => "element",
            _ => child.name(),
        };
        let below = found.map_or(&[][..], MappedField::fields);
        mapped(child, named(below.iter().map(Arc::as_ref), name))
    };
    let children = child_fields(field.data_type()).iter().enumerate().map(child).collect();
    FileField { id: found.and_then(MappedField::field_id), field: Arc::clone(field), children }
}

/// Describes how a field of the file becomes the wanted column.
fn convert(file: &FileField, column: &ReadColumn) -> Result<Conversion, ArrowError> {
    let target = Arc::clone(&column.field);
    let step = match (&column.children, file.field.data_type()) {
        (Children::Struct(wanted), ArrowType::Struct(_)) => {
            Step::Struct(wanted.iter().map(|column| struct_field(file, column)).collect::<Result<_, _>>()?)
        }
        (Children::List(element), ArrowType::List(_) | ArrowType::LargeList(_))
            if file.children.len() == 1 =>
        {
            Step::List(Box::new(convert(&file.children[0], element)?))
        }
        (Children::Map(key, value), ArrowType::Map(..)) if file.children.len() == 2 => Step::Map(
            Box::new(convert(&file.children[0], key)?),
            Box::new(convert(&file.children[1], value)?),
        ),
        (Children::None, data_type) if !data_type.is_nested() => {
            return Conversion::of_value(data_type, target);
        }
        (_, data_type) => {
            return Err(ArrowError::CastError(format!(
                "column '{}' of type {} cannot be read as {}",
                target.name(),
                arrow_type_name(data_type),
                arrow_type_name(target.data_type())
            )));
        }
    };
    Ok(Conversion { target, step })
}

/// Says where a field of a struct comes from. Without an id below a column that has one only by its place, names count.
fn struct_field(file: &FileField, column: &ReadColumn) -> Result<StructField, ArrowError> {
    let by_id = file.children.iter().position(|child| child.id == Some(column.id));
    let nameless = file.children.iter().all(|child| child.id.is_none());
    let by_name = || {
        let same = |child: &FileField| child.field.name() == column.field.name();
        if nameless { file.children.iter().position(same) } else { None }
    };
    match by_id.or_else(by_name) {
        Some(index) => Ok(StructField::Child(index, convert(&file.children[index], column)?)),
        None => Ok(StructField::Constant(missing_value(column)?)),
    }
}

/// Returns what rows of a file have in a column that the file does not know.
///
/// # Errors
/// The column must not be NULL and has no default.
pub(in crate::connector::iceberg::scan) fn missing_value(
    column: &ReadColumn,
) -> Result<ScalarValue, ArrowError> {
    match &column.default {
        Some(default) => Ok(default.clone()),
        None if !column.required => Ok(ScalarValue::try_new_null(column.field.data_type())?),
        None => Err(ArrowError::InvalidArgumentError(format!(
            "it has no column '{}', which must not be NULL and has no default",
            column.field.name()
        ))),
    }
}
