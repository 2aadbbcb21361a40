//! Whole rows by number, in Arrow's row encoding: equal rows have equal bytes, and what is stored becomes columns again.
//!
//! Every NaN is one value, so that a row is found again by what it looks like; `-0.0` and `0.0` stay two.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, NullArray, make_array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType as ArrowType, FieldRef};
use arrow::row::{RowConverter, Rows, SortField};

use super::arena::Arena;
use super::key_index::one_nan;
use crate::error::{Error, Result};

/// Turns columns into rows of bytes and back.
#[derive(Debug)]
pub(crate) struct RowCodec {
    converter: RowConverter,
    types: Vec<ArrowType>,
}

impl RowCodec {
    /// Makes a codec for columns of types, each with its order.
    ///
    /// # Errors
    /// A type has no row encoding.
    pub(crate) fn new(columns: impl Iterator<Item = (ArrowType, SortOptions)>) -> Result<RowCodec> {
        let (types, orders): (Vec<ArrowType>, Vec<SortOptions>) = columns.unzip();
        let fields = types.iter().zip(orders);
        let mut fields: Vec<SortField> =
            fields.map(|(of, order)| SortField::new_with_options(encoded_type(of), order)).collect();
        if fields.is_empty() {
            // Rows are counted by a column, even if it holds nothing.
            fields.push(SortField::new(ArrowType::Null));
        }
        let converter = RowConverter::new(fields).map_err(|error| {
            let types = types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Error::unsupported(format!(
                "keeping rows of types {types} in streaming mode is not supported yet"
            ))
            .hint("Leave out columns that the query does not need.")
            .caused_by(error)
        })?;
        Ok(RowCodec { converter, types })
    }

    /// Returns how many bytes every encoded row has; None if that differs from row to row. A value is a byte that says whether it is
    /// NULL and its own bytes.
    pub(crate) fn row_width(&self) -> Option<usize> {
        let width = |data_type: &ArrowType| match data_type {
            ArrowType::Boolean => Some(2),
            ArrowType::Interval(_) => None,
            data_type => data_type.primitive_width().map(|width| width + 1),
        };
        self.types.iter().map(width).sum::<Option<usize>>().filter(|width| *width > 0)
    }

    /// Encodes the rows of columns.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Rows> {
        let columns: Vec<ArrayRef> = match self.types.is_empty() {
            true => vec![Arc::new(NullArray::new(row_count))],
            false => columns
                .iter()
                .map(|column| retyped(&one_nan(column), &encoded_type(column.data_type())))
                .collect::<Result<_>>()?,
        };
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// Decodes rows.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn decode<'a>(&'a self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if self.types.is_empty() {
            return Ok(Vec::new());
        }
        let parser = self.converter.parser();
        let rows: Vec<_> = rows.map(|row| parser.parse(row)).collect();
        let columns = self.converter.convert_rows(rows)?;
        columns.iter().zip(&self.types).map(|(column, of)| retyped(column, of)).collect()
    }
}

/// Returns the type as which a type is encoded: a map is the list of its entries, since maps have no encoding.
fn encoded_type(data_type: &ArrowType) -> ArrowType {
    let inner =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(encoded_type(field.data_type())));
    match data_type {
        ArrowType::Map(entries, _) => ArrowType::List(inner(entries)),
        ArrowType::List(element) => ArrowType::List(inner(element)),
        ArrowType::Struct(fields) => ArrowType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    }
}

/// Returns a column as another type that lies in memory in the same way.
fn retyped(column: &ArrayRef, data_type: &ArrowType) -> Result<ArrayRef> {
    fn data(of: ArrayData, data_type: &ArrowType) -> Result<ArrayData> {
        let inner: Vec<&ArrowType> = match data_type {
            ArrowType::Map(field, _) | ArrowType::List(field) => vec![field.data_type()],
            ArrowType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
            _ => return Ok(of),
        };
        let children = of.child_data().iter().cloned().zip(inner);
        let children = children.map(|(child, inner)| data(child, inner)).collect::<Result<Vec<_>>>()?;
        Ok(of.into_builder().data_type(data_type.clone()).child_data(children).build()?)
    }
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    Ok(make_array(data(column.to_data(), data_type)?))
}

/// Rows by number; numbers of removed rows are given again.
#[derive(Debug)]
pub(crate) struct RowStore {
    codec: RowCodec,
    arena: Arena,
    free: Vec<u32>,
    count: u32,
}

impl RowStore {
    /// Makes a store for rows of these types.
    ///
    /// # Errors
    /// A type has no row encoding.
    pub(crate) fn new<'a>(types: impl Iterator<Item = &'a ArrowType>) -> Result<RowStore> {
        let codec = RowCodec::new(types.map(|data_type| (data_type.clone(), SortOptions::default())))?;
        Ok(RowStore { arena: Arena::new(codec.row_width()), codec, free: Vec::new(), count: 0 })
    }

    /// Encodes rows in the form in which they are stored and compared.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Rows> {
        self.codec.encode(columns, row_count)
    }

    /// Stores a row and returns its number.
    pub(crate) fn insert(&mut self, row: &[u8]) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.arena.set(number as usize, row);
        number
    }

    /// Returns a row.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        self.arena.get(number as usize)
    }

    /// Forgets a row.
    pub(crate) fn remove(&mut self, number: u32) {
        self.arena.clear(number as usize);
        self.free.push(number);
    }

    /// Returns rows as columns.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn columns(&self, numbers: &[u32]) -> Result<Vec<ArrayRef>> {
        self.codec.decode(numbers.iter().map(|number| self.get(*number)))
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.allocated() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int32Builder, MapBuilder, StringArray, StringBuilder, StructArray};
    use arrow::datatypes::Field;

    #[test]
    fn rows_come_back_and_numbers_are_given_again() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Float64Array::from(vec![Some(-f64::NAN), None, Some(f64::NAN)])),
            Arc::new(StringArray::from(vec![Some("a"), Some(""), Some("a")])),
        ];
        let mut store = RowStore::new([ArrowType::Float64, ArrowType::Utf8].iter()).unwrap();
        let encoded = store.encode(&columns, 3).unwrap();
        let numbers: Vec<u32> = encoded.iter().map(|row| store.insert(row.data())).collect();
        assert_eq!(store.get(0), store.get(2), "one NaN");
        assert_eq!(store.columns(&[2, 1]).unwrap()[1].as_ref(), &StringArray::from(vec!["a", ""]));
        store.remove(numbers[1]);
        assert_eq!(store.insert(encoded.row(0).data()), 1);
    }

    #[test]
    fn maps_are_kept_within_whatever_they_are_in() {
        let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        builder.keys().append_value("a");
        builder.values().append_null();
        builder.append(true).unwrap();
        builder.append(false).unwrap();
        builder.keys().append_value("b");
        builder.values().append_value(2);
        builder.append(true).unwrap();
        let map: ArrayRef = Arc::new(builder.finish());
        let of = ArrowType::Struct(vec![Field::new("m", map.data_type().clone(), true)].into());
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(
            Arc::new(Field::new("m", map.data_type().clone(), true)),
            Arc::clone(&map),
        )]));
        let mut store = RowStore::new([map.data_type().clone(), of].iter()).unwrap();
        let columns = [map, nested];
        let encoded = store.encode(&columns, 3).unwrap();
        let numbers: Vec<u32> = encoded.iter().map(|row| store.insert(row.data())).collect();
        assert_eq!(store.columns(&numbers).unwrap(), columns);
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let store = RowStore::new([].iter()).unwrap();
        assert_eq!(store.encode(&[], 3).unwrap().num_rows(), 3);
    }
}
