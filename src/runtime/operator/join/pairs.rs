//! Pairs of a batch's rows and the rows of the other side that have the same key.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{prep_null_mask_filter, take};
use arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use super::side_state::SideState;
use super::{ABSENT, BATCH_ROWS};
use crate::error::Result;

/// Pairs in the order of the batch's rows; those of one row are side by side.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// The row of the batch.
    pub(super) probe: Vec<u32>,
    /// The number of the other side's row.
    pub(super) build: Vec<u32>,
}

impl Pairs {
    /// Collects the pairs of whole rows from `start` on, until there are enough for a batch; returns where it stopped.
    /// `firsts` has the first partner of each row.
    pub(super) fn collect(&mut self, firsts: &[u32], start: usize, other: &SideState) -> usize {
        self.probe.clear();
        self.build.clear();
        let mut row = start;
        while row < firsts.len() && self.build.len() < BATCH_ROWS {
            if firsts[row] != ABSENT {
                other.walk(firsts[row], &mut self.build);
                self.probe.resize(self.build.len(), row as u32);
            }
            row += 1;
        }
        row
    }
}

/// What pairs must fulfil beyond equal keys.
#[derive(Debug)]
pub(super) struct Residual {
    condition: Arc<dyn PhysicalExpr>,
    /// The columns that the condition reads, as positions in a pair.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl Residual {
    /// Compiles a condition over pairs.
    ///
    /// # Errors
    /// The condition cannot be evaluated row by row.
    pub(super) fn new(condition: &Expr, pair_schema: &DFSchemaRef) -> Result<Residual> {
        let mut columns: Vec<usize> = condition
            .column_refs()
            .into_iter()
            .map(|column| pair_schema.index_of_column(column))
            .collect::<Result<_, _>>()?;
        columns.sort_unstable();
        let fields = columns.iter().map(|at| {
            let (qualifier, field) = pair_schema.qualified_field(*at);
            (qualifier.cloned(), Arc::clone(field))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), Default::default())?;
        let condition = create_physical_expr(condition, &schema, &ExecutionProps::new())?;
        Ok(Residual { condition, columns, schema: Arc::clone(schema.inner()) })
    }

    /// Keeps the pairs that fulfil the condition. The batch is of the side `input`.
    ///
    /// # Errors
    /// A value is out of an expression's domain.
    pub(super) fn retain(
        &self,
        pairs: &mut Pairs,
        input: usize,
        rows: &RecordBatch,
        sides: &[SideState],
    ) -> Result<()> {
        if pairs.probe.is_empty() {
            return Ok(());
        }
        let left_width = sides[0].store().width();
        let probe = UInt32Array::from(pairs.probe.clone());
        let column = |at: &usize| -> Result<ArrayRef> {
            let (side, at) = if *at < left_width { (0, *at) } else { (1, *at - left_width) };
            if side == input {
                Ok(take(rows.column(at), &probe, None)?)
            } else {
                sides[side].store().gather(at, &pairs.build)
            }
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(probe.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let mask = self.condition.evaluate(&batch)?.into_array(batch.num_rows())?;
        let mask = mask.as_boolean();
        let mask = if mask.null_count() > 0 { prep_null_mask_filter(mask) } else { mask.clone() };
        for (kept, at) in mask.values().set_indices().enumerate() {
            pairs.probe[kept] = pairs.probe[at];
            pairs.build[kept] = pairs.build[at];
        }
        pairs.probe.truncate(mask.true_count());
        pairs.build.truncate(mask.true_count());
        Ok(())
    }
}
