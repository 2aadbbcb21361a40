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

/// Cells where we differ: a piece of the query, the column, and why.
const OTHER_CELLS: &[(&str, usize, &str)] = &[
    ("NULLIF(1.5, 2)", 9, FOLDED),
    ("CAST(NULL AS BOOLEAN) IS UNKNOWN", 1, FOLDED),
    ("CAST(NULL AS BOOLEAN) IS UNKNOWN", 3, FOLDED),
    ("REPLACE('日本語', 'l', 'LL')", 9, "Flink's OVERLAY cuts a character of two UTF-16 units in half"),
];

/// Queries that Flink refuses and we answer, or the other way round: a piece of the query, and why.
const OTHER_OUTCOMES: &[(&str, &str)] = &[
    ("CAST(99.99 AS DECIMAL(3,1))", NULL_PRINTED),
    ("LPAD(", NULL_PRINTED),
    ("0001-01-01 00:00:00.123456789", "Arrow's nanoseconds reach from 1677 to 2262"),
    ("REGEXP(", LATER),
    ("REGEXP_EXTRACT(", LATER),
    ("SPLIT(", LATER),
    ("JSON_", LATER),
    ("IS JSON", LATER),
    ("ARRAY_DISTINCT(", LATER),
    ("ARRAY_APPEND(", LATER),
    ("OVER (", LATER),
    ("UNNEST", LATER),
];

const FOLDED: &str = "Flink's planner folds the constant and with it the type's nullability";
const NULL_PRINTED: &str = "Flink's collector refuses a NULL of a NOT NULL type, we print it";
const LATER: &str = "not supported yet, and refused by name";

#[tokio::test(flavor = "multi_thread")]
async fn expressions_and_queries_have_flinks_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/flink/expressions.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let mut session = session();
    let mut wrong = Vec::new();
    let (mut equal_cells, mut other_outcomes) = (0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let sql = case["sql"].as_str().unwrap().trim_end_matches(';');
        let is_other = OTHER_OUTCOMES.iter().any(|(piece, _)| sql.contains(piece));
        match (case["error"].as_str(), answer(&mut session, sql).await) {
            (Some(_), Err(_)) => {}
            (Some(_), Ok(_)) | (None, Err(_)) if is_other => other_outcomes += 1,
            (Some(error), Ok(rows)) => {
                wrong.push(format!("{sql}\n  Flink refuses: {error}\n  ours: {rows:?}"));
            }
            (None, Err(error)) => wrong.push(format!("{sql}\n  {error}")),
            (None, Ok(rows)) => {
                let expected: Vec<Vec<String>> = serde_json::from_value(case["rows"].clone()).unwrap();
                equal_cells += compare(sql, &expected, &rows, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Both figures are what was reached: they may rise and fall only with the lists above.
    assert!(equal_cells > 1_000, "only {equal_cells} cells were compared");
    assert!(other_outcomes <= 25, "{other_outcomes} queries end otherwise than in Flink");
}

/// Compares the rows of a query and returns how many cells were equal.
fn compare(sql: &str, expected: &[Vec<String>], ours: &[Vec<String>], wrong: &mut Vec<String>) -> usize {
    if expected.len() != ours.len() {
        wrong.push(format!("{sql}\n  Flink: {expected:?}\n  ours: {ours:?}"));
    }
    let mut equal = 0;
    for (expected, ours) in expected.iter().zip(ours) {
        for (column, (expected, ours)) in expected.iter().zip(ours).enumerate() {
            let is_other =
                OTHER_CELLS.iter().any(|(piece, other, _)| sql.contains(piece) && *other == column);
            if expected == ours {
                equal += 1;
            } else if !is_other {
                wrong.push(format!("column {column}: Flink {expected}, ours {ours}, in {sql}"));
            }
        }
    }
    equal
}
