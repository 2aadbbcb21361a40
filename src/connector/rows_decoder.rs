//! The decoder of sources whose frames are rows already: it only chooses columns.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};

use super::{Frame, FrameDecoder, Projection};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};

/// Takes the columns of a projection out of rows. Such sources have no metadata columns.
#[derive(Debug)]
pub(super) struct RowsDecoder {
    physical: Vec<usize>,
}

impl RowsDecoder {
    /// Makes a decoder for the columns of a projection.
    ///
    /// # Errors
    /// Metadata columns are asked for, which no caller offers.
    pub(super) fn new(projection: &Projection) -> Result<RowsDecoder> {
        if !projection.metadata.is_empty() {
            return Err(Error::internal("a source of rows has no metadata columns"));
        }
        Ok(RowsDecoder { physical: projection.physical.clone() })
    }
}

impl FrameDecoder for RowsDecoder {
    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        let Frame::Rows(batch) = frame else {
            return Err(Error::internal("a frame without rows came to a decoder of rows"));
        };
        let rows = batch.rows();
        let schema = rows.schema().project(&self.physical)?;
        let columns = self.physical.iter().map(|at| Arc::clone(rows.column(*at))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let projected = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
        Ok(vec![batch.with_rows(projected)])
    }
}
