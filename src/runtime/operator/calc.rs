//! Filter and projection over batches. Kinds travel along: a calc changes columns, never what a row says.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::{Operator, Output};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::Result;

/// A compiled filter and projection.
pub(crate) struct Calc {
    condition: Option<Arc<dyn PhysicalExpr>>,
    projection: Option<Vec<Arc<dyn PhysicalExpr>>>,
    schema: SchemaRef,
}

impl Calc {
    /// Compiles expressions over the input's columns.
    ///
    /// # Errors
    /// An expression cannot be evaluated row by row.
    pub(crate) fn new(
        input: &DFSchema,
        condition: Option<&Expr>,
        projection: Option<&[Expr]>,
        output: &DFSchema,
    ) -> Result<Calc> {
        let properties = ExecutionProps::new();
        let compile = |expr: &Expr| create_physical_expr(expr, input, &properties);
        Ok(Calc {
            condition: condition.map(compile).transpose()?,
            projection: projection
                .map(|exprs| exprs.iter().map(compile).collect::<Result<_, _>>())
                .transpose()?,
            schema: Arc::clone(output.inner()),
        })
    }

    /// Evaluates a batch; None where no row is left.
    ///
    /// # Errors
    /// A value is out of an expression's domain.
    pub(crate) fn evaluate(&self, batch: ChangelogBatch) -> Result<Option<ChangelogBatch>> {
        let batch = match &self.condition {
            None => batch,
            Some(condition) => filter(batch, condition.as_ref())?,
        };
        if batch.row_count() == 0 {
            return Ok(None);
        }
        let Some(projection) = &self.projection else { return Ok(Some(batch)) };
        let rows = batch.rows();
        let columns: Vec<ArrayRef> = projection
            .iter()
            .map(|expr| expr.evaluate(rows)?.into_array(rows.num_rows()))
            .collect::<Result<_, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        Ok(Some(batch.with_rows(rows)))
    }
}

impl Operator for Calc {
    fn process(&mut self, _input: usize, batch: ChangelogBatch, output: &mut Output) -> Result<()> {
        if let Some(batch) = self.evaluate(batch)? {
            output.push(batch);
        }
        Ok(())
    }
}

/// Keeps the rows that fulfil a condition.
fn filter(batch: ChangelogBatch, condition: &dyn PhysicalExpr) -> Result<ChangelogBatch> {
    let mask = condition.evaluate(batch.rows())?.into_array(batch.row_count())?;
    let mask = mask.as_boolean();
    let mask = if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
    let kinds: Option<Vec<RowKind>> = batch
        .kind_bytes()
        .map(|kinds| mask.values().set_indices().map(|row| RowKind::from_byte(kinds[row])).collect());
    let rows = filter_record_batch(batch.rows(), &mask)?;
    Ok(match kinds {
        None => ChangelogBatch::inserts(rows),
        Some(kinds) => ChangelogBatch::with_kinds(rows, kinds),
    })
}
