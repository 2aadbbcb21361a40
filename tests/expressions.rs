//! Expressions and bounded queries with the answers that a real Flink gave (batch, zone Europe/Berlin), cell by cell.
//!
//! `golden/flink/expressions.jsonl` holds one case a line: `sql`, `columns`, `rows`, or `error`, the reason of a refusal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::TryStreamExt;
use lakehead::error::{Error, Result};
use lakehead::schema::format_cell;
use lakehead::session::{OutputPort, OutputStream, Session, SessionSettings, StatementResult};
use serde_json::Value;

/// Drops what connectors print.
#[derive(Debug)]
struct NoOutput;

impl OutputPort for NoOutput {
    fn print(&self, _: OutputStream, _: &str) {}
}

fn session() -> Session {
    let defaults = [("execution.runtime-mode", "batch"), ("table.local-time-zone", "Europe/Berlin")];
    let defaults: BTreeMap<String, String> =
        defaults.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Session::new(SessionSettings {
        defaults,
        output: Arc::new(NoOutput),
        session_id: "expressions".to_owned(),
    })
    .unwrap()
}

/// Runs a query and returns its cells as the client prints them.
async fn answer(session: &mut Session, sql: &str) -> Result<Vec<Vec<String>>> {
    let statement = lakehead::sql::parse_statement(sql)?;
    let StatementResult::Query(query) = session.execute(&statement, sql).await? else {
        return Err(Error::internal("not a query"));
    };
    let columns = Arc::clone(&query.columns);
    let batches: Vec<_> = query.stream.try_collect().await?;
    let zone: chrono_tz::Tz = "Europe/Berlin".parse().unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.row_count() {
            let cells = columns.iter().zip(batch.rows().columns()).map(|(column, array)| {
                format_cell(&column.data_type, array, row, zone)
                    .unwrap_or_else(|| "<NULL>".to_owned())
                    .trim()
                    .to_owned()
            });
            rows.push(cells.collect());
        }
    }
    Ok(rows)
}

#[tokio::test(flavor = "multi_thread")]
async fn expressions_have_flinks_values() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink/expressions.jsonl"),
    )
    .unwrap();
    let mut session = session();
    let mut wrong = Vec::new();
    let mut cells = 0;
    let (mut missing, mut total) = (0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let sql = case["sql"].as_str().unwrap().trim_end_matches(';');
        total += 1;
        let ours = answer(&mut session, sql).await;
        match (&case["error"], ours) {
            (Value::String(_), Err(_)) => {}
            (Value::String(error), Ok(rows)) => wrong.push(format!(
                "{sql}\n   Flink refuses: {}\n   ours: {rows:?}",
                error.lines().next().unwrap()
            )),
            (_, Err(error)) => {
                missing += 1;
                wrong.push(format!("ERR {sql}\n   {error}"));
            }
            (_, Ok(rows)) => {
                let expected: Vec<Vec<String>> = serde_json::from_value(case["rows"].clone()).unwrap();
                cells += expected.iter().map(Vec::len).sum::<usize>();
                if expected != rows {
                    for (e, o) in expected.iter().zip(&rows) {
                        for (i, (e, o)) in e.iter().zip(o).enumerate() {
                            if e != o {
                                wrong.push(format!("{} : flink {e} ours {o}   IN {sql}", i));
                            }
                        }
                    }
                    if expected.len() != rows.len() {
                        wrong.push(format!("{sql}: rows {expected:?} {rows:?}"));
                    }
                }
            }
        }
    }
    println!("{total} cases, {cells} cells, {missing} missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
