//! The batch answer: the query over tables that hold the rows that are there, as a sorted list of rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono_tz::Tz;
use futures::StreamExt;

use super::history::Table;
use super::query::{Mode, Query};
use crate::changelog::ChangelogBatch;
use crate::error::Result;
use crate::schema::{DataType, TypeRoot, format_cell};
use crate::session::{OutputPort, OutputStream, Session, SessionSettings, StatementResult};
use crate::sql::parse_statement;

#[derive(Debug)]
pub(super) struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// Starts a session in a mode.
pub(super) fn session(mode: Mode) -> Session {
    let mode = if mode == Mode::Batch { "batch" } else { "streaming" };
    let defaults = BTreeMap::from([
        ("execution.runtime-mode".to_owned(), mode.to_owned()),
        ("table.local-time-zone".to_owned(), "UTC".to_owned()),
    ]);
    let settings =
        SessionSettings { defaults, output: Arc::new(Nowhere), session_id: "equivalence".to_owned() };
    Session::new(settings).unwrap()
}

/// Runs a statement.
pub(super) async fn execute(session: &mut Session, text: &str) -> Result<StatementResult> {
    session.execute(&parse_statement(text)?, text).await
}

/// Answers a query over the rows that are there after some changes of each table.
pub(super) async fn answer(tables: &[Table], query: &Query, changes: &[usize]) -> Result<Vec<String>> {
    let mut session = session(Mode::Batch);
    for (table, count) in tables.iter().zip(changes) {
        execute(&mut session, &table.table_after(*count)).await?;
    }
    let StatementResult::Query(mut result) = execute(&mut session, &query.sql(Mode::Batch)).await? else {
        panic!("a query answers with rows");
    };
    let types: Vec<DataType> = result.columns.iter().map(|column| column.data_type.clone()).collect();
    let mut rows = Vec::new();
    while let Some(batch) = result.stream.next().await {
        rows.extend(row_texts(&types, &batch?));
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Writes each row as text. Doubles have nine digits: two ways to the same variance differ behind them.
pub(super) fn row_texts(types: &[DataType], batch: &ChangelogBatch) -> Vec<String> {
    let rows = batch.rows();
    let cell = |column: usize, row: usize| {
        let text = format_cell(&types[column], rows.column(column).as_ref(), row, Tz::UTC)?;
        if !matches!(types[column].root, TypeRoot::Double) {
            return Some(text);
        }
        Some(text.parse::<f64>().map_or(text, |number| format!("{:.8e}", number + 0.0)))
    };
    (0..rows.num_rows())
        .map(|row| {
            let cells: Vec<String> = (0..types.len())
                .map(|column| cell(column, row).unwrap_or_else(|| "NULL".to_owned()))
                .collect();
            cells.join("|")
        })
        .collect()
}
