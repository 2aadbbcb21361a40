//! What the output plugin pgoutput sends: messages about transactions, tables and rows.

mod message;
mod parser;
mod reader;

pub(super) use message::{
    Lsn, Message, OldTuple, Relation, RelationColumn, ReplicaIdentity, Tuple, TupleValue,
};
pub(super) use parser::Parser;
