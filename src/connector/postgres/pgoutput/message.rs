//! The messages of the output plugin pgoutput, protocol versions 1 to 4 (PostgreSQL's documentation, "Logical Replication Message
//! Formats"). They borrow from the bytes that came: nothing is copied before a value goes into its column.

use std::fmt;

use super::reader::TupleValues;

/// A position in the write-ahead log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(in crate::connector::postgres) struct Lsn(pub(in crate::connector::postgres) u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// A row, old or new, as it stands in a message.
#[derive(Debug, Clone, Copy)]
pub(in crate::connector::postgres) struct Tuple<'a> {
    pub(super) column_count: u16,
    pub(super) bytes: &'a [u8],
}

impl<'a> Tuple<'a> {
    /// Returns how many columns it has: those of the relation that came last.
    pub(in crate::connector::postgres) fn column_count(&self) -> usize {
        usize::from(self.column_count)
    }

    /// Returns the values, in the order of the relation's columns.
    #[inline]
    pub(in crate::connector::postgres) fn values(&self) -> impl Iterator<Item = TupleValue<'a>> {
        TupleValues { rest: self.bytes }
    }

    /// Returns the value of a column, which takes the longer the further behind it is.
    pub(in crate::connector::postgres) fn value(&self, column: usize) -> Option<TupleValue<'a>> {
        self.values().nth(column)
    }

    /// Returns how many bytes it takes in the message.
    pub(in crate::connector::postgres) fn byte_count(&self) -> usize {
        self.bytes.len()
    }
}

/// A value of a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum TupleValue<'a> {
    /// NULL; in the tuple of a key, a column that is not part of it.
    Null,
    /// A value that lies outside of the row and was not changed: it is not sent.
    Unchanged,
    /// As the type's output function writes it.
    Text(&'a [u8]),
    /// As the type's send function writes it.
    Binary(&'a [u8]),
}

/// What an update or a delete says of the row before.
#[derive(Debug, Clone, Copy)]
pub(in crate::connector::postgres) enum OldTuple<'a> {
    /// The columns of the replica identity; the others are NULL.
    Key(Tuple<'a>),
    /// All columns: the replica identity is FULL.
    Row(Tuple<'a>),
}

/// What identifies a row of a table in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) enum ReplicaIdentity {
    /// The primary key.
    Default,
    /// Nothing: updates and deletes are not published.
    Nothing,
    /// All columns.
    Full,
    /// The columns of a unique index.
    Index,
}

impl ReplicaIdentity {
    /// Returns the identity that the server has this letter for.
    pub(in crate::connector::postgres) fn of_letter(letter: &str) -> ReplicaIdentity {
        match letter {
            "f" => ReplicaIdentity::Full,
            "i" => ReplicaIdentity::Index,
            "n" => ReplicaIdentity::Nothing,
            _ => ReplicaIdentity::Default,
        }
    }
}

/// A table as it is from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct Relation<'a> {
    pub(in crate::connector::postgres) oid: u32,
    /// Empty for `pg_catalog`.
    pub(in crate::connector::postgres) schema: &'a str,
    pub(in crate::connector::postgres) table: &'a str,
    pub(in crate::connector::postgres) identity: ReplicaIdentity,
    pub(in crate::connector::postgres) columns: Vec<RelationColumn<'a>>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) struct RelationColumn<'a> {
    /// Whether it is part of the replica identity.
    pub(in crate::connector::postgres) is_key: bool,
    pub(in crate::connector::postgres) name: &'a str,
    pub(in crate::connector::postgres) type_oid: u32,
    pub(in crate::connector::postgres) type_modifier: i32,
}

/// Where a transaction, or what was prepared of it, is in the log. Times are microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::connector::postgres) struct CommitPoint {
    /// Where its record begins.
    pub(in crate::connector::postgres) lsn: Lsn,
    /// Just behind it.
    pub(in crate::connector::postgres) end_lsn: Lsn,
    pub(in crate::connector::postgres) time: i64,
}

/// A message. Within a streamed part of a transaction, messages about rows and tables carry the id of their subtransaction.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "messages are parsed whole, and compared in tests; the reader needs a part")
)]
#[derive(Debug, Clone)]
pub(in crate::connector::postgres) enum Message<'a> {
    Begin {
        final_lsn: Lsn,
        commit_time: i64,
        xid: u32,
    },
    Commit(CommitPoint),
    Origin {
        lsn: Lsn,
        name: &'a str,
    },
    Relation {
        xid: Option<u32>,
        relation: Relation<'a>,
    },
    Type {
        xid: Option<u32>,
        oid: u32,
        schema: &'a str,
        name: &'a str,
    },
    Insert {
        xid: Option<u32>,
        oid: u32,
        new: Tuple<'a>,
    },
    Update {
        xid: Option<u32>,
        oid: u32,
        old: Option<OldTuple<'a>>,
        new: Tuple<'a>,
    },
    Delete {
        xid: Option<u32>,
        oid: u32,
        old: OldTuple<'a>,
    },
    Truncate {
        xid: Option<u32>,
        cascades: bool,
        restarts_identity: bool,
        oids: Vec<u32>,
    },
    /// What `pg_logical_emit_message` wrote.
    Logical {
        xid: Option<u32>,
        is_transactional: bool,
        lsn: Lsn,
        prefix: &'a str,
        content: &'a [u8],
    },
    StreamStart {
        xid: u32,
        is_first: bool,
    },
    StreamStop,
    StreamCommit {
        xid: u32,
        point: CommitPoint,
    },
    /// Takes back what a subtransaction did, or all of it if both ids are the same.
    StreamAbort {
        xid: u32,
        subtransaction: u32,
        at: Option<(Lsn, i64)>,
    },
    BeginPrepare {
        point: CommitPoint,
        xid: u32,
        gid: &'a str,
    },
    Prepare {
        point: CommitPoint,
        xid: u32,
        gid: &'a str,
    },
    CommitPrepared {
        point: CommitPoint,
        xid: u32,
        gid: &'a str,
    },
    RollbackPrepared {
        prepare_end_lsn: Lsn,
        end_lsn: Lsn,
        prepare_time: i64,
        time: i64,
        xid: u32,
        gid: &'a str,
    },
    StreamPrepare {
        point: CommitPoint,
        xid: u32,
        gid: &'a str,
    },
}
