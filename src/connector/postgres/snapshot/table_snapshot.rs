//! What of a table has been read, and what a transaction must be for its changes to be in that already. Every checkpoint holds this
//! for every table, so it is small: snapshots are shared, and neighbours that were read under the same one are one range.

use serde::{Deserialize, Serialize};

use super::keyed_snapshot::KeyedSnapshot;
use super::visibility::SnapshotXids;
use crate::error::{Error, Result};

/// How far the snapshot of a table has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::connector::postgres) enum TableSnapshot {
    /// Nothing has been read.
    Pending,
    /// Ranges of a key have been read, each under a snapshot of its own; maybe not all yet.
    Keyed(KeyedSnapshot),
    /// All has been read, under one snapshot.
    Whole(SnapshotXids),
    /// The stream has passed all that the snapshots could hold, or there was nothing to read: every change counts.
    Pure,
}

/// How much of what was read a transaction had reached that changed all of a table at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum Coverage {
    /// Nothing: the change counts.
    Nothing,
    /// Some ranges and not others.
    Parts,
    /// All: the change does not count.
    Everything,
}

impl TableSnapshot {
    /// Returns whether the change of a row is in what was read already, so that it must not be told again. The change of a key is
    /// two: one that takes the old key away, one that brings the new key.
    ///
    /// `key` is the text of the column that `key_column` names; nobody looks at it if that is None.
    ///
    /// # Errors
    /// The part of the table that the row belongs to has not been read, or the key is not a value of its type.
    pub(in crate::connector::postgres) fn covers(&self, xid: u64, key: Option<&[u8]>) -> Result<bool> {
        match self {
            TableSnapshot::Pending => Err(not_read()),
            TableSnapshot::Keyed(keyed) => keyed.covers(xid, key),
            TableSnapshot::Whole(snapshot) => Ok(snapshot.sees(xid)),
            TableSnapshot::Pure => Ok(false),
        }
    }

    /// Returns how much of what was read a TRUNCATE had reached.
    ///
    /// # Errors
    /// The table has not been read wholly.
    pub(in crate::connector::postgres) fn covers_all(&self, xid: u64) -> Result<Coverage> {
        if !self.is_complete() {
            return Err(not_read());
        }
        let (seen, unseen) = match self {
            TableSnapshot::Pending | TableSnapshot::Pure => (false, true),
            TableSnapshot::Whole(snapshot) => (snapshot.sees(xid), !snapshot.sees(xid)),
            TableSnapshot::Keyed(keyed) => (
                keyed.snapshots().iter().any(|snapshot| snapshot.sees(xid)),
                keyed.snapshots().iter().any(|snapshot| !snapshot.sees(xid)),
            ),
        };
        Ok(match (seen, unseen) {
            (true, true) => Coverage::Parts,
            (true, false) => Coverage::Everything,
            (false, _) => Coverage::Nothing,
        })
    }

    /// Returns the column whose value says which range a row belongs to; None if all ranges are one.
    pub(in crate::connector::postgres) fn key_column(&self) -> Option<&str> {
        match self {
            TableSnapshot::Keyed(keyed) => Some(keyed.column()),
            _ => None,
        }
    }

    /// Returns whether nothing is left to read.
    pub(in crate::connector::postgres) fn is_complete(&self) -> bool {
        match self {
            TableSnapshot::Pending => false,
            TableSnapshot::Keyed(keyed) => keyed.is_complete(),
            TableSnapshot::Whole(_) | TableSnapshot::Pure => true,
        }
    }

    /// Returns the number from which on no transaction is in what was read; None if nothing was. The table is pure when all
    /// transactions below have ended and been passed.
    pub(in crate::connector::postgres) fn xid_max(&self) -> Option<u64> {
        match self {
            TableSnapshot::Keyed(keyed) => keyed.snapshots().iter().map(SnapshotXids::xmax).max(),
            TableSnapshot::Whole(snapshot) => Some(snapshot.xmax()),
            TableSnapshot::Pending | TableSnapshot::Pure => None,
        }
    }
}

fn not_read() -> Error {
    Error::internal("changes of a table are read before its snapshot is")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_unless_the_snapshot_shows_it() {
        let whole = TableSnapshot::Whole("10:15:12".parse().unwrap());
        let covered = |xid| whole.covers(xid, None).unwrap();
        assert!(covered(9) && covered(11) && !covered(12) && covered(14) && !covered(15));
        assert_eq!(whole.xid_max(), Some(15));
        assert!(!TableSnapshot::Pure.covers(1, None).unwrap());
        assert!(TableSnapshot::Pending.covers(1, None).is_err());
    }

    #[test]
    fn a_change_of_the_whole_table_counts_by_every_snapshot() {
        let whole = TableSnapshot::Whole("10:15:12".parse().unwrap());
        assert_eq!(whole.covers_all(12).unwrap(), Coverage::Nothing);
        assert_eq!(whole.covers_all(11).unwrap(), Coverage::Everything);
        assert_eq!(TableSnapshot::Pure.covers_all(11).unwrap(), Coverage::Nothing);
        assert!(TableSnapshot::Pending.covers_all(11).is_err());
    }

    #[test]
    fn a_state_is_kept_as_short_text() {
        let kept = |snapshot: &TableSnapshot| serde_json::to_string(snapshot).unwrap();
        assert_eq!(kept(&TableSnapshot::Pending), r#""pending""#);
        assert_eq!(kept(&TableSnapshot::Pure), r#""pure""#);
        let whole = TableSnapshot::Whole("10:15:12".parse().unwrap());
        assert_eq!(kept(&whole), r#"{"whole":"10:15:12"}"#);
        assert_eq!(serde_json::from_str::<TableSnapshot>(&kept(&whole)).unwrap(), whole);
    }
}
