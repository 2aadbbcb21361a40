//! The decoder of sources whose frames are rows already: their readers have chosen the columns.

use super::{Frame, FrameDecoder};
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};

/// Hands rows on.
#[derive(Debug)]
pub(super) struct RowsDecoder;

impl FrameDecoder for RowsDecoder {
    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>> {
        match frame {
            Frame::Rows(batch) => Ok(vec![batch.clone()]),
            _ => Err(Error::internal("a frame without rows came to a decoder of rows")),
        }
    }
}
