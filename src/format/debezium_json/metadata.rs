//! What an envelope says about its rows: where they come from and when. It is read only where a column asks for it.

use arrow::array::ArrayRef;

use crate::error::Result;
use crate::format::column::{ColumnBuilder, Values};
use crate::format::json::{Cursor, Fault, JsonSettings, ValueReader};
use crate::schema::{DataType, TypeRoot};

/// A property of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Property {
    Schema,
    IngestionTimestamp,
    SourceTimestamp,
    SourceDatabase,
    SourceSchema,
    SourceTable,
    SourceProperties,
}

/// Where the parts of an envelope are that properties are read from: the offsets of the values, None where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MetadataPlaces {
    pub(super) schema: Option<usize>,
    pub(super) source: Option<usize>,
    pub(super) ts_ms: Option<usize>,
}

/// Appends the properties of events to columns.
pub(super) struct MetadataReader {
    columns: Vec<(Property, ColumnBuilder)>,
    values: ValueReader,
}

impl Property {
    /// Every property, in the order of the reference.
    pub(super) const ALL: [Property; 7] = [
        Property::Schema,
        Property::IngestionTimestamp,
        Property::SourceTimestamp,
        Property::SourceDatabase,
        Property::SourceSchema,
        Property::SourceTable,
        Property::SourceProperties,
    ];

    pub(super) fn key(self) -> &'static str {
        match self {
            Property::Schema => "schema",
            Property::IngestionTimestamp => "ingestion-timestamp",
            Property::SourceTimestamp => "source.timestamp",
            Property::SourceDatabase => "source.database",
            Property::SourceSchema => "source.schema",
            Property::SourceTable => "source.table",
            Property::SourceProperties => "source.properties",
        }
    }

    pub(super) fn data_type(self) -> DataType {
        let root = match self {
            Property::IngestionTimestamp | Property::SourceTimestamp => TypeRoot::TimestampLtz(3),
            Property::SourceProperties => {
                TypeRoot::Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::STRING.nullable()))
            }
            _ => TypeRoot::STRING,
        };
        root.nullable()
    }

    /// Returns whether it is another one in each event of a row.
    pub(super) fn is_of_change(self) -> bool {
        matches!(self, Property::IngestionTimestamp | Property::SourceTimestamp | Property::SourceProperties)
    }

    /// Returns the field of `source` that holds it; None if it is not within one.
    fn source_field(self) -> Option<&'static [u8]> {
        match self {
            Property::SourceTimestamp => Some(b"ts_ms"),
            Property::SourceDatabase => Some(b"db"),
            Property::SourceSchema => Some(b"schema"),
            Property::SourceTable => Some(b"table"),
            Property::Schema | Property::IngestionTimestamp | Property::SourceProperties => None,
        }
    }
}

impl MetadataReader {
    pub(super) fn new(settings: &JsonSettings, properties: Vec<Property>) -> MetadataReader {
        MetadataReader {
            columns: properties
                .into_iter()
                .map(|property| (property, ColumnBuilder::new(&property.data_type())))
                .collect(),
            values: settings.value_reader(),
        }
    }

    /// Appends the properties of an event as one row. After an error, part of it is there.
    pub(super) fn push(&mut self, text: &[u8], places: MetadataPlaces) -> Result<(), Fault> {
        for (property, column) in &mut self.columns {
            let place = match (property.source_field(), *property) {
                (Some(field), _) => match places.source {
                    Some(source) => field_at(text, source, field)?,
                    None => None,
                },
                (None, Property::Schema) => places.schema,
                (None, Property::IngestionTimestamp) => places.ts_ms,
                (None, _) => places.source,
            };
            let Some(place) = place else {
                column.push_null();
                continue;
            };
            let mut cursor = Cursor::new(text);
            cursor.rewind(place);
            if column.data_type().root == TypeRoot::TimestampLtz(3) {
                push_millis(&mut cursor, column)?;
            } else {
                self.values.push(&mut cursor, column)?;
            }
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, row_count: usize) {
        self.columns.iter_mut().for_each(|(_, column)| column.truncate(row_count));
    }

    /// Returns the columns, each with its key and type, and starts anew.
    pub(super) fn finish(&mut self) -> Result<Vec<(&'static str, DataType, ArrayRef)>> {
        let finish = |(property, column): &mut (Property, ColumnBuilder)| {
            Ok((property.key(), property.data_type(), column.finish()?))
        };
        self.columns.iter_mut().map(finish).collect()
    }
}

/// Returns the offset of a field's value in the object at an offset.
fn field_at(text: &[u8], object: usize, field: &[u8]) -> Result<Option<usize>, Fault> {
    let mut cursor = Cursor::new(text);
    cursor.rewind(object);
    if cursor.peek() != Some(b'{') {
        return Ok(None);
    }
    cursor.expect(b'{', "'{'")?;
    let mut found = None;
    let mut is_end = cursor.take(b'}');
    while !is_end {
        let key = cursor.key()?;
        if key.inner == field {
            cursor.peek();
            found = Some(cursor.at());
        }
        cursor.skip_value()?;
        is_end = cursor.take(b'}');
        if !is_end {
            cursor.expect(b',', "',' or '}'")?;
        }
    }
    Ok(found)
}

/// Appends an instant that stands as milliseconds since 1970; anything else is NULL.
fn push_millis(cursor: &mut Cursor<'_>, column: &mut ColumnBuilder) -> Result<(), Fault> {
    cursor.peek();
    let start = cursor.at();
    cursor.skip_value()?;
    let millis = std::str::from_utf8(cursor.since(start)).ok().and_then(|text| text.parse().ok());
    match (millis, column.values()) {
        (Some(millis), Values::Int64(values)) => {
            values.push(millis);
            column.mark_valid();
        }
        _ => column.push_null(),
    }
    Ok(())
}
