//! Tables of a test's database, and what is read of them as text.

use tokio_postgres::types::Type;

use super::{SnapshotReader, SnapshotTable, TableSnapshot};
use crate::changelog::ChangelogBatch;
use crate::connector::postgres::copy_decoder::CopyPlan;
use crate::connector::postgres::pg_types::PgTypes;
use crate::connector::postgres::row_shape::{Changes, RowShape};
use crate::connector::postgres::settings::{ChunkSettings, TableSelection};
use crate::connector::postgres::table::{PgColumn, PgTable, quoted};
use crate::connector::postgres::tables::{GeneratedColumns, load_tables};
use crate::connector::postgres::testing::{TestDatabase, cells, shape};
use crate::error::Result;
use crate::schema::TypeRoot;

impl TestDatabase {
    /// Describes a table.
    pub(super) async fn table(&self, schema: &str, name: &str) -> PgTable {
        let selection = TableSelection::new(schema.to_owned(), name.to_owned(), true).unwrap();
        load_tables(&self.server, &self.client, &selection, GeneratedColumns::Selected)
            .await
            .unwrap()
            .remove(0)
    }

    /// Returns what a reader takes.
    pub(super) async fn input(
        &self,
        schema: &str,
        name: &str,
        state: TableSnapshot,
        chunks: &ChunkSettings,
    ) -> Result<SnapshotTable> {
        let types = PgTypes::load(&self.client).await.unwrap();
        let table = self.table(schema, name).await;
        let copy = CopyPlan::new(&declared(&table), &table, &types, &self.name)?;
        Ok(SnapshotTable { table, copy, state, chunks: chunks.clone() })
    }

    /// Makes a reader that goes on from states.
    pub(super) async fn try_reader(
        &self,
        tables: &[(&str, TableSnapshot)],
        chunks: &ChunkSettings,
    ) -> Result<SnapshotReader> {
        let mut inputs = Vec::new();
        for (name, state) in tables {
            inputs.push(self.input("public", name, state.clone(), chunks).await?);
        }
        SnapshotReader::new(&self.server, inputs, 3)
    }

    /// Makes a reader of a table that nobody has read, in chunks of so many rows.
    pub(super) async fn reader(&self, table: &str, chunk_rows: u64) -> SnapshotReader {
        self.try_reader(&[(table, TableSnapshot::Pending)], &chunks_of(chunk_rows)).await.unwrap()
    }

    /// Returns all rows of a table as the server writes them, sorted.
    pub(super) async fn rows(&self, table: &str) -> Vec<String> {
        let columns: Vec<String> =
            self.table("public", table).await.columns.iter().map(|column| quoted(&column.name)).collect();
        let query = format!("SELECT concat_ws('|', {}) FROM {}", columns.join(", "), quoted(table));
        let mut rows: Vec<String> =
            self.client.query(&query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        rows.sort();
        rows
    }
}

/// Chunks of so many rows.
pub(super) fn chunks_of(rows: u64) -> ChunkSettings {
    ChunkSettings { rows: Some(rows), key_column: None, even_between: (0.05, 1000.0) }
}

/// Returns the declaration of a table with all its columns, numbers as numbers and all else as text.
pub(super) fn declared(table: &PgTable) -> RowShape {
    let column = |column: &PgColumn| match Type::from_oid(column.type_oid) {
        Some(Type::INT2 | Type::INT4 | Type::INT8) => TypeRoot::BigInt,
        _ => TypeRoot::STRING,
    };
    let columns: Vec<_> = table.columns.iter().map(|found| (found.name.as_str(), column(found))).collect();
    shape(&columns, &[], Changes::Upsert)
}

/// Reads to the end; returns the rows, sorted, and the number of chunks.
pub(super) async fn read_all(reader: &mut SnapshotReader) -> (Vec<String>, usize) {
    let (mut rows, mut chunks) = (Vec::new(), 0);
    while let Some(piece) = reader.next().await.unwrap() {
        rows.extend(texts(&piece.batch));
        chunks += usize::from(piece.ends_chunk);
    }
    rows.sort();
    (rows, chunks)
}

/// Returns the rows of a batch, their columns joined.
pub(super) fn texts(batch: &ChangelogBatch) -> Vec<String> {
    cells(batch, "").iter().map(|row| row.join("|")).collect()
}
