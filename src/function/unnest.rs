//! UNNEST: collections of a column become rows. The rows of other columns are repeated by index, so nothing is copied per row.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int32Builder, UInt32Array, UInt32Builder,
};
use arrow::compute::{nullif, take};
use arrow::datatypes::{DataType as ArrowType, Int32Type};

use crate::error::{Error, Result};

/// The rows that the collections of a column make.
#[derive(Debug)]
pub(crate) struct Unnested {
    /// For each row, the row of the input that it belongs to; ascending.
    pub(crate) rows: UInt32Array,
    /// The columns of the elements; behind them each element's number within its collection, where that is wanted.
    pub(crate) columns: Vec<ArrayRef>,
}

/// Takes collections apart. An array of ROW yields its fields, a map key and value, a multiset its elements as often as they
/// count. `element_types` are the types of the columns that come out, without the number: a multiset lies in Arrow as a map and
/// differs in nothing else. With `is_outer` an empty or missing collection yields a row of NULLs.
///
/// # Errors
/// The column is no collection.
pub(crate) fn unnest(
    collection: &ArrayRef,
    element_types: &[ArrowType],
    is_outer: bool,
    with_ordinality: bool,
) -> Result<Unnested> {
    let (offsets, parts, counts) = match collection.data_type() {
        ArrowType::List(_) => {
            let lists = collection.as_list::<i32>();
            (lists.value_offsets(), expanded(lists.values(), element_types)?, None)
        }
        ArrowType::Map(..) => {
            let maps = collection.as_map();
            let (keys, values) = (maps.keys(), maps.values());
            let is_map = [keys.data_type(), values.data_type()].into_iter().eq(element_types);
            if is_map {
                (maps.value_offsets(), vec![Arc::clone(keys), Arc::clone(values)], None)
            } else {
                let counts = values.as_primitive_opt::<Int32Type>();
                let counts = counts.ok_or_else(|| Error::internal("the counts of a multiset are INT"))?;
                (maps.value_offsets(), expanded(keys, element_types)?, Some(counts))
            }
        }
        other => return Err(Error::internal(format!("{other} is no collection"))),
    };
    let places = places(collection, offsets, counts, is_outer);
    let mut columns = Vec::with_capacity(parts.len() + 1);
    for part in &parts {
        columns.push(take(part, &places.elements, None)?);
    }
    if with_ordinality {
        columns.push(Arc::new(numbers(&places)));
    }
    Ok(Unnested { rows: places.rows, columns })
}

/// Where the rows that come out are from.
struct Places {
    /// Rows of the input.
    rows: UInt32Array,
    /// Elements in the values of all collections; NULL for the row that a collection without elements leaves.
    elements: UInt32Array,
}

/// Finds the row and the element that each row comes from.
fn places(collection: &ArrayRef, offsets: &[i32], counts: Option<&Int32Array>, is_outer: bool) -> Places {
    let length = offsets.last().zip(offsets.first()).map_or(0, |(last, first)| (last - first) as usize);
    let mut rows = Vec::with_capacity(length);
    let mut elements = UInt32Builder::with_capacity(length);
    for row in 0..collection.len() {
        let before = rows.len();
        // What lies behind a missing collection is no element of anything.
        if collection.is_valid(row) {
            for element in offsets[row]..offsets[row + 1] {
                let count = counts.map_or(1, |counts| counts.value(element as usize));
                for _ in 0..count {
                    rows.push(row as u32);
                    elements.append_value(element as u32);
                }
            }
        }
        if is_outer && rows.len() == before {
            rows.push(row as u32);
            elements.append_null();
        }
    }
    Places { rows: UInt32Array::from(rows), elements: elements.finish() }
}

/// Returns the columns that elements make: a ROW's fields, which are NULL where the ROW is, or the elements themselves.
fn expanded(elements: &ArrayRef, element_types: &[ArrowType]) -> Result<Vec<ArrayRef>> {
    let Some(rows) = elements.as_struct_opt() else { return Ok(vec![Arc::clone(elements)]) };
    let fields = rows.columns();
    if !fields.iter().map(Array::data_type).eq(element_types) {
        return Err(Error::internal("the columns of UNNEST are not the fields of its elements"));
    }
    let Some(nulls) = rows.nulls().filter(|nulls| nulls.null_count() > 0) else { return Ok(fields.to_vec()) };
    let is_null = BooleanArray::new(!nulls.inner(), None);
    fields.iter().map(|field| Ok(nullif(field, &is_null)?)).collect()
}

/// Numbers the elements of each collection from 1.
fn numbers(places: &Places) -> Int32Array {
    let mut numbers = Int32Builder::with_capacity(places.rows.len());
    let (mut last, mut number) = (None, 0);
    for (place, row) in places.rows.values().iter().enumerate() {
        number = if last == Some(row) { number + 1 } else { 1 };
        last = Some(row);
        numbers.append_option(places.elements.is_valid(place).then_some(number));
    }
    numbers.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ListArray, MapArray, StringArray, StructArray};
    use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

    use crate::schema::{DataType, Field, TypeRoot, format_cell};

    /// Prints what comes out: the input's row, then the columns.
    fn lines(collection: ArrayRef, types: &[DataType], is_outer: bool, with_ordinality: bool) -> Vec<String> {
        let arrow: Vec<ArrowType> = types.iter().map(DataType::to_arrow).collect();
        let unnested = unnest(&collection, &arrow, is_outer, with_ordinality).unwrap();
        let int = TypeRoot::Int.nullable();
        let types: Vec<&DataType> = types.iter().chain(with_ordinality.then_some(&int)).collect();
        assert_eq!(types.len(), unnested.columns.len());
        let cell = |data_type: &DataType, column: &ArrayRef, row| {
            format_cell(data_type, column.as_ref(), row, chrono_tz::Tz::UTC).unwrap_or("NULL".to_owned())
        };
        let line = |row: usize| {
            let cells =
                types.iter().zip(&unnested.columns).map(|(data_type, column)| cell(data_type, column, row));
            format!("{}: {}", unnested.rows.value(row), cells.collect::<Vec<_>>().join(" "))
        };
        (0..unnested.rows.len()).map(line).collect()
    }

    /// Four collections over six elements: two elements, none, missing with one behind it, three.
    fn offsets() -> (OffsetBuffer<i32>, NullBuffer) {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 2, 3, 6]));
        (offsets, NullBuffer::from(vec![true, true, false, true]))
    }

    fn lists(element: &DataType, values: ArrayRef) -> ArrayRef {
        let (offsets, nulls) = offsets();
        let field = Arc::new(element.to_field("item"));
        Arc::new(ListArray::new(field, offsets, values, Some(nulls)))
    }

    fn maps(data_type: TypeRoot, keys: ArrayRef, values: ArrayRef) -> ArrayRef {
        let ArrowType::Map(entries, _) = data_type.nullable().to_arrow() else { panic!("a map") };
        let ArrowType::Struct(fields) = entries.data_type() else { panic!("entries") };
        let columns = StructArray::new(fields.clone(), vec![keys, values], None);
        let (offsets, nulls) = offsets();
        Arc::new(MapArray::new(entries, offsets, columns, Some(nulls), false))
    }

    fn ints(values: Vec<Option<i32>>) -> ArrayRef {
        Arc::new(Int32Array::from(values))
    }

    #[test]
    fn elements_become_rows_and_what_is_behind_null_does_not() {
        let int = TypeRoot::Int.nullable();
        let values = ints(vec![Some(1), None, Some(-1), Some(4), Some(5), Some(6)]);
        let column = lists(&int, values);
        let types = std::slice::from_ref(&int);
        assert_eq!(
            lines(Arc::clone(&column), types, false, false),
            ["0: 1", "0: NULL", "3: 4", "3: 5", "3: 6"]
        );
        assert_eq!(
            lines(Arc::clone(&column), types, true, true),
            ["0: 1 1", "0: NULL 2", "1: NULL NULL", "2: NULL NULL", "3: 4 1", "3: 5 2", "3: 6 3"]
        );
        assert_eq!(
            lines(column.slice(2, 2), types, true, true),
            ["0: NULL NULL", "1: 4 1", "1: 5 2", "1: 6 3"]
        );
        assert_eq!(lines(column.slice(1, 2), types, false, false), [""; 0]);
    }

    #[test]
    fn rows_in_arrays_become_columns() {
        let fields =
            vec![Field::new("a", TypeRoot::Int.nullable()), Field::new("b", TypeRoot::STRING.nullable())];
        let row = TypeRoot::Row(fields.clone()).nullable();
        let ArrowType::Struct(arrow) = row.to_arrow() else { panic!("a struct") };
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["p", "q", "r", "s", "t", "u"]));
        let columns = vec![ints((1..=6).map(Some).collect()), texts];
        let nulls = NullBuffer::from(vec![true, false, true, true, true, true]);
        let values = Arc::new(StructArray::new(arrow, columns, Some(nulls)));
        let types: Vec<DataType> = fields.into_iter().map(|field| field.data_type).collect();
        assert_eq!(
            lines(lists(&row, values), &types, false, false),
            ["0: 1 p", "0: NULL NULL", "3: 4 s", "3: 5 t", "3: 6 u"]
        );
    }

    #[test]
    fn maps_become_keys_and_values_and_multisets_elements_as_often_as_they_count() {
        let (int, not_null) = (TypeRoot::Int.nullable(), TypeRoot::Int.not_null());
        let keys = || ints((1..=6).map(Some).collect());
        let values = || ints(vec![Some(10), Some(2), Some(9), Some(0), Some(1), Some(1)]);
        let map = maps(TypeRoot::Map(Box::new(int.clone()), Box::new(int.clone())), keys(), values());
        let types = [int.clone(), int.clone()];
        assert_eq!(lines(map, &types, false, false), ["0: 1 10", "0: 2 2", "3: 4 0", "3: 5 1", "3: 6 1"]);
        let counts = ints(vec![Some(1), Some(2), Some(9), Some(0), Some(1), Some(1)]);
        let multiset = maps(TypeRoot::Multiset(Box::new(not_null)), keys(), counts);
        assert_eq!(
            lines(multiset, std::slice::from_ref(&int), true, true),
            ["0: 1 1", "0: 2 2", "0: 2 3", "1: NULL NULL", "2: NULL NULL", "3: 5 1", "3: 6 2"]
        );
    }

    #[test]
    fn other_columns_are_refused() {
        assert!(unnest(&ints(vec![Some(1)]), &[ArrowType::Int32], false, false).is_err());
    }
}
