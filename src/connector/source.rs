//! Reading: a source hands out readers, a reader yields frames, and workers decode frames into columns.
//!
//! The reader is asynchronous and does no more than find where frames begin and end; the decoder is synchronous, so that
//! several workers may decode frames of one reader at the same time.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::Expr;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::{OperatorStatus, OutputPort};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::{Error, Result};
pub use crate::format::MetadataColumn;
use crate::options::JobResume;

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
        /// About how many bytes a row will have.
        row_bytes: usize,
    },
    /// The table has been emptied: every row of it that came before is gone, and what follows is new. Only tables that say so
    /// (`DynamicTableSource::may_be_cleared`) have such frames, and decoders never see them.
    Cleared,
}

/// How far a reader has read, in the source's own terms: split → position. Opaque to everyone else, kept in checkpoints.
pub type SourcePosition = BTreeMap<String, String>;

/// What a reader says when asked for more.
#[derive(Debug)]
pub enum SourceEvent {
    /// A frame, of the first table if several are read. A checkpoint may follow.
    Frame(Frame),
    /// A frame that is a part of something whole, such as a transaction: no checkpoint comes before the next `Boundary`.
    Part {
        /// The table's place among those that the reader was opened with.
        table: usize,
        /// The frame.
        frame: Frame,
    },
    /// What came so far is whole. The reader's position may have moved without any frame, so checkpoints note it.
    Boundary,
    /// There is no more, for good.
    EndOfInput,
}

/// One of the tables that a reader reads.
#[derive(Debug)]
pub struct TableRead<'a> {
    /// `catalog.database.table`, for messages.
    pub name: &'a str,
    /// The table.
    pub source: &'a dyn DynamicTableSource,
    /// What is read of it.
    pub projection: Projection,
    /// Whether anybody takes its `-U`.
    pub wants_update_before: bool,
}

/// What a reader is told of the job that it reads for.
#[derive(Debug, Clone)]
pub struct ReaderContext {
    /// The job's name, which a later start of the same job has again.
    pub job: Arc<str>,
    /// Whether the job writes into tables: a query that is only looked at leaves nothing behind on a server.
    pub is_insert: bool,
    /// Whether checkpoints come from time to time, so that readers release what they cover; without any nothing is ever released.
    pub has_checkpoints: bool,
    /// How many workers run the job.
    pub workers: usize,
    /// What the job starts from; for sources that cannot go on where they were.
    pub resume: JobResume,
    /// Where the reader says how far it is.
    pub status: OperatorStatus,
    /// Where it tells the user what he should know; None where nobody looks.
    pub output: Option<Arc<dyn OutputPort>>,
}

impl ReaderContext {
    /// Returns the context of a query in batch mode, which is read once, to the end.
    pub fn batch(workers: usize) -> ReaderContext {
        ReaderContext {
            job: "collect".into(),
            is_insert: false,
            has_checkpoints: false,
            workers,
            resume: JobResume::None,
            status: OperatorStatus::default(),
            output: None,
        }
    }

    /// Tells the user something.
    pub fn tell(&self, text: &str) {
        if let Some(output) = &self.output {
            output.tell(text);
        }
    }

    /// Tells the user what he might not expect.
    pub fn warn(&self, text: &str) {
        if let Some(output) = &self.output {
            output.warn(text);
        }
    }
}

/// Reads frames. One task owns a reader.
#[async_trait]
pub trait SourceReader: Send {
    /// Returns the next frame, waiting for it. Cancel-safe: a call that is dropped loses nothing.
    async fn next(&mut self) -> Result<SourceEvent>;

    /// Returns the position just behind the last frame that was returned.
    fn position(&self) -> SourcePosition;

    /// Returns whether a checkpoint may come before the first event. If not, what comes first is a part, and it waits for the first
    /// boundary.
    fn begins_whole(&self) -> bool {
        true
    }

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
pub trait DynamicTableSource: Any + Send + Sync + fmt::Debug {
    /// Returns a short text for EXPLAIN; never holds secrets.
    fn summary(&self) -> String;

    /// Returns the row kinds that the source produces.
    fn changelog_mode(&self) -> ChangelogMode {
        ChangelogMode::INSERT_ONLY
    }

    /// Returns whether the reader may say that the table has been emptied (`Frame::Cleared`). Then all its rows are remembered by their
    /// primary key, which it must have, so that they can be taken back one by one.
    fn may_be_cleared(&self) -> bool {
        false
    }

    /// Returns whether it ends by itself.
    fn boundedness(&self) -> Boundedness;

    /// Returns the option and its value that make it end by itself, if there is one.
    fn bounding_option(&self) -> Option<(&'static str, &'static str)> {
        None
    }

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

    /// Returns what makes several tables one source: those of a job with an equal group are read by one reader, so that checkpoints
    /// show all of them at one moment. None if the table is read by itself.
    fn group(&self) -> Option<String> {
        None
    }

    /// Opens the reader of the tables of a group, of which this is the first, at a position or where the options say. A job opens
    /// every reader so; `open` is for tables that need to know no more.
    ///
    /// # Errors
    /// As of `open`, and the tables' options contradict each other.
    fn open_group(
        &self,
        tables: &[TableRead<'_>],
        _context: &ReaderContext,
        start: Option<&SourcePosition>,
    ) -> Result<Box<dyn SourceReader>> {
        match tables {
            [table] => self.open(&table.projection, start),
            _ => Err(Error::internal("several tables for a reader of one")),
        }
    }

    /// Removes what readers have made elsewhere for a job that was stopped for good, if the options say that it goes with the job.
    ///
    /// # Errors
    /// It cannot be removed.
    fn forget_job<'a>(
        &'a self,
        _tables: &'a [TableRead<'a>],
        _context: &'a ReaderContext,
    ) -> BoxFuture<'a, Result<()>> {
        async { Ok(()) }.boxed()
    }

    /// Makes a decoder for the columns of the projection.
    ///
    /// # Errors
    /// A column's type cannot be read by the format.
    fn decoder(&self, projection: &Projection) -> Result<Box<dyn FrameDecoder>>;
}
