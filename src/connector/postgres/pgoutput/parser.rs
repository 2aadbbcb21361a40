//! Bytes to messages. What a byte means depends on whether a part of a streamed transaction is open, so one parser reads one
//! connection from its start on.

use super::message::{CommitPoint, Message, OldTuple, Relation, RelationColumn, ReplicaIdentity};
use super::reader::Reader;
use crate::error::Result;

/// Parses the messages of one connection.
#[derive(Debug, Default)]
pub(in crate::connector::postgres) struct Parser {
    /// Whether aborts in streams carry position and time: `streaming 'parallel'`.
    is_parallel: bool,
    is_in_stream: bool,
}

impl Parser {
    /// Makes the parser of a connection that may stream transactions in parallel.
    #[cfg(test)]
    pub(in crate::connector::postgres) fn parallel() -> Parser {
        Parser { is_parallel: true, is_in_stream: false }
    }

    /// Parses a message.
    ///
    /// # Errors
    /// It is none of those that are known, or not whole.
    pub(in crate::connector::postgres) fn parse<'a>(&mut self, bytes: &'a [u8]) -> Result<Message<'a>> {
        let mut reader = Reader::new(bytes);
        let kind = reader.u8()?;
        let message = match kind {
            b'I' | b'U' | b'D' | b'T' | b'R' | b'Y' | b'M' => self.in_transaction(kind, &mut reader)?,
            b'S' | b'E' | b'c' | b'A' => self.streamed(kind, &mut reader)?,
            _ => outside(kind, &mut reader)?,
        };
        reader.expect_end()?;
        match message {
            Message::StreamStart { .. } => self.is_in_stream = true,
            Message::StreamStop => self.is_in_stream = false,
            _ => {}
        }
        Ok(message)
    }

    /// Parses what stands within a transaction.
    #[inline]
    fn in_transaction<'a>(&self, kind: u8, reader: &mut Reader<'a>) -> Result<Message<'a>> {
        let xid = if self.is_in_stream { Some(reader.u32()?) } else { None };
        Ok(match kind {
            b'I' => {
                let oid = reader.u32()?;
                match reader.u8()? {
                    b'N' => Message::Insert { xid, oid, new: reader.tuple()? },
                    _ => return Err(reader.malformed("a new tuple")),
                }
            }
            b'U' => {
                let oid = reader.u32()?;
                let (old, next) = match reader.u8()? {
                    b'K' => (Some(OldTuple::Key(reader.tuple()?)), reader.u8()?),
                    b'O' => (Some(OldTuple::Row(reader.tuple()?)), reader.u8()?),
                    next => (None, next),
                };
                match next {
                    b'N' => Message::Update { xid, oid, old, new: reader.tuple()? },
                    _ => return Err(reader.malformed("a new tuple")),
                }
            }
            b'D' => {
                let oid = reader.u32()?;
                let old = match reader.u8()? {
                    b'K' => OldTuple::Key(reader.tuple()?),
                    b'O' => OldTuple::Row(reader.tuple()?),
                    _ => return Err(reader.malformed("an old tuple")),
                };
                Message::Delete { xid, oid, old }
            }
            b'T' => truncate(xid, reader)?,
            b'R' => Message::Relation { xid, relation: relation(reader)? },
            b'Y' => Message::Type { xid, oid: reader.u32()?, schema: reader.text()?, name: reader.text()? },
            _ => {
                let is_transactional = reader.u8()? & 1 != 0;
                let (lsn, prefix) = (reader.lsn()?, reader.text()?);
                let length = reader.u32()? as usize;
                Message::Logical { xid, is_transactional, lsn, prefix, content: reader.bytes(length)? }
            }
        })
    }

    /// Parses what a transaction that is sent before its end has around its parts.
    fn streamed<'a>(&self, kind: u8, reader: &mut Reader<'a>) -> Result<Message<'a>> {
        Ok(match kind {
            b'S' => Message::StreamStart { xid: reader.u32()?, is_first: reader.u8()? != 0 },
            b'E' => Message::StreamStop,
            b'c' => {
                let xid = reader.u32()?;
                Message::StreamCommit { xid, point: commit_point(reader)? }
            }
            _ => {
                let (xid, subtransaction) = (reader.u32()?, reader.u32()?);
                let at = if self.is_parallel { Some((reader.lsn()?, reader.time()?)) } else { None };
                Message::StreamAbort { xid, subtransaction, at }
            }
        })
    }
}

/// Parses what stands around transactions that are sent as a whole, prepared ones among them.
fn outside<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Message<'a>> {
    Ok(match kind {
        b'B' => Message::Begin { final_lsn: reader.lsn()?, commit_time: reader.time()?, xid: reader.u32()? },
        b'C' => Message::Commit(commit_point(reader)?),
        b'O' => Message::Origin { lsn: reader.lsn()?, name: reader.text()? },
        b'b' => {
            let point = CommitPoint { lsn: reader.lsn()?, end_lsn: reader.lsn()?, time: reader.time()? };
            Message::BeginPrepare { point, xid: reader.u32()?, gid: reader.text()? }
        }
        b'P' => {
            let (point, xid, gid) = prepared(reader)?;
            Message::Prepare { point, xid, gid }
        }
        b'K' => {
            let (point, xid, gid) = prepared(reader)?;
            Message::CommitPrepared { point, xid, gid }
        }
        b'p' => {
            let (point, xid, gid) = prepared(reader)?;
            Message::StreamPrepare { point, xid, gid }
        }
        b'r' => {
            reader.u8()?;
            Message::RollbackPrepared {
                prepare_end_lsn: reader.lsn()?,
                end_lsn: reader.lsn()?,
                prepare_time: reader.time()?,
                time: reader.time()?,
                xid: reader.u32()?,
                gid: reader.text()?,
            }
        }
        _ => return Err(reader.malformed("a kind of message that is known")),
    })
}

/// Parses where what was prepared ends, and whose it is.
fn prepared<'a>(reader: &mut Reader<'a>) -> Result<(CommitPoint, u32, &'a str)> {
    Ok((commit_point(reader)?, reader.u32()?, reader.text()?))
}

/// Parses flags, which have no meaning yet, and where a transaction ends.
fn commit_point(reader: &mut Reader<'_>) -> Result<CommitPoint> {
    reader.u8()?;
    Ok(CommitPoint { lsn: reader.lsn()?, end_lsn: reader.lsn()?, time: reader.time()? })
}

fn truncate<'a>(xid: Option<u32>, reader: &mut Reader<'a>) -> Result<Message<'a>> {
    let count = reader.u32()?;
    let options = reader.u8()?;
    let oids = (0..count).map(|_| reader.u32()).collect::<Result<_>>()?;
    Ok(Message::Truncate { xid, cascades: options & 1 != 0, restarts_identity: options & 2 != 0, oids })
}

fn relation<'a>(reader: &mut Reader<'a>) -> Result<Relation<'a>> {
    let (oid, schema, table) = (reader.u32()?, reader.text()?, reader.text()?);
    let identity = match reader.u8()? {
        b'd' => ReplicaIdentity::Default,
        b'n' => ReplicaIdentity::Nothing,
        b'f' => ReplicaIdentity::Full,
        b'i' => ReplicaIdentity::Index,
        _ => return Err(reader.malformed("a replica identity")),
    };
    let count = reader.u16()?;
    let column = |_| {
        Ok(RelationColumn {
            is_key: reader.u8()? & 1 != 0,
            name: reader.text()?,
            type_oid: reader.u32()?,
            type_modifier: reader.i32()?,
        })
    };
    Ok(Relation { oid, schema, table, identity, columns: (0..count).map(column).collect::<Result<_>>()? })
}

#[cfg(test)]
mod tests;
