//! UNNEST: one row per element of a collection, with the kind of the row that holds it. It remembers nothing: a row that is taken
//! back holds the same elements as when it was added.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType as ArrowType, SchemaRef};

use super::{Operator, Output};
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::function::unnest;

/// Adds the columns of a collection's elements.
pub(crate) struct Unnest {
    column: usize,
    is_outer: bool,
    with_ordinality: bool,
    element_types: Vec<ArrowType>,
    schema: SchemaRef,
}

impl Unnest {
    /// Makes the operator; the output is the input's columns and those of the elements.
    pub(crate) fn new(
        column: usize,
        is_outer: bool,
        with_ordinality: bool,
        input: &SchemaRef,
        output: &SchemaRef,
    ) -> Unnest {
        let added = output.fields().iter().skip(input.fields().len());
        let mut element_types: Vec<ArrowType> = added.map(|field| field.data_type().clone()).collect();
        if with_ordinality {
            element_types.pop();
        }
        Unnest { column, is_outer, with_ordinality, element_types, schema: Arc::clone(output) }
    }
}

impl Operator for Unnest {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let collection = batch.rows().column(self.column);
        let unnested = unnest(collection, &self.element_types, self.is_outer, self.with_ordinality)?;
        let kinds = batch
            .kind_bytes()
            .map(|kinds| unnested.rows.values().iter().map(|row| kinds[*row as usize]).collect::<Vec<u8>>());
        let mut columns = take_record_batch(batch.rows(), &unnested.rows)?.columns().to_vec();
        columns.extend(unnested.columns);
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), columns)?;
        output.push(ChangelogBatch::with_kind_bytes(rows, kinds.map(Buffer::from_vec)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{lines, schema};
    use super::*;
    use crate::changelog::RowKind;
    use arrow::array::{Int32Array, ListArray};
    use arrow::datatypes::DataType::Int32;
    use arrow::datatypes::{Field, Int32Type};

    fn shown(is_outer: bool, with_ordinality: bool) -> Vec<String> {
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(7), None]),
            None,
            Some(vec![]),
            Some(vec![Some(8)]),
        ]);
        let list = ArrowType::List(Arc::new(Field::new_list_field(Int32, true)));
        let input = schema(&[("id", Int32), ("list", list.clone())]);
        let mut columns = vec![("id", Int32), ("list", list), ("element", Int32)];
        if with_ordinality {
            columns.push(("ordinality", Int32));
        }
        let rows = RecordBatch::try_new(
            Arc::clone(&input),
            vec![Arc::new(Int32Array::from(vec![1, 2, 3, 1])), Arc::new(lists)],
        );
        let kinds = [RowKind::UpdateBefore, RowKind::Insert, RowKind::Delete, RowKind::UpdateAfter];
        let batch = ChangelogBatch::with_kinds(rows.unwrap(), kinds);
        let mut output = Output::default();
        let mut operator = Unnest::new(1, is_outer, with_ordinality, &input, &schema(&columns));
        operator.process(0, batch, &mut output).unwrap();
        output.drain().flat_map(|batch| lines(&batch)).collect()
    }

    #[test]
    fn every_element_has_the_kind_of_its_row() {
        assert_eq!(shown(false, true), ["-U 1 [7,NULL] 7 1", "-U 1 [7,NULL] NULL 2", "+U 1 [8] 8 1"]);
        assert_eq!(
            shown(true, false),
            ["-U 1 [7,NULL] 7", "-U 1 [7,NULL] NULL", "+I 2 NULL NULL", "-D 3 [] NULL", "+U 1 [8] 8"]
        );
    }
}
