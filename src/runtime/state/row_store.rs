//! Whole rows by number, in Arrow's row encoding: equal rows have equal bytes, and what is stored becomes columns again.
//!
//! Every NaN is one value, so that a row is found again by what it looks like; `-0.0` and `0.0` stay two.

use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray};
use arrow::datatypes::DataType as ArrowType;
use arrow::row::{RowConverter, Rows, SortField};

use super::arena::Arena;
use super::key_index::one_nan;
use crate::error::{Error, Result};

/// Turns columns into rows of bytes and back.
#[derive(Debug)]
pub(crate) struct RowCodec {
    converter: RowConverter,
    /// Without columns there is one that holds nothing, since rows must be counted by something.
    is_empty: bool,
}

impl RowCodec {
    /// Makes a codec for columns, each with its order.
    ///
    /// # Errors
    /// A type has no row encoding.
    pub(crate) fn new(mut fields: Vec<SortField>) -> Result<RowCodec> {
        let is_empty = fields.is_empty();
        if is_empty {
            fields.push(SortField::new(ArrowType::Null));
        }
        let converter = RowConverter::new(fields).map_err(|error| {
            Error::unsupported("a MAP or MULTISET column in the state of this operator is not supported yet")
                .hint("Leave the column out before the operator, or cast it to STRING.")
                .caused_by(error)
        })?;
        Ok(RowCodec { converter, is_empty })
    }

    /// Encodes the rows of columns.
    ///
    /// # Errors
    /// The columns have other types.
    pub(crate) fn encode(&self, columns: &[ArrayRef], row_count: usize) -> Result<Rows> {
        let columns: Vec<ArrayRef> = match self.is_empty {
            true => vec![Arc::new(NullArray::new(row_count))],
            false => columns.iter().map(one_nan).collect(),
        };
        Ok(self.converter.convert_columns(&columns)?)
    }

    /// Decodes rows.
    ///
    /// # Errors
    /// Columns cannot be built.
    pub(crate) fn decode<'a>(&'a self, rows: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if self.is_empty {
            return Ok(Vec::new());
        }
        let parser = self.converter.parser();
        let rows: Vec<_> = rows.map(|row| parser.parse(row)).collect();
        Ok(self.converter.convert_rows(rows)?)
    }
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
        let codec = RowCodec::new(types.map(|data_type| SortField::new(data_type.clone())).collect())?;
        Ok(RowStore { codec, arena: Arena::default(), free: Vec::new(), count: 0 })
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

    /// Returns how many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.count as usize - self.free.len()
    }

    /// Returns how many bytes are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.allocated() + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, StringArray};

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
        assert_eq!((store.len(), store.insert(encoded.row(0).data())), (2, 1));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let store = RowStore::new([].iter()).unwrap();
        assert_eq!(store.encode(&[], 3).unwrap().num_rows(), 3);
    }
}
