//! UNION ALL: rows of several inputs under one schema.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use super::{Operator, Output};
use crate::changelog::ChangelogBatch;
use crate::error::Result;

/// Passes on the rows of all inputs. Inputs name their columns as they like, the output's names count.
pub(crate) struct Union {
    schema: SchemaRef,
}

impl Union {
    /// Creates the operator.
    pub(crate) fn new(schema: &SchemaRef) -> Union {
        Union { schema: Arc::clone(schema) }
    }
}

impl Operator for Union {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        let rows = batch.rows();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows =
            RecordBatch::try_new_with_options(Arc::clone(&self.schema), rows.columns().to_vec(), &options)?;
        output.push(batch.with_rows(rows));
        Ok(())
    }
}
