//! Columns under construction, nested ones included. Unlike Arrow's builders they can be cut back, so that a record that turns
//! out to be wrong in its last field leaves nothing behind.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, BooleanBufferBuilder, Decimal128Array, DurationMillisecondArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, IntervalYearMonthArray,
    ListArray, MapArray, NullArray, PrimitiveArray, StringArray, StructArray, Time32MillisecondArray,
};
use arrow::array::{Date32Array, new_empty_array};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType as ArrowType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::schema::{DataType, TypeRoot};

/// A column that grows row by row.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    data_type: DataType,
    arrow: ArrowType,
    validity: Validity,
    values: Values,
}

/// Which rows are not NULL. No bits are kept as long as there is no NULL.
#[derive(Debug, Default)]
struct Validity {
    len: usize,
    bits: Option<BooleanBufferBuilder>,
}

/// The values of a column by their width in Arrow; rows that are NULL hold a zero.
#[derive(Debug)]
pub(crate) enum Values {
    /// Nothing but NULL.
    Null,
    /// BOOLEAN.
    Boolean(BooleanBufferBuilder),
    /// TINYINT.
    Int8(Vec<i8>),
    /// SMALLINT.
    Int16(Vec<i16>),
    /// INT, DATE, TIME and intervals of months.
    Int32(Vec<i32>),
    /// BIGINT, timestamps and intervals of milliseconds.
    Int64(Vec<i64>),
    /// FLOAT.
    Float32(Vec<f32>),
    /// DOUBLE.
    Float64(Vec<f64>),
    /// DECIMAL.
    Int128(Vec<i128>),
    /// Texts and bytes: where each one ends, and all of them in a row.
    Bytes(Vec<i32>, Vec<u8>),
    /// ARRAY: where each one ends among the elements.
    List(Vec<i32>, Box<ColumnBuilder>),
    /// MAP and MULTISET: where each one ends among the entries.
    Map(Vec<i32>, Box<ColumnBuilder>, Box<ColumnBuilder>),
    /// ROW: one column per field.
    Row(Vec<ColumnBuilder>),
}

impl Validity {
    #[inline]
    fn push_valid(&mut self) {
        self.len += 1;
        if let Some(bits) = &mut self.bits {
            bits.append(true);
        }
    }

    fn push_null(&mut self) {
        let len = self.len;
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = BooleanBufferBuilder::new(len + 1);
            bits.append_n(len, true);
            bits
        });
        bits.append(false);
        self.len += 1;
    }

    fn truncate(&mut self, len: usize) {
        self.len = len;
        if let Some(bits) = &mut self.bits {
            bits.truncate(len);
        }
    }

    fn take(&mut self) -> Option<NullBuffer> {
        self.len = 0;
        self.bits.take().map(|mut bits| NullBuffer::new(bits.finish()))
    }
}

impl ColumnBuilder {
    /// Creates an empty column of a type.
    pub(crate) fn new(data_type: &DataType) -> ColumnBuilder {
        let values = match &data_type.root {
            TypeRoot::Null => Values::Null,
            TypeRoot::Boolean => Values::Boolean(BooleanBufferBuilder::new(0)),
            TypeRoot::TinyInt => Values::Int8(Vec::new()),
            TypeRoot::SmallInt => Values::Int16(Vec::new()),
            TypeRoot::Int | TypeRoot::Date | TypeRoot::Time(_) | TypeRoot::IntervalYearMonth(_) => {
                Values::Int32(Vec::new())
            }
            TypeRoot::BigInt
            | TypeRoot::Timestamp(_)
            | TypeRoot::TimestampLtz(_)
            | TypeRoot::IntervalDayTime(_) => Values::Int64(Vec::new()),
            TypeRoot::Float => Values::Float32(Vec::new()),
            TypeRoot::Double => Values::Float64(Vec::new()),
            TypeRoot::Decimal(..) => Values::Int128(Vec::new()),
            TypeRoot::Char(_) | TypeRoot::Varchar(_) | TypeRoot::Binary(_) | TypeRoot::Varbinary(_) => {
                Values::Bytes(Vec::new(), Vec::new())
            }
            TypeRoot::Array(element) => Values::List(Vec::new(), Box::new(ColumnBuilder::new(element))),
            TypeRoot::Map(key, value) => Values::Map(
                Vec::new(),
                Box::new(ColumnBuilder::new(key)),
                Box::new(ColumnBuilder::new(value)),
            ),
            TypeRoot::Multiset(element) => {
                let count = ColumnBuilder::new(&TypeRoot::Int.not_null());
                Values::Map(Vec::new(), Box::new(ColumnBuilder::new(element)), Box::new(count))
            }
            TypeRoot::Row(fields) => {
                Values::Row(fields.iter().map(|field| ColumnBuilder::new(&field.data_type)).collect())
            }
        };
        ColumnBuilder {
            data_type: data_type.clone(),
            arrow: data_type.to_arrow(),
            validity: Validity::default(),
            values,
        }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.validity.len
    }

    /// Returns the type.
    pub(crate) fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Returns the values, to push one; `mark_valid` must follow.
    pub(crate) fn values(&mut self) -> &mut Values {
        &mut self.values
    }

    /// Returns the type and the values together.
    pub(crate) fn parts(&mut self) -> (&DataType, &mut Values) {
        (&self.data_type, &mut self.values)
    }

    /// Says that the value just pushed is a row.
    #[inline]
    pub(crate) fn mark_valid(&mut self) {
        self.validity.push_valid();
    }

    /// Says so of several values.
    #[inline]
    pub(crate) fn mark_valid_rows(&mut self, count: usize) {
        self.validity.len += count;
        if let Some(bits) = &mut self.validity.bits {
            bits.append_n(count, true);
        }
    }

    /// Appends a text or bytes.
    #[inline]
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if let Values::Bytes(ends, data) = &mut self.values {
            data.extend_from_slice(bytes);
            ends.push(end_offset(data.len()));
        }
        self.mark_valid();
    }

    /// Appends NULL.
    pub(crate) fn push_null(&mut self) {
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => values.append(false),
            Values::Int8(values) => values.push(0),
            Values::Int16(values) => values.push(0),
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::Float32(values) => values.push(0.0),
            Values::Float64(values) => values.push(0.0),
            Values::Int128(values) => values.push(0),
            Values::Bytes(ends, data) => ends.push(end_offset(data.len())),
            Values::List(ends, items) => ends.push(end_offset(items.len())),
            Values::Map(ends, keys, _) => ends.push(end_offset(keys.len())),
            Values::Row(fields) => fields.iter_mut().for_each(ColumnBuilder::push_null),
        }
        self.validity.push_null();
    }

    /// Cuts the column back to a number of rows; also takes back a value whose row was not marked yet.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.values {
            Values::Null => {}
            Values::Boolean(values) => values.truncate(len),
            Values::Int8(values) => values.truncate(len),
            Values::Int16(values) => values.truncate(len),
            Values::Int32(values) => values.truncate(len),
            Values::Int64(values) => values.truncate(len),
            Values::Float32(values) => values.truncate(len),
            Values::Float64(values) => values.truncate(len),
            Values::Int128(values) => values.truncate(len),
            Values::Bytes(ends, data) => {
                ends.truncate(len);
                data.truncate(last_end(ends));
            }
            Values::List(ends, items) => {
                ends.truncate(len);
                items.truncate(last_end(ends));
            }
            Values::Map(ends, keys, values) => {
                ends.truncate(len);
                keys.truncate(last_end(ends));
                values.truncate(last_end(ends));
            }
            Values::Row(fields) => fields.iter_mut().for_each(|field| field.truncate(len)),
        }
        self.validity.truncate(len);
    }

    /// Returns the rows as an Arrow array and starts anew.
    ///
    /// # Errors
    /// The column has more than two gigabytes.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let len = self.validity.len;
        let nulls = self.validity.take();
        let root = &self.data_type.root;
        Ok(match &mut self.values {
            Values::Null => Arc::new(NullArray::new(len)),
            Values::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Values::Int8(values) => Arc::new(Int8Array::new(take(values), nulls)),
            Values::Int16(values) => Arc::new(Int16Array::new(take(values), nulls)),
            Values::Int32(values) => match root {
                TypeRoot::Date => Arc::new(Date32Array::new(take(values), nulls)),
                TypeRoot::Time(_) => Arc::new(Time32MillisecondArray::new(take(values), nulls)),
                TypeRoot::IntervalYearMonth(_) => Arc::new(IntervalYearMonthArray::new(take(values), nulls)),
                _ => Arc::new(Int32Array::new(take(values), nulls)),
            },
            Values::Int64(values) => match &self.arrow {
                ArrowType::Timestamp(TimeUnit::Millisecond, zone) => {
                    timestamps::<TimestampMillisecondType>(values, nulls, zone.as_ref())
                }
                ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                    timestamps::<TimestampMicrosecondType>(values, nulls, zone.as_ref())
                }
                ArrowType::Timestamp(_, zone) => {
                    timestamps::<TimestampNanosecondType>(values, nulls, zone.as_ref())
                }
                ArrowType::Duration(_) => Arc::new(DurationMillisecondArray::new(take(values), nulls)),
                _ => Arc::new(Int64Array::new(take(values), nulls)),
            },
            Values::Float32(values) => Arc::new(Float32Array::new(take(values), nulls)),
            Values::Float64(values) => Arc::new(Float64Array::new(take(values), nulls)),
            Values::Int128(values) => {
                Arc::new(Decimal128Array::new(take(values), nulls).with_data_type(self.arrow.clone()))
            }
            Values::Bytes(ends, data) => {
                let offsets = take_offsets(ends)?;
                let data = take_vec(data);
                if root.is_character() {
                    strings(offsets, data, nulls)
                } else {
                    Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(data), nulls)?)
                }
            }
            Values::List(ends, items) => finish_list(&self.arrow, ends, items, nulls)?,
            Values::Map(ends, keys, values) => finish_map(&self.arrow, ends, keys, values, nulls)?,
            Values::Row(fields) => finish_row(&self.arrow, fields, nulls, len)?,
        })
    }
}

/// Builds an ARRAY column.
fn finish_list(
    arrow: &ArrowType,
    ends: &mut Vec<i32>,
    items: &mut ColumnBuilder,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let ArrowType::List(field) = arrow else { return Ok(new_empty_array(arrow)) };
    Ok(Arc::new(ListArray::try_new(Arc::clone(field), take_offsets(ends)?, items.finish()?, nulls)?))
}

/// Builds a MAP or MULTISET column.
fn finish_map(
    arrow: &ArrowType,
    ends: &mut Vec<i32>,
    keys: &mut ColumnBuilder,
    values: &mut ColumnBuilder,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let ArrowType::Map(field, sorted) = arrow else { return Ok(new_empty_array(arrow)) };
    let ArrowType::Struct(parts) = field.data_type() else { return Ok(new_empty_array(arrow)) };
    let entries = StructArray::try_new(parts.clone(), vec![keys.finish()?, values.finish()?], None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(field), take_offsets(ends)?, entries, nulls, *sorted)?))
}

/// Builds a ROW column.
fn finish_row(
    arrow: &ArrowType,
    fields: &mut [ColumnBuilder],
    nulls: Option<NullBuffer>,
    len: usize,
) -> Result<ArrayRef> {
    let ArrowType::Struct(parts) = arrow else { return Ok(new_empty_array(arrow)) };
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(len, nulls)));
    }
    let columns = fields.iter_mut().map(ColumnBuilder::finish).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(parts.clone(), columns, nulls)?))
}

/// Takes the values out as an Arrow buffer.
fn take<T: arrow::datatypes::ArrowNativeType>(values: &mut Vec<T>) -> ScalarBuffer<T> {
    ScalarBuffer::from(take_vec(values))
}

/// Takes the values out and makes room for as many: the next frame most likely has about the same number.
fn take_vec<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

/// Builds a timestamp array with the zone of its type.
fn timestamps<T>(values: &mut Vec<i64>, nulls: Option<NullBuffer>, zone: Option<&Arc<str>>) -> ArrayRef
where
    T: ArrowPrimitiveType<Native = i64> + arrow::datatypes::ArrowTimestampType,
{
    Arc::new(PrimitiveArray::<T>::new(take(values), nulls).with_timezone_opt(zone.map(Arc::clone)))
}

/// Turns ends into Arrow's offsets, which start with a zero.
fn take_offsets(ends: &mut Vec<i32>) -> Result<OffsetBuffer<i32>> {
    let mut offsets = take_vec(ends);
    if offsets.iter().any(|end| *end < 0) {
        return Err(Error::data("the values of one column in one frame exceed 2 GB"));
    }
    offsets.insert(0, 0);
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

/// Builds a text column. Bytes that are no UTF-8 become U+FFFD, as when Java decodes them.
fn strings(offsets: OffsetBuffer<i32>, data: Vec<u8>, nulls: Option<NullBuffer>) -> ArrayRef {
    let buffer = Buffer::from_vec(data);
    if let Ok(array) = StringArray::try_new(offsets.clone(), buffer.clone(), nulls.clone()) {
        return Arc::new(array);
    }
    let text = |row: usize| {
        String::from_utf8_lossy(&buffer[offsets[row] as usize..offsets[row + 1] as usize]).into_owned()
    };
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let rows = 0..offsets.len() - 1;
    Arc::new(rows.map(|row| (!is_null(row)).then(|| text(row))).collect::<StringArray>())
}

/// Returns an end offset; one that does not fit is negative, which `finish` reports.
fn end_offset(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(-1)
}

/// Returns where the last value ends.
fn last_end(ends: &[i32]) -> usize {
    ends.last().map_or(0, |end| *end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Field;
    use arrow::array::Array;

    #[test]
    fn cutting_back_takes_nested_values_with_it() {
        let inner = TypeRoot::Array(Box::new(TypeRoot::STRING.nullable())).nullable();
        let mut column = ColumnBuilder::new(&TypeRoot::Row(vec![Field::new("a", inner)]).nullable());
        column.push_null();
        if let Values::Row(fields) = column.values()
            && let Values::List(ends, items) = fields[0].values()
        {
            items.push_bytes(b"x");
            ends.push(1);
        }
        column.truncate(1);
        column.push_null();
        let array = column.finish().unwrap();
        assert_eq!((array.len(), array.null_count()), (2, 2));
        assert_eq!(column.len(), 0);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut column = ColumnBuilder::new(&TypeRoot::STRING.nullable());
        column.push_bytes(b"ok");
        column.push_bytes(&[0xff, b'a']);
        column.push_null();
        let array = column.finish().unwrap();
        let texts = array.as_any().downcast_ref::<StringArray>().unwrap();
        assert_eq!((texts.value(0), texts.value(1), texts.is_null(2)), ("ok", "\u{fffd}a", true));
    }

    #[test]
    fn every_type_has_its_arrow_form() {
        let types = [
            TypeRoot::Null,
            TypeRoot::Date,
            TypeRoot::Time(3),
            TypeRoot::Timestamp(0),
            TypeRoot::Timestamp(9),
            TypeRoot::TimestampLtz(6),
            TypeRoot::Decimal(38, 5),
            TypeRoot::Multiset(Box::new(TypeRoot::Int.nullable())),
            TypeRoot::Map(Box::new(TypeRoot::STRING.nullable()), Box::new(TypeRoot::Double.nullable())),
            TypeRoot::Row(Vec::new()),
        ];
        for root in types {
            let data_type = root.nullable();
            let mut column = ColumnBuilder::new(&data_type);
            column.push_null();
            let array = column.finish().unwrap();
            assert_eq!((array.data_type(), array.len()), (&data_type.to_arrow(), 1));
        }
    }
}
