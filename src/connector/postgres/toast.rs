//! Large values that an update did not change. The server keeps them outside of the row and leaves them out of the stream unless the
//! replica identity is FULL, so they are read from the table: for all rows of a batch at once.
//!
//! What is read may be newer than the change. Then the change that made it follows in the stream, and brings the row to where it
//! belongs. It must not be older: a transaction is in the stream as soon as its commit is on disk, but others see it only when its session
//! has left the list of running ones, so the reading waits until its snapshot sees the transactions of all changes. Those before
//! them that touched the same row are seen as well, because they held its lock. A row that is not there has been deleted or has got another
//! key since, which the stream will tell, and its change is dropped.

use std::pin::pin;
use std::time::Duration;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::interleave;
use futures::TryStreamExt;
use hashbrown::HashSet;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::change_decoder::ChangeDecoder;
use super::column_binding::qualified;
use super::connection::PgServer;
use super::pgoutput::TupleValue;
use super::relation_binding::RelationBinding;
use super::row_shape::RowShape;
use super::snapshot::SnapshotXids;
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::format::ColumnBuilder;

/// Rows that lack values, and values that have been read for them.
#[derive(Debug, Default)]
pub(super) struct UnresolvedRows {
    waiting: Vec<UnresolvedRow>,
    resolved: Vec<ResolvedRows>,
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
}

impl UnresolvedRows {
    pub(super) fn push(&mut self, row: UnresolvedRow) {
        self.waiting.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes values for all rows that lack some.
    fn resolve(&mut self, resolved: ResolvedRows) {
        self.resolved.push(resolved);
        self.waiting.clear();
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
        }
    }

    /// Takes what a row lacks: `values` gives the text of a column.
    fn push<'v>(
        &mut self,
        unresolved: &UnresolvedRow,
        relation: &mut RelationBinding,
        shape: &RowShape,
        mut value: impl FnMut(usize) -> Result<Option<&'v str>>,
    ) -> Result<()> {
        for position in 0..relation.columns.len() {
            let Some(target) = &mut relation.columns[position].target else { continue };
            if !unresolved.columns.contains(&target.column) {
                continue;
            }
            let (builder, rows) = &mut self.columns[target.column];
            rows.push(unresolved.row);
            match value(target.column)? {
                Some(text) => {
                    if let Err(fault) = target.reader.push_text(text.as_bytes(), builder) {
                        let text = TupleValue::Text(text.as_bytes());
                        return Err(relation.value_error(position, text, fault, shape));
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
        let reading = builder.start().await;
        let reading = reading.map_err(|error| server.sql_error("reading large values again", error))?;
        let mut resolved = ResolvedRows::new(shape);
        for (oid, relation) in relations.iter_mut() {
            let rows: Vec<&UnresolvedRow> = unresolved.waiting.iter().filter(|row| row.oid == *oid).collect();
            if rows.is_empty() {
                continue;
            }
            let doing = format!("reading large values of table {} again", relation.label());
            let failed = |error| server.sql_error(&doing, error);
            let reread = Reread::new(relation, &rows, &name_of(&reading, *oid).await.map_err(failed)?)?;
            let found = reading.query_raw(&reread.sql, &reread.keys).await.map_err(failed)?;
            let mut found = pin!(found);
            let mut is_there = vec![false; rows.len()];
            while let Some(values) = found.try_next().await.map_err(failed)? {
                let number = values.try_get::<_, i64>(0).map_err(failed)? as usize - 1;
                is_there[number] = true;
                resolved.push(rows[number], relation, shape, |column| {
                    let place = reread.columns.iter().position(|selected| *selected == column).unwrap_or(0);
                    values.try_get(place + 1).map_err(failed)
                })?;
            }
            let gone = rows.iter().zip(is_there).filter(|(_, is_there)| !is_there);
            resolved.gone.extend(gone.map(|(row, _)| row.row));
        }
        unresolved.resolve(resolved);
        Ok(())
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
                    resolved.push(row, relation, shape, |column| Ok(texts[column].as_deref()))?;
                }
                _ => resolved.gone.push(row.row),
            }
        }
        unresolved.resolve(resolved);
        Ok(())
    }
}

/// Waits until snapshots see the given transactions, all of which are committed.
async fn wait_until_seen(client: &Client, server: &PgServer, xids: &[u64]) -> Result<()> {
    let failed = |error| server.sql_error("waiting until transactions are visible", error);
    let mut wait = WAIT_FIRST;
    loop {
        let row =
            client.query_one("SELECT pg_catalog.pg_current_snapshot()::text", &[]).await.map_err(failed)?;
        let snapshot: SnapshotXids = row.try_get::<_, &str>(0).map_err(failed)?.parse()?;
        if xids.iter().all(|xid| snapshot.sees(*xid)) {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MOST);
    }
}

/// Returns what a table is called now, as SQL takes it.
async fn name_of(transaction: &Transaction<'_>, oid: u32) -> Result<String, tokio_postgres::Error> {
    transaction.query_one("SELECT $1::pg_catalog.oid::pg_catalog.regclass::text", &[&oid]).await?.try_get(0)
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
