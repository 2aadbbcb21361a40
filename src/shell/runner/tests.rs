//! The runner over an engine that answers what a test says.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arrow::array::{Int32Array, RecordBatch};
use async_trait::async_trait;
use futures::stream;
use tokio::sync::watch;

use super::*;
use crate::changelog::ChangelogBatch;
use crate::options::SessionConfig;
use crate::schema::TypeRoot;
use crate::session::{JobId, JobProgress, ResultColumn, StoppedJob};
use crate::shell::print::console::tests::{Captured, captured};
use crate::shell::script::{self, ScriptEnd, ScriptSettings};

/// What the engine does with the next statement.
type Answer = Box<dyn FnOnce() -> Result<StatementResult> + Send>;

/// Answers statements in order, whatever they say.
struct Scripted {
    config: SessionConfig,
    answers: Mutex<Vec<Answer>>,
}

#[async_trait]
impl Engine for Scripted {
    async fn execute(&mut self, _: &Statement, _: &str) -> Result<StatementResult> {
        // A cancelled statement must have had the chance to wait.
        tokio::task::yield_now().await;
        let answer = self.answers.lock().unwrap().remove(0);
        answer()
    }

    fn config(&self) -> &SessionConfig {
        &self.config
    }

    fn catalog_names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn database_names(&self, _: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    async fn table_names(&self, _: &[String]) -> Vec<String> {
        Vec::new()
    }

    async fn column_names(&self, _: &[String]) -> Vec<String> {
        Vec::new()
    }

    fn function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn running_jobs(&self) -> Vec<JobProgress> {
        Vec::new()
    }

    async fn wait_for_jobs(&mut self) -> Result<()> {
        Ok(())
    }

    async fn stop_jobs(&mut self) -> Vec<StoppedJob> {
        Vec::new()
    }

    fn cancel_jobs(&mut self) {}
}

/// A runner, what it prints, and its Ctrl-C.
fn runner(settings: RunnerSettings, answers: Vec<Answer>) -> (Runner, Captured, watch::Sender<u64>) {
    let (console, out, _) = captured(settings.output != OutputFormat::Tableau);
    let (presses, interrupts) = Interrupts::of_test();
    let mut defaults = BTreeMap::new();
    defaults.insert("sql-client.display.print-time-cost".to_owned(), "false".to_owned());
    defaults.insert("table.local-time-zone".to_owned(), "UTC".to_owned());
    let engine = Scripted { config: SessionConfig::new(defaults), answers: Mutex::new(answers) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    (Runner::new(Box::new(engine), runtime, Arc::new(console), interrupts, settings), out, presses)
}

const SCRIPT: RunnerSettings =
    RunnerSettings { output: OutputFormat::Tableau, is_interactive: false, is_init: false };
const STOP: ScriptSettings = ScriptSettings { echo: false, stop_on_error: true };

fn done() -> Answer {
    Box::new(|| Ok(StatementResult::Done))
}

fn failed() -> Answer {
    Box::new(|| Err(Error::validation("nope").at(crate::error::Span::new(0, 4))))
}

fn batch(values: Vec<i32>) -> ChangelogBatch {
    let rows = RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(values)) as _)]).unwrap();
    ChangelogBatch::inserts(rows)
}

fn query(batches: Vec<Result<ChangelogBatch>>, is_endless: bool) -> Answer {
    Box::new(move || {
        let columns =
            Arc::new(vec![ResultColumn { name: "id".to_owned(), data_type: TypeRoot::Int.nullable() }]);
        let rows = stream::iter(batches);
        let stream = if is_endless { rows.chain(stream::pending()).boxed() } else { rows.boxed() };
        Ok(StatementResult::Query(QueryResult { columns, is_streaming: true, stream, progress: None }))
    })
}

fn run(
    settings: RunnerSettings,
    script_text: &str,
    answers: Vec<Answer>,
    stop: ScriptSettings,
) -> (ScriptEnd, String) {
    let (mut runner, out, _presses) = runner(settings, answers);
    let end = script::run(&mut runner, &SourceText::new("a.sql", script_text), stop);
    (end, out.text())
}

#[test]
fn a_script_stops_at_its_first_error_with_the_place_in_the_file() {
    let (end, printed) = run(SCRIPT, "USE d;\n\n  USE e; USE f;", vec![done(), failed(), done()], STOP);
    assert_eq!(end, ScriptEnd::Failed);
    assert!(
        printed.starts_with("[INFO] Execute statement succeeded.\n[ERROR] Could not execute"),
        "{printed}"
    );
    assert!(printed.contains("--> a.sql:3:3\n"), "{printed}");
    assert!(printed.ends_with("^^^^\n"), "{printed}");
}

#[test]
fn a_script_that_goes_on_has_failed_all_the_same() {
    let settings = ScriptSettings { stop_on_error: false, ..STOP };
    let (end, printed) = run(SCRIPT, "USE d; USE e;", vec![failed(), done()], settings);
    assert_eq!(end, ScriptEnd::Failed);
    assert!(printed.ends_with("[INFO] Execute statement succeeded.\n"), "{printed}");
}

#[test]
fn a_panic_is_our_bug_and_the_next_statement_runs() {
    let settings = ScriptSettings { stop_on_error: false, ..STOP };
    let answers: Vec<Answer> = vec![Box::new(|| panic!("no such operator")), done()];
    let (end, printed) = run(SCRIPT, "USE d; USE e;", answers, settings);
    assert_eq!(end, ScriptEnd::Failed);
    assert!(printed.contains("internal error: no such operator"), "{printed}");
    assert!(printed.contains("Please report it"), "{printed}");
    assert!(printed.ends_with("[INFO] Execute statement succeeded.\n"), "{printed}");
}

#[test]
fn rows_come_before_the_error_that_ends_them() {
    let answers = vec![query(vec![Ok(batch(vec![1])), Err(Error::data("/ by zero"))], false)];
    let (end, printed) = run(SCRIPT, "SELECT id FROM t;", answers, STOP);
    assert_eq!(end, ScriptEnd::Failed);
    assert!(printed.contains("| +I |           1 |\n[ERROR] "), "{printed}");
}

#[test]
fn control_c_ends_a_query_with_what_has_come() {
    let (mut runner, out, presses) = runner(SCRIPT, vec![query(vec![Ok(batch(vec![1, 2]))], true)]);
    let source = SourceText::new("a.sql", "SELECT id FROM t;");
    let piece = crate::sql::split(&source.text).remove(0);
    let shown = out.clone();
    let presser = std::thread::spawn(move || {
        while !shown.text().contains("           2 |") {
            std::thread::yield_now();
        }
        presses.send_modify(|presses| *presses += 1);
        presses
    });
    assert_eq!(runner.run_piece(&piece, &source), Outcome::Interrupted);
    drop(presser.join().unwrap());
    assert!(
        out.text().ends_with("|           2 |\nQuery terminated, received a total of 2 rows\n"),
        "{}",
        out.text()
    );
}

#[test]
fn jobs_are_announced_and_jobs_that_were_waited_for_are_done() {
    let answers: Vec<Answer> = vec![
        Box::new(|| Ok(StatementResult::JobSubmitted(JobId(7)))),
        Box::new(|| Ok(StatementResult::JobFinished(JobId(8)))),
    ];
    let (end, printed) = run(SCRIPT, "INSERT INTO a SELECT 1; INSERT INTO a SELECT 2;", answers, STOP);
    assert_eq!(end, ScriptEnd::Done);
    assert!(
        printed.contains("Job ID: 00000000000000000000000000000007\n\n[INFO] Complete execution"),
        "{printed}"
    );
}

#[test]
fn an_init_script_shows_nothing_and_allows_only_preparation() {
    let settings = RunnerSettings { is_init: true, ..SCRIPT };
    let (end, printed) = run(settings, "USE d;\nSELECT 1;", vec![done()], STOP);
    assert_eq!(end, ScriptEnd::Failed);
    assert!(
        printed.starts_with(
            "[ERROR] Could not execute SQL statement. Reason:\n\
             java.lang.UnsupportedOperationException: Unsupported statement for configuring session: SELECT 1\n\
             The configureSession API only supports executing statements of type CREATE TABLE, "
        ),
        "{printed}"
    );
}
