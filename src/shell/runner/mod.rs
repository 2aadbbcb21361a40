//! Runs one statement after another and prints what it answers: the part that the REPL and scripts share.
//!
//! All of it happens on the shell's own thread, whose stack is large: parsing, binding and planning recurse as deep as the
//! statement does. Only what runs for long (jobs, batch queries) is on the runtime's workers.

mod jobs;

use std::sync::Arc;
use std::time::Instant;

use futures::{FutureExt, StreamExt};
use tokio::runtime::Runtime;

use super::client_options;
use super::engine::Engine;
use super::interrupt::Interrupts;
use super::panics;
use super::print::console::Console;
use super::print::{OutputFormat, PrintSettings, ResultPrinter, messages, print_table, query_printer};
use super::query_painter::QueryPainter;
use super::view;
use crate::error::{Error, ErrorKind, FlinkClass, Result, SourceText, Span};
use crate::session::{QueryResult, StatementResult};
use crate::sql::{self, Piece, Statement};

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran.
    Done,
    /// It failed, and the error is printed.
    Failed,
    /// The user stopped it.
    Interrupted,
    /// It was QUIT.
    Exit,
}

/// What a runner does besides running.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunnerSettings {
    /// How rows are printed.
    pub(crate) output: OutputFormat,
    /// Whether a person sits at a terminal: result modes `table` and `changelog` count, CLEAR clears.
    pub(crate) is_interactive: bool,
    /// Whether only statements of an init script are allowed, and their answers are not shown.
    pub(crate) is_init: bool,
}

/// Executes statements on an engine and prints to a console.
pub(crate) struct Runner {
    engine: Box<dyn Engine>,
    runtime: Runtime,
    console: Arc<Console>,
    interrupts: Interrupts,
    settings: RunnerSettings,
}

/// What became of the job of a statement that Ctrl-C ended.
const STOPPED_JOB: &str =
    "The statement's job is stopped: what a streaming job has read is written, of a batch job nothing is.";

/// Returns whether a statement starts a job and may wait for it.
fn starts_job(statement: &Statement) -> bool {
    match statement {
        Statement::Insert(_) | Statement::StatementSet(_) | Statement::EndStatementSet => true,
        Statement::CreateTable(create) => create.query.is_some(),
        _ => false,
    }
}

impl Runner {
    /// Creates a runner.
    pub(crate) fn new(
        engine: Box<dyn Engine>,
        runtime: Runtime,
        console: Arc<Console>,
        interrupts: Interrupts,
        settings: RunnerSettings,
    ) -> Runner {
        Runner { engine, runtime, console, interrupts, settings }
    }

    /// Returns the console.
    pub(crate) fn console(&self) -> &Arc<Console> {
        &self.console
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> &dyn Engine {
        self.engine.as_ref()
    }

    /// Returns the runtime.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns the interrupts.
    pub(crate) fn interrupts(&mut self) -> &mut Interrupts {
        &mut self.interrupts
    }

    /// Changes what the runner does besides running.
    pub(crate) fn set_settings(&mut self, settings: RunnerSettings) {
        self.settings = settings;
    }

    /// Runs one piece of a script and prints its answer or its error. `source` is the whole script.
    pub(crate) fn run_piece(&mut self, piece: &Piece, source: &SourceText) -> Outcome {
        if self.settings.is_interactive {
            self.interrupts.reset();
        } else if self.interrupts.is_raised() {
            // In a script that ends something whatever it met: the moment between two statements, too.
            return Outcome::Interrupted;
        }
        match panics::catch(|| self.try_run(piece)) {
            Ok(outcome) => outcome,
            Err(error) => {
                // An error that points nowhere is at least one of this statement.
                let error = match first_token(&piece.text) {
                    Some(first) if error.span().is_none() && error.kind() != ErrorKind::Interrupted => {
                        error.at(first)
                    }
                    _ => error,
                };
                self.report(error.shifted(piece.span.start), Some(source));
                if self.interrupts.is_raised() { Outcome::Interrupted } else { Outcome::Failed }
            }
        }
    }

    /// Prints an error.
    pub(crate) fn report(&self, error: Error, source: Option<&SourceText>) {
        let is_verbose = client_options::is_verbose(self.engine.config());
        self.console.error(&error, source, is_verbose);
    }

    /// Ends the session without waiting for what still runs.
    pub(crate) fn shut_down(self) {
        let Runner { engine, runtime, .. } = self;
        {
            let _guard = runtime.enter();
            drop(engine);
        }
        runtime.shutdown_background();
    }

    /// Parses, executes and prints.
    fn try_run(&mut self, piece: &Piece) -> Result<Outcome> {
        let started = Instant::now();
        if let Some(unfinished) = piece.unfinished {
            return Err(unfinished.error());
        }
        let statement = sql::parse_statement(&piece.text)?;
        if self.settings.is_init && !is_allowed_in_init_script(&statement) {
            return Err(Error::unsupported(messages::unsupported_in_init_script(
                piece.text.trim_end_matches(';'),
            ))
            .class(FlinkClass::UNSUPPORTED_OPERATION));
        }
        let Runner { engine, runtime, interrupts, .. } = self;
        let result = runtime.block_on(async {
            tokio::select! {
                // The work comes first: what is done already counts even if Ctrl-C was pressed, too.
                biased;
                result = panics::catch_async(engine.execute(&statement, &piece.text)) => Some(result),
                () = interrupts.raised() => None,
            }
        });
        match result {
            Some(result) => self.print(result?, started),
            None => {
                let error = Error::interrupted("sleep interrupted");
                self.report(if starts_job(&statement) { error.hint(STOPPED_JOB) } else { error }, None);
                Ok(Outcome::Interrupted)
            }
        }
    }

    /// Prints what a statement answered.
    fn print(&mut self, result: StatementResult, started: Instant) -> Result<Outcome> {
        if self.settings.is_init {
            return Ok(Outcome::Done);
        }
        match result {
            StatementResult::Done => self.console.info(messages::EXECUTED),
            StatementResult::DoneWithNote(note) => {
                self.console.info(messages::EXECUTED);
                self.console.warning(&note);
            }
            StatementResult::Table(table) => {
                // A bad time zone must not keep anyone from looking up what is wrong.
                let zone = self.engine.zone().unwrap_or(chrono_tz::Tz::UTC);
                let mut text = String::new();
                print_table(self.settings.output, &table, zone, &mut text)?;
                self.console.write(&text);
                let rows = u64::try_from(table.rows.num_rows()).unwrap_or(u64::MAX);
                self.console.write_message(&format!("{}\n", messages::in_set(rows)));
            }
            StatementResult::Query(query) => return self.print_query(query, started),
            StatementResult::JobSubmitted(job) => self.console.job_submitted(&job.to_string()),
            StatementResult::JobFinished(_) => self.console.info(messages::COMPLETED),
            StatementResult::Help => self.console.write_message(&messages::help()),
            StatementResult::Clear if self.settings.is_interactive => self.console.write("\x1b[H\x1b[2J"),
            StatementResult::Clear => {}
            StatementResult::Exit => {
                self.console.info(messages::EXITING);
                return Ok(Outcome::Exit);
            }
        }
        Ok(Outcome::Done)
    }

    /// Prints the rows of a query, or shows them full-screen.
    fn print_query(&mut self, query: QueryResult, started: Instant) -> Result<Outcome> {
        let config = self.engine.config();
        let zone = self.engine.zone()?;
        if self.settings.is_interactive && self.settings.output == OutputFormat::Tableau {
            let mode = client_options::result_mode(config)?;
            if let Some(mode) = view::ViewMode::of_result_mode(mode, query.is_streaming)? {
                let rows_max = client_options::max_table_result_rows(config)?;
                return self.view_query(query, view::ViewSettings { mode, rows_max, zone });
            }
        }
        let settings = PrintSettings { max_column_width: client_options::max_column_width(config)?, zone };
        let prints_time = client_options::prints_time_cost(config)?;
        let mut printer = query_printer(self.settings.output, &query.columns, query.is_streaming, settings);
        let is_streaming = query.is_streaming;
        let (rows, is_interrupted) = self.print_rows(query, printer.as_mut())?;
        let footer = match (is_interrupted, is_streaming) {
            (true, _) => messages::terminated(rows),
            (false, true) => messages::received(rows),
            (false, false) => messages::in_set(rows),
        };
        let time = messages::time_cost(prints_time.then(|| started.elapsed()));
        self.console.write_message(&format!("{footer}{time}\n"));
        Ok(if is_interrupted { Outcome::Interrupted } else { Outcome::Done })
    }

    /// Prints rows as they come; returns how many there were and whether Ctrl-C ended them.
    fn print_rows(&mut self, mut query: QueryResult, printer: &mut dyn ResultPrinter) -> Result<(u64, bool)> {
        // Limit: so much text is collected before it is written while rows come faster than they are printed.
        const BUFFER_BYTES: usize = 64 * 1024;
        let Runner { runtime, interrupts, console, .. } = self;
        let mut text = String::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4);
        let mut rows = 0;
        let painter = QueryPainter::start(runtime, console, query.progress.take());
        printer.begin(&mut text);
        let ended = runtime.block_on(panics::catch_async(async {
            loop {
                if console.is_broken() {
                    return Ok(false);
                }
                let next = match query.stream.next().now_or_never() {
                    Some(next) if text.len() < BUFFER_BYTES && !interrupts.is_raised() => next,
                    ready => {
                        console.write(&text);
                        text.clear();
                        tokio::select! {
                            biased;
                            () = interrupts.raised() => return Ok(true),
                            next = async { match ready { Some(next) => next, None => query.stream.next().await } } => next,
                        }
                    }
                };
                let Some(batch) = next.transpose()? else { return Ok(false) };
                rows += batch.row_count() as u64;
                printer.rows(batch, &mut text)?;
            }
        }));
        if let Some(painter) = painter {
            painter.finish(runtime);
        }
        let is_interrupted = match &ended {
            Ok(false) => {
                printer.finish(&mut text);
                false
            }
            Ok(true) => {
                printer.interrupt(&mut text);
                true
            }
            Err(_) => false,
        };
        console.write(&text);
        // The stream is dropped inside the runtime, because that is where it cancels its tasks.
        let _guard = runtime.enter();
        drop(query);
        ended.map(|_| (rows, is_interrupted))
    }

    /// Shows a query full-screen until the user leaves.
    fn view_query(&mut self, query: QueryResult, settings: view::ViewSettings) -> Result<Outcome> {
        self.console.hold_job_lines();
        let shown = view::show(query, settings, &self.runtime);
        self.console.release_job_lines();
        shown?;
        self.console.info(messages::RETRIEVAL_CANCELLED);
        Ok(Outcome::Done)
    }
}

/// Returns whether an init script may hold a statement: only what prepares a session.
fn is_allowed_in_init_script(statement: &Statement) -> bool {
    match statement {
        Statement::Set(_)
        | Statement::Reset(_)
        | Statement::CreateCatalog(_)
        | Statement::DropCatalog { .. }
        | Statement::AlterCatalog { .. }
        | Statement::UseCatalog(_)
        | Statement::CreateDatabase(_)
        | Statement::DropDatabase { .. }
        | Statement::AlterDatabase { .. }
        | Statement::UseDatabase(_)
        | Statement::DropTable { .. }
        | Statement::AlterTable(_)
        | Statement::CreateView(_)
        | Statement::DropView { .. }
        | Statement::AlterView { .. }
        | Statement::CreateFunction(_)
        | Statement::DropFunction { .. }
        | Statement::AlterFunction(_)
        | Statement::LoadModule { .. }
        | Statement::UnloadModule(_)
        | Statement::UseModules(_)
        | Statement::AddJar(_)
        | Statement::RemoveJar(_)
        | Statement::MaterializedTable(_)
        | Statement::Model(_) => true,
        // CREATE TABLE AS runs a job.
        Statement::CreateTable(table) => table.query.is_none(),
        _ => false,
    }
}

/// Returns where a statement starts, behind its comments.
fn first_token(text: &str) -> Option<Span> {
    sql::token_spans(text).ok()?.into_iter().next()
}

#[cfg(test)]
mod tests;
