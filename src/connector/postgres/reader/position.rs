//! How far a reader has come, as checkpoints keep it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::followed::FollowedTable;
use crate::connector::SourcePosition;
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::snapshot::TableSnapshot;
use crate::error::{Error, ErrorKind, Result};

/// The entry of the stream.
const STREAM: &str = "stream";

/// The entry of what is known of the tables; all others are tables.
const FOLLOWED: &str = "followed";

/// A position: in the stream, and in what each table held before.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ReaderPosition {
    /// None before there is a slot.
    pub(super) stream: Option<StreamPosition>,
    /// By the table's number and the declared table that reads it.
    pub(super) tables: BTreeMap<TableKey, TableSnapshot>,
    /// What the server has said of them last, by their numbers; also of tables that are not there any more.
    pub(super) followed: BTreeMap<u32, FollowedTable>,
}

/// A position that is written again and again, of which mostly the stream has moved.
#[derive(Debug, Default)]
pub(super) struct WrittenPosition {
    tables: BTreeMap<TableKey, TableSnapshot>,
    followed: BTreeMap<u32, FollowedTable>,
    written: SourcePosition,
}

impl WrittenPosition {
    /// Writes a position.
    ///
    /// # Errors
    /// Never, unless a part of it cannot be written as JSON.
    pub(super) fn write(&mut self, position: &ReaderPosition) -> Result<SourcePosition> {
        if self.tables != position.tables || self.followed != position.followed {
            self.written = position.write()?;
            self.tables.clone_from(&position.tables);
            self.followed.clone_from(&position.followed);
        } else if let Some(stream) = &position.stream {
            self.written.insert(STREAM.to_owned(), json(stream)?);
        }
        Ok(self.written.clone())
    }
}

/// A table of the server, and who reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableKey {
    pub(super) oid: u32,
    /// The declared table.
    pub(super) reader: String,
}

/// A position in a stream. It means something only to the server that it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamPosition {
    /// The server.
    pub(super) system: String,
    /// The line of its history.
    pub(super) timeline: u32,
    pub(super) slot: String,
    /// All transactions that end before this have been read.
    #[serde(with = "lsn_text")]
    pub(super) lsn: Lsn,
    /// The one that follows, if a part of it has been read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) within: Option<WithinTransaction>,
}

/// A part of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WithinTransaction {
    /// Where its commit record begins.
    #[serde(with = "lsn_text")]
    pub(super) commit: Lsn,
    /// How many of its changes have been read, those of tables that nobody reads included.
    pub(super) changes: u64,
}

impl ReaderPosition {
    /// Reads a position.
    ///
    /// # Errors
    /// It is not one of this connector.
    pub(super) fn parse(position: &SourcePosition) -> Result<ReaderPosition> {
        let mut parsed = ReaderPosition::default();
        for (key, text) in position {
            let foreign = || {
                Error::new(ErrorKind::State, format!("'{key}' = '{text}' is no position of postgres-cdc"))
                    .hint("The checkpoint was written by a job that read something else under this name.")
            };
            if key == STREAM {
                parsed.stream = Some(serde_json::from_str(text).map_err(|error| foreign().caused_by(error))?);
                continue;
            }
            if key == FOLLOWED {
                parsed.followed = serde_json::from_str(text).map_err(|error| foreign().caused_by(error))?;
                continue;
            }
            let (oid, reader) = key.split_once(' ').ok_or_else(foreign)?;
            let oid = oid.parse().map_err(|_| foreign())?;
            let snapshot = serde_json::from_str(text).map_err(|error| foreign().caused_by(error))?;
            parsed.tables.insert(TableKey { oid, reader: reader.to_owned() }, snapshot);
        }
        Ok(parsed)
    }

    /// Writes a position.
    ///
    /// # Errors
    /// Never, unless a part of it cannot be written as JSON.
    pub(super) fn write(&self) -> Result<SourcePosition> {
        let mut written = SourcePosition::new();
        for (TableKey { oid, reader }, snapshot) in &self.tables {
            written.insert(format!("{oid} {reader}"), json(snapshot)?);
        }
        if let Some(stream) = &self.stream {
            written.insert(STREAM.to_owned(), json(stream)?);
        }
        if !self.followed.is_empty() {
            written.insert(FOLLOWED.to_owned(), json(&self.followed)?);
        }
        Ok(written)
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::internal("a position cannot be written").caused_by(error))
}

/// Positions of the log as Postgres writes them.
mod lsn_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::connector::postgres::pgoutput::Lsn;

    pub(super) fn serialize<S: Serializer>(lsn: &Lsn, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(lsn)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Lsn, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parse = || {
            let (upper, lower) = text.split_once('/')?;
            let upper = u32::from_str_radix(upper, 16).ok()?;
            let lower = u32::from_str_radix(lower, 16).ok()?;
            Some(Lsn(u64::from(upper) << 32 | u64::from(lower)))
        };
        parse().ok_or_else(|| D::Error::custom(format!("'{text}' is no position of a log")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_kept_as_readable_text() {
        let key = TableKey { oid: 16_384, reader: "c.d.my orders".to_owned() };
        let within = WithinTransaction { commit: Lsn(0x1_0000_0020), changes: 7 };
        let mut position = ReaderPosition {
            stream: Some(StreamPosition {
                system: "7".to_owned(),
                timeline: 1,
                slot: "s".to_owned(),
                lsn: Lsn(0x1_0000_0010),
                within: Some(within),
            }),
            tables: BTreeMap::from([(key, TableSnapshot::Pure)]),
            followed: BTreeMap::from([(16_384, FollowedTable::new("public", "my orders"))]),
        };
        let written = position.write().unwrap();
        assert_eq!(
            written["stream"],
            r#"{"system":"7","timeline":1,"slot":"s","lsn":"1/10","within":{"commit":"1/20","changes":7}}"#
        );
        assert_eq!(written["16384 c.d.my orders"], r#""pure""#);
        assert_eq!(written["followed"], r#"{"16384":{"schema":"public","name":"my orders"}}"#);
        assert_eq!(ReaderPosition::parse(&written).unwrap(), position);
        if let Some(stream) = &mut position.stream {
            stream.within = None;
        }
        let written = position.write().unwrap();
        assert_eq!(written["stream"], r#"{"system":"7","timeline":1,"slot":"s","lsn":"1/10"}"#);
        assert_eq!(ReaderPosition::parse(&written).unwrap(), position);
    }

    #[test]
    fn a_position_of_another_connector_is_refused() {
        for (key, text) in
            [("0", "12"), ("stream", "{}"), ("x y", "\"pure\""), ("1 t", "?"), ("followed", "[]")]
        {
            let position = SourcePosition::from([(key.to_owned(), text.to_owned())]);
            assert_eq!(ReaderPosition::parse(&position).unwrap_err().kind(), ErrorKind::State, "{key}");
        }
    }
}
