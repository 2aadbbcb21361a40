//! Ranges of a key, and the snapshot under which each was read.

use serde::{Deserialize, Serialize};

use super::key_value::{KeyType, KeyValue};
use super::visibility::SnapshotXids;
use crate::connector::postgres::table::quoted;
use crate::error::{Error, Result};

/// All values of a key, cut into ranges. A range that nobody has read has no snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Kept", into = "Kept")]
pub(in crate::connector::postgres) struct KeyedSnapshot {
    column: String,
    key_type: KeyType,
    snapshots: Vec<SnapshotXids>,
    /// Ascending; each begins where the one before ends.
    ranges: Vec<Range>,
    /// The transaction from which on nothing is in any range: every change is told, whatever its key. None while ranges are unread.
    passed_from: Option<u64>,
}

/// The keys below a bound that are in no range before.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    /// None: all others.
    below: Option<KeyBound>,
    /// The position of the snapshot.
    snapshot: Option<usize>,
}

/// A key between two ranges; it belongs to the upper one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyBound {
    text: String,
    value: KeyValue<'static>,
}

/// Keys from one bound to below another; no bound: from the first, to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) from: Option<KeyBound>,
    pub(super) below: Option<KeyBound>,
}

/// What a checkpoint holds of it.
#[derive(Serialize, Deserialize)]
struct Kept {
    column: String,
    #[serde(rename = "type")]
    key_type: KeyType,
    snapshots: Vec<SnapshotXids>,
    /// The upper bound of each range, and the position of its snapshot.
    ranges: Vec<(Option<String>, Option<usize>)>,
}

impl KeyRange {
    /// All keys.
    pub(super) const ALL: KeyRange = KeyRange { from: None, below: None };

    pub(super) fn is_all(&self) -> bool {
        self.from.is_none() && self.below.is_none()
    }

    /// Returns the condition that a column's value is in the range; None if every value is.
    pub(super) fn condition(&self, column: &str) -> Option<String> {
        let column = quoted(column);
        let from = self.from.as_ref().map(|from| format!("{column} >= {}", from.sql()));
        let below = self.below.as_ref().map(|below| format!("{column} < {}", below.sql()));
        let conditions: Vec<String> = from.into_iter().chain(below).collect();
        (!conditions.is_empty()).then(|| conditions.join(" AND "))
    }
}

impl KeyBound {
    /// Makes a bound of a key's text.
    ///
    /// # Errors
    /// It is not a value of the type.
    pub(super) fn new(key_type: KeyType, text: String) -> Result<KeyBound> {
        match key_type.parse(text.as_bytes()).map(KeyValue::into_owned) {
            Some(value) => Ok(KeyBound { text, value }),
            None => Err(Error::data(format!("'{text}' is not a key of type {key_type:?}"))),
        }
    }

    /// Returns it as SQL takes it: text of no type yet, which becomes what it is compared with.
    pub(super) fn sql(&self) -> String {
        // Nothing in the text of a key needs to be escaped.
        format!("'{}'", self.text)
    }
}

impl KeyedSnapshot {
    /// Makes one of which nothing has been read.
    pub(super) fn new(column: &str, key_type: KeyType) -> KeyedSnapshot {
        KeyedSnapshot {
            column: column.to_owned(),
            key_type,
            snapshots: Vec::new(),
            ranges: vec![Range { below: None, snapshot: None }],
            passed_from: None,
        }
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    pub(super) fn key_type(&self) -> KeyType {
        self.key_type
    }

    pub(super) fn snapshots(&self) -> &[SnapshotXids] {
        &self.snapshots
    }

    pub(super) fn is_complete(&self) -> bool {
        self.passed_from.is_some()
    }

    /// Returns what has not been read.
    pub(super) fn unread(&self) -> Vec<KeyRange> {
        let froms = std::iter::once(None).chain(self.ranges.iter().map(|range| range.below.as_ref()));
        let unread = self.ranges.iter().zip(froms).filter(|(range, _)| range.snapshot.is_none());
        unread.map(|(range, from)| KeyRange { from: from.cloned(), below: range.below.clone() }).collect()
    }

    /// Notes that a range was read under a snapshot.
    pub(super) fn note_read(&mut self, range: &KeyRange, snapshot: &SnapshotXids) {
        let snapshot = self.snapshots.iter().rposition(|known| known == snapshot).unwrap_or_else(|| {
            self.snapshots.push(snapshot.clone());
            self.snapshots.len() - 1
        });
        let first = range.from.as_ref().map_or(0, |bound| self.cut(bound));
        let end = range.below.as_ref().map(|bound| self.cut(bound)).unwrap_or(self.ranges.len());
        for range in &mut self.ranges[first..end] {
            range.snapshot = Some(snapshot);
        }
        self.ranges.dedup_by(|next, kept| {
            let is_one = next.snapshot == kept.snapshot;
            if is_one {
                kept.below = next.below.take();
            }
            is_one
        });
        self.look_for_end();
    }

    /// Cuts the range that holds a bound there, unless one ends there; returns the position of the range behind.
    fn cut(&mut self, at: &KeyBound) -> usize {
        let position = self.position(&at.value);
        let is_cut = position > 0
            && self.ranges[position - 1].below.as_ref().is_some_and(|below| below.value == at.value);
        if is_cut {
            return position;
        }
        let lower = Range { below: Some(at.clone()), snapshot: self.ranges[position].snapshot };
        self.ranges.insert(position, lower);
        position + 1
    }

    /// Returns the position of the range that holds a key. The last range has no bound, so there is always one.
    fn position(&self, key: &KeyValue<'_>) -> usize {
        self.ranges.partition_point(|range| range.below.as_ref().is_some_and(|below| below.value <= *key))
    }

    fn look_for_end(&mut self) {
        let is_complete = self.ranges.iter().all(|range| range.snapshot.is_some());
        let passed_from = self.snapshots.iter().map(SnapshotXids::xmax).max();
        self.passed_from = if is_complete { passed_from } else { None };
    }

    /// Returns whether a transaction's change of a row is in what was read.
    pub(super) fn covers(&self, xid: u64, key: Option<&[u8]>) -> Result<bool> {
        if self.passed_from.is_some_and(|passed_from| xid >= passed_from) {
            return Ok(false);
        }
        let Some(key) = key else {
            return Err(Error::data(format!("a change does not tell the row's value of column '{}'", self.column))
                .hint("The table was read in ranges of that column; it must stay part of the table's replica identity, and NOT NULL."));
        };
        let Some(value) = self.key_type.parse(key) else {
            let text = String::from_utf8_lossy(key);
            return Err(Error::data(format!(
                "'{text}' in column '{}' is not what it was when the table was read: {:?}",
                self.column, self.key_type
            )));
        };
        let snapshot =
            self.ranges[self.position(&value)].snapshot.and_then(|snapshot| self.snapshots.get(snapshot));
        match snapshot {
            Some(snapshot) => Ok(snapshot.sees(xid)),
            None => Err(Error::internal("changes of a table are read before its snapshot is")),
        }
    }
}

impl From<KeyedSnapshot> for Kept {
    fn from(keyed: KeyedSnapshot) -> Kept {
        let ranges =
            keyed.ranges.into_iter().map(|range| (range.below.map(|below| below.text), range.snapshot));
        Kept {
            column: keyed.column,
            key_type: keyed.key_type,
            snapshots: keyed.snapshots,
            ranges: ranges.collect(),
        }
    }
}

impl TryFrom<Kept> for KeyedSnapshot {
    type Error = Error;

    fn try_from(kept: Kept) -> Result<KeyedSnapshot> {
        let bound = |text| KeyBound::new(kept.key_type, text);
        let ranges = kept
            .ranges
            .into_iter()
            .map(|(below, snapshot)| Ok(Range { below: below.map(bound).transpose()?, snapshot }));
        let ranges = ranges.collect::<Result<Vec<_>>>()?;
        let value = |range: &Range| range.below.as_ref().map(|below| below.value.clone());
        let ascends = ranges.windows(2).all(|pair| match (value(&pair[0]), value(&pair[1])) {
            (Some(lower), Some(upper)) => lower < upper,
            (lower, upper) => lower.is_some() && upper.is_none(),
        });
        let ends = ranges.last().is_some_and(|last| last.below.is_none());
        let are_known = ranges.iter().all(|range| range.snapshot.is_none_or(|at| at < kept.snapshots.len()));
        if !(ascends && ends && are_known) {
            return Err(Error::data(format!(
                "the ranges of key '{}' do not follow one another",
                kept.column
            )));
        }
        let mut keyed = KeyedSnapshot {
            column: kept.column,
            key_type: kept.key_type,
            snapshots: kept.snapshots,
            ranges,
            passed_from: None,
        };
        keyed.look_for_end();
        Ok(keyed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: Option<i64>, below: Option<i64>) -> KeyRange {
        let bound = |value: i64| KeyBound::new(KeyType::Integer, value.to_string()).unwrap();
        KeyRange { from: from.map(bound), below: below.map(bound) }
    }

    fn xids(text: &str) -> SnapshotXids {
        text.parse().unwrap()
    }

    fn kept(keyed: &KeyedSnapshot) -> String {
        serde_json::to_string(keyed).unwrap()
    }

    #[test]
    fn a_row_belongs_to_the_range_of_its_key() {
        let mut keyed = KeyedSnapshot::new("id", KeyType::Integer);
        keyed.note_read(&range(None, Some(10)), &xids("100:100:"));
        keyed.note_read(&range(Some(10), None), &xids("200:200:"));
        let covered = |xid, key: &str| keyed.covers(xid, Some(key.as_bytes())).unwrap();
        assert!(covered(99, "9") && covered(99, "-5") && covered(150, "10"));
        assert!(!covered(150, "9") && !covered(200, "10"));
    }

    #[test]
    fn ranges_come_in_any_order_and_neighbours_under_one_snapshot_are_one() {
        let mut keyed = KeyedSnapshot::new("id", KeyType::Integer);
        let (first, second) = (xids("100:100:"), xids("200:200:"));
        keyed.note_read(&range(Some(20), Some(30)), &first);
        keyed.note_read(&range(None, Some(10)), &first);
        assert_eq!(keyed.unread(), [range(Some(10), Some(20)), range(Some(30), None)]);
        keyed.note_read(&range(Some(10), Some(20)), &first);
        assert_eq!(keyed.unread(), [range(Some(30), None)]);
        keyed.note_read(&range(Some(40), None), &second);
        assert!(!keyed.is_complete());
        keyed.note_read(&range(Some(30), Some(40)), &second);
        assert!(keyed.is_complete());
        let expected = r#"{"column":"id","type":"integer","snapshots":["100:100:","200:200:"],"ranges":[["30",0],[null,1]]}"#;
        assert_eq!(kept(&keyed), expected);
        assert_eq!(serde_json::from_str::<KeyedSnapshot>(expected).unwrap(), keyed);
    }

    #[test]
    fn keys_need_not_be_told_of_transactions_behind_all_snapshots() {
        let mut keyed = KeyedSnapshot::new("id", KeyType::Integer);
        keyed.note_read(&range(None, Some(10)), &xids("100:100:"));
        assert!(keyed.covers(500, Some(b"11")).is_err(), "that range is not read");
        keyed.note_read(&range(Some(10), None), &xids("200:200:"));
        assert!(!keyed.covers(200, None).unwrap());
        assert!(keyed.covers(199, None).unwrap_err().hint_text().unwrap().contains("NOT NULL"));
        assert!(keyed.covers(199, Some(b"x")).is_err());
    }

    #[test]
    fn ranges_that_do_not_follow_one_another_are_refused() {
        for ranges in [
            r#"[]"#,
            r#"[["10",0]]"#,
            r#"[["10",0],["10",0],[null,0]]"#,
            r#"[[null,0],[null,0]]"#,
            r#"[[null,1]]"#,
            r#"[["x",0],[null,0]]"#,
        ] {
            let kept =
                format!(r#"{{"column":"id","type":"integer","snapshots":["1:1:"],"ranges":{ranges}}}"#);
            assert!(serde_json::from_str::<KeyedSnapshot>(&kept).is_err(), "{ranges}");
        }
    }
}
