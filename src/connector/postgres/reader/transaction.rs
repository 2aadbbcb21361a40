//! The transaction whose changes are being read.

use super::position::{StreamPosition, WithinTransaction};
use crate::connector::postgres::pgoutput::Lsn;

/// A transaction. It may have been read before, wholly or in part, when the connection or the job was started again.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenTransaction {
    /// Its number with the upper half that the stream leaves out.
    pub(super) xid: u64,
    /// When it was committed: microseconds since 1970.
    pub(super) commit_time: i64,
    /// Where its commit record begins.
    pub(super) commit: Lsn,
    /// How many of its changes have come.
    pub(super) changes: u64,
    /// How many of them were read before.
    read_before: u64,
}

impl OpenTransaction {
    /// Begins a transaction behind a position. Only the position of its commit tells whether it was read: commits and the changes
    /// that follow them may have the same position.
    pub(super) fn new(xid: u64, commit_time: i64, commit: Lsn, behind: &StreamPosition) -> OpenTransaction {
        let read_before = match behind.within {
            _ if commit < behind.lsn => u64::MAX,
            Some(within) if commit < within.commit => u64::MAX,
            Some(within) if commit == within.commit => within.changes,
            _ => 0,
        };
        OpenTransaction { xid, commit_time, commit, changes: 0, read_before }
    }

    /// Counts a change; returns whether it is new.
    pub(super) fn is_new(&mut self) -> bool {
        self.changes += 1;
        self.changes > self.read_before
    }

    /// Returns how far it has been read.
    pub(super) fn within(&self) -> WithinTransaction {
        WithinTransaction { commit: self.commit, changes: self.changes.max(self.read_before) }
    }

    /// Returns whether all of it was read before.
    pub(super) fn is_read(&self) -> bool {
        self.read_before == u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_changes(commit: u64, lsn: u64, within: Option<(u64, u64)>) -> Vec<u64> {
        let within = within.map(|(commit, changes)| WithinTransaction { commit: Lsn(commit), changes });
        let behind =
            StreamPosition { system: String::new(), timeline: 1, slot: String::new(), lsn: Lsn(lsn), within };
        let mut transaction = OpenTransaction::new(7, 0, Lsn(commit), &behind);
        (1..=4).filter(|_| transaction.is_new()).collect()
    }

    #[test]
    fn a_transaction_goes_on_behind_the_changes_that_were_read() {
        assert_eq!(new_changes(30, 30, None), [1, 2, 3, 4], "it begins where the last one ended");
        assert!(new_changes(20, 30, None).is_empty());
        assert_eq!(new_changes(40, 30, Some((40, 2))), [3, 4]);
        assert!(new_changes(35, 30, Some((40, 2))).is_empty());
        assert_eq!(new_changes(50, 30, Some((40, 2))), [1, 2, 3, 4]);
    }
}
