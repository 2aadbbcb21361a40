//! The names of new files, `<writer>-<attempt>-<uuid>-<number>.parquet`, as Flink has them.
//!
//! The first half of the UUID is a hash of the sink's id, so that a job that goes on after a crash can tell its own unfinished files.

use std::sync::atomic::{AtomicU32, Ordering};

use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64;

/// How many characters of a UUID come from the sink.
const SINK_DIGITS: usize = 18;

/// Returns a new UUID, the first half of which is that of all runs of a sink.
fn run_of(sink_id: &str) -> Uuid {
    let mut bytes = Uuid::new_v4().into_bytes();
    bytes[..8].copy_from_slice(&xxh3_64(sink_id.as_bytes()).to_be_bytes());
    Builder::from_custom_bytes(bytes).into_uuid()
}

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
        FileNames { writer, run: run_of(sink_id), next_number: AtomicU32::new(1) }
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

/// Tells the files of a sink, of any of its runs.
#[derive(Debug)]
pub(super) struct SinkFiles {
    mark: String,
}

impl SinkFiles {
    /// Tells those of a sink.
    pub(super) fn of(sink_id: &str) -> SinkFiles {
        SinkFiles { mark: format!("-0-{}-", &run_of(sink_id).to_string()[..SINK_DIGITS]) }
    }

    /// Returns whether a file is named as one of them.
    pub(super) fn hold(&self, name: &str) -> bool {
        name.ends_with(".parquet") && name.contains(&self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_flinks_and_tell_the_sink() {
        let names = FileNames::new("job/sink", 3);
        let (data, deletes) = (names.next_data_file(), names.next_delete_file());
        assert!(data.starts_with("00003-0-") && data.ends_with("-00001.parquet"), "{data}");
        assert!(deletes.ends_with("-00002-deletes.parquet"), "{deletes}");
        assert_eq!(data.len(), "00003-0--00001.parquet".len() + 36);
        let of_sink = SinkFiles::of("job/sink");
        assert!(of_sink.hold(&data) && of_sink.hold(&deletes));
        assert!(!SinkFiles::of("job/other").hold(&data) && !of_sink.hold("x.parquet"));
        assert_ne!(FileNames::new("job/sink", 3).next_data_file(), data, "another run has other names");
    }
}
