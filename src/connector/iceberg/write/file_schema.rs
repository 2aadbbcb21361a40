//! Rows of a sink to rows of a table's files: columns found by field id, types made Iceberg's, columns that came later filled.
//!
//! A sink knows its columns by the ids that they had when its statement was planned. So a column that somebody renames meanwhile
//! goes on being written, and one that is dropped and made anew is not mistaken for the old one.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType as ArrowType, SchemaRef};
use datafusion::common::ScalarValue;
use iceberg::spec::{Literal, NestedField, Schema, SchemaRef as IcebergSchemaRef};

use super::column_conversion::ColumnConversion;
use crate::connector::iceberg::error::from_iceberg;
use crate::connector::iceberg::literal_value::scalar;
use crate::connector::iceberg::type_mapping;
use crate::error::{Error, Result};

/// The columns that a sink writes.
#[derive(Debug, Clone)]
pub(super) struct WrittenColumns {
    /// The columns of its batches, in Flink's Arrow types.
    rows: SchemaRef,
    /// The id of each in the table.
    ids: Vec<i32>,
}

impl WrittenColumns {
    /// Finds columns in a table's schema by their names.
    ///
    /// # Errors
    /// The table has no such column.
    pub(super) fn resolve(rows: SchemaRef, schema: &Schema, table: &str) -> Result<WrittenColumns> {
        let id = |name: &String| {
            let field = schema.as_struct().fields().iter().find(|field| field.name == *name);
            field.map(|field| field.id).ok_or_else(|| {
                Error::validation(format!("Iceberg table '{table}' has no column '{name}'"))
                    .hint("Declare the columns that the table has.")
            })
        };
        let ids = rows.fields().iter().map(|field| id(field.name())).collect::<Result<_>>()?;
        Ok(WrittenColumns { rows, ids })
    }

    /// Returns the columns of the batches.
    pub(super) fn rows(&self) -> &SchemaRef {
        &self.rows
    }

    /// Returns the field id of each column.
    pub(super) fn ids(&self) -> &[i32] {
        &self.ids
    }
}

/// How the rows of a sink become rows of files with a table's schema.
#[derive(Debug, Clone)]
pub(super) struct FileSchema {
    schema: IcebergSchemaRef,
    arrow: SchemaRef,
    columns: Vec<FileColumn>,
    table: String,
}

/// Where the values of a column come from.
#[derive(Debug, Clone)]
enum FileColumn {
    /// A column of the batch.
    Written(usize, ColumnConversion),
    /// The same value for every row.
    Filled(ScalarValue),
    /// NULL for every row.
    Null(ArrowType),
}

impl FileSchema {
    /// Plans how written columns become those of a table's schema.
    ///
    /// # Errors
    /// A written column is gone or has another type, or a column that must have values is not written.
    pub(super) fn new(
        written: &WrittenColumns,
        schema: &IcebergSchemaRef,
        table: &str,
    ) -> Result<FileSchema> {
        let arrow = iceberg::arrow::schema_to_arrow_schema(schema).map_err(from_iceberg)?;
        for (field, id) in written.rows.fields().iter().zip(&written.ids) {
            if !schema.as_struct().fields().iter().any(|has| has.id == *id) {
                return Err(Error::validation(format!(
                    "column '{}' of Iceberg table '{table}' was dropped while a job writes it",
                    field.name()
                ))
                .hint("Start the INSERT again, with a query for the columns that the table has now."));
            }
        }
        let column = |(field, to): (&Arc<NestedField>, &arrow::datatypes::FieldRef)| {
            let Some(at) = written.ids.iter().position(|id| *id == field.id) else {
                return filled_column(field, to.data_type(), table);
            };
            let from = written.rows.field(at).data_type();
            let conversion = ColumnConversion::new(from, to).ok_or_else(|| retyped(from, field, table))?;
            Ok(FileColumn::Written(at, conversion))
        };
        let fields = schema.as_struct().fields().iter().zip(arrow.fields());
        let columns = fields.map(column).collect::<Result<_>>()?;
        Ok(FileSchema {
            schema: Arc::clone(schema),
            arrow: Arc::new(arrow),
            columns,
            table: table.to_owned(),
        })
    }

    /// Returns the table's schema.
    pub(super) fn schema(&self) -> &IcebergSchemaRef {
        &self.schema
    }

    /// Returns the columns of the files, with field ids.
    pub(super) fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// Turns rows of the sink into rows of a file.
    ///
    /// # Errors
    /// A value does not fit, or NULL stands where the table wants a value.
    pub(super) fn convert(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let count = rows.num_rows();
        let column = |(to, column): (&arrow::datatypes::FieldRef, &FileColumn)| -> Result<ArrayRef> {
            let of_column = |error: Error| {
                let message =
                    format!("column '{}' of Iceberg table '{}': {}", to.name(), self.table, error.message());
                Error::new(error.kind(), message)
                    .caused_by(error)
                    .hint("CAST the column to the table's type in the query, or filter such rows out.")
            };
            match column {
                FileColumn::Written(at, conversion) => {
                    let converted = conversion.apply(rows.column(*at)).map_err(of_column)?;
                    if !to.is_nullable() && converted.null_count() > 0 {
                        return Err(Error::data(format!(
                            "column '{}' of Iceberg table '{}' is required, however, a null value is being written into it",
                            to.name(),
                            self.table
                        ))
                        .hint("Filter such rows out, or replace NULL by a value."));
                    }
                    Ok(converted)
                }
                FileColumn::Filled(value) => Ok(value.to_array_of_size(count)?),
                FileColumn::Null(data_type) => Ok(new_null_array(data_type, count)),
            }
        };
        let columns = self.arrow.fields().iter().zip(&self.columns).map(column).collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.arrow), columns)?)
    }
}

/// Plans a column that the sink does not know: somebody has added it since.
fn filled_column(field: &NestedField, to: &ArrowType, table: &str) -> Result<FileColumn> {
    match &field.write_default {
        Some(value) => {
            let value = match value {
                Literal::Primitive(value) => scalar(value, &field.field_type, to).ok(),
                _ => None,
            };
            value.map(FileColumn::Filled).ok_or_else(|| {
                Error::unsupported(format!(
                    "column '{}' of Iceberg table '{table}' has a write default that cannot be written",
                    field.name
                ))
                .hint("Start the INSERT again, with a query that gives the column a value.")
            })
        }
        None if field.required => Err(Error::validation(format!(
            "column '{}' of Iceberg table '{table}' is required, and the INSERT does not write it",
            field.name
        ))
        .hint("Start the INSERT again, with a query that gives the column a value.")),
        None => Ok(FileColumn::Null(to.clone())),
    }
}

/// The error of a column that does not have the type any more that the sink writes, or never had.
fn retyped(from: &ArrowType, field: &NestedField, table: &str) -> Error {
    let written =
        crate::schema::DataType::from_arrow(from).map_or_else(|| from.to_string(), |of| of.to_string());
    Error::validation(format!(
        "column '{}' of Iceberg table '{table}' is {}, and cannot be written as {written}",
        field.name,
        type_mapping::to_flink(&field.field_type, field.required).summary()
    ))
    .hint("If the table was altered while the job was running, start the INSERT again; else declare the column with the table's type.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray, Int32Array, StringArray};
    use arrow::datatypes::{DataType as ArrowType, Field, Int64Type, Schema as ArrowSchema};
    use iceberg::spec::{PrimitiveType, Type};

    fn field(id: i32, name: &str, of: PrimitiveType, required: bool) -> NestedField {
        NestedField::new(id, name, Type::Primitive(of), required)
    }

    fn schema(fields: impl IntoIterator<Item = NestedField>) -> IcebergSchemaRef {
        Arc::new(Schema::builder().with_fields(fields.into_iter().map(Arc::new)).build().unwrap())
    }

    fn before() -> [NestedField; 2] {
        [field(1, "id", PrimitiveType::Int, false), field(2, "name", PrimitiveType::String, false)]
    }

    fn rows() -> RecordBatch {
        let fields =
            vec![Field::new("name", ArrowType::Utf8, true), Field::new("id", ArrowType::Int32, true)];
        let columns: Vec<ArrayRef> =
            vec![Arc::new(StringArray::from(vec![Some("a"), None])), Arc::new(Int32Array::from(vec![1, 2]))];
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap()
    }

    fn written() -> WrittenColumns {
        WrittenColumns::resolve(rows().schema(), &schema(before()), "db.t").unwrap()
    }

    fn file_schema(fields: impl IntoIterator<Item = NestedField>) -> Result<FileSchema> {
        FileSchema::new(&written(), &schema(fields), "db.t")
    }

    fn refusal(fields: impl IntoIterator<Item = NestedField>) -> String {
        let error = file_schema(fields).unwrap_err();
        assert!(error.hint_text().is_some());
        error.message().to_owned()
    }

    #[test]
    fn columns_are_found_by_name_and_carry_their_field_ids() {
        let converted = file_schema(before()).unwrap().convert(&rows()).unwrap();
        assert_eq!(converted.schema().field(0).name(), "id");
        assert_eq!(converted.schema().field(1).metadata()["PARQUET:field_id"], "2");
        assert_eq!(converted.column(1).as_string::<i32>().value(0), "a");
        let other = schema([field(1, "id", PrimitiveType::Int, false)]);
        let error = WrittenColumns::resolve(rows().schema(), &other, "db.t").unwrap_err();
        assert_eq!(error.message(), "Iceberg table 'db.t' has no column 'name'");
    }

    #[test]
    fn a_column_that_is_renamed_moved_or_widened_goes_on() {
        let now =
            [field(2, "called", PrimitiveType::String, false), field(1, "id", PrimitiveType::Long, false)];
        let converted = file_schema(now).unwrap().convert(&rows()).unwrap();
        assert_eq!(converted.column(0).as_string::<i32>().value(0), "a");
        assert_eq!(converted.column(1).as_primitive::<Int64Type>().values(), &[1, 2]);
    }

    #[test]
    fn a_column_that_is_added_is_null_or_its_write_default() {
        let defaulted = field(4, "d", PrimitiveType::Date, true).with_write_default(Literal::date(7));
        let [id, name] = before();
        let now = [id, name, field(3, "new", PrimitiveType::Binary, false), defaulted];
        let converted = file_schema(now).unwrap().convert(&rows()).unwrap();
        assert_eq!(converted.column(2).null_count(), 2);
        assert_eq!(converted.column(3).to_data().buffer::<i32>(0)[..2], [7, 7]);
        for (of, value) in [
            (PrimitiveType::Timestamptz, Literal::timestamptz(7)),
            (PrimitiveType::Time, Literal::time(7)),
            (PrimitiveType::Uuid, Literal::uuid(uuid::Uuid::from_u128(7))),
            (PrimitiveType::Fixed(2), Literal::fixed(vec![7, 7])),
            (PrimitiveType::Binary, Literal::binary(vec![7])),
            (PrimitiveType::Decimal { precision: 9, scale: 2 }, Literal::decimal(7)),
        ] {
            let [id, name] = before();
            let now = [id, name, field(3, "d", of.clone(), true).with_write_default(value)];
            let converted = file_schema(now).unwrap().convert(&rows()).unwrap();
            assert_eq!(converted.column(2).null_count(), 0, "{of}");
        }
    }

    #[test]
    fn a_change_that_the_rows_cannot_follow_is_refused_by_name() {
        let [id, name] = before();
        assert_eq!(
            refusal([id.clone()]),
            "column 'name' of Iceberg table 'db.t' was dropped while a job writes it"
        );
        assert_eq!(
            refusal([id.clone(), field(3, "name", PrimitiveType::String, false)]),
            "column 'name' of Iceberg table 'db.t' was dropped while a job writes it"
        );
        assert_eq!(
            refusal([field(1, "id", PrimitiveType::String, false), name.clone()]),
            "column 'id' of Iceberg table 'db.t' is STRING, and cannot be written as INT"
        );
        assert_eq!(
            refusal([id, name, field(3, "must", PrimitiveType::Int, true)]),
            "column 'must' of Iceberg table 'db.t' is required, and the INSERT does not write it"
        );
    }

    #[test]
    fn null_in_a_required_column_is_refused_by_name() {
        let [id, _] = before();
        let strict = file_schema([id, field(2, "name", PrimitiveType::String, true)]).unwrap();
        assert_eq!(
            strict.convert(&rows()).unwrap_err().message(),
            "column 'name' of Iceberg table 'db.t' is required, however, a null value is being written into it"
        );
    }
}
