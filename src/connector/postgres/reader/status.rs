//! What a reader says of itself in DESCRIBE JOB.

use std::sync::{Mutex, PoisonError};

use chrono::Utc;

use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::slot::SlotState;
use crate::connector::postgres::snapshot::SnapshotProgress;
use crate::connector::{LAG_BYTES, OperatorStatus};

/// Keeps what is known and says it anew when some of it changes.
#[derive(Debug)]
pub(super) struct Status {
    said: OperatorStatus,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    slot: String,
    phase: String,
    read: Option<Lsn>,
    checkpointed: Option<Lsn>,
    /// Whether there is a checkpoint from which the slot is read on.
    has_checkpoint: bool,
    /// How far the server has written its log.
    written: Option<Lsn>,
    /// When the last transaction was committed that was read, in microseconds since 1970; None if nothing more was to be read since.
    behind_since: Option<i64>,
    retained: Option<(i64, Option<i64>)>,
}

impl Status {
    pub(super) fn new(said: OperatorStatus) -> Status {
        Status { said, known: Mutex::default() }
    }

    /// Says which slot is read.
    pub(super) fn slot(&self, name: &str) {
        self.change(|known| name.clone_into(&mut known.slot));
    }

    /// Says how far the snapshot is.
    pub(super) fn snapshot(&self, progress: SnapshotProgress) {
        let SnapshotProgress { chunks_done, chunks_total, tables_done, tables_total } = progress;
        self.change(|known| {
            known.phase = format!(
                "snapshot ({chunks_done} of {chunks_total} chunks, {tables_done} of {tables_total} tables)"
            );
        });
    }

    /// Says that changes are read.
    pub(super) fn streaming(&self) {
        self.change(|known| "streaming".clone_into(&mut known.phase));
    }

    /// Says that the server cannot be reached.
    pub(super) fn disconnected(&self) {
        self.change(|known| "disconnected".clone_into(&mut known.phase));
    }

    /// Says how far changes have been read, and when the last transaction was committed if there may be more to read.
    pub(super) fn read(&self, position: Lsn, behind_since: Option<i64>) {
        self.change(|known| (known.read, known.behind_since) = (Some(position), behind_since));
    }

    /// Notes that there is a checkpoint from which the slot is read on.
    pub(super) fn found_checkpoint(&self) {
        self.change(|known| known.has_checkpoint = true);
    }

    /// Returns whether there is a checkpoint from which the slot is read on.
    pub(super) fn has_checkpoint(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).has_checkpoint
    }

    /// Says how far the last checkpoint has come.
    pub(super) fn checkpointed(&self, position: Lsn) {
        self.change(|known| known.checkpointed = Some(position));
    }

    /// Says what the server knows of the slot, and how far its log is written.
    pub(super) fn server(&self, slot: &SlotState, written: Lsn) {
        self.change(|known| {
            known.written = Some(written);
            known.retained = slot.retained_bytes.map(|retained| (retained, slot.safe_wal_size));
        });
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        self.said.set(known.values());
    }
}

impl Known {
    fn values(&self) -> Vec<(String, String)> {
        let mut values = Vec::new();
        let mut add =
            |name: &str, value: Option<String>| values.extend(value.map(|value| (name.to_owned(), value)));
        add("slot", Some(self.slot.clone()).filter(|slot| !slot.is_empty()));
        add("phase", Some(self.phase.clone()).filter(|phase| !phase.is_empty()));
        add("lsn", self.read.map(|lsn| lsn.to_string()));
        add("checkpointed lsn", self.checkpointed.map(|lsn| lsn.to_string()));
        let lag = self.read.zip(self.written).map(|(read, written)| written.0.saturating_sub(read.0));
        add(LAG_BYTES, lag.map(|lag| lag.to_string()));
        if self.read.is_some() {
            let millis = |since: i64| (Utc::now().timestamp_micros() - since).max(0) / 1_000;
            let age = match self.behind_since {
                Some(since) => millis(since).to_string(),
                // Whether anything of it is for this job, and from when, is not known before it has come.
                None if lag.is_some_and(|lag| lag > 0) => "unknown".to_owned(),
                None => "0".to_owned(),
            };
            add("lag ms", Some(age));
        }
        add("retained bytes", self.retained.map(|(retained, _)| retained.to_string()));
        let allowed =
            self.retained.and_then(|(retained, safe)| safe.map(|safe| retained.saturating_add(safe)));
        add("of at most", allowed.map(|allowed| allowed.to_string()));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lag(read: u64, written: u64, behind_since: Option<i64>) -> Vec<String> {
        let known =
            Known { read: Some(Lsn(read)), written: Some(Lsn(written)), behind_since, ..Known::default() };
        let values = known.values().into_iter();
        values.filter(|(name, _)| name.starts_with("lag")).map(|(_, value)| value).collect()
    }

    #[test]
    fn a_reader_that_is_behind_does_not_say_that_it_lags_no_time() {
        assert_eq!(lag(100, 100, None), ["0", "0"]);
        assert_eq!(lag(100, 1_100, None), ["1000", "unknown"]);
        let said = lag(100, 1_100, Some(Utc::now().timestamp_micros() - 5_000_000));
        assert!(said[1].parse::<u64>().unwrap() >= 5_000, "{said:?}");
    }
}
