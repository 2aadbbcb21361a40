//! The order in which new rows are written: the table's, or that of the key, so that readers can pass over parts of files by their
//! bounds.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, sort_to_indices};
use arrow::datatypes::DataType as ArrowType;
use iceberg::spec::{NullOrder, SortDirection, TableMetadata, Transform};

use crate::connector::iceberg::write::file_schema::WrittenColumns;
use crate::error::Result;
use crate::state::{is_narrow, narrow_values};

/// A table's sort order over columns that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageOrder {
    /// The id of the order.
    pub(super) id: i32,
    columns: Vec<(usize, SortOptions)>,
}

impl ImageOrder {
    /// Returns the order of a table; None if it has none, or one by other things than whole columns that are written.
    pub(super) fn of(metadata: &TableMetadata, written: &WrittenColumns) -> Option<ImageOrder> {
        let order = metadata.default_sort_order();
        if order.fields.is_empty() {
            return None;
        }
        let column = |field: &iceberg::spec::SortField| {
            let at = written.ids().iter().position(|id| *id == field.source_id)?;
            let is_sortable = is_sortable(written.rows().field(at).data_type());
            let options = SortOptions {
                descending: field.direction == SortDirection::Descending,
                nulls_first: field.null_order == NullOrder::First,
            };
            (field.transform == Transform::Identity && is_sortable).then_some((at, options))
        };
        let columns = order.fields.iter().map(column).collect::<Option<_>>()?;
        Some(ImageOrder { id: i32::try_from(order.order_id).ok()?, columns })
    }

    /// Returns rows in order, as positions.
    ///
    /// # Errors
    /// A column cannot be sorted.
    pub(super) fn sorted(&self, columns: &[ArrayRef]) -> Result<UInt32Array> {
        let column = |(at, options): &(usize, SortOptions)| (ArrayRef::clone(&columns[*at]), *options);
        sorted(self.columns.iter().map(column).collect())
    }
}

/// Returns rows in the order of their keys, as positions. Columns that have no order are passed over.
///
/// # Errors
/// A column cannot be sorted.
pub(super) fn sorted_by_key(keys: &[ArrayRef]) -> Result<Option<UInt32Array>> {
    let columns = keys.iter().filter(|column| is_sortable(column.data_type()));
    let columns: Vec<_> = columns.map(|column| (ArrayRef::clone(column), SortOptions::default())).collect();
    if columns.is_empty() { Ok(None) } else { sorted(columns).map(Some) }
}

fn sorted(columns: Vec<(ArrayRef, SortOptions)>) -> Result<UInt32Array> {
    if let [(column, options)] = columns.as_slice() {
        let sorted = if options.descending { None } else { sorted_numbers(column) };
        return sorted.map_or_else(|| Ok(sort_to_indices(column, Some(*options), None)?), Ok);
    }
    let columns = columns.into_iter();
    let columns = columns.map(|(values, options)| SortColumn { values, options: Some(options) });
    Ok(lexsort_to_indices(&columns.collect::<Vec<_>>(), None)?)
}

/// Sorts whole numbers without NULL that are less than 2^32 apart, as most keys are: number and position in one word take half the time.
fn sorted_numbers(column: &ArrayRef) -> Option<UInt32Array> {
    let data_type = column.data_type();
    let has_order = !data_type.is_floating() && !data_type.is_unsigned_integer();
    if column.null_count() > 0 || !has_order || !is_narrow(data_type) {
        return None;
    }
    let values = narrow_values(column).ok()?;
    let numbers = || values.iter().map(|value| *value as i64);
    let (least, most) = (numbers().min()?, numbers().max()?);
    u32::try_from(most.checked_sub(least)?).ok()?;
    let mut words: Vec<u64> =
        numbers().zip(0..).map(|(number, at): (i64, u64)| ((number - least) as u64) << 32 | at).collect();
    words.sort_unstable();
    Some(words.into_iter().map(|word| word as u32).collect::<Vec<_>>().into())
}

fn is_sortable(data_type: &ArrowType) -> bool {
    !data_type.is_nested()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array, StringArray};
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn numbers_are_sorted_as_all_columns_are(
            numbers in prop::collection::vec(prop_oneof![-9_i64..9, any::<i64>(), Just(i64::MIN), Just(i64::MAX)], 0..50),
            is_narrow: bool,
            is_descending: bool,
        ) {
            let column: ArrayRef = match is_narrow {
                true => Arc::new(Int32Array::from_iter_values(numbers.iter().map(|number| *number as i32))),
                false => Arc::new(Int64Array::from(numbers)),
            };
            let options = SortOptions { descending: is_descending, nulls_first: true };
            let sorted = sorted(vec![(Arc::clone(&column), options)]).unwrap();
            let mut positions = sorted.values().to_vec();
            let expected = arrow::compute::sort(&column, Some(options)).unwrap();
            prop_assert_eq!(&arrow::compute::take(&column, &sorted, None).unwrap(), &expected);
            positions.sort_unstable();
            prop_assert!(positions.into_iter().eq(0..column.len() as u32), "each row once");
        }
    }

    #[test]
    fn keys_are_sorted_column_by_column() {
        let a: ArrayRef = Arc::new(Int32Array::from(vec![2, 1, 2, 1]));
        let b: ArrayRef = Arc::new(StringArray::from(vec!["x", "z", "a", "b"]));
        assert_eq!(sorted_by_key(&[Arc::clone(&a), b]).unwrap().unwrap().values(), &[3, 1, 2, 0]);
        assert_eq!(sorted_by_key(&[a]).unwrap().unwrap().len(), 4);
        assert!(sorted_by_key(&[]).unwrap().is_none());
    }
}
