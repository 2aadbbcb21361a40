//! Changes of rows, as the stream tells them, to rows with kinds. Columns are found by their position in the relation that was described
//! last, never by what the catalog says now, which may be ahead of the stream.

use arrow::array::ArrayRef;
use hashbrown::HashMap;

use super::mutation::Rule;
use super::pg_types::PgTypes;
use super::pgoutput::{OldTuple, Relation, Tuple, TupleValue};
use super::relation_binding::RelationBinding;
use super::row_builder::{RowBuilder, RowOrigin};
use super::row_shape::{Changes, RowShape};
use super::table::PgTable;
use super::toast::{ResolvedRows, UnresolvedRow, UnresolvedRows};
use crate::changelog::{ChangelogBatch, RowKind};
use crate::error::{Error, FlinkClass, Result};

/// Which sides of an update are emitted: those that the snapshot does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Emits {
    /// The row before.
    pub(super) old: bool,
    /// The row after.
    pub(super) new: bool,
}

impl Emits {
    /// Both sides.
    pub(super) const BOTH: Emits = Emits { old: true, new: true };
}

/// The transaction that made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transaction {
    /// Its number, with the upper half that the stream leaves out.
    pub(super) xid: u64,
    /// When it was committed: microseconds since 1970.
    pub(super) commit_time: i64,
}

/// Decodes changes of the tables that one declared table reads, in the order in which they are given.
#[derive(Debug)]
pub(super) struct ChangeDecoder {
    pub(super) shape: RowShape,
    database: String,
    /// The tables that have been described, by number.
    pub(super) relations: HashMap<u32, RelationBinding>,
    rows: RowBuilder,
    /// How many bytes the rows since the last batch took in the stream, and what has been read again for them.
    byte_size: usize,
    /// How many more are expected of what has not been read again yet.
    expected_bytes: usize,
    /// Rows that lack values which the stream left out.
    pub(super) unresolved: UnresolvedRows,
}

impl ChangeDecoder {
    /// Makes a decoder of changes in a database.
    pub(super) fn new(shape: RowShape, database: &str) -> ChangeDecoder {
        ChangeDecoder {
            rows: RowBuilder::new(&shape),
            shape,
            database: database.to_owned(),
            relations: HashMap::new(),
            byte_size: 0,
            expected_bytes: 0,
            unresolved: UnresolvedRows::default(),
        }
    }

    /// Takes the description of a table, which holds from here on. Returns what the user should know of its changes. Rows of the table
    /// that lack values have to be resolved before: they are found by the key of the description before.
    ///
    /// # Errors
    /// Some are not. A declared column is not there any more or has a type that cannot be read; or rows would be told apart by other columns than
    /// the declared key.
    pub(super) fn define(
        &mut self,
        relation: &Relation<'_>,
        table: &PgTable,
        types: &PgTypes,
    ) -> Result<Vec<String>> {
        if self.lacks_values_of(relation.oid) {
            return Err(Error::internal("a table is described anew while rows of it lack values"));
        }
        let binding = RelationBinding::new(&self.shape, relation, table, types)?;
        let notices = binding.notices(self.relations.get(&relation.oid), table, &self.shape);
        self.relations.insert(relation.oid, binding);
        Ok(notices)
    }

    /// Takes a row that was inserted.
    ///
    /// # Errors
    /// A value cannot be read, or the table has not been described. The decoder is of no use then.
    #[inline]
    pub(super) fn insert(&mut self, oid: u32, new: Tuple<'_>, transaction: Transaction) -> Result<()> {
        self.append(oid, new, None, RowKind::Insert, transaction)
    }

    /// Takes a row that was updated: `-U` and `+U`, or `-D` and `+I` where its key has changed.
    ///
    /// # Errors
    /// As for `insert`; or the row before is needed and the table's replica identity does not give it.
    pub(super) fn update(
        &mut self,
        oid: u32,
        old: Option<OldTuple<'_>>,
        new: Tuple<'_>,
        emits: Emits,
        transaction: Transaction,
    ) -> Result<()> {
        let wants_before = self.shape.wants_update_before && self.shape.changes != Changes::Upsert;
        let relation = self.relation(oid)?;
        let whole = match old {
            Some(OldTuple::Row(row)) => Some(row),
            _ if wants_before => return Err(no_before(relation)),
            _ => None,
        };
        let before = match old {
            Some(OldTuple::Row(row) | OldTuple::Key(row)) if relation.changes_key(&row, &new) => Some(row),
            _ => None,
        };
        if let Some(before) = before {
            // With no more than the key, what is taken back would not be the row that was given.
            if !matches!(old, Some(OldTuple::Row(_))) && self.shape.changes == Changes::All {
                return Err(no_before(relation));
            }
            if emits.old {
                self.append(oid, before, None, RowKind::Delete, transaction)?;
            }
            if emits.new {
                self.append(oid, new, old, RowKind::Insert, transaction)?;
            }
            return Ok(());
        }
        if emits.old != emits.new {
            return self.move_between_chunks(oid, old, new, emits, transaction);
        }
        if !emits.old {
            return Ok(());
        }
        if let Some(row) = whole.filter(|_| wants_before) {
            self.append(oid, row, None, RowKind::UpdateBefore, transaction)?;
        }
        self.append(oid, new, old, RowKind::UpdateAfter, transaction)
    }

    /// Takes a row whose key stayed, and which the update has moved from one chunk of the snapshot to another, of which one was read
    /// before the update and the other after it: so the snapshot has both of its versions, or none.
    fn move_between_chunks(
        &mut self,
        oid: u32,
        old: Option<OldTuple<'_>>,
        new: Tuple<'_>,
        emits: Emits,
        transaction: Transaction,
    ) -> Result<()> {
        if let (true, Some(OldTuple::Row(before))) = (emits.old, old) {
            // The chunks may have come in any order: who keeps one row of a key may have either.
            self.append(oid, before, None, RowKind::Delete, transaction)?;
            self.append(oid, new, old, RowKind::Delete, transaction)?;
        }
        self.append(oid, new, old, RowKind::Insert, transaction)
    }

    /// Takes a row that was deleted.
    ///
    /// # Errors
    /// As for `update`.
    pub(super) fn delete(&mut self, oid: u32, old: OldTuple<'_>, transaction: Transaction) -> Result<()> {
        let relation = self.relation(oid)?;
        let needs_row = match self.shape.changes {
            Changes::All => true,
            Changes::Upsert => false,
            Changes::AppendOnly => self.shape.wants_update_before,
        };
        let row = match old {
            OldTuple::Row(row) => row,
            OldTuple::Key(_) if needs_row => return Err(no_before(relation)),
            OldTuple::Key(key) => key,
        };
        self.append(oid, row, None, RowKind::Delete, transaction)
    }

    /// Returns the text of a column of a row, for the decision whether a snapshot holds the row; None for NULL, and where there is no
    /// such column.
    pub(super) fn key_text<'t>(&self, oid: u32, row: &Tuple<'t>, column: &str) -> Option<&'t [u8]> {
        match row.value(self.relations.get(&oid)?.position(column)?)? {
            TupleValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns how many bytes the rows since the last batch have, those among them that are only expected.
    pub(super) fn byte_size(&self) -> usize {
        self.byte_size + self.expected_bytes
    }

    /// Returns whether rows of a table lack values that the stream left out.
    pub(super) fn lacks_values_of(&self, oid: u32) -> bool {
        self.unresolved.has_rows_of(oid)
    }

    /// Counts what has been read again, in the place of what was expected.
    pub(super) fn count_read(&mut self, byte_count: usize) {
        self.byte_size += byte_count;
        self.expected_bytes = 0;
    }

    /// Returns the rows since the last batch; None if there are none.
    ///
    /// # Errors
    /// Rows lack values that have not been read again: `resolve` has to come first.
    pub(super) fn finish(&mut self) -> Result<Option<ChangelogBatch>> {
        if !self.unresolved.is_empty() {
            return Err(Error::internal("rows are to be emitted that lack values"));
        }
        if self.rows.row_count() == 0 {
            return Ok(None);
        }
        self.byte_size = 0;
        let mut resolved = self.unresolved.take_resolved();
        let fill_in = |arrays: &mut [ArrayRef]| resolved.iter_mut().try_for_each(|rows| rows.fill_in(arrays));
        let batch = ResolvedRows::without_gone_rows(self.rows.finish(fill_in)?, &resolved)?;
        Ok(Some(batch).filter(|batch| batch.row_count() > 0))
    }

    fn relation(&self, oid: u32) -> Result<&RelationBinding> {
        self.relations.get(&oid).ok_or_else(|| undescribed(oid))
    }

    /// Appends a row. What the stream left out of it is taken from the row before, if that is whole, or noted.
    #[inline]
    fn append(
        &mut self,
        oid: u32,
        tuple: Tuple<'_>,
        before: Option<OldTuple<'_>>,
        kind: RowKind,
        transaction: Transaction,
    ) -> Result<()> {
        let Some(relation) = self.relations.get_mut(&oid) else { return Err(undescribed(oid)) };
        if tuple.column_count() != relation.columns.len() {
            return Err(relation.mismatch(tuple.column_count()));
        }
        self.byte_size += tuple.byte_count();
        let mut lacking = Vec::new();
        for (position, value) in tuple.values().enumerate() {
            let Some(target) = &mut relation.columns[position].target else { continue };
            let column = &mut self.rows.columns[target.column];
            let mut value = value;
            if value == TupleValue::Unchanged {
                value = match before {
                    Some(OldTuple::Row(row)) => row.value(position).unwrap_or(TupleValue::Unchanged),
                    _ => value,
                };
            }
            let pushed = match value {
                TupleValue::Text(text) => target.reader.push_text(text, column),
                TupleValue::Null => {
                    column.push_null();
                    Ok(())
                }
                TupleValue::Binary(bytes) => target.reader.push_binary(bytes, column),
                TupleValue::Unchanged => {
                    column.push_null();
                    if !Rule::Toast.is_off() {
                        lacking.push(target.column);
                    }
                    Ok(())
                }
            };
            if let Err(fault) = pushed {
                return Err(relation.value_error(position, value, fault, &self.shape));
            }
        }
        let origin = RowOrigin {
            commit_time: transaction.commit_time,
            database: &self.database,
            schema: &relation.schema,
            table: &relation.table,
        };
        if !lacking.is_empty() {
            if self.shape.changes == Changes::AppendOnly {
                return Err(relation.lacks_values());
            }
            let key = relation.key_texts(&tuple, before)?;
            let row = self.rows.row_count();
            let row = UnresolvedRow { oid, row, xid: transaction.xid, key, columns: lacking };
            self.expected_bytes += self.unresolved.expected_bytes(&row);
            self.unresolved.push(row);
        }
        self.rows.end_rows(1, kind, origin);
        Ok(())
    }
}

#[cold]
fn undescribed(oid: u32) -> Error {
    Error::data(format!("the stream has a change of table number {oid}, which it has not described"))
        .hint("The server speaks a protocol that is not known, or the connection has damaged it.")
}

/// Flink's words about a row before a change that the server did not send.
#[cold]
fn no_before(relation: &RelationBinding) -> Error {
    let (schema, table) = (&relation.schema, &relation.table);
    Error::data(format!(
        "The \"before\" field of UPDATE/DELETE message is null, please check the Postgres table has been set REPLICA IDENTITY to FULL level. You can update the setting by running the command in Postgres 'ALTER TABLE {schema}.{table} REPLICA IDENTITY FULL'."
    ))
    .class(FlinkClass::ILLEGAL_STATE)
    .hint(format!(
        "Run ALTER TABLE {} REPLICA IDENTITY FULL; or set 'changelog-mode' = 'upsert' for a table with a primary key. Changes that were made before have no earlier row, and are only read with 'upsert'.",
        relation.sql()
    ))
}

#[cfg(test)]
mod tests;
