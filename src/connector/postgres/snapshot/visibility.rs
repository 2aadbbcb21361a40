//! What a snapshot of the server shows, as the server itself says it.
//!
//! A change of the stream is in what a snapshot has read exactly if its transaction is visible to the snapshot. Positions in the log
//! cannot tell: a transaction may be streamed while its own session still waits for a standby, and until then nobody sees it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The transactions that a snapshot sees: what `pg_current_snapshot()` returns, and written as that is, `xmin:xmax:xip,…`.
///
/// The server tells it of whole transactions only, and so does the stream: subtransactions play no part. On a standby it leaves out
/// those that are in progress, which is why no snapshot is read there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(in crate::connector::postgres) struct SnapshotXids {
    /// All below have ended.
    xmin: u64,
    /// None from here on had ended.
    xmax: u64,
    /// Those between that were in progress, ascending.
    xip: Vec<u64>,
}

impl SnapshotXids {
    /// Returns whether what a transaction did, if it was not rolled back, is in the snapshot.
    pub(in crate::connector::postgres) fn sees(&self, xid: u64) -> bool {
        xid < self.xmin || (xid < self.xmax && self.xip.binary_search(&xid).is_err())
    }

    /// Returns the first transaction of which, as of all after it, nothing is in the snapshot.
    pub(in crate::connector::postgres) fn xmax(&self) -> u64 {
        self.xmax
    }
}

impl FromStr for SnapshotXids {
    type Err = Error;

    fn from_str(text: &str) -> Result<SnapshotXids> {
        let parse = || {
            let mut parts = text.splitn(3, ':');
            let xmin = parts.next()?.parse().ok()?;
            let xmax = parts.next()?.parse().ok()?;
            let in_progress = parts.next()?.split(',').filter(|xid| !xid.is_empty());
            let mut xip = in_progress.map(|xid| xid.parse().ok()).collect::<Option<Vec<u64>>>()?;
            xip.sort_unstable();
            Some(SnapshotXids { xmin, xmax, xip })
        };
        parse().ok_or_else(|| {
            Error::data(format!("'{text}' is not a snapshot as pg_current_snapshot() writes it"))
        })
    }
}

impl TryFrom<String> for SnapshotXids {
    type Error = Error;

    fn try_from(text: String) -> Result<SnapshotXids> {
        text.parse()
    }
}

impl From<SnapshotXids> for String {
    fn from(snapshot: SnapshotXids) -> String {
        snapshot.to_string()
    }
}

impl fmt::Display for SnapshotXids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (at, xid) in self.xip.iter().enumerate() {
            write!(f, "{}{xid}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Returns a transaction's number with the upper half that the stream leaves out: of all numbers that end as it does, the one that is
/// nearest to a number that is known. The server keeps all that matter within 2³¹ of each other.
pub(in crate::connector::postgres) fn widen(xid: u32, near: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is compared")]
    let ahead = xid.wrapping_sub(near as u32).cast_signed();
    near.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(xid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_sees_what_had_ended() {
        let snapshot: SnapshotXids = "100:105:103,101".parse().unwrap();
        let seen: Vec<u64> = (98..108).filter(|xid| snapshot.sees(*xid)).collect();
        assert_eq!(seen, [98, 99, 100, 102, 104]);
        assert_eq!(snapshot.xmax(), 105);
        let quiet: SnapshotXids = "7:7:".parse().unwrap();
        assert!(quiet.sees(6) && !quiet.sees(7));
    }

    #[test]
    fn a_snapshot_is_kept_as_the_server_writes_it() {
        let snapshot: SnapshotXids = "4294967400:4294967405:4294967403,4294967401".parse().unwrap();
        let kept = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(kept, r#""4294967400:4294967405:4294967401,4294967403""#);
        assert_eq!(serde_json::from_str::<SnapshotXids>(&kept).unwrap(), snapshot);
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        for text in ["", "1", "1:2", "a:2:", "1:2:x", "1:2:3:4", "-1:2:"] {
            assert!(text.parse::<SnapshotXids>().is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_transactions_are_widened_across_the_wrap_in_both_directions() {
        let epoch = 1_u64 << 32;
        assert_eq!(widen(5, 3), 5);
        assert_eq!(widen(3, 5), 3);
        assert_eq!(widen(10, 3 * epoch - 10), 3 * epoch + 10);
        assert_eq!(widen(u32::MAX, 3 * epoch + 10), 3 * epoch - 1);
        assert_eq!(widen(100, 7 * epoch + 100), 7 * epoch + 100);
        assert_eq!(widen(u32::MAX, 10), u64::from(u32::MAX));
    }
}
