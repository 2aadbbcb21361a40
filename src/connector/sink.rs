//! Writing in two phases: writers prepare what a checkpoint covers, the committer makes it visible once the checkpoint is durable.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;

use super::{OperatorStatus, SourcePosition};
use crate::changelog::{ChangelogBatch, ChangelogMode};
use crate::error::{Error, FlinkClass, Result};
use crate::state::{StateChanges, StateTable};

/// The number of a checkpoint within a job. A batch job has one, at its end.
pub type CheckpointId = u64;

/// Which of the user's streams a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Where connectors put lines for the user to see. The shell owns the terminal and prints them above its prompt.
pub trait OutputPort: Send + Sync + fmt::Debug {
    /// Prints whole lines; the text ends with a line break.
    fn print(&self, stream: OutputStream, lines: &str);

    /// Tells the user something, on standard error, so that it is never taken for rows.
    fn tell(&self, text: &str) {
        self.print(OutputStream::Err, &format!("[INFO] {text}\n"));
    }

    /// Tells the user what he might not expect, in the same way.
    fn warn(&self, text: &str) {
        self.print(OutputStream::Err, &format!("[WARNING] {text}\n"));
    }
}

/// What a writer knows of the job it belongs to.
#[derive(Debug, Clone)]
pub struct WriterContext {
    /// Which sink of which job this is: equal after a restart of the job, and different from every other sink. What a crash
    /// leaves behind is known by it.
    pub sink_id: Arc<str>,
    /// Number of this writer, from 0.
    pub writer: usize,
    /// How many writers the sink has.
    pub writer_count: usize,
    /// Where lines for the user go.
    pub output: Arc<dyn OutputPort>,
    /// Whether what is there is to be replaced (INSERT OVERWRITE).
    pub overwrite: bool,
    /// Whether what is prepared first takes the place of everything that the table holds: a job reads its sources anew, and what it
    /// wrote before goes in the moment in which the new content is there.
    pub replaces_content: bool,
    /// Which kinds the rows may have.
    pub mode: ChangelogMode,
    /// Where the writer says what it has done.
    pub status: OperatorStatus,
}

/// Something a writer has prepared and a committer makes visible. It survives restarts inside a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committable(pub Vec<u8>);

/// The checkpoint that a commit belongs to: it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedCheckpoint {
    /// Its number.
    pub number: CheckpointId,
    /// How far each source had read, by the uid of its node. None in a batch job.
    pub positions: BTreeMap<String, SourcePosition>,
}

/// A table that can be written.
#[async_trait]
pub trait DynamicTableSink: Send + Sync + fmt::Debug {
    /// Returns a short text for EXPLAIN; never holds secrets.
    fn summary(&self) -> String;

    /// Returns which of the requested kinds the sink takes. The planner reports what is left over.
    fn changelog_mode(&self, requested: ChangelogMode) -> ChangelogMode;

    /// Returns whether a retraction takes away a row that equals it in all columns, so that it must hold the values with which the row
    /// was given.
    fn finds_rows_by_value(&self) -> bool {
        false
    }

    /// Returns whether INSERT OVERWRITE can replace what is there.
    fn supports_overwrite(&self) -> bool {
        false
    }

    /// Returns what is said where INSERT OVERWRITE is to run in streaming mode, in the connector's words: rows that need not end can
    /// replace nothing.
    fn streaming_overwrite_error(&self) -> Error {
        Error::validation("Streaming mode not support overwrite.").class(FlinkClass::TABLE)
    }

    /// Returns whether the content of the table can be replaced in one moment (`WriterContext::replaces_content`).
    fn can_replace_content(&self) -> bool {
        false
    }

    /// Returns whether the table holds rows, if that is known: a job that reads its sources anew leaves those there that have gone from
    /// the source meanwhile.
    fn holds_rows(&self) -> Option<bool> {
        None
    }

    /// Returns the last checkpoint of a sink with this id that was committed, if that is known: a job that goes on from an earlier one
    /// must not give its checkpoints the numbers of those.
    fn newest_commit(&self, _sink_id: &str) -> Option<CheckpointId> {
        None
    }

    /// Returns whether one writer takes all rows, so that they keep their order.
    fn has_single_writer(&self) -> bool {
        false
    }

    /// Returns whether rows become visible only with a checkpoint; without checkpoints that is when the job ends.
    fn commits_with_checkpoints(&self) -> bool {
        false
    }

    /// Returns the columns whose equal values must meet at one writer, given the table's key (positions, empty without one) and the
    /// kinds of the rows; none if any writer may take any row.
    fn distribution(&self, keys: &[usize], mode: ChangelogMode) -> Vec<usize> {
        if mode == ChangelogMode::INSERT_ONLY { Vec::new() } else { keys.to_vec() }
    }

    /// Describes what a writer remembers between checkpoints, given the kinds of its rows. The order is that in which tables are
    /// saved and loaded.
    fn state_tables(&self, _mode: ChangelogMode) -> Vec<StateTable> {
        Vec::new()
    }

    /// Opens a writer.
    ///
    /// # Errors
    /// The place cannot be written.
    async fn open_writer(&self, ctx: WriterContext) -> Result<Box<dyn SinkWriter>>;

    /// Opens the committer, of which a sink has one.
    ///
    /// # Errors
    /// The place cannot be written.
    async fn open_committer(&self, ctx: WriterContext) -> Result<Box<dyn Committer>>;
}

/// Takes rows.
#[async_trait]
pub trait SinkWriter: Send {
    /// Writes a batch: the persisted columns of the table, in order.
    async fn write(&mut self, batch: ChangelogBatch) -> Result<()>;

    /// Finishes what was written since the last call, so that it can be committed. What was not prepared is dropped with the
    /// writer.
    async fn prepare_commit(&mut self, checkpoint: CheckpointId) -> Result<Vec<Committable>>;

    /// Takes what has changed in the writer's state since the last call (or since it was loaded), one entry per table of
    /// `DynamicTableSink::state_tables`. Comes after `prepare_commit`, for the same checkpoint.
    ///
    /// # Errors
    /// Columns cannot be built.
    fn take_changes(&mut self) -> Result<Vec<StateChanges>> {
        Ok(Vec::new())
    }

    /// Puts rows back that were saved: those of the key groups that this writer owns, each key once, in any order. Comes before any
    /// row is written, table by table.
    ///
    /// # Errors
    /// The rows do not fit.
    fn load(&mut self, _table: usize, _rows: &RecordBatch) -> Result<()> {
        Ok(())
    }

    /// Returns how many bytes the state holds.
    fn state_bytes(&self) -> usize {
        0
    }
}

/// Makes prepared work visible.
#[async_trait]
pub trait Committer: Send {
    /// Commits what belongs to a checkpoint. Idempotent: repeated after a crash, with the same arguments.
    async fn commit(&mut self, checkpoint: &CompletedCheckpoint, committables: &[Committable]) -> Result<()>;

    /// Commits what belongs to the checkpoint from which a job goes on. It may have landed, all of it or a part, a long time ago; who
    /// reads the table may have taken it away since, which is no failure.
    async fn commit_after_recovery(
        &mut self,
        checkpoint: &CompletedCheckpoint,
        committables: &[Committable],
    ) -> Result<()> {
        self.commit(checkpoint, committables).await
    }

    /// Removes what the writers of the sink with this id have left behind, save what a checkpoint has still to commit. A job
    /// that goes on from a checkpoint calls it before it opens writers, with the id that the sink had then, and only if it knows
    /// that no other process runs that job. A job that has failed or was cancelled, and from which nothing goes on, calls it with its
    /// own id once its writers are gone, but not after a commit that may have landed.
    async fn discard_unfinished(&mut self, _sink_id: &str, _kept: &[Committable]) -> Result<()> {
        Ok(())
    }

    /// Returns what tells the place that is written from another one that has its name; None if nothing does. A checkpoint keeps it.
    fn place(&self) -> Option<String> {
        None
    }

    /// Sees that the place is that of a checkpoint from which the job goes on: what `place` returned then.
    ///
    /// # Errors
    /// It is another one, which lacks what was written before the checkpoint.
    fn check_place(&self, _place: &str, _checkpoint: CheckpointId) -> Result<()> {
        Ok(())
    }

    /// Says that the job has ended and that its checkpoints are gone: nobody will ask any more what of them was committed.
    async fn forget_commits(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns whether a commit that has failed may have landed all the same, now or a little later: what it names must stay.
pub(crate) fn may_have_landed(error: &Error) -> bool {
    error.flink_class() == FlinkClass::ICEBERG_COMMIT_STATE_UNKNOWN
}

/// The committer of sinks whose rows are visible as soon as they are written.
#[derive(Debug)]
pub(crate) struct NoCommitter;

#[async_trait]
impl Committer for NoCommitter {
    async fn commit(
        &mut self,
        _checkpoint: &CompletedCheckpoint,
        _committables: &[Committable],
    ) -> Result<()> {
        Ok(())
    }
}
