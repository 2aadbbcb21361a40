//! Values on their way into columns. A metadata table has few rows and many nested columns, so it is made row by row.

use arrow::array::{RecordBatch, RecordBatchOptions};
use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType};

use crate::error::{Error, Result};
use crate::format::{ColumnBuilder, ColumnValues};
use crate::schema::TableSchema;

/// Microseconds in a millisecond.
const MICROS_PER_MILLI: i64 = 1000;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    /// NULL.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// INT, DATE, TIME.
    Int(i32),
    /// BIGINT and timestamps.
    Long(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL.
    Decimal(i128),
    /// Texts and bytes.
    Bytes(Vec<u8>),
    /// ARRAY.
    List(Vec<Cell>),
    /// MAP.
    Map(Vec<(Cell, Cell)>),
    /// ROW.
    Row(Vec<Cell>),
}

impl Cell {
    /// Makes a text.
    pub(super) fn text(text: impl Into<String>) -> Cell {
        Cell::Bytes(text.into().into_bytes())
    }

    /// Makes a timestamp of milliseconds.
    pub(super) fn instant(millis: i64) -> Cell {
        Cell::Long(millis.saturating_mul(MICROS_PER_MILLI))
    }

    /// Makes a number that counts something.
    pub(super) fn count(count: u64) -> Cell {
        Cell::Long(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Makes an optional value.
    pub(super) fn optional<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or(Cell::Null, cell)
    }

    /// Makes a value of an Iceberg type, in the Arrow form of the Flink type that stands for it.
    pub(super) fn literal(literal: Option<&Literal>, data_type: &PrimitiveType) -> Cell {
        match literal {
            Some(Literal::Primitive(value)) => Cell::primitive(value, data_type),
            _ => Cell::Null,
        }
    }

    /// Makes a value of an Iceberg type, as `literal` does.
    pub(super) fn primitive(value: &PrimitiveLiteral, data_type: &PrimitiveType) -> Cell {
        match (value, data_type) {
            (PrimitiveLiteral::Boolean(value), _) => Cell::Boolean(*value),
            (PrimitiveLiteral::Int(value), PrimitiveType::Long) => Cell::Long(i64::from(*value)),
            // The day of a column that was a date when the file was written.
            (PrimitiveLiteral::Int(days), PrimitiveType::Timestamp) => {
                Cell::Long(i64::from(*days).saturating_mul(MICROS_PER_DAY))
            }
            (PrimitiveLiteral::Int(days), PrimitiveType::TimestampNs) => {
                Cell::Long(i64::from(*days).saturating_mul(MICROS_PER_DAY).saturating_mul(1_000))
            }
            (PrimitiveLiteral::Int(value), _) => Cell::Int(*value),
            (PrimitiveLiteral::Long(value), PrimitiveType::Time) => {
                Cell::Int(i32::try_from(value / MICROS_PER_MILLI).unwrap_or(i32::MAX))
            }
            (PrimitiveLiteral::Long(value), _) => Cell::Long(*value),
            (PrimitiveLiteral::Float(value), PrimitiveType::Double) => Cell::Double(f64::from(value.0)),
            (PrimitiveLiteral::Float(value), _) => Cell::Float(value.0),
            (PrimitiveLiteral::Double(value), _) => Cell::Double(value.0),
            (PrimitiveLiteral::Int128(value), _) => Cell::Decimal(*value),
            (PrimitiveLiteral::UInt128(value), _) => Cell::Bytes(value.to_be_bytes().to_vec()),
            (PrimitiveLiteral::String(value), _) => Cell::text(value),
            (PrimitiveLiteral::Binary(value), _) => Cell::Bytes(value.clone()),
            (PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin, _) => Cell::Null,
        }
    }
}

/// Makes columns of rows.
///
/// # Errors
/// A value is not of its column's type, which is a bug of ours.
pub(super) fn columns(schema: &TableSchema, rows: Vec<Vec<Cell>>) -> Result<RecordBatch> {
    let row_count = rows.len();
    let mut builders: Vec<ColumnBuilder> =
        schema.columns.iter().map(|column| ColumnBuilder::new(&column.data_type)).collect();
    for row in rows {
        if row.len() != builders.len() {
            return Err(Error::internal(format!(
                "a row of {} values for {} columns",
                row.len(),
                builders.len()
            )));
        }
        for (builder, cell) in builders.iter_mut().zip(row) {
            push(builder, cell)?;
        }
    }
    let arrays = builders.iter_mut().map(ColumnBuilder::finish).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(row_count));
    Ok(RecordBatch::try_new_with_options(schema.to_arrow(), arrays, &options)?)
}

/// Appends a value to a column.
fn push(builder: &mut ColumnBuilder, cell: Cell) -> Result<()> {
    let fits = match (builder.values(), cell) {
        (_, Cell::Null) => {
            builder.push_null();
            return Ok(());
        }
        (ColumnValues::Bytes(..), Cell::Bytes(bytes)) => {
            builder.push_bytes(&bytes);
            return Ok(());
        }
        (ColumnValues::Boolean(values), Cell::Boolean(value)) => {
            values.append(value);
            true
        }
        (ColumnValues::Int32(values), Cell::Int(value)) => {
            values.push(value);
            true
        }
        (ColumnValues::Int64(values), Cell::Long(value)) => {
            values.push(value);
            true
        }
        (ColumnValues::Float32(values), Cell::Float(value)) => {
            values.push(value);
            true
        }
        (ColumnValues::Float64(values), Cell::Double(value)) => {
            values.push(value);
            true
        }
        (ColumnValues::Int128(values), Cell::Decimal(value)) => {
            values.push(value);
            true
        }
        (ColumnValues::List(ends, items), Cell::List(cells)) => {
            cells.into_iter().try_for_each(|cell| push(items, cell))?;
            ends.push(end_of(items)?);
            true
        }
        (ColumnValues::Map(ends, keys, values), Cell::Map(entries)) => {
            for (key, value) in entries {
                push(keys, key)?;
                push(values, value)?;
            }
            ends.push(end_of(keys)?);
            true
        }
        (ColumnValues::Row(fields), Cell::Row(cells)) if fields.len() == cells.len() => {
            fields.iter_mut().zip(cells).try_for_each(|(field, cell)| push(field, cell))?;
            true
        }
        _ => false,
    };
    if !fits {
        return Err(Error::internal(format!("a value is not of type {}", builder.data_type())));
    }
    builder.mark_valid();
    Ok(())
}

/// Returns where the last list of these items ends.
fn end_of(items: &ColumnBuilder) -> Result<i32> {
    i32::try_from(items.len())
        .map_err(|_| Error::data("a metadata table has more entries than Arrow can hold"))
}
