//! The names of new files, `<writer>-<attempt>-<uuid>-<number>.parquet`, as Flink has them.
//!
//! The first half of the UUID is a hash of the sink's id, so that a job that goes on after a crash can tell its own unfinished files.

use std::sync::atomic::{AtomicU32, Ordering};

use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64;

/// Names files of one writer.
#[derive(Debug)]
pub(super) struct FileNames {
    writer: usize,
    run: Uuid,
    next_number: AtomicU32,
}

impl FileNames {
    /// Makes names for a writer of a sink.
    pub(super) fn new(sink_id: &str, writer: usize) -> FileNames {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&xxh3_64(sink_id.as_bytes()).to_be_bytes());
        bytes[8..].copy_from_slice(&Uuid::new_v4().into_bytes()[8..]);
        let run = Builder::from_custom_bytes(bytes).into_uuid();
        FileNames { writer, run, next_number: AtomicU32::new(1) }
    }

    /// Returns the name of the next data file.
    pub(super) fn next_data_file(&self) -> String {
        format!("{}.parquet", self.next_stem())
    }

    /// Returns the name of the next file of deletes.
    pub(super) fn next_delete_file(&self) -> String {
        format!("{}-deletes.parquet", self.next_stem())
    }

    fn next_stem(&self) -> String {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        format!("{:05}-0-{}-{number:05}", self.writer, self.run)
    }
}
