//! What a node of the graph is on one worker.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;

use super::outbox::Outbox;
use crate::changelog::ChangelogBatch;
use crate::connector::{Frame, FrameDecoder};
use crate::error::Result;
use crate::plan::{GraphNode, SourceTable};
use crate::runtime::operator::{Calc, Operator};

/// What a node is on one worker.
pub(super) enum Stage {
    /// Decodes frames.
    Source(SourceDecoder),
    /// Takes constant rows as frames.
    Values,
    /// An operator.
    Operator(Box<dyn Operator>),
    /// Hands rows out of the graph.
    Sink(Outbox),
    /// Nothing: the node's rows are all on the first worker.
    Absent,
}

/// Decodes the frames of a source into the columns of its node.
pub(super) struct SourceDecoder {
    decoder: Box<dyn FrameDecoder>,
    schema: SchemaRef,
}

impl SourceDecoder {
    /// Creates a decoder for columns of a table, which need not yield `-U` unless they are wanted.
    ///
    /// # Errors
    /// A column's type cannot be read by the format.
    pub(super) fn new(
        table: &SourceTable,
        columns: &[usize],
        schema: &SchemaRef,
        wants_update_before: bool,
    ) -> Result<SourceDecoder> {
        let mut decoder = table.source.decoder(&table.projection(columns))?;
        if !wants_update_before {
            decoder.ignore_update_before();
        }
        Ok(SourceDecoder { decoder, schema: Arc::clone(schema) })
    }

    /// Decodes a frame. Decoders name and mark columns as they like; the graph's schema counts.
    ///
    /// # Errors
    /// A record is malformed.
    pub(super) fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        let mut batches = self.decoder.decode(frame)?;
        batches.retain(|batch| batch.row_count() > 0);
        for batch in &mut batches {
            let rows = batch.rows();
            let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
            let columns = rows.columns().to_vec();
            *batch = batch.with_rows(RecordBatch::try_new_with_options(
                Arc::clone(&self.schema),
                columns,
                &options,
            )?);
        }
        Ok(batches)
    }
}

/// Evaluates the constant rows of a node.
///
/// # Errors
/// A value is out of an expression's domain.
pub(super) fn constant_rows(rows: &[Vec<Expr>], node: &GraphNode) -> Result<ChangelogBatch> {
    let one_row = RecordBatch::try_new_with_options(
        Arc::new(arrow::datatypes::Schema::empty()),
        Vec::new(),
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let empty = DFSchema::empty();
    let mut batches = Vec::with_capacity(rows.len());
    for row in rows {
        let calc = Calc::new(&empty, None, Some(row), &node.schema)?;
        batches.extend(calc.evaluate(ChangelogBatch::inserts(one_row.clone()))?);
    }
    let none = || ChangelogBatch::inserts(RecordBatch::new_empty(Arc::clone(node.arrow_schema())));
    Ok(ChangelogBatch::concat(&batches)?.unwrap_or_else(none))
}
