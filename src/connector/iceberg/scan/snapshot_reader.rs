//! Reads a table in streaming mode: file by file in an order that never changes, so that a job goes on in the middle of a file of the
//! snapshot that it began with, whatever has become of the table meanwhile.
//!
//! The position names what is read (a snapshot, or appends), the file, and how many of its rows were handed out, deleted ones not
//! counted. All three mean the same whichever columns are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use super::live_files::LiveFile;
use super::provider::{IcebergTableProvider, PreparedScan};
use crate::changelog::ChangelogBatch;
use crate::connector::iceberg::read_target::ReadTarget;
use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, ErrorKind, Result};

/// The parts of a position.
const SNAPSHOT: &str = "snapshot";
const APPENDS: &str = "appends";
const FILE: &str = "file";
const ROWS: &str = "rows";
const TOTAL: &str = "total";

/// Reads files one after the other.
pub(super) struct SnapshotReader {
    provider: Arc<IcebergTableProvider>,
    columns: Vec<usize>,
    /// How many rows are read at most, of all files together.
    limit: Option<usize>,
    /// The file that is read, and how many of its rows were handed out.
    file: Option<String>,
    rows: usize,
    /// How many rows of all files were handed out.
    total: usize,
    files: Option<Files>,
}

/// The files, once they are known.
struct Files {
    files: Vec<LiveFile>,
    scan: PreparedScan,
    /// The place of the file that is read.
    place: usize,
    /// Its rows, once it is open.
    open: Option<OpenFile>,
}

struct OpenFile {
    batches: SendableRecordBatchStream,
    /// How many rows are still to be passed over.
    skip: usize,
}

impl SnapshotReader {
    /// Begins to read the rows that `provider` is about, or those of a position.
    ///
    /// # Errors
    /// The position is none, or its snapshot has expired.
    pub(super) fn new(
        provider: &Arc<IcebergTableProvider>,
        columns: &[usize],
        limit: Option<usize>,
        start: Option<&SourcePosition>,
    ) -> Result<SnapshotReader> {
        let columns = columns.to_vec();
        let provider = Arc::clone(provider);
        let mut reader =
            SnapshotReader { provider, columns, limit, file: None, rows: 0, total: 0, files: None };
        let Some(start) = start.filter(|start| !start.is_empty()) else { return Ok(reader) };
        let rows = target_of(start)?;
        reader.check_not_expired(&rows)?;
        reader.provider = Arc::new(reader.provider.with_rows(rows));
        reader.file = start.get(FILE).cloned();
        reader.rows = count(start, ROWS)?;
        reader.total = count(start, TOTAL)?;
        Ok(reader)
    }

    fn check_not_expired(&self, rows: &ReadTarget) -> Result<()> {
        let table = self.provider.table();
        let gone = match rows {
            ReadTarget::Nothing => None,
            ReadTarget::Snapshot(id) => Some(*id).filter(|id| table.metadata().snapshot_by_id(*id).is_none()),
            ReadTarget::Appends(ids) => {
                ids.iter().copied().find(|id| table.metadata().snapshot_by_id(*id).is_none())
            }
        };
        match gone {
            None => Ok(()),
            Some(id) => Err(state_error(format!(
                "the job cannot go on reading table '{}': it was within snapshot {id}, which has expired since",
                table.ident()
            ))
            .hint("Start the job anew, without its checkpoint; keep snapshots longer than jobs may be stopped.")),
        }
    }

    /// Finds the files and where to go on among them.
    async fn find_files(&mut self) -> Result<Files> {
        let mut files = self.provider.plan(&[]).await?.files;
        files.sort_by(|left, right| order_of(left).cmp(&order_of(right)));
        let place = match &self.file {
            None => 0,
            Some(path) => {
                let found = files.iter().position(|file| file.data.file.file_path() == path);
                found.ok_or_else(|| {
                    state_error(format!(
                        "the job cannot go on reading table '{}': file '{path}' is not in the snapshot that it was within",
                        self.provider.table().ident()
                    ))
                })?
            }
        };
        let scan = self.provider.prepare(&files, &self.columns)?;
        Ok(Files { files, scan, place, open: None })
    }

    /// Returns the next rows, of whichever file.
    async fn next_rows(&mut self) -> Result<Option<ChangelogBatch>> {
        if self.limit.is_some_and(|limit| self.total >= limit) {
            return Ok(None);
        }
        if self.files.is_none() {
            self.files = Some(self.find_files().await?);
        }
        let Some(files) = &mut self.files else { return Ok(None) };
        while let Some(file) = files.files.get(files.place) {
            let open = match &mut files.open {
                Some(open) => open,
                None => {
                    self.file = Some(file.data.file.file_path().to_owned());
                    let batches = self.provider.read_file(&files.scan, file.clone())?;
                    files.open.insert(OpenFile { batches, skip: self.rows })
                }
            };
            while let Some(batch) = open.batches.next().await.transpose()? {
                let skipped = open.skip.min(batch.num_rows());
                open.skip -= skipped;
                let left = batch.num_rows() - skipped;
                let wanted = self.limit.map_or(left, |limit| left.min(limit - self.total));
                if wanted > 0 {
                    self.rows += wanted;
                    self.total += wanted;
                    return Ok(Some(ChangelogBatch::inserts(batch.slice(skipped, wanted))));
                }
            }
            files.open = None;
            files.place += 1;
            self.rows = 0;
            self.file = files
                .files
                .get(files.place)
                .map(|file| file.data.file.file_path().to_owned())
                .or(self.file.take());
        }
        Ok(None)
    }
}

#[async_trait]
impl SourceReader for SnapshotReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        Ok(match self.next_rows().await? {
            Some(rows) => SourceEvent::Frame(Frame::Rows(rows)),
            None => SourceEvent::EndOfInput,
        })
    }

    fn position(&self) -> SourcePosition {
        let mut position = SourcePosition::new();
        match self.provider.rows() {
            ReadTarget::Nothing => position.insert(SNAPSHOT.to_owned(), String::new()),
            ReadTarget::Snapshot(id) => position.insert(SNAPSHOT.to_owned(), id.to_string()),
            ReadTarget::Appends(ids) => {
                let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
                position.insert(APPENDS.to_owned(), ids.join(","))
            }
        };
        if let Some(file) = &self.file {
            position.insert(FILE.to_owned(), file.clone());
            position.insert(ROWS.to_owned(), self.rows.to_string());
            position.insert(TOTAL.to_owned(), self.total.to_string());
        }
        position
    }
}

/// Returns what orders files: when their rows came, and then their names.
fn order_of(file: &LiveFile) -> (i64, &str) {
    (file.data_sequence_number, file.data.file.file_path())
}

/// Reads which rows a position is about.
fn target_of(position: &SourcePosition) -> Result<ReadTarget> {
    let number = |text: &str| {
        text.parse::<i64>().map_err(|error| state_error(format!("'{text}' is no snapshot")).caused_by(error))
    };
    match (position.get(SNAPSHOT).map(String::as_str), position.get(APPENDS).map(String::as_str)) {
        (Some(""), _) => Ok(ReadTarget::Nothing),
        (Some(id), _) => Ok(ReadTarget::Snapshot(number(id)?)),
        (None, Some("")) => Ok(ReadTarget::Appends(BTreeSet::new())),
        (None, Some(ids)) => Ok(ReadTarget::Appends(ids.split(',').map(number).collect::<Result<_>>()?)),
        (None, None) => Err(state_error("a position in an Iceberg table names no snapshot")),
    }
}

/// Reads a number of a position.
fn count(position: &SourcePosition, key: &str) -> Result<usize> {
    let Some(text) = position.get(key) else { return Ok(0) };
    text.parse().map_err(|error| state_error(format!("'{text}' is no number of rows")).caused_by(error))
}

fn state_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::State, message)
}
