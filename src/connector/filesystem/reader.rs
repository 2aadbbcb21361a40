//! Reads files one after the other into frames of some megabytes, cut between records.
//!
//! All file work happens on blocking threads: while workers decode one frame the next one is being read.
//!
//! The position names every file that was begun, since nothing else tells old files from new ones. A file that was read and then
//! removed is forgotten with the next listing, so that a folder that is cleaned up keeps the position small.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::listing::{self, FileEntry, unreadable};
use super::{FileTable, path};
use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Framing, RecordCutter};

/// The size of a frame, as long as records are shorter: it and its columns fit in a core's cache.
pub(super) const FRAME_BYTES: usize = 1 << 20;

/// How many frames that were handed out are watched, to use their memory again: memory that is new to the process costs as much
/// time as reading a file into it. A job of two workers has up to 18 under way: those of an epoch, and as many that are read ahead.
const WATCHED_MAX: usize = 32;

// Limit: a record longer than this is taken for a file in another format, or one quote too many.
const RECORD_BYTES_MAX: usize = 256 << 20;

/// The position of a file that was read to its end.
const FINISHED: &str = "end";

/// Reads the files of a table.
pub(super) struct FileReader {
    table: Arc<FileTable>,
    position: SourcePosition,
    known: BTreeSet<Arc<str>>,
    state: State,
    next_listing: Option<Instant>,
}

enum State {
    /// Nothing is under way.
    Idle(Cursor),
    /// A blocking thread has the cursor.
    Reading(JoinHandle<(Cursor, Result<Option<Step>>)>),
    /// A blocking thread looks for new files.
    Listing(Cursor, JoinHandle<Result<Vec<FileEntry>>>),
    /// A read failed in a way that took the cursor along.
    Broken,
}

/// What one read gave.
struct Step {
    frame: Option<Frame>,
    path: Arc<str>,
    /// Where the next frame begins; None at the end of the file.
    next: Option<u64>,
}

/// The files still to be read, the open one included.
struct Cursor {
    waiting: VecDeque<(Arc<str>, u64)>,
    open: Option<OpenFile>,
    /// The frames handed out last, oldest first.
    watched: VecDeque<Bytes>,
    framing: Framing,
    frame_bytes: usize,
}

struct OpenFile {
    path: Arc<str>,
    content: Box<dyn Read + Send>,
    cutter: Option<RecordCutter>,
    /// What was read behind the last frame.
    carry: Vec<u8>,
    /// The offset at which `carry` begins.
    offset: u64,
}

impl FileReader {
    /// Lists the files and prepares to read from a position, or from the start.
    pub(super) fn new(
        table: Arc<FileTable>,
        framing: Framing,
        frame_bytes: usize,
        start: Option<&SourcePosition>,
    ) -> Result<FileReader> {
        let (waiting, watched) = (VecDeque::new(), VecDeque::new());
        let cursor = Cursor { waiting, open: None, watched, framing, frame_bytes };
        let files = listing::list(&table)?;
        check_position(start, &files)?;
        let mut reader = FileReader {
            next_listing: None,
            position: start.cloned().unwrap_or_default(),
            known: BTreeSet::new(),
            state: State::Broken,
            table,
        };
        reader.state = State::Idle(reader.enqueue(cursor, files)?);
        Ok(reader)
    }

    /// Adds files that are not known yet, at the offset where the position says, and forgets those that are gone.
    fn enqueue(&mut self, mut cursor: Cursor, files: Vec<FileEntry>) -> Result<Cursor> {
        let listed: HashSet<&str> = files.iter().map(|file| &*file.path).collect();
        self.position.retain(|path, at| at != FINISHED || listed.contains(path.as_str()));
        self.known.retain(|path| listed.contains(&**path) || self.position.contains_key(&**path));
        for file in files {
            if !self.known.insert(Arc::clone(&file.path)) {
                continue;
            }
            self.check_partitions(&file.path)?;
            match self.position.get(&*file.path).map(String::as_str) {
                Some(FINISHED) => {}
                Some(offset) => {
                    let offset = offset.parse().map_err(|error| {
                        Error::new(
                            ErrorKind::State,
                            format!("'{offset}' is no offset in file '{}'", file.path),
                        )
                        .caused_by(error)
                    })?;
                    cursor.waiting.push_back((file.path, offset));
                }
                None => cursor.waiting.push_back((file.path, 0)),
            }
        }
        Ok(cursor)
    }

    /// Fails for a file that is not below a folder of each partition key.
    fn check_partitions(&self, file: &str) -> Result<()> {
        let table = &self.table;
        let keys = || table.partition_keys.iter().map(|key| key.name.as_str());
        let values = path::partition_values(&table.root, Path::new(file), keys());
        match keys().zip(&values).find(|(_, value)| value.is_none()) {
            Some((key, _)) => {
                Err(Error::data(format!("file '{file}' has no value for partition column '{key}'"))
                    .hint(format!("Files of a partitioned table are in folders named '{key}=<value>'.")))
            }
            None => Ok(()),
        }
    }

    fn begin_reading(&mut self, mut cursor: Cursor) {
        self.state = State::Reading(spawn_blocking(move || {
            let step = cursor.read();
            (cursor, step)
        }));
    }

    fn record(&mut self, step: &Step) {
        let next = step.next.map_or_else(|| FINISHED.to_owned(), |offset| offset.to_string());
        self.position.insert(step.path.to_string(), next);
    }
}

#[async_trait]
impl SourceReader for FileReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        loop {
            // Whatever is awaited below stays in `self.state` until it is done, so that a dropped call loses nothing.
            match std::mem::replace(&mut self.state, State::Broken) {
                State::Idle(cursor) if cursor.is_empty() => {
                    let Some(interval) = self.table.monitor_interval else {
                        self.state = State::Idle(cursor);
                        return Ok(SourceEvent::EndOfInput);
                    };
                    self.state = State::Idle(cursor);
                    let due = *self.next_listing.get_or_insert_with(|| Instant::now() + interval);
                    sleep_until(due).await;
                    self.next_listing = None;
                    let table = Arc::clone(&self.table);
                    if let State::Idle(cursor) = std::mem::replace(&mut self.state, State::Broken) {
                        self.state = State::Listing(cursor, spawn_blocking(move || listing::list(&table)));
                    }
                }
                State::Idle(cursor) => self.begin_reading(cursor),
                State::Reading(task) => {
                    self.state = State::Reading(task);
                    let State::Reading(task) = &mut self.state else { continue };
                    let done = task.await;
                    self.state = State::Broken;
                    let (cursor, step) = done.map_err(task_failed)?;
                    match step {
                        Ok(Some(step)) => {
                            self.record(&step);
                            if cursor.is_empty() {
                                self.state = State::Idle(cursor);
                            } else {
                                self.begin_reading(cursor);
                            }
                            if let Some(frame) = step.frame {
                                return Ok(SourceEvent::Frame(frame));
                            }
                        }
                        Ok(None) => self.state = State::Idle(cursor),
                        Err(error) => {
                            self.state = State::Idle(cursor);
                            return Err(error);
                        }
                    }
                }
                State::Listing(cursor, task) => {
                    self.state = State::Listing(cursor, task);
                    let State::Listing(_, task) = &mut self.state else { continue };
                    let done = task.await;
                    let State::Listing(cursor, _) = std::mem::replace(&mut self.state, State::Broken) else {
                        continue;
                    };
                    let files = done.map_err(task_failed)??;
                    self.state = State::Idle(self.enqueue(cursor, files)?);
                }
                State::Broken => {
                    return Err(Error::internal("the reader of files was used after it had failed"));
                }
            }
        }
    }

    fn position(&self) -> SourcePosition {
        self.position.clone()
    }
}

/// Fails if a file that was read in part is gone, or shorter than what was read of it: its rows would be missing.
fn check_position(start: Option<&SourcePosition>, files: &[FileEntry]) -> Result<()> {
    let begun = start.into_iter().flatten().filter(|(_, at)| at.as_str() != FINISHED);
    for (path, at) in begun {
        let file = files.iter().find(|file| *file.path == **path);
        let is_there = file.is_some_and(|file| {
            listing::is_compressed(Path::new(path)) || at.parse().is_ok_and(|at: u64| at <= file.size)
        });
        if !is_there {
            return Err(Error::new(
                ErrorKind::State,
                format!("file '{path}' was read up to offset {at} and is now gone or shorter"),
            )
            .hint("Put the file back, or start the job without its state."));
        }
    }
    Ok(())
}

fn task_failed(error: tokio::task::JoinError) -> Error {
    Error::internal("reading a file panicked").caused_by(error)
}

impl Cursor {
    fn is_empty(&self) -> bool {
        self.open.is_none() && self.waiting.is_empty()
    }

    /// Returns memory for a frame: that of an earlier one which nobody looks at any more, or none yet.
    fn memory(&mut self) -> Vec<u8> {
        // Frames are let go in about the order in which they were handed out, so that only the oldest needs a look.
        if !self.watched.front().is_some_and(Bytes::is_unique) {
            return Vec::new();
        }
        let free = self.watched.pop_front().and_then(|frame| frame.try_into_mut().ok());
        let mut memory = free.unwrap_or_default();
        memory.clear();
        Vec::from(memory)
    }

    /// Remembers a frame that is handed out.
    fn watch(&mut self, data: &Bytes) {
        if data.len() <= self.frame_bytes {
            self.watched.push_back(data.clone());
        }
        if self.watched.len() > WATCHED_MAX {
            self.watched.pop_front();
        }
    }

    /// Reads the next frame, or finds that there are no more files.
    fn read(&mut self) -> Result<Option<Step>> {
        let memory = self.memory();
        let file = match &mut self.open {
            Some(file) => file,
            None => {
                let Some((path, offset)) = self.waiting.pop_front() else { return Ok(None) };
                self.open.insert(OpenFile::new(path, offset, self.framing)?)
            }
        };
        let (start, path) = (file.offset, Arc::clone(&file.path));
        let (data, start, is_end) = file
            .read_frame(memory, self.frame_bytes)
            .map(|(data, skipped, is_end)| (data, start + skipped, is_end))?;
        let next = (!is_end).then_some(file.offset);
        if is_end {
            self.open = None;
        }
        if data.is_empty() {
            return Ok(Some(Step { frame: None, path, next }));
        }
        let data = Bytes::from(data);
        self.watch(&data);
        let frame = Frame::Bytes { data, origin: Arc::clone(&path), offset: start };
        Ok(Some(Step { frame: Some(frame), path, next }))
    }
}

impl OpenFile {
    fn new(path: Arc<str>, offset: u64, framing: Framing) -> Result<OpenFile> {
        let content = listing::open(&path, offset)?;
        let cutter = match framing {
            Framing::Lines(dialect) => Some(RecordCutter::new(dialect)),
            Framing::Whole => None,
        };
        Ok(OpenFile { path, content, cutter, carry: Vec::new(), offset })
    }

    /// Fills memory with whole records, and returns it, how many bytes before them are no data, and whether the file ends there.
    fn read_frame(&mut self, memory: Vec<u8>, frame_bytes: usize) -> Result<(Vec<u8>, u64, bool)> {
        let mut buffer = memory;
        buffer.append(&mut self.carry);
        let mut skipped = 0;
        let mut boundary = None;
        let mut is_end = false;
        while boundary.is_none() && !is_end {
            let before = buffer.len();
            let wanted = if before < frame_bytes { frame_bytes - before } else { frame_bytes };
            buffer.reserve_exact(wanted);
            let read = self.content.by_ref().take(wanted as u64).read_to_end(&mut buffer);
            let count = read.map_err(|error| unreadable(Path::new(&*self.path), error))?;
            is_end = count < wanted;
            if self.offset == 0 && before == 0 && buffer.starts_with(b"\xef\xbb\xbf") {
                buffer.drain(..3);
                skipped = 3;
            }
            if let Some(cutter) = &mut self.cutter {
                boundary = cutter.advance(&buffer[before..]).map(|at| before + at);
            }
            if boundary.is_none() && !is_end && buffer.len() > RECORD_BYTES_MAX {
                return Err(self.endless_record());
            }
        }
        if is_end {
            boundary = Some(buffer.len());
        }
        let boundary = boundary.unwrap_or(buffer.len());
        if boundary < buffer.len() {
            self.carry.extend_from_slice(&buffer[boundary..]);
            buffer.truncate(boundary);
        }
        self.offset += skipped + boundary as u64;
        Ok((buffer, skipped, is_end))
    }

    fn endless_record(&self) -> Error {
        let lines = listing::count_lines(&self.path, self.offset).unwrap_or(0);
        Error::data(format!(
            "file '{}' has a record that is longer than {} MB; it begins in line {}",
            self.path,
            RECORD_BYTES_MAX >> 20,
            lines + 1
        ))
        .hint("Is the format the right one, and is a quote left open? Option 'csv.disable-quote-character' takes quotes as text.")
    }
}
