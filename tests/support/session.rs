//! A session without a shell, which runs scripts.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use chrono_tz::Tz;
use futures::{StreamExt, TryStreamExt};
use lakehead::changelog::RowKind;
use lakehead::error::Result;
use lakehead::schema::format_cell;
use lakehead::session::{
    OutputPort, OutputStream, QueryResult, ResultColumn, Session, SessionSettings, StatementResult,
};
use lakehead::sql::{parse_statement, split};

/// Drops what connectors print.
#[derive(Debug)]
struct Nowhere;

impl OutputPort for Nowhere {
    fn print(&self, _: OutputStream, _: &str) {}
}

/// Runs the statements of a script in a session of their own, up to the first that fails; returns what the last one answers.
pub(crate) fn run_script(script: &str) -> Result<StatementResult> {
    with_session(script, |result| async { Ok(result) })
}

/// Runs a script, in which `{job}` stands for the job that it has started last, and, while its session lives, something with what its last statement answers.
pub(crate) fn with_session<T, F: Future<Output = Result<T>>>(
    script: &str,
    use_result: impl FnOnce(StatementResult) -> F,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let settings = SessionSettings {
            defaults: BTreeMap::new(),
            output: Arc::new(Nowhere),
            session_id: "test".to_owned(),
        };
        let mut session = Session::new(settings)?;
        let mut result = StatementResult::Done;
        let mut job = String::new();
        for piece in split(script) {
            let text = piece.text.replace("{job}", &job);
            result = session.execute(&parse_statement(&text)?, &text).await?;
            if let StatementResult::JobSubmitted(id) = &result {
                job = id.to_string();
            }
        }
        use_result(result).await
    })
}

/// Runs a script and returns the rows of its last query, each with its kind, cells between blanks.
pub(crate) fn changelog(script: &str) -> Result<Vec<String>> {
    with_session(script, |result| async move {
        let StatementResult::Query(query) = result else { panic!("not a query") };
        let columns = Arc::clone(&query.columns);
        let batches: Vec<_> = query.stream.try_collect().await?;
        let mut rows = Vec::new();
        for batch in batches {
            for row in 0..batch.row_count() {
                let cells = columns.iter().zip(batch.rows().columns()).map(|(column, array)| {
                    format_cell(&column.data_type, array, row, Tz::UTC).unwrap_or("NULL".to_owned())
                });
                let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
                rows.push(format!("{} {}", batch.kind(row), cells.join(" ")));
            }
        }
        Ok(rows)
    })
}

/// A session that is asked one statement after the other, and answers with text.
pub(crate) struct Conversation {
    runtime: tokio::runtime::Runtime,
    session: Session,
}

impl Conversation {
    /// Starts a session.
    pub(crate) fn new() -> Conversation {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let settings = SessionSettings {
            defaults: BTreeMap::new(),
            output: Arc::new(Nowhere),
            session_id: "test".to_owned(),
        };
        let session = runtime.block_on(async { Session::new(settings) }).unwrap();
        Conversation { runtime, session }
    }

    /// Runs a statement and returns what it answers: `ok`, `job` once its job has ended, rows with bars between their cells (those of
    /// a stream with their kind), `empty`, or the last part of an error's class and its message.
    pub(crate) fn answer(&mut self, text: &str) -> String {
        let Conversation { runtime, session } = self;
        let answered = runtime.block_on(async {
            match session.execute(&parse_statement(text)?, text).await? {
                StatementResult::Done | StatementResult::DoneWithNote(_) => Ok("ok".to_owned()),
                StatementResult::Table(table) => Ok(lines(&table.columns, &table.rows, &[], "")),
                StatementResult::Query(query) => query_lines(query).await,
                StatementResult::JobSubmitted(_) | StatementResult::JobFinished(_) => {
                    session.finish_jobs().await?;
                    Ok("job".to_owned())
                }
                other => Ok(format!("{other:?}")),
            }
        });
        match answered {
            Ok(text) if text.is_empty() => "empty".to_owned(),
            Ok(text) => text,
            Err(error) => {
                let class = error.flink_class().name().rsplit('.').next().unwrap();
                format!("{class}: {}", error.message())
            }
        }
    }

    /// Runs a query that ends, and returns its rows as text, or what is wrong.
    pub(crate) fn rows(&mut self, text: &str) -> std::result::Result<Vec<Vec<Option<String>>>, String> {
        let Conversation { runtime, session } = self;
        let collected: Result<_> = runtime.block_on(async {
            let StatementResult::Query(query) = session.execute(&parse_statement(text)?, text).await? else {
                panic!("'{text}' is no query");
            };
            query_rows(query).await
        });
        collected.map_err(|error| error.message().to_owned())
    }

    /// Runs statements one after the other and compares each answer.
    #[track_caller]
    pub(crate) fn expect(&mut self, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(self.answer(text).trim_end(), expected.trim_end(), "{text}");
        }
    }
}

/// Collects the rows of a query that ends.
async fn query_lines(mut query: QueryResult) -> Result<String> {
    let mut collected = Vec::new();
    while let Some(batch) = query.stream.next().await {
        let batch = batch?;
        let kinds: Vec<RowKind> = (0..batch.row_count()).map(|row| batch.kind(row)).collect();
        let kinds = if query.is_streaming { kinds } else { Vec::new() };
        collected.push(lines(&query.columns, batch.rows(), &kinds, "NULL"));
    }
    collected.retain(|text| !text.is_empty());
    Ok(collected.join("\n"))
}

/// Collects the cells of a query that ends.
async fn query_rows(mut query: QueryResult) -> Result<Vec<Vec<Option<String>>>> {
    let mut rows = Vec::new();
    while let Some(batch) = query.stream.next().await {
        let batch = batch?;
        let arrays = batch.rows().columns();
        for row in 0..batch.row_count() {
            let cells = query.columns.iter().zip(arrays);
            rows.push(
                cells.map(|(column, array)| format_cell(&column.data_type, array, row, Tz::UTC)).collect(),
            );
        }
    }
    Ok(rows)
}

/// Writes rows, one a line.
fn lines(columns: &[ResultColumn], rows: &RecordBatch, kinds: &[RowKind], null: &str) -> String {
    let line = |row: usize| {
        let kind = kinds.get(row).map(|kind| format!("{}|", kind.short_string())).unwrap_or_default();
        let cells = columns.iter().zip(rows.columns());
        let cells = cells.map(|(column, array)| format_cell(&column.data_type, array, row, Tz::UTC));
        kind + &cells.map(|cell| cell.unwrap_or_else(|| null.to_owned())).collect::<Vec<_>>().join("|")
    };
    (0..rows.num_rows()).map(line).collect::<Vec<_>>().join("\n")
}
