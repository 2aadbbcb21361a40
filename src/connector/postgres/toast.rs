//! Large values that an update did not change. The server keeps them outside of the row and leaves them out of the stream unless the
//! replica identity is FULL, so they are read from the table: for all rows of a batch at once.
//!
//! What is read may be newer than the change. Then the change that made it follows in the stream, and brings the row to where it
//! belongs. It must not be older: a transaction is in the stream as soon as its commit is on disk, but others see it only when its session
//! has left the list of running ones, so the reading waits until its snapshot sees the transactions of all changes. Those before
//! them that touched the same row are seen as well, because they held its lock. A row that is not there has been deleted or has got another
//! key since, which the stream will tell, and its change is dropped; so is one of a table that is not there any more.
//!
//! The stream says nothing of their size, so rows that lack values count as if these were as large as those that were read last.

use std::error::Error as StdError;
use std::pin::pin;
use std::time::Duration;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::interleave;
use futures::TryStreamExt;
use hashbrown::HashSet;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::change_decoder::ChangeDecoder;
use super::column_binding::qualified;
use super::connection::{ANSWER_WAIT, PgServer};
use super::pgoutput::TupleValue;
use super::relation_binding::RelationBinding;
use super::row_shape::RowShape;
use super::snapshot::SnapshotXids;
use super::table::quoted;
use crate::changelog::ChangelogBatch;
use crate::error::{Error, Result};
use crate::format::ColumnBuilder;

/// How many bytes a value is expected to have: at first, before any has been read, and at least. What is expected falls by half each time
/// at most: a table may have few large values among many that are smaller.
const EXPECTED_FIRST: usize = 128 << 10;
const EXPECTED_LEAST: usize = 8 << 10;

/// Rows that lack values, and values that have been read for them.
#[derive(Debug)]
pub(super) struct UnresolvedRows {
    waiting: Vec<UnresolvedRow>,
    resolved: Vec<ResolvedRows>,
    /// How many bytes a value is expected to have.
    expected: usize,
}

/// A row that lacks values.
#[derive(Debug)]
pub(super) struct UnresolvedRow {
    /// Its table.
    pub(super) oid: u32,
    /// Its number in the batch.
    pub(super) row: usize,
    /// The transaction that changed it.
    pub(super) xid: u64,
    /// The texts of its key.
    pub(super) key: Vec<String>,
    /// The columns that it lacks, by their positions among those that are declared.
    pub(super) columns: Vec<usize>,
}

/// Values for rows of a batch, by column: each with the row that it belongs to.
#[derive(Debug)]
pub(super) struct ResolvedRows {
    columns: Vec<(ColumnBuilder, Vec<usize>)>,
    gone: Vec<usize>,
    value_count: usize,
    byte_size: usize,
}

impl Default for UnresolvedRows {
    fn default() -> UnresolvedRows {
        UnresolvedRows { waiting: Vec::new(), resolved: Vec::new(), expected: EXPECTED_FIRST }
    }
}

impl UnresolvedRows {
    pub(super) fn push(&mut self, row: UnresolvedRow) {
        self.waiting.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether rows of a table lack values.
    pub(super) fn has_rows_of(&self, oid: u32) -> bool {
        self.waiting.iter().any(|row| row.oid == oid)
    }

    /// Returns how many bytes are expected of the values that a row lacks.
    pub(super) fn expected_bytes(&self, row: &UnresolvedRow) -> usize {
        row.columns.len() * self.expected
    }

    /// Takes values for all rows that lack some; returns how many bytes they have.
    fn resolve(&mut self, resolved: ResolvedRows) -> usize {
        let byte_size = resolved.byte_size;
        let found = byte_size.checked_div(resolved.value_count).unwrap_or_default();
        self.expected = found.max(self.expected / 2).max(EXPECTED_LEAST);
        self.resolved.push(resolved);
        self.waiting.clear();
        byte_size
    }

    /// Returns the values that have been read, and starts anew.
    pub(super) fn take_resolved(&mut self) -> Vec<ResolvedRows> {
        std::mem::take(&mut self.resolved)
    }
}

impl ResolvedRows {
    fn new(shape: &RowShape) -> ResolvedRows {
        let column = |data_type| (ColumnBuilder::new(data_type), Vec::new());
        ResolvedRows {
            columns: shape.physical.iter().map(|declared| column(&declared.data_type)).collect(),
            gone: Vec::new(),
            value_count: 0,
            byte_size: 0,
        }
    }

    /// Takes what a row lacks: `values` gives the text of a column.
    fn push<'v>(
        &mut self,
        unresolved: &UnresolvedRow,
        relation: &mut RelationBinding,
        shape: &RowShape,
        mut value: impl FnMut(usize) -> Result<Option<&'v [u8]>>,
    ) -> Result<()> {
        for position in 0..relation.columns.len() {
            let Some(target) = &mut relation.columns[position].target else { continue };
            if !unresolved.columns.contains(&target.column) {
                continue;
            }
            let (builder, rows) = &mut self.columns[target.column];
            rows.push(unresolved.row);
            self.value_count += 1;
            match value(target.column)? {
                Some(text) => {
                    self.byte_size += text.len();
                    if let Err(fault) = target.reader.push_text(text, builder) {
                        return Err(relation.value_error(position, TupleValue::Text(text), fault, shape));
                    }
                }
                None => builder.push_null(),
            }
        }
        Ok(())
    }

    /// Puts the values into the columns of the batch.
    pub(super) fn fill_in(&mut self, arrays: &mut [ArrayRef]) -> Result<()> {
        for (array, (builder, rows)) in arrays.iter_mut().zip(&mut self.columns) {
            if rows.is_empty() {
                continue;
            }
            let values = builder.finish()?;
            let mut places: Vec<(usize, usize)> = (0..array.len()).map(|row| (0, row)).collect();
            for (index, row) in rows.iter().enumerate() {
                places[*row] = (1, index);
            }
            *array = interleave(&[array.as_ref(), values.as_ref()], &places)?;
        }
        Ok(())
    }

    /// Leaves rows out that are not there any more.
    pub(super) fn without_gone_rows(batch: ChangelogBatch, all: &[ResolvedRows]) -> Result<ChangelogBatch> {
        let gone: HashSet<usize> = all.iter().flat_map(|resolved| &resolved.gone).copied().collect();
        if gone.is_empty() {
            return Ok(batch);
        }
        let kept = (0..batch.row_count()).filter(|row| !gone.contains(row)).map(|row| row as u32);
        batch.take(&UInt32Array::from_iter_values(kept))
    }
}

/// How long is waited before the snapshot is looked at again: first, and at most.
const WAIT_FIRST: Duration = Duration::from_millis(2);
const WAIT_MOST: Duration = Duration::from_millis(500);

impl ChangeDecoder {
    /// Returns how many rows lack values that the stream left out; they have to be resolved before the batch is taken.
    pub(super) fn unresolved_count(&self) -> usize {
        self.unresolved.waiting.len()
    }

    /// Leaves out the rows that lack values: their table is being emptied, so nothing of them is to be read again.
    pub(super) fn leave_out_unresolved(&mut self) {
        let mut resolved = ResolvedRows::new(&self.shape);
        resolved.gone.extend(self.unresolved.waiting.iter().map(|row| row.row));
        self.unresolved.resolve(resolved);
    }

    /// Reads the values that rows lack. May be dropped at any time and called again.
    ///
    /// # Errors
    /// The server cannot be asked, or a value cannot be read.
    pub(super) async fn resolve(&mut self, client: &mut Client, server: &PgServer) -> Result<()> {
        if self.unresolved.is_empty() {
            return Ok(());
        }
        let ChangeDecoder { relations, unresolved, shape, .. } = self;
        let xids: Vec<u64> = unresolved.waiting.iter().map(|row| row.xid).collect();
        wait_until_seen(client, server, &xids).await?;
        // One snapshot for all tables, and a later one than that which was looked at.
        let builder =
            client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let reading =
            server.answer_within("reading large values again", ANSWER_WAIT, builder.start()).await?;
        let mut resolved = ResolvedRows::new(shape);
        for (oid, relation) in relations.iter_mut() {
            let rows: Vec<&UnresolvedRow> = unresolved.waiting.iter().filter(|row| row.oid == *oid).collect();
            if !rows.is_empty() {
                read_again(&reading, server, relation, &rows, shape, &mut resolved).await?;
            }
        }
        let read = unresolved.resolve(resolved);
        self.count_read(read);
        Ok(())
    }
}

/// Reads what rows of one table lack.
async fn read_again(
    reading: &Transaction<'_>,
    server: &PgServer,
    relation: &mut RelationBinding,
    rows: &[&UnresolvedRow],
    shape: &RowShape,
    resolved: &mut ResolvedRows,
) -> Result<()> {
    let doing = format!("reading large values of table {} again", relation.label());
    let failed = |error| server.sql_error(&doing, error);
    let oid = rows.first().map_or(0, |row| row.oid);
    let Some(table) = server.answer_within(&doing, ANSWER_WAIT, table_now(reading, oid)).await? else {
        resolved.gone.extend(rows.iter().map(|row| row.row));
        return Ok(());
    };
    let reread = Reread::new(relation, rows, &table)?;
    let keys = reread.keys.iter().map(|texts| (texts, Type::TEXT_ARRAY));
    // Only what is known to be there now can be dropped or renamed meanwhile.
    let asked = async {
        match reading.query_typed_raw(&reread.sql, keys).await {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Err(error)),
            asked => asked.map(Ok),
        }
    };
    let found = match server.answer_within(&doing, ANSWER_WAIT, asked).await? {
        Ok(found) => found,
        // The next attempt finds it gone, or under its new name.
        Err(error) => return Err(Error::unavailable(failed(error).message().to_owned())),
    };
    let mut found = pin!(found);
    let mut is_there = vec![false; rows.len()];
    while let Some(values) = server.answer_within(&doing, ANSWER_WAIT, found.try_next()).await? {
        let number = values.try_get::<_, i64>(0).map_err(failed)? as usize - 1;
        if std::mem::replace(&mut is_there[number], true) {
            return Err(relation.not_unique());
        }
        resolved.push(rows[number], relation, shape, |column| {
            let place = reread.columns.iter().position(|selected| *selected == column).unwrap_or(0);
            let text: Option<RawText<'_>> = values.try_get(place + 1).map_err(failed)?;
            Ok(text.map(|RawText(bytes)| bytes))
        })?;
    }
    let gone = rows.iter().zip(is_there).filter(|(_, is_there)| !is_there);
    resolved.gone.extend(gone.map(|(row, _)| row.row));
    Ok(())
}

/// A text as the server sends it, which need not be UTF-8 where it does not know the encoding of its texts.
struct RawText<'a>(&'a [u8]);

impl<'a> FromSql<'a> for RawText<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<RawText<'a>, Box<dyn StdError + Sync + Send>> {
        Ok(RawText(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
impl ChangeDecoder {
    /// Resolves rows by a function from tables and keys to the declared columns of the row that is there.
    pub(super) fn resolve_from(
        &mut self,
        read: impl Fn(u32, &[String]) -> Option<Vec<Option<String>>>,
    ) -> Result<()> {
        let ChangeDecoder { relations, unresolved, shape, .. } = self;
        let mut resolved = ResolvedRows::new(shape);
        for row in &unresolved.waiting {
            match (read(row.oid, &row.key), relations.get_mut(&row.oid)) {
                (Some(texts), Some(relation)) => {
                    resolved.push(row, relation, shape, |column| {
                        Ok(texts[column].as_deref().map(str::as_bytes))
                    })?;
                }
                _ => resolved.gone.push(row.row),
            }
        }
        let read = unresolved.resolve(resolved);
        self.count_read(read);
        Ok(())
    }
}

/// Waits until snapshots see the given transactions, all of which are committed.
async fn wait_until_seen(client: &Client, server: &PgServer, xids: &[u64]) -> Result<()> {
    const DOING: &str = "waiting until transactions are visible";
    let mut wait = WAIT_FIRST;
    loop {
        let asked = client.query_typed_one("SELECT pg_catalog.pg_current_snapshot()::text", &[]);
        let row = server.answer_within(DOING, ANSWER_WAIT, asked).await?;
        let text = row.try_get::<_, &str>(0).map_err(|error| server.sql_error(DOING, error))?;
        let snapshot: SnapshotXids = text.parse()?;
        if xids.iter().all(|xid| snapshot.sees(*xid)) {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MOST);
    }
}

/// Returns what FROM takes to read a table's own rows, under the name that it has now; None if it is not there any more.
async fn table_now(reading: &Transaction<'_>, oid: u32) -> Result<Option<String>, tokio_postgres::Error> {
    const QUERY: &str = "SELECT n.nspname, c.relname, c.relkind = 'p' FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    let Some(row) = reading.query_typed_opt(QUERY, &[(&oid, Type::OID)]).await? else { return Ok(None) };
    let name = format!("{}.{}", quoted(row.try_get(0)?), quoted(row.try_get(1)?));
    // Those of tables that inherit from it may have the same keys.
    Ok(Some(if row.try_get(2)? { name } else { format!("ONLY {name}") }))
}

/// How rows are read again.
struct Reread {
    sql: String,
    /// The texts of each key column, by row.
    keys: Vec<Vec<String>>,
    /// The declared columns that are selected, in this order.
    columns: Vec<usize>,
}

impl Reread {
    fn new(relation: &RelationBinding, rows: &[&UnresolvedRow], table: &str) -> Result<Reread> {
        let key_columns = relation.key_columns()?;
        let (mut columns, mut selected) = (Vec::new(), "SELECT k.number".to_owned());
        for target in relation.columns.iter().filter_map(|column| column.target.as_ref()) {
            if rows.iter().any(|row| row.columns.contains(&target.column)) {
                columns.push(target.column);
                selected.push_str(", ");
                selected.push_str(&target.expression);
            }
        }
        let names: Vec<String> = (1..=key_columns.len()).map(|number| format!("k{number}")).collect();
        let arrays: Vec<String> =
            (1..=names.len()).map(|number| format!("pg_catalog.unnest(${number}::text[])")).collect();
        let equal: Vec<String> = key_columns
            .iter()
            .zip(&names)
            .map(|((column, comparison), name)| comparison.with(&qualified(column), &format!("k.{name}")))
            .collect();
        let sql = format!(
            "{selected} FROM ROWS FROM ({}) WITH ORDINALITY AS k({}, number) JOIN {table} AS t ON {}",
            arrays.join(", "),
            names.join(", "),
            equal.join(" AND ")
        );
        let texts = |key: usize| rows.iter().map(|row| row.key[key].clone()).collect();
        Ok(Reread { sql, keys: (0..names.len()).map(texts).collect(), columns })
    }
}
