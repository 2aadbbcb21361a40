//! Reading: a source hands out readers, a reader yields frames, and workers decode frames into columns.
//!
//! The reader is asynchronous and does no more than find where frames begin and end; the decoder is synchronous, so that
//! several workers may decode frames of one reader at the same time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::Expr;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::Result;
pub use crate::format::MetadataColumn;

/// Whether a source ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundedness {
    /// It ends.
    Bounded,
    /// It goes on for ever.
    Unbounded,
}

/// Which columns a decoder must produce, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    /// Positions among the physical columns.
    pub physical: Vec<usize>,
    /// Keys of metadata columns; their columns come behind the physical ones.
    pub metadata: Vec<String>,
}

impl Projection {
    /// Chooses physical columns.
    pub fn of_columns(physical: &[usize]) -> Projection {
        Projection { physical: physical.to_vec(), metadata: Vec::new() }
    }
}

/// A piece of input that a worker can decode on its own.
#[derive(Debug, Clone)]
pub enum Frame {
    /// Encoded records, cut between two of them.
    Bytes {
        /// The records.
        data: Bytes,
        /// Where they come from, for errors and metadata: a file path or a topic.
        origin: std::sync::Arc<str>,
        /// Offset of the first byte (or record) in the origin.
        offset: u64,
    },
    /// Rows that need no decoding: the columns of the projection that the reader was opened with.
    Rows(ChangelogBatch),
    /// Rows that the decoder makes up: how many, counted on from which.
    Generate {
        /// The number of the first row.
        first: u64,
        /// How many rows.
        count: usize,
    },
}

/// How far a reader has read, in the source's own terms: split → position. Opaque to everyone else, kept in checkpoints.
pub type SourcePosition = BTreeMap<String, String>;

/// What a reader says when asked for more.
#[derive(Debug)]
pub enum SourceEvent {
    /// A frame.
    Frame(Frame),
    /// There is no more, for good.
    EndOfInput,
}

/// Reads frames. One task owns a reader.
#[async_trait]
pub trait SourceReader: Send {
    /// Returns the next frame, waiting for it. Cancel-safe: a call that is dropped loses nothing.
    async fn next(&mut self) -> Result<SourceEvent>;

    /// Returns the position just behind the last frame that was returned.
    fn position(&self) -> SourcePosition;

    /// Tells the reader that a checkpoint with this position is durable and its sinks have committed, so that it may release
    /// what lies before. May be repeated after a restart.
    async fn on_checkpoint_complete(&mut self, _position: &SourcePosition) -> Result<()> {
        Ok(())
    }
}

/// Decodes frames of one source into columns; each worker has its own.
pub trait FrameDecoder: Send {
    /// Decodes a frame into zero or more batches, in order. A frame is taken whole or the decoder fails.
    ///
    /// # Errors
    /// A record is malformed; the message names origin, line and field.
    fn decode(&mut self, frame: &Frame) -> Result<Vec<ChangelogBatch>>;

    /// Tells the decoder that nobody reads `-U`: it may leave them out, unread where that is faster, and need not.
    fn ignore_update_before(&mut self) {}
}

/// A table that can be read.
pub trait DynamicTableSource: Send + Sync + fmt::Debug {
    /// Returns a short text for EXPLAIN; never holds secrets.
    fn summary(&self) -> String;

    /// Returns the row kinds that the source produces.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::INSERT_ONLY
    }

    /// Returns whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Returns whether it ends by itself although the planner must treat it as unbounded, as Flink's datagen with sequences.
    fn ends_by_itself(&self) -> bool {
        self.boundedness() == Boundedness::Bounded
    }

    /// Returns the metadata columns that can be read.
    fn metadata_columns(&self) -> Vec<MetadataColumn> {
        Vec::new()
    }

    /// Returns about how many bytes will be read, if that is cheap to know. The batch planner uses it to choose parallelism.
    fn estimated_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the table as DataFusion reads it in batch, where the connector reads columns by itself and prunes what it need not read.
    /// Its columns are the physical columns, in order, in the Arrow types of Flink's types.
    fn table_provider(&self) -> Option<Arc<dyn TableProvider>> {
        None
    }

    /// Returns what EXPLAIN says of a scan with these conditions in batch mode: what is passed over, what is applied. Reads no data.
    fn scan_summary<'a>(&'a self, _filters: &'a [Expr]) -> BoxFuture<'a, Result<Option<String>>> {
        async { Ok(None) }.boxed()
    }

    /// Opens a reader at a position, or where the options say. No other columns are asked for than those of the projection; what a
    /// position means does not depend on it.
    ///
    /// # Errors
    /// What is to be read does not exist or cannot be reached.
    fn open(&self, projection: &Projection, start: Option<&SourcePosition>) -> Result<Box<dyn SourceReader>>;

    /// Makes a decoder for the columns of the projection.
    ///
    /// # Errors
    /// A column's type cannot be read by the format.
    fn decoder(&self, projection: &Projection) -> Result<Box<dyn FrameDecoder>>;
}
