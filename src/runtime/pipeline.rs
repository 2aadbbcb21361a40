//! A stream graph as a stream of batches. Rows leave as soon as they have come; dropping the stream stops everything.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::Expr;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};

use super::operator::Calc;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::plan::StreamNode;

/// Starts a graph.
///
/// # Errors
/// A source cannot be opened or an expression cannot be compiled.
pub(crate) fn run_stream(node: &StreamNode) -> Result<BoxStream<'static, Result<ChangelogBatch>>> {
    Ok(match node {
        StreamNode::Source { table, columns } => table.read(columns, 1)?.boxed(),
        StreamNode::Values { rows, schema } => {
            let batch = constant_rows(rows, schema)?;
            stream::once(async move { Ok(ChangelogBatch::inserts(batch)) }).boxed()
        }
        StreamNode::Calc { input, input_schema, condition, projection, schema } => {
            let calc = Calc::new(input_schema, condition.as_ref(), projection.as_deref(), schema)?;
            run_stream(input)?
                .filter_map(move |batch| {
                    let evaluated = batch.and_then(|batch| calc.evaluate(batch)).transpose();
                    async move { evaluated }
                })
                .boxed()
        }
        StreamNode::Union { inputs } => {
            let inputs = inputs.iter().map(run_stream).collect::<Result<Vec<_>>>()?;
            stream::select_all(inputs).boxed()
        }
        StreamNode::Limit { input, skip, fetch } => limit(run_stream(input)?, *skip, *fetch),
    })
}

/// Lets the first rows through and then ends, so that an unbounded source stops.
fn limit(
    input: BoxStream<'static, Result<ChangelogBatch>>,
    skip: usize,
    fetch: Option<usize>,
) -> BoxStream<'static, Result<ChangelogBatch>> {
    let left = fetch.unwrap_or(usize::MAX);
    stream::try_unfold((input, skip, left), |(mut input, mut skip, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        while let Some(batch) = input.next().await {
            let batch = batch?;
            let skipped = skip.min(batch.row_count());
            skip -= skipped;
            let kept = (batch.row_count() - skipped).min(left);
            if kept > 0 {
                return Ok(Some((batch.slice(skipped, kept), (input, skip, left - kept))));
            }
        }
        Ok(None)
    })
    .boxed()
}

/// Evaluates constant rows.
fn constant_rows(rows: &[Vec<Expr>], schema: &DFSchemaRef) -> Result<RecordBatch> {
    let one_row = RecordBatch::try_new_with_options(
        Arc::new(arrow::datatypes::Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let empty = DFSchema::empty();
    let mut batches = Vec::with_capacity(rows.len());
    for row in rows {
        let calc = Calc::new(&empty, None, Some(row), schema)?;
        if let Some(batch) = calc.evaluate(ChangelogBatch::inserts(one_row.clone()))? {
            batches.push(batch.into_parts().0);
        }
    }
    Ok(arrow::compute::concat_batches(schema.inner(), &batches)?)
}
